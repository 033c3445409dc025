//! Shared buffers whose lives do not meet have the same storage.

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, computes, tensor};

fn compiled(kernel: Kernel) -> Artifact {
    compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right")
}

/// The lines of the plan about shared memory.
fn storage(kernel: Kernel) -> String {
    let plan = compiled(kernel).stage(Stage::Plan);
    if plan.starts_with("shared memory") {
        plan.split("\n\n").next().unwrap_or_default().to_string()
    } else {
        String::new()
    }
}

/// Two passes over a tile, each through a shared buffer of its own, which turns it upside down.
fn two_passes(edit: impl Fn(&mut KernelBuilder, [Buffer; 2])) -> Kernel {
    kernel("two_passes", |k| {
        let (x, y) = (k.input("x", F32, [128, 64]), k.output("y", F32, [128, 64]));
        k.threads(128);
        let first = k.shared("first", F32, [128, 64].row_major());
        let second = k.shared("second", F32, [128, 64].row_major());
        let v = k.fragment("v", F32, [128, 64]);
        edit(k, [first, second]);
        k.copy(first, x);
        k.map(v, |[i, j]| first.at((127 - i, j)) * 2.0);
        k.copy(second, v);
        k.map(y, |[i, j]| second.at((127 - i, 63 - j)) + 1.0);
    })
}

fn number(at: i64) -> f64 {
    (at * 37 % 101) as f64
}

#[test]
fn one_buffer_takes_the_place_of_another() {
    let map = "shared memory: the buffers take 32768 bytes; apart from each other, they would take 65536\n  second has the storage of first";
    assert_eq!(storage(two_passes(|_, _| ())), map);
    let expected = tensor(F32, &[128, 64], |at| number(at / 64 * 64 + 63 - at % 64) * 2.0 + 1.0);
    computes(&two_passes(|_, _| ()), &[tensor(F32, &[128, 64], number)], &[expected]);
}

#[test]
fn a_buffer_may_stand_alone() {
    for which in [0, 1] {
        let apart = two_passes(|_, buffers| {
            let _ = buffers[which].alone();
        });
        assert_eq!(storage(apart), "");
    }
}

#[test]
fn the_barrier_between_them_is_derived() {
    let of = |kernel: Kernel| compiled(kernel).cuda().matches("__syncthreads();").count();
    let apart = of(two_passes(|_, buffers| {
        let _ = buffers[0].alone();
    }));
    assert_eq!((of(two_passes(|_, _| ())), apart), (3, 2));
    let plan = compiled(two_passes(|_, _| ())).stage(Stage::Plan);
    let reason = "copy(second, v) writes `second` in the storage of `first` after";
    assert!(plan.contains(reason), "{plan}");
}

#[test]
fn small_buffers_share_nothing_unless_asked_to() {
    let small = |shares: bool| {
        kernel("small", |k| {
            let (x, y) = (k.input("x", F32, [128]), k.output("y", F32, [128]));
            k.threads(128);
            let (a, b) = (k.shared("a", F32, [128]), k.shared("b", F32, [128]));
            if shares {
                k.share_storage();
            }
            let v = k.fragment("v", F32, [128]);
            k.copy(a, x);
            k.map(v, |[i]| a.at((127 - i,)));
            k.copy(b, v);
            k.map(y, |[i]| b.at((127 - i,)));
        })
    };
    let why = "the lives of some buffers do not meet, but no more CTAs would run on an SM if they had the same storage";
    assert_eq!(storage(small(false)), format!("shared memory: the buffers take 1024 bytes\n  because: {why}"));
    assert!(storage(small(true)).ends_with("\n  b has the storage of a"), "{}", storage(small(true)));
}

/// A tile of each iteration passes through two buffers, and one keeps sums from one iteration to the next.
fn in_a_loop(keeps: bool) -> Kernel {
    kernel("in_a_loop", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n, 4096));
        let y = k.output("y", F32, (n, 4096));
        let sums = k.output("sums", F32, [4096]);
        k.threads(128);
        let [first, second, third] = ["first", "second", "third"].map(|name| k.shared(name, F32, [4096]));
        let v = k.fragment("v", F32, [4096]);
        k.fill(third, 0.0);
        k.serial("t", ..n, |k, t| {
            k.copy(first, x.sub((t, ..)));
            k.map(v, |[i]| first.at((4095 - i,)));
            k.copy(second, v);
            k.map(v, |[i]| second.at((i ^ 1,)));
            k.copy(y.sub((t, ..)), v);
            if keeps {
                k.map(third, |[i]| third.at((i,)) + v.at((i,)));
            }
        });
        k.copy(sums, third);
    })
}

#[test]
fn what_a_loop_keeps_is_not_overwritten() {
    assert!(storage(in_a_loop(true)).ends_with("\n  second has the storage of first"));
    for n in [1, 2, 5] {
        let element = |at: i64| number(at / 4096 * 4096 + 4095 - ((at % 4096) ^ 1));
        let y = tensor(F32, &[n, 4096], element);
        let sums = tensor(F32, &[4096], |at| (0..n).map(|t| element(t * 4096 + at)).sum());
        let exact = Tolerance::EXACT;
        check(&in_a_loop(true), &[("n", n)], &[tensor(F32, &[n, 4096], number)], &[y, sums], exact);
    }
}

/// What a loop reads before it writes it is from the iteration before.
#[test]
fn what_an_iteration_leaves_for_the_next_one_lives_as_long_as_the_loop() {
    let carried = |carries: bool| {
        kernel("carried", |k| {
            let n = k.size("n");
            let (x, y) = (k.input("x", F32, (n, 4096)), k.output("y", F32, (n, 4096)));
            k.threads(128);
            let [last, turned] = ["last", "turned"].map(|name| k.shared(name, F32, [4096]));
            let v = k.fragment("v", F32, [4096]);
            if carries {
                k.fill(last, 0.0);
            }
            k.serial("t", ..n, |k, t| {
                if carries {
                    k.map(v, |[i]| last.at((4095 - i,)));
                    k.copy(last, x.sub((t, ..)));
                } else {
                    k.copy(last, x.sub((t, ..)));
                    k.map(v, |[i]| last.at((4095 - i,)));
                }
                k.copy(turned, v);
                k.map(v, |[i]| turned.at((i ^ 1,)));
                k.copy(y.sub((t, ..)), v);
            });
        })
    };
    assert_eq!(storage(carried(true)), "");
    assert!(storage(carried(false)).ends_with("\n  turned has the storage of last"));
    let n = 3;
    let turned = |row: i64, at: i64| if row < 0 { 0.0 } else { number(row * 4096 + 4095 - (at ^ 1)) };
    let x = [tensor(F32, &[n, 4096], number)];
    for (carries, before) in [(true, 1), (false, 0)] {
        let y = tensor(F32, &[n, 4096], |at| turned(at / 4096 - before, at % 4096));
        check(&carried(carries), &[("n", n)], &x, &[y], Tolerance::EXACT);
    }
}

#[test]
fn buffers_of_other_dtypes_and_sizes_fit_where_they_would_not_apart() {
    let large = kernel("large", |k| {
        let x = k.input("x", F32, [32768]);
        let (y, h, z) = (k.output("y", F32, [32768]), k.output("h", F16, [57344]), k.output("z", I32, [1024]));
        k.threads(256);
        let (wide, narrow) = (k.shared("wide", F32, [32768]), k.shared("narrow", F16, [57344]));
        let (few, numbers) = (k.shared("few", I32, [1024]), k.fragment("numbers", I32, [1024]));
        k.map(numbers, |[i]| i);
        k.copy(few, numbers);
        k.copy(wide, x);
        k.map(y, |[i]| wide.at((32767 - i,)));
        k.map(narrow, |[i]| (i % 64).cast(F16));
        k.map(h, |[i]| narrow.at((57343 - i,)));
        k.map(z, |[i]| few.at((1023 - i,)));
    });
    assert!(storage(large.clone()).ends_with("\n  narrow has the storage of wide"), "{}", storage(large));
    let y = tensor(F32, &[32768], |at| number(32767 - at));
    let h = tensor(F16, &[57344], |at| ((57343 - at) % 64) as f64);
    let z = tensor(I32, &[1024], |at| (1023 - at) as f64);
    computes(&large, &[tensor(F32, &[32768], number)], &[y, h, z]);
}

/// The copies of a pipelined loop run ahead of it.
#[test]
fn buffers_of_pipelined_loops_stand_alone() {
    let ahead = kernel("ahead", |k| {
        let (x, y) = (k.input("x", F32, [4, 8192]), k.output("y", F32, [4, 8192]));
        k.threads(128);
        let (first, second) = (k.shared("first", F32, [8192]), k.shared("second", F32, [8192]));
        k.copy(first, x.sub((0, ..)));
        k.parallel([8192], |k, [i]| k.store(y, (0, i), first.at((8191 - i,))));
        k.pipelined("t", 1..4, 2, |k, t| {
            k.copy(second, x.sub((t, ..)));
            k.parallel([8192], |k, [i]| k.store(y, (t, i), second.at((8191 - i,))));
        });
    });
    assert_eq!(storage(ahead), "");
}

/// A view over the padding of a tile keeps there what the tile does not write.
#[test]
fn what_lies_between_the_elements_of_a_tile_lives_on() {
    let between = kernel("between", |k| {
        let n = k.size("n").max(16);
        let x = k.input("x", F32, (n, 128, 64));
        let (y, sums) = (k.output("y", F32, (n, 128, 64)), k.output("sums", F32, (n, 127)));
        k.threads(128);
        let tile = k.shared("tile", F32, S([128, 64], [68, 1]));
        let all = k.view("all", tile, [127 * 68 + 64]);
        let second = k.shared("second", F32, [128, 64].row_major());
        let v = k.fragment("v", F32, [128, 64]);
        k.fill(all, 0.0);
        k.serial("t", ..n, |k, t| {
            k.copy(tile, x.sub((t, .., ..)));
            k.parallel([127], |k, [i]| {
                k.store(all, (i * 68 + 64,), all.at((i * 68 + 64,)) + tile.at((i, 0)));
            });
            k.parallel([127], |k, [i]| k.store(sums, (t, i), all.at((i * 68 + 64,))));
            k.map(v, |[i, j]| tile.at((127 - i, j)));
            k.copy(second, v);
            k.parallel([128, 64], |k, [i, j]| k.store(y, (t, i, j), second.at((127 - i, 63 - j))));
        });
    });
    let n = 3;
    let y = tensor(F32, &[n, 128, 64], |at| number(at / 64 * 64 + 63 - at % 64));
    let sums = tensor(F32, &[n, 127], |at| (0..=at / 127).map(|t| number((t * 128 + at % 127) * 64)).sum());
    check(&between, &[("n", n)], &[tensor(F32, &[n, 128, 64], number)], &[y, sums], Tolerance::EXACT);
}

/// Tiles that would fit apart share storage if an op needs the rest.
#[test]
fn scratch_of_an_op_may_need_what_tiles_save() {
    let scanned = kernel("scanned", |k| {
        let (x, y) = (k.input("x", I32, [30 * 1024]), k.output("y", I32, [30 * 1024]));
        k.threads(256);
        let (first, second) = (k.shared("first", I32, [30 * 1024]), k.shared("second", I32, [25 * 1024]));
        let v = k.fragment("v", I32, [4, 1024]);
        k.copy(first, x);
        k.parallel([4, 1024], |k, [i, j]| k.store(v, (i, j), first.at((30 * 1024 - 1 - (i * 1024 + j),))));
        k.scan(Sum, v, v, 1).variant("rows_in_shared");
        k.parallel([4, 1024], |k, [i, j]| k.store(second, (i * 1024 + j,), v.at((i, j))));
        k.fill(second.sub((at(4096, 21 * 1024),)), 7);
        k.parallel([25 * 1024], |k, [i]| k.store(y, (i,), second.at((i,))));
        k.fill(y.sub((at(25 * 1024, 5 * 1024),)), 0);
    });
    let of = |at: i64| (30 * 1024 - 1 - at) % 13;
    let y = tensor(I32, &[30 * 1024], |at| match at {
        0..4096 => (at / 1024 * 1024..=at).map(of).sum::<i64>() as f64,
        4096..25600 => 7.0,
        _ => 0.0,
    });
    computes(&scanned, &[tensor(I32, &[30 * 1024], |at| (at % 13) as f64)], &[y]);
}

/// The statements of one role are in order.
#[test]
fn tiles_of_one_role_share_and_those_of_two_do_not() {
    let of = |roles: [&str; 2]| {
        kernel("roles", |k| {
            let (x, y) = (k.input("x", F32, [2, 8192]), k.output("y", F32, [2, 8192]));
            k.threads(128);
            for (at, role) in roles.into_iter().enumerate() {
                let tile = k.shared(&format!("tile{at}"), F32, [8192]);
                k.role(role, 2, |k| {
                    k.copy(tile, x.sub((at as i64, ..)));
                    k.parallel([8192], |k, [i]| k.store(y, (at as i64, i), tile.at((8191 - i,))));
                });
            }
        })
    };
    assert!(storage(of(["one", "one"])).ends_with("\n  tile1 has the storage of tile0"));
    assert_eq!(storage(of(["one", "other"])), "");
    let y = tensor(F32, &[2, 8192], |at| number(at / 8192 * 8192 + 8191 - at % 8192));
    for roles in [["one", "one"], ["one", "other"]] {
        computes(&of(roles), &[tensor(F32, &[2, 8192], number)], std::slice::from_ref(&y));
    }
}
