//! Values that one instruction computes for two neighbours, and statements that stand once for all of them.

use tilewright::compile::{Options, compile};
use tilewright::ir::Target;
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, computes, tensor};

const COUNT: i64 = 256;

fn cuda(kernel: &Kernel, target: Target) -> String {
    compile(kernel.clone(), &Options::new(target)).expect("the kernel is right").cuda().to_string()
}

/// y = f(x) for 256 elements of f32, each thread with 8 neighbours.
fn of_elements(dtype: DType, f: impl Fn(&mut Elements, Value) -> Value) -> Kernel {
    kernel("of_elements", |k| {
        let x = k.input("x", F32, [COUNT]);
        let y = k.output("y", dtype, [COUNT]);
        k.threads(32);
        k.parallel([COUNT], |k, [i]| {
            let x = k.named("element", x.at((i,)));
            let value = f(k, x);
            k.store(y, (i,), value);
        });
    })
}

fn number(at: i64) -> f64 {
    (at * 7 % 61 - 30) as f64 / 8.0
}

fn inputs() -> [HostTensor; 1] {
    [tensor(F32, &[COUNT], number)]
}

#[test]
fn sums_products_and_differences_are_pairs_on_blackwell_only() {
    let kernel = of_elements(F32, |_, x| (x * 1.5 - 2.0).max(0.0) * x + 3.0);
    let y = tensor(F32, &[COUNT], |at| (number(at) * 1.5 - 2.0).max(0.0) * number(at) + 3.0);
    computes(&kernel, &inputs(), &[y]);
    let (blackwell, hopper) = (cuda(&kernel, Target::Sm100a), cuda(&kernel, Target::Sm90a));
    assert!(blackwell.contains("__ffma2_rn(") && !hopper.contains("_rn(pair"), "{blackwell}\n{hopper}");
}

#[test]
fn a_difference_of_registers_is_exact() {
    let kernel = kernel("differences", |k| {
        let [a, b] = ["a", "b"].map(|name| k.input(name, F32, [COUNT]));
        let y = k.output("y", F32, [COUNT]);
        k.threads(32);
        k.parallel([COUNT], |k, [i]| k.store(y, (i,), a.at((i,)) - b.at((i,))));
    });
    // Zeros of both signs, infinities, and numbers whose difference is rounded.
    let numbers = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, 1e-40, 3.0, f64::from(1.0e7f32)];
    let [a, b] = [1, 8].map(|step| move |at: i64| numbers[(at / step % 8) as usize]);
    let y = tensor(F32, &[COUNT], |at| f64::from(a(at) as f32 - b(at) as f32));
    computes(&kernel, &[tensor(F32, &[COUNT], a), tensor(F32, &[COUNT], b)], &[y]);
    assert!(cuda(&kernel, Target::Sm100a).contains("twice(-1.0f)"));
}

#[test]
fn exponentials_are_those_of_single_values() {
    let kernel = of_elements(F32, |_, x| (x - 1.0).fast_exp());
    let y = tensor(F32, &[COUNT], |at| (number(at) - 1.0).exp());
    check(&kernel, &[], &inputs(), &[y], Tolerance { absolute: 0.0, relative: 1e-6 });
    let [blackwell, hopper] = [Target::Sm100a, Target::Sm90a].map(|target| cuda(&kernel, target));
    assert!(blackwell.contains("twice(1.442695f)") && blackwell.contains("exp2_approx(both.x)"), "{blackwell}");
    assert!(hopper.contains("__expf("), "{hopper}");
}

#[test]
fn powers_of_two_on_both_targets() {
    let kernel = of_elements(F32, |_, x| x.exp2());
    let y = tensor(F32, &[COUNT], |at| number(at).exp2());
    check(&kernel, &[], &inputs(), &[y], Tolerance { absolute: 0.0, relative: 1e-6 });
    assert!(cuda(&kernel, Target::Sm90a).contains("exp2_approx("));
}

#[test]
fn halves_of_a_word_are_rounded_together() {
    let kernel = of_elements(F16, |_, x| (x * 0.25 + 1.0).cast(F16));
    let y = tensor(F16, &[COUNT], |at| number(at) * 0.25 + 1.0);
    computes(&kernel, &inputs(), &[y]);
    for target in [Target::Sm100a, Target::Sm90a] {
        let text = cuda(&kernel, target);
        assert!(text.contains(" = to_f16x2(") && !text.contains(" to_f16("), "{text}");
    }
}

#[test]
fn a_value_that_needs_its_neighbour_is_computed_after_it() {
    // The running sum of eight registers: each needs the one before.
    let kernel = kernel("running", |k| {
        let x = k.input("x", F32, [8]);
        let y = k.output("y", F32, [8]);
        k.threads(32);
        let f = k.fragment("f", F32, [8]);
        k.copy(f, x);
        k.unroll("s", 1..8, |k, s| {
            k.each_thread(|k| k.store(f, (s,), f.at((s,)) * 2.0 + f.at((s - 1,))));
        });
        k.copy(y, f);
    });
    let mut sums = [1.0; 8];
    for at in 1..8 {
        sums[at] = (at as f64 + 1.0) * 2.0 + sums[at - 1];
    }
    computes(&kernel, &[tensor(F32, &[8], |at| (at + 1) as f64)], &[tensor(F32, &[8], |at| sums[at as usize])]);
}

#[test]
fn quotients_by_powers_of_two_are_products() {
    let kernel = of_elements(F32, |_, x| x / 64.0 + x / 3.0);
    let y = tensor(F32, &[COUNT], |at| {
        let x = number(at) as f32;
        f64::from(x / 64.0 + x / 3.0)
    });
    computes(&kernel, &inputs(), &[y]);
    let text = cuda(&kernel, Target::Sm90a);
    assert!(text.contains("0.015625f") && !text.contains("64.0f"), "{text}");
}

#[test]
fn maxima_of_three_on_blackwell() {
    let kernel = kernel("row_max", |k| {
        let x = k.input("x", F32, [32, 16]);
        let y = k.output("y", F32, [32]);
        k.threads(32);
        let v = k.fragment("v", F32, [32, 16]);
        let max = k.fragment("max", F32, [32]);
        k.copy(v, x);
        k.reduce(Max, max, v, 1);
        k.copy(y, max);
    });
    let x = |at: i64| if at % 5 == 0 { f64::NAN } else { number(at * 11) };
    let y = tensor(F32, &[32], |row| (0..16).map(|at| x(row * 16 + at)).fold(f64::NAN, f64::max));
    computes(&kernel, &[tensor(F32, &[32, 16], x)], &[y]);
    assert!(cuda(&kernel, Target::Sm100a).contains(" = max3("));
}

#[test]
fn zeros_of_both_signs_are_two_constants() {
    let kernel = kernel("zeros", |k| {
        let x = k.input("x", F32, [2]);
        let y = k.output("y", F32, [2]);
        k.threads(32);
        let [u, v] = ["u", "v"].map(|name| k.fragment(name, F32, [2]));
        k.copy(u, x);
        k.each_thread(|k| {
            k.store(v, (0,), u.at((0,)) * 0.0);
            k.store(v, (1,), u.at((1,)) * -0.0);
        });
        k.copy(y, v);
    });
    computes(&kernel, &[tensor(F32, &[2], |_| 1.0)], &[tensor(F32, &[2], |at| if at == 0 { 0.0 } else { -0.0 })]);
}
