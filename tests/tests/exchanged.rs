//! Values that go through memory, where NVRTC might use what a thread itself stored in place of what is there.

use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

fn number(at: i64) -> f64 {
    (at * 7 % 23) as f64
}

/// Other threads store to an output between a thread's own store and its load.
#[test]
fn an_output_that_other_threads_store_to_is_read_again() {
    for dtype in [I32, F32, F16] {
        let shifted = kernel("shifted", |k| {
            let x = k.input("x", dtype, [64]);
            let (y, z) = (k.output("y", dtype, [64]), k.output("z", dtype, [64]));
            k.threads(64);
            k.parallel([64], |k, [i]| k.store(y, (&i,), x.at((&i,)))).vector(1);
            k.parallel([57], |k, [i]| k.store(y, (&i + 7,), x.at((&i,)) + 1));
            k.parallel([64], |k, [i]| k.store(z, (&i,), y.at((&i,)))).vector(1);
        });
        let after = |at: i64| if at < 7 { number(at) } else { number(at - 7) + 1.0 };
        let [y, z] = [(); 2].map(|()| tensor(dtype, &[64], after));
        computes(&shifted, &[tensor(dtype, &[64], number)], &[y, z]);
    }
}

#[test]
fn a_stencil_in_two_outputs_takes_turns() {
    let stencil = kernel("stencil", |k| {
        let x = k.input("x", F32, [96]);
        let (y, w) = (k.output("y", F32, [96]), k.output("w", F32, [96]));
        k.threads(96);
        k.copy(y, x);
        k.copy(w, x);
        k.unroll("t", 0..3, |k, _| {
            k.parallel([94], |k, [i]| k.store(w, (&i + 1,), y.at((&i,)) - y.at((&i + 2,))));
            k.parallel([94], |k, [i]| k.store(y, (&i + 1,), w.at((&i,)) - w.at((&i + 2,))));
        });
    });
    let mut numbers: [Vec<f64>; 2] = [(); 2].map(|()| (0..96).map(number).collect());
    for turn in 0..6 {
        let [y, w] = &mut numbers;
        let (from, to) = if turn % 2 == 0 { (y, w) } else { (w, y) };
        (1..95).for_each(|at| to[at] = from[at - 1] - from[at + 1]);
    }
    let outputs = numbers.map(|of| tensor(F32, &[96], |at| of[at as usize]));
    computes(&stencil, &[tensor(F32, &[96], number)], &outputs);
}

/// Only outputs that one op stores to, and nothing reads, are `__restrict__`.
#[test]
fn outputs_with_one_writer_are_restrict() {
    let parameters = |writes_twice: bool| {
        let twice = kernel("twice", |k| {
            let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
            k.threads(64);
            k.copy(y, x);
            if writes_twice {
                k.copy(y, x);
            }
        });
        let artifact = tilewright::compile::compile(twice, &tilewright::compile::Options::new(Target::Sm100a));
        let cuda = artifact.expect("it compiles").cuda().to_string();
        cuda.lines().find(|line| line.starts_with("twice(")).unwrap_or_default().to_string()
    };
    assert_eq!(parameters(false), "twice(const float* __restrict__ x, float* __restrict__ y) {");
    assert_eq!(parameters(true), "twice(const float* __restrict__ x, float* y) {");
}

/// A store to a buffer rounds a product, also where the thread that stored it adds it to something.
#[test]
fn a_product_that_was_stored_is_not_fused_with_a_sum() {
    for dtype in [F32, F64] {
        let stored = kernel("stored", |k| {
            let [a, b, d] = ["a", "b", "d"].map(|name| k.input(name, dtype, [64]));
            let y = k.output("y", dtype, [64]);
            k.threads(32);
            k.no_contraction();
            let s = k.shared("s", dtype, [64]);
            k.parallel([64], |k, [i]| k.store(s, (&i,), a.at((&i,)) * b.at((&i,))));
            k.parallel([64], |k, [i]| k.store(y, (&i,), s.at((&i,)) + d.at((&i,))));
        });
        let third = |at: i64| 1.0 + number(at) / 3.0;
        let rounded = |value: f64| if dtype == F32 { f64::from(value as f32) } else { value };
        let of = |at: i64| {
            let factor = rounded(third(at));
            rounded(rounded(factor * rounded(third(at + 1))) - rounded(third(at + 2)))
        };
        let inputs = [
            tensor(dtype, &[64], third),
            tensor(dtype, &[64], |at| third(at + 1)),
            tensor(dtype, &[64], |at| -third(at + 2)),
        ];
        computes(&stored, &inputs, &[tensor(dtype, &[64], of)]);
    }
}

/// Registers in descending order in a loop, which NVRTC for `sm_90a` gets wrong if they are written `i*(-4) + 5`.
#[test]
fn elements_in_another_order_inside_a_loop() {
    let turned = kernel("turned", |k| {
        let (x, y) = (k.input("x", F16, [2, 2, 32, 4]), k.output("y", F16, [2, 2, 32, 4]));
        k.threads(32);
        k.serial("v", 0..2, |k, v| {
            k.parallel([2, 32, 4], |k, [h, i, j]| {
                k.store(y, (&v, &h, &i, &j), x.at((&v, 1 - &h, &i, &j ^ 1)));
            });
        });
    });
    let of = |at: i64| number(at / 256 * 256 + (1 - at / 128 % 2) * 128 + at % 128 / 4 * 4 + ((at % 4) ^ 1));
    computes(&turned, &[tensor(F16, &[2, 2, 32, 4], number)], &[tensor(F16, &[2, 2, 32, 4], of)]);
}
