//! `cvt` between floats of 4 to 32 bits, and integers.

use crate::harness::{Random, execute, halves, joined, map, refusals};
use crate::small::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, Small};

/// The types of pairs whose elements have a byte each.
const BYTES: [(&str, Small); 4] = [("e4m3x2", E4M3), ("e5m2x2", E5M2), ("e2m3x2", E2M3), ("e3m2x2", E3M2)];

fn result(x: f64) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { (x as f32).to_bits() }
}

/// Every finite magnitude of a format, the midpoints between neighbours and the f32 next to these, with both signs;
/// also infinities, NaN and f32 extremes.
fn around(format: Small) -> Vec<f32> {
    let mut found = vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX, f32::MIN];
    for code in 0..format.beyond() {
        let low = format.value(code);
        let high = if code + 1 < format.beyond() { format.value(code + 1) } else { 2.0 * low - format.value(code - 1) };
        let middle = ((low + high) / 2.0) as f32;
        for x in [low as f32, middle, middle.next_up(), middle.next_down()] {
            found.extend([x, -x]);
        }
    }
    found
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_half_widens_exactly() {
    let every: Vec<u32> = (0..=0xffff).collect();
    let [from_f16, from_bf16] = map("cvt.u16.u32 %h1, %i0;\ncvt.f32.f16 %o0, %h1;\ncvt.f32.bf16 %o1, %h1;", &[&every]);
    for bits in every {
        assert_eq!(from_f16[bits as usize], result(F16.value(bits)));
        // NaN too, as on an H200.
        assert_eq!(from_bf16[bits as usize], bits << 16);
    }
}

#[test]
fn singles_narrow_to_the_nearest_half_or_toward_zero() {
    for (name, format) in [("f16", F16), ("bf16", BF16)] {
        let inputs = around(format);
        let body = format!(
            "cvt.rn.{name}.f32 %h1, %i0;\ncvt.u32.u16 %o0, %h1;\ncvt.rz.{name}.f32 %h1, %i0;\ncvt.u32.u16 %o1, %h1;\n\
             cvt.rn.relu.{name}.f32 %h1, %i0;\ncvt.u32.u16 %o2, %h1;\ncvt.rn.satfinite.{name}.f32 %h1, %i0;\n\
             cvt.u32.u16 %o3, %h1;\ncvt.rn.relu.satfinite.{name}x2.f32 %o4, %i0, 0f3F800000;"
        );
        let [nearest, toward_zero, clamped, finite, pair] = map(&body, &[&bits(&inputs)]);
        for (at, x) in inputs.iter().enumerate() {
            let x = f64::from(*x);
            let positive = if x <= 0.0 { 0.0 } else { x };
            assert_eq!(nearest[at], format.nearest(x), "{name} {x:e}");
            assert_eq!(toward_zero[at], format.toward_zero(x), "{name} {x:e}");
            assert_eq!(clamped[at], format.nearest(positive), "{name} {x:e}");
            assert_eq!(finite[at], format.nearest_finite(x), "{name} {x:e}");
            assert_eq!(pair[at], format.nearest_finite(positive) << 16 | format.nearest(1.0), "{name} {x:e}");
        }
    }
}

#[test]
fn the_first_source_of_a_pair_is_the_upper_half() {
    let [rn, rz, brain] = map(
        "cvt.rn.f16x2.f32 %o0, %i0, %i1;\ncvt.rz.f16x2.f32 %o1, %i0, %i1;\ncvt.rn.bf16x2.f32 %o2, %i0, %i1;",
        &[&bits(&[1.0, 65520.0]), &bits(&[-0.1, f32::NAN])],
    );
    let low = F16.nearest(f64::from(-0.1f32));
    assert_eq!(rn, [0x3c00 << 16 | low, 0x7c00_7fff]);
    assert_eq!(rz, [0x3c00 << 16 | F16.toward_zero(f64::from(-0.1f32)), 0x7bff_7fff]);
    assert_eq!(brain, [0x3f80 << 16 | BF16.nearest(f64::from(-0.1f32)), BF16.nearest(65520.0) << 16 | 0x7fff]);
}

#[test]
fn every_pair_of_bytes_widens_to_halves() {
    let every: Vec<u32> = (0..=0xffff).collect();
    for (name, format) in BYTES {
        let body = format!("cvt.u16.u32 %h1, %i0;\ncvt.rn.f16x2.{name} %o0, %h1;\ncvt.rn.relu.f16x2.{name} %o1, %h1;");
        let [plain, clamped] = map(&body, &[&every]);
        for bits in &every {
            let [low, high] = [bits & 0xff, bits >> 8].map(|bits| format.value(bits));
            let want = F16.nearest(high) << 16 | F16.nearest(low);
            assert_eq!(plain[*bits as usize], want, "{name} {bits:#06x}");
            let [low, high] = [low, high].map(|x| if x <= 0.0 { 0.0 } else { x });
            assert_eq!(clamped[*bits as usize], F16.nearest(high) << 16 | F16.nearest(low), "{name} {bits:#06x}");
        }
    }
}

#[test]
fn singles_and_halves_narrow_to_bytes() {
    let halves: Vec<u32> = (0..=0xffff).collect();
    for (name, format) in BYTES {
        let inputs = around(format);
        let body = format!(
            "cvt.rn.satfinite.{name}.f32 %h1, %i0, 0f40400000;\ncvt.u32.u16 %o0, %h1;\n\
             cvt.rn.satfinite.relu.{name}.f32 %h1, 0fBF800000, %i0;\ncvt.u32.u16 %o1, %h1;"
        );
        let [upper, lower] = map(&body, &[&bits(&inputs)]);
        for (at, x) in inputs.iter().enumerate() {
            let x = f64::from(*x);
            assert_eq!(upper[at], format.nearest_finite(x) << 8 | format.nearest(3.0), "{name} {x:e}");
            assert_eq!(lower[at], format.nearest_finite(if x <= 0.0 { 0.0 } else { x }), "{name} {x:e}");
        }
        let body = format!(
            "mov.b32 %r10, 0x4000;\nshl.b32 %r11, %i0, 16;\nor.b32 %r11, %r11, %r10;\n\
             cvt.rn.satfinite.{name}.f16x2 %h1, %r11;\ncvt.u32.u16 %o0, %h1;"
        );
        let [found] = map(&body, &[&halves]);
        for bits in &halves {
            let want = format.nearest_finite(F16.value(*bits)) << 8 | format.nearest(2.0);
            assert_eq!(found[*bits as usize], want, "{name} {bits:#06x}");
        }
    }
}

#[test]
fn a_byte_has_a_pair_of_four_bits() {
    let every: Vec<u32> = (0..=0xff).collect();
    let [wide] = map("{ .reg .b8 t;\ncvt.u8.u32 t, %i0;\ncvt.rn.f16x2.e2m1x2 %o0, t; }", &[&every]);
    for bits in &every {
        let [low, high] = [bits & 15, bits >> 4].map(|bits| F16.nearest(E2M1.value(bits)));
        assert_eq!(wide[*bits as usize], high << 16 | low, "{bits:#04x}");
    }
    let inputs = around(E2M1);
    let body = "{ .reg .b8 t;\ncvt.rn.satfinite.e2m1x2.f32 t, %i0, 0f40400000;\nmov.b16 %h1, {t, 0};\ncvt.u32.u16 %o0, %h1;\n\
                cvt.rn.satfinite.relu.e2m1x2.f32 t, 0fBF800000, %i0;\ncvt.u32.u8 %o1, t; }";
    let [upper, lower] = map(body, &[&bits(&inputs)]);
    for (at, x) in inputs.iter().enumerate() {
        let x = f64::from(*x);
        assert_eq!(upper[at], E2M1.nearest_finite(x) << 4 | E2M1.nearest(3.0), "{x:e}");
        assert_eq!(lower[at], E2M1.nearest_finite(if x <= 0.0 { 0.0 } else { x }), "{x:e}");
    }
}

/// A `.ue8m0` is the biased exponent of an f32: of the number below, or of the one above if the fraction is not 0.
#[test]
fn scale_factors_are_the_powers_next_to_a_magnitude() {
    let mut random = Random(11);
    let mut inputs: Vec<u32> = (0..2000).map(|_| random.next()).collect();
    inputs.extend([0, 1, 0x0040_0000, 0x0040_0001, 0x007f_ffff, 0x7f00_0000, 0x7f00_0001, 0x7f7f_ffff, 0x7f80_0000]);
    inputs.extend([0x8000_0000, 0xff80_0000, 0x7fc0_0000, 0xffff_ffff, 0xbf80_0000, 0x3f80_0001]);
    let [below, above, finite] = map(
        "cvt.rz.ue8m0x2.f32 %h1, %i0, 0f40000000;\ncvt.u32.u16 %o0, %h1;\n\
         cvt.rp.ue8m0x2.f32 %h1, 0f40000000, %i0;\ncvt.u32.u16 %o1, %h1;\n\
         cvt.rp.satfinite.ue8m0x2.f32 %h1, %i0, %i0;\ncvt.u32.u16 %o2, %h1;",
        &[&inputs],
    );
    for (at, bits) in inputs.iter().enumerate() {
        let (field, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
        let least = if field == 0 { 0x40_0000 } else { 0 };
        let up = if field == 255 { 255 } else { field + u32::from(fraction > least) };
        assert_eq!((below[at], above[at]), (field << 8 | 128, 128 << 8 | up), "{bits:#010x}");
        let most = if field == 255 && fraction != 0 { 255 } else { up.min(254) };
        assert_eq!(finite[at], most << 8 | most, "{bits:#010x}");
    }
}

#[test]
fn scale_factors_widen_to_powers_and_come_from_pairs() {
    let every: Vec<u32> = (0..=0xffff).collect();
    let [wide, back] = map(
        "cvt.u16.u32 %h1, %i0;\ncvt.rn.bf16x2.ue8m0x2 %r10, %h1;\nmov.b32 %o0, %r10;\n\
         cvt.rz.ue8m0x2.bf16x2 %h2, %r10;\ncvt.u32.u16 %o1, %h2;",
        &[&every],
    );
    for bits in every {
        let word = |byte: u32| match byte {
            0 => 0x40,
            255 => 0x7fff,
            _ => byte << 7,
        };
        assert_eq!(wide[bits as usize], word(bits >> 8) << 16 | word(bits & 0xff));
        assert_eq!(back[bits as usize], bits);
    }
}

type Rounding = fn(f32) -> f32;

#[test]
fn singles_become_integers_by_four_roundings() {
    let mut random = Random(7);
    let mut inputs =
        vec![0.5f32, -0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 5e9, f32::NAN, f32::INFINITY, 127.5, 128.5, -129.0, 1e-40];
    inputs.extend((0..200).map(|_| (random.next() as i32) as f32 / 65536.0));
    let roundings: [(&str, Rounding); 4] =
        [("rni", f32::round_ties_even), ("rzi", f32::trunc), ("rmi", f32::floor), ("rpi", f32::ceil)];
    for (name, round) in roundings {
        let body = format!(
            "cvt.{name}.s32.f32 %o0, %i0;\ncvt.{name}.u32.f32 %o1, %i0;\ncvt.{name}.s8.f32 %o2, %i0;\n\
             cvt.{name}.u8.f32 %o3, %i0;\ncvt.{name}.ftz.s32.f32 %o4, %i0;\ncvt.{name}.f32.f32 %o5, %i0;\n\
             cvt.{name}.s16.f32 %h1, %i0;\ncvt.u32.u16 %o6, %h1;"
        );
        let found: [Vec<u32>; 7] = map(&body, &[&bits(&inputs)]);
        for (at, x) in inputs.iter().enumerate() {
            let y = round(*x);
            let flushed = round(if x.is_subnormal() { 0.0 } else { *x });
            assert_eq!(found[0][at], y as i32 as u32, "{name} {x}");
            assert_eq!(found[1][at], y as u32, "{name} {x}");
            assert_eq!(found[2][at], i32::from(y as i8) as u32, "{name} {x}");
            assert_eq!(found[3][at], u32::from(y as u8), "{name} {x}");
            assert_eq!(found[4][at], flushed as i32 as u32, "{name} {x}");
            assert_eq!(found[5][at], result(f64::from(y)), "{name} {x}");
            assert_eq!(found[6][at], u32::from(y as i16 as u16), "{name} {x}");
        }
    }
}

#[test]
fn integers_become_floats() {
    let mut random = Random(8);
    let mut inputs = vec![0u32, 1, 2047, 2049, 0x0100_0001, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 65519, 65520];
    inputs.extend(random.words(300));
    let [signed, unsigned, half, brain, small] = map(
        "cvt.rn.f32.s32 %o0, %i0;\ncvt.rn.f32.u32 %o1, %i0;\ncvt.rn.f16.u32 %h1, %i0;\ncvt.u32.u16 %o2, %h1;\n\
         cvt.rn.bf16.s32 %h1, %i0;\ncvt.u32.u16 %o3, %h1;\ncvt.rn.f16.s8 %h1, %i0;\ncvt.u32.u16 %o4, %h1;",
        &[&inputs],
    );
    for (at, x) in inputs.iter().enumerate() {
        assert_eq!(signed[at], (*x as i32 as f32).to_bits());
        assert_eq!(unsigned[at], (*x as f32).to_bits());
        assert_eq!(half[at], F16.nearest(f64::from(*x)));
        assert_eq!(brain[at], BF16.nearest(f64::from(*x as i32)));
        assert_eq!(small[at], F16.nearest(f64::from(*x as i8)));
    }
}

#[test]
fn doubles_become_halves_in_one_rounding() {
    // The first two are just above the midpoint of two neighbours; rounding to f32 first would give the midpoint.
    let beyond = 2f64.powi(-40);
    let inputs = [1.0 + 2f64.powi(-11) + beyond, 1.0 + 2f64.powi(-8) + beyond, -65_519.999_999, 1e-30, f64::NAN];
    let (low, high) = halves(&inputs.map(f64::to_bits));
    let [half, brain] = map(
        "mov.b64 %d1, {%i0, %i1};\ncvt.rn.f16.f64 %h1, %d1;\ncvt.u32.u16 %o0, %h1;\n\
         cvt.rn.bf16.f64 %h1, %d1;\ncvt.u32.u16 %o1, %h1;",
        &[&low, &high],
    );
    for (at, x) in inputs.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
        assert_eq!(half[at], F16.nearest(*x), "{x}");
        assert_eq!(brain[at], BF16.nearest(*x), "{x}");
    }
}

#[test]
fn nan_keeps_its_sign_and_its_upper_bits_between_doubles_and_halves() {
    // From an H200.
    let doubles = [0x7ff8_0000_0000_0000u64, 0xffff_ffff_ffff_ffbf, 0x7ff4_0000_0000_0001];
    let (low, high) = halves(&doubles);
    let [half, brain, single] = map(
        "mov.b64 %d1, {%i0, %i1};\ncvt.rn.f16.f64 %h1, %d1;\ncvt.u32.u16 %o0, %h1;\n\
         cvt.rn.bf16.f64 %h1, %d1;\ncvt.u32.u16 %o1, %h1;\ncvt.rm.f32.f64 %o2, %d1;",
        &[&low, &high],
    );
    assert_eq!(half, [0x7e00, 0xffff, 0x7f00]);
    assert_eq!(brain, [0x7fc0, 0xffff, 0x7fe0]);
    assert_eq!(single, [0x7fc0_0000, 0xffff_ffff, 0x7fe0_0000]);
    let [low, high, brain_low, brain_high] = map(
        "cvt.u16.u32 %h1, %i0;\ncvt.f64.f16 %d1, %h1;\nmov.b64 {%o0, %o1}, %d1;\n\
         cvt.f64.bf16 %d1, %h1;\nmov.b64 {%o2, %o3}, %d1;",
        &[&[0xffff, 0xfffb]],
    );
    assert_eq!(joined(&[low, high]), [0xffff_fc00_0000_0000, 0xffff_ec00_0000_0000]);
    assert_eq!(joined(&[brain_low, brain_high]), [0xffff_e000_0000_0000, 0xffff_6000_0000_0000]);
}

#[test]
fn long_integers_become_halves_in_one_rounding() {
    // A midpoint; a midpoint plus 1, which rounding to f64 first would make a midpoint; and such a number with the top
    // bit set.
    let inputs = [(1u64 << 62) + (1 << 54), (1 << 62) + (1 << 54) + 1, (1 << 63) + (1 << 55) + 1];
    let (low, high) = halves(&inputs);
    let [signed, unsigned] = map(
        "mov.b64 %rd5, {%i0, %i1};\ncvt.rn.bf16.s64 %h1, %rd5;\ncvt.u32.u16 %o0, %h1;\n\
         cvt.rn.bf16.u64 %h1, %rd5;\ncvt.u32.u16 %o1, %h1;",
        &[&low, &high],
    );
    let [down, up] = [2f64.powi(62), 2f64.powi(62) + 2f64.powi(55)];
    assert_eq!(signed, [down, up, 2f64.powi(55) - 2f64.powi(63)].map(|x| BF16.nearest(x)));
    assert_eq!(unsigned, [down, up, 2f64.powi(63) + 2f64.powi(56)].map(|x| BF16.nearest(x)));
}

#[test]
fn halves_become_integers_and_each_other() {
    let every: Vec<u32> = (0..=0xffff).collect();
    let [integers, brains, saturated] = map(
        "cvt.u16.u32 %h1, %i0;\ncvt.rni.s32.f16 %o0, %h1;\ncvt.rn.bf16.f16 %h2, %h1;\ncvt.u32.u16 %o1, %h2;\n\
         cvt.sat.f32.f16 %o2, %h1;",
        &[&every],
    );
    for bits in every {
        let x = F16.value(bits);
        assert_eq!(integers[bits as usize], x.round_ties_even() as i32 as u32);
        assert_eq!(brains[bits as usize], BF16.nearest(x));
        let clamped = if x > 0.0 { x.min(1.0) } else { 0.0 };
        assert_eq!(saturated[bits as usize], (clamped as f32).to_bits());
    }
}

#[test]
fn integers_saturate_on_request() {
    let inputs = [300u32, 0xffff_ff00, 5, 0x8000_0000];
    let [bytes, signed, plain] =
        map("cvt.sat.u8.s32 %o0, %i0;\ncvt.sat.s8.s32 %o1, %i0;\ncvt.s8.s32 %o2, %i0;", &[&inputs]);
    assert_eq!(bytes, [255, 0, 5, 0]);
    assert_eq!(signed, [127, 0xffff_ff80, 5, 0xffff_ff80]);
    assert_eq!(plain, [44, 0, 5, 0]);
}

#[test]
fn forms_that_are_not_executed_are_refused() {
    let forms = [
        "cvt.rn.e4m3x2.f32 %h1, %r1, %r2;",
        "cvt.rn.bf16x2.e4m3x2 %r1, %h1;",
        "cvt.rn.e2m1x2.f32 %h1, %r1, %r2;",
        "cvt.rn.ue8m0x2.f32 %h1, %r1, %r2;",
        "cvt.rz.relu.ue8m0x2.f32 %h1, %r1, %r2;",
        "cvt.rn.f16x2.ue8m0x2 %r1, %h1;",
        "cvt.rs.e4m3x4.f32 %r1, {%r2, %r3, %r4, %r5}, %r6;",
        "cvt.rs.satfinite.e4m3x2.f32 %h1, %r2, %r3, %r4;",
        "cvt.rs.f16x2.f32 %r1, %r2, %r3;",
        "cvt.u16x2.f32 %r1, %r2;",
    ];
    assert_eq!(refusals(&forms.join("\n")).len(), forms.len());
}

/// The code of `x` in a format, rounded away from zero if the first `bits` bits of the rest and `random` have a carry.
fn rounded_at_random(x: f32, format: Small, random: u32, bits: i32, is_finite: bool) -> u32 {
    let sign = if x.is_sign_negative() { format.sign() } else { 0 };
    let (size, beyond) = (f64::from(x.abs()), format.beyond());
    let largest = sign | (if is_finite { beyond - 1 } else { beyond });
    if x.is_nan() {
        return format.nan();
    }
    if size >= format.magnitude(beyond) {
        return largest;
    }
    let below = (0..beyond).rev().find(|code| format.magnitude(*code) <= size).unwrap_or(0);
    let (low, high) = (format.magnitude(below), format.magnitude(below + 1));
    let rest = ((size - low) / (high - low) * 2f64.powi(bits)).floor() as u32;
    let code = below + u32::from(rest + random >= 1 << bits);
    if code >= beyond { largest } else { sign | code }
}

/// Numbers of all sizes, with the special ones.
fn singles_at_random() -> Vec<u32> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let mut all: Vec<u32> =
        [0.0f32, -0.0, 1.0, -6.0, 448.0, 464.0, 57344.0, 65504.0, 65519.9, 65536.0, f32::MAX, 1e-8, -3e-5]
            .map(f32::to_bits)
            .to_vec();
    all.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN].map(f32::to_bits));
    // Exponents around those of the small formats, and all others.
    all.extend(
        (0..1200).map(|at| (next() & 0x807f_ffff) | (if at % 4 == 0 { next() % 255 } else { 100 + next() % 45 }) << 23),
    );
    all
}

#[test]
fn random_bits_round_to_a_neighbour() {
    let (a, mut random) = (singles_at_random(), Vec::new());
    let b: Vec<u32> = a.iter().rev().copied().collect();
    for at in 0..a.len() as u32 {
        random.push(at.wrapping_mul(0x9e37_79b9) ^ at.rotate_left(7));
    }
    let inputs = [a.as_slice(), b.as_slice(), random.as_slice()];
    for (name, format, bits, is_finite) in
        [("f16x2", F16, 13, false), ("f16x2", F16, 13, true), ("bf16x2", BF16, 16, false), ("bf16x2", BF16, 16, true)]
    {
        let finite = if is_finite { ".satfinite" } else { "" };
        let body = format!("cvt.rs{finite}.{name}.f32 %o0, %i0, %i1, %i2;");
        let found = execute(&body, &inputs, 1, 32).unwrap_or_else(|error| panic!("{error}")).outputs;
        for (at, word) in found[0].iter().enumerate().take(a.len()) {
            for (half, source) in [(0, b[at]), (1, a[at])] {
                let share = random[at] >> (16 * half) & ((1 << bits) - 1);
                let wanted = rounded_at_random(f32::from_bits(source), format, share, bits, is_finite);
                assert_eq!(word >> (16 * half) & 0xffff, wanted, "{name} {source:#x} {share:#x}");
            }
        }
    }
    for (name, format, stride) in
        [("e4m3x4", E4M3, 8), ("e5m2x4", E5M2, 8), ("e2m3x4", E2M3, 8), ("e3m2x4", E3M2, 8), ("e2m1x4", E2M1, 4)]
    {
        let to = if stride == 4 { "%h1" } else { "%o0" };
        let widen = if stride == 4 { "cvt.u32.u16 %o0, %h1;" } else { "" };
        let body = format!("cvt.rs.satfinite.{name}.f32 {to}, {{%i0, %i1, %i1, %i0}}, %i2;\n{widen}");
        let found = execute(&body, &inputs, 1, 32).unwrap_or_else(|error| panic!("{error}")).outputs;
        for (at, word) in found[0].iter().enumerate().take(a.len()) {
            for (place, source) in [a[at], b[at], b[at], a[at]].into_iter().enumerate() {
                let share = random[at] >> (8 * place) & 0xff;
                let wanted = rounded_at_random(f32::from_bits(source), format, share, 8, true);
                assert_eq!(word >> (stride * place) & ((1 << stride) - 1), wanted, "{name} {source:#x} {share:#x}");
            }
        }
    }
}

#[test]
fn negative_numbers_become_zero_before_they_are_rounded_at_random() {
    let found = execute("cvt.rs.relu.satfinite.bf16x2.f32 %o0, %i0, %i0, %i0;", &[&[(-1.5f32).to_bits()]], 1, 32);
    assert_eq!(found.unwrap_or_else(|error| panic!("{error}")).outputs[0][0], 0);
}
