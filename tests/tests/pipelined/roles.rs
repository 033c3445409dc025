//! Roles: some warps copy, others compute, and barriers between them are derived.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::tiles::check_in_schedules;
use super::{Launched, are_found, check_all_in_schedules, compiled, mutated, number};

/// A row of `x` for each iteration, to one half of a ring of two rows, while the other half is summed up.
fn two_halves() -> Kernel {
    kernel("two_halves", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, [128]);
        k.threads(96);
        let ring = k.shared("ring", F32, [2, 128]);
        let sum = k.fragment("sum", F32, [128]);
        k.role("math", 2, |k| k.fill(sum, 0.0));
        k.serial("t", ..rows, |k, t| {
            k.role("load", 1, |k| k.copy(ring.sub((&t % 2, ..)), x.sub((&t, ..))));
            k.role("math", 2, |k| {
                k.parallel([128], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + ring.at((&t % 2, 127 - &i))));
            });
        });
        k.role("math", 2, |k| k.copy(y, sum));
    })
}

fn turned(rows: i64) -> Launched {
    let sum = |i: i64| (0..rows).map(|r| number(r * 128 + 127 - i)).sum::<f64>() + 0.0;
    (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], tensor(F32, &[128], sum))
}

#[test]
fn a_warp_copies_while_others_compute() {
    let kernel = two_halves();
    check_in_schedules(&kernel, &[1, 2, 3, 8].map(turned));
}

#[test]
fn every_barrier_between_roles_is_needed() {
    let Some(report) = mutated(&two_halves(), &[1, 2, 5].map(turned)) else { return };
    assert!(report.mutants() >= 1 && report.survivors.is_empty(), "{report:#?}");
}

/// The same with a loop whose copies run ahead.
fn pipelined(variant: &'static str, stages: i64) -> Kernel {
    kernel("pipelined_roles", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, [128]);
        k.threads(128);
        let row = k.shared("row", F32, [128]);
        let sum = k.fragment("sum", F32, [128]);
        k.role("idle", 1, |_| ());
        k.role("math", 2, |k| k.fill(sum, 0.0));
        k.pipelined("t", ..rows, Stages::of(stages).variant(variant), |k, t| {
            k.role("load", 1, |k| k.copy(row, x.sub((&t, ..))));
            k.role("math", 2, |k| {
                k.parallel([128], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + row.at((127 - &i,))));
            });
        });
        k.role("math", 2, |k| k.copy(y, sum));
    })
}

#[test]
fn the_copies_of_a_role_run_ahead() {
    for (variant, stages) in [("cp_async", 3), ("cp_async", 2), ("tma", 3), ("tma", 2)] {
        check_in_schedules(&pipelined(variant, stages), &[1, 2, 3, 8].map(turned));
    }
}

#[test]
fn every_barrier_of_a_pipeline_of_roles_is_needed() {
    for variant in ["cp_async", "tma"] {
        let Some(report) = mutated(&pipelined(variant, 3), &[7, 8].map(turned)) else { return };
        assert!(are_found(&report, &super::OF_LAST), "{variant}: {report:#?}");
    }
}

/// A role of two warps turns each row around twice, through shared memory: its barriers are its own.
fn turned_twice() -> Kernel {
    kernel("turned_twice", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let (y, z) = (k.output("y", F32, (rows, 128)), k.output("z", F32, (rows, 128)));
        k.threads(160);
        let [one, other] = ["one", "other"].map(|name| k.shared(name, F32, [128]));
        let turn = |k: &mut KernelBuilder, to: Buffer, tile: Buffer| {
            k.serial("t", ..rows, |k, t| {
                k.copy(tile, x.sub((&t, ..)));
                k.parallel([128], |k, [i]| k.store(to, (&t, &i), tile.at((127 - &i,)) + 1.0));
            });
        };
        k.role("first", 1, |k| turn(k, y, one));
        k.role("second", 3, |k| turn(k, z, other));
    })
}

#[test]
fn roles_of_several_warps_have_barriers_of_their_own() {
    let kernel = turned_twice();
    let cuda = compiled(&kernel).cuda().to_string();
    assert!(!cuda.contains("__syncthreads"), "{cuda}");
    let launch = |rows: i64| {
        let of = |i: i64| number(i / 128 * 128 + 127 - i % 128) + 1.0;
        let result = || tensor(F32, &[rows, 128], of);
        (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], vec![result(), result()])
    };
    for (sizes, inputs, expected) in [1, 2, 5].map(launch) {
        check_all_in_schedules(&kernel, &sizes, &inputs, &expected);
    }
}

/// A warp loads, four multiply.
fn product() -> Kernel {
    kernel("product", |k| {
        let (m, n, depth) = (k.size("m"), k.size("n"), k.size("k").multiple_of(8));
        let a = k.input("a", BF16, (m, depth));
        let b = k.input("b", BF16, (depth, n));
        let c = k.output("c", F32, (m, n));
        let [bx, by] = k.grid([n.ceil_div(64), m.ceil_div(64)]);
        k.threads(160);
        let (sa, sb) = (k.shared("sa", BF16, [64, 32]), k.shared("sb", BF16, [32, 64]));
        let sums = k.fragment("sums", F32, [64, 64]);
        k.role("math", 4, |k| k.fill(sums, 0.0));
        k.pipelined("t", ..depth.ceil_div(32), 3, |k, t| {
            k.role("load", 1, |k| {
                k.copy(sa, a.sub((at(&by * 64, 64), at(&t * 32, 32))));
                k.copy(sb, b.sub((at(&t * 32, 32), at(&bx * 64, 64))));
            });
            k.role("math", 4, |k| k.gemm(sums, sa, sb));
        });
        k.role("math", 4, |k| k.copy(c.sub((at(by * 64, 64), at(bx * 64, 64))), sums));
    })
}

#[test]
fn a_product_has_a_producer() {
    let kernel = product();
    let launch = |(m, n, depth): (i64, i64, i64)| {
        let sum = |at: i64| {
            let (row, column) = (at / n, at % n);
            (0..depth).map(|k| number(row * depth + k) * number(k * n + column)).sum::<f64>()
        };
        let inputs = vec![tensor(BF16, &[m, depth], number), tensor(BF16, &[depth, n], number)];
        (vec![("m", m), ("n", n), ("k", depth)], inputs, tensor(F32, &[m, n], sum))
    };
    check_in_schedules(&kernel, &[(64, 64, 32), (65, 72, 104), (3, 8, 8)].map(launch));
}

/// Why a loop cannot have a producer warp.
fn why_no_producer(threads: i64, more: impl FnOnce(&mut KernelBuilder, Buffer)) -> Vec<String> {
    let kernel = kernel("refused", |k| {
        let (x, y) = (k.input("x", F32, [256]), k.output("y", F32, [64]));
        k.threads(threads);
        let (tile, sum) = (k.shared("tile", F32, [64]), k.fragment("sum", F32, [64]));
        k.fill(sum, 0.0);
        k.pipelined("t", 0..4, Stages::of(2).variant("tma_warp_specialised"), |k, t| {
            k.copy(tile, x.sub((at(t * 64, 64),)));
            k.parallel([64], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + tile.at((63 - &i,))));
        });
        more(k, y);
        k.copy(y, sum);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("there is no producer");
    assert_eq!(found[0].code, "P0402", "{found:?}");
    found[0].notes.clone()
}

#[test]
fn a_kernel_that_needs_all_threads_has_no_producer() {
    let of_threads = why_no_producer(48, |_, _| ());
    let why = "a CTA of 48 threads cannot have a warp more; accepted: multiples of 32 threads, up to 992";
    assert_eq!(of_threads, [format!("tma_warp_specialised: {why}")]);
    let of_each = why_no_producer(64, |k, y| k.each_thread(|k| k.store(y, (0,), 1.0).any_wins()));
    let why = "the kernel has statements of each thread, or conditions on fragments";
    assert_eq!(of_each, [format!("tma_warp_specialised: {why}; accepted: parallel loops, and conditions on memory")]);
    let of_role = why_no_producer(64, |k, y| _ = k.role("more", 1, |k| k.fill(y, 0.0)));
    let why = "the kernel has roles of its own; accepted: a role for the copies, written in the kernel";
    assert_eq!(of_role, [format!("tma_warp_specialised: {why}")]);
}

/// Two written layouts of a role, between which elements pass through shared memory: the conversion is one of the role.
#[test]
fn fragments_of_a_role_are_converted_by_the_role() {
    let kernel = kernel("converted", |k| {
        let (x, y) = (k.input("x", F32, [64, 2]), k.output("y", F32, [128]));
        let z = k.output("z", F32, [64, 2]);
        k.threads(128);
        k.allow_conversions();
        let pairs =
            k.fragment("pairs", F32, ([64i64, 2], "S[(64,2):(1@tx,1@reg)]".parse::<TileLayout>().expect("pairs")));
        let halves =
            k.fragment("halves", F32, ([128i64], "S[(2,64):(1@reg,1@tx)]".parse::<TileLayout>().expect("halves")));
        k.role("copy", 2, |k| k.copy(z, x));
        k.role("math", 2, |k| {
            k.copy(pairs, x);
            k.parallel([128], |k, [i]| k.store(halves, (&i,), pairs.at((&i / 2, &i % 2)) + 1.0));
            k.copy(y, halves);
        });
    });
    let artifact = compiled(&kernel);
    assert!(!artifact.cuda().contains("__syncthreads"), "{}", artifact.cuda());
    assert!(artifact.cuda().contains("sync_warps<2, 64>"), "{}", artifact.cuda());
    let (x, y) = (|| tensor(F32, &[64, 2], number), tensor(F32, &[128], |i| number(i) + 1.0));
    check_all_in_schedules(&kernel, &[], &[x()], &[y, x()]);
}

/// Two roles read the stages that a third one fills; a warp of the CTA has no role.
fn two_consumers(variant: &'static str) -> Kernel {
    kernel("two_consumers", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let outputs = ["y", "z"].map(|name| k.output(name, F32, [128]));
        k.threads(192);
        let row = k.shared("row", F32, [128]);
        let sums = ["up", "down"].map(|name| k.fragment(name, F32, [128]));
        let roles = [("even", 1), ("odd", 3)];
        k.role("load", 1, |_| ());
        for ((name, warps), sum) in roles.into_iter().zip(sums) {
            k.role(name, warps, |k| k.fill(sum, 0.0));
        }
        k.pipelined("t", ..rows, Stages::of(3).variant(variant), |k, t| {
            k.role("load", 1, |k| k.copy(row, x.sub((&t, ..))));
            for ((name, warps), sum) in roles.into_iter().zip(sums) {
                k.role(name, warps, |k| {
                    k.parallel([128], |k, [i]| k.store(sum, (&i,), sum.at((&i,)) + row.at((127 - &i,))));
                });
            }
        });
        for ((name, warps), (sum, output)) in roles.into_iter().zip(sums.into_iter().zip(outputs)) {
            k.role(name, warps, |k| k.copy(output, sum));
        }
    })
}

#[test]
fn only_roles_that_use_stages_wait_for_them() {
    let cuda = compiled(&two_consumers("tma")).cuda().to_string();
    assert!(cuda.contains("mbarrier_init(&t_empty[stage1], 4);"), "{cuda}");
    for variant in ["tma", "cp_async"] {
        for (sizes, inputs, expected) in [1, 2, 3, 8].map(turned) {
            check_all_in_schedules(&two_consumers(variant), &sizes, &inputs, &[expected.clone(), expected]);
        }
    }
}

/// A copy under a condition that all threads share is one line of CUDA; its indices are declared all the same.
#[test]
fn indices_of_a_masked_copy_are_declared() {
    let kernel = kernel("masked", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, [128]);
        k.threads(96);
        let row = k.shared("row", F32, [128]);
        k.role("load", 1, |k| k.copy_async(row, x.sub((1, ..))));
        k.role("math", 2, |k| k.parallel([128], |k, [i]| k.store(y, (&i,), row.at((127 - &i,)))));
    });
    let row = |rows: i64| tensor(F32, &[128], move |i| if rows > 1 { number(128 + 127 - i) } else { 0.0 });
    let launch = |rows: i64| (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], row(rows));
    check_in_schedules(&kernel, &[1, 2, 3].map(launch));
}

/// Whether an iteration exists is a condition on the loop's variable; which stage it has repeats.
#[test]
fn a_loop_over_many_numbers_has_one_barrier() {
    let kernel = kernel("numbers", |k| {
        let (x, y) = (k.input("x", F32, [256, 32]), k.output("y", F32, [256, 32]));
        k.threads(64);
        let tile = k.shared("tile", F32, [4, 32]);
        k.pipelined("t", 0..64, Stages::of(3).variant("cp_async"), |k, t| {
            k.role("load", 1, |k| k.copy(tile, x.sub((at(&t * 4, 4), ..))));
            k.role("store", 1, |k| k.copy(y.sub((at(&t * 4, 4), ..)), tile));
        });
    });
    let cuda = compiled(&kernel).cuda().to_string();
    assert_eq!(cuda.matches("__syncthreads();").count(), 1, "{cuda}");
    let x = || tensor(F32, &[256, 32], number);
    check_in_schedules(&kernel, &[(Vec::new(), vec![x()], x())]);
}

/// A role that copies some elements asynchronously and others through registers closes one group in each iteration.
#[test]
fn a_role_closes_one_group_in_each_iteration() {
    let kernel = kernel("mixed", |k| {
        let rows = k.size("rows");
        let (x, halves) = (k.input("x", F32, (rows, 128)), k.input("halves", F16, (rows, 128)));
        let y = k.output("y", F32, [128]);
        k.threads(96);
        let (row, wide) = (k.shared("row", F32, [128]), k.shared("wide", F32, [128]));
        let sum = k.fragment("sum", F32, [128]);
        k.role("math", 2, |k| k.fill(sum, 0.0));
        k.pipelined("t", ..rows, Stages::of(3).variant("cp_async"), |k, t| {
            k.role("load", 1, |k| {
                k.copy(row, x.sub((&t, ..)));
                k.parallel([128], |k, [i]| k.store(wide, (&i,), halves.at((&t, &i)).cast(F32)));
            });
            k.role("math", 2, |k| {
                k.parallel([128], |k, [i]| {
                    k.store(sum, (&i,), sum.at((&i,)) + row.at((127 - &i,)) * wide.at((&i,)));
                });
            });
        });
        k.role("math", 2, |k| k.copy(y, sum));
    });
    let cuda = compiled(&kernel).cuda().to_string();
    // Ahead of the loop, and in it.
    assert_eq!(cuda.matches("cp_async_commit();").count(), 2, "{cuda}");
    let launch = |rows: i64| {
        let of = |i: i64| (0..rows).map(|r| number(r * 128 + 127 - i) * number(r * 128 + i)).sum::<f64>() + 0.0;
        let inputs = vec![tensor(F32, &[rows, 128], number), tensor(F16, &[rows, 128], number)];
        (vec![("rows", rows)], inputs, tensor(F32, &[128], of))
    };
    check_in_schedules(&kernel, &[1, 2, 3, 8].map(launch));
}

/// What the plan says of registers that move.
fn moved_registers(threads: i64, roles: &[(&str, i64, bool)]) -> String {
    let kernel = kernel("k", |k| {
        let x = k.inout("x", F32, [64, 128]);
        k.threads(threads);
        k.move_registers();
        for (name, warps, holds) in roles {
            k.role(name, *warps, |k| {
                let held = k.fragment(&format!("held_{name}"), F32, if *holds { [64, 128] } else { [1, 128] });
                k.fill(held, 1.0);
                k.copy(x.sub((at(0, if *holds { 64 } else { 1 }), ..)), held);
            });
        }
    });
    let artifact = compile(kernel, &Options::new(Target::Sm90a)).expect("it compiles");
    let plan = artifact.plans().iter().find(|plan| plan.title == "move_registers").expect("a plan");
    plan.facts().expect("facts").summary.clone()
}

#[test]
fn registers_move_from_roles_without_fragments_to_others() {
    let found = moved_registers(384, &[("load", 1, false), ("store", 8, true)]);
    assert_eq!(found, "232 registers for each thread with fragments, 40 for others; 168 at first");
    let found = moved_registers(512, &[("store", 8, true), ("load", 4, false), ("more", 4, false)]);
    assert_eq!(found, "216 registers for each thread with fragments, 40 for others; 128 at first");
    let found = moved_registers(256, &[("store", 4, true), ("load", 1, false)]);
    assert_eq!(found, "no registers move: each thread has 248");
    let found = moved_registers(384, &[("store", 8, true), ("more", 4, true)]);
    assert_eq!(found, "no registers move: all warpgroups hold fragments, and each thread has 168");
    // A role in two warpgroups lets both keep what they have.
    let found = moved_registers(384, &[("store", 6, true), ("load", 6, false)]);
    assert_eq!(found, "no registers move: all warpgroups hold fragments, and each thread has 168");
}

/// One warp of a role issues the copies; the others of the role are not counted, however late they are.
#[test]
fn a_role_of_several_warps_loads() {
    for moves in [false, true] {
        let kernel = kernel("several", |k| {
            let rows = k.size("rows").multiple_of(16);
            let (x, y) = (k.input("x", F32, (rows, 128)), k.output("y", F32, (rows, 128)));
            k.threads(if moves { 384 } else { 160 });
            if moves {
                k.move_registers();
            }
            let r = k.ring("r", 2, |r| r.shared("part", F32, [16, 128]));
            k.role("load", 4, |k| {
                k.serial("t", ..rows / 16, |k, t| {
                    r.produce(k, |k, part| _ = k.copy(part, x.sub((at(t * 16, 16), ..))));
                });
            });
            k.role("store", if moves { 4 } else { 1 }, |k| {
                k.serial("t", ..rows / 16, |k, t| {
                    let held = k.fragment("held", F32, [16, 128]);
                    r.consume(k, |k, part| _ = k.copy(held, part));
                    k.copy(y.sub((at(t * 16, 16), ..)), held);
                });
            });
        });
        let x = tensor(F32, &[512, 128], |at| at as f64);
        check_all_in_schedules(&kernel, &[("rows", 512)], std::slice::from_ref(&x), std::slice::from_ref(&x));
    }
}

/// Idle warps do as the others of their warpgroups do.
#[test]
fn registers_of_idle_warps() {
    for threads in [384, 512] {
        let kernel = kernel("idle", |k| {
            let (x, y) = (k.input("x", F32, [64, 128]), k.output("y", F32, [64, 128]));
            k.threads(threads);
            k.move_registers();
            let r = k.ring("r", 1, |r| r.shared("part", F32, [64, 128]));
            k.role("load", 1, |k| r.produce(k, |k, part| _ = k.copy(part, x)));
            k.role("math", 4, |k| {
                let held = k.fragment("held", F32, [64, 128]);
                r.consume(k, |k, part| _ = k.copy(held, part));
                k.copy(y, held);
            });
        });
        let x = tensor(F32, &[64, 128], |at| at as f64);
        check_all_in_schedules(&kernel, &[], std::slice::from_ref(&x), std::slice::from_ref(&x));
    }
}

/// Each of two roles has rows of its own, and a condition on what its threads have found in them: whether a number is negative.
#[test]
fn a_role_evaluates_conditions_on_its_fragments() {
    let kernel = kernel("negative", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 2, 128));
        let y = k.output("y", F32, (rows, 2, 128));
        k.threads(192);
        for (place, warps) in [(0, 2), (1, 4)] {
            k.role(&format!("role{place}"), warps, |k| {
                let name = |what: &str| format!("{what}{place}");
                let (row, is_low) = (k.fragment(&name("row"), F32, [128]), k.fragment(&name("is_low"), I32, [128]));
                let some_are = k.fragment(&name("some_are"), I32, [1]);
                k.serial("t", ..rows, |k, t| {
                    k.copy(row, x.sub((t, place, ..)));
                    k.map(is_low, |[i]| row.at((i,)).lt(0.0).select(1, 0));
                    k.reduce(Or, some_are, is_low, 0);
                    k.if_(some_are.at((0,)).ne(0), |k| _ = k.map(row, |[i]| row.at((i,)) * 2.0));
                    k.copy(y.sub((t, place, ..)), row);
                });
            });
        }
    });
    let cuda = compiled(&kernel).cuda().to_string();
    let inside = cuda.find("// role role0").expect("a role");
    assert!(cuda.find("int holds").is_some_and(|at| at > inside), "{cuda}");
    // One number of every third row is negative.
    let x = |at: i64| if at % (3 * 128) == 77 { -5.0 } else { (at % 9) as f64 };
    let y = |at: i64| x(at) * if at / 128 % 3 == 0 { 2.0 } else { 1.0 };
    for rows in [1, 2, 7] {
        let (x, y) = (tensor(F32, &[rows, 2, 128], x), tensor(F32, &[rows, 2, 128], y));
        check_all_in_schedules(&kernel, &[("rows", rows)], &[x], &[y]);
    }
}
