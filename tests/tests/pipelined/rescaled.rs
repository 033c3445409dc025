//! Products whose sums or factors threads compute anew before each of them, as attention does.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::number;
use super::products;

const DEPTH: i64 = 64;
const STEPS: i64 = 4;

/// How sums are changed in front of each product.
#[derive(Clone, Copy, Debug)]
enum Change {
    Doubled,
    /// By a factor of the row.
    Scaled,
    /// In all steps but the first.
    Later,
}

/// Sums that are changed before every step along K.
fn rescaled(change: Change) -> Kernel {
    kernel("rescaled", |k| {
        let (a, b) = (k.input("a", F16, [64, STEPS * DEPTH]), k.input("b", F16, [STEPS * DEPTH, 64]));
        let scale = k.input("scale", F32, [64]);
        let c = k.output("c", F32, [64, 64]);
        k.threads(160);
        let ab = k.ring("ab", 2, |r| (r.shared("left", F16, [64, DEPTH]), r.shared("right", F16, [DEPTH, 64])));
        k.role("load", 1, |k| {
            k.serial("t", 0..STEPS, |k, t| {
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((.., at(t * DEPTH, DEPTH))));
                    k.copy(right, b.sub((at(t * DEPTH, DEPTH), ..)));
                });
            });
        });
        k.role("math", 4, |k| {
            let sums = k.fragment("sums", F32, [64, 64]);
            let factor = k.fragment("factor", F32, [64]);
            k.copy(factor, scale);
            k.fill(sums, 0.0);
            k.serial("t", 0..STEPS, |k, t| {
                ab.consume(k, |k, (left, right)| {
                    let doubled = |k: &mut KernelBuilder| _ = k.map(sums, |[i, j]| sums.at((i, j)) * 2.0);
                    match change {
                        Change::Doubled => doubled(k),
                        Change::Scaled => _ = k.map(sums, |[i, j]| sums.at((i, j)) * factor.at((i,))),
                        Change::Later => k.if_(Value::from(t).gt(0), doubled),
                    }
                    k.gemm_async(sums, left, right);
                });
            });
            k.copy(c, sums);
        });
    })
}

#[test]
fn sums_are_changed_before_the_fence_of_the_next_product() {
    let a = |row: i64, at: i64| number(row * 3 + at);
    let b = |at: i64, column: i64| number(at * 2 + column * 5);
    for target in Target::ALL.iter().copied() {
        for change in [Change::Doubled, Change::Scaled, Change::Later] {
            let artifact = compile(rescaled(change), &Options::new(target)).unwrap_or_else(|found| panic!("{found:?}"));
            let factor = |row: i64| if let Change::Scaled = change { (row % 3) as f64 - 1.0 } else { 2.0 };
            let expected = tensor(F32, &[64, 64], |place| {
                let (row, column) = (place / 64, place % 64);
                (0..STEPS).fold(0.0, |sum, step| {
                    let part = (step * DEPTH..(step + 1) * DEPTH).map(|at| a(row, at) * b(at, column)).sum::<f64>();
                    sum * factor(row) + part
                })
            });
            let inputs = vec![
                tensor(F16, &[64, STEPS * DEPTH], |at| a(at / (STEPS * DEPTH), at % (STEPS * DEPTH))),
                tensor(F16, &[STEPS * DEPTH, 64], |at| b(at / 64, at % 64)),
                tensor(F32, &[64], |row| (row % 3) as f64 - 1.0),
            ];
            products::check(&artifact, &(Vec::new(), inputs, expected), 3);
        }
    }
}
