//! Prefix sums of rows, by hand: several elements a thread, the sums of threads through shared memory.

use tilewright::prelude::*;

const THREADS: i64 = 64;
/// Elements of a thread.
const ITEMS: i64 = 4;
const PART: i64 = THREADS * ITEMS;

/// `y[row, j]` is the sum of `x[row, 0]` to `x[row, j]`, which wraps. A CTA goes through a row in parts.
pub fn scan(rows: i64, cols: i64) -> Kernel {
    kernel("scan", |k| {
        let x = k.input("x", I32, [rows, cols]);
        let y = k.output("y", I32, [rows, cols]);
        let [row] = k.grid([rows]);
        k.threads(THREADS);
        // Of each thread, the sums up to each of its elements.
        let inner = k.fragment("inner", I32, [THREADS, ITEMS]);
        // The sums of threads twice, from and to; before them stand zeros, so that every step may look back.
        let totals = k.shared("totals", I32, [2, 2 * THREADS]);
        // The sum of the parts before.
        let carry = k.fragment("carry", I32, [1]);
        k.fill(totals, 0);
        k.fill(carry, 0);
        k.serial("part", 0..(cols + PART - 1) / PART, |k, part| {
            let first = part * PART;
            k.parallel([THREADS], |k, [t]| {
                let mut sum = Value::from(0);
                for n in 0..ITEMS {
                    let column = first + t * ITEMS + n;
                    sum = k.named(&format!("sum{n}"), sum + x.at((row, column)));
                    k.store(inner, (t, n), sum);
                }
                k.store(totals, (0, t + THREADS), sum);
            });
            let (mut from, mut step) = (0_i64, 1_i64);
            while step < THREADS {
                let to = 1 - from;
                k.parallel([THREADS], |k, [t]| {
                    let place = t + THREADS;
                    let before = totals.at((from, place - step));
                    k.store(totals, (to, place), totals.at((from, place)) + before);
                });
                (from, step) = (to, 2 * step);
            }
            k.parallel([THREADS], |k, [t]| {
                let before = k.named("before", carry.at((0,)) + totals.at((from, t + (THREADS - 1))));
                for n in 0..ITEMS {
                    let column = first + t * ITEMS + n;
                    k.store(y, (row, column), inner.at((t, n)) + before);
                }
            });
            k.each_thread(|k| {
                k.store(carry, (0,), carry.at((0,)) + totals.at((from, 2 * THREADS - 1)));
            });
        });
    })
}

/// The same in plain Rust.
pub fn reference(x: &[i32], cols: usize) -> Vec<i32> {
    let of_row = |row: &[i32]| {
        let mut sum = 0_i32;
        row.iter()
            .map(|x| {
                sum = sum.wrapping_add(*x);
                sum
            })
            .collect::<Vec<i32>>()
    };
    x.chunks(cols).flat_map(of_row).collect()
}
