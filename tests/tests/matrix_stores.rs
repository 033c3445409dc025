//! Fragments that `stmatrix` stores in shared memory.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

const ROWS: Gemm = Gemm { policy: WarpPolicy::FullRow, clear: true, ..Gemm::PLAIN };

/// The product of two matrices of 64 x 64, as `of`, through a tile in shared memory that `store` fills.
fn product(
    of: DType,
    shape: [i64; 2],
    layout: Option<&str>,
    store: impl Fn(&mut KernelBuilder, Buffer, Buffer),
) -> Kernel {
    kernel("product", |k| {
        let (a, b) = (k.input("a", F16, [64, 64]), k.input("b", F16, [64, 64]));
        let c = k.output("c", of, shape);
        k.threads(128);
        let (left, right) = (k.shared("left", F16, [64, 64]), k.shared("right", F16, [64, 64]));
        let sums = k.fragment("sums", F32, [64, 64]);
        let tile = match layout {
            Some(layout) => k.shared("tile", of, (shape, layout.parse::<Layout>().expect("a layout"))),
            None => k.shared("tile", of, shape),
        };
        k.copy(left, a);
        k.copy(right, b);
        k.gemm(sums, left, right).with(ROWS);
        store(k, tile, sums);
        k.copy(c, tile);
    })
}

fn number(at: i64) -> f64 {
    ((at * 7 + at / 5) % 5 - 2) as f64
}

fn element(at: i64) -> f64 {
    (0..64).map(|k| number(at / 64 * 64 + k) * number(k * 64 + at % 64)).sum()
}

fn cuda(kernel: &Kernel) -> String {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles").cuda().to_string()
}

/// The kernel is right, and calls `inst`.
fn stores(kernel: &Kernel, of: DType, by: impl Fn(i64) -> f64, inst: &str) {
    let [a, b] = [(); 2].map(|()| tensor(F16, &[64, 64], number));
    computes(kernel, &[a, b], &[tensor(of, &[64, 64], by)]);
    let cuda = cuda(kernel);
    assert!(cuda.contains(inst), "{cuda}");
}

fn rounded(k: &mut KernelBuilder, tile: Buffer, sums: Buffer) {
    k.parallel([64, 64], |k, [i, j]| k.store(tile, (i, j), sums.at((i, j)).cast(F16)));
}

#[test]
fn sums_are_stored_as_four_matrices_at_once() {
    stores(&product(F16, [64, 64], None, rounded), F16, element, "stmatrix_x4<");
}

#[test]
fn a_fragment_is_copied_as_matrices() {
    let copied = product(F16, [64, 64], None, |k, tile, sums| {
        let halves = k.fragment("halves", F16, [64, 64]);
        k.parallel([64, 64], |k, [i, j]| k.store(halves, (i, j), sums.at((i, j)).cast(F16)));
        k.copy(tile, halves);
    });
    stores(&copied, F16, element, "stmatrix_x4<");
}

#[test]
fn swizzled_and_padded_tiles_are_stored_as_matrices() {
    for layout in ["swizzle(M=3,B=3,S=3) o S[(64,64):(64,1)]", "S[(64,64):(72,1)]"] {
        stores(&product(F16, [64, 64], Some(layout), rounded), F16, element, "stmatrix_x4<");
    }
}

#[test]
fn sums_are_transposed_by_the_store() {
    let turned = product(F16, [64, 64], Some("S[(64,64):(72,1)]"), |k, tile, sums| {
        k.parallel([64, 64], |k, [i, j]| k.store(tile, (j, i), sums.at((i, j)).cast(F16)));
    });
    stores(&turned, F16, |at| element(at % 64 * 64 + at / 64), "stmatrix_x4_trans<");
}

#[test]
fn a_tile_without_rows_of_16_bytes_is_stored_by_lanes() {
    let odd = product(F16, [64, 64], Some("S[(64,64):(66,1)]"), rounded);
    let [a, b] = [(); 2].map(|()| tensor(F16, &[64, 64], number));
    computes(&odd, &[a, b], &[tensor(F16, &[64, 64], element)]);
    assert!(!cuda(&odd).contains("stmatrix"));
}

/// The lane that gives the address of a row has only a part of it: also where it alone reads the row again, it waits for
/// its warp.
#[test]
fn a_row_is_read_after_the_whole_warp_stored_it() {
    let rows = kernel("rows", |k| {
        let (a, c) = (k.input("a", F16, [16, 16]), k.output("c", F16, [16, 16]));
        k.threads(32);
        let of = |text: &str| ([16, 16], text.parse::<Layout>().expect("a layout"));
        let matrices = k.fragment("matrices", F16, of("S[(2,8,2,4,2):(2@reg,4@tx,4@reg,1@tx,1@reg)]"));
        let rows = k.fragment("rows", F16, of("S[(16,2,8):(1@tx,16@tx,1@reg)]"));
        let tile = k.shared("tile", F16, ([16, 16], "S[(16,16):(24,1)]".parse::<Layout>().expect("a layout")));
        k.copy(matrices, a);
        k.copy(tile, matrices);
        k.copy(rows, tile);
        k.copy(c, rows);
    });
    let same = || tensor(F16, &[16, 16], number);
    computes(&rows, &[same()], &[same()]);
    let cuda = cuda(&rows);
    let (_, after) = cuda.split_once("stmatrix_x4<0>").expect("a store of matrices");
    assert!(after.contains("__syncwarp();"), "{cuda}");
}

/// The alignment of its addresses follows from the values of quotients by 24, not from factors.
#[test]
fn sums_of_which_the_columns_are_no_power_of_two_are_stored_transposed() {
    for [m, n] in [[32, 24], [48, 24], [32, 40], [32, 72]] {
        let transposed = kernel("transposed", |k| {
            let a = k.input("a", F16, [m, 16]);
            let b = k.input("b", F16, [16, n]);
            let h = k.output("h", F16, [n, m]);
            k.threads(32);
            let halves = k.fragment("halves", F16, [m, n]);
            let c = k.fragment("c", F32, [m, n]);
            k.fill(c, 0.0);
            k.gemm(c, a, b);
            k.parallel([m, n], |k, [i, j]| k.store(halves, (i, j), c.at((i, j)).cast(F16)));
            let tile = k.shared("tile", F16, [n, m]);
            let columns = k.transposed("columns", tile, [1, 0]);
            k.copy(columns, halves);
            k.copy(h, tile);
        });
        let (left, right) = (|at: i64| (at * 5 % 7 - 3) as f64, |at: i64| (at * 3 % 5 - 2) as f64);
        let sum = |row: i64, column: i64| (0..16).map(|k| left(row * 16 + k) * right(k * n + column)).sum();
        let inputs = [tensor(F16, &[m, 16], left), tensor(F16, &[16, n], right)];
        computes(&transposed, &inputs, &[tensor(F16, &[n, m], |at| sum(at % m, at / m))]);
    }
}
