//! A thread that holds an element in several registers does each iteration once.

use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

fn twice() -> Layout {
    "S[32:1@tx] + R[2:1@reg]".parse().expect("a layout")
}

fn numbers(at: i64) -> f64 {
    at as f64 + 1.0
}

#[test]
fn an_update_is_done_once() {
    let update = kernel("update", |k| {
        let (a, b) = (k.input("a", I32, [32]), k.output("b", I32, [32]));
        k.threads(32);
        let f = k.fragment("f", I32, ([32], twice()));
        k.copy(f, a);
        k.parallel([32], |k, [i]| {
            k.store(f, (i,), f.at((i,)) + 1);
        });
        k.parallel([32], |k, [i]| {
            k.store(f, (i,), f.at((i,)) + f.at((i,)));
        });
        k.copy(b, f);
    });
    computes(&update, &[tensor(I32, &[32], numbers)], &[tensor(I32, &[32], |at| (numbers(at) + 1.0) * 2.0)]);
}

#[test]
fn a_conditional_update_is_done_once() {
    let update = kernel("update", |k| {
        let (a, b) = (k.input("a", I32, [32]), k.output("b", I32, [32]));
        k.threads(32);
        let f = k.fragment("f", I32, ([32], twice()));
        k.copy(f, a);
        k.parallel([32], |k, [i]| {
            k.if_(f.at((i,)).gt(20), |k| {
                k.store(f, (i,), f.at((i,)) - 20);
            });
        });
        k.copy(b, f);
    });
    let input = tensor(I32, &[32], |at| at as f64 * 2.0);
    let after = tensor(I32, &[32], |at| if at > 10 { at as f64 * 2.0 - 20.0 } else { at as f64 * 2.0 });
    computes(&update, &[input], &[after]);
}

#[test]
fn an_atomic_addition_in_a_loop_with_a_layout_is_done_once() {
    let added = kernel("added", |k| {
        let (a, b) = (k.input("a", I32, [32]), k.output("b", I32, [32]));
        k.threads(32);
        let s = k.shared("s", I32, [32]);
        k.fill(s, 0);
        let adds = k.parallel([32], |k, [i]| {
            k.atomic_add(s, (i,), a.at((i,)));
        });
        adds.layout(twice());
        k.copy(b, s);
    });
    computes(&added, &[tensor(I32, &[32], numbers)], &[tensor(I32, &[32], numbers)]);
}

#[test]
fn an_update_of_shared_memory_may_have_such_a_layout() {
    let update = kernel("update", |k| {
        let (a, b) = (k.input("a", I32, [32]), k.output("b", I32, [32]));
        k.threads(32);
        let s = k.shared("s", I32, [32]);
        k.copy(s, a);
        let updates = k.parallel([32], |k, [i]| {
            k.store(s, (i,), s.at((i,)) + 1);
        });
        updates.layout(twice());
        k.copy(b, s);
    });
    computes(&update, &[tensor(I32, &[32], numbers)], &[tensor(I32, &[32], |at| numbers(at) + 1.0)]);
}

/// Other statements read the first register only, so whatever the second holds does not matter.
#[test]
fn what_follows_an_update_reads_it() {
    let update = kernel("update", |k| {
        let (a, b) = (k.input("a", I32, [4, 32]), k.output("b", I32, [4]));
        k.threads(32);
        let layout: Layout = "S[(4,32):(1@reg,1@tx)] + R[2:4@reg]".parse().expect("a layout");
        let f = k.fragment("f", I32, ([4, 32], layout));
        let r = k.fragment("r", I32, [4]);
        k.copy(f, a);
        k.parallel([4, 32], |k, [i, j]| {
            k.store(f, (i, j), f.at((i, j)) * 3);
        });
        k.reduce(Sum, r, f, 1);
        k.parallel([4], |k, [i]| {
            k.store(r, (i,), r.at((i,)) * 2);
        });
        k.copy(b, r);
    });
    let input = tensor(I32, &[4, 32], numbers);
    let sum = |row: i64| (0..32).map(|at| numbers(row * 32 + at) * 6.0).sum();
    computes(&update, &[input], &[tensor(I32, &[4], sum)]);
}
