//! Atomic operations on elements of shared and global memory.

use tilewright::compile::{Options, compile};
use tilewright::dsl::AtomicRef;
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

type Change = for<'k> fn(&mut Elements<'k>, Buffer, Expr, Value) -> AtomicRef<'k>;
type Combine = fn(i64, i64) -> i64;

const OPERATIONS: [(&str, Change, Combine); 6] = [
    ("atomicAdd", |k, to, at, value| k.atomic_add(to, (at,), value), |a, b| a + b),
    ("atomicMin", |k, to, at, value| k.atomic_min(to, (at,), value), i64::min),
    ("atomicMax", |k, to, at, value| k.atomic_max(to, (at,), value), i64::max),
    ("atomicAnd", |k, to, at, value| k.atomic_and(to, (at,), value), |a, b| a & b),
    ("atomicOr", |k, to, at, value| k.atomic_or(to, (at,), value), |a, b| a | b),
    ("atomicXor", |k, to, at, value| k.atomic_xor(to, (at,), value), |a, b| a ^ b),
];

/// Every element of `x` changes one of eight elements: of shared memory first, then of all CTAs.
fn changed(dtype: DType, change: Change) -> Kernel {
    kernel("changed", |k| {
        let n = k.size("n");
        let x = k.input("x", dtype, (n,));
        let all = k.inout("all", dtype, [8]);
        let [block] = k.grid([n.ceil_div(128)]);
        k.threads(64);
        let own = k.shared("own", dtype, [8]);
        k.parallel([8], |k, [i]| k.store(own, (i,), x.at((i,))));
        k.parallel([128], |k, [i]| {
            let at = block * 128 + i;
            k.if_(at.lt(n), |k| change(k, own, i % 8, x.at((at,))));
        });
        k.parallel([8], |k, [i]| change(k, all, i, own.at((i,))));
    })
}

#[test]
fn elements_are_combined_in_any_order() {
    let number = |at: i64| (at * 2_654_435 + 12_345) % 65_521 + 256;
    for dtype in [I32, U32, I64, U64] {
        let sign = if matches!(dtype, I32 | I64) { -1 } else { 1 };
        let number = move |at: i64| if at % 3 == 0 { sign * number(at) } else { number(at) };
        for (name, change, combine) in OPERATIONS {
            let n = 200;
            let kernel = changed(dtype, change);
            let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right");
            assert!(artifact.cuda().matches(&format!("{name}(")).count() > 1, "{}", artifact.cuda());
            let all = tensor(dtype, &[8], |i| {
                let of_cta = |cta: i64| {
                    let own = (cta * 128..n.min(cta * 128 + 128)).filter(|at| at % 8 == i).map(number);
                    own.fold(number(i), combine)
                };
                combine(combine(7, of_cta(0)), of_cta(1)) as f64
            });
            let inputs = [tensor(dtype, &[n], |at| number(at) as f64), tensor(dtype, &[8], |_| 7.0)];
            check(&kernel, &[("n", n)], &inputs, &[all], Tolerance::EXACT);
        }
    }
}

/// Up to 16 bytes of neighbouring elements are one instruction, at the edge fewer.
#[test]
fn neighbours_are_added_together() {
    let of_halves =
        [(F16, ["atomic_add_f16x8(", "atomic_add_f16x4("]), (BF16, ["atomic_add_bf16x8(", "atomic_add_bf16x4("])];
    for (dtype, wide) in of_halves.into_iter().chain([(F32, ["atomic_add_x4("; 2])]) {
        for (unit, wide) in [8, 1].into_iter().zip(wide) {
            let kernel = kernel("rows", |k| {
                let (m, n) = (k.size("m").max(1 << 12), k.size("n").multiple_of(unit));
                let x = k.input("x", dtype, (m, n));
                let y = k.accumulator("y", dtype, (n,));
                let [bx, by] = k.grid([n.ceil_div(512), m.into()]);
                k.threads(64);
                let held = k.fragment("held", dtype, [512]);
                k.copy(held, x.sub((by, at(bx * 512, 512))));
                k.atomic_add(y.sub((at(bx * 512, 512),)), held);
            });
            let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right");
            assert!(artifact.cuda().contains(wide), "{}", artifact.cuda());
            for (m, n) in [(1, unit), (3, 520), (5, 1000 + unit)] {
                let x = |at: i64| (at * 7 % 13) as f64 - 6.0;
                let y = tensor(dtype, &[n], |at| (0..m).map(|row| x(row * n + at)).fold(0.0, |sum, more| sum + more));
                check(&kernel, &[("m", m), ("n", n)], &[tensor(dtype, &[m, n], x)], &[y], Tolerance::EXACT);
            }
        }
    }
}

#[test]
fn what_lies_beyond_the_edge_changes_nothing() {
    let kernel = kernel("least", |k| {
        let n = k.size("n");
        let x = k.input("x", I32, (n,));
        let least = k.inout("least", I32, [1]);
        let [block] = k.grid([n.ceil_div(64)]);
        k.threads(32);
        let tile = k.fragment("tile", I32, [64]);
        k.copy(tile, x.sub((at(block * 64, 64),)));
        k.parallel([64], |k, [i]| k.atomic_min(least, (0,), tile.at((i,))));
    });
    for n in [1, 63, 64, 100] {
        let inputs = [tensor(I32, &[n], |at| (at + 5) as f64), tensor(I32, &[1], |_| 1000.0)];
        check(&kernel, &[("n", n)], &inputs, &[tensor(I32, &[1], |_| 5.0)], Tolerance::EXACT);
    }
}

#[test]
fn different_operations_on_one_element_are_ordered_by_a_barrier() {
    let two = |apart: bool| {
        kernel("two", move |k| {
            let x = k.input("x", I32, [64]);
            let y = k.output("y", I32, [1]);
            k.threads(64);
            let s = k.shared("s", I32, [1]);
            k.fill(s, 0);
            if apart {
                k.parallel([64], |k, [i]| k.atomic_add(s, (0,), x.at((i,))));
                k.parallel([64], |k, [i]| k.atomic_max(s, (0,), x.at((i,)) * 100));
            } else {
                k.parallel([64], |k, [i]| {
                    k.atomic_add(s, (0,), x.at((i,)));
                    k.atomic_max(s, (0,), x.at((i,)) * 100);
                });
            }
            k.copy(y, s);
        })
    };
    let artifact = compile(two(true), &Options::new(Target::Sm100a)).expect("the kernel is right");
    let barriers = artifact.plans().iter().map(|plan| plan.barriers.len()).collect::<Vec<_>>();
    // The fill, both loops, and the copy.
    assert_eq!(barriers, [0, 1, 1, 1]);
    let x = tensor(I32, &[64], |at| (at % 7) as f64);
    let sum: i64 = (0..64).map(|at| at % 7).sum();
    check(&two(true), &[], &[x], &[tensor(I32, &[1], |_| sum.max(600) as f64)], Tolerance::EXACT);
    let found = compile(two(false), &Options::new(Target::Sm100a)).expect_err("the order matters");
    let said = "error[K0237]: two iterations change the same element through `s[0]` by different atomic operations";
    assert_eq!(found[0].to_string(), said);
}

/// What is computed from beyond the edge of a tensor changes nothing, whether the tile is in registers or in shared memory.
#[test]
fn tiles_over_an_edge_change_what_lies_inside() {
    for in_shared in [false, true] {
        let kernel = kernel("edge", |k| {
            let n = k.size("n").multiple_of(8);
            let (x, y) = (k.input("x", F32, (n,)), k.accumulator("y", F32, [32]));
            let [block] = k.grid([n.ceil_div(32)]);
            k.threads(32);
            let (held, tile) = (k.fragment("held", F32, [32]), k.shared("tile", F32, [32]));
            k.copy(held, x.sub((at(block * 32, 32),)));
            k.map(held, |[i]| held.at((i,)) + 1.0);
            if in_shared {
                k.copy(tile, held);
            }
            k.atomic_add(y, if in_shared { tile } else { held });
        });
        for n in [8, 40, 64] {
            let sum =
                |i: i64| (0..).map(|t| t * 32 + i).take_while(|at| *at < n).map(|at| at as f64 + 1.0).sum::<f64>();
            let x = tensor(F32, &[n], |at| at as f64);
            check(&kernel, &[("n", n)], &[x], &[tensor(F32, &[32], |i| sum(i) + 0.0)], Tolerance::EXACT);
        }
    }
}
