//! Iterations are not ordered: none may access what another writes.

use super::*;

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

/// Two warps permute tiles of one buffer: each writes its own tile in the first view, and reads a later tile in the
/// second view.
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

/// Swizzles that keep fewer elements together than an access may move: in the source, in the destination, and in both.
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
    // Warp 1 reads half of the elements that warp 0 writes.
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
fn a_unique_store_may_read_its_own_element_only() {
    let seen_by = |body: fn(&mut Elements, [Buffer; 3], Expr)| {
        verdict(32, move |k| {
            let at = k.input("at", I32, [32]);
            let [y, z] = ["y", "z"].map(|name| k.output(name, F32, [32]));
            k.fill(z, 0.0);
            k.parallel([32], |k, [i]| body(k, [y, z, at], i));
        })
    };
    let own = seen_by(|k, [y, _, at], i| {
        let index = k.named("index", at.at((i,)));
        let old = k.named("old", y.at((index,)));
        k.store(y, (index,), old + 1.0).unique();
    });
    let of_another = seen_by(|k, [y, _, at], i| k.store(y, (i,), y.at((at.at((i,)),))).unique());
    let in_another_branch = seen_by(|k, [y, z, at], i| {
        k.if_(Value::from(i).lt(9), |k| {
            let index = k.named("index", at.at((i,)));
            k.store(y, (index,), 1.0).unique();
        });
        k.if_(Value::from(i).ge(9), |k| {
            let index = k.named("index", at.at((i,)) + 1);
            let old = k.named("old", y.at((index,)));
            k.store(z, (i,), old);
        });
    });
    let beside_a_plain_store = seen_by(|k, [y, _, at], i| {
        k.store(y, (i,), 2.0);
        k.store(y, (at.at((i,)),), 1.0).unique();
    });
    let at_another_index = verdict(32, |k| {
        let [p, q] = ["p", "q"].map(|name| k.input(name, I32, [32]));
        let y = k.output("y", F32, [32]);
        let at = k.shared("at", I32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(at, (i,), p.at((i,)));
            let old = k.named("old", y.at((at.at((i,)),)));
            k.store(at, (i,), q.at((i,)));
            k.store(y, (at.at((i,)),), old).unique();
        });
    });
    let seen = [own, of_another, in_another_branch, beside_a_plain_store, at_another_index];
    assert_eq!(seen, ["accepted", "K0236", "K0236", "K0236", "K0236"]);
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
