//! Products whose tiles the compiler lays out, in every combination of what it decides on: the order of the factors, where
//! the left one is, warps, dtypes, how the sums leave. Results are exact, and equal those of a product in plain Rust.

use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

/// How sums leave the registers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exit {
    /// As they are, with a bias that a fragment holds.
    WithBias,
    /// Rounded, through shared memory.
    Rounded,
    /// Rounded and transposed, through shared memory.
    Turned,
    /// The sums of rows.
    RowSums,
    /// They are in shared memory all along.
    Shared,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    /// M, N and K.
    shape: [i64; 3],
    dtype: DType,
    threads: i64,
    policy: WarpPolicy,
    turned_b: bool,
    /// Whether A is a fragment.
    held: bool,
    exit: Exit,
}

fn left(at: i64) -> f64 {
    ((at * 7 + at / 5) % 5 - 2) as f64
}

fn right(at: i64) -> f64 {
    ((at * 3 + at / 7) % 3 - 1) as f64
}

impl Product {
    fn kernel(&self) -> Kernel {
        let Product { shape: [m, n, depth], dtype, threads, policy, turned_b, held, exit } = *self;
        let b_shape = if turned_b { [n, depth] } else { [depth, n] };
        kernel("product", |k| {
            let (a, b) = (k.input("a", dtype, [m, depth]), k.input("b", dtype, b_shape));
            let (out_dtype, out_shape) = match exit {
                Exit::WithBias | Exit::Shared => (F32, vec![m, n]),
                Exit::Rounded => (dtype, vec![m, n]),
                Exit::Turned => (dtype, vec![n, m]),
                Exit::RowSums => (F32, vec![m]),
            };
            let bias = k.input("bias", F32, [n]);
            let out = k.output("out", out_dtype, out_shape.clone());
            k.threads(threads);
            let factor = if held { k.fragment("left", dtype, [m, depth]) } else { k.shared("left", dtype, [m, depth]) };
            let tile = k.shared("right", dtype, b_shape);
            let sums =
                if exit == Exit::Shared { k.shared("sums", F32, [m, n]) } else { k.fragment("sums", F32, [m, n]) };
            k.parallel([m, depth], |k, [i, j]| k.store(factor, (i, j), a.at((i, j))));
            k.copy(tile, b);
            k.gemm(sums, factor, tile).with(Gemm { transpose_b: turned_b, policy, clear: true, ..Gemm::PLAIN });
            match exit {
                Exit::WithBias => {
                    let line = k.fragment("line", F32, [n]);
                    k.copy(line, bias);
                    k.parallel([m, n], |k, [i, j]| k.store(out, (i, j), sums.at((i, j)) + line.at((j,))));
                }
                Exit::Rounded => {
                    let through = k.shared("through", dtype, [m, n]);
                    k.parallel([m, n], |k, [i, j]| k.store(through, (i, j), sums.at((i, j)).cast(dtype)));
                    k.copy(out, through);
                }
                Exit::Turned => {
                    let through = k.shared("through", dtype, [n, m]);
                    k.parallel([m, n], |k, [i, j]| k.store(through, (j, i), sums.at((i, j)).cast(dtype)));
                    k.copy(out, through);
                }
                Exit::Shared => {
                    k.copy(out, sums);
                }
                Exit::RowSums => {
                    let row = k.fragment("row", F32, [m]);
                    k.reduce(Sum, row, sums, 1);
                    k.copy(out, row);
                }
            }
        })
    }

    fn is_right(&self) {
        let Product { shape: [m, n, depth], dtype, turned_b, exit, .. } = *self;
        let b = |k: i64, j: i64| if turned_b { right(j * depth + k) } else { right(k * n + j) };
        let sum = |i: i64, j: i64| (0..depth).map(|k| left(i * depth + k) * b(k, j)).sum::<f64>();
        let bias = |j: i64| (j % 9) as f64;
        let out = match exit {
            Exit::WithBias => tensor(F32, &[m, n], |at| sum(at / n, at % n) + bias(at % n)),
            Exit::Shared => tensor(F32, &[m, n], |at| sum(at / n, at % n)),
            Exit::Rounded => tensor(dtype, &[m, n], |at| sum(at / n, at % n)),
            Exit::Turned => tensor(dtype, &[n, m], |at| sum(at % m, at / m)),
            Exit::RowSums => tensor(F32, &[m], |i| (0..n).map(|j| sum(i, j)).sum()),
        };
        let b_shape = if turned_b { [n, depth] } else { [depth, n] };
        let inputs = [tensor(dtype, &[m, depth], left), tensor(dtype, &b_shape, right), tensor(F32, &[n], bias)];
        computes(&self.kernel(), &inputs, &[out]);
    }
}

#[test]
fn products_are_right_in_every_combination() {
    let shapes = [([32, 32, 16], 32), ([64, 64, 64], 128), ([32, 40, 48], 64), ([128, 64, 80], 256)];
    let exits = [Exit::WithBias, Exit::Rounded, Exit::Turned, Exit::RowSums, Exit::Shared];
    let mut count = 0;
    for (at, (shape, threads)) in shapes.into_iter().enumerate() {
        for (turned_b, held) in [(false, false), (false, true), (true, false), (true, true)] {
            for exit in exits {
                let (dtype, policy) = match (at + count) % 3 {
                    0 => (F16, WarpPolicy::FullRow),
                    1 => (F16, WarpPolicy::Square),
                    _ => (BF16, WarpPolicy::FullRow),
                };
                count += 1;
                // Four warps have no whole columns of 40.
                let policy = if shape[1] == 40 { WarpPolicy::FullRow } else { policy };
                Product { shape, dtype, threads, policy, turned_b, held, exit }.is_right();
            }
        }
    }
}
