//! `atomic_add` and the other atomic ops from shared memory to a tensor: the copy engine combines the boxes of a tile with it.

use tilewright::compile::{Options, compile};
use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::stores::calls;
use super::{are_found, check_all_in_schedules, compiled, mutated, number, tiles};

/// CTAs add their tiles to one, for so many threads.
fn summed(dtype: DType, threads: i64, variant: &str) -> Kernel {
    kernel("summed", |k| {
        let rows = k.size("rows");
        let x = k.input("x", dtype, (rows, 128));
        let y = k.accumulator("y", dtype, [128]);
        let [bx] = k.grid([rows.ceil_div(4)]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [128]);
        k.serial("t", 0..4, |k, t| {
            k.parallel([128], |k, [i]| k.store(tile, (&i,), x.at((bx * 4 + t, 127 - &i))));
            let added = k.atomic_add(y, tile);
            if !variant.is_empty() {
                added.variant(variant);
            }
        });
    })
}

#[test]
fn tiles_are_added_by_the_copy_engine_or_by_threads() {
    for dtype in [F32, F16, BF16, I32, U32, I64, U64, F64] {
        for (threads, variant) in [(64, ""), (64, "elements"), (16, "")] {
            let kernel = summed(dtype, threads, variant);
            assert_eq!(
                !starts(&kernel).is_empty(),
                threads == 64 && variant.is_empty(),
                "{dtype}\n{}",
                compiled(&kernel).cuda()
            );
            for rows in [4, 8, 20] {
                let x = |at: i64| (at * 7 % 13) as f64;
                let y = |i: i64| (0..rows).map(|row| x(row * 128 + 127 - i)).sum();
                let (x, y) = (tensor(dtype, &[rows, 128], x), tensor(dtype, &[128], y));
                check_all_in_schedules(&kernel, &[("rows", rows)], &[x], &[y]);
            }
        }
    }
}

/// Additions to the same elements may come in any order, so only the tile is waited for.
#[test]
fn additions_do_not_wait_for_each_other() {
    let kernel = summed(F32, 64, "tma");
    let in_order = [
        "bulk_wait_read<0>",
        "__syncthreads",
        "fence_proxy_async_shared",
        "__syncthreads",
        "tensor_add_1d",
        "bulk_commit",
        "bulk_wait_read<0>",
    ];
    assert_eq!(calls(&kernel), in_order);
    let launch = |rows: i64| {
        let y = |i: i64| (0..rows).map(|row| number(row * 128 + 127 - i)).sum();
        (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], tensor(F32, &[128], y))
    };
    let Some(report) = mutated(&kernel, &[launch(4), launch(8)]) else { return };
    assert!(are_found(&report, &["cp.async.bulk.wait_group.read", "bar.sync"]), "{report:#?}");
}

/// An atomic op on tiles.
type Combine = fn(&mut KernelBuilder, Region, Buffer);
/// What one does to numbers.
type OfNumbers = fn(i64, i64) -> i64;

#[test]
fn other_operations_are_done_by_the_copy_engine_too() {
    let operations: [(&str, Combine, OfNumbers); 5] = [
        ("min", |k, y, tile| _ = k.atomic_min(y, tile), i64::min),
        ("max", |k, y, tile| _ = k.atomic_max(y, tile), i64::max),
        ("and", |k, y, tile| _ = k.atomic_and(y, tile), |a, b| a & b),
        ("or", |k, y, tile| _ = k.atomic_or(y, tile), |a, b| a | b),
        ("xor", |k, y, tile| _ = k.atomic_xor(y, tile), |a, b| a ^ b),
    ];
    for dtype in [I32, U32, I64, U64] {
        let number = |at: i64| if [I32, I64].contains(&dtype) { at * 37 % 201 - 100 } else { at * 37 % 201 };
        for ((name, combine, of_numbers), unit) in operations.into_iter().flat_map(|one| [(one, 4), (one, 64)]) {
            let kernel = kernel("combined", |k| {
                let (rows, n) = (k.size("rows").max(64), k.size("n").multiple_of(unit));
                let x = k.input("x", dtype, (rows, n));
                let y = k.inout("y", dtype, (n,));
                let [bx, by] = k.grid([n.ceil_div(64), rows.into()]);
                k.threads(64);
                let tile = k.shared("tile", dtype, [64]);
                k.parallel([64], |k, [i]| k.store(tile, (i,), x.at((by, bx * 64 + i))));
                combine(k, y.sub((at(bx * 64, 64),)), tile);
            });
            // A tile that is inside for all sizes is a run.
            let function = if unit == 4 { format!("tensor_{name}_1d") } else { format!("bulk_{name}_") };
            let started: Vec<String> = starts(&kernel);
            assert!(started.len() == 1 && started[0].starts_with(&function), "{dtype} {started:?}");
            for (rows, n) in
                [(1, 4), (5, 64), (3, 100)].map(|(rows, n): (i64, i64)| (rows, (n + unit - 1) / unit * unit))
            {
                let y = |at: i64| (0..rows).fold(number(at + 7), |y, row| of_numbers(y, number(row * n + at)));
                let before = tensor(dtype, &[n], |at| number(at + 7) as f64);
                let after = tensor(dtype, &[n], |at| y(at) as f64);
                let x = tensor(dtype, &[rows, n], |at| number(at) as f64);
                check_all_in_schedules(&kernel, &[("rows", rows), ("n", n)], &[x, before], &[after]);
            }
        }
    }
}

/// The calls that start copies and additions to the tensor.
fn starts(kernel: &Kernel) -> Vec<String> {
    tiles::calls(kernel, &["tensor_", "bulk_add_", "bulk_min_", "bulk_max_", "bulk_and_", "bulk_or_", "bulk_xor_"])
}

#[test]
fn runs_of_every_dtype_are_added() {
    let functions = [(I32, "s32"), (U32, "u32"), (I64, "u64"), (U64, "u64"), (F32, "f32"), (F64, "f64"), (F16, "f16")];
    for (dtype, element) in functions.into_iter().chain([(BF16, "bf16")]) {
        let kernel = kernel("added", |k| {
            let (rows, n) = (k.size("rows").max(64), k.size("n").multiple_of(96));
            let x = k.input("x", dtype, (rows, n));
            let y = k.accumulator("y", dtype, (n,));
            let [block] = k.grid([n / 96]);
            k.threads(64);
            let tile = k.shared("tile", dtype, [96]);
            k.serial("row", ..Expr::from(rows), |k, row| {
                k.parallel([96], |k, [i]| k.store(tile, (95 - &i,), x.at((&row, &block * 96 + 95 - i))));
                k.atomic_add(y.sub((at(&block * 96, 96),)), tile);
            });
        });
        assert_eq!(starts(&kernel), [format!("bulk_add_{element}")], "{dtype}");
        for (rows, n) in [(1, 96), (4, 288)] {
            let x = |at: i64| (at % 11) as f64;
            let y = |at: i64| (0..rows).map(|row| x(row * n + at)).sum();
            let (x, y) = (tensor(dtype, &[rows, n], x), tensor(dtype, &[n], y));
            check_all_in_schedules(&kernel, &[("rows", rows), ("n", n)], &[x], &[y]);
        }
    }
}

/// Operations of one kind may come in any order, those of different kinds may not.
#[test]
fn operations_of_different_kinds_wait_for_each_other() {
    let waits = |second: Combine| {
        let kernel = kernel("kinds", |k| {
            let y = k.inout("y", I32, [64]);
            k.threads(64);
            let [low, high] = ["low", "high"].map(|name| k.shared(name, I32, [64]));
            k.parallel([64], |k, [i]| k.store(low, (i,), (63 - i).cast(I32)));
            k.parallel([64], |k, [i]| k.store(high, (i,), (i * 2).cast(I32)));
            k.atomic_min(y, low);
            second(k, y.into(), high);
        });
        let y = |at: i64, is_max: bool| {
            let lesser = (at * 3).min(63 - at);
            if is_max { lesser.max(at * 2) } else { lesser.min(at * 2) }
        };
        let calls = calls(&kernel);
        let is_max = calls.contains(&"bulk_max_s32".to_string());
        let [before, after] = [tensor(I32, &[64], |at| (at * 3) as f64), tensor(I32, &[64], |at| y(at, is_max) as f64)];
        check_all_in_schedules(&kernel, &[], &[before], &[after]);
        calls.iter().filter(|call| call.starts_with("bulk_wait<")).count()
    };
    assert_eq!(waits(|k, y, tile| _ = k.atomic_min(y, tile)), 0);
    assert_eq!(waits(|k, y, tile| _ = k.atomic_max(y, tile)), 1);
}

/// Threads combine the elements of fragments.
#[test]
fn fragments_are_combined_with_memory() {
    let kernel = kernel("fragments", |k| {
        let x = k.input("x", U32, [4, 64]);
        let y = k.inout("y", U32, [64]);
        k.threads(64);
        let held = k.fragment("held", U32, [64]);
        k.serial("t", 0..4, |k, t| {
            k.copy(held, x.sub((t, ..)));
            k.atomic_xor(y, held);
        });
    });
    assert!(compiled(&kernel).cuda().contains("atomicXor("));
    let y = |at: i64| (0..4).fold(at, |y, row| y ^ ((row * 64 + at) * 5)) as f64;
    let [x, before] = [tensor(U32, &[4, 64], |at| (at * 5) as f64), tensor(U32, &[64], |at| at as f64)];
    check_all_in_schedules(&kernel, &[], &[x, before], &[tensor(U32, &[64], y)]);
}

/// An addition comes after a copy to the same elements, and a copy after additions.
#[test]
fn copies_and_additions_to_the_same_elements_are_in_order() {
    let kernel = kernel("both", |k| {
        let y = k.output("y", I32, [3, 64]);
        k.threads(64);
        let tile = k.shared("tile", I32, [64]);
        let more = k.shared("more", I32, [64]);
        k.parallel([64], |k, [i]| k.store(tile, (&i,), (63 - &i).cast(I32)));
        k.fill(more, 5);
        for row in 0..3 {
            k.copy_async(y.sub((row, ..)), tile);
            k.atomic_add(y.sub((row, ..)), more);
            k.atomic_add(y.sub((row, ..)), tile);
        }
        k.copy_async(y.sub((2, ..)), more);
    });
    let y = tensor(I32, &[3, 64], |at| if at < 128 { (2 * (63 - at % 64) + 5) as f64 } else { 5.0 });
    check_all_in_schedules(&kernel, &[], &[], &[y]);
}

#[test]
fn other_memory_is_not_added_to_memory() {
    let kernel = kernel("memory", |k| {
        let x = k.input("x", I32, [32]);
        let y = k.accumulator("y", I32, [32]);
        k.atomic_add(y, x);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("memory is added to memory");
    assert_eq!(found[0].code, "K0262");
    let fragment = kernel_of_fragment("tma");
    let found = compile(fragment, &Options::new(Target::Sm100a)).expect_err("a fragment is not in shared memory");
    assert_eq!(
        found[0].notes,
        [
            "tma: the op is not a copy between shared memory and a tensor that may stay in flight; accepted: `copy_async` between shared memory and a tensor, an atomic op from shared memory to a tensor, or a pipelined loop"
        ]
    );
}

fn kernel_of_fragment(variant: &str) -> Kernel {
    kernel("fragment", |k| {
        let y = k.accumulator("y", I32, [32]);
        let held = k.fragment("held", I32, [32]);
        k.fill(held, 1);
        k.atomic_add(y, held).variant(variant);
    })
}

/// A fence of one role, with the barrier of its warps, does not put copies of another role after what it has done.
#[test]
fn what_a_role_has_done_is_fenced_for_other_roles_too() {
    for (variant, form) in ["bulk", "tma"].into_iter().flat_map(|variant| (0..3).map(move |form| (variant, form))) {
        let kernel = kernel("roles", |k| {
            let (y, z) = (k.inout("y", I32, [4, 32]), k.inout("z", I32, [4, 32]));
            k.threads(64);
            let (u, v) = (k.shared("u", I32, [4, 32]), k.shared("v", I32, [4, 32]));
            k.role("first", 1, |k| {
                k.fill(v, 1);
                k.parallel([4, 32], |k, [i, j]| {
                    if form == 1 {
                        k.store(z, (&i, &j), y.at((&i, &j)));
                    } else {
                        k.store(y, (&i, &j), 4);
                        k.store(z, (i, j), 4);
                    }
                });
                if form == 2 {
                    k.parallel([1], |k, _| k.atomic_add(z, (0, 0), 1).order(MemoryOrder::AcquireRelease));
                }
                k.atomic_add(z, v).variant(variant);
            });
            k.role("second", 1, |k| {
                k.fill(u, 1);
                if form == 1 {
                    k.copy_async(y, u).variant(variant);
                } else {
                    k.atomic_add(y, u).variant(variant);
                }
            });
        });
        let one_more = |at: i64| if form == 2 && at == 0 { 6.0 } else { 5.0 };
        let outputs = match form {
            1 => [tensor(I32, &[4, 32], |_| 1.0), tensor(I32, &[4, 32], |at| (at + 1) as f64)],
            _ => [tensor(I32, &[4, 32], |_| 5.0), tensor(I32, &[4, 32], one_more)],
        };
        let inputs = [tensor(I32, &[4, 32], |at| at as f64), tensor(I32, &[4, 32], |_| 0.0)];
        check_all_in_schedules(&kernel, &[], &inputs, &outputs);
    }
}

/// No fence orders the copy engine of one CTA and the threads of another.
#[test]
fn threads_add_where_threads_of_other_ctas_do() {
    let mixed = |ctas: i64, variant: &str| {
        kernel("mixed", |k| {
            let y = k.accumulator("y", I32, [64]);
            k.grid([ctas]);
            k.threads(64);
            let tile = k.shared("tile", I32, [64]);
            let held = k.fragment("held", I32, [64]);
            k.fill(tile, 1);
            k.fill(held, 2);
            let added = k.atomic_add(y, tile);
            if !variant.is_empty() {
                added.variant(variant);
            }
            k.atomic_add(y, held);
        })
    };
    assert_eq!(starts(&mixed(1, "")), ["bulk_add_s32"]);
    for ctas in [1, 2, 3] {
        assert_eq!(starts(&mixed(ctas, "")).len(), usize::from(ctas == 1));
        check_all_in_schedules(&mixed(ctas, ""), &[], &[], &[tensor(I32, &[64], |_| (3 * ctas) as f64)]);
    }
    let found = compile(mixed(2, "bulk"), &Options::new(Target::Sm100a)).expect_err("the engine cannot");
    assert_eq!(
        found[0].notes[0],
        "bulk: threads of other CTAs may change `y` at the same time, by atomic operations; accepted: a tensor that only the \
         copy engine changes, or a grid of one CTA"
    );
}
