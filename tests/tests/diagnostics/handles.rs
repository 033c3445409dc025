//! Handles of another kernel, and what is said of ops and sizes that do not take it.

use super::assert_mistake;
use tilewright::prelude::*;

#[test]
fn elements_of_another_kernel() {
    let mut kept = None;
    let _ = kernel("first", |k| {
        k.input("a", F32, [8]);
        k.input("b", F32, [8]);
        kept = Some(k.output("x", F32, [8]));
    });
    let x = kept.expect("a buffer");
    let kernel = kernel("second", |k| {
        let y = k.output("y", F32, [8]);
        k.parallel([8], |k, [i]| {
            k.store(x, (&i,), 1.0);
            k.store(y, (&i,), x.at((&i,)) + 1.0);
            k.atomic_add(x, (&i,), 1.0);
            let n = k.named("n", -y.at((x.at((0,)),)));
            k.if_(x.at((&i,)).gt(0.0), |k| {
                k.store(y, (&i,), n);
            });
        });
        k.if_(x.at((0,)).lt(0.0), |k| {
            k.fill(y, 0.0);
        });
        k.view("v", x, [4, 2]);
    });
    // A handle beyond the buffers of the kernel has no name.
    assert!(kernel.to_string().contains("?[i] = 1"), "{kernel}");
    assert_mistake("elements_of_another_kernel", kernel);
}

#[test]
fn a_buffer_of_the_kernel_before() {
    let mut kept: Option<Buffer> = None;
    let mut build = || {
        kernel("k", |k| {
            let y = k.output("y", F32, [8]);
            k.fill(*kept.get_or_insert(y), 0.0);
        })
    };
    let _ = build();
    assert_mistake("a_buffer_of_the_kernel_before", build());
}

#[test]
fn a_named_value_of_another_kernel() {
    let mut kept = None;
    let _ = kernel("first", |k| {
        k.parallel([8], |k, [i]| kept = Some(k.named("n", i * 2)));
    });
    let n = kept.expect("a value");
    let kernel = kernel("second", |k| {
        let y = k.output("y", I32, [8]);
        k.parallel([8], |k, [i]| {
            k.named("n", 1);
            k.store(y, (&i,), n);
        });
    });
    assert_mistake("a_named_value_of_another_kernel", kernel);
}

#[test]
fn a_size_of_another_kernel() {
    let mut kept = None;
    let _ = kernel("first", |k| kept = Some(k.size("n").max(64)));
    let n = kept.expect("a size");
    let kernel = kernel("second", |k| {
        let b = k.output("b", F32, (&n, 64));
        k.grid([n.ceil_div(32)]);
        k.fill(b, 0.0);
    });
    assert_mistake("a_size_of_another_kernel", kernel);
}

#[test]
fn what_an_op_does_not_take() {
    let told = Gemm { transpose_a: false, transpose_b: false, policy: WarpPolicy::Square, clear: true, tf32: false };
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [8]);
        let b = k.output("b", F32, [8]);
        k.copy(b, a).accumulate();
        k.fill(b, 0.0).tf32();
        k.atomic_add(b, a).with(told);
    });
    assert_mistake("what_an_op_does_not_take", kernel);
}

#[test]
fn sizes_below_what_divides_them() {
    let kernel = kernel("k", |k| {
        let m = k.size("m").multiple_of(8).max(4);
        let n = k.size("n").max(7).multiple_of(16);
        let l = k.size("l").max(0);
        k.output("b", F32, (&l, &m, &n));
    });
    assert_mistake("sizes_below_what_divides_them", kernel);
}

#[test]
fn a_value_of_another_kernel() {
    let mut strange = None;
    let _ = kernel("first", |k| {
        let a = k.input("a", F32, [8]);
        k.parallel([8], |_, [i]| strange = Some((i, a.at((i,)))));
    });
    let (index, value) = strange.expect("the first kernel was built");
    let kernel = kernel("second", |k| {
        let b = k.output("b", F32, [8]);
        k.parallel([8], |k, [i]| {
            k.store(b, (i,), value * 2.0);
            k.store(b, (index,), 1.0);
        });
    });
    assert_mistake("value_of_another_kernel", kernel);
}
