//! Rows of f32 become int8: the greatest absolute value of a row becomes 127.

use tilewright::prelude::*;

/// Rows of a CTA.
const ROWS: i64 = 4;
/// 1.5 * 2^23: f32 has no fractions there, so that adding it rounds to the nearest integer, ties to even.
const NO_FRACTIONS: f64 = 12_582_912.0;

/// `x` and `q` are `rows` x `cols`, and `x` is about `q * scales[row]`. A row of zeros has the scale 1.
pub fn quantise(rows: i64, cols: i64) -> Kernel {
    kernel("quantise", |k| {
        let x = k.input("x", F32, [rows, cols]);
        let q = k.output("q", I8, [rows, cols]);
        let scales = k.output("scales", F32, [rows]);
        let [cta] = k.grid([(rows + ROWS - 1) / ROWS]);
        k.threads(64);
        let first = cta * ROWS;
        let v = k.fragment("v", F32, [ROWS, cols]);
        let most = k.fragment("most", F32, [ROWS]);
        let scale = k.fragment("scale", F32, [ROWS]);
        k.parallel([ROWS, cols], |k, [i, j]| {
            k.store(v, (i, j), x.at((first + i, j)));
        });
        k.reduce(AbsMax, most, v, 1);
        k.parallel([ROWS], |k, [i]| {
            let is_scaled = most.at((i,)).gt(0.0);
            let of_row = k.named("of_row", is_scaled.select(most.at((i,)) / 127.0, 1.0));
            k.store(scale, (i,), of_row);
            k.store(scales, (first + i,), of_row);
        });
        k.parallel([ROWS, cols], |k, [i, j]| {
            let rounded = v.at((i, j)) / scale.at((i,)) + NO_FRACTIONS - NO_FRACTIONS;
            // The cast saturates.
            k.store(q, (first + i, j), rounded.cast(I8));
        });
    })
}

/// The same in plain Rust: `q` and `scales`.
pub fn reference(x: &[f32], cols: usize) -> (Vec<i32>, Vec<f32>) {
    let scale = |row: &[f32]| {
        let most = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        if most > 0.0 { most / 127.0 } else { 1.0 }
    };
    let scales: Vec<f32> = x.chunks(cols).map(scale).collect();
    let rows = x.chunks(cols).zip(&scales);
    let q = rows.flat_map(|(row, scale)| row.iter().map(move |x| i32::from((x / scale).round_ties_even() as i8)));
    (q.collect(), scales)
}
