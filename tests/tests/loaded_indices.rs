//! Indices that a CTA loads from tensors before all else, and tensors that end at one.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, tensor};

fn number(at: i64) -> f64 {
    (at * 37 % 251) as f64
}

/// Where segments begin, and where the last one ends.
const BEGINS: [i64; 7] = [0, 0, 5, 38, 39, 39, 100];
const COLS: i64 = 24;

fn begins(dtype: DType) -> HostTensor {
    tensor(dtype, &[BEGINS.len() as i64], |at| BEGINS[at as usize] as f64)
}

/// A kernel with a CTA for each segment of the rows of `x`, which calls `body` with `x`, `y`, the segment, and where it begins and ends.
fn of_segments(dtype: DType, rows_of_y: bool, body: impl FnOnce(&mut KernelBuilder<'_>, Segment)) -> Kernel {
    kernel("of_segments", |k| {
        let (n, segments) = (k.size("n"), k.size("segments"));
        let x = k.input("x", F32, (n, COLS));
        let y = if rows_of_y { k.inout("y", F32, (n, COLS)) } else { k.output("y", F32, (segments, COLS)) };
        let begins = k.input("begins", dtype, (segments + 1,));
        let [segment] = k.grid([segments]);
        k.threads(64);
        let first = k.index("first", begins.at((segment,)), n);
        let end = k.index("end", begins.at((segment + 1,)), n);
        body(k, Segment { x, y, segment, first, end });
    })
}

#[derive(Clone, Copy)]
struct Segment {
    x: Buffer,
    y: Buffer,
    segment: Expr,
    first: Expr,
    end: Expr,
}

const SIZES: [(&str, i64); 2] = [("n", 100), ("segments", 6)];

fn x() -> HostTensor {
    tensor(F32, &[100, COLS], number)
}

fn sums() -> HostTensor {
    tensor(F32, &[6, COLS], |at| {
        let segment = (at / COLS) as usize;
        (BEGINS[segment]..BEGINS[segment + 1]).map(|row| number(row * COLS + at % COLS)).fold(0.0, |a, b| a + b)
    })
}

/// Sums of the rows of each segment, of which `rows` are copied to `tile` at a time.
fn sum(k: &mut KernelBuilder<'_>, of: Segment, rows: i64) {
    let own = k.truncated("own", of.x, 0, of.end);
    let (v, sums) = (k.fragment("v", F32, [rows, COLS]), k.fragment("sums", F32, [COLS]));
    k.fill(sums, 0.0);
    k.serial("row", (of.first, of.end).step(rows), |k, row| {
        k.copy(v, own.sub((at(row, rows), ..)));
        k.reduce(Sum, sums, v, 0).accumulate();
    });
    k.copy(of.y.sub((of.segment, ..)), sums);
}

#[test]
fn rows_of_other_segments_do_not_count() {
    for rows in [1, 8, 32] {
        for dtype in [I32, I64, U32, I8] {
            let kernel = of_segments(dtype, false, |k, of| sum(k, of, rows));
            check(&kernel, &SIZES, &[x(), begins(dtype)], &[sums()], Tolerance::EXACT);
        }
    }
}

#[test]
fn a_pipelined_loop_over_a_segment() {
    let kernel = of_segments(I32, false, |k, of| {
        let own = k.truncated("own", of.x, 0, of.end);
        let tile = k.shared("tile", F32, [16, COLS]);
        let sums = k.fragment("sums", F32, [COLS]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..(of.end - of.first).ceil_div(16), 3, |k, t| {
            k.copy(tile, own.sub((at(of.first + t * 16, 16), ..)));
            k.reduce(Sum, sums, tile, 0).accumulate();
        });
        k.copy(of.y.sub((of.segment, ..)), sums);
    });
    check(&kernel, &SIZES, &[x(), begins(I32)], &[sums()], Tolerance::EXACT);
}

#[test]
fn rows_of_other_segments_are_not_written() {
    // CTAs of other segments write the rows behind the end at the same time.
    let kernel = of_segments(I32, true, |k, of| {
        let (from, to) = (k.truncated("from", of.x, 0, of.end), k.truncated("to", of.y, 0, of.end));
        let v = k.fragment("v", F32, [16, COLS]);
        k.serial("row", (of.first, of.end).step(16), |k, row| {
            k.copy(v, from.sub((at(row, 16), ..)));
            k.map(v, |[i, j]| v.at((i, j)) + 1.0 + Value::from(of.segment));
            k.copy(to.sub((at(row, 16), ..)), v);
        });
    });
    let segment_of = |row: i64| (0..6).find(|at| (BEGINS[*at]..BEGINS[at + 1]).contains(&row)).unwrap_or(0) as f64;
    let y = tensor(F32, &[100, COLS], |at| number(at) + 1.0 + segment_of(at / COLS));
    let before = tensor(F32, &[100, COLS], |_| -1.0);
    check(&kernel, &SIZES, &[x(), before, begins(I32)], &[y], Tolerance::EXACT);
}

#[test]
fn data_beyond_its_bounds_counts_as_the_bounds() {
    let wild = [-7i64, 3, i64::from(i32::MIN), 99, 2_000_000_000, 1000, 50];
    let kernel = of_segments(I32, false, |k, of| sum(k, of, 8));
    let within = |at: usize| wild[at].clamp(0, 100);
    let y = tensor(F32, &[6, COLS], |at| {
        let segment = (at / COLS) as usize;
        (within(segment)..within(segment + 1)).map(|row| number(row * COLS + at % COLS)).fold(0.0, |a, b| a + b)
    });
    let begins = tensor(I32, &[7], |at| wild[at as usize] as f64);
    check(&kernel, &SIZES, &[x(), begins], &[y], Tolerance::EXACT);
}

#[test]
fn an_index_of_an_index() {
    // `of[order[i]]` is the row that CTA `i` copies, as many columns as `width[i]` says.
    let kernel = kernel("chosen", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n, COLS));
        let [order, of, width] = ["order", "of", "width"].map(|name| k.input(name, I32, (n,)));
        let y = k.output("y", F32, (n, COLS));
        let [cta] = k.grid([n]);
        let place = k.index("place", order.at((cta,)), n - 1);
        let row = k.index("row", of.at((place,)), n - 1);
        let columns = k.index("columns", width.at((cta,)) * 2 + 1, COLS);
        let part = k.truncated("part", x, 1, columns);
        let v = k.fragment("v", F32, [COLS]);
        k.copy(v, part.sub((row, ..)));
        k.copy(y.sub((cta, ..)), v);
    });
    let n = 20i64;
    let [order, of, width] = [|at: i64| at * 7 % 20, |at: i64| at * 3 % 20, |at: i64| at % 14];
    let y = tensor(F32, &[n, COLS], |at| {
        let (cta, column) = (at / COLS, at % COLS);
        if column < (width(cta) * 2 + 1).min(COLS) { number(of(order(cta)) * COLS + column) } else { 0.0 }
    });
    let x = tensor(F32, &[n, COLS], number);
    let inputs = [x, tensor(I32, &[n], |at| order(at) as f64), tensor(I32, &[n], |at| of(at) as f64)];
    let inputs = [&inputs[..], &[tensor(I32, &[n], |at| width(at) as f64)]].concat();
    check(&kernel, &[("n", n)], &inputs, &[y], Tolerance::EXACT);
}

#[test]
fn a_condition_and_elements_on_an_index() {
    let kernel = of_segments(I32, false, |k, of| {
        k.fill(of.y.sub((of.segment, ..)), -1.0);
        k.if_(Value::from(of.end).gt(of.first), |k| {
            k.parallel([COLS], |k, [j]| k.store(of.y, (of.segment, j), of.x.at((of.end - 1, j)) + of.first));
        });
    });
    let y = tensor(F32, &[6, COLS], |at| {
        let segment = (at / COLS) as usize;
        let [first, end] = [BEGINS[segment], BEGINS[segment + 1]];
        if end > first { number((end - 1) * COLS + at % COLS) + first as f64 } else { -1.0 }
    });
    check(&kernel, &SIZES, &[x(), begins(I32)], &[y], Tolerance::EXACT);
}

/// In a cluster, each CTA has an index of its own: what it loads is not the same in all of them.
#[test]
fn an_index_that_depends_on_the_rank() {
    let kernel = kernel("of_ranks", |k| {
        let n = k.size("n");
        let (x, y) = (k.input("x", F32, (n, 64)), k.output("y", F32, (2, 64)));
        let rows = k.input("rows", I32, [2]);
        k.threads(64);
        let rank = k.cluster(2);
        let row = k.index("row", rows.at((rank,)), n - 1);
        let ring = k.ring("ring", 2, |r| r.shared("held", F32, [1, 64]));
        k.role("load", 1, |k| ring.produce(k, |k, held| k.copy(held, x.sub((row, ..)))));
        k.role("store", 1, |k| ring.consume(k, |k, held| k.copy(y.sub((rank, ..)), held)));
    });
    let chosen = [3i64, 1];
    let y = tensor(F32, &[2, 64], |at| number(chosen[at as usize / 64] * 64 + at % 64));
    let inputs = [tensor(F32, &[5, 64], number), tensor(I32, &[2], |at| chosen[at as usize] as f64)];
    check(&kernel, &[("n", 5)], &inputs, &[y], Tolerance::EXACT);
}

/// An index waits for the launch before, unless its tensor is known not to change.
#[test]
fn an_index_waits_for_the_launch_before() {
    let waits = |unchanged: bool| {
        let kernel = kernel("waits", |k| {
            let (x, y) = (k.input("x", F32, [8, 32]), k.output("y", F32, [32]));
            let rows = k.input("rows", I32, [1]);
            let known: Vec<Buffer> = unchanged.then_some(rows).into_iter().collect();
            k.overlap_previous(&known);
            let row = k.index("row", rows.at((0,)), 7);
            k.copy(y, x.sub((row, ..)));
        });
        let cuda = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right").cuda().to_string();
        let [wait, load] = ["wait_for_previous_launch();", "= rows[0];"].map(|text| cuda.rfind(text).expect(text));
        wait < load
    };
    assert!(waits(false));
    assert!(!waits(true));
}

/// Integers of a type that does not hold the greatest value are clamped to that value, and not to what is left of it.
#[test]
fn indices_of_narrow_types_are_clamped_as_they_are() {
    for (dtype, rows, data) in [
        (I8, 301, vec![100.0_f64, -5.0, 127.0, -128.0, 7.0]),
        (U8, 301, vec![200.0, 0.0, 255.0, 1.0, 44.0]),
        (U16, 70_001, vec![65_535.0, 4_464.0, 0.0, 1.0, 2.0]),
        (I16, 40_001, vec![32_767.0, -32_768.0, -1.0, 8.0, 300.0]),
    ] {
        let gather = kernel("gather", |k| {
            let n = k.size("n");
            let (x, rows) = (k.input("x", F32, (n, 4)), k.input("rows", dtype, [5]));
            let y = k.output("y", F32, [5, 4]);
            let [at] = k.grid([5]);
            let row = k.index("row", rows.at((at,)), n - 1);
            k.copy(y.sub((at, ..)), x.sub((row, ..)));
        });
        let x = tensor(F32, &[rows, 4], |at| at as f64);
        let y =
            tensor(F32, &[5, 4], |at| data[(at / 4) as usize].clamp(0.0, rows as f64 - 1.0) * 4.0 + (at % 4) as f64);
        let given = tensor(dtype, &[5], |at| data[at as usize]);
        check(&gather, &[("n", rows)], &[x, given], &[y], Tolerance::EXACT);
    }
}

/// A view in another order of one that ends earlier ends there, too.
#[test]
fn a_truncated_view_is_transposed() {
    let columns = kernel("columns", |k| {
        let n = k.size("n");
        let (x, ends) = (k.input("x", F32, (n, 8)), k.input("ends", I32, [1]));
        let y = k.output("y", F32, [8]);
        k.threads(64);
        let end = k.index("end", ends.at((0,)), n);
        let own = k.truncated("own", x, 0, end);
        let turned = k.transposed("turned", own, [1, 0]);
        let (v, sums) = (k.fragment("v", F32, [8, 16]), k.fragment("sums", F32, [8]));
        k.copy(v, turned.sub((.., at(0, 16))));
        k.reduce(Sum, sums, v, 1);
        k.copy(y, sums);
    });
    for end in [1, 5, 16] {
        let x = tensor(F32, &[20, 8], |at| at as f64);
        let y = tensor(F32, &[8], |column| (0..end).map(|row| (row * 8 + column) as f64).sum());
        check(&columns, &[("n", 20)], &[x, tensor(I32, &[1], |_| end as f64)], &[y], Tolerance::EXACT);
    }
}

/// An index that is made of an element outside of its input is 0, and a warning says so.
#[test]
fn an_element_outside_of_the_input_is_told() {
    let of = |place: i64| {
        let outside = kernel("outside", |k| {
            let (n, ends) = (k.size("n"), k.input("ends", I64, [2]));
            let y = k.output("y", F32, (n,));
            let end = k.index("end", ends.at((place,)), n);
            let own = k.truncated("own", y, 0, end);
            k.fill(own.sub((at(0, 32),)), 1.0);
        });
        let artifact = compile(outside, &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{found:?}"));
        artifact.warnings().iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    assert_eq!(of(1), [""; 0]);
    assert_eq!(of(2), ["K0266"]);
}
