//! Mistakes in indices that depend on data or on the thread, in regions, and in names of axes.

use super::assert_mistake;
use tilewright::ir::tile::verify;
use tilewright::prelude::*;

#[test]
fn indices_that_are_no_integers() {
    let kernel = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let b = k.input("b", B32, [32]);
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), x.at((x.at((&i,)),)));
            k.store(y, (&i,), x.at((b.at((&i,)),)));
            k.store(y, (&i,), x.at((Value::from(2.5),)));
            k.store(y, (&i,), x.at((x.at((&i,)).lt(1.0),)));
        });
    });
    assert_mistake("indices_that_are_no_integers", kernel);
}

#[test]
fn data_that_may_lead_out_of_shared_memory() {
    let kernel = kernel("k", |k| {
        let at = k.input("at", I32, [32]);
        let bytes = k.input("bytes", U8, [32]);
        let y = k.output("y", F32, [32]);
        let s = k.shared("s", F32, [64]);
        k.fill(s, 0.0);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), s.at((at.at((&i,)),)));
        });
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), s.at((bytes.at((&i,)).cast(I32),)));
        });
    });
    assert_mistake("data_that_may_lead_out_of_shared_memory", kernel);
}

/// Reads an element of shared memory at an index computed from data.
fn is_kept_inside(read: impl FnOnce(&mut Elements, [Buffer; 4], &Expr)) -> bool {
    let kernel = kernel("k", |k| {
        let at = k.input("at", I32, [32]);
        let bytes = k.input("bytes", U8, [32]);
        let y = k.output("y", F32, [32]);
        let s = k.shared("s", F32, [64]);
        k.fill(s, 0.0);
        k.parallel([32], |k, [i]| read(k, [at, bytes, y, s], &i));
    });
    verify(kernel, Target::Sm100a).is_ok()
}

#[test]
fn what_keeps_an_index_inside_of_shared_memory() {
    assert!(is_kept_inside(|k, [at, _, y, s], i| {
        k.store(y, (i,), s.at((at.at((i,)).max(0).min(63),)));
    }));
    assert!(is_kept_inside(|k, [_, bytes, y, s], i| {
        k.store(y, (i,), s.at((bytes.at((i,)) / 4,)));
    }));
    assert!(is_kept_inside(|k, [_, bytes, y, s], i| {
        let byte = k.named("byte", bytes.at((i,)));
        k.store(y, (i,), s.at((byte.lt(64).select(byte, 0),)));
    }));
    assert!(is_kept_inside(|k, [at, _, y, s], i| {
        let half = k.named("half", at.at((i,)).cast(F32) * 0.5);
        k.store(y, (i,), s.at((half.max(0.0).min(63.0).cast(I32),)));
    }));
    let asked = |bound: i64| {
        is_kept_inside(move |k, [at, _, y, s], i| {
            let at = at.at((i,));
            k.if_(at.ge(0), |k| {
                k.if_else(
                    at.ge(bound),
                    |k| {
                        k.store(y, (i,), 0.0);
                    },
                    |k| {
                        k.store(y, (i,), s.at((at,)));
                    },
                );
            });
        })
    };
    assert!(asked(64) && !asked(65));
}

#[test]
fn an_addition_in_memory_is_kept_inside_as_well() {
    let adds = |most: i64| {
        is_kept_inside(move |k, [_, bytes, _, s], i| {
            k.atomic_add(s, (bytes.at((i,)).min(most),), 1.0);
        })
    };
    assert!(adds(63) && !adds(64));
}

#[test]
fn a_kernel_of_too_many_statements() {
    let kernel = kernel("counts", |k| {
        let y = k.output("y", F32, [32]);
        let s = k.shared("s", F32, [32]);
        k.fill(s, 0.0);
        k.unroll("round", 0..1000, |k, _| {
            k.unroll("step", 0..100, |k, _| k.parallel([32], |k, [i]| k.store(s, (i,), s.at((i,)) + 1.0)));
        });
        k.copy(y, s);
    });
    assert_mistake("a_kernel_of_too_many_statements", kernel);
}

#[test]
fn more_parameters_than_a_launch_can_pass() {
    let kernel = kernel("many", |k| {
        for at in 0..5000 {
            let y = k.output(&format!("y{at}"), F32, [32]);
            k.fill(y, 0.0);
        }
    });
    assert_mistake("more_parameters_than_a_launch_can_pass", kernel);
}

#[test]
fn an_index_of_registers_that_is_not_taken_apart() {
    let kernel = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", F32, [32, 32]);
        let [bx] = k.grid([32]);
        let held = k.fragment("held", F32, S([64], [1 * REG]) + R([32], [1 * LANEID]));
        k.fill(held, 0.0);
        k.parallel([32], |k, [i]| {
            k.store(y, (&bx, &i), held.at(((i * bx) % 64,)));
        });
    });
    assert_mistake("an_index_of_registers_that_is_not_taken_apart", kernel);
}

#[test]
fn regions_without_elements() {
    let (start, end) = (5, 2);
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [8]);
        let b = k.output("b", F32, [8]);
        k.copy(b.sub((start..end,)), a.sub((start..end,)));
    });
    assert_mistake("regions_without_elements", kernel);
}

#[test]
fn an_axis_whose_name_is_nearly_right() {
    let kernel = kernel("k", |k| {
        k.fragment("held", F32, "S[(32,2):(1@lane,1)]".parse::<TileLayout>().expect("a layout"));
    });
    assert_mistake("an_axis_whose_name_is_nearly_right", kernel);
}

#[test]
fn a_parallel_loop_that_asks_for_the_warp() {
    let of_warps = |is_laid_out: bool| {
        kernel("k", |k| {
            k.threads(64);
            let y = k.output("y", I32, [64]);
            let warp = k.warp_id();
            let parallel = k.parallel([64], |k, [i]| {
                k.store(y, (&i,), warp);
            });
            if is_laid_out {
                parallel.layout(S([64], [1 * TX]));
            }
        })
    };
    assert_mistake("a_parallel_loop_that_asks_for_the_warp", of_warps(false));
    assert!(verify(of_warps(true), Target::Sm100a).is_ok());
}

#[test]
fn indices_beyond_64_bits() {
    let large = kernel("k", |k| {
        let n = k.size("n").max(1 << 22);
        let y = k.output("y", I64, [8]);
        let x = k.input("x", I64, (n,));
        k.parallel([8], |k, [i]| {
            k.store(y, (i,), i * (1i64 << 62));
            k.store(y, (i,), x.at((Expr::from(n) * n * n % 1000,)));
        });
    });
    assert_mistake("indices_beyond_64_bits", large);
}

#[test]
fn shared_memory_that_nothing_writes() {
    let unwritten = kernel("k", |k| {
        let x = k.input("x", F32, [64]);
        let y = k.output("y", F32, [64]);
        let s = k.shared("s", F32, [64]);
        k.parallel([64], |k, [i]| k.store(y, (i,), x.at((i,)) + s.at((i,))));
    });
    assert_mistake("shared_memory_that_nothing_writes", unwritten);
}

#[test]
fn indices_that_rounding_moves_outside() {
    let rounded = kernel("k", |k| {
        let x = k.input("x", BF16, [32]);
        let q = k.input("q", I32, [32]);
        let s = k.shared("s", I32, [384]);
        k.fill(s, 0);
        k.parallel([32], |k, [i]| {
            k.atomic_add(s, (x.at((i,)).max(0.0).min(383.0).cast(I32),), 1);
            k.atomic_add(s, (q.at((i,)).max(0).min(383).cast(BF16).cast(I32),), 1);
            k.atomic_add(s, (x.at((i,)).max(0.0).min(382.0).cast(I32),), 1);
        });
    });
    assert_mistake("indices_that_rounding_moves_outside", rounded);
}

#[test]
fn a_condition_that_a_store_makes_untrue() {
    let changed = kernel("k", |k| {
        let y = k.output("y", I32, [32]);
        let s = k.shared("s", I32, [8]);
        let q = k.fragment("q", I32, [32]);
        k.fill(s, 0);
        k.fill(q, 0);
        k.parallel([32], |k, [i]| {
            let at = q.at((i,));
            let is_small = k.named("is_small", at.lt(8));
            k.if_(at.ge(0), |k| {
                k.if_(is_small, |k| {
                    k.store(y, (i,), s.at((q.at((i,)),)));
                    k.store(q, (i,), 50);
                    k.store(y, (i,), s.at((q.at((i,)),)));
                });
                k.if_(is_small, |k| k.store(y, (i,), s.at((q.at((i,)),))));
            });
        });
    });
    assert_mistake("a_condition_that_a_store_makes_untrue", changed);
}

#[test]
fn data_that_may_lead_out_of_a_fragment() {
    let kernel = kernel("k", |k| {
        let at = k.input("at", I32, [32]);
        let y = k.output("y", F32, [32]);
        let f = k.fragment("f", F32, [8]);
        k.fill(f, 0.0);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), f.at((at.at((&i,)),)));
        });
    });
    assert_mistake("data_that_may_lead_out_of_a_fragment", kernel);
}

#[test]
fn positions_beyond_64_bits() {
    let kernel = kernel("k", |k| {
        let x = k.input("x", F32, [4, 1024]);
        let y = k.output("y", F32, [2]);
        k.parallel([2], |k, [i]| {
            let row = (i * 2 - 1) * (1 << 52);
            k.store(y, (i,), x.at((row, 0)));
        });
    });
    assert_mistake("positions_beyond_64_bits", kernel);
}

/// The stores of one branch do not outdate what the other branch knows; what follows both is outdated.
#[test]
fn conditions_in_the_other_branch() {
    let of = |after: bool| {
        kernel("k", |k| {
            let y = k.output("y", I32, [32]);
            let s = k.shared("s", I32, [8]);
            let q = k.fragment("q", I32, [32]);
            k.fill(s, 0);
            k.fill(q, 0);
            k.parallel([32], |k, [i]| {
                let at = q.at((i,));
                let is_large = k.named("is_large", at.ge(8));
                k.if_(at.ge(0), |k| {
                    k.if_else(is_large, |k| k.store(q, (i,), 50), |k| k.store(y, (i,), s.at((q.at((i,)),))));
                    if after {
                        k.if_(at.lt(8), |k| k.store(y, (i,), s.at((q.at((i,)),))));
                    }
                });
            });
        })
    };
    let codes = |after: bool| {
        let found = verify(of(after), Target::Sm100a).err().unwrap_or_default();
        found.iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!((codes(false), codes(true)), (vec![], vec!["K0261"]));
}
