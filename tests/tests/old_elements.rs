//! Atomic operations that give the element as it was, exchange elements, and order other accesses.

use tilewright::compile::{Options, Stage, compile};
use tilewright::dsl::AtomicRef;
use tilewright::prelude::*;
use tilewright::runtime::{Device, HostTensor, Tolerance, run};
use tilewright_tests::pages::{check, compiled, tensor};
use tilewright_tests::toolchain::built_or_skipped;

/// The CUDA of a kernel for sm_100a.
fn cuda(kernel: &Kernel) -> String {
    compile(kernel.clone(), &Options::new(Target::Sm100a))
        .unwrap_or_else(|found| panic!("{found:?}"))
        .cuda()
        .to_string()
}

/// The text of the first diagnostic of a kernel, with its help.
fn refused(kernel: Kernel) -> [String; 2] {
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("an error is expected");
    [found[0].to_string(), found[0].help.join("; ")]
}

/// Every element above 0 takes the next place of a list.
fn compacted(dtype: DType) -> Kernel {
    kernel("compacted", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let taken = k.accumulator("taken", I32, (n,));
        let count = k.accumulator("count", dtype, [1]);
        let [block] = k.grid([n.ceil_div(200)]);
        k.threads(64);
        k.parallel([200], |k, [i]| {
            let at = block * 200 + i;
            k.if_(x.at((at,)).gt(0.0), |k| {
                let place = k.atomic_add(count, (0,), 1).old("place");
                let place = if dtype.is_float() { place.cast(I32) } else { place.wrapping_cast(I32) };
                k.atomic_add(taken, (place,), 1);
            });
        });
    })
}

#[test]
fn each_old_element_is_given_once() {
    for dtype in [I32, U32, I64, U64, F32, F64] {
        let kernel = compacted(dtype);
        for n in [1, 199, 200, 777] {
            let x = |at: i64| if at * 7 % 5 < 2 { 1.0 } else { -1.0 };
            let count = (0..n).filter(|at| x(*at) > 0.0).count() as f64;
            let taken = tensor(I32, &[n], |at| f64::from((at as f64) < count));
            let outputs = [taken, tensor(dtype, &[1], |_| count)];
            check(&kernel, &[("n", n)], &[tensor(F32, &[n], x)], &outputs, Tolerance::EXACT);
        }
    }
}

type Change = for<'k> fn(&mut Elements<'k>, Buffer, &[Expr; 2], i64) -> AtomicRef<'k>;

/// Every kind of change, what it does to 5, and whether floats have it.
const CHANGES: [(Change, i64, bool); 9] = [
    (|k, to, [o, i], by| k.atomic_add(to, (o, i), by), 8, true),
    (|k, to, [o, i], by| k.atomic_exchange(to, (o, i), by), 3, true),
    (|k, to, [o, i], by| k.atomic_compare_exchange(to, (o, i), 5, by), 3, true),
    (|k, to, [o, i], by| k.atomic_compare_exchange(to, (o, i), 4, by), 5, true),
    (|k, to, [o, i], by| k.atomic_min(to, (o, i), by), 3, false),
    (|k, to, [o, i], by| k.atomic_max(to, (o, i), by), 5, false),
    (|k, to, [o, i], by| k.atomic_and(to, (o, i), by), 1, false),
    (|k, to, [o, i], by| k.atomic_or(to, (o, i), by), 7, false),
    (|k, to, [o, i], by| k.atomic_xor(to, (o, i), by), 6, false),
];

/// Each change with another scope, of elements in a tensor or in shared memory that are 5.
fn all_changes(dtype: DType, order: MemoryOrder, is_shared: bool) -> (Kernel, Vec<i64>) {
    let changes: Vec<_> = CHANGES.into_iter().filter(|(.., of_floats)| *of_floats || dtype.is_integer()).collect();
    let count = changes.len() as i64;
    let results = changes.iter().map(|(_, result, _)| *result).collect();
    let made = kernel("changes", |k| {
        let x = k.inout("x", dtype, [count, 40]);
        let was = k.output("was", dtype, [count, 40]);
        k.threads(64);
        let tile = k.shared("tile", dtype, [count, 40]);
        let to = if is_shared { tile } else { x };
        if is_shared {
            k.copy(tile, x);
        }
        for (number, (change, ..)) in changes.iter().enumerate() {
            k.parallel([40], |k, [i]| {
                let at = [Expr::from(number as i64), i];
                let scope = MemoryScope::ALL[(number + order as usize) % 4];
                let old = change(k, to, &at, 3).order(order).scope(scope).old("old");
                k.store(was, (number as i64, i), old);
            });
        }
        if is_shared {
            k.copy(x, tile);
        }
    });
    (made, results)
}

#[test]
fn every_change_has_every_order_and_scope() {
    for dtype in [I32, U32, I64, U64, F32, F64] {
        for (number, order) in MemoryOrder::ALL.into_iter().enumerate() {
            let (kernel, results) = all_changes(dtype, order, number % 2 == 0);
            let shape = [results.len() as i64, 40];
            let outputs =
                [tensor(dtype, &shape, |at| results[(at / 40) as usize] as f64), tensor(dtype, &shape, |_| 5.0)];
            check(&kernel, &[], &[tensor(dtype, &shape, |_| 5.0)], &outputs, Tolerance::EXACT);
        }
    }
}

#[test]
fn the_cuda_names_order_and_scope() {
    let text = cuda(&all_changes(I32, MemoryOrder::AcquireRelease, false).0);
    for call in [
        "old = __nv_atomic_fetch_add(&x[tid], 3, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM);",
        "compare_exchange<__NV_ATOMIC_ACQ_REL, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_CLUSTER>(&x[tid + 80], 5, 3);",
    ] {
        assert!(text.contains(call), "{text}");
    }
    let text = cuda(&compacted(U32));
    assert!(text.contains("place = atomicAdd(&count[0], 1u);"), "{text}");
}

/// The sum of a vector: the last CTA to arrive adds up what each has written.
fn summed(order: MemoryOrder, scope: MemoryScope) -> Kernel {
    kernel("summed", |k| {
        let n = k.size("n");
        let blocks = n.ceil_div(128);
        let x = k.input("x", I32, (n,));
        let total = k.output("total", I32, [1]);
        let parts = k.output("parts", I32, (&blocks,));
        let arrived = k.accumulator("arrived", I32, [1]);
        let [block] = k.grid([&blocks]);
        k.threads(64);
        let values = k.fragment("values", I32, [128]);
        let sum = k.fragment("sum", I32, [1]);
        let before = k.shared("before", I32, [1]);
        k.copy(values, x.sub((at(&block * 128, 128),)));
        k.reduce(Sum, sum, values, 0);
        k.copy(parts.sub((at(block, 1),)), sum);
        k.parallel([1], |k, [i]| {
            let old = k.atomic_add(arrived, (&i,), 1).order(order).scope(scope).old("earlier");
            k.store(before, (i,), old);
        });
        k.if_(before.at((0,)).eq(&blocks - 1), |k| {
            let all = k.fragment("all", I32, [1]);
            k.fill(all, 0);
            k.serial("part", ..blocks, |k, part| {
                k.parallel([1], |k, [i]| k.store(all, (&i,), all.at((&i,)) + parts.at((part,))));
            });
            k.copy(total, all);
        });
    })
}

#[test]
fn the_last_cta_sees_what_the_others_have_released() {
    let kernel = summed(MemoryOrder::AcquireRelease, MemoryScope::Gpu);
    for n in [1, 128, 129, 1000] {
        let x = |at: i64| (at * 7 % 13) as f64;
        let part = |block: i64| (block * 128..n.min(block * 128 + 128)).map(x).sum::<f64>();
        let blocks = (n + 127) / 128;
        let outputs = [
            tensor(I32, &[1], |_| (0..blocks).map(part).sum()),
            tensor(I32, &[blocks], part),
            tensor(I32, &[1], |_| blocks as f64),
        ];
        check(&kernel, &[("n", n)], &[tensor(I32, &[n], x)], &outputs, Tolerance::EXACT);
    }
}

/// Without a release, or with one that reaches the own CTA only, the virtual GPU finds that the last CTA reads what others
/// write in no order.
#[test]
fn a_missing_order_is_a_race() {
    for (order, scope) in [
        (MemoryOrder::Relaxed, MemoryScope::Gpu),
        (MemoryOrder::Acquire, MemoryScope::Gpu),
        (MemoryOrder::Release, MemoryScope::Gpu),
        (MemoryOrder::AcquireRelease, MemoryScope::Cta),
    ] {
        let kernel = summed(order, scope);
        for artifact in compiled(&kernel, &[("n", 300)]) {
            let Some(built) = built_or_skipped(&artifact, "a missing order is a race") else { return };
            let inputs = [tensor(I32, &[300], |at| at as f64)];
            let failure = run(&artifact, &built, &inputs, &Device::Virtual).expect_err("it is a race");
            assert!(failure.to_string().contains("race"), "{order:?} {scope:?}: {failure}");
        }
    }
}

/// All threads have stored before one of them releases, and read after one of them has acquired.
#[test]
fn barriers_carry_the_order_to_all_threads() {
    let count = |order: MemoryOrder| {
        let artifact = compile(summed(order, MemoryScope::Gpu), &Options::new(Target::Sm100a)).expect("it is right");
        artifact.plans().iter().map(|plan| plan.barriers.len()).sum::<usize>()
    };
    // The one after the store of `before` is there without an order too.
    let [relaxed, ordered] = [MemoryOrder::Relaxed, MemoryOrder::AcquireRelease].map(count);
    assert_eq!((relaxed, ordered), (1, 2));
}

/// A store by the copy engine has arrived before it is released.
#[test]
fn copies_in_flight_are_waited_for_before_a_release() {
    let kernel = kernel("stored", |k| {
        let x = k.input("x", F32, [64, 64]);
        let y = k.output("y", F32, [64, 64]);
        let ready = k.accumulator("ready", U32, [1]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64, 64]);
        k.copy(tile, x);
        k.copy_async(y, tile);
        k.parallel([1], |k, [i]| k.atomic_add(ready, (i,), 1).order(MemoryOrder::Release));
    });
    let text = cuda(&kernel);
    let [wait, release] = ["bulk_wait<0>", "__nv_atomic_fetch_add("].map(|call| text.rfind(call));
    assert!(wait.is_some() && wait < release, "{text}");
    let x = || tensor(F32, &[64, 64], |at| at as f64);
    check(&kernel, &[], &[x()], &[x(), tensor(U32, &[1], |_| 1.0)], Tolerance::EXACT);
}

/// Where no element is changed, the old one is 0.
#[test]
fn beyond_the_edge_nothing_changes() {
    let kernel = kernel("ragged", |k| {
        let n = k.size("n");
        let x = k.inout("x", I32, (n,));
        let sums = k.output("sums", I32, (n.ceil_div(64) * 64,));
        let [block] = k.grid([n.ceil_div(64)]);
        k.threads(32);
        let tile = k.fragment("tile", I32, [64]);
        k.copy(tile, x.sub((at(&block * 64, 64),)));
        k.parallel([64], |k, [i]| {
            let at = block * 64 + i;
            let old = k.atomic_exchange(x, (&at,), tile.at((i,)) + 1).old("old");
            k.store(sums, (at,), old * 2);
        });
    });
    for n in [1, 63, 64, 100] {
        let outputs = [
            tensor(I32, &[n], |at| (at + 6) as f64),
            tensor(I32, &[(n + 63) / 64 * 64], |at| if at < n { 2.0 * (at + 5) as f64 } else { 0.0 }),
        ];
        check(&kernel, &[("n", n)], &[tensor(I32, &[n], |at| (at + 5) as f64)], &outputs, Tolerance::EXACT);
    }
}

/// The tile that is exchanged ends at the edge, so only what is valid of it is.
#[test]
fn what_a_fill_would_change_is_left() {
    let kernel = kernel("filled", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let (kept, was) = (k.inout("kept", F32, [64]), k.output("was", F32, [64]));
        k.threads(32);
        let tile = k.fragment("tile", F32, [64]);
        k.copy(tile, x.sub((at(0, 64),)));
        k.parallel([64], |k, [i]| {
            let old = k.atomic_exchange(kept, (&i,), tile.at((&i,))).old("old");
            k.store(was, (i,), old + 0.5);
        });
    });
    for n in [1, 40, 64] {
        let outputs = [
            tensor(F32, &[64], |at| if at < n { at as f64 } else { -1.0 }),
            tensor(F32, &[64], |at| if at < n { -0.5 } else { 0.5 }),
        ];
        check(
            &kernel,
            &[("n", n)],
            &[tensor(F32, &[n], |at| at as f64), tensor(F32, &[64], |_| -1.0)],
            &outputs,
            Tolerance::EXACT,
        );
    }
}

#[test]
fn what_is_not_possible_is_refused() {
    let of = |dtype: DType, change: for<'k> fn(&mut Elements<'k>, Buffer)| {
        kernel("k", |k| {
            let x = k.inout("x", dtype, [64]);
            k.parallel([64], |k, _| change(k, x));
        })
    };
    let text = |dtype, change| refused(of(dtype, change))[0].clone();
    assert_eq!(
        text(F16, |k, x| _ = k.atomic_exchange(x, (0,), 1.0)),
        "error[K0246]: there is no atomic exchange for f16"
    );
    assert_eq!(
        text(U16, |k, x| _ = k.atomic_compare_exchange(x, (0,), 1, 2)),
        "error[K0246]: there is no atomic compare-and-exchange for u16"
    );
    assert_eq!(
        text(BF16, |k, x| _ = k.atomic_add(x, (0,), 1.0).old("old")),
        "error[K0246]: an atomic addition to bf16 gives no old element, and has no order and no scope"
    );
    assert_eq!(
        text(F16, |k, x| _ = k.atomic_add(x, (0,), 1.0).scope(MemoryScope::Cta)),
        "error[K0246]: an atomic addition to f16 gives no old element, and has no order and no scope"
    );
    assert_eq!(
        text(I32, |k, x| {
            k.atomic_add(x, (0,), 1).old("old");
            k.atomic_exchange(x, (0,), 1);
        }),
        "error[K0237]: two iterations change the same element through `x[0]` by different atomic operations"
    );
    assert_eq!(
        text(I32, |k, x| {
            let add = k.atomic_add(x, (0,), 1);
            let (first, second) = (add.old("first"), add.old("second"));
            k.named("both", first + second);
        }),
        "error[K0217]: `.old(..)` names the old element of an operation twice"
    );
}

#[test]
fn one_thread_knows_an_old_element() {
    let held = |is_single: bool| {
        kernel("held", move |k| {
            let (count, y) = (k.accumulator("count", I32, [1]), k.output("y", I32, [64]));
            k.threads(128);
            let held = k.fragment("held", I32, [if is_single { 1 } else { 64 }]);
            k.parallel(if is_single { [1] } else { [64] }, |k, [i]| {
                let old = k.atomic_add(count, (0,), 1).old("old");
                k.store(held, (i,), old);
            });
            k.parallel([64], |k, [i]| k.store(y, (&i,), if is_single { held.at((0,)) } else { held.at((i,)) }));
        })
    };
    assert!(compile(held(false), &Options::new(Target::Sm100a)).is_ok());
    let [text, help] = refused(held(true));
    assert_eq!(
        text,
        "error[K0263]: `parallel i` cannot be lowered: several threads hold copies of the elements of `held`, and only one \
         of them gets the old element of an atomic operation"
    );
    assert_eq!(help, "store it to shared memory instead, and read it from there in the next loop");
}

#[test]
fn an_operation_of_a_loop_that_is_complete_takes_no_order() {
    let [text, help] = refused(kernel("late", |k| {
        let x = k.inout("x", I32, [64]);
        let mut kept = None;
        k.parallel([64], |k, [i]| kept = Some(k.atomic_add(x, (i,), 1)));
        if let Some(operation) = kept {
            operation.order(MemoryOrder::Release);
        }
    }));
    assert_eq!(text, "error[K0217]: `.order(..)` on an atomic operation whose loop is complete");
    assert_eq!(help, "call it where the atomic operation is added: k.atomic_add(..).order(..)");
}

/// Every iteration takes the place of the one before it: exchanges have an order among each other, and loops have one.
#[test]
fn exchanges_in_two_loops_keep_their_order() {
    let kernel = kernel("two", |k| {
        let (first, second) = (k.output("first", I32, [64]), k.output("second", I32, [64]));
        k.threads(64);
        let tile = k.shared("tile", I32, [64]);
        k.fill(tile, 7);
        k.parallel([64], |k, [i]| {
            let old = k.atomic_exchange(tile, (&i,), i).old("old");
            k.store(first, (i,), old);
        });
        k.parallel([64], |k, [i]| {
            let old = k.atomic_exchange(tile, (63 - &i,), 0).old("old");
            k.store(second, (i,), old);
        });
    });
    let outputs = [tensor(I32, &[64], |_| 7.0), tensor(I32, &[64], |at| (63 - at) as f64)];
    check(&kernel, &[], &[], &outputs, Tolerance::EXACT);
}

#[test]
fn the_printed_kernel_tells_old_elements_and_orders() {
    let artifact = compile(summed(MemoryOrder::AcquireRelease, MemoryScope::System), &Options::new(Target::Sm100a));
    let text = artifact.expect("it is right").stage(Stage::Tile);
    assert!(text.contains("earlier = atomic arrived[i] += 1, acq_rel, sys"), "{text}");
}

/// C++ has no literal of type `int` for -2147483648, and `compare_exchange` deduces its type from its operands.
#[test]
fn the_least_integer_is_an_operand() {
    for (dtype, least) in [(I32, i64::from(i32::MIN)), (I64, i64::MIN)] {
        let kernel = kernel("least", |k| {
            let (y, was) = (k.inout("y", dtype, [2]), k.output("was", dtype, [2]));
            k.parallel([2], |k, [i]| {
                let change = k.atomic_compare_exchange(y, (&i,), least, least + 1);
                k.store(was, (i,), change.order(MemoryOrder::Acquire).old("old"));
            });
        });
        let before = || tensor(dtype, &[2], |at| if at == 0 { least as f64 } else { 7.0 });
        let after = HostTensor::from_fn(dtype, &[2], |at| (if at == 0 { least + 1 } else { 7 }) as u128);
        check(&kernel, &[], &[before()], &[after, before()], Tolerance::EXACT);
    }
}
