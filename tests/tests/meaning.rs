//! The meaning of kernels, and kernels without a meaning: iterations are not ordered, conditions that contain ops are
//! uniform, and an empty range has no iterations.

mod fragments;
mod order;
mod viewed;

use tilewright::compile::{Options, compile};
use tilewright::dsl::StoreRef;
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, Device, Tolerance, run};
use tilewright_tests::meaning::check::{Ended, check};
use tilewright_tests::meaning::evaluate::Rules;
use tilewright_tests::meaning::{run_kernels, run_kernels_on};
use tilewright_tests::pages::{computes, tensor};
use tilewright_tests::rng::Rng;
use tilewright_tests::toolchain::{skip, toolchain};

/// The code of the first diagnostic, or `accepted`.
#[track_caller]
fn verdict(threads: i64, body: impl FnOnce(&mut KernelBuilder)) -> &'static str {
    let kernel = kernel("k", |k| {
        k.threads(threads);
        body(k);
    });
    match compile(kernel, &Options::new(Target::Sm100a)) {
        Ok(_) => "accepted",
        Err(found) => found.first().map_or("no diagnostic", |finding| finding.code),
    }
}

/// A fragment of 64 elements on 64 threads, modified by a loop over its elements and stored.
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

/// Sums of sizes that are compared in 64 bits, as 32 might not hold them, decide as others do.
#[test]
fn conditions_in_64_bits_decide() {
    let wide = kernel("wide", |k| {
        let (n, y) = (k.size("n"), k.output("y", F32, [32]));
        k.threads(32);
        k.if_else(Value::from(n * 4096).ge(65_536), |k| _ = k.fill(y, 1.0), |k| _ = k.fill(y, 2.0));
    });
    for (n, expected) in [(15, 2.0), (16, 1.0), (600_000, 1.0)] {
        tilewright_tests::pages::check(&wide, &[("n", n)], &[], &[tensor(F32, &[32], |_| expected)], Tolerance::EXACT);
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
    // Doubling the work at every level would take 2^40 steps.
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

/// `x` doubled this many times, and 3 times that in an arm of a `select`.
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
    assert!(mixed.build_findings.is_empty(), "{:?}", mixed.build_findings);
    compile(mixed, &Options::new(Target::Sm100a)).expect("it compiles");
}

#[test]
fn a_value_that_is_used_twice_is_computed_once() {
    let lines = |times| {
        let artifact = compile(doubled(times), &Options::new(Target::Sm100a)).expect("it compiles");
        artifact.cuda().lines().filter(|line| line.contains(" = ")).count()
    };
    // One name per two doublings.
    assert_eq!(lines(60) - lines(40), lines(40) - lines(20));
    assert!(lines(60) < 120, "{}", lines(60));
    assert_eq!(check(&doubled(60), &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
}

/// Starting with the first row, repeatedly adds the next row to half of the sum, in a single statement.
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
    assert!(chained(5_000).build_findings.is_empty());
    compile(chained(2_000), &Options::new(Target::Sm100a)).expect("it compiles");
    assert_eq!(check(&chained(300), &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
    // Products remain fused with their sums at the end of a part.
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

/// NVRTC hoists the load of `s[0]` above `tid < 1` and splits the loop on its value: 63 threads branch on bits that
/// they do not otherwise use.
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

/// Any of the values may remain, on the virtual GPU, too; a store without this claim is still a race.
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

/// CTAs that write the same element race with each other; the help says what to do instead.
#[test]
fn ctas_that_write_one_element_get_help() {
    let sums = kernel("sums", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
        let [_] = k.grid([2]);
        let f = k.fragment("f", F32, [64]);
        k.copy(f, x);
        k.fill(y, 0.0);
        k.atomic_add(y, f);
    });
    if toolchain().nvrtc(Target::Sm100a.name()).is_err() {
        return skip("meaning: ctas_that_write_one_element_get_help");
    }
    let artifact = compile(sums, &Options::new(Target::Sm100a)).expect("the kernel compiles");
    let built = toolchain().build(&artifact, &CudaText::Generated).expect("a build");
    let inputs = [tensor(F32, &[64], |i| i as f64)];
    let failure = run(&artifact, &built, &inputs, &Device::Virtual).expect_err("a race");
    assert_eq!(
        failure.diagnostics[0].help,
        ["CTAs of a grid are unordered: give each CTA its own part of the output; to combine their results, let each \
             write a row of its own, and add the rows in another kernel"]
    );
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
