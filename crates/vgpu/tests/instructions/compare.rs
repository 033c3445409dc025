//! `setp`, `set`, `selp`, `slct`, `testp`.

use crate::harness::{halves, map, pairs, refusals};
use crate::small::{BF16, F16};

type HostComparison = fn(f64, f64) -> bool;

const COMPARISONS: [(&str, HostComparison); 14] = [
    ("eq", |a, b| a == b),
    ("ne", |a, b| a != b && !unordered(a, b)),
    ("lt", |a, b| a < b),
    ("le", |a, b| a <= b),
    ("gt", |a, b| a > b),
    ("ge", |a, b| a >= b),
    ("equ", |a, b| a == b || unordered(a, b)),
    ("neu", |a, b| a != b || unordered(a, b)),
    ("ltu", |a, b| a < b || unordered(a, b)),
    ("leu", |a, b| a <= b || unordered(a, b)),
    ("gtu", |a, b| a > b || unordered(a, b)),
    ("geu", |a, b| a >= b || unordered(a, b)),
    ("num", |a, b| !unordered(a, b)),
    ("nan", unordered),
];

fn unordered(a: f64, b: f64) -> bool {
    a.is_nan() || b.is_nan()
}

/// Values that are exact in f16 and bf16 too.
const VALUES: [f64; 8] = [0.0, -0.0, 1.0, -1.0, 2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// Both predicates of `setp`, as words.
const WRITE: &str = "selp.b32 %o0, 1, 0, %p1;\nselp.b32 %o1, 1, 0, %p2;";

fn words(holds: impl Iterator<Item = bool>) -> Vec<u32> {
    holds.map(u32::from).collect()
}

#[test]
fn setp_compares_every_floating_type_in_every_way() {
    let (a, b) = pairs(&VALUES);
    let singles = [&a, &b].map(|values| values.iter().map(|x| (*x as f32).to_bits()).collect::<Vec<u32>>());
    let f16 = [&a, &b].map(|values| values.iter().map(|x| F16.nearest(*x)).collect::<Vec<u32>>());
    let bf16 = [&a, &b].map(|values| values.iter().map(|x| BF16.nearest(*x)).collect::<Vec<u32>>());
    let doubles = [&a, &b].map(|values| halves(&values.iter().map(|x| x.to_bits()).collect::<Vec<u64>>()));
    let narrow = "cvt.u16.u32 %h0, %i0;\ncvt.u16.u32 %h1, %i1;\n";
    for (name, holds) in COMPARISONS {
        let want = words(a.iter().zip(&b).map(|(a, b)| holds(*a, *b)));
        let opposite: Vec<u32> = want.iter().map(|bit| 1 - bit).collect();
        for (kind, operands, before, inputs) in [
            ("f32", "%i0, %i1", "", [&singles[0], &singles[1]]),
            ("f16", "%h0, %h1", narrow, [&f16[0], &f16[1]]),
            ("bf16", "%h0, %h1", narrow, [&bf16[0], &bf16[1]]),
        ] {
            let body = format!("{before}setp.{name}.{kind} %p1|%p2, {operands};\n{WRITE}");
            let found: [Vec<u32>; 2] = map(&body, &inputs.map(Vec::as_slice));
            assert_eq!(found, [want.clone(), opposite.clone()], "{name} {kind}");
        }
        let body = format!(
            "mov.b64 %d0, {{%i0, %i1}};\nmov.b64 %d1, {{%i2, %i3}};\nsetp.{name}.f64 %p1|%p2, %d0, %d1;\n{WRITE}"
        );
        let [(a, b), (c, d)] = &doubles;
        let found: [Vec<u32>; 2] = map(&body, &[a, b, c, d]);
        assert_eq!(found, [want, opposite], "{name} f64");
    }
}

#[test]
fn packed_comparisons_have_a_predicate_for_each_half() {
    let (a, b) = pairs(&VALUES);
    for (kind, format) in [("f16x2", F16), ("bf16x2", BF16)] {
        let pack = |values: &[f64]| -> Vec<u32> {
            let other = values.iter().rev();
            values.iter().zip(other).map(|(low, high)| format.nearest(*high) << 16 | format.nearest(*low)).collect()
        };
        for (name, holds) in COMPARISONS {
            let low: Vec<bool> = a.iter().zip(&b).map(|(a, b)| holds(*a, *b)).collect();
            let high: Vec<bool> = low.iter().rev().copied().collect();
            let body = format!(
                "setp.{name}.{kind} %p1|%p2, %i0, %i1;\n{WRITE}\nset.{name}.{kind}.{kind} %o2, %i0, %i1;\n\
                 set.{name}.u32.{kind} %o3, %i0, %i1;"
            );
            let [p, q, ones, masks] = map(&body, &[&pack(&a), &pack(&b)]);
            assert_eq!((p, q), (words(low.iter().copied()), words(high.iter().copied())), "{name} {kind}");
            let both = |yes: u32| -> Vec<u32> {
                low.iter().zip(&high).map(|(low, high)| (u32::from(*high) << 16 | u32::from(*low)) * yes).collect()
            };
            assert_eq!((ones, masks), (both(format.nearest(1.0)), both(0xffff)), "{name} {kind}");
        }
    }
}

#[test]
fn set_writes_ones_or_a_one() {
    let inputs = [[1.0f32, 3.0, f32::NAN].map(f32::to_bits), [2.0f32, 2.0, 2.0].map(f32::to_bits)];
    let [masks, ones, halves, combined] = map(
        "set.lt.u32.f32 %o0, %i0, %i1;\nset.ltu.f32.f32 %o1, %i0, %i1;\nset.ge.bf16.f32 %h1, %i0, %i1;\n\
         cvt.u32.u16 %o2, %h1;\nsetp.eq.u32 %p1, %r1, 1;\nset.lt.xor.s32.f32 %o3, %i0, %i1, !%p1;",
        &[&inputs[0], &inputs[1]],
    );
    assert_eq!(masks, [u32::MAX, 0, 0]);
    assert_eq!(ones, [1.0f32.to_bits(), 0, 1.0f32.to_bits()]);
    assert_eq!(halves, [0, 0x3f80, 0]);
    assert_eq!(combined, [0, 0, u32::MAX]);
}

#[test]
fn results_combine_with_a_predicate() {
    let a = [1.0f32, 1.0, 3.0, 3.0].map(f32::to_bits);
    for (combine, want) in
        [("and", [0, 1, 0, 0, 0, 0, 0, 1]), ("or", [1, 1, 0, 1, 0, 1, 1, 1]), ("xor", [1, 0, 0, 1, 0, 1, 1, 0])]
    {
        let body = format!(
            "and.b32 %r10, %r1, 1;\nsetp.ne.u32 %p3, %r10, 0;\nmov.b32 %r11, 0f40000000;\n\
             setp.lt.{combine}.f32 %p1|%p2, %i0, %r11, %p3;\n{WRITE}"
        );
        let [p, q] = map(&body, &[&a]);
        assert_eq!((&p[..], &q[..]), (&want[..4], &want[4..]), "{combine}");
    }
}

#[test]
fn comparisons_flush_on_request() {
    let f32_subnormal = 1e-40f32.to_bits();
    let [singles, halves] = map(
        "setp.eq.ftz.f32 %p1, %i0, 0f00000000;\nselp.b32 %o0, 1, 0, %p1;\nmov.b32 %r10, 0;\n\
         setp.eq.ftz.f16x2 %p1|%p2, %i1, %r10;\nselp.b32 %r11, 1, 0, %p1;\nselp.b32 %r12, 2, 0, %p2;\n\
         or.b32 %o1, %r11, %r12;",
        &[&[f32_subnormal, 0x0080_0000], &[0x83ff_0400, 0x0001_8001]],
    );
    assert_eq!((singles, halves), (vec![1, 0], vec![2, 3]));
}

#[test]
fn slct_looks_at_the_sign() {
    let conditions = [1.0f32, -1.0, -0.0, f32::NAN, -1e-40].map(f32::to_bits);
    let [singles, flushed, integers] = map(
        "slct.b32.f32 %o0, 5, 6, %i0;\nslct.ftz.u32.f32 %o1, 5, 6, %i0;\nslct.b32.s32 %o2, 5, 6, %i0;",
        &[&conditions],
    );
    assert_eq!(singles, [5, 6, 5, 6, 6]);
    assert_eq!(flushed, [5, 6, 5, 6, 5]);
    assert_eq!(integers, [5, 6, 6, 5, 6]);
}

#[test]
fn testp_classifies() {
    let values = [0.0f32, -1.0, 1e-40, f32::INFINITY, f32::NAN].map(f32::to_bits);
    for (class, want) in [
        ("finite", [1, 1, 1, 0, 0]),
        ("infinite", [0, 0, 0, 1, 0]),
        ("number", [1, 1, 1, 1, 0]),
        ("notanumber", [0, 0, 0, 0, 1]),
        ("normal", [1, 1, 0, 0, 0]),
        ("subnormal", [0, 0, 1, 0, 0]),
    ] {
        let body = format!(
            "testp.{class}.f32 %p1, %i0;\nselp.b32 %o0, 1, 0, %p1;\ncvt.f64.f32 %d1, %i0;\nmul.f64 %d2, %d1, \
             0d07B0000000000000;\ntestp.{class}.f64 %p2, %d2;\nselp.b32 %o1, 1, 0, %p2;"
        );
        let [singles, doubles] = map(&body, &[&values]);
        assert_eq!(singles, want, "{class}");
        // Multiplied by 2^-900, the values are in the same classes of f64.
        assert_eq!(doubles, want, "{class}");
    }
}

#[test]
fn testp_takes_no_halves() {
    assert_eq!(refusals("testp.normal.f16 %p1, %h1;\ntestp.finite.bf16 %p1, %h1;").len(), 2);
}
