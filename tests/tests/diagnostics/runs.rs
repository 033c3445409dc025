//! Diagnostics for valid kernels that do not run as intended: elements that are never written, and too few registers
//! per thread in a kernel.

use super::assert_rendered;
use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Resources, spill_error};

fn compiled(kernel: Kernel) -> Artifact {
    compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel compiles")
}

#[test]
fn an_element_that_a_loop_leaves_out() {
    let short = compiled(kernel("k", |k| {
        let a = k.input("a", F32, [4, 32]);
        let b = k.output("b", F32, [4, 32]);
        k.serial("s", 0..2, |k, s| {
            k.copy(b.sub((&s, ..)), a.sub((&s, ..)));
        });
    }));
    assert_rendered("an_element_that_a_loop_leaves_out", &[short.unwritten_element_error(1, 96)]);
}

#[test]
fn an_element_that_the_grid_leaves_out() {
    let short = compiled(kernel("k", |k| {
        let n = k.size("n").multiple_of(32).max(4096);
        let y = k.output("y", F32, (&n,));
        let [bx] = k.grid([n.ceil_div(64)]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&bx * 32 + i,), 0.0);
        });
    }));
    let bound = short.for_sizes(&[("n", 128)]).expect("a size of the kernel");
    assert_rendered("an_element_that_the_grid_leaves_out", &[bound.unwritten_element_error(0, 64)]);
}

#[test]
fn an_element_that_a_condition_leaves_out() {
    let partly = compiled(kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.if_(x.at((&i,)).gt(0.0), |k| {
                k.store(y, (&i,), 1.0);
            });
        });
    }));
    assert_rendered("an_element_that_a_condition_leaves_out", &[partly.unwritten_element_error(1, 7)]);
}

#[test]
fn an_output_that_nothing_writes() {
    let nothing = compiled(kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        k.output("z", F32, [32]);
        k.fill(y, 0.0);
    }));
    assert_rendered("an_output_that_nothing_writes", &[nothing.unwritten_element_error(1, 0)]);
}

#[test]
fn fragments_that_take_more_registers_than_there_are() {
    let wide = compiled(kernel("k", |k| {
        k.threads(512);
        let x = k.input("x", F32, [64, 512]);
        let y = k.output("y", F32, [64, 512]);
        let first = k.fragment("first", F32, S([64, 512], [1 * REG, 1 * TX]));
        let second = k.fragment("second", F32, S([64, 512], [1 * REG, 1 * TX]));
        k.copy(first, x);
        k.copy(second, x);
        k.copy(y, first);
        k.copy(y, second);
    }));
    let padded = compiled(kernel("k", |k| {
        let x = k.input("x", F32, [4, 32]);
        let y = k.output("y", F32, [4, 32]);
        let padded = k.fragment("padded", F32, S([4, 32], [100 * REG, 1 * LANEID]));
        k.copy(padded, x);
        k.copy(y, padded);
    }));
    let found = [wide.warnings(), padded.warnings()].concat();
    assert_rendered("fragments_that_take_more_registers_than_there_are", &found);
}

#[test]
fn fragments_that_follow_each_other_share_registers() {
    let one_by_one = compiled(kernel("k", |k| {
        k.threads(512);
        let x = k.input("x", F32, [64, 512]);
        let y = k.output("y", F32, [64, 512]);
        for name in ["first", "second"] {
            let held = k.fragment(name, F32, S([64, 512], [1 * REG, 1 * TX]));
            k.copy(held, x);
            k.copy(y, held);
        }
    }));
    assert!(one_by_one.warnings().is_empty());
    assert_eq!(one_by_one.live_fragments().iter().map(|held| held.registers).collect::<Vec<_>>(), [64]);
}

#[test]
fn a_kernel_that_spills() {
    let artifact = compiled(kernel("k", |k| {
        let x = k.input("x", F32, [4, 32]);
        let y = k.output("y", F32, [4, 32]);
        let held = k.fragment("held", F32, S([4, 32], [1 * REG, 1 * LANEID]));
        k.copy(held, x);
        k.copy(y, held);
    }));
    let fits = Resources {
        kernel: "k".to_string(),
        registers: 255,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        stack_bytes: 96,
        shared_bytes: 0,
        barriers: 0,
    };
    assert_eq!(spill_error(&artifact, &fits), None);
    let spilled = Resources { spill_store_bytes: 72, spill_load_bytes: 80, ..fits };
    let found: Vec<_> = spill_error(&artifact, &spilled).into_iter().collect();
    assert_rendered("a_kernel_that_spills", &found);
}

#[test]
fn a_view_of_numbers_that_is_larger_than_the_tensor() {
    let artifact = compiled(kernel("k", |k| {
        let n = k.size("n").max(100);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [5, 4]);
        let v = k.view("v", x, [5, 4]);
        k.copy(y, v);
    }));
    let bound = |n| artifact.clone().for_sizes(&[("n", n)]);
    assert!(bound(20).is_ok() && bound(19).is_err());
    assert_rendered("view_of_numbers_at_launch", &bound(10).expect_err("a view too far"));
}

#[test]
fn tensors_that_sizes_make_empty_or_that_share_elements() {
    let rounded_down = compiled(kernel("k", |k| {
        let n = k.size("n").max(4096);
        let x = k.input("x", F32, ([n / 32, Expr::from(1)], [Expr::from(1), Expr::from(1)]));
        let y = k.output("y", F32, ([Expr::from(2), Expr::from(32)], [n / 128, Expr::from(1)]));
        k.parallel([32], |k, [i]| {
            k.store(y, (0, i), x.at((0, 0)));
        });
    }));
    let bound = |n| rounded_down.clone().for_sizes(&[("n", n)]);
    let fits = bound(4096).expect("an extent of 128 and a stride of 32");
    assert_eq!((&fits.parameters()[0].shape[..], &fits.parameters()[1].shape[..]), (&[128, 1][..], &[2, 32][..]));
    let found: Vec<_> = [bound(16).expect_err("an extent of 0"), bound(64).expect_err("a stride of 0")].concat();
    assert_rendered("tensors_that_do_not_go_with_the_sizes", &found);
}

#[test]
fn a_tensor_whose_extent_is_a_difference_of_sizes() {
    let difference = compiled(kernel("k", |k| {
        let (m, n) = (k.size("m").max(1024), k.size("n").max(1024));
        let x = k.input("x", F32, ([m - n], [Expr::from(1)]));
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (i,), x.at((0,)));
        });
    }));
    let bound = |m, n| difference.clone().for_sizes(&[("m", m), ("n", n)]);
    assert_eq!(bound(64, 32).map(|artifact| artifact.parameters()[0].shape.clone()), Ok(vec![32]));
    let told = bound(32, 64).map(|_| ()).expect_err("an extent below 0");
    assert_eq!(told[0].to_string(), "error[R0617]: for these sizes `x` has extent -32 in dimension 0");
}

#[test]
fn an_element_that_exchanged_indices_leave_out() {
    let exchanged = compiled(kernel("k", |k| {
        let (a, b) = (k.input("a", F32, [4, 16]), k.output("b", F32, [16, 4]));
        k.parallel([4, 16], |k, [i, j]| k.store(b, (i, j), a.at((i, j))));
    }));
    assert_rendered("an_element_that_exchanged_indices_leave_out", &[exchanged.unwritten_element_error(1, 16)]);
}
