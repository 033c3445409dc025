//! Copies from global to shared memory write zeros for elements outside of the tensor only if some op reads them.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

fn number(at: i64) -> f64 {
    (at * 7 % 251 + 1) as f64
}

/// The kernel has an input `a` of m x n; the output is `b`, of the given shape and numbers. `zeros` tells whether zeros
/// are written to shared memory.
#[track_caller]
fn is(kernel: &Kernel, zeros: bool, shape: impl Fn(i64, i64) -> Vec<i64>, expected: impl Fn(i64, i64, i64) -> f64) {
    let cuda = compile(kernel.clone(), &Options::new(Target::Sm100a)).unwrap().cuda().to_string();
    assert_eq!(cuda.contains("= 0.0f"), zeros, "{cuda}");
    for (m, n) in [(32, 64), (33, 65), (1, 1), (50, 31), (64, 97)] {
        let a = tensor(F32, &[m, n], number);
        let b = tensor(F32, &shape(m, n), |at| expected(at, m, n));
        check(kernel, &[("m", m), ("n", n)], &[a], &[b], Tolerance::EXACT);
    }
}

/// A kernel with tiles of 32 x 32 of `a` in shared memory.
fn of_tiles(
    b: impl Fn(Size, Size) -> [Expr; 2],
    body: impl FnOnce(&mut KernelBuilder, [Buffer; 3], [Expr; 2]),
) -> Kernel {
    kernel("of_tiles", |k| {
        let [m, n] = ["m", "n"].map(|name| k.size(name).max(128));
        let a = k.input("a", F32, (m, n));
        let [rows, cols] = b(m, n);
        let b = k.output("b", F32, ([rows, cols], [cols, Expr::from(1)]));
        let [y, x] = k.grid([m.ceil_div(32), n.ceil_div(32)]);
        k.threads(64);
        let tile = k.shared("tile", F32, [32, 32]);
        body(k, [a, tile, b], [y * 32, x * 32]);
    })
}

fn transposed(m: Size, n: Size) -> [Expr; 2] {
    [n.into(), m.into()]
}

fn same(m: Size, n: Size) -> [Expr; 2] {
    [m.into(), n.into()]
}

#[test]
fn a_transpose_that_leaves_out_the_same_elements() {
    let built = of_tiles(transposed, |k, [a, tile, b], [r, c]| {
        let columns = k.transposed("columns", tile, [1, 0]);
        k.copy(tile, a.sub((at(r, 32), at(c, 32))));
        k.copy(b.sub((at(c, 32), at(r, 32))), columns);
    });
    is(&built, false, |m, n| vec![n, m], |at, m, n| number(at % m * n + at / m));
}

#[test]
fn a_wider_tensor() {
    let wider = |m: Size, n: Size| [m.into(), Expr::from(n) + 3];
    let built = of_tiles(wider, |k, [a, tile, b], [r, c]| {
        k.copy(tile, a.sub((at(r, 32), at(c, 32))));
        k.copy(b.sub((at(r, 32), at(c, 32))), tile);
    });
    let expected =
        |at: i64, _: i64, n: i64| if at % (n + 3) < n { number(at / (n + 3) * n + at % (n + 3)) } else { 0.0 };
    // Columns in a block of their own have no tile.
    let built_for = |n: i64| (n + 3 + 31) / 32 == (n + 31) / 32;
    let cuda = compile(built.clone(), &Options::new(Target::Sm100a)).unwrap().cuda().to_string();
    assert!(cuda.contains("= 0.0f"), "{cuda}");
    for (m, n) in [(33, 66), (1, 1), (50, 29)] {
        assert!(built_for(n));
        let a = tensor(F32, &[m, n], number);
        let b = tensor(F32, &[m, n + 3], |at| expected(at, m, n));
        check(&built, &[("m", m), ("n", n)], &[a], &[b], Tolerance::EXACT);
    }
}

#[test]
fn a_part_of_the_tile_at_another_place() {
    let built = of_tiles(same, |k, [a, tile, b], [r, c]| {
        k.copy(tile, a.sub((at(r, 32), at(c, 32))));
        // The halves of the columns change places.
        k.copy(b.sub((at(r, 32), at(c, 16))), tile.sub((.., at(16, 16))));
        k.copy(b.sub((at(r, 32), at(&c + 16, 16))), tile.sub((.., at(0, 16))));
    });
    is(
        &built,
        true,
        |m, n| vec![m, n],
        |at, _, n| {
            let col = at % n;
            let other = if col % 32 < 16 { col + 16 } else { col - 16 };
            if other < n { number(at / n * n + other) } else { 0.0 }
        },
    );
}

#[test]
fn a_loop_that_reads_the_tile() {
    let built = of_tiles(same, |k, [a, tile, b], [r, c]| {
        k.copy(tile, a.sub((at(r, 32), at(c, 32))));
        k.parallel([32, 32], |k, [i, j]| k.store(b, (r + i, c + j), tile.at((&i, &j)) + tile.at((&i, 31 - &j))));
    });
    is(
        &built,
        true,
        |m, n| vec![m, n],
        |at, _, n| {
            let (row, col) = (at / n, at % n);
            let mirrored = col / 32 * 32 + 31 - col % 32;
            number(row * n + col) + if mirrored < n { number(row * n + mirrored) } else { 0.0 }
        },
    );
}

#[test]
fn tiles_of_an_earlier_iteration() {
    let built = kernel("rows", |k| {
        let [m, n] = ["m", "n"].map(|name| k.size(name).max(128));
        let (a, b) = (k.input("a", F32, (m, n)), k.output("b", F32, (m, n)));
        k.threads(64);
        let tile = k.shared("tile", F32, [32, 128]);
        k.fill(tile, 1.0);
        k.serial("t", 0..4, |k, t| {
            // The tile of the iteration before.
            k.copy(b.sub((at(&t * 32, 32), at(0, 128))), tile);
            k.copy(tile, a.sub((at(&t * 32, 32), at(0, 128))));
        });
    });
    let cuda = compile(built.clone(), &Options::new(Target::Sm100a)).unwrap().cuda().to_string();
    assert!(cuda.contains("= 0.0f"), "{cuda}");
    for (m, n) in [(128, 128), (100, 61)] {
        let b = tensor(F32, &[m, n], |at| if at / n < 32 { 1.0 } else { number(at - 32 * n) });
        check(&built, &[("m", m), ("n", n)], &[tensor(F32, &[m, n], number)], &[b], Tolerance::EXACT);
    }
}

#[test]
fn tiles_of_a_loop() {
    let built = kernel("rows", |k| {
        let [m, n] = ["m", "n"].map(|name| k.size(name).max(128));
        let (a, b) = (k.input("a", F32, (m, n)), k.output("b", F32, (m, n)));
        let [y] = k.grid([m.ceil_div(32)]);
        k.threads(64);
        let tiles = k.shared("tiles", F32, [2, 32, 128]);
        k.serial("t", 0..4, |k, t| {
            let rows = (at(y * 32, 32), at(0, 128));
            k.copy(tiles.sub((&t % 2, .., ..)), a.sub(rows));
            k.copy(b.sub(rows), tiles.sub((&t % 2, .., ..)));
        });
    });
    is(&built, false, |m, n| vec![m, n], |at, _, _| number(at));
}

/// Every warp reads what another one has written, at whose rows the tensor may end.
#[test]
fn tiles_of_other_warps() {
    let built = |own: bool| {
        kernel("warps", |k| {
            let m = k.size("m").max(64);
            let (a, b) = (k.input("a", F32, (m, 32)), k.output("b", F32, (m, 32)));
            k.threads(128);
            let tile = k.shared("tile", F32, [4, 8, 32]);
            let w = k.warp_id();
            let read = if own { w } else { 3 - w };
            k.warp().copy(tile.sub((w, .., ..)), a.sub((at(w * 8, 8), ..)));
            k.warp().copy(b.sub((at(w * 8, 8), ..)), tile.sub((read, .., ..)));
        })
    };
    for (own, m) in [false, true].into_iter().flat_map(|own| [1, 9, 13, 20, 32].map(|m| (own, m))) {
        let kernel = built(own);
        let cuda = compile(kernel.clone(), &Options::new(Target::Sm100a)).unwrap().cuda().to_string();
        assert_eq!(cuda.contains("0.0f"), !own, "{cuda}");
        let expected = |at: i64| {
            let (row, col) = (at / 32, at % 32);
            let from = if own { row } else { (3 - row / 8) * 8 + row % 8 };
            if from < m { number(from * 32 + col) } else { 0.0 }
        };
        let [a, b] = [tensor(F32, &[m, 32], number), tensor(F32, &[m, 32], expected)];
        check(&kernel, &[("m", m)], &[a], &[b], Tolerance::EXACT);
    }
}
