//! Rings: stages that are not given back, uses outside of them, and roles that do not agree.

use super::*;

type Stage = Ring<Buffer>;

/// A kernel with two tensors and a ring of one row, whose roles are `load` and `math`.
fn with_ring(body: impl FnOnce(&mut KernelBuilder, [Buffer; 2], Stage)) -> Kernel {
    with_stages(3, body)
}

fn with_stages(stages: i64, body: impl FnOnce(&mut KernelBuilder, [Buffer; 2], Stage)) -> Kernel {
    kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [8, 128]), k.output("y", F32, [8, 128]));
        k.threads(64);
        let rows = k.ring("rows", stages, |r| r.shared("row", F32, [128]));
        body(k, [x, y], rows);
    })
}

/// All rows are loaded.
fn load(k: &mut KernelBuilder, x: Buffer, rows: Stage) {
    k.role("load", 1, |k| k.serial("t", 0..8, |k, t| rows.produce(k, |k, row| k.copy(row, x.sub((t, ..))))));
}

/// All rows are stored.
fn store(k: &mut KernelBuilder, y: Buffer, rows: Stage) {
    k.role("math", 1, |k| k.serial("t", 0..8, |k, t| rows.consume(k, |k, row| k.copy(y.sub((t, ..)), row))));
}

#[test]
fn rings_that_cannot_be() {
    let of = |stages| {
        with_stages(stages, |k, [x, y], rows| {
            load(k, x, rows);
            store(k, y, rows);
        })
    };
    assert_mistake("a_ring_without_stages", of(0));
    assert_mistake("a_ring_that_is_too_large", of(500));
    let empty = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        k.threads(64);
        let none = k.ring("none", 2, |_| ());
        k.role("load", 1, |k| none.produce(k, |_, ()| ()));
        k.role("math", 1, |k| none.consume(k, |k, ()| k.fill(y, 0.0)));
    });
    assert_mistake("a_ring_that_carries_nothing", empty);
    let named_twice = kernel("k", |k| {
        let x = k.input("rows", F32, [128]);
        k.threads(64);
        let rows = k.ring("rows", 2, |r| r.shared("row", F32, [128]));
        k.role("load", 1, |k| rows.produce(k, |k, row| k.copy(row, x)));
    });
    assert_mistake("a_ring_called_like_a_tensor", named_twice);
    assert_mistake("a_ring_that_nobody_fills", with_ring(|k, [_, y], rows| store(k, y, rows)));
    assert_mistake("a_ring_that_nobody_uses", with_ring(|k, [x, _], rows| load(k, x, rows)));
}

#[test]
fn stages_that_are_not_held_as_they_should() {
    let outside = with_ring(|k, [x, y], rows| {
        rows.produce(k, |k, row| k.copy(row, x.sub((0, ..))));
        store(k, y, rows);
    });
    assert_mistake("a_stage_outside_of_roles", outside);
    let leaked = with_ring(|k, [x, y], rows| {
        k.role("load", 1, |k| {
            k.serial("t", 0..8, |k, t| {
                let stage = rows.acquire(k);
                k.copy(stage.buffers, x.sub((t, ..)));
            });
        });
        store(k, y, rows);
    });
    assert_mistake("a_stage_that_is_not_published", leaked);
    let across = with_ring(|k, [x, y], rows| {
        load(k, x, rows);
        k.role("math", 1, |k| {
            let stage = rows.wait(k);
            k.serial("t", 0..8, |k, t| k.copy(y.sub((t, ..)), stage.buffers));
            k.serial("u", 0..1, |k, _| stage.release(k));
        });
    });
    assert_mistake("a_stage_that_is_released_in_another_loop", across);
    let twice = with_ring(|k, [x, y], rows| {
        load(k, x, rows);
        k.role("math", 1, |k| {
            k.serial("t", 0..4, |k, t| {
                let (one, other) = (rows.wait(k), rows.wait(k));
                k.copy(y.sub((t, ..)), one.buffers);
                one.release(k);
                other.release(k);
            });
        });
    });
    assert_mistake("two_stages_at_once", twice);
    let sometimes = with_ring(|k, [x, y], rows| {
        load(k, x, rows);
        k.role("math", 1, |k| {
            k.serial("t", 0..8, |k, t| {
                k.if_(t.lt(4), |k| rows.consume(k, |k, row| k.copy(y.sub((t, ..)), row)));
            });
        });
    });
    assert_mistake("a_stage_under_a_condition", sometimes);
    let both = with_ring(|k, [x, y], rows| {
        load(k, x, rows);
        k.role("load", 1, |k| k.serial("u", 0..8, |k, u| rows.consume(k, |k, row| k.copy(y.sub((u, ..)), row))));
    });
    assert_mistake("a_role_on_both_sides", both);
    let mut other = None;
    let _ = with_ring(|_, _, rows| other = Some(rows));
    let foreign = with_ring(|k, [x, _], _| load(k, x, other.expect("a ring")));
    assert_mistake("a_ring_of_another_kernel", foreign);
}

#[test]
fn what_a_stage_is_not_for() {
    let after = with_ring(|k, [x, y], rows| {
        load(k, x, rows);
        k.role("math", 1, |k| {
            k.serial("t", 0..8, |k, t| {
                let row = rows.consume(k, |_, row| row);
                k.copy(y.sub((t, ..)), row);
            });
        });
    });
    assert_mistake("a_stage_after_it_is_released", after);
    let elsewhere = with_ring(|k, [x, y], rows| {
        let mut row = None;
        k.role("load", 1, |k| {
            k.serial("t", 0..8, |k, t| {
                rows.produce(k, |k, stage| {
                    row = Some(stage);
                    k.copy(stage, x.sub((t, ..)));
                });
            });
        });
        k.copy(y.sub((0, ..)), row.expect("a stage"));
        store(k, y, rows);
    });
    assert_mistake("a_stage_used_by_all_threads", elsewhere);
    let written = with_ring(|k, [x, _], rows| {
        load(k, x, rows);
        k.role("math", 1, |k| k.serial("t", 0..8, |k, _| rows.consume(k, |k, row| k.fill(row, 0.0))));
    });
    assert_mistake("a_stage_written_by_who_uses_it", written);
    let read = with_ring(|k, [x, y], rows| {
        k.role("load", 1, |k| {
            k.serial("t", 0..8, |k, t| {
                rows.produce(k, |k, row| {
                    k.copy(row, x.sub((t, ..)));
                    k.parallel([128], |k, [i]| k.store(row, (&i,), row.at((&i,)) * 2.0));
                });
            });
        });
        store(k, y, rows);
    });
    assert_mistake("a_stage_read_by_who_fills_it", read);
    let two = kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [8, 128]), k.output("y", F32, [8, 128]));
        k.threads(96);
        let rows = k.ring("rows", 3, |r| r.shared("row", F32, [128]));
        load(k, x, rows);
        k.role("other", 1, |k| k.serial("t", 0..8, |k, t| rows.produce(k, |k, row| k.copy(row, x.sub((t, ..))))));
        store(k, y, rows);
    });
    assert_mistake("a_buffer_of_a_stage_filled_by_two_roles", two);
}

#[test]
fn roles_that_do_not_agree() {
    let fewer = with_ring(|k, [x, y], rows| {
        load(k, x, rows);
        k.role("math", 1, |k| k.serial("t", 0..7, |k, t| rows.consume(k, |k, row| k.copy(y.sub((t, ..)), row))));
    });
    assert_mistake("roles_with_different_numbers_of_stages", fewer);
    let varying = with_ring(|k, [x, y], rows| {
        k.role("load", 1, |k| {
            k.serial("g", 0..4, |k, g| {
                k.serial("t", ..&g + 1, |k, t| rows.produce(k, |k, row| k.copy(row, x.sub((t, ..)))));
            });
        });
        k.role("math", 1, |k| {
            k.serial("g", 0..4, |k, g| {
                k.serial("t", ..&g + 2, |k, t| rows.consume(k, |k, row| k.copy(y.sub((t, ..)), row)));
            });
        });
    });
    assert_mistake("roles_with_different_inner_loops", varying);
    let blocked = with_ring(|k, [x, y], rows| {
        let table = k.shared("table", F32, [128]);
        k.role("load", 1, |k| {
            k.copy(table, x.sub((0, ..)));
            k.serial("t", 0..8, |k, t| rows.produce(k, |k, row| k.copy(row, x.sub((t, ..)))));
        });
        k.role("math", 1, |k| {
            k.serial("t", 0..8, |k, t| {
                rows.consume(k, |k, row| {
                    k.parallel([128], |k, [i]| k.store(y, (&t, &i), row.at((&i,)) + table.at((&i,))));
                });
            });
        });
    });
    assert_mistake("roles_of_a_ring_at_a_barrier", blocked);
}

#[test]
fn a_barrier_between_stages_in_two_places() {
    let ahead = kernel("ahead", |k| {
        let (x, y) = (k.input("x", F32, [4, 32]), k.output("y", F32, [32]));
        k.threads(64);
        let rows = k.ring("rows", 1, |r| r.shared("row", F32, [32]));
        let kept = k.shared("kept", F32, [32]);
        k.role("use", 1, |k| {
            let held = k.fragment("held", F32, [32]);
            rows.consume(k, |k, row| _ = k.copy(held, row));
            k.copy(kept, held);
            k.serial("u", 0..3, |k, _| rows.consume(k, |k, row| _ = k.copy(held, row)));
        });
        k.role("load", 1, |k| {
            let again = k.fragment("again", F32, [32]);
            rows.produce(k, |k, row| _ = k.copy(row, x.sub((0, ..))));
            k.copy(again, kept);
            k.copy(y, again);
            k.serial("t", 0..3, |k, t| rows.produce(k, |k, row| _ = k.copy(row, x.sub((t + 1, ..)))));
        });
    });
    assert_mistake("a_role_that_is_ahead_at_a_barrier", ahead);
}
