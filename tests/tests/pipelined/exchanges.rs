//! Sums in tensor memory that two roles have in turn: one scales them, the other adds a product, as attention does.

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::products::{self, ANY, are_missed};
use super::{Launched, number};

const ROWS: i64 = 128;
const DEPTH: i64 = 32;

/// Which steps scale the sums.
#[derive(Clone, Copy, Debug)]
enum Scaled {
    /// All of them.
    Always,
    /// Every second one.
    Sometimes,
}

/// How the sums of a kernel are scaled, how many columns they have, and how many of these are moved at a time.
#[derive(Clone, Copy, Debug)]
struct Shape {
    scaled: Scaled,
    columns: i64,
    part: i64,
}

const PLAIN: Shape = Shape { scaled: Scaled::Always, columns: 64, part: 32 };

/// For each of some steps, `c = c*scale + a*b`, with a number of the row as scale. `c` begins with 0.
fn scaled(shape: Shape) -> Kernel {
    let Shape { scaled, columns, part } = shape;
    let parts = columns / part;
    kernel("scaled", |k| {
        let (m, steps) = (k.size("m").max(4096), k.size("steps").max(64));
        let a = k.input("a", F16, (m, steps * DEPTH));
        let b = k.input("b", F16, (steps * DEPTH, columns));
        let scale = k.input("scale", F32, (m,));
        let result = k.output("c", F32, (m, columns));
        let [cta] = k.grid([m.ceil_div(ROWS)]);
        k.threads(192);
        let ab = k.ring("ab", 2, |r| (r.shared("left", F16, [ROWS, DEPTH]), r.shared("right", F16, [DEPTH, columns])));
        let sums = k.exchange("sums", |r| r.tensor("o", F32, [ROWS, columns]));
        k.role("load", 1, |k| {
            k.serial("t", ..steps, |k, t| {
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((at(cta * ROWS, ROWS), at(t * DEPTH, DEPTH))));
                    k.copy(right, b.sub((at(t * DEPTH, DEPTH), ..)));
                });
            });
        });
        k.role("multiply", 1, |k| {
            sums.consume(k, |_, _| ());
            k.serial("t", ..steps, |k, _| {
                ab.consume(k, |k, (left, right)| sums.consume(k, |k, o| k.gemm_async(o, left, right)));
            });
            sums.consume(k, |_, _| ());
        });
        k.role("scale", 4, |k| {
            let held = k.fragment("held", F32, [ROWS, part]);
            let factor = k.fragment("factor", F32, [ROWS]);
            k.copy(factor, scale.sub((at(cta * ROWS, ROWS),)));
            k.fill(held, 0.0);
            sums.produce(k, |k, o| {
                k.unroll("p", 0..parts, |k, c| k.copy(o.sub((.., at(c * part, part))), held));
            });
            k.serial("t", ..steps, |k, t| {
                sums.produce(k, |k, o| {
                    let all = |k: &mut KernelBuilder| {
                        k.unroll("p", 0..parts, |k, c| {
                            let tile = o.sub((.., at(c * part, part)));
                            k.copy(held, tile.clone());
                            k.map(held, |[i, j]| held.at((i, j)) * factor.at((i,)));
                            k.copy(tile, held);
                        });
                    };
                    match scaled {
                        Scaled::Always => all(k),
                        Scaled::Sometimes => k.if_(Value::from(t % 2).eq(1), all),
                    }
                });
            });
            sums.produce(k, |k, o| {
                k.unroll("p", 0..parts, |k, c| {
                    k.copy(held, o.sub((.., at(c * part, part))));
                    k.copy(result.sub((at(cta * ROWS, ROWS), at(c * part, part))), held);
                });
            });
        });
    })
}

fn compiled_for(shape: Shape) -> Artifact {
    compile(scaled(shape), &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
}

/// A launch with so many rows and steps: all sums are exact.
fn launch(shape: Shape, [m, steps]: [i64; 2]) -> Launched {
    let (columns, depth) = (shape.columns, steps * DEPTH);
    let left = |row: i64, t: i64| number(row * 3 + t * 5);
    let right = |t: i64, column: i64| number(t * 2 + column * 7);
    let scale = |row: i64| [1.0, 2.0, 0.5, -1.0, 0.0][(row % 5) as usize];
    let inputs = vec![
        tensor(F16, &[m, depth], |at| left(at / depth, at % depth)),
        tensor(F16, &[depth, columns], |at| right(at / columns, at % columns)),
        tensor(F32, &[m], scale),
    ];
    let element = |at: i64| {
        let (row, column) = (at / columns, at % columns);
        (0..steps).fold(0.0, |sum, step| {
            let is_scaled = matches!(shape.scaled, Scaled::Always) || step % 2 == 1;
            let tile = (step * DEPTH..(step + 1) * DEPTH).map(|t| left(row, t) * right(t, column)).sum::<f64>();
            sum * if is_scaled { scale(row) } else { 1.0 } + tile
        }) + 0.0
    };
    (vec![("m", m), ("steps", steps)], inputs, tensor(F32, &[m, columns], element))
}

#[test]
fn each_role_goes_on_with_what_the_other_has_left() {
    for scaled in [Scaled::Always, Scaled::Sometimes] {
        for (columns, part) in [(64, 32), (64, 64), (256, 16), (96, 24)] {
            let shape = Shape { scaled, columns, part };
            let artifact = compiled_for(shape);
            // One step, and several; a part of a tile, and several tiles.
            for size in [[1, 1], [300, 6]] {
                products::check(&artifact, &launch(shape, size), 5);
            }
        }
    }
}

/// The plan counts the arrivals of both directions; products always add, so no register says whether they do.
#[test]
fn the_plan_and_the_code_of_an_exchange() {
    let artifact = compiled_for(PLAIN);
    let plan = artifact.stage(Stage::Plan);
    let line = "1 stage of `o`, 64 columns of tensor memory each; full after 4 arrivals of `scale`, empty after 1 arrival of `multiply`";
    assert!(plan.contains(line), "{plan}");
    assert!(artifact.stage(Stage::Tile).contains("  exchange sums: o\n"));
    let cuda = artifact.cuda();
    assert!(cuda.contains("tensor_store_32_f32(tensor_base + warp*2097152, held);"), "{cuda}");
    assert!(cuda.contains("0x8110010, 1);") && !cuda.contains("o_accumulates"), "{cuda}");
}

/// The only survivors are those of other products by roles; waits for stores that a later one also waits for; the first wait of all,
/// which passes; and those in front of the end of tensor memory but one, since all of them wait for the last turn.
#[test]
fn every_barrier_of_an_exchange_is_needed() {
    let launches = [[128, 9], [200, 2]].map(|size| launch(PLAIN, size));
    let Some(report) = super::mutated_as(&compiled_for(PLAIN), &launches) else { return };
    let fences = [("fence.mbarrier_init", 1), ("tcgen05.fence", ANY)];
    let others = [("bar.warp", 3), ("arrive.shared", 2), ("wait::st", 3), ("try_wait", 4), ("bar.sync", 1)];
    let known = [&fences[..], &others].concat();
    assert!(are_missed(&report, &known), "{report:#?}");
}

/// `c = residual + a*b` for each of the tiles of a CTA, where `residual` is what the sums begin with. The role that multiplies comes
/// first in the text.
fn onto_residual(ctas: i64, columns: i64) -> Kernel {
    kernel("onto_residual", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(8).max(4096));
        let (a, b) = (k.input("a", F16, (m, depth)), k.input("b", F16, (depth, n)));
        let (residual, c) = (k.input("residual", F32, (m, n)), k.output("c", F32, (m, n)));
        k.threads(192);
        let tiles = Tiles::persistent(k, [m.ceil_div(ROWS), n.ceil_div(columns)], (2, ctas));
        let ab = k.ring("ab", 3, |r| (r.shared("left", F16, [ROWS, DEPTH]), r.shared("right", F16, [DEPTH, columns])));
        let sums = k.exchange("sums", |r| r.tensor("o", F32, [ROWS, columns]));
        k.role("multiply", 1, |k| {
            tiles.for_each(k, |k, _| {
                let turn = sums.wait(k);
                k.serial("t", ..depth.ceil_div(DEPTH), |k, _| {
                    ab.consume(k, |k, (left, right)| k.gemm_async(turn.buffers, left, right));
                });
                turn.release(k);
                sums.consume(k, |_, _| ());
            });
        });
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, [row, column]| {
                k.serial("t", ..depth.ceil_div(DEPTH), |k, t| {
                    ab.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub((at(row * ROWS, ROWS), at(t * DEPTH, DEPTH))));
                        k.copy(right, b.sub((at(t * DEPTH, DEPTH), at(column * columns, columns))));
                    });
                });
            });
        });
        k.role("begin_and_store", 4, |k| {
            let held = k.fragment("held", F32, [ROWS, columns]);
            tiles.for_each(k, |k, [row, column]| {
                let place = (at(row * ROWS, ROWS), at(column * columns, columns));
                k.copy(held, residual.sub(place));
                sums.produce(k, |k, o| k.copy(o, held));
                sums.produce(k, |k, o| k.copy(held, o));
                k.copy(c.sub(place), held);
            });
        });
    })
}

/// The same as [`scaled`] with a scale of 2 behind each step: the role that multiplies has the sums first, and replaces what is there.
fn doubled(columns: i64) -> Kernel {
    kernel("doubled", |k| {
        let steps = k.size("steps").max(64);
        let (a, b) = (k.input("a", F16, (ROWS, steps * DEPTH)), k.input("b", F16, (steps * DEPTH, columns)));
        let c = k.output("c", F32, [ROWS, columns]);
        k.threads(192);
        let ab = k.ring("ab", 2, |r| (r.shared("left", F16, [ROWS, DEPTH]), r.shared("right", F16, [DEPTH, columns])));
        let sums = k.exchange("sums", |r| r.tensor("o", F32, [ROWS, columns]));
        k.role("load", 1, |k| {
            k.serial("t", ..steps, |k, t| {
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((.., at(t * DEPTH, DEPTH))));
                    k.copy(right, b.sub((at(t * DEPTH, DEPTH), ..)));
                });
            });
        });
        k.role("multiply", 1, |k| {
            k.serial("t", ..steps, |k, t| {
                ab.consume(k, |k, (left, right)| {
                    sums.produce(k, |k, o| {
                        let add = |k: &mut KernelBuilder, clear: bool| {
                            k.gemm_async(o, left, right).with(Gemm { clear, ..Gemm::PLAIN });
                        };
                        k.if_else(Value::from(t).eq(0), |k| add(k, true), |k| add(k, false));
                    });
                });
            });
        });
        k.role("double", 4, |k| {
            let held = k.fragment("held", F32, [ROWS, columns]);
            k.serial("t", ..steps, |k, t| {
                sums.consume(k, |k, o| {
                    k.copy(held, o);
                    k.map(held, |[i, j]| held.at((i, j)) * 2.0);
                    k.copy(o, held);
                });
                k.if_(Value::from(t).eq(steps - 1), |k| k.copy(c, held));
            });
        });
    })
}

#[test]
fn the_role_that_multiplies_may_have_them_first() {
    for columns in [32, 128] {
        let artifact = compile(doubled(columns), &Options::new(Target::Sm100a)).expect("a kernel");
        for steps in [1, 2, 7] {
            let depth = steps * DEPTH;
            let (left, right) = (|i: i64, t: i64| number(i * 3 + t * 5), |t: i64, j: i64| number(t * 2 + j * 7));
            let inputs = vec![
                tensor(F16, &[ROWS, depth], |at| left(at / depth, at % depth)),
                tensor(F16, &[depth, columns], |at| right(at / columns, at % columns)),
            ];
            let tile = |i: i64, j: i64, step: i64| {
                (step * DEPTH..(step + 1) * DEPTH).map(|t| left(i, t) * right(t, j)).sum::<f64>()
            };
            let element =
                |at: i64| (0..steps).fold(0.0, |sum, step| (sum + tile(at / columns, at % columns, step)) * 2.0) + 0.0;
            products::check(&artifact, &(vec![("steps", steps)], inputs, tensor(F32, &[ROWS, columns], element)), 5);
        }
    }
}

#[test]
fn sums_begin_with_a_residual_in_every_tile() {
    for (ctas, columns) in [(1, 32), (3, 64), (2, 128)] {
        let artifact = compile(onto_residual(ctas, columns), &Options::new(Target::Sm100a)).expect("a kernel");
        for [m, n, depth] in [[8, 8, 8], [384, 136, 72], [136, 264, 200]] {
            let (left, right) = (|i: i64, t: i64| number(i * 3 + t * 5), |t: i64, j: i64| number(t * 2 + j * 7));
            let residual = |at: i64| number(at * 11 + at / n);
            let inputs = vec![
                tensor(F16, &[m, depth], |at| left(at / depth, at % depth)),
                tensor(F16, &[depth, n], |at| right(at / n, at % n)),
                tensor(F32, &[m, n], residual),
            ];
            let product = |i: i64, j: i64| (0..depth).map(|t| left(i, t) * right(t, j)).sum::<f64>();
            let c = tensor(F32, &[m, n], |at| residual(at) + product(at / n, at % n));
            products::check(&artifact, &(vec![("m", m), ("n", n), ("k", depth)], inputs, c), 4);
        }
    }
}
