//! A product of matrices of bf16, added in f32, whose extents need not divide the tiles.

use tilewright::prelude::*;

/// The tile of a CTA, and the part of the depth that it holds at once.
const ROWS: i64 = 64;
const COLS: i64 = 64;
const PART: i64 = 32;

/// `c = a*b`, where `a` is `m` x `depth`, `b` is `depth` x `n` and `c` is `m` x `n`.
pub fn gemm(m: i64, n: i64, depth: i64) -> Kernel {
    // 16 bytes more for each line, so that neighbouring lines are in other banks.
    let padded = |lines: i64, length: i64| S([lines, length], [length + 8, 1]);
    kernel("gemm", |k| {
        let a = k.input("a", BF16, [m, depth]);
        let b = k.input("b", BF16, [depth, n]);
        let c = k.output("c", BF16, [m, n]);
        let [down, across] = k.grid([(m + ROWS - 1) / ROWS, (n + COLS - 1) / COLS]);
        k.threads(128);
        let (top, side) = (down * ROWS, across * COLS);
        let left = k.shared("left", BF16, padded(ROWS, PART));
        let right = k.shared("right", BF16, padded(PART, COLS));
        let sums = k.fragment("sums", F32, [ROWS, COLS]);
        k.fill(sums, 0.0);
        k.pipelined("t", 0..(depth + PART - 1) / PART, 2, |k, t| {
            let first = t * PART;
            // What lies outside is read as 0, and adds nothing.
            k.parallel([ROWS, PART], |k, [i, p]| {
                k.store(left, (i, &p), a.at((top + i, first + p)));
            });
            k.parallel([PART, COLS], |k, [p, j]| {
                k.store(right, (p, j), b.at((first + p, side + j)));
            });
            k.gemm(sums, left, right);
        });
        k.parallel([ROWS, COLS], |k, [i, j]| {
            k.store(c, (top + i, side + j), sums.at((i, j)).cast(BF16));
        });
    })
}

/// The same in plain Rust, before it is rounded to bf16.
pub fn reference(a: &[f32], b: &[f32], n: usize, depth: usize) -> Vec<f32> {
    let product =
        |row: &[f32], j: usize| row.iter().zip(b[j..].iter().step_by(n)).fold(0.0_f32, |sum, (a, b)| sum + a * b);
    a.chunks(depth).flat_map(|row| (0..n).map(move |j| product(row, j))).collect()
}
