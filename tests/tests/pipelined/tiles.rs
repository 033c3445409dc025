//! What tests of copies in flight have in common: kernels of two tiles, matrices that are no multiples of tiles, and the calls in
//! CUDA.

use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::{Launched, check_all_in_schedules, compiled, number};

/// The names in a kernel's CUDA with which lines begin that begin with one of these, in order.
pub(crate) fn calls(kernel: &Kernel, beginnings: &[&str]) -> Vec<String> {
    let cuda = compiled(kernel).cuda().to_string();
    let body = cuda.split("__global__").nth(1).expect("a kernel").to_string();
    let is_one = |line: &&str| beginnings.iter().any(|beginning| line.starts_with(beginning));
    let name = |line: &str| line.split('(').next().unwrap_or_default().to_string();
    body.lines().map(str::trim).filter(is_one).map(name).collect()
}

/// Adds the elements of a tile, in the opposite order, to `sum`.
pub(crate) fn add_turned(k: &mut KernelBuilder, sum: Buffer, tile: Buffer) {
    k.parallel([128], |k, [i]| k.store(sum, (i,), sum.at((i,)) + tile.at((127 - i,))));
}

/// A kernel with a tensor of `rows` rows, two tiles, and a sum that is stored.
pub(crate) fn with_tiles(
    threads: i64,
    body: impl FnOnce(&mut KernelBuilder, (Buffer, Size), [Buffer; 2], Buffer),
) -> Kernel {
    kernel("in_flight", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, [128]);
        k.threads(threads);
        let tiles = ["first", "second"].map(|name| k.shared(name, F32, [128]));
        let sum = k.fragment("sum", F32, [128]);
        k.fill(sum, 0.0);
        body(k, (x, rows), tiles, sum);
        k.copy(y, sum);
    })
}

pub(crate) fn row(x: Buffer, at: impl Into<Expr>) -> Region {
    x.sub((at.into(), ..))
}

/// The sum of some rows of `x`, each turned around.
pub(crate) fn turned(rows: i64, taken: impl Fn(i64) -> i64) -> Launched {
    let sum = |i: i64| (0..rows).map(|r| taken(r) as f64 * number(r * 128 + 127 - i)).sum::<f64>() + 0.0;
    (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], tensor(F32, &[128], sum))
}

/// The second copy is in flight while the first tile is used.
pub(crate) fn two_tiles(variant: &str) -> Kernel {
    with_tiles(64, |k, (x, _), [first, second], sum| {
        k.copy_async(first, row(x, 0)).variant(variant);
        k.copy_async(second, row(x, 1)).variant(variant);
        add_turned(k, sum, first);
        add_turned(k, sum, second);
    })
}

/// The next row is on its way while one is used, in two tiles that change their roles.
pub(crate) fn two_by_two(variant: &str, threads: i64) -> Kernel {
    with_tiles(threads, |k, (x, rows), [first, second], sum| {
        k.copy_async(first, row(x, 0)).variant(variant);
        k.serial("t", ..rows / 2, |k, t| {
            k.copy_async(second, row(x, t * 2 + 1)).variant(variant);
            add_turned(k, sum, first);
            k.copy_async(first, row(x, t * 2 + 2)).variant(variant);
            add_turned(k, sum, second);
        });
    })
}

/// Launches of [`two_by_two`] with even and odd numbers of rows: a last row without a second one is left out.
pub(crate) fn launches_of_pairs() -> [Launched; 6] {
    [1, 2, 3, 4, 7, 8].map(|rows| turned(rows, |row| i64::from(row < rows / 2 * 2)))
}

pub(crate) fn check_in_schedules(kernel: &Kernel, launches: &[Launched]) {
    for (sizes, inputs, expected) in launches {
        check_all_in_schedules(kernel, sizes, inputs, std::slice::from_ref(expected));
    }
}

/// Tiles of every dtype and side, for so many threads.
pub(crate) const TILES: [(DType, [i64; 2], i64); 7] = [
    (F32, [64, 32], 128),
    (F16, [64, 64], 128),
    (BF16, [16, 128], 64),
    (I8, [32, 128], 32),
    (F32, [8, 16], 32),
    (F16, [4, 16], 64),
    (I32, [16, 4], 256),
];

/// Sides of matrices for such a tile: one tile, less, several and parts of some. Rows are multiples of 16 bytes.
pub(crate) fn matrices(dtype: DType, [rows, cols]: [i64; 2]) -> [(i64, i64); 4] {
    let unit = 16 / dtype.bytes();
    [(1, unit), (rows, cols), (3 * rows - 1, 2 * cols + unit), (5, 7 * unit)]
}
