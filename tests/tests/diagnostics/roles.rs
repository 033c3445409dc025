//! Roles: warps that the CTA does not have, ops that a role cannot have, and registers of others.

use super::*;

/// A kernel with a tensor, a tile and a fragment of 128 elements.
fn with_roles(threads: i64, body: impl FnOnce(&mut KernelBuilder, [Buffer; 4])) -> Kernel {
    kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [128]), k.output("y", F32, [128]));
        k.threads(threads);
        let (tile, held) = (k.shared("tile", F32, [128]), k.fragment("held", F32, [128]));
        body(k, [x, y, tile, held]);
    })
}

#[test]
fn roles_of_warps_that_do_not_exist() {
    let loads = |warps| {
        move |k: &mut KernelBuilder, [x, _, tile, _]: [Buffer; 4]| {
            k.role("load", 1, |k| k.copy(tile, x));
            k.role("math", warps, |k| k.fill(tile, 1.0));
        }
    };
    assert_mistake("more_warps_in_roles_than_in_the_cta", with_roles(128, loads(4)));
    assert_mistake("a_role_without_warps", with_roles(128, loads(0)));
    let twice = with_roles(128, |k, [x, _, tile, _]| {
        k.role("load", 1, |k| k.copy(tile, x));
        k.role("load", 2, |k| k.copy(tile, x));
    });
    assert_mistake("a_role_with_two_numbers_of_warps", twice);
    let many = with_roles(512, |k, [x, _, tile, _]| {
        for role in 0..16 {
            k.role(&format!("role{role}"), 1, |k| k.copy(tile, x));
        }
    });
    assert_mistake("more_roles_than_barriers", many);
}

#[test]
fn statements_that_a_role_cannot_have() {
    let nested = with_roles(64, |k, [x, _, tile, _]| {
        k.role("outer", 1, |k| k.role("inner", 1, |k| k.copy(tile, x)));
    });
    assert_mistake("a_role_in_a_role", nested);
    let of_a_warp = with_roles(64, |k, [x, _, tile, _]| {
        k.role("load", 1, |k| k.warp_at(0).copy(tile, x));
    });
    assert_mistake("an_op_of_a_warp_in_a_role", of_a_warp);
    let of_all = with_roles(64, |k, [_, y, _, _]| {
        k.role("store", 1, |k| k.each_thread(|k| k.store(y, (0,), 1.0).any_wins()));
    });
    assert_mistake("statements_of_each_thread_in_a_role", of_all);
    let by_warp = with_roles(128, |k, [x, _, tile, _]| {
        let warp = k.warp_id();
        k.role("load", 2, |k| k.copy(tile.sub((at(warp % 2 * 64, 64),)), x.sub((at(warp % 2 * 64, 64),))));
    });
    assert_mistake("a_tile_of_the_warp_in_a_role", by_warp);
}

#[test]
fn registers_of_other_warps() {
    let of_two = with_roles(64, |k, [x, y, _, held]| {
        k.role("load", 1, |k| k.copy(held, x));
        k.role("store", 1, |k| k.copy(y, held));
    });
    assert_mistake("a_fragment_of_two_roles", of_two);
    let of_all = with_roles(64, |k, [x, y, _, held]| {
        k.role("load", 1, |k| k.copy(held, x));
        k.parallel([128], |k, [i]| k.store(y, (&i,), held.at((&i,))));
    });
    assert_mistake("a_fragment_of_a_role_and_of_all", of_all);
}

/// A kernel with two roles in a loop of all threads, or at the outermost level.
fn that_moves_registers(threads: i64, in_loop: bool) -> Kernel {
    kernel("k", |k| {
        let x = k.inout("x", F32, [64, 128]);
        k.threads(threads);
        k.move_registers();
        let body = |k: &mut KernelBuilder| {
            k.role("first", 4, |k| k.fill(x.sub((at(0, 32), ..)), 1.0));
            k.role("second", 4, |k| k.fill(x.sub((at(32, 32), ..)), 2.0));
        };
        if in_loop {
            k.serial("t", 0..2, |k, _| body(k));
        } else {
            body(k);
        }
    })
}

#[test]
fn registers_move_between_whole_warpgroups() {
    assert_mistake("registers_of_a_partial_warpgroup", that_moves_registers(288, false));
}

#[test]
fn registers_move_at_the_outermost_level() {
    assert_mistake("registers_of_roles_in_a_loop", that_moves_registers(256, true));
}

#[test]
fn only_inputs_are_unchanged() {
    let of_output = kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [128]), k.output("y", F32, [128]));
        k.threads(128);
        k.overlap_previous(&[x, y]);
        k.copy(y, x);
    });
    assert_mistake("an_unchanged_output", of_output);
}

/// Tiles that are claimed, after `visits`.
fn that_claims(visits: impl FnOnce(&mut KernelBuilder, Tiles<2>, [Buffer; 2])) -> Kernel {
    kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [512, 64]), k.output("y", F32, [512, 64]));
        k.threads(64);
        let tiles = Tiles::claimed(k, [Expr::from(8), Expr::from(1)], 1);
        visits(k, tiles, [x, y]);
    })
}

#[test]
fn claimed_tiles_are_visited_by_roles() {
    let outside = that_claims(|k, tiles, [x, y]| {
        tiles.for_each(k, |k, [row, _]| {
            let held = k.fragment("held", F32, [64, 64]);
            k.copy(held, x.sub((at(row * 64, 64), ..)));
            k.copy(y.sub((at(row * 64, 64), ..)), held);
        });
    });
    assert_mistake("claimed_tiles_outside_of_roles", outside);
}

#[test]
fn a_role_visits_claimed_tiles_once() {
    let twice = that_claims(|k, tiles, [x, y]| {
        k.role("move", 1, |k| {
            for _ in 0..2 {
                tiles.for_each(k, |k, [row, _]| {
                    let held = k.fragment("held", F32, [64, 64]);
                    k.copy(held, x.sub((at(row * 64, 64), ..)));
                    k.copy(y.sub((at(row * 64, 64), ..)), held);
                });
            }
        });
    });
    assert_mistake("claimed_tiles_visited_twice", twice);
}

#[test]
fn claimed_tiles_are_not_visited_in_a_loop() {
    let repeated = that_claims(|k, tiles, [x, y]| {
        k.role("move", 1, |k| {
            k.serial("t", 0..2, |k, t| {
                tiles.for_each(k, |k, [row, _]| {
                    let held = k.fragment("held", F32, [32, 64]);
                    k.copy(held, x.sub((at(row * 64 + t * 32, 32), ..)));
                    k.copy(y.sub((at(row * 64 + t * 32, 32), ..)), held);
                });
            });
        });
    });
    assert_mistake("claimed_tiles_visited_in_a_loop", repeated);
}

#[test]
fn nothing_is_carried_from_one_claimed_tile_to_another() {
    let summed = that_claims(|k, tiles, [x, y]| {
        k.role("sum", 1, |k| {
            let (held, sums) = (k.fragment("held", F32, [64, 64]), k.fragment("sums", F32, [64, 64]));
            k.fill(sums, 0);
            tiles.for_each(k, |k, [row, _]| {
                k.copy(held, x.sub((at(row * 64, 64), ..)));
                k.parallel([64, 64], |k, [i, j]| k.store(sums, (i, j), sums.at((i, j)) + held.at((i, j))));
                k.copy(y.sub((at(row * 64, 64), ..)), sums);
            });
        });
    });
    assert_mistake("a_sum_over_claimed_tiles", summed);
}

/// A role that loads, and what visits tiles in turns.
fn in_turns(visits: impl FnOnce(&mut KernelBuilder, Tiles<2>, Ring<Buffer>, Buffer)) -> Kernel {
    kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [512, 64]), k.output("y", F32, [512, 64]));
        k.threads(160);
        let tiles = Tiles::persistent(k, [Expr::from(8), Expr::from(1)], (2, 1));
        let ring = k.ring("ring", 2, |r| r.shared("held", F32, [64, 64]));
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, [row, _]| ring.produce(k, |k, held| k.copy(held, x.sub((at(row * 64, 64), ..)))));
        });
        visits(k, tiles, ring, y);
    })
}

/// A role that stores every so many-th tile.
fn stores(k: &mut KernelBuilder, (tiles, ring, y): (Tiles<2>, Ring<Buffer>, Buffer), name: &str, turn: [i64; 2]) {
    k.role(name, 1, |k| {
        tiles.for_every(k, turn, |k, [row, _]| {
            ring.consume(k, |k, held| {
                let of_role = k.fragment(&format!("of_{name}"), F32, [64, 64]);
                k.copy(of_role, held);
                k.copy(y.sub((at(row * 64, 64), ..)), of_role);
            });
        });
    });
}

#[test]
fn all_turns_are_taken() {
    assert_mistake(
        "a_turn_that_no_role_takes",
        in_turns(|k, tiles, ring, y| stores(k, (tiles, ring, y), "even", [0, 2])),
    );
}

#[test]
fn a_turn_is_taken_once() {
    let both = in_turns(|k, tiles, ring, y| {
        for (name, turn) in [("even", 0), ("odd", 1), ("other", 1)] {
            stores(k, (tiles, ring, y), name, [turn, 2]);
        }
    });
    assert_mistake("a_turn_that_two_roles_take", both);
}

#[test]
fn turns_are_counted_from_zero() {
    assert_mistake(
        "a_turn_that_there_is_not",
        in_turns(|k, tiles, ring, y| stores(k, (tiles, ring, y), "even", [2, 2])),
    );
}

#[test]
fn a_role_that_takes_turns_consumes() {
    let filled = in_turns(|k, tiles, ring, y| {
        let turned = k.ring("turned", 2, |r| r.shared("of_role", F32, [64, 64]));
        for (name, turn) in [("even", 0), ("odd", 1)] {
            k.role(name, 1, |k| {
                tiles.for_every(k, [turn, 2], |k, _| {
                    ring.consume(k, |k, held| turned.produce(k, |k, of_role| k.copy(of_role, held)));
                });
            });
        }
        k.role("store", 1, |k| {
            tiles.for_each(k, |k, [row, _]| {
                turned.consume(k, |k, of_role| k.copy(y.sub((at(row * 64, 64), ..)), of_role));
            });
        });
    });
    assert_mistake("stages_that_are_filled_in_turns", filled);
}

#[test]
fn claimed_tiles_are_not_visited_in_turns() {
    let claimed = that_claims(|k, tiles, [_, y]| {
        k.role("even", 1, |k| {
            tiles.for_every(k, [0, 2], |k, [row, _]| k.fill(y.sub((at(row * 64, 64), ..)), 0));
        });
    });
    assert_mistake("claimed_tiles_in_turns", claimed);
}

/// Two roles in turns, each of which passes a tile through shared memory; through the same, if they share it.
fn through_shared_memory(is_shared: bool) -> Kernel {
    in_turns(|k, tiles, ring, y| {
        let both = k.shared("both", F32, [64, 64]);
        for (name, turn) in [("even", 0), ("odd", 1)] {
            let through = if is_shared || turn == 0 { both } else { k.shared("other", F32, [64, 64]) };
            k.role(name, 2, |k| {
                tiles.for_every(k, [turn, 2], |k, [row, _]| {
                    ring.consume(k, |k, held| k.copy(through, held));
                    k.copy_async(y.sub((at(row * 64, 64), ..)), through);
                });
            });
        }
    })
}

#[test]
fn roles_in_turns_do_not_share_memory() {
    assert_mistake("shared_memory_of_two_turns", through_shared_memory(true));
}

#[test]
fn sums_of_several_claimed_tiles_are_not_accumulated() {
    let accumulated = that_claims(|k, tiles, [x, y]| {
        k.role("sum", 1, |k| {
            let (held, sums) = (k.fragment("held", F32, [64, 64]), k.fragment("sums", F32, [64]));
            k.fill(sums, 0);
            tiles.for_each(k, |k, [row, _]| {
                k.copy(held, x.sub((at(row * 64, 64), ..)));
                k.reduce(Sum, sums, held, 1).accumulate();
                k.parallel([64], |k, [i]| k.store(y, (row * 64 + i, 0), sums.at((i,))));
            });
        });
    });
    assert_mistake("a_reduction_over_claimed_tiles", accumulated);
}

#[test]
fn tiles_are_divided_among_some_ctas() {
    let none = kernel("k", |k| {
        let y = k.output("y", F32, [512, 64]);
        let tiles = Tiles::persistent(k, [Expr::from(8), Expr::from(1)], (0, 1));
        tiles.for_each(k, |k, [row, _]| k.fill(y.sub((at(row * 64, 64), ..)), 0));
    });
    assert_mistake("tiles_of_no_cta", none);
}

#[test]
fn products_are_done_before_their_factors_are_written_again() {
    let rewritten = kernel("k", |k| {
        let (a, b) = (k.input("a", BF16, [128, 256]), k.input("b", BF16, [256, 64]));
        let c = k.output("c", F32, [128, 64]);
        k.threads(288);
        let ring = k.ring("ring", 2, |r| (r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])));
        let acc = k.ring("acc", 1, |r| r.tensor("sums", F32, [128, 64]));
        let own = k.shared("own", BF16, [128, 64]);
        k.role("load", 1, |k| {
            k.serial("t", 0..4, |k, t| {
                ring.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub((.., at(t * 64, 64))));
                    k.copy(right, b.sub((at(t * 64, 64), ..)));
                });
            });
        });
        k.role("multiply", 4, |k| {
            acc.produce(k, |k, sums| {
                k.fill(sums, 0);
                k.serial("t", 0..4, |k, _| {
                    ring.consume(k, |k, (left, right)| {
                        k.parallel([128, 64], |k, [i, j]| k.store(own, (i, j), left.at((i, j)) * 2.0));
                        k.gemm_async(sums, own, right);
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            acc.consume(k, |k, sums| {
                let held = k.fragment("held", F32, [128, 64]);
                k.copy(held, sums);
                k.copy(c, held);
            });
        });
    });
    assert_mistake("a_factor_that_products_may_still_read", rewritten);
}

#[test]
fn tensors_are_written_for_claimed_tiles() {
    let beside = that_claims(|k, tiles, [x, y]| {
        k.role("move", 1, |k| {
            let held = k.fragment("held", F32, [64, 64]);
            tiles.for_each(k, |k, [row, _]| {
                k.copy(held, x.sub((at(row * 64, 64), ..)));
                k.copy(y.sub((at(row * 64, 64), ..)), held);
            });
            k.fill(y.sub((at(0, 64), ..)), 0);
        });
    });
    assert_mistake("a_tensor_written_beside_claimed_tiles", beside);
}

#[test]
fn turns_at_a_ring_are_in_one_loop() {
    let twice = in_turns(|k, tiles, ring, y| {
        for (name, turn) in [("even", 0), ("odd", 1)] {
            for visit in 0..2 {
                k.role(name, 1, |k| {
                    tiles.for_every(k, [turn, 2], |k, [row, _]| {
                        ring.consume(k, |k, held| {
                            let own = k.fragment(&format!("of_{name}{visit}"), F32, [64, 64]);
                            k.copy(own, held);
                            k.copy(y.sub((at(row * 64, 64), ..)), own);
                        });
                    });
                });
            }
        }
    });
    assert_mistake("turns_in_two_loops", twice);
}

#[test]
fn all_turns_are_taken_without_a_ring() {
    let missing = kernel("k", |k| {
        let y = k.output("y", F32, [512, 64]);
        k.threads(64);
        let tiles = Tiles::persistent(k, [Expr::from(8), Expr::from(1)], (2, 1));
        k.role("odd", 1, |k| {
            tiles.for_every(k, [1, 2], |k, [row, _]| k.fill(y.sub((at(row * 64, 64), ..)), 0));
        });
    });
    assert_mistake("a_turn_that_nobody_takes", missing);
}
