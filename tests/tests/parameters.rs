//! Parameters that are updated in place, that begin at 0, and that are numbers.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, HostTensor, Tolerance, run};
use tilewright_tests::pages::{check, compiled, tensor};
use tilewright_tests::toolchain::built_or_skipped;

/// A step down a gradient, the sum of the new values, and whether the step was taken.
fn step() -> Kernel {
    kernel("step", |k| {
        let n = k.size("n");
        let gradient = k.input("gradient", F32, (n,));
        let x = k.inout("x", F32, (n,));
        let total = k.accumulator("total", F32, [1]);
        let (rate, half) = (k.scalar("rate", F32), k.scalar("half", F16));
        let [block] = k.grid([n.ceil_div(64)]);
        k.threads(64);
        k.if_(rate.gt(0.0), |k| {
            k.parallel([64], |k, [i]| {
                let at = block * 64 + i;
                let new = k.named("new", x.at((at,)) - rate * half.cast(F32) * gradient.at((at,)));
                k.store(x, (at,), new);
                k.atomic_add(total, (0,), new);
            });
        });
    })
}

fn inputs(n: i64, rate: f64) -> Vec<HostTensor> {
    let one = |dtype, value: f64| tensor(dtype, &[1], move |_| value);
    vec![tensor(F32, &[n], |i| (i % 8) as f64), tensor(F32, &[n], |i| (i % 5) as f64), one(F32, rate), one(F16, 0.5)]
}

#[test]
fn a_tensor_is_updated_and_a_sum_begins_at_zero() {
    for n in [1, 64, 150] {
        for rate in [0.25, 0.0] {
            let new = move |i: i64| (i % 5) as f64 - rate * 0.5 * (i % 8) as f64;
            let total = if rate > 0.0 { (0..n).map(new).sum() } else { 0.0 };
            let expected = [tensor(F32, &[n], new), tensor(F32, &[1], |_| total)];
            check(&step(), &[("n", n)], &inputs(n, rate), &expected, Tolerance::EXACT);
        }
    }
}

#[test]
fn numbers_follow_the_sizes_and_have_their_own_types() {
    let artifact = compile(step(), &Options::new(Target::Sm100a)).expect("the kernel is right");
    let signature =
        "step(const float* __restrict__ gradient, float* x, float* total, int n, float rate, unsigned short half)";
    assert!(artifact.cuda().contains(signature), "{}", artifact.cuda());
    let directions: Vec<_> = artifact.parameters().iter().map(|parameter| parameter.direction.name()).collect();
    assert_eq!(directions, ["input", "inout", "accumulator"]);
    let scalars: Vec<_> = artifact.scalars().iter().map(|scalar| (scalar.name.as_str(), scalar.dtype)).collect();
    assert_eq!(scalars, [("rate", F32), ("half", F16)]);
}

#[test]
fn a_number_of_another_type_is_refused() {
    let artifact = compiled(&step(), &[("n", 8)]).remove(0);
    let Some(built) = built_or_skipped(&artifact, "parameters") else { return };
    let told = |inputs: &[HostTensor]| {
        let failure = run(&artifact, &built, inputs, &Device::Virtual).map(|_| ()).unwrap_err();
        let help = &failure.diagnostics[0].help;
        assert_eq!(
            help[..],
            [
                "pass `gradient` (f32 [8]), `x` (f32 [8]), `rate` (f32, a tensor of one element), `half` (f16, a tensor of one \
                 element), in this order"
            ]
        );
        failure.to_string()
    };
    let mut given = inputs(8, 0.5);
    given[3] = tensor(F32, &[1], |_| 0.5);
    let wrong = "error[R0604]: `half` is f16, but the tensor that was given is f32 of shape [1]";
    assert_eq!(told(&given), wrong);
    given.pop();
    assert_eq!(told(&given), "error[R0604]: the kernel has 4 inputs, not 3");
}

#[test]
fn the_name_of_a_number_is_its_own() {
    let codes = |kernel: Kernel| {
        let found = compile(kernel, &Options::new(Target::Sm90a)).unwrap_err();
        found.iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    let taken = kernel("taken", |k| {
        let y = k.output("y", F32, [32]);
        k.scalar("y", F32);
        k.fill(y, 1.0);
    });
    assert_eq!(codes(taken), ["K0204"]);
    let opaque = kernel("opaque", |k| {
        let y = k.output("y", F32, [32]);
        k.scalar("bits", B32);
        k.fill(y, 1.0);
    });
    assert_eq!(codes(opaque), ["K0233"]);
}
