//! Arithmetic on f64, and conversions from and to it.

use crate::harness::{execute, halves, joined, map, pairs};

const VALUES: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    3.0,
    1.0 / 3.0,
    5e-324,
    -1e-310,
    f64::MIN_POSITIVE,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    9_007_199_254_740_991.0,
];

/// Runs `instruction` on `%d1`, `%d2`, `%d3`, with its result in `%d0`.
fn run(instruction: &str, inputs: [&[f64]; 3]) -> Vec<f64> {
    let words = inputs.map(|values| halves(&values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>()));
    let slices: Vec<&[u32]> = words.iter().flat_map(|(low, high)| [low.as_slice(), high.as_slice()]).collect();
    let body = format!(
        "mov.b64 %d1, {{%i0, %i1}};\nmov.b64 %d2, {{%i2, %i3}};\nmov.b64 %d3, {{%i4, %i5}};\n{instruction}\n\
         mov.b64 {{%o0, %o1}}, %d0;"
    );
    joined(&map(&body, &slices)).into_iter().map(f64::from_bits).collect()
}

fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
}

/// The minimum, which ignores NaN: -0 is less than +0.
fn least(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => f64::from_bits(a.to_bits() | b.to_bits()),
        _ if a < b => a,
        _ => b,
    }
}

type HostFn = fn(f64, f64, f64) -> f64;

#[test]
fn arithmetic_is_that_of_ieee() {
    let (a, b) = pairs(&VALUES);
    let c: Vec<f64> = (0..a.len()).map(|at| VALUES[at * 5 % 16]).collect();
    let forms: [(&str, HostFn); 11] = [
        ("add.rn.f64 %d0, %d1, %d2;", |a, b, _| a + b),
        ("sub.f64 %d0, %d1, %d2;", |a, b, _| a - b),
        ("mul.rn.f64 %d0, %d1, %d2;", |a, b, _| a * b),
        ("fma.rn.f64 %d0, %d1, %d2, %d3;", f64::mul_add),
        ("div.rn.f64 %d0, %d1, %d2;", |a, b, _| a / b),
        ("rcp.rn.f64 %d0, %d1;", |a, _, _| 1.0 / a),
        ("sqrt.rn.f64 %d0, %d1;", |a, _, _| a.sqrt()),
        ("neg.f64 %d0, %d1;", |a, _, _| -a),
        ("abs.f64 %d0, %d1;", |a, _, _| a.abs()),
        ("min.f64 %d0, %d1, %d2;", |a, b, _| least(a, b)),
        ("max.f64 %d0, %d1, %d2;", |a, b, _| -least(-a, -b)),
    ];
    for (instruction, f) in forms {
        let found = run(instruction, [&a, &b, &c]);
        for at in 0..a.len() {
            let want = f(a[at], b[at], c[at]);
            assert!(same(found[at], want), "{instruction} {} {} {}: {}", a[at], b[at], c[at], found[at]);
        }
    }
}

#[test]
fn directed_modes_take_the_neighbour_on_their_side() {
    // (1 + 2^-52) + 2^-60, 1 - 2^-60, 1/3, the root of 2, and 3 * 0.1 - 0.3, each with the number below it.
    let forms = [
        ("add.{}.f64 %d0, %d1, %d2;", [1.0 + f64::EPSILON, 2f64.powi(-60), 0.0], 1.0 + f64::EPSILON),
        ("sub.{}.f64 %d0, %d1, %d2;", [1.0, 2f64.powi(-60), 0.0], 1.0 - f64::EPSILON / 2.0),
        ("div.{}.f64 %d0, %d1, %d2;", [1.0, 3.0, 0.0], f64::from_bits(0x3fd5_5555_5555_5555)),
        ("rcp.{}.f64 %d0, %d1;", [3.0, 0.0, 0.0], f64::from_bits(0x3fd5_5555_5555_5555)),
        ("sqrt.{}.f64 %d0, %d1;", [2.0, 0.0, 0.0], f64::from_bits(0x3ff6_a09e_667f_3bcc)),
        ("mul.{}.f64 %d0, %d1, %d2;", [0.1, 3.0, 0.0], 0.3f64.next_up().next_down()),
        ("fma.{}.f64 %d0, %d1, %d2, %d3;", [3.0, 3.0, 2f64.powi(-60)], 9.0),
    ];
    for (form, [a, b, c], below) in forms {
        let with = |mode: &str| run(&form.replace("{}", mode), [&[a], &[b], &[c]])[0];
        assert_eq!([with("rm"), with("rz"), with("rp")], [below, below, below.next_up()], "{form}");
    }
}

#[test]
fn gross_approximations_use_the_upper_word() {
    let inputs = [3.0, -7.0, 0.1, 1e300, 1.000_000_001, 1.75e-5];
    let reciprocals = run("rcp.approx.ftz.f64 %d0, %d1;", [&inputs; 3]);
    let roots = run("rsqrt.approx.ftz.f64 %d0, %d1;", [&inputs; 3]);
    for at in 0..inputs.len() {
        let close =
            |found: f64, truth: f64| found.to_bits() as u32 == 0 && ((found - truth) / truth).abs() < 2f64.powi(-18);
        assert!(close(reciprocals[at], 1.0 / inputs[at]), "{}", inputs[at]);
        assert!(inputs[at] < 0.0 || close(roots[at], 1.0 / inputs[at].sqrt()), "{}", inputs[at]);
    }
    let special = [0.0, -1e-310, f64::NEG_INFINITY, f64::NAN, f64::MAX, -1.0];
    let found = run("rcp.approx.ftz.f64 %d0, %d1;", [&special; 3]);
    assert_eq!(found[..3], [f64::INFINITY, f64::NEG_INFINITY, 0.0]);
    assert_eq!((found[2].is_sign_negative(), found[3].to_bits()), (true, 0x7fff_ffff_0000_0000));
    assert_eq!((found[4], found[5]), (0.0, -1.0));
    let found = run("rsqrt.approx.ftz.f64 %d0, %d1;", [&special; 3]);
    assert_eq!(found[..2], [f64::INFINITY, f64::NEG_INFINITY]);
    assert!(found[2].is_nan() && found[5].is_nan());
}

#[test]
fn conversions_to_single_precision_round_as_told() {
    let values = [0.1, -0.1, 1.0 / 3.0, 1e-42, 1e39, -1e39, 16_777_217.0, f64::INFINITY, f64::NAN];
    let (low, high) = halves(&values.map(f64::to_bits));
    let body = "mov.b64 %d1, {%i0, %i1};\ncvt.rn.f32.f64 %o0, %d1;\ncvt.rz.f32.f64 %o1, %d1;\n\
                cvt.rm.f32.f64 %o2, %d1;\ncvt.rp.f32.f64 %o3, %d1;\ncvt.rn.ftz.f32.f64 %o4, %d1;\n\
                cvt.f64.f32 %d2, %o0;\nmov.b64 {%o5, %o6}, %d2;";
    let found: [Vec<u32>; 7] = map(body, &[&low, &high]);
    for (at, x) in values.iter().enumerate() {
        let nearest = *x as f32;
        let [rn, rz, rm, rp, ftz] = [0, 1, 2, 3, 4].map(|form: usize| f32::from_bits(found[form][at]));
        if x.is_nan() {
            assert_eq!(found[0][at], 0x7fc0_0000);
            continue;
        }
        assert_eq!(rn.to_bits(), nearest.to_bits());
        assert!(f64::from(rm) <= *x && *x <= f64::from(rp), "{x}");
        assert!(rm == rp || rm.next_up() == rp, "{x}");
        assert_eq!(rz, if *x < 0.0 { rp } else { rm });
        assert_eq!(ftz, if nearest.is_subnormal() { 0.0 } else { nearest });
        let back = f64::from_bits(u64::from(found[6][at]) << 32 | u64::from(found[5][at]));
        assert_eq!(back, f64::from(nearest));
    }
}

#[test]
fn conversions_to_and_from_integers() {
    let values = [0.5, 1.5, -1.5, 2.5, -2.5, 1e10, -1e10, 1e20, -0.4];
    let (low, high) = halves(&values.map(f64::to_bits));
    let body = "mov.b64 %d1, {%i0, %i1};\ncvt.rni.s32.f64 %o0, %d1;\ncvt.rzi.u32.f64 %o1, %d1;\n\
                cvt.rmi.s64.f64 %d2, %d1;\nmov.b64 {%o2, %o3}, %d2;\ncvt.rn.f64.s64 %d3, %d2;\n\
                mov.b64 {%o4, %o5}, %d3;";
    let found: [Vec<u32>; 6] = map(body, &[&low, &high]);
    for (at, x) in values.iter().enumerate() {
        assert_eq!(found[0][at] as i32, x.round_ties_even() as i32);
        assert_eq!(found[1][at], *x as u32);
        let floor = (u64::from(found[3][at]) << 32 | u64::from(found[2][at])) as i64;
        assert_eq!(floor, x.floor() as i64);
        assert_eq!(u64::from(found[5][at]) << 32 | u64::from(found[4][at]), (floor as f64).to_bits());
    }
}

#[test]
fn loads_and_stores_of_doubles() {
    let done = execute(
        "mul.wide.u32 %rd5, %r1, 8;\nadd.s64 %rd6, %rd1, %rd5;\nbar.warp.sync -1;\nld.global.f64 %d1, [%rd6];\n\
         add.f64 %d2, %d1, 0d3FF0000000000000;\nst.global.f64 [%rd6], %d2;",
        &[&[0; 32], &[0; 32]],
        0,
        32,
    );
    let done = done.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.inputs, [0, 0x3ff0_0000].repeat(32));
}
