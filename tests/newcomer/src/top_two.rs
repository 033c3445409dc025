//! The two greatest elements of each row, and where they are.

use tilewright::prelude::*;

/// Rows of a CTA.
const ROWS: i64 = 4;

/// `values` and `indices` are `rows` x 2, the greatest first. Of equal elements, the first one counts as greater. Where
/// a row has one element, the second value is minus infinity, at index `cols`.
pub fn top_two(rows: i64, cols: i64) -> Kernel {
    kernel("top_two", |k| {
        let x = k.input("x", F32, [rows, cols]);
        let values = k.output("values", F32, [rows, 2]);
        let indices = k.output("indices", I32, [rows, 2]);
        let [cta] = k.grid([(rows + ROWS - 1) / ROWS]);
        k.threads(64);
        let first = cta * ROWS;
        let left = k.fragment("left", F32, [ROWS, cols]);
        let candidates = k.fragment("candidates", I32, [ROWS, cols]);
        let max = k.fragment("max", F32, [ROWS]);
        let found = k.fragment("found", I32, [ROWS]);
        k.parallel([ROWS, cols], |k, [i, j]| {
            k.store(left, (i, j), x.at((first + i, j)));
        });
        k.fill(found, cols);
        for rank in 0..2_i64 {
            // What was found is no candidate any more.
            k.parallel([ROWS, cols], |k, [i, j]| {
                let was_found = Value::from(j).eq(found.at((i,)));
                k.store(left, (i, j), was_found.select(f64::NEG_INFINITY, left.at((i, j))));
            });
            k.reduce(Max, max, left, 1);
            k.parallel([ROWS, cols], |k, [i, j]| {
                let was_found = Value::from(j).eq(found.at((i,)));
                let is_max = left.at((i, j)).eq(max.at((i,)));
                k.store(candidates, (i, j), is_max.select(was_found.select(cols, j), cols));
            });
            k.reduce(Min, found, candidates, 1);
            k.parallel([ROWS], |k, [i]| {
                k.store(values, (first + i, rank), max.at((i,)));
                k.store(indices, (first + i, rank), found.at((i,)));
            });
        }
    })
}

/// The same in plain Rust: values and indices.
pub fn reference(x: &[f32], cols: usize) -> (Vec<f32>, Vec<i32>) {
    let of_row = |row: &[f32]| {
        let mut order: Vec<usize> = (0..cols).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        [0_usize, 1].map(|rank| order.get(rank).map_or((f32::NEG_INFINITY, cols as i32), |at| (row[*at], *at as i32)))
    };
    x.chunks(cols).flat_map(of_row).unzip()
}
