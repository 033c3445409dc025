//! Rings: roles fill and use stages at the same time.

use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::tiles::check_in_schedules;
use super::{Launched, OF_LAST, are_found, compiled, mutated, number, products};

/// Rows of `x`, which one role copies and another sums up in reverse.
fn turned_rows(stages: i64, variant: Option<&'static str>) -> Kernel {
    kernel("turned_rows", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, [128]);
        k.threads(96);
        let lines = k.ring("lines", stages, |r| r.shared("line", F32, [128]));
        k.role("load", 1, |k| {
            k.serial("t", ..rows, |k, t| {
                lines.produce(k, |k, line| {
                    let copy = k.copy(line, x.sub((&t, ..)));
                    if let Some(variant) = variant {
                        copy.variant(variant);
                    }
                });
            });
        });
        k.role("math", 2, |k| {
            let sum = k.fragment("sum", F32, [128]);
            k.fill(sum, 0.0);
            k.serial("t", ..rows, |k, _| {
                lines.consume(k, |k, line| {
                    k.parallel([128], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + line.at((127 - &i,))));
                });
            });
            k.copy(y, sum);
        });
    })
}

fn turned(rows: i64) -> Launched {
    let sum = |i: i64| (0..rows).map(|r| number(r * 128 + 127 - i)).sum::<f64>() + 0.0;
    (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], tensor(F32, &[128], sum))
}

const WAYS: [Option<&str>; 5] = [None, Some("tma"), Some("bulk"), Some("cp_async"), Some("vectorized")];

#[test]
fn a_role_uses_what_another_fills() {
    for variant in WAYS {
        for stages in 1..=4 {
            check_in_schedules(&turned_rows(stages, variant), &[1, 2, 3, 4, 9].map(turned));
        }
    }
}

#[test]
fn every_barrier_of_a_ring_is_needed() {
    for variant in WAYS {
        let Some(report) = mutated(&turned_rows(3, variant), &[7, 8].map(turned)) else { return };
        assert!(are_found(&report, &OF_LAST), "{variant:?}: {report:#?}");
    }
}

/// `c = a*b` with tiles that extend past the edges: a warp loads, four multiply.
fn product(stages: i64) -> Kernel {
    kernel("product", |k| {
        let (m, n, depth) = (k.size("m"), k.size("n").multiple_of(8), k.size("k").multiple_of(8));
        let (a, b) = (k.input("a", BF16, (m, depth)), k.input("b", BF16, (depth, n)));
        let c = k.output("c", F32, (m, n));
        let [bx, by] = k.grid([n.ceil_div(64), m.ceil_div(64)]);
        k.threads(160);
        let ab = k.ring("ab", stages, |r| (r.shared("sa", BF16, [64, 64]), r.shared("sb", BF16, [64, 64])));
        k.role("load", 1, |k| {
            k.serial("t", ..depth.ceil_div(64), |k, t| {
                ab.produce(k, |k, (sa, sb)| {
                    k.copy(sa, a.sub((at(&by * 64, 64), at(&t * 64, 64))));
                    k.copy(sb, b.sub((at(&t * 64, 64), at(&bx * 64, 64))));
                });
            });
        });
        k.role("math", 4, |k| {
            let sums = k.fragment("sums", F32, [64, 64]);
            k.fill(sums, 0.0);
            k.serial("t", ..depth.ceil_div(64), |k, _| ab.consume(k, |k, (sa, sb)| k.gemm(sums, sa, sb)));
            k.copy(c.sub((at(&by * 64, 64), at(&bx * 64, 64))), sums);
        });
    })
}

fn multiplied(size: [i64; 3]) -> Launched {
    products::multiplied(Gemm::PLAIN, [BF16, F32], size)
}

#[test]
fn the_copy_engine_fills_swizzled_stages() {
    let kernel = product(3);
    let artifact = compiled(&kernel);
    assert!(artifact.cuda().contains("mbarrier_expect(&ab_full[ab_stage], 16384)"), "{}", artifact.cuda());
    check_in_schedules(&kernel, &[[64, 64, 64], [70, 40, 200], [1, 8, 8], [130, 72, 320]].map(multiplied));
    check_in_schedules(&product(1), &[[70, 40, 200]].map(multiplied));
}

/// Two roles fill a stage, three use it: one of them only a part, and one is alone in its warp.
fn several() -> Kernel {
    kernel("several", |k| {
        let rows = k.size("rows");
        let (x, z) = (k.input("x", F32, (rows, 64)), k.input("z", F32, (rows, 32)));
        let [sums, products, last] = ["sums", "products", "last"].map(|name| k.output(name, F32, [32]));
        k.threads(224);
        let both = k.ring("both", 2, |r| [r.shared("line", F32, [64]), r.shared("part", F32, [32])]);
        let each = |k: &mut KernelBuilder, body: &mut dyn FnMut(&mut KernelBuilder, Expr)| {
            k.serial("t", ..rows, |k, t| body(k, t));
        };
        k.role("long", 2, |k| {
            each(k, &mut |k, t| {
                both.produce(k, |k, [line, _]| k.copy(line, x.sub((&t, ..))).variant("cp_async"));
            });
        });
        k.role("short", 1, |k| {
            each(k, &mut |k, t| {
                both.produce(k, |k, [_, part]| {
                    k.parallel([32], |k, [i]| k.store(part, (&i,), z.at((&t, &i)) * 2.0));
                });
            });
        });
        let fold = |k: &mut KernelBuilder,
                    name: &'static str,
                    to: Buffer,
                    first: f64,
                    step: &dyn Fn(Value, Value, Value) -> Value| {
            let value = k.fragment(name, F32, [32]);
            k.fill(value, first);
            each(k, &mut |k, _| {
                both.consume(k, |k, [line, part]| {
                    k.parallel([32], |k, [i]| {
                        let next = step(value.at((&i,)), line.at((63 - &i,)), part.at((&i,)));
                        k.store(value, (&i,), next);
                    });
                });
            });
            k.copy(to, value);
        };
        k.role("add", 1, |k| fold(k, "sum", sums, 0.0, &|sum, line, part| sum + line + part));
        k.role("multiply", 2, |k| fold(k, "product", products, 1.0, &|product, line, _| -product + line));
        k.role("keep", 1, |k| fold(k, "kept", last, 0.0, &|_, _, part| part * 1.0));
    })
}

#[test]
fn several_roles_fill_and_use_a_stage() {
    let kernel = several();
    let artifact = compiled(&kernel);
    let Some(built) = super::built_or_skipped(&artifact, "rings of several roles") else { return };
    for rows in [1, 2, 3, 7] {
        let bound = artifact.clone().for_sizes(&[("rows", rows)]).expect("a size");
        let inputs = [tensor(F32, &[rows, 64], number), tensor(F32, &[rows, 32], |at| number(at + 3))];
        let (line, part) =
            (|row: i64, i: i64| number(row * 64 + 63 - i), |row: i64, i: i64| 2.0 * number(row * 32 + i + 3));
        let fold = |first: f64, step: &dyn Fn(f64, i64, i64) -> f64| {
            tensor(F32, &[32], |i| (0..rows).fold(first, |value, row| step(value, row, i)))
        };
        let expected = [
            fold(0.0, &|sum, row, i| sum + line(row, i) + part(row, i)),
            fold(1.0, &|product, row, i| -product + line(row, i)),
            fold(0.0, &|_, row, i| part(row, i)),
        ];
        for seed in 0..20 {
            assert_eq!(
                super::is_right((&bound, &built), &inputs, &expected, seed),
                Ok(true),
                "{rows} rows, schedule {seed}"
            );
        }
    }
}

/// The sums of the rows of groups, of which group `g` has `g + 1`, begin where the last one ends. Keys and values are in rings of
/// their own, and the next key is taken before the value is given back.
fn groups() -> Kernel {
    kernel("groups", |k| {
        let count = k.size("count").max(64);
        let x = k.input("x", F32, (count, 64, 32));
        let y = k.output("y", F32, (count, 32));
        k.threads(64);
        let keys = k.ring("keys", 2, |r| r.shared("key", F32, [32]));
        let values = k.ring("values", 3, |r| r.shared("value", F32, [32]));
        k.role("load", 1, |k| {
            k.serial("g", ..count, |k, g| {
                k.serial("t", ..&g + 1, |k, t| {
                    keys.produce(k, |k, key| k.copy(key, x.sub((&g, &t, ..))));
                    values.produce(k, |k, value| k.copy(value, x.sub((&g, 63 - &t, ..))));
                });
            });
        });
        k.role("math", 1, |k| {
            let sum = k.fragment("sum", F32, [32]);
            k.serial("g", ..count, |k, g| {
                k.fill(sum, 0.0);
                k.serial("t", ..&g + 1, |k, _| {
                    let key = keys.wait(k);
                    k.parallel([32], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) * 0.5 + key.buffers.at((31 - &i,))));
                    let value = values.wait(k);
                    key.release(k);
                    k.parallel([32], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + value.buffers.at((&i,))));
                    value.release(k);
                });
                k.copy(y.sub((&g, ..)), sum);
            });
        });
    })
}

fn grouped(count: i64) -> Launched {
    let x = |g: i64, t: i64, i: i64| number((g * 64 + t) * 32 + i);
    let sum = |at: i64| {
        let (g, i) = (at / 32, at % 32);
        (0..=g).fold(0.0, |sum, t| sum * 0.5 + x(g, t, 31 - i) + x(g, 63 - t, i))
    };
    (vec![("count", count)], vec![tensor(F32, &[count, 64, 32], number)], tensor(F32, &[count, 32], sum))
}

#[test]
fn stages_of_two_rings_overlap_in_loops_of_varying_length() {
    check_in_schedules(&groups(), &[1, 2, 5].map(grouped));
}

/// Rows of `x`, each of which is copied in two parts, by a loop or in one of two branches: those of `x` or, backwards, of `z`.
fn parts_of_rows(by_branches: bool) -> Kernel {
    kernel("parts_of_rows", |k| {
        let rows = k.size("rows");
        let (x, z) = (k.input("x", F32, (rows, 128)), k.input("z", F32, (rows, 128)));
        let y = k.output("y", F32, (rows, 128));
        k.threads(96);
        let lines = k.ring("lines", 2, |r| r.shared("line", F32, [128]));
        k.role("load", 1, |k| {
            k.serial("t", ..rows, |k, t| {
                lines.produce(k, |k, line| match by_branches {
                    true => k.if_else(
                        (t % 3).eq(0),
                        |k| _ = k.copy(line, x.sub((&t, ..))),
                        |k| _ = k.copy(line, z.sub((&t, ..))),
                    ),
                    false => k.serial("p", 0..2, |k, p| {
                        k.copy(line.sub((at(&p * 64, 64),)), x.sub((&t, at(&p * 64, 64))));
                    }),
                });
            });
        });
        k.role("store", 2, |k| {
            k.serial("t", ..rows, |k, t| lines.consume(k, |k, line| k.copy(y.sub((&t, ..)), line)));
        });
    })
}

#[test]
fn copies_in_loops_and_branches_of_a_stage() {
    for by_branches in [false, true] {
        let launched = |rows: i64| {
            let [x, z] = [1, 3].map(|factor| tensor(F32, &[rows, 128], move |at| number(at * factor)));
            let is_x = |at: i64| !by_branches || at / 128 % 3 == 0;
            let y = tensor(F32, &[rows, 128], |at| number(at * if is_x(at) { 1 } else { 3 }));
            (vec![("rows", rows)], vec![x, z], y)
        };
        check_in_schedules(&parts_of_rows(by_branches), &[1, 2, 3, 7].map(launched));
    }
}
