//! Arithmetic on f16 and bf16. Sources are chosen so that sums and products are exact in f64.

use crate::harness::{map, refusals};
use crate::small::{BF16, F16, Small};

/// Every f16, or every bf16 whose sum with a number near 1 is exact in f64, with infinities and NaN.
fn sources(name: &str) -> Vec<u32> {
    let every = 0..=0xffffu32;
    if name == "f16" {
        return every.collect();
    }
    let kept = |bits: &u32| match bits >> 7 & 0xff {
        0 => bits & 0x7f == 0,
        exponent => matches!(exponent, 107..147 | 255),
    };
    every.filter(kept).collect()
}

const FORMATS: [(&str, Small); 2] = [("f16", F16), ("bf16", BF16)];

/// Runs `instruction` on `%h1`, with the numbers `b` and `c` in `%h2` and `%h3`, and its result in `%h0`.
fn run(instruction: &str, format: Small, a: &[u32], b: f64, c: f64) -> Vec<u32> {
    let [b, c] = [b, c].map(|x| format.nearest(x));
    let body =
        format!("cvt.u16.u32 %h1, %i0;\nmov.b16 %h2, {b};\nmov.b16 %h3, {c};\n{instruction}\ncvt.u32.u16 %o0, %h0;");
    let [found] = map(&body, &[a]);
    found
}

type HostFn = fn(f64, f64, f64) -> f64;

#[test]
fn every_half_is_added_and_multiplied() {
    let (b, c) = (-1.375, 0.8125);
    let forms: [(&str, HostFn); 9] = [
        ("add.NAME %h0, %h1, %h2;", |a, b, _| a + b),
        ("add.rn.NAME %h0, %h2, %h1;", |a, b, _| a + b),
        ("sub.NAME %h0, %h1, %h2;", |a, b, _| a - b),
        ("mul.rn.NAME %h0, %h1, %h2;", |a, b, _| a * b),
        ("fma.rn.NAME %h0, %h1, %h2, %h3;", |a, b, c| a * b + c),
        ("fma.rn.relu.NAME %h0, %h1, %h2, %h3;", |a, b, c| relu(a * b + c)),
        ("min.NAME %h0, %h1, %h3;", |a, _, c| a.min(c)),
        ("max.NAME %h0, %h1, %h3;", |a, _, c| a.max(c)),
        ("max.NaN.NAME %h0, %h1, %h3;", |a, _, c| if a.is_nan() { a } else { a.max(c) }),
    ];
    for (name, format) in FORMATS {
        let sources = sources(name);
        for (form, f) in forms {
            let found = run(&form.replace("NAME", name), format, &sources, b, c);
            for (bits, found) in sources.iter().zip(found) {
                let want = format.nearest(f(format.value(*bits), b, c));
                assert_eq!(found, want, "{form} {name} {bits:#06x}");
            }
        }
    }
}

fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

#[test]
fn every_half_changes_its_sign() {
    let every: Vec<u32> = (0..=0xffff).collect();
    for (name, format) in FORMATS {
        let negated = run(&format!("neg.{name} %h0, %h1;"), format, &every, 0.0, 0.0);
        let magnitudes = run(&format!("abs.{name} %h0, %h1;"), format, &every, 0.0, 0.0);
        for bits in &every {
            let nan = Some(0x7fff).filter(|_| format.value(*bits).is_nan());
            assert_eq!(negated[*bits as usize], nan.unwrap_or(bits ^ 0x8000));
            assert_eq!(magnitudes[*bits as usize], nan.unwrap_or(bits & 0x7fff));
        }
    }
}

#[test]
fn f16_saturates_and_flushes_on_request() {
    let every: Vec<u32> = (0..=0xffff).collect();
    let saturated = run("add.sat.f16 %h0, %h1, %h2;", F16, &every, 0.25, 0.0);
    let flushed = run("mul.ftz.f16 %h0, %h1, %h2;", F16, &every, 0.25, 0.0);
    for (at, bits) in every.iter().enumerate() {
        let a = F16.value(*bits);
        let sum = a + 0.25;
        let clamped = if sum > 0.0 { sum.min(1.0) } else { 0.0 };
        assert_eq!(saturated[at], F16.nearest(clamped), "{bits:#06x}");
        let product = F16.flush(a) * 0.25;
        // Subnormal before it is rounded to a multiple of the least number.
        let is_tiny = product.abs() < 2f64.powi(-14) * (1.0 - 2f64.powi(-12));
        let want = F16.nearest(if is_tiny { 0.0f64.copysign(product) } else { product });
        assert_eq!(flushed[at], want, "{bits:#06x}");
    }
}

#[test]
fn packed_halves_are_what_two_halves_are() {
    for (name, format) in FORMATS {
        let low: Vec<u32> = (0..4096).map(|at| at * 16 + 3).collect();
        let high: Vec<u32> = low.iter().map(|bits| (bits * 7 + 11) & 0xffff).collect();
        let packed: Vec<u32> = low.iter().zip(&high).map(|(low, high)| high << 16 | low).collect();
        let power = if name == "bf16" { "ex2.approx.ftz" } else { "ex2.approx" };
        let forms = ["add", "sub", "mul", "fma.rn", "min", "max", "neg", "abs", "tanh.approx", power];
        for form in forms {
            let list = match form {
                "add" | "sub" | "mul" | "min" | "max" => "%T0, %T1, %T2",
                "fma.rn" => "%T0, %T1, %T2, %T3",
                _ => "%T0, %T1",
            };
            let scalar = format!("{form}.{name} {};", list.replace('T', "h"));
            let constants = [1.25, -0.5].map(|x| format.nearest(x) * 0x1_0001);
            let body = format!(
                "mov.b32 %r11, %i0;\nmov.b32 %r12, {};\nmov.b32 %r13, {};\n{form}.{name}x2 {};\nmov.b32 %o0, %r10;",
                constants[0],
                constants[1],
                list.replace('T', "r1")
            );
            let [found] = map(&body, &[&packed]);
            let low = run(&scalar, format, &low, 1.25, -0.5);
            let high = run(&scalar, format, &high, 1.25, -0.5);
            let want: Vec<u32> = low.iter().zip(&high).map(|(low, high)| high << 16 | low).collect();
            assert_eq!(found, want, "{form} {name}");
        }
    }
}

#[test]
fn exponents_and_tangents_keep_the_error_that_the_isa_states() {
    let every: Vec<u32> = (0..=0xffff).collect();
    for (name, format, ftz, relative, absolute) in [("f16", F16, "", -9.9, -10.987), ("bf16", BF16, ".ftz", -7.0, -8.0)]
    {
        let exponents = run(&format!("ex2.approx{ftz}.{name} %h0, %h1;"), format, &every, 0.0, 0.0);
        let tangents = run(&format!("tanh.approx.{name} %h0, %h1;"), format, &every, 0.0, 0.0);
        for (at, bits) in every.iter().enumerate() {
            let x = format.value(*bits);
            let (power, tangent) = (format.value(exponents[at]), format.value(tangents[at]));
            if x.is_nan() {
                assert!(power.is_nan() && tangent.is_nan());
                continue;
            }
            assert!((tangent - x.tanh()).abs() <= 2f64.powf(absolute), "tanh {name} {x}: {tangent}");
            let truth = x.exp2();
            let spacing = format.value(1);
            let close = (power - truth).abs() <= (truth * 2f64.powf(relative)).max(spacing);
            let flushed = ftz == ".ftz" && power == 0.0 && truth <= 2f64.powi(-126);
            assert!(close || flushed || truth > format.value(format.beyond() - 1), "ex2 {name} {x}: {power}");
        }
    }
}

#[test]
fn zeros_and_signs_of_minimum_and_maximum() {
    let a = [0x8000, 0x0000, 0x7e00, 0xc000];
    let found = run("min.f16 %h0, %h1, %h2;", F16, &a, 0.0, 0.0);
    assert_eq!(found, [0x8000, 0x0000, 0x0000, 0xc000]);
    let found = run("max.xorsign.abs.f16 %h0, %h1, %h2;", F16, &a, -1.0, 0.0);
    assert_eq!(found, [0x3c00, 0xbc00, 0xbc00, 0x4000]);
}

#[test]
fn mixed_sums_are_in_single_precision() {
    let [found] = map(
        "cvt.u16.u32 %h1, %i0;\nadd.rn.f32.f16 %r10, %h1, %i1;\nfma.rn.f32.f16 %r11, %h1, %h1, %r10;\n\
         sub.rz.f32.bf16 %r12, %h1, %r11;\nmov.b32 %o0, %r12;",
        &[&[0x3c01, 0x4200], &[0.1f32, 1e-9].map(f32::to_bits)],
    );
    for (at, (bits, c)) in [(0x3c01, 0.1f32), (0x4200, 1e-9)].into_iter().enumerate() {
        let a = F16.value(bits) as f32;
        let sum = a.mul_add(a, a + c);
        let exact = BF16.value(bits) - f64::from(sum);
        let nearest = exact as f32;
        let want = if f64::from(nearest).abs() > exact.abs() { f32::from_bits(nearest.to_bits() - 1) } else { nearest };
        assert_eq!(f32::from_bits(found[at]), want);
    }
    assert_eq!(refusals("fma.rn.relu.f32 %r1, %r2, %r3, %r4;").len(), 1);
}
