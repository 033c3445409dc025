//! `copy_async` from shared memory to a tensor: the copy engine moves the boxes of a tile while the kernel continues.

use tilewright::compile::{Options, Stage, compile};
use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::tiles::{self, TILES, check_in_schedules, matrices};
use super::{Launched, are_found, check_all_in_schedules, compiled, mutated, number, product_of};

/// The lines of a kernel's CUDA that are about copies to tensors, without indices.
pub(crate) fn calls(kernel: &Kernel) -> Vec<String> {
    tiles::calls(kernel, &["bulk_", "fence_proxy", "tensor_", "__sync", "sync_warps"])
}

/// What the plans of asynchronous copies say.
fn told(kernel: &Kernel, about: &str) -> Vec<String> {
    let text = compiled(kernel).stage(Stage::Plan).to_string();
    text.lines().map(str::trim).filter(|line| line.contains(about)).map(str::to_string).collect()
}

/// The reasons why the copy engine does not make a copy to a tensor.
fn reasons(kernel: &Kernel) -> Vec<String> {
    let text = compiled(kernel).stage(Stage::Plan).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let follows = |at: &usize| *at > 0 && lines[at - 1] == "tma: not possible";
    (0..lines.len()).filter(follows).map(|at| lines[at].to_string()).collect()
}

/// Twice the elements of a matrix, tile by tile.
fn doubled(dtype: DType, [rows, cols]: [i64; 2], threads: i64) -> Kernel {
    kernel("doubled", |k| {
        let unit = 16 / dtype.bytes();
        let (m, n) = (k.size("m").max(1 << 12), k.size("n").multiple_of(unit));
        let x = k.input("x", dtype, (m, n));
        let y = k.output("y", dtype, (m, n));
        let [bx, by] = k.grid([n.ceil_div(cols), m.ceil_div(rows)]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [rows, cols]);
        let part = |tensor: Buffer| tensor.sub((at(by * rows, rows), at(bx * cols, cols)));
        let from = part(x);
        let held = k.fragment("held", dtype, [rows, cols]);
        k.copy(held, from);
        k.parallel([rows, cols], |k, [i, j]| k.store(tile, (&i, &j), held.at((&i, &j)) + held.at((&i, &j))));
        k.copy_async(part(y), tile);
    })
}

#[test]
fn tiles_of_every_dtype_and_side_go_to_ragged_matrices() {
    for (dtype, sides, threads) in TILES {
        let kernel = doubled(dtype, sides, threads);
        assert_eq!(reasons(&kernel), Vec::<String>::new(), "{dtype} {sides:?}");
        for (m, n) in matrices(dtype, sides) {
            let (x, y) = (tensor(dtype, &[m, n], number), tensor(dtype, &[m, n], |at| 2.0 * number(at)));
            check_all_in_schedules(&kernel, &[("m", m), ("n", n)], &[x], &[y]);
        }
    }
}

/// A tile that threads write in each iteration, and rows of a tensor to which `to` copies it.
fn repeated(tiles: usize, to: impl Fn(Expr) -> Expr) -> Kernel {
    kernel("repeated", |k| {
        let rows = k.size("rows").max(16);
        let turns = rows - 1;
        let y = k.output("y", F32, [64, 128]);
        k.threads(64);
        let tiles: Vec<Buffer> = (0..tiles).map(|at| k.shared(&format!("tile{at}"), F32, [128])).collect();
        k.fill(y, 0.0);
        k.serial("t", ..turns, |k, t| {
            for (place, tile) in tiles.iter().enumerate() {
                let row = t * tiles.len() as i64 + place as i64;
                k.parallel([128], |k, [i]| k.store(*tile, (&i,), (127 - &i + row).cast(F32)));
                k.copy_async(y.sub((to(row), ..)), *tile);
            }
        });
    })
}

/// A launch of [`repeated`] with so many iterations.
fn launch_of_repeated(tiles: usize, to: fn(i64) -> i64, turns: i64) -> Launched {
    let mut y = vec![0.0; 64 * 128];
    for row in 0..turns * tiles as i64 {
        (0..128).for_each(|i| y[(to(row) * 128 + i) as usize] = (127 - i + row) as f64);
    }
    (vec![("rows", turns + 1)], Vec::new(), tensor(F32, &[64, 128], |at| y[at as usize]))
}

fn check_repeated(tiles: usize, to: fn(i64) -> i64, kernel: &Kernel) {
    let launches = [0, 1, 2, 3, 7].map(|turns| launch_of_repeated(tiles, to, turns));
    check_in_schedules(kernel, &launches);
}

#[test]
fn a_tile_is_written_again_when_it_has_been_read() {
    let kernel = repeated(1, |row| row);
    let in_order = [
        "bulk_wait_read<0>",
        "__syncthreads",
        "fence_proxy_async",
        "__syncthreads",
        "bulk_store",
        "bulk_commit",
        "bulk_wait_read<0>",
    ];
    assert_eq!(calls(&kernel), in_order);
    check_repeated(1, |row| row, &kernel);
}

#[test]
fn two_tiles_take_turns() {
    let kernel = repeated(2, |row| row);
    let waits: Vec<String> = calls(&kernel).into_iter().filter(|call| call.starts_with("bulk_wait")).collect();
    assert_eq!(waits, ["bulk_wait_read<1>", "bulk_wait_read<1>", "bulk_wait_read<0>"]);
    check_repeated(2, |row| row, &kernel);
}

/// Copies of boxes are in no order: those to the same elements wait for each other.
#[test]
fn the_last_of_copies_to_the_same_row_counts() {
    for tiles in [1, 2] {
        let kernel = repeated(tiles, |row| row % 3);
        assert!(calls(&kernel).contains(&"bulk_wait<0>".to_string()), "{:?}", calls(&kernel));
        check_repeated(tiles, |row| row % 3, &kernel);
    }
}

/// Threads read elements that a copy replaces, and later those that it wrote.
#[test]
fn a_tensor_is_read_before_and_after_a_copy_to_it() {
    let kernel = kernel("in_place", |k| {
        let x = k.inout("x", F32, [8, 32]);
        let y = k.output("y", F32, [8, 32]);
        k.threads(64);
        let tile = k.shared("tile", F32, [8, 32]);
        k.parallel([8, 32], |k, [i, j]| k.store(tile, (&i, &j), x.at((7 - &i, &j)) + 1.0));
        k.copy_async(x, tile);
        k.parallel([8, 32], |k, [i, j]| k.store(y, (&i, &j), x.at((&i, 31 - &j)) * 2.0));
    });
    assert_eq!(
        calls(&kernel),
        ["fence_proxy_async", "__syncthreads", "bulk_store", "bulk_commit", "bulk_wait<0>", "__syncthreads"]
    );
    let moved = |at: i64| number((7 - at / 32) * 32 + at % 32) + 1.0;
    let y = |at: i64| 2.0 * moved(at / 32 * 32 + 31 - at % 32);
    let results = [tensor(F32, &[8, 32], moved), tensor(F32, &[8, 32], y)];
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[8, 32], number)], &results);
}

/// Two tiles that were written before one fence are stored after it.
#[test]
fn one_fence_is_enough_for_two_tiles() {
    let kernel = kernel("two", |k| {
        let y = k.output("y", F32, [2, 128]);
        k.threads(64);
        let tiles = ["first", "second"].map(|name| k.shared(name, F32, [128]));
        for (place, tile) in (0..).zip(tiles) {
            k.parallel([128], |k, [i]| k.store(tile, (&i,), (127 - &i + place).cast(F32)));
        }
        for (place, tile) in (0..).zip(tiles) {
            k.copy_async(y.sub((place, ..)), tile);
        }
    });
    let fences = calls(&kernel).into_iter().filter(|call| call == "fence_proxy_async_shared").count();
    assert_eq!(fences, 1, "{:?}", calls(&kernel));
    let y = tensor(F32, &[2, 128], |at| (127 - at % 128 + at / 128) as f64);
    check_all_in_schedules(&kernel, &[], &[], &[y]);
}

/// What `cp.async` brings after a fence takes another one.
#[test]
fn what_arrives_after_a_fence_takes_another_one() {
    let kernel = kernel("late", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [2, 128]);
        k.threads(64);
        let tiles = ["loaded", "computed"].map(|name| k.shared(name, F32, [128]));
        k.copy_async(tiles[0], x);
        k.parallel([128], |k, [i]| k.store(tiles[1], (&i,), (127 - &i).cast(F32)));
        k.copy_async(y.sub((1, ..)), tiles[1]);
        k.copy_async(y.sub((0, ..)), tiles[0]);
    });
    let fences = calls(&kernel).into_iter().filter(|call| call == "fence_proxy_async_shared").count();
    assert_eq!(fences, 2, "{:?}", calls(&kernel));
    let y = tensor(F32, &[2, 128], |at| if at < 128 { number(at) } else { (255 - at) as f64 });
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[128], number)], &[y]);
}

/// A tile with four dimensions, and a part of a tensor with five.
#[test]
fn tiles_of_every_rank_are_boxes() {
    for rank in 1..=5_usize {
        for n in [12, 16] {
            let shape: Vec<i64> = std::iter::repeat_n(3, rank - 1).chain([n]).collect();
            let kernel = kernel("ranks", |k| {
                let y = k.output("y", F32, shape.clone());
                k.threads(64);
                let sides: Vec<i64> = std::iter::repeat_n(2, rank - 1).chain([8]).collect();
                let tile = k.shared("tile", F32, sides);
                k.fill(y, 1.0);
                k.fill(tile, 3.0);
                let parts: Vec<Index> = std::iter::repeat_n(at(1, 2), rank - 1).chain([at(4, 8)]).collect();
                k.copy_async(y.sub(parts), tile);
            });
            assert_eq!(reasons(&kernel), Vec::<String>::new());
            let is_inside = |at: i64| (0..rank as u32 - 1).all(|d| at / n / 3_i64.pow(d) % 3 >= 1);
            let element = |at: i64| if is_inside(at) && (4..12).contains(&(at % n)) { 3.0 } else { 1.0 };
            check_all_in_schedules(&kernel, &[], &[], &[tensor(F32, &shape, element)]);
        }
    }
}

/// So many tiles, the rows to which they go, in expressions and in numbers, and the opcodes that nobody misses at an end.
type Case = (usize, fn(Expr) -> Expr, fn(i64) -> i64, &'static [&'static str]);

/// In the first iteration, which NVRTC writes out, nothing has been copied that the wait is for; the last copy to a row is one that
/// no other follows. With one tile, the waits for copies to the same row would be needless: the virtual GPU reads and writes a box
/// at once.
#[test]
fn every_wait_fence_commit_and_barrier_is_needed() {
    let cases: [Case; 3] = [
        (1, |row| row, |row| row, &["cp.async.bulk.wait_group.read", "bar.sync"]),
        (2, |row| row, |row| row, &[]),
        (2, |row| row % 3, |row| row % 3, &["cp.async.bulk.wait_group", "cp.async.bulk.commit_group"]),
    ];
    for (tiles, to, rows, at_ends) in cases {
        let kernel = repeated(tiles, to);
        let launches = [1, 2, 5].map(|turns| launch_of_repeated(tiles, rows, turns));
        let Some(report) = mutated(&kernel, &launches) else { return };
        assert!(are_found(&report, at_ends), "{tiles} tiles: {report:#?}");
    }
}

/// Tiles of a grid of CTAs, from the sums of a product.
#[test]
fn the_sums_of_a_product_go_through_shared_memory() {
    let product = kernel("epilogue", |k| {
        let (m, n, depth) = (k.size("m"), k.size("n").multiple_of(8), k.size("depth").multiple_of(8));
        let a = k.input("a", F16, (m, depth));
        let b = k.input("b", F16, (depth, n));
        let c = k.output("c", F16, (m, n));
        let [column, row] = k.grid([n.ceil_div(64), m.ceil_div(64)]);
        k.threads(128);
        let [left, right, tile] = ["left", "right", "tile"].map(|name| k.shared(name, F16, [64, 64]));
        let sums = k.fragment("sums", F32, [64, 64]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..depth.ceil_div(64), Stages::of(2), |k, t| {
            k.copy(left, a.sub((at(row * 64, 64), at(&t * 64, 64))));
            k.copy(right, b.sub((at(&t * 64, 64), at(column * 64, 64))));
            k.gemm(sums, left, right);
        });
        k.parallel([64, 64], |k, [i, j]| k.store(tile, (&i, &j), sums.at((&i, &j)).cast(F16)));
        k.copy_async(c.sub((at(row * 64, 64), at(column * 64, 64))), tile);
    });
    let boxes = told(&product, "a box of 64 x 64 elements, the 128-byte swizzle");
    assert_eq!(boxes.len(), 3, "{boxes:?}");
    for (m, n, depth) in [(1, 8, 8), (64, 64, 64), (70, 136, 72), (129, 200, 8)] {
        let (inputs, c) = product_of(m, n, depth);
        let c = tensor(F16, &[m, n], |at| c.number(at).expect("a number"));
        check_all_in_schedules(&product, &[("m", m), ("n", n), ("depth", depth)], &inputs, &[c]);
    }
}

#[test]
fn what_the_copy_engine_cannot_do_is_done_at_once() {
    let rows = kernel("rows", |k| {
        let y = k.output("y", F32, [8, 30]);
        k.threads(64);
        let tile = k.shared("tile", F32, [8, 30]);
        k.fill(tile, 3.0);
        k.copy_async(y, tile);
    });
    let apart = "neighbours of dimension 0 of `y` are 30 elements apart; accepted: multiples of 4 elements";
    assert_eq!(reasons(&rows), [apart]);
    check_all_in_schedules(&rows, &[], &[], &[tensor(F32, &[8, 30], |_| 3.0)]);
    let few = kernel("few", |k| {
        let y = k.output("y", F32, [8, 32]);
        k.threads(16);
        let tile = k.shared("tile", F32, [8, 32]);
        k.fill(tile, 3.0);
        k.copy_async(y, tile);
    });
    let no_warp =
        "a CTA of 16 threads has no whole warp to elect the one that issues copies; accepted: 32 threads or more";
    assert_eq!(reasons(&few), [no_warp]);
    check_all_in_schedules(&few, &[], &[], &[tensor(F32, &[8, 32], |_| 3.0)]);
}

/// The stages of a loop are filled ahead, while the engine would still read them.
#[test]
fn a_tile_that_a_loop_fills_ahead_is_stored_by_threads() {
    let kernel = kernel("moved", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, (rows, 128));
        k.threads(64);
        let tile = k.shared("tile", F32, [128]);
        k.pipelined("t", ..rows, 3, |k, t| {
            k.copy(tile, x.sub((&t, ..)));
            k.copy_async(y.sub((&t, ..)), tile);
        });
    });
    let stages = "`tile` has a copy for each stage of a pipelined loop; accepted: buffers that no loop fills ahead";
    assert_eq!(reasons(&kernel), [stages]);
    for rows in [1, 2, 5] {
        let x = tensor(F32, &[rows, 128], number);
        check_all_in_schedules(&kernel, &[("rows", rows)], std::slice::from_ref(&x), std::slice::from_ref(&x));
    }
}

/// The notes of the error for a variant that a copy cannot have.
fn refused(variant: &str, copy: impl FnOnce(&mut KernelBuilder, Buffer) -> [Region; 2]) -> Vec<String> {
    let kernel = kernel("refused", |k| {
        let y = k.output("y", F32, [8, 32]);
        k.threads(64);
        let [to, from] = copy(k, y);
        k.copy_async(to, from).variant(variant);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("a variant that is not possible");
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.code, "P0402");
    finding.notes.clone()
}

#[test]
fn a_variant_that_is_asked_for_is_had_or_an_error() {
    let from_tile = |k: &mut KernelBuilder, y: Buffer| {
        let tile = k.shared("tile", F32, [8, 32]);
        k.fill(tile, 3.0);
        [y.into(), tile.into()]
    };
    assert_eq!(
        refused("cp_async", from_tile),
        ["cp_async: the copy does not fill shared memory; accepted: copies from tensors to shared memory"]
    );
    let to_fragment = |k: &mut KernelBuilder, _: Buffer| {
        let x = k.input("x", F32, [8, 32]);
        [k.fragment("held", F32, [8, 32]).into(), x.into()]
    };
    assert_eq!(
        refused("tma", to_fragment),
        [
            "tma: the op is not a copy between shared memory and a tensor that may stay in flight; accepted: `copy_async` between shared memory and a tensor, an atomic op from shared memory to a tensor, or a pipelined loop"
        ]
    );
    let padded = |k: &mut KernelBuilder, y: Buffer| {
        let tile = k.shared("tile", F32, "S[(8,32):(33,1)]".parse::<Layout>().expect("a layout"));
        k.fill(tile, 3.0);
        [y.into(), tile.into()]
    };
    let notes = refused("tma", padded);
    assert!(notes[0].starts_with("tma: no box of `y` matches `tile`: "), "{notes:?}");
}
