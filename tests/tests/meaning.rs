//! What kernels mean, and which have no meaning: iterations have no order, conditions around ops are the same for all
//! threads, a range without elements is no iteration.

use tilewright::compile::{Options, compile};
use tilewright::dsl::StoreRef;
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, Device, run};
use tilewright_tests::meaning::check::{Ended, check};
use tilewright_tests::meaning::evaluate::Rules;
use tilewright_tests::meaning::{run_kernels, run_kernels_on};
use tilewright_tests::pages::{computes, tensor};
use tilewright_tests::rng::Rng;
use tilewright_tests::toolchain::{skip, toolchain};

/// The code of the first finding, or `accepted`.
#[track_caller]
fn verdict(threads: i64, body: impl FnOnce(&mut KernelBuilder)) -> &'static str {
    let kernel = kernel("k", |k| {
        k.threads(threads);
        body(k);
    });
    match compile(kernel, &Options::new(Target::Sm100a)) {
        Ok(_) => "accepted",
        Err(found) => found.first().map_or("nothing said", |finding| finding.code),
    }
}

/// A fragment of 64 elements on 64 threads, changed by a loop over its elements and stored.
fn in_place(store: impl FnOnce(&mut Elements, Buffer, Expr)) -> &'static str {
    verdict(64, |k| {
        let (a, b) = (k.input("a", F32, [64]), k.output("b", F32, [64]));
        let f = k.fragment("f", F32, [64]);
        k.copy(f, a);
        k.parallel([64], |k, [i]| store(k, f, i));
        k.copy(b, f);
    })
}

#[test]
fn an_iteration_may_change_what_no_other_touches() {
    assert_eq!(
        in_place(|k, f, i| {
            k.store(f, (&i,), f.at((&i,)) * 2.0);
        }),
        "accepted"
    );
}

#[test]
fn a_fragment_is_not_reversed_in_place() {
    assert_eq!(
        in_place(|k, f, i| {
            k.store(f, (i * -1 + 63,), f.at((&i,)));
        }),
        "K0237"
    );
}

#[test]
fn a_butterfly_is_not_done_in_place() {
    let butterfly = |k: &mut Elements, f: Buffer, i: Expr| {
        let partner = f.at((&i ^ 8,));
        let is_low = Value::from(&i / 8 % 2).eq(0);
        let own = f.at((&i,));
        k.store(f, (&i,), is_low.select(own + partner, partner - own));
    };
    assert_eq!(in_place(butterfly), "K0237");
}

#[test]
fn what_a_false_condition_leaves_out_does_not_meet() {
    let under = |bound: i64| {
        in_place(move |k, f, i| {
            k.if_(Value::from(&i).lt(bound), |k| {
                k.store(f, (&i,), f.at(((&i + 32) % 64,)));
            });
        })
    };
    assert_eq!((under(32), under(33)), ("accepted", "K0237"));
    let selected = in_place(|k, f, i| {
        let turned = f.at(((&i + 32) % 64,));
        let chosen = Value::from(&i).lt(0).select(turned, f.at((&i,)));
        k.store(f, (&i,), chosen);
    });
    assert_eq!(selected, "accepted");
}

#[test]
fn what_lies_outside_of_a_tensor_does_not_meet() {
    let shifted = |extent: i64| {
        verdict(32, move |k| {
            let y = k.output("y", F32, [extent]);
            k.parallel([32], |k, [i]| {
                k.store(y, (&i,), 0.0);
                k.store(y, (&i + 32,), y.at((&i + 40,)));
            });
        })
    };
    assert_eq!((shifted(36), shifted(48)), ("accepted", "K0237"));
}

#[test]
fn views_meet_where_they_share_a_byte() {
    let stores = |offset: i64| {
        verdict(32, move |k| {
            let y = k.output("y", F32, [64]);
            let s = k.shared("s", F32, [64]);
            let low = k.view("low", s, S([32], [1]));
            let high = k.view("high", s, S([32], [1]) + offset * M);
            k.parallel([32], |k, [i]| {
                k.store(low, (&i,), 1.0);
                k.store(high, (&i,), 2.0);
            });
            k.copy(y, s);
        })
    };
    assert_eq!((stores(32), stores(31)), ("accepted", "K0237"));
}

/// Two warps turn tiles of one buffer: each writes where the first view has its own tile, and reads where the second
/// view has the tile so many further on.
fn turned_by_warps(ahead: i64) -> &'static str {
    verdict(64, move |k| {
        let a = k.input("a", B32, [2, 4, 32]);
        let b = k.output("b", B32, [2, 4, 32]);
        let tile = k.shared("tile", B32, [2, 4, 32]);
        let turned = k.view("turned", tile, S([2, 4, 32], [128, 1, 4]));
        let warp = k.warp_id();
        let from = if ahead == 0 { warp } else { (warp + ahead) % 2 };
        k.copy(tile, a);
        k.warp().permute_layout(turned.sub((&warp, .., ..)), tile.sub((&from, .., ..)));
        k.copy(b, turned);
    })
}

#[test]
fn what_one_warp_writes_no_other_reads_in_the_same_op() {
    assert_eq!((turned_by_warps(0), turned_by_warps(1)), ("accepted", "K0221"));
}

/// A tile of shared memory, moved in place from one layout to another.
fn permuted_in_place(dtype: DType, from: &Layout, to: &Layout) -> Kernel {
    kernel("permuted_in_place", |k| {
        let (a, b) = (k.input("a", dtype, [32, 32]), k.output("b", dtype, [32, 32]));
        k.threads(32);
        let tile = k.shared("tile", dtype, from.clone());
        let moved = k.view("moved", tile, to.clone());
        k.copy(tile, a);
        k.warp().permute_layout(moved, tile);
        k.copy(b, moved);
    })
}

/// Swizzles that leave fewer elements together than an access may have: of the source, of the destination and of both.
#[test]
fn tiles_move_in_place_under_swizzles_of_single_elements() {
    let (rows, columns) = ("S[(32,32):(32,1)]", "S[(32,32):(1,32)]");
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    for swizzle in [
        "swizzle(M=0,B=1,S=1)",
        "swizzle(M=0,B=2,S=3)",
        "swizzle(M=0,B=2,S=5)",
        "swizzle(M=0,B=5,S=5)",
        "swizzle(M=0,B=3,S=7)",
        "swizzle(M=0,B=3,S=5,inner=false)",
        "swizzle(M=1,B=3,S=4)",
    ] {
        let swizzled = |tile: &str| format!("{swizzle} o {tile}");
        let pairs = [
            (swizzled(rows), columns.to_string()),
            (rows.to_string(), swizzled(columns)),
            (swizzled(rows), swizzled(columns)),
            (swizzled(rows), rows.to_string()),
        ];
        for dtype in [U8, U16, U32] {
            for (from, to) in &pairs {
                let kernel = permuted_in_place(dtype, &layout(from), &layout(to));
                let seen = check(&kernel, &mut Rng::new(1, 0), Rules::ALL);
                assert_eq!(seen, Ok(Ended::Right), "{dtype}, {from} to {to}");
            }
        }
    }
}

#[test]
fn tiles_of_warps_are_compared_by_byte() {
    let moved = |offset: i64| {
        verdict(64, move |k| {
            let s = k.shared("s", F32, [128]);
            let low = k.view("low", s, S([2, 32], [32, 1]));
            let high = k.view("high", s, S([2, 32], [32, 1]) + offset * M);
            let warp = k.warp_id();
            k.warp().permute_layout(high.sub((&warp, ..)), low.sub((&warp, ..)));
        })
    };
    // Half of what warp 0 writes is where warp 1 reads.
    assert_eq!((moved(16), moved(32)), ("K0221", "K0221"));
    assert_ne!(moved(64), "K0221");
}

#[test]
fn pairs_of_elements_are_apart() {
    let pairs = verdict(32, |k| {
        let y = k.output("y", F32, [64]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i * 2,), 0.0);
            k.store(y, (i * 2 + 1,), 1.0);
        });
    });
    assert_eq!(pairs, "accepted");
}

#[test]
fn atomic_additions_meet_only_plain_accesses() {
    let beside = |reads: bool| {
        verdict(32, move |k| {
            let s = k.shared("s", F32, [32]);
            let y = k.output("y", F32, [32]);
            k.fill(s, 0.0);
            k.parallel([32], |k, [i]| {
                k.atomic_add(s, (0,), 1.0);
                if reads {
                    k.store(y, (&i,), s.at((&i,)));
                }
            });
            k.copy(y, s);
        })
    };
    assert_eq!((beside(false), beside(true)), ("accepted", "K0237"));
}

#[test]
fn a_claim_covers_the_kind_of_meeting_that_it_names() {
    let claimed = |claim: fn(StoreRef), reads: bool| {
        verdict(32, move |k| {
            let at = k.input("at", I32, [32]);
            let y = k.output("y", F32, [32]);
            k.parallel([32], |k, [i]| {
                let index = at.at((&i,));
                let value = if reads { y.at((index,)) } else { Value::from(1.0) };
                claim(k.store(y, (index,), value));
            });
        })
    };
    let seen = [
        claimed(|_| (), false),
        claimed(|store| store.unique(), false),
        claimed(|store| store.unique(), true),
        claimed(|store| store.any_wins(), false),
        claimed(|store| store.any_wins(), true),
    ];
    assert_eq!(seen, ["K0236", "accepted", "accepted", "accepted", "K0236"]);
}

#[test]
fn variables_around_a_loop_that_move_everything_alike_do_not_matter() {
    let shifted = verdict(32, |k| {
        let y = k.output("y", F32, [1 << 21]);
        let [bx] = k.grid([1 << 15]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&bx * 64 + i,), 0.0);
            k.store(y, (&bx * 64 + i + 32,), 1.0);
        });
    });
    assert_eq!(shifted, "accepted");
}

#[test]
fn threads_are_the_iterations_of_each_thread() {
    let stores = |any_wins: bool| {
        verdict(64, move |k| {
            let y = k.output("y", F32, [2]);
            let warp = k.warp_id();
            k.each_thread(|k| {
                let store = k.store(y, (&warp,), 1.0);
                if any_wins {
                    store.any_wins();
                }
            });
        })
    };
    assert_eq!((stores(false), stores(true)), ("K0237", "accepted"));
}

#[test]
fn conditions_around_ops_are_made_of_what_all_threads_know() {
    let by = |cond: fn(&mut KernelBuilder, Buffer, Expr, Expr) -> Value| {
        verdict(64, move |k| {
            let (a, b) = (k.input("a", F32, [64]), k.output("b", F32, [64]));
            let [bx] = k.grid([4]);
            k.fill(b, 0.0);
            k.serial("t", 0..2, |k, t| {
                let cond = cond(k, a, bx, t);
                k.if_(cond, |k| {
                    k.copy(b, a);
                });
            });
        })
    };
    let seen = [
        by(|_, _, bx, t| Value::from(bx).lt(t)),
        by(|_, a, _, t| a.at((t,)).gt(0.0)),
        by(|k, _, _, t| Value::from(k.warp_id()).eq(t)),
        by(|k, a, _, _| a.at((k.warp_id(),)).gt(0.0)),
    ];
    assert_eq!(seen, ["accepted", "accepted", "K0240", "K0240"]);
}

/// A fragment with a written layout on 64 threads, copied in and out by an op.
fn moved_through(layout: &str, warp: Option<i64>) -> &'static str {
    verdict(64, |k| {
        let (a, b) = (k.input("a", F32, [16]), k.output("b", F32, [16]));
        let f = k.fragment("f", F32, ([16i64], layout.parse::<TileLayout>().expect("a layout")));
        match warp {
            Some(warp) => k.warp_at(warp).copy(f, a),
            None => k.copy(f, a),
        };
        k.copy(b, f);
    })
}

#[test]
fn a_fragment_names_every_thread_axis() {
    assert_eq!(moved_through("S[16:1@reg]", None), "K0247");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)]", None), "K0247");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + R[2:1@warpid]", None), "accepted");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + R[1:1@warpid]", None), "accepted");
}

#[test]
fn one_warp_moves_what_it_holds_alone() {
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + 1@warpid", Some(1)), "accepted");
    assert_eq!(moved_through("S[(4,4):(1@laneid,1@reg)] + 1@warpid", Some(0)), "K0249");
    assert_eq!(moved_through("S[(2,8):(1@warpid,1@laneid)]", Some(0)), "K0249");
}

#[test]
fn an_op_of_the_cta_has_one_tile() {
    let of_warps = verdict(64, |k| {
        let (a, b) = (k.input("a", F32, [2, 32]), k.output("b", F32, [2, 32]));
        let warp = k.warp_id();
        k.copy(b.sub((&warp, ..)), a.sub((&warp, ..)));
    });
    assert_eq!(of_warps, "K0248");
}

#[test]
fn every_warp_fills_its_own_row() {
    for layout in [
        "S[(4,31,1):(1@warpid,1@laneid,1@reg)]",
        "S[(4,31):(1@warpid,1@laneid)]",
        "S[(4,1,31):(1@warpid,1@laneid,1@reg)]",
    ] {
        let kernel = kernel("filled", |k| {
            let (x, y) = (k.input("x", I16, [4, 31]), k.output("y", I16, [4, 31]));
            k.threads(128);
            let warp = k.warp_id();
            let row = k.fragment("row", I16, ([4, 31], layout.parse::<TileLayout>().expect("a layout")));
            k.fill(row, 6);
            k.warp().fill(row.sub((warp, ..)), 9);
            k.parallel([4, 31], |k, [i, j]| k.store(y, (i, j), x.at((i, j)) + row.at((i, j))));
        });
        assert_eq!(check(&kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right), "{layout}");
    }
}

#[test]
fn every_warp_has_a_row_of_its_own() {
    let kernel = kernel("rows", |k| {
        let (a, b) = (k.input("a", F32, [4, 64]), k.output("b", F32, [4, 64]));
        k.threads(128);
        let warp = k.warp_id();
        let row = k.fragment("row", F32, ([4, 64], S([4, 32, 2], [1 * WARPID, 1 * LANEID, 1 * M])));
        k.warp().copy(row.sub((&warp, ..)), a.sub((&warp, ..)));
        k.parallel([4, 64], |k, [i, j]| {
            k.store(row, (&i, &j), row.at((&i, &j)) * 2.0);
        });
        k.warp().copy(b.sub((&warp, ..)), row.sub((&warp, ..)));
    });
    assert_eq!(check(&kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
}

/// Every kind of reduction of the rows of a fragment of which some threads have nothing.
fn reductions(dtype: DType, variant: Option<&str>, element: fn(&Expr, &Expr) -> Value) -> Kernel {
    kernel("reductions", |k| {
        k.threads(96);
        let v = k.fragment("v", dtype, [5, 12]);
        k.parallel([5, 12], |k, [i, j]| {
            k.store(v, (&i, &j), element(&i, &j));
        });
        for kind in ReduceKind::ALL {
            let y = k.output(&format!("{}_of_all", kind.name()), dtype, [5]);
            let result = k.fragment(&format!("{}_of_v", kind.name()), dtype, [5]);
            k.reduce(*kind, result, v, 1).variant_opt(variant);
            k.copy(y, result);
        }
    })
}

/// Rows of the least integer, of NaN alone and beside numbers, and of what only u64 holds: in every layout what the text
/// says.
#[test]
fn reductions_are_those_of_their_elements() {
    type Element = fn(&Expr, &Expr) -> Value;
    let least: Element = |i, j| Value::from(j).lt(i * 3).select(5, -128);
    let nan: Element = |i, j| Value::from(j).lt(i * 3 - 2).select(-1.5, f64::NAN);
    let high: Element = |i, j| (Value::from(i) * -12 - j - 1).wrapping_cast(U64);
    for (dtype, element) in [(I8, least), (I32, least), (U64, high), (F16, nan), (F32, nan), (F64, nan)] {
        for variant in [None, Some("across_warps"), Some("single_owners")] {
            let kernel = reductions(dtype, variant, element);
            let seen = check(&kernel, &mut Rng::new(1, 0), Rules::ALL);
            assert_eq!(seen, Ok(Ended::Right), "{dtype}, {variant:?}");
        }
    }
}

#[test]
fn a_range_without_elements_is_no_iteration() {
    let n = 3;
    for range in [0..0, 3..3, 0..n / 4] {
        let text = |range: std::ops::Range<i64>| {
            let kernel = kernel("k", |k| {
                let y = k.output("y", F32, [32]);
                k.fill(y, 0.0);
                k.serial("t", range.clone(), |k, _| {
                    k.fill(y, 1.0);
                });
                k.parallel([32], |k, [i]| {
                    k.serial("t", range, |k, _| {
                        k.store(y, (&i,), 2.0);
                    })
                });
            });
            kernel.to_string()
        };
        assert!(!text(range.clone()).contains("1.0"), "{}", text(range));
    }
    let reversed = |start: i64, end: i64| {
        verdict(32, move |k| {
            let y = k.output("y", F32, [32]);
            k.parallel([32], |k, [i]| {
                k.serial("t", start..end, |k, _| {
                    k.store(y, (&i,), 2.0);
                })
            });
        })
    };
    assert_eq!((reversed(3, 3), reversed(5, 2)), ("accepted", "K0222"));
}

#[test]
fn random_kernels_mean_what_they_say() {
    let count = std::env::var("TILEWRIGHT_KERNELS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let report = run_kernels(1, 0..count, Rules::ALL);
    let examples: Vec<&str> = report.examples.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(report.wrongs(), 0, "{report}\n{}", examples.join("\n"));
    assert!(report.right * 3 > count, "{report}");
}

#[test]
fn nested_loops_are_compiled_in_proportion() {
    // Twice as much work at every level would take 2^40 steps.
    fn inside(k: &mut KernelBuilder, s: Buffer, depth: usize) {
        match depth {
            0 => {
                k.parallel([64], |k, [i]| {
                    k.store(s, (&i,), s.at((&i,)) + 1.0);
                });
            }
            _ => k.serial(&format!("t{depth}"), 0..2, |k, _| inside(k, s, depth - 1)),
        }
    }
    let nested = verdict(64, |k| {
        let y = k.output("y", F32, [64]);
        let s = k.shared("s", F32, [64]);
        k.fill(s, 0.0);
        inside(k, s, 40);
        k.copy(y, s);
    });
    assert_eq!(nested, "accepted");
}

/// `x` doubled so often, and 3 times that in an arm of a choice.
fn doubled(times: usize) -> Kernel {
    kernel("doubled", |k| {
        let (x, y) = (k.input("x", U32, [64]), k.output("y", U32, [64]));
        k.threads(64);
        k.parallel([64], |k, [i]| {
            let mut value = x.at((&i,));
            for _ in 0..times {
                value = value + value;
            }
            let thrice = value + value + value;
            k.store(y, (&i,), x.at((&i,)).lt(7).select(thrice, value));
        });
    })
}

#[test]
fn kernels_that_are_built_at_once_are_the_same() {
    let text = || compile(doubled(9), &Options::new(Target::Sm100a)).expect("it compiles").cuda().to_string();
    let first = text();
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(text)).collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), first);
    }
}

#[test]
fn indices_values_sizes_and_numbers_mix() {
    let mixed = kernel("mixed", |k| {
        let n = k.size("n").max(64);
        let (x, y) = (k.input("x", F32, (n, 4)), k.output("y", F32, (n, 4)));
        k.parallel([64, 4], |k, [i, j]| {
            k.store(y, (i, j), 2.0 * x.at((n - 1 - i, 3 - j)) + i * 0.5 - 4 * j + x.at((i, j)))
        });
    });
    assert!(mixed.mistakes.is_empty(), "{:?}", mixed.mistakes);
    compile(mixed, &Options::new(Target::Sm100a)).expect("it compiles");
}

#[test]
fn a_value_that_is_used_twice_is_computed_once() {
    let lines = |times| {
        let artifact = compile(doubled(times), &Options::new(Target::Sm100a)).expect("it compiles");
        artifact.cuda().lines().count()
    };
    // One name for every other doubling.
    assert_eq!(lines(60) - lines(40), lines(40) - lines(20));
    assert!(lines(60) < 120, "{}", lines(60));
    assert_eq!(check(&doubled(60), &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
}

/// The first row, and so often half of what there is and the next row, in one statement.
fn chained(turns: i64) -> Kernel {
    kernel("chained", |k| {
        let (x, y) = (k.input("x", F32, [turns + 1, 64]), k.output("y", F32, [64]));
        k.threads(64);
        k.parallel([64], |k, [i]| {
            let mut value = x.at((0, i));
            for turn in 1..=turns {
                value = value * 0.5 + x.at((turn, i));
            }
            k.store(y, (i,), value);
        });
    })
}

#[test]
fn a_value_of_many_operations_is_computed_in_parts() {
    assert!(chained(5_000).mistakes.is_empty());
    compile(chained(2_000), &Options::new(Target::Sm100a)).expect("it compiles");
    assert_eq!(check(&chained(300), &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
    // Products stay fused with their sums where a part ends.
    let x = |at: i64| ((at * 37 % 101) as f32 - 50.0) / 3.0;
    let halved = |i: i64| (1..=300).fold(x(i), |value, turn| value.mul_add(0.5, x(turn * 64 + i)));
    let input = tensor(F32, &[301, 64], |at| x(at).into());
    computes(&chained(300), &[input], &[tensor(F32, &[64], |i| halved(i).into())]);
}

#[test]
fn random_kernels_mean_the_same_on_the_virtual_gpu() {
    if toolchain().nvrtc(Target::Sm100a.name()).is_err() {
        return skip("meaning: random_kernels_mean_the_same_on_the_virtual_gpu");
    }
    let report = run_kernels_on(1, 0..100, &toolchain(), (&Device::Virtual, Target::Sm100a));
    let examples: Vec<&str> = report.examples.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(report.wrongs(), 0, "{report}\n{}", examples.join("\n"));
}

/// NVRTC loads `s[0]` in front of `tid < 1` and splits the loop by what it finds: 63 threads branch on bits that they do not
/// use.
#[test]
fn a_branch_that_nvrtc_moves_in_front_of_its_guard_is_no_fault() {
    for threads in [32, 64, 1024] {
        let flag = kernel("flag", |k| {
            k.threads(threads);
            let (x, y) = (k.input("x", F32, [1]), k.output("y", F32, [1]));
            let s = k.shared("s", F32, [1]);
            k.fill(s, 4.0);
            k.serial("t", 0..3, |k, _| {
                k.parallel([1], |k, [i]| k.store(y, (i,), s.at((i,)).le(2.0).select(x.at((0,)), 1.0)));
            });
            k.parallel([1], |k, [i]| k.store(s, (i,), s.at((i,)) + 1.0));
        });
        computes(&flag, &[tensor(F32, &[1], |_| 7.0)], &[tensor(F32, &[1], |_| 1.0)]);
    }
}

/// Any of the values may stay, on the virtual GPU too; a store that does not say so is a race still.
#[test]
fn any_of_several_values_stays() {
    let last = |claimed: bool| {
        kernel("last", |k| {
            let (x, at, y) = (k.input("x", F32, [64]), k.input("at", I32, [64]), k.output("y", F32, [8]));
            let s = k.shared("s", F32, [8]);
            k.threads(64);
            k.fill(s, 0.0);
            k.parallel([64], |k, [i]| {
                let store = k.store(s, (at.at((i,)).max(0).min(7),), x.at((i,)));
                if claimed { store.any_wins() } else { store.unique() }
            });
            k.copy(y, s);
        })
    };
    let inputs = [tensor(F32, &[64], |i| i as f64), tensor(I32, &[64], |i| (i % 8) as f64)];
    let ran = |claimed: bool| {
        let artifact = compile(last(claimed), &Options::new(Target::Sm100a)).expect("the kernel is right");
        let built = toolchain().build(&artifact, &CudaText::Generated).expect("a build");
        run(&artifact, &built, &inputs, &Device::Virtual)
    };
    if toolchain().nvrtc(Target::Sm100a.name()).is_err() {
        return skip("meaning: any_of_several_values_stays");
    }
    let outputs = ran(true).expect("no race").outputs;
    for bin in 0..8 {
        let stays = outputs[0].number(bin).expect("a number");
        assert_eq!(stays as i64 % 8, bin, "{stays} of {bin}");
    }
    assert_eq!(ran(false).expect_err("a race").diagnostics[0].code, "R0605");
}

#[test]
fn a_loop_of_many_turns_is_not_written_down() {
    let long = kernel("long", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
        let s = k.shared("s", F32, [64]);
        k.threads(64);
        k.copy(s, x);
        k.parallel([64], |k, [i]| {
            k.serial("turn", 0..i64::from(i32::MAX), |k, turn| {
                k.store(s, (i,), s.at((i,)) + x.at(((i + turn) % 64,)));
            });
        });
        k.copy(y, s);
    });
    let artifact = compile(long, &Options::new(Target::Sm100a)).expect("the kernel is right");
    let facts = artifact.plans()[1].considered[0].answer.clone().expect("the facts of the loop");
    assert_eq!(facts.accesses[0].count, i64::from(i32::MAX));
}

#[test]
fn an_index_that_is_scattered_often_is_compiled_in_proportion() {
    let scattered = verdict(64, |k| {
        let (x, y) = (k.input("x", F32, [256]), k.output("y", F32, [64]));
        k.parallel([64], |k, [i]| {
            let hash = (0..60).fold(i, |hash, step| (hash * 5 + step) % 256);
            k.store(y, (i,), x.at((hash,)));
        });
    });
    assert_eq!(scattered, "accepted");
}
