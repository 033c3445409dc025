//! Sums, differences, products, maxima and minima of halves: two at once, each rounded once.

use half::{bf16, f16};
use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::HostTensor;
use tilewright_tests::pages::computes;

const COUNT: i64 = 1 << 14;

/// Bit patterns of all exponents, among them zeros, subnormal numbers, infinities and NaN.
fn patterns(dtype: DType, seed: u128) -> HostTensor {
    let few = [0u128, 0x8000, 0x0001, 0x8001, 0x7c00, 0xfc00, 0x7e00, 0x7f80, 0xff80, 0x03ff, 0x7bff, 0x7f7f];
    HostTensor::from_fn(dtype, &[COUNT], |at| {
        let mixed = ((at as u128 + 1) * (2 * seed + 1) * 0x9e37_79b9_7f4a_7c15) >> 40 & 0xffff;
        if at % 5 == seed as i64 % 5 { few[(mixed % few.len() as u128) as usize] } else { mixed }
    })
}

fn real(dtype: DType, bits: u128) -> f64 {
    if dtype == F16 { f16::from_bits(bits as u16).to_f64() } else { bf16::from_bits(bits as u16).to_f64() }
}

/// The nearest half. The arithmetic below is exact in `f64`, or has more than twice as many digits.
fn nearest(dtype: DType, value: f64) -> u128 {
    let bits = if dtype == F16 { f16::from_f64(value).to_bits() } else { bf16::from_f64(value).to_bits() };
    if value.is_nan() { 0x7fff } else { u128::from(bits) }
}

type OnElements = fn(Value, Value) -> Value;

/// `op(x, z)` for every element.
fn of_two(dtype: DType, op: OnElements) -> Kernel {
    kernel("of_two", |k| {
        let [x, z] = ["x", "z"].map(|name| k.input(name, dtype, [COUNT]));
        let y = k.output("y", dtype, [COUNT]);
        k.threads(128);
        k.parallel([COUNT], |k, [i]| k.store(y, (i,), op(x.at((i,)), z.at((i,)))));
    })
}

fn cuda(kernel: &Kernel, target: Target) -> String {
    compile(kernel.clone(), &Options::new(target)).expect("the kernel is right").cuda().to_string()
}

fn assert_computed(dtype: DType, op: OnElements, function: Option<&str>, expected: fn(f64, f64) -> f64) {
    let kernel = of_two(dtype, op);
    let (x, z) = (patterns(dtype, 1), patterns(dtype, 2));
    let y = HostTensor::from_fn(dtype, &[COUNT], |at| {
        nearest(dtype, expected(real(dtype, x.bits(at)), real(dtype, z.bits(at))))
    });
    computes(&kernel, &[x, z], &[y]);
    for target in [Target::Sm90a, Target::Sm100a] {
        let text = cuda(&kernel, target);
        match function {
            Some(name) => assert!(text.contains(&format!(" = {name}(word(")) && !text.contains("from_"), "{text}"),
            None => assert!(text.contains("x2(from_"), "{text}"),
        }
    }
}

#[test]
fn f16_is_computed_in_pairs() {
    assert_computed(F16, |x, z| x + z, Some("add_f16x2"), |x, z| x + z);
    assert_computed(F16, |x, z| x - z, Some("sub_f16x2"), |x, z| x - z);
    assert_computed(F16, |x, z| x * z, Some("mul_f16x2"), |x, z| x * z);
    assert_computed(F16, |x, z| x.max(z), Some("max_f16x2"), f64::max);
    assert_computed(F16, |x, z| x.min(z), Some("min_f16x2"), f64::min);
}

#[test]
fn bf16_is_computed_in_pairs_where_that_is_exact() {
    assert_computed(BF16, |x, z| x + z, Some("add_bf16x2"), |x, z| x + z);
    assert_computed(BF16, |x, z| x - z, Some("sub_bf16x2"), |x, z| x - z);
    assert_computed(BF16, |x, z| x.max(z), Some("max_bf16x2"), f64::max);
    assert_computed(BF16, |x, z| x.min(z), Some("min_bf16x2"), f64::min);
    // The product as a float, which is rounded twice if it is tiny.
    assert_computed(BF16, |x, z| x * z, None, |x, z| f64::from((x * z) as f32));
}

#[test]
fn every_step_of_a_longer_value_is_rounded() {
    let kernel = of_two(F16, |x, z| (x * z + x * 0.5 - 1.0).max(0.0));
    let (x, z) = (patterns(F16, 3), patterns(F16, 4));
    let round = |value: f64| f16::from_f64(value).to_f64();
    let y = HostTensor::from_fn(F16, &[COUNT], |at| {
        let (x, z) = (real(F16, x.bits(at)), real(F16, z.bits(at)));
        let difference = round(round(round(x * z) + round(x * 0.5)) - 1.0);
        nearest(F16, difference.max(0.0))
    });
    computes(&kernel, &[x, z], &[y]);
    let text = cuda(&kernel, Target::Sm100a);
    assert!(text.contains("max_f16x2(sub_f16x2(add_f16x2(mul_f16x2(") && !text.contains("from_f16"), "{text}");
}

/// Quotients have no instruction for halves: they are computed as floats, and rounded two at once.
#[test]
fn quotients_are_rounded_in_pairs() {
    let kernel = of_two(F16, |x, z| x / z);
    let (x, z) = (patterns(F16, 5), patterns(F16, 6));
    let y = HostTensor::from_fn(F16, &[COUNT], |at| nearest(F16, real(F16, x.bits(at)) / real(F16, z.bits(at))));
    computes(&kernel, &[x, z], &[y]);
    let text = cuda(&kernel, Target::Sm100a);
    assert!(text.contains("= to_f16x2(from_f16(r["), "{text}");
}

/// Elements that are not neighbours in registers become halves of a word.
#[test]
fn halves_of_different_words_are_joined() {
    let kernel = kernel("swapped", |k| {
        let (x, y) = (k.input("x", F16, [512]), k.output("y", F16, [512]));
        k.threads(32);
        k.parallel([256], |k, [i]| {
            let [even, odd] = [0, 1].map(|part| x.at((i * 2 + part,)));
            k.store(y, (i * 2,), odd + even);
            k.store(y, (i * 2 + 1,), even - odd);
        });
    });
    let number = |at: i64| (at * 7 % 251) as f64;
    let x = HostTensor::from_fn(F16, &[512], |at| nearest(F16, number(at)));
    let y = HostTensor::from_fn(F16, &[512], |at| {
        let (even, odd) = (number(at / 2 * 2), number(at / 2 * 2 + 1));
        nearest(F16, if at % 2 == 0 { odd + even } else { even - odd })
    });
    computes(&kernel, &[x], &[y]);
}
