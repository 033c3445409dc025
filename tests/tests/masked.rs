//! Elements out of bounds of a tensor in global memory read as zero and are not written, also if the compiler sees that
//! a whole access is out of bounds.

use tilewright::compile::{Options, compile};
use tilewright::layout::TableLayout;
use tilewright::prelude::*;
use tilewright_tests::cases::all;
use tilewright_tests::pages::{computes, tensor};

/// One thread holds a whole block that extends past the edge, so every index is a constant.
#[test]
fn a_block_of_one_thread_over_the_edge() {
    for (rows, cols, threads) in [(5, 2, 1), (1, 1, 1), (3, 2, 2)] {
        let row_sum = kernel("row_sum", |k| {
            let (x, y) = (k.input("x", F32, [rows, cols]), k.output("y", F32, [rows]));
            k.threads(threads);
            let (v, sum) = (k.fragment("v", F32, [8, cols]), k.fragment("sum", F32, [8]));
            k.parallel([8, cols], |k, [i, j]| k.store(v, (i, j), x.at((i, j))));
            k.reduce(Sum, sum, v, 1);
            k.parallel([8], |k, [i]| k.store(y, (i,), sum.at((i,))));
        });
        let y = tensor(F32, &[rows], |row| (row * cols..row * cols + cols).map(|at| at as f64).sum());
        computes(&row_sum, &[tensor(F32, &[rows, cols], |at| at as f64)], &[y]);
    }
}

#[test]
fn the_element_before_the_first_in_an_unrolled_loop() {
    let shifted = kernel("shifted", |k| {
        let a = k.input("a", I32, [4]);
        let y = k.output("y", I32, [4]);
        let kept = k.output("kept", I32, [4]);
        k.fill(kept, 7);
        k.unroll("t", 0..4, |k, t| {
            k.parallel([1], |k, [i]| {
                k.store(y, (t + i,), a.at((t + i - 1,)).or_zero());
                k.store(kept, (t + i + 2,), 0);
            });
        });
    });
    let number = |at: i64| (at + 1) as f64;
    let y = tensor(I32, &[4], |at| if at == 0 { 0.0 } else { number(at - 1) });
    let kept = tensor(I32, &[4], |at| if at < 2 { 7.0 } else { 0.0 });
    computes(&shifted, &[tensor(I32, &[4], number)], &[y, kept]);
}

/// A result for a position out of bounds of a tensor is dropped, so the values that its iteration reads do not matter.
#[test]
fn what_is_read_for_a_place_outside_is_silent() {
    let scaled = |extra: i64| {
        let kernel = kernel("scaled", |k| {
            let (x, gamma) = (k.input("x", F32, [3, 28]), k.input("gamma", F32, [12]));
            let y = k.output("y", F32, [3, 28]);
            let [g] = k.grid([3]);
            k.parallel([256], |k, [j]| {
                let channel = g * 4 + j / 7 + extra;
                k.store(y, (g, j), x.at((g, j)) * gamma.at((channel,)));
            });
        });
        compile(kernel, &Options::new(Target::Sm100a)).expect("it compiles").warnings()
    };
    assert_eq!(scaled(0), Vec::new());
    assert_eq!(scaled(1)[0].code, "K0266");
}

/// The position of an element is looked up in a table, which has no entries for elements out of bounds.
#[test]
fn data_that_leads_out_of_a_tensor_laid_out_by_a_table() {
    let places: Vec<i64> = (0..32).map(|at| at ^ (at / 4)).collect();
    let gathered = kernel("gathered", |k| {
        let x = k.input("x", I32, TableLayout::of_positions(&M, &places).expect("a table"));
        let at = k.input("at", I32, [64]);
        let y = k.output("y", I32, [64]);
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), x.at((at.at((&i,)),)));
        });
    });
    let index = |at: i64| at * 3 - 40;
    let number = |at: i64| (at + 1) as f64;
    let y = tensor(I32, &[64], |at| if (0..32).contains(&index(at)) { number(index(at)) } else { 0.0 });
    computes(&gathered, &[tensor(I32, &[32], number), tensor(I32, &[64], |at| index(at) as f64)], &[y]);
}

/// The warnings for a kernel whose CTAs read a tensor of 100 elements in tiles of 32.
fn warned(read: impl FnOnce(Buffer, Expr) -> Value) -> Vec<String> {
    let tiles = kernel("tiles", |k| {
        let x = k.input("x", F32, [100]);
        let y = k.output("y", F32, [100]);
        let [block] = k.grid([4]);
        k.parallel([32], |k, [i]| {
            let place = block * 32 + i;
            k.store(y, (place,), read(x, place));
        });
    });
    said_of(tiles)
}

fn said_of(kernel: Kernel) -> Vec<String> {
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    artifact.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn tiles_over_the_edge_are_silent_and_an_index_off_by_one_is_not() {
    assert!(warned(|x, place| x.at((place,))).is_empty());
    assert_eq!(
        warned(|x, place| x.at((place + 1,))),
        ["warning[K0266]: `x[bx*32 + i + 1]` reads indices 1 to 128 of dimension 0 (extent 100)"]
    );
    assert_eq!(
        warned(|x, place| x.at((place - 1,))),
        ["warning[K0266]: `x[bx*32 + i - 1]` reads indices -1 to 126 of dimension 0 (extent 100)"]
    );
    // A tile of every second element starts in bounds, too.
    assert!(warned(|x, place| x.at((place * 2 % 64,)) + x.at((place % 32 * 2 + 65,))).is_empty());
}

#[test]
fn zeros_that_are_meant_and_edges_that_are_asked_for_are_silent() {
    assert!(warned(|x, place| x.at((place - 1,)).or_zero() + x.at((place + 1,)).or_zero()).is_empty());
    assert!(warned(|x, place| place.ge(1).select(x.at((place - 1,)), 0.0)).is_empty());
    assert!(warned(|x, place| place.lt(99).select(x.at((place + 1,)), 0.0)).is_empty());
    assert_eq!(warned(|x, place| place.ge(1).select(0.0, x.at((place - 1,)))).len(), 1);
}

#[test]
fn what_is_meant_stands_in_the_text_of_the_kernel() {
    let text = |is_meant: bool| {
        kernel("k", |k| {
            let x = k.input("x", F32, [32]);
            let y = k.output("y", F32, [32]);
            k.parallel([32], |k, [i]| {
                let before = x.at((i - 1,));
                let before = if is_meant { before.or_zero() } else { before };
                k.store(y, (i,), before * 2.0);
            });
        })
        .to_string()
    };
    assert!(text(true).contains("y[i] = x[i - 1].or_zero() * 2.0"));
    assert!(text(false).contains("y[i] = x[i - 1] * 2.0"));
}

#[test]
fn tiles_of_a_size_that_is_known_at_launch_are_silent() {
    let shifted = |by: i64| {
        said_of(kernel("shifted", |k| {
            let n = k.size("n").max(1000);
            let x = k.input("x", F32, (n,));
            let y = k.output("y", F32, (n,));
            let [block] = k.grid([n.ceil_div(64)]);
            k.serial("half", 0..2, |k, half| {
                k.parallel([32], |k, [i]| {
                    let place = block * 64 + half * 32 + i;
                    k.store(y, (place,), x.at((place + by,)));
                });
            });
        }))
    };
    assert!(shifted(0).is_empty());
    assert_eq!(
        shifted(1),
        ["warning[K0266]: `x[bx*64 + half*32 + i + 1]` reads indices 1 to 1024 of dimension 0 (extent n)"]
    );
}

#[test]
fn no_kernel_of_the_library_reads_beyond_an_edge_unsaid() {
    for case in all() {
        let artifact = case.compile(Target::Sm100a).expect("the case compiles");
        let beyond = artifact.warnings().into_iter().find(|warning| warning.code == "K0266");
        assert_eq!(beyond.map(|warning| warning.message), None, "{}", artifact.name());
    }
}
