//! Arithmetic on f32.

use crate::harness::{map, pairs, refusals};

const VALUES: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    0.1,
    -0.3,
    3.0,
    7.0,
    1.0 / 3.0,
    1e-40,
    -1e-40,
    1e-45,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    1e30,
    -1e-30,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    16_777_215.0,
];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The bits of a result: all instructions produce the same NaN.
fn result(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

fn saturate(x: f32) -> f32 {
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

type Binary = fn(f32, f32) -> f32;

const BINARY: [(&str, Binary); 4] =
    [("add", |a, b| a + b), ("sub", |a, b| a - b), ("mul", |a, b| a * b), ("div.rn", |a, b| a / b)];

#[test]
fn two_operands_round_to_nearest() {
    let (a, b) = pairs(&VALUES);
    for (name, f) in BINARY {
        let [plain, ftz] =
            map(&format!("{name}.f32 %o0, %i0, %i1;\n{name}.ftz.f32 %o1, %i0, %i1;"), &[&bits(&a), &bits(&b)]);
        for (at, (a, b)) in a.iter().zip(&b).enumerate() {
            assert_eq!(plain[at], result(f(*a, *b)), "{name} {a} {b}");
            assert_eq!(ftz[at], result(flush(f(flush(*a), flush(*b)))), "{name}.ftz {a} {b}");
        }
    }
}

#[test]
fn saturation_clamps_to_0_and_1() {
    let (a, b) = pairs(&VALUES);
    for (name, f) in &BINARY[..3] {
        let [found] = map(&format!("{name}.sat.f32 %o0, %i0, %i1;"), &[&bits(&a), &bits(&b)]);
        let want: Vec<u32> = a.iter().zip(&b).map(|(a, b)| saturate(f(*a, *b)).to_bits()).collect();
        assert_eq!(found, want, "{name}");
    }
}

#[test]
fn fma_rounds_once() {
    let (a, b) = pairs(&VALUES);
    for shift in [0, 5, 11, 20] {
        let c: Vec<f32> = (0..a.len()).map(|at| VALUES[(at * 7 + shift) % VALUES.len()]).collect();
        let inputs = [bits(&a), bits(&b), bits(&c)];
        let [plain, ftz, saturated] = map(
            "fma.rn.f32 %o0, %i0, %i1, %i2;\nfma.rn.ftz.f32 %o1, %i0, %i1, %i2;\nfma.rn.sat.f32 %o2, %i0, %i1, %i2;",
            &[&inputs[0], &inputs[1], &inputs[2]],
        );
        for at in 0..a.len() {
            let (a, b, c) = (a[at], b[at], c[at]);
            assert_eq!(plain[at], result(a.mul_add(b, c)), "{a} {b} {c}");
            assert_eq!(ftz[at], result(flush(flush(a).mul_add(flush(b), flush(c)))), "{a} {b} {c}");
            assert_eq!(saturated[at], saturate(a.mul_add(b, c)).to_bits(), "{a} {b} {c}");
        }
    }
}

/// Values whose sums and products are exact in f64. A quotient or square root of them that is not an f32 is so far from
/// every f32 that rounding it to f64 does not move it across one.
const TAME: [f32; 10] = [1.0, -1.0, 0.1, -0.3, 3.0, 1.5, 1e-3, 7.0, 1.0 / 3.0, -1023.5];

type Exact = fn(f64, f64) -> f64;

fn directed(exact: f64, mode: &str) -> f32 {
    let nearest = exact as f32;
    let error = exact - f64::from(nearest);
    let (down, up) = if error < 0.0 { (nearest.next_down(), nearest) } else { (nearest, nearest.next_up()) };
    match mode {
        _ if error == 0.0 => nearest,
        "rm" => down,
        "rp" => up,
        "rz" if exact > 0.0 => down,
        "rz" => up,
        _ => nearest,
    }
}

#[test]
fn directed_rounding_takes_the_neighbour() {
    let (a, b) = pairs(&TAME);
    let exact: [(&str, Exact); 4] =
        [("add", |a, b| a + b), ("sub", |a, b| a - b), ("mul", |a, b| a * b), ("div", |a, b| a / b)];
    for (mode, (name, f)) in ["rn", "rz", "rm", "rp"].iter().flat_map(|mode| exact.map(|form| (*mode, form))) {
        let [found] = map(&format!("{name}.{mode}.f32 %o0, %i0, %i1;"), &[&bits(&a), &bits(&b)]);
        for (at, (a, b)) in a.iter().zip(&b).enumerate() {
            let want = directed(f(f64::from(*a), f64::from(*b)), mode);
            assert_eq!(f32::from_bits(found[at]), want, "{name}.{mode} {a} {b}");
        }
    }
    for mode in ["rn", "rz", "rm", "rp"] {
        let body = format!("sqrt.{mode}.f32 %o0, %i0;\nrcp.{mode}.f32 %o1, %i0;");
        let [roots, reciprocals] = map(&body, &[&bits(&TAME)]);
        for (at, a) in TAME.iter().enumerate() {
            assert_eq!(f32::from_bits(reciprocals[at]), directed(1.0 / f64::from(*a), mode), "rcp.{mode} {a}");
            let root = f64::from(*a).sqrt();
            assert!(root.is_nan() || f32::from_bits(roots[at]) == directed(root, mode), "sqrt.{mode} {a}");
        }
    }
}

#[test]
fn opposites_cancel_to_a_negative_zero_only_when_rounded_down() {
    let (a, b) = ([1.0, -0.0, 0.0, 2.0], [-1.0, 0.0, 0.0, 0.5]);
    let [down, up, fused] = map(
        "add.rm.f32 %o0, %i0, %i1;\nadd.rp.f32 %o1, %i0, %i1;\nmov.b32 %r10, 0fC0000000;\n\
         fma.rm.f32 %o2, %i1, %r10, %i0;",
        &[&bits(&a), &bits(&b)],
    );
    assert_eq!(down, [-0.0, -0.0, 0.0, 2.5].map(result));
    assert_eq!(up, [0.0, 0.0, 0.0, 2.5].map(result));
    // 3, -0 - 0, -0 + 0, -1 + 2.
    assert_eq!(fused, [3.0, -0.0, -0.0, 1.0].map(result));
}

#[test]
fn roots_and_reciprocals_of_special_values() {
    let [roots, reciprocals, reciprocal_roots] = map(
        "sqrt.rn.f32 %o0, %i0;\nrcp.rn.f32 %o1, %i0;\nrsqrt.approx.f32 %o2, %i0;",
        &[&bits(&[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -2.0])],
    );
    let infinity = f32::INFINITY;
    assert_eq!(roots, [0.0, -0.0, infinity, f32::NAN, f32::NAN, f32::NAN].map(result));
    assert_eq!(reciprocals, [infinity, -infinity, 0.0, -0.0, f32::NAN, -0.5].map(result));
    assert_eq!(reciprocal_roots, [infinity, -infinity, 0.0, f32::NAN, f32::NAN, f32::NAN].map(result));
}

type HostFn = fn(f64) -> f64;

/// `count` evenly spaced numbers from `first` up to, but not including, `last`.
fn range(first: f64, last: f64, count: usize) -> Vec<f32> {
    (0..count).map(|at| (first + (last - first) * at as f64 / count as f64) as f32).collect()
}

/// The largest error of `instruction` on `inputs`; `error` compares a result with the true value.
fn worst(instruction: &str, inputs: &[f32], truth: HostFn, error: Exact) -> f64 {
    let [found] = map(&format!("{instruction} %o0, %i0;"), &[&bits(inputs)]);
    let errors =
        found.iter().zip(inputs).map(|(bits, x)| error(f64::from(f32::from_bits(*bits)), truth(f64::from(*x))));
    errors.fold(0.0, |worst, error| if error > worst || error.is_nan() { error } else { worst })
}

fn relative(found: f64, truth: f64) -> f64 {
    ((found - truth) / truth).abs()
}

fn absolute(found: f64, truth: f64) -> f64 {
    (found - truth).abs()
}

#[test]
fn approximations_keep_the_error_that_the_isa_states() {
    let pi = std::f64::consts::PI;
    let positive: Vec<f32> = (-120..120).flat_map(|at| range(2f64.powi(at), 2f64.powi(at + 1), 16)).collect();
    let far_from_one: Vec<f32> = positive.iter().copied().filter(|x| !(0.5..=2.0).contains(x)).collect();
    let forms: [(&str, &[f32], HostFn, Exact, i32); 10] = [
        ("ex2.approx.ftz.f32", &range(-125.0, 127.9, 4096), f64::exp2, relative, -22),
        ("ex2.approx.f32", &range(-125.0, 127.9, 4096), f64::exp2, relative, -22),
        ("lg2.approx.f32", &range(0.5, 2.0, 4096), f64::log2, absolute, -22),
        ("lg2.approx.ftz.f32", &far_from_one, f64::log2, relative, -22),
        ("sin.approx.f32", &range(-pi, pi, 4096), f64::sin, absolute, -20),
        ("cos.approx.ftz.f32", &range(-pi, pi, 4096), f64::cos, absolute, -20),
        ("tanh.approx.f32", &range(0.001, 12.0, 4096), f64::tanh, relative, -11),
        ("rsqrt.approx.ftz.f32", &positive, |x| 1.0 / x.sqrt(), relative, -22),
        ("sqrt.approx.ftz.f32", &positive, f64::sqrt, relative, -23),
        ("rcp.approx.ftz.f32", &positive, |x| 1.0 / x, relative, -23),
    ];
    for (instruction, inputs, truth, error, bound) in forms {
        let found = worst(instruction, inputs, truth, error);
        assert!(found <= 2f64.powi(bound), "{instruction}: {found}");
    }
}

#[test]
fn approximations_of_special_values() {
    let inputs = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -2.0, 1e-40];
    let [exponents, logarithms, sines, cosines, tangents] = map(
        "ex2.approx.ftz.f32 %o0, %i0;\nlg2.approx.ftz.f32 %o1, %i0;\nsin.approx.ftz.f32 %o2, %i0;\n\
         cos.approx.ftz.f32 %o3, %i0;\ntanh.approx.f32 %o4, %i0;",
        &[&bits(&inputs)],
    );
    let (infinity, nan) = (f32::INFINITY, f32::NAN);
    assert_eq!(exponents, [1.0, 1.0, infinity, 0.0, nan, 0.25, 1.0].map(result));
    assert_eq!(logarithms, [-infinity, -infinity, infinity, nan, nan, nan, -infinity].map(result));
    assert_eq!(sines[..5], [0.0, -0.0, nan, nan, nan].map(result));
    assert_eq!((sines[6], cosines[6]), (0, 1.0f32.to_bits()));
    assert_eq!(cosines[..5], [1.0, 1.0, nan, nan, nan].map(result));
    assert_eq!(tangents[..5], [0.0, -0.0, 1.0, -1.0, nan].map(result));
    let small = f64::from(1e-40f32).log2();
    let [kept] = map("lg2.approx.f32 %o0, %i0;", &[&bits(&inputs)]);
    assert_eq!(kept[6], (small as f32).to_bits());
}

#[test]
fn approximate_division_multiplies_by_the_reciprocal() {
    let (a, b) = pairs(&[1.0f32, -3.0, 0.1, 1e20, -1e-20, 123.456, 2f32.powi(126)]);
    let [approx, full] =
        map("div.approx.ftz.f32 %o0, %i0, %i1;\ndiv.full.ftz.f32 %o1, %i0, %i1;", &[&bits(&a), &bits(&b)]);
    for (at, (a, b)) in a.iter().zip(&b).enumerate() {
        let truth = f64::from(*a) / f64::from(*b);
        let single = truth as f32;
        for found in [approx[at], full[at]] {
            let error = relative(f64::from(f32::from_bits(found)), truth);
            let close = if single.is_normal() { error <= 2f64.powi(-22) } else { found == flush(single).to_bits() };
            assert!(close, "{a} / {b}");
        }
    }
    let huge = 2f32.powi(127);
    let [found, full] = map(
        "div.approx.f32 %o0, %i0, %i1;\ndiv.full.f32 %o1, %i0, %i1;",
        &[&bits(&[3.0, -3.0, f32::INFINITY, huge, 1.0]), &bits(&[huge, huge, huge, huge, f32::INFINITY])],
    );
    assert_eq!(found, [0.0, -0.0, f32::NAN, 0.0, 0.0].map(result));
    assert_eq!(full[3], 1.0f32.to_bits());
}

#[test]
fn minimum_and_maximum_prefer_numbers_unless_told_otherwise() {
    let nan = f32::NAN;
    let a = [1.0, -0.0, 0.0, nan, 2.0, nan, -3.0, f32::NEG_INFINITY];
    let b = [2.0, 0.0, -0.0, 5.0, nan, nan, 2.0, 1e-40];
    let [least, greatest, least_nan, greatest_nan, least_sign, greatest_sign] = map(
        "min.f32 %o0, %i0, %i1;\nmax.ftz.f32 %o1, %i0, %i1;\nmin.NaN.f32 %o2, %i0, %i1;\nmax.NaN.f32 %o3, %i0, %i1;\n\
         min.xorsign.abs.f32 %o4, %i0, %i1;\nmax.NaN.xorsign.abs.f32 %o5, %i0, %i1;",
        &[&bits(&a), &bits(&b)],
    );
    let infinity = f32::INFINITY;
    assert_eq!(least, [1.0, -0.0, -0.0, 5.0, 2.0, nan, -3.0, -infinity].map(result));
    assert_eq!(greatest, [2.0, 0.0, 0.0, 5.0, 2.0, nan, 2.0, 0.0].map(result));
    assert_eq!(least_nan, [1.0, -0.0, -0.0, nan, nan, nan, -3.0, -infinity].map(result));
    assert_eq!(greatest_nan, [2.0, 0.0, 0.0, nan, nan, nan, 2.0, 1e-40].map(result));
    assert_eq!(least_sign, [1.0, -0.0, -0.0, 5.0, 2.0, nan, -2.0, -1e-40].map(result));
    assert_eq!(greatest_sign, [2.0, -0.0, -0.0, nan, nan, nan, -3.0, -infinity].map(result));
}

#[test]
fn minimum_and_maximum_of_three() {
    let nan = f32::NAN;
    let (a, b, c) = ([1.0, nan, -9.0], [3.0, nan, 2.0], [2.0, -4.0, nan]);
    let [least, greatest, least_nan, greatest_abs] = map(
        "min.f32 %o0, %i0, %i1, %i2;\nmax.f32 %o1, %i0, %i1, %i2;\nmin.NaN.f32 %o2, %i0, %i1, %i2;\n\
         max.abs.f32 %o3, %i0, %i1, %i2;",
        &[&bits(&a), &bits(&b), &bits(&c)],
    );
    assert_eq!(least, [1.0, -4.0, -9.0].map(result));
    assert_eq!(greatest, [3.0, -4.0, 2.0].map(result));
    assert_eq!(least_nan, [1.0, nan, nan].map(result));
    assert_eq!(greatest_abs, [3.0, 4.0, 9.0].map(result));
}

#[test]
fn signs_are_set_bit_by_bit() {
    let inputs = bits(&VALUES);
    let [negated, magnitude, flushed, copied] = map(
        "neg.f32 %o0, %i0;\nabs.f32 %o1, %i0;\nabs.ftz.f32 %o2, %i0;\nmov.b32 %r10, 0f80000000;\n\
         copysign.f32 %o3, %r10, %i0;",
        &[&inputs],
    );
    for (at, bits) in inputs.iter().enumerate() {
        let nan = Some(0x7fff_ffff).filter(|_| VALUES[at].is_nan());
        assert_eq!(negated[at], nan.unwrap_or(bits ^ 0x8000_0000));
        assert_eq!(magnitude[at], nan.unwrap_or(bits & 0x7fff_ffff));
        assert_eq!(copied[at], bits | 0x8000_0000);
        assert_eq!(flushed[at], result(flush(VALUES[at]).abs()));
    }
}

#[test]
fn two_singles_in_one_register_are_separate() {
    let (a, b) = ([1.0f32, 0.1, f32::MAX], [2.0f32, -0.3, f32::MAX]);
    let [low, high] = map(
        "mov.b64 %d1, {%i0, %i1};\nmov.b64 %d2, {%i1, %i1};\nfma.rn.f32x2 %d3, %d1, %d2, %d1;\n\
         add.rz.f32x2 %d4, %d3, %d1;\nmov.b64 {%o0, %o1}, %d4;",
        &[&bits(&a), &bits(&b)],
    );
    for at in 0..3 {
        let want = |x: f32| {
            let product = x.mul_add(b[at], x);
            if product.is_infinite() { product } else { directed(f64::from(product) + f64::from(x), "rz") }
        };
        assert_eq!([low[at], high[at]], [result(want(a[at])), result(want(b[at]))]);
    }
}

#[test]
fn forms_that_do_not_exist_are_refused() {
    assert_eq!(refusals("add.NaN.f32 %r1, %r2, %r3;").len(), 1);
    assert_eq!(refusals("add.sat.f64 %d1, %d2, %d3;\nadd.ftz.f64 %d1, %d2, %d3;\nadd.rna.f32 %r1, %r2, %r3;").len(), 3);
}

#[test]
fn a_product_just_below_the_least_normal_number_is_flushed() {
    // Found with an H200: each exact product rounds to the least normal number, but not with more exponents.
    let (a, b) = ([0x3f3c_93a6, 0xbf2a_b106, 0xbf7f_ffff], [0x00ad_c3c9, 0x00bf_f8d9, 0x0080_0000]);
    let body = "mul.ftz.f32 %o0, %i0, %i1;\nmov.f32 %r10, 0f00000000;\nfma.rn.ftz.f32 %o1, %i0, %i1, %r10;\n\
                mul.f32 %o2, %i0, %i1;";
    let [products, sums, kept] = map(body, &[&a, &b]);
    assert_eq!(products, [0, 0x8000_0000, 0x8000_0000]);
    assert_eq!(sums, products);
    assert_eq!(kept, [0x0080_0000, 0x8080_0000, 0x8080_0000]);
}
