//! What arrives in the stages of a ring from beyond the edge of a tensor does not count, whichever tile a stage has.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, check_on, tensor};

/// Negative numbers: a zero would be the greatest.
fn negative(at: i64) -> f64 {
    -1.0 - (at * 37 % 101) as f64
}

/// How the roles go through parts of 32 elements.
#[derive(Clone, Copy, Debug)]
enum Walk {
    Serial,
    Tiles(i64),
    TilePerCta,
}

/// The maximum of the next stage.
fn store_maximum(k: &mut KernelBuilder, stages: &Ring<Buffer>, to: Region) {
    let (v, most) = (k.fragment("v", F32, [32]), k.fragment("most", F32, [1]));
    stages.consume(k, |k, part| _ = k.copy(v, part));
    k.reduce(Max, most, v, 0);
    k.copy(to, most);
}

/// `y[t]` is the maximum of the `t`-th part of `x`, which arrives in a ring.
fn maxima(walk: Walk, use_first: bool) -> Kernel {
    kernel("maxima", |k| {
        let n = k.size("n").multiple_of(8);
        let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n.ceil_div(32),)));
        let all = [Expr::from(1), n.ceil_div(32)];
        let tiles = match walk {
            Walk::Serial => None,
            Walk::Tiles(ctas) => Some(Tiles::persistent(k, all, (ctas, 8))),
            Walk::TilePerCta => Some(Tiles::one_per_cta(k, all)),
        };
        k.threads(64);
        let r = k.ring("r", 2, |r| r.shared("part", F32, [32]));
        let each = |k: &mut KernelBuilder, name: &str, body: &dyn Fn(&mut KernelBuilder, Expr)| match &tiles {
            Some(tiles) => tiles.for_each(k, |k, [_, column]| body(k, column)),
            None => k.serial(name, ..n.ceil_div(32), |k, t| body(k, t)),
        };
        let load = |k: &mut KernelBuilder| {
            k.role("load", 1, |k| {
                each(k, "t", &|k, t| r.produce(k, |k, part| _ = k.copy(part, x.sub((at(t * 32, 32),)))));
            });
        };
        let maximum = |k: &mut KernelBuilder| {
            k.role("use", 1, |k| {
                each(k, "u", &|k, u| store_maximum(k, &r, y.sub((at(u, 1),))));
            });
        };
        if use_first {
            maximum(k);
            load(k);
        } else {
            load(k);
            maximum(k);
        }
    })
}

fn maxima_of(n: i64) -> HostTensor {
    let most = |t: i64| (t * 32..n.min(t * 32 + 32)).map(negative).fold(f64::NEG_INFINITY, f64::max);
    tensor(F32, &[(n + 31) / 32], most)
}

#[test]
fn maxima_of_parts() {
    for walk in [Walk::Serial, Walk::Tiles(2), Walk::Tiles(148), Walk::TilePerCta] {
        for use_first in [false, true] {
            let kernel = maxima(walk, use_first);
            for n in [8, 32, 72, 200, 1288] {
                let x = tensor(F32, &[n], negative);
                check(&kernel, &[("n", n)], &[x], &[maxima_of(n)], Tolerance::EXACT);
            }
        }
    }
}

/// The maximum of each row of a product, over tiles of 64 columns, some of which lie beyond the edge.
fn maxima_of_product(target: Target) -> Kernel {
    kernel("maxima_of_product", |k| {
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(8));
        let (a, b) = (k.input("a", BF16, (m, depth)), k.input("b", BF16, (n, depth)));
        let y = k.output("y", F32, (n.ceil_div(64), m));
        let tiles = Tiles::persistent(k, [m.ceil_div(128), n.ceil_div(64)], (2, 2));
        let factors = k.ring("factors", 2, |r| (r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])));
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, [row, column]| {
                k.serial("t", ..depth.ceil_div(64), |k, t| {
                    factors.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub((at(row * 128, 128), at(t * 64, 64))));
                        k.copy(right, b.sub((at(column * 64, 64), at(t * 64, 64))));
                    });
                });
            });
        });
        let multiply = |k: &mut KernelBuilder, sums: Buffer| {
            k.fill(sums, 0);
            k.serial("t", ..depth.ceil_div(64), |k, _| {
                factors.consume(k, |k, (left, right)| {
                    k.gemm_async(sums, left, right).with(Gemm { transpose_b: true, ..Gemm::PLAIN });
                });
            });
        };
        let store = |k: &mut KernelBuilder, sums: Buffer, [row, column]: [Expr; 2]| {
            let most = k.fragment("most", F32, [128]);
            k.reduce(Max, most, sums, 1);
            k.copy(y.sub((column, at(row * 128, 128))), most);
        };
        match target {
            Target::Sm90a => {
                k.threads(32 + 256);
                k.role("multiply", 8, |k| {
                    tiles.for_each(k, |k, tile| {
                        let sums = k.fragment("sums", F32, [128, 64]);
                        multiply(k, sums);
                        store(k, sums, tile);
                    });
                });
            }
            Target::Sm100a => {
                k.threads(32 + 32 + 128);
                let acc = k.ring("acc", 2, |r| r.tensor("acc_sums", F32, [128, 64]));
                k.role("multiply", 1, |k| tiles.for_each(k, |k, _| acc.produce(k, multiply)));
                k.role("store", 4, |k| {
                    tiles.for_each(k, |k, tile| {
                        let sums = k.fragment("sums", F32, [128, 64]);
                        acc.consume(k, |k, held| _ = k.copy(sums, held));
                        store(k, sums, tile);
                    });
                });
            }
        }
    })
}

#[test]
fn maxima_of_products() {
    for (m, n, depth) in [(128, 64, 64), (200, 136, 72), (8, 8, 8), (384, 200, 40)] {
        let (left, right) =
            (|i: i64, d: i64| ((i + d) % 3 + 1) as f64, |j: i64, d: i64| -(((j * 5 + d) % 4 + 1) as f64));
        let sum = |i: i64, j: i64| (0..depth).map(|d| left(i, d) * right(j, d)).sum::<f64>();
        let most = |t: i64, i: i64| (t * 64..n.min(t * 64 + 64)).map(|j| sum(i, j)).fold(f64::NEG_INFINITY, f64::max);
        let inputs = [
            tensor(BF16, &[m, depth], |at| left(at / depth, at % depth)),
            tensor(BF16, &[n, depth], |at| right(at / depth, at % depth)),
        ];
        let y = tensor(F32, &[(n + 63) / 64, m], |at| most(at / m, at % m));
        for target in Target::ALL {
            let sizes = [("m", m), ("n", n), ("k", depth)];
            check_on(*target, &maxima_of_product(*target), &sizes, &inputs, std::slice::from_ref(&y), Tolerance::EXACT);
        }
    }
}

/// Where the role that uses stages has other loops than the one that fills them, a warning asks for a select.
#[test]
fn stages_in_other_loops() {
    let two_by_two = kernel("two_by_two", |k| {
        let n = k.size("n").multiple_of(8);
        let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n.ceil_div(64), 2)));
        k.threads(64);
        let r = k.ring("r", 2, |r| r.shared("part", F32, [32]));
        k.role("load", 1, |k| {
            k.serial("t", ..n.ceil_div(64), |k, t| {
                for half in 0..2 {
                    r.produce(k, |k, part| _ = k.copy(part, x.sub((at(t * 64 + half * 32, 32),))));
                }
            });
        });
        k.role("use", 1, |k| {
            k.serial("u", ..n.ceil_div(64) * 2, |k, u| {
                store_maximum(k, &r, y.sub((&u / 2, at(&u % 2, 1))));
            });
        });
    });
    let artifact = compile(two_by_two, &Options::new(Target::Sm90a)).expect("it compiles");
    assert_eq!(artifact.warnings().iter().map(|warning| warning.code).collect::<Vec<_>>(), ["K0273"]);
}

/// A stage has what was loaded in the iteration before: whichever role is written first, what lies beyond the edge does not count.
fn delayed(use_first: bool) -> Kernel {
    kernel("delayed", |k| {
        let n = k.size("n").multiple_of(8);
        let steps = n.ceil_div(32) + 1;
        let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (&steps,)));
        k.threads(64);
        let r = k.ring("r", 2, |r| r.shared("part", F32, [32]));
        let maximum = |k: &mut KernelBuilder| {
            k.role("use", 1, |k| {
                k.serial("u", ..steps, |k, u| store_maximum(k, &r, y.sub((at(u, 1),))));
            });
        };
        if use_first {
            maximum(k);
        }
        k.role("load", 1, |k| {
            let before = k.fragment("before", F32, [32]);
            k.fill(before, -500.0);
            k.serial("t", ..steps, |k, t| {
                r.produce(k, |k, part| _ = k.copy(part, before));
                k.copy(before, x.sub((at(t * 32, 32),)));
            });
        });
        if !use_first {
            maximum(k);
        }
    })
}

#[test]
fn stages_of_the_iteration_before() {
    for use_first in [false, true] {
        let kernel = delayed(use_first);
        for n in [8, 72] {
            let parts = maxima_of(n);
            let y =
                tensor(
                    F32,
                    &[(n + 31) / 32 + 1],
                    |t| if t == 0 { -500.0 } else { parts.number(t - 1).expect("a part") },
                );
            check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[y], Tolerance::EXACT);
        }
    }
}

/// A part goes back and forth between two roles, so many times; the maximum of it is stored each time.
fn sent_back_and_forth(times: i64, use_first: bool) -> Kernel {
    kernel("back_and_forth", |k| {
        let n = k.size("n").multiple_of(4);
        let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, [times, 1]));
        k.threads(64);
        let there = k.ring("there", 1, |r| r.shared("part", F32, [32]));
        let back = k.ring("back", 1, |r| r.shared("returned", F32, [32]));
        let receive = |k: &mut KernelBuilder| {
            k.role("receive", 1, |k| {
                for time in 0..times {
                    let v = k.fragment(&format!("v{time}"), F32, [32]);
                    let most = k.fragment(&format!("most{time}"), F32, [1]);
                    there.consume(k, |k, part| _ = k.copy(v, part));
                    k.reduce(Max, most, v, 0);
                    k.copy(y.sub((time, at(0, 1))), most);
                    if time < times - 1 {
                        back.produce(k, |k, part| _ = k.copy(part, v));
                    }
                }
            });
        };
        let send = |k: &mut KernelBuilder| {
            k.role("send", 1, |k| {
                there.produce(k, |k, part| _ = k.copy(part, x.sub((at(0, 32),))));
                for time in 1..times {
                    let w = k.fragment(&format!("w{time}"), F32, [32]);
                    back.consume(k, |k, part| _ = k.copy(w, part));
                    there.produce(k, |k, part| _ = k.copy(part, w));
                }
            });
        };
        if use_first {
            receive(k);
            send(k);
        } else {
            send(k);
            receive(k);
        }
    })
}

#[test]
fn what_roles_send_back_and_forth_has_the_same_edge_each_time() {
    for (times, use_first) in [(2, true), (3, true), (4, false), (6, true)] {
        let kernel = sent_back_and_forth(times, use_first);
        for n in [4, 28, 32] {
            let most = (0..n).map(negative).fold(f64::MIN, f64::max);
            let expected = tensor(F32, &[times, 1], |_| most);
            check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[expected], Tolerance::EXACT);
        }
    }
}

/// A buffer that the copy engine fills in one stage, and threads in the next one.
#[test]
fn stages_are_filled_by_the_copy_engine_and_by_threads_in_turn() {
    for stages in [1, 2, 3] {
        let mixed = kernel("mixed", |k| {
            let (x, y) = (k.input("x", F32, [5, 32]), k.output("y", F32, [5, 2, 32]));
            k.threads(64);
            let r = k.ring("r", stages, |r| r.shared("part", F32, [32]));
            k.role("fill", 1, |k| {
                k.serial("t", 0..5, |k, t| {
                    r.produce(k, |k, part| _ = k.copy(part, x.sub((t, ..))));
                    r.produce(k, |k, part| _ = k.fill(part, 3.0));
                });
            });
            k.role("use", 1, |k| {
                k.serial("u", 0..5, |k, u| {
                    for half in 0..2 {
                        r.consume(k, |k, part| _ = k.copy(y.sub((&u, half, ..)), part));
                    }
                });
            });
        });
        let expected = tensor(F32, &[5, 2, 32], |at| match at / 32 % 2 {
            0 => negative(at / 64 * 32 + at % 32),
            _ => 3.0,
        });
        check(&mixed, &[], &[tensor(F32, &[5, 32], negative)], &[expected], Tolerance::EXACT);
    }
}
