//! `mma.sync`: matrices are scattered by the formulas of the ISA and multiplied by a plain triple loop.

use tilewright_vgpu::FaultKind;

use crate::harness::{Random, execute, fault, halves, joined, map, refusals};
use crate::small::{BF16, E4M3, E5M2, F16, Small};

/// Row and column of the `i`-th element of a lane, whose `groupID` is `g` and `threadID_in_group` is `t` (PTX ISA,
/// "Matrix Fragments for mma...").
type Position = fn(usize, usize, usize) -> (usize, usize);

/// A shape m16n8 for multiplicands of `bits` bits.
struct Shape {
    name: &'static str,
    k: usize,
    bits: usize,
    a: Position,
    b: Position,
}

fn lower_if(low: bool, g: usize) -> usize {
    if low { g } else { g + 8 }
}

const K4: Shape = Shape { name: "m16n8k4", k: 4, bits: 32, a: |g, t, i| (lower_if(i == 0, g), t), b: |g, t, _| (t, g) };

const K8: Shape = Shape {
    name: "m16n8k8",
    k: 8,
    bits: 32,
    a: |g, t, i| (lower_if(i == 0 || i == 2, g), if i < 2 { t } else { t + 4 }),
    b: |g, t, i| (if i == 0 { t } else { t + 4 }, g),
};

const K8_HALVES: Shape = Shape {
    name: "m16n8k8",
    k: 8,
    bits: 16,
    a: |g, t, i| (lower_if(i < 2, g), t * 2 + (i & 1)),
    b: |g, t, i| (t * 2 + i, g),
};

const K16_HALVES: Shape = Shape {
    name: "m16n8k16",
    k: 16,
    bits: 16,
    a: |g, t, i| {
        let low = i < 2 || (4..6).contains(&i);
        (lower_if(low, g), if i < 4 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 })
    },
    b: |g, t, i| (if i < 2 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 }, g),
};

const K16_BYTES: Shape = Shape {
    name: "m16n8k16",
    k: 16,
    bits: 8,
    a: |g, t, i| (lower_if(i < 4, g), t * 4 + (i & 3)),
    b: |g, t, i| (t * 4 + i, g),
};

const K32_BYTES: Shape = Shape {
    name: "m16n8k32",
    k: 32,
    bits: 8,
    a: |g, t, i| {
        let low = i < 4 || (8..12).contains(&i);
        (lower_if(low, g), if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
    },
    b: |g, t, i| (if i < 4 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 }, g),
};

const SUMS: Position = |g, t, i| (lower_if(i < 2, g), t * 2 + (i & 1));

/// A matrix of bit patterns.
type Patterns = Vec<Vec<u32>>;

fn matrix(rows: usize, columns: usize, mut element: impl FnMut() -> u32) -> Patterns {
    (0..rows).map(|_| (0..columns).map(|_| element()).collect()).collect()
}

/// The registers of a fragment of `count` elements a lane.
fn scatter(matrix: &[Vec<u32>], count: usize, bits: usize, place: Position) -> Vec<Vec<u32>> {
    let in_register = 32 / bits;
    let mut registers = vec![vec![0; 32]; count / in_register];
    for i in 0..count {
        for (lane, register) in registers[i / in_register].iter_mut().enumerate() {
            let (row, column) = place(lane >> 2, lane % 4, i);
            *register |= matrix[row][column] << (i % in_register * bits);
        }
    }
    registers
}

fn gather(registers: &[Vec<u32>], bits: usize) -> Patterns {
    let in_register = 32 / bits;
    let mut found = vec![vec![0; 8]; 16];
    for i in 0..4 {
        for (lane, register) in registers[i / in_register].iter().enumerate() {
            let (row, column) = SUMS(lane >> 2, lane % 4, i);
            let word = register >> (i % in_register * bits);
            found[row][column] = if bits == 16 { word & 0xffff } else { word };
        }
    }
    found
}

fn list(prefix: &str, first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count).map(|index| format!("%{prefix}{index}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// D of `mma.sync.aligned.SHAPE.row.col.TYPES`, with accumulators of `sum_bits` bits.
fn multiply(shape: &Shape, types: &str, sum_bits: usize, [a, b, c]: [&Patterns; 3]) -> Patterns {
    let a = scatter(a, shape.k / 2, shape.bits, shape.a);
    let b = scatter(b, shape.k / 4, shape.bits, shape.b);
    let c = scatter(c, 4, sum_bits, SUMS);
    let operands = [
        list("o", 0, c.len()),
        list("i", 0, a.len()),
        list("i", a.len(), b.len()),
        list("i", a.len() + b.len(), c.len()),
    ];
    let body = format!("mma.sync.aligned.{}.row.col.{types} {};", shape.name, operands.join(", "));
    let inputs: Vec<&[u32]> = [&a, &b, &c].into_iter().flatten().map(Vec::as_slice).collect();
    if c.len() == 2 { gather(&map::<2>(&body, &inputs), 16) } else { gather(&map::<4>(&body, &inputs), 32) }
}

/// A type of multiplicands: a named format of 8 or 16 bits, or tf32 in f32 bits.
#[derive(Clone, Copy)]
enum Element {
    Small(&'static str, Small),
    Tf32,
}

impl Element {
    fn name(self) -> &'static str {
        match self {
            Element::Small(name, _) => name,
            Element::Tf32 => "tf32",
        }
    }

    fn code(self, x: f64) -> u32 {
        match self {
            Element::Small(_, format) => format.nearest(x),
            Element::Tf32 => (x as f32).to_bits(),
        }
    }

    fn value(self, bits: u32) -> f64 {
        match self {
            Element::Small(_, format) => format.value(bits),
            Element::Tf32 => f64::from(f32::from_bits(bits)),
        }
    }

    /// A finite number whose products and their sums stay in the range of f32.
    fn random(self, random: &mut Random) -> u32 {
        match self {
            Element::Small("bf16", _) => (random.next() & 0x807f) | ((100 + random.next() % 50) << 7),
            Element::Small(_, format) => (random.next() % format.beyond()) | ((random.next() & 1) * format.sign()),
            Element::Tf32 => (random.next() & 0x807f_e000) | ((100 + random.next() % 50) << 23),
        }
    }
}

const HALF: Element = Element::Small("f16", F16);
const BRAIN: Element = Element::Small("bf16", BF16);
const QUARTERS: [Element; 2] = [Element::Small("e4m3", E4M3), Element::Small("e5m2", E5M2)];

/// Every shape with its multiplicands, and whether sums may be f16.
fn float_forms() -> Vec<(&'static Shape, Element, Element, bool)> {
    let mut forms = vec![
        (&K8_HALVES, HALF, HALF, true),
        (&K16_HALVES, HALF, HALF, true),
        (&K8_HALVES, BRAIN, BRAIN, false),
        (&K16_HALVES, BRAIN, BRAIN, false),
        (&K4, Element::Tf32, Element::Tf32, false),
        (&K8, Element::Tf32, Element::Tf32, false),
    ];
    for a in QUARTERS {
        for b in QUARTERS {
            forms.push((&K16_BYTES, a, b, true));
            forms.push((&K32_BYTES, a, b, true));
        }
    }
    forms
}

fn types(sum: &str, a: Element, b: Element) -> String {
    format!("{sum}.{}.{}.{sum}", a.name(), b.name())
}

#[test]
fn small_integers_are_multiplied_exactly() {
    let mut random = Random(1);
    for (shape, a_type, b_type, halves) in float_forms() {
        let mut small = |element: Element| element.code(f64::from(random.next() % 9) - 4.0);
        let a = matrix(16, shape.k, || small(a_type));
        let b = matrix(shape.k, 8, || small(b_type));
        let numbers = matrix(16, 8, || small(Element::Tf32));
        let number = |row: usize, column: usize| f64::from(f32::from_bits(numbers[row][column]));
        let mut want = vec![vec![0.0; 8]; 16];
        for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let products = (0..shape.k).map(|k| a_type.value(a[row][k]) * b_type.value(b[k][column]));
            want[row][column] = number(row, column) + products.sum::<f64>();
        }
        let values = |found: &Patterns, value: &dyn Fn(u32) -> f64| -> Vec<Vec<f64>> {
            found.iter().map(|row| row.iter().map(|bits| value(*bits)).collect()).collect()
        };
        let found = multiply(shape, &types("f32", a_type, b_type), 32, [&a, &b, &numbers]);
        assert_eq!(values(&found, &|bits| f64::from(f32::from_bits(bits))), want, "{} {}", shape.name, a_type.name());
        if halves {
            let c: Patterns =
                (0..16).map(|row| (0..8).map(|column| F16.nearest(number(row, column))).collect()).collect();
            let found = multiply(shape, &types("f16", a_type, b_type), 16, [&a, &b, &c]);
            assert_eq!(values(&found, &|bits| F16.value(bits)), want, "{} {}", shape.name, a_type.name());
        }
    }
}

/// Products added one after another, each addition rounded to f32.
fn in_order(a: &[f32], b: &[f32], c: f32) -> f32 {
    a.iter().zip(b).fold(c, |sum, (a, b)| a.mul_add(*b, sum))
}

#[test]
fn sums_are_rounded_in_the_order_of_k() {
    let mut random = Random(2);
    for (shape, a_type, b_type, halves) in float_forms() {
        let a = matrix(16, shape.k, || a_type.random(&mut random));
        let b = matrix(shape.k, 8, || b_type.random(&mut random));
        let c = matrix(16, 8, || HALF.random(&mut random));
        let singles = |row: usize, column: usize| -> (Vec<f32>, Vec<f32>) {
            (0..shape.k).map(|k| (a_type.value(a[row][k]) as f32, b_type.value(b[k][column]) as f32)).unzip()
        };
        let want = |row: usize, column: usize| {
            let (a, b) = singles(row, column);
            in_order(&a, &b, F16.value(c[row][column]) as f32)
        };
        let wide: Patterns =
            c.iter().map(|row| row.iter().map(|bits| (F16.value(*bits) as f32).to_bits()).collect()).collect();
        let found = multiply(shape, &types("f32", a_type, b_type), 32, [&a, &b, &wide]);
        for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
            assert_eq!(f32::from_bits(found[row][column]), want(row, column), "{} {}", shape.name, a_type.name());
        }
        if halves {
            let found = multiply(shape, &types("f16", a_type, b_type), 16, [&a, &b, &c]);
            for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
                let want = F16.nearest(f64::from(want(row, column)));
                assert_eq!(found[row][column], want, "{} {}", shape.name, a_type.name());
            }
        }
    }
}

#[test]
fn bytes_are_added_up_in_32_bits() {
    let mut random = Random(3);
    for (shape, a_type, b_type) in [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")]
        .into_iter()
        .flat_map(|(a, b)| [(&K16_BYTES, a, b), (&K32_BYTES, a, b)])
    {
        let a = matrix(16, shape.k, || random.next() & 0xff);
        let b = matrix(shape.k, 8, || random.next() & 0xff);
        // Many are next to the largest or the smallest number.
        let c = matrix(16, 8, || {
            let near = 0x7fff_fff0 + random.next() % 32;
            if random.next() & 1 == 0 { random.next() } else { near }
        });
        let number = |bits: u32, name: &str| if name == "s8" { i64::from(bits as i8) } else { i64::from(bits) };
        let sum = |row: usize, column: usize| {
            let products = (0..shape.k).map(|k| number(a[row][k], a_type) * number(b[k][column], b_type));
            i64::from(c[row][column] as i32) + products.sum::<i64>()
        };
        for satfinite in ["", "satfinite."] {
            let types = format!("{satfinite}s32.{a_type}.{b_type}.s32");
            let found = multiply(shape, &types, 32, [&a, &b, &c]);
            for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
                let exact = sum(row, column);
                let clamped = exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                let want = if satfinite.is_empty() { exact as i32 } else { clamped };
                assert_eq!(found[row][column] as i32, want, "{} {types}", shape.name);
            }
        }
    }
}

#[test]
fn infinities_and_nan_go_on() {
    let mut a = matrix(16, 16, || F16.nearest(1.0));
    let mut b = matrix(16, 8, || F16.nearest(1.0));
    let c = matrix(16, 8, || 0);
    a[3][5] = F16.nearest(f64::INFINITY);
    a[9][0] = F16.nan();
    b[5][2] = 0;
    let found = multiply(&K16_HALVES, "f32.f16.f16.f32", 32, [&a, &b, &c]);
    assert_eq!(f32::from_bits(found[0][0]), 16.0);
    assert_eq!(f32::from_bits(found[0][2]), 15.0);
    assert_eq!(f32::from_bits(found[3][0]), f32::INFINITY);
    assert_eq!(found[3][2], 0x7fff_ffff);
    assert_eq!(found[9], [0x7fff_ffff; 8]);
    let found = multiply(&K16_HALVES, "f16.f16.f16.f16", 16, [&a, &b, &c]);
    assert_eq!([found[3][0], found[3][2], found[9][7]], [0x7c00, 0x7fff, 0x7fff]);
}

#[test]
fn the_low_bits_of_tf32_do_not_count() {
    let mut random = Random(4);
    let a = matrix(16, 8, || Element::Tf32.random(&mut random));
    let b = matrix(8, 8, || Element::Tf32.random(&mut random));
    let c = matrix(16, 8, || 0);
    let noisy: Patterns =
        a.iter().map(|row| row.iter().map(|bits| bits | (random.next() & 0x1fff)).collect()).collect();
    let types = "f32.tf32.tf32.f32";
    assert_eq!(multiply(&K8, types, 32, [&noisy, &b, &c]), multiply(&K8, types, 32, [&a, &b, &c]));
}

const ONE: &str = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r20, %r21, %r22, %r23}, {%r24, %r25}, {%r26}, \
                   {%r20, %r21, %r22, %r23};";

#[test]
fn a_part_of_a_warp_does_not_multiply() {
    let predicated = fault(&format!("setp.lt.u32 %p1, %r1, 16;\n@%p1 {ONE}"), 32);
    assert_eq!((predicated.kind, predicated.lanes), (FaultKind::DivergentAligned, 0xffff));
    let branched = fault(&format!("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra SKIP;\n{ONE}\nSKIP:"), 32);
    assert_eq!(branched.kind, FaultKind::DivergentAligned);
    let small = fault(ONE, 16);
    assert_eq!((small.kind, small.lanes), (FaultKind::DivergentAligned, 0xffff));
    assert_eq!(small.message, "this instruction needs all 32 lanes of the warp; exited or never started: 16");
}

#[test]
fn lanes_that_come_by_two_ways_multiply_together() {
    let two_ways = format!(
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra LOW;\nmov.b32 %o0, 7;\n{ONE}\nbra.uni OUT;\nLOW:\nmov.b32 %o0, 9;\nOUT:"
    );
    assert_eq!(fault(&two_ways, 32).kind, FaultKind::DivergentAligned);
    let joined = format!(
        "setp.lt.u32 %p1, %r1, 16;\nmov.b32 %o0, 7;\n@%p1 bra LOW;\nmov.b32 %o0, 9;\nLOW:\n{ONE}\n\
         setp.ge.u32 %p2, %r1, 32;\n@%p2 {ONE}"
    );
    let [found] = map(&joined, &[]);
    assert_eq!((found[0], found[31]), (7, 9));
}

/// D of m8n8k4 in f64: A by rows, B by columns, C by rows.
fn multiply_doubles(a: &[[f64; 4]; 8], b: &[[f64; 4]; 8], c: &[[f64; 8]; 8]) -> [[f64; 8]; 8] {
    let of_lanes =
        |element: &dyn Fn(usize) -> f64| halves(&(0..32).map(|l| element(l).to_bits()).collect::<Vec<u64>>());
    let registers = [
        of_lanes(&|lane| a[lane >> 2][lane % 4]),
        of_lanes(&|lane| b[lane >> 2][lane % 4]),
        of_lanes(&|lane| c[lane >> 2][lane % 4 * 2]),
        of_lanes(&|lane| c[lane >> 2][lane % 4 * 2 + 1]),
    ];
    let inputs: Vec<&[u32]> = registers.iter().flat_map(|(low, high)| [low.as_slice(), high.as_slice()]).collect();
    let body = "mov.b64 %d0, {%i0, %i1};\nmov.b64 %d1, {%i2, %i3};\nmov.b64 %d2, {%i4, %i5};\n\
                mov.b64 %d3, {%i6, %i7};\n\
                mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d4, %d5}, {%d0}, {%d1}, {%d2, %d3};\n\
                mov.b64 {%o0, %o1}, %d4;\nmov.b64 {%o2, %o3}, %d5;";
    let [low, high, next_low, next_high] = map::<4>(body, &inputs);
    let sums = [joined(&[low, high]), joined(&[next_low, next_high])];
    let element = |row: usize, column: usize| f64::from_bits(sums[column % 2][row * 4 + column / 2]);
    std::array::from_fn(|row| std::array::from_fn(|column| element(row, column)))
}

#[test]
fn doubles_are_multiplied_and_added_in_the_order_of_k() {
    let mut random = Random(5);
    let mut number = || (f64::from(random.next()) - 2e9) / f64::from(random.next() | 1);
    let a = [[0; 4]; 8].map(|row| row.map(|_| number()));
    let b = [[0; 4]; 8].map(|column| column.map(|_| number()));
    let c = [[0; 8]; 8].map(|row| row.map(|_| number()));
    let found = multiply_doubles(&a, &b, &c);
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let want = a[row].iter().zip(&b[column]).fold(c[row][column], |sum, (a, b)| a.mul_add(*b, sum));
        assert_eq!(found[row][column], want, "row {row}, column {column}");
    }
}

#[test]
fn infinities_and_nan_of_doubles_go_on() {
    let (mut a, mut b, c) = ([[1.0; 4]; 8], [[1.0; 4]; 8], [[0.5; 8]; 8]);
    a[3][2] = f64::INFINITY;
    a[6][0] = f64::NAN;
    b[5][2] = 0.0;
    let found = multiply_doubles(&a, &b, &c);
    assert_eq!([found[0][0], found[0][5], found[3][0]], [4.5, 3.5, f64::INFINITY]);
    assert!(found[3][5].is_nan() && found[6].iter().all(|sum| sum.is_nan()));
}

#[test]
fn what_is_undefined_of_a_double_reaches_its_row_alone() {
    let body = |stored: &str| {
        format!(
            "setp.eq.u32 %p1, %r1, 4;\nmov.b64 %d0, 0;\nmov.b64 %d1, 0;\n@%p1 ld.shared.b64 %d0, [tile];\n\
             mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%d4, %d5}}, {{%d0}}, {{%d1}}, {{%d1, %d1}};\n\
             setp.eq.u32 %p2, %r1, {stored};\n@%p2 st.global.b64 [%rd2], %d5;"
        )
    };
    // Lane 4 holds the first element of row 1 of A; lanes 4 to 7 hold the sums of that row.
    assert_eq!(fault(&body("7"), 32).kind, FaultKind::UninitializedRead);
    assert!(execute(&body("8"), &[], 0, 32).is_ok());
}

#[test]
fn other_forms_are_refused_by_name() {
    let operands = "{%r1}, {%r2}, {%r3}, {%r4};\n";
    let forms = [
        ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "supported shapes: m8n8k4 and m16n8k4, k8, k16 and k32"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "1-register vector, expected 2"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "these types are not supported in m8n8k4"),
        ("mma.sync.aligned.m8n8k4.col.col.f64.f64.f64.f64", "A must be `.row` and B `.col`"),
        ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", "A must be `.row` and B `.col`"),
        ("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "unsupported multiplicand or accumulator types"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "these types are not supported in m16n8k16"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "these types are not supported in m16n8k32"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "2-register vector, expected 4"),
        ("mma.aligned.m16n8k16.row.col.f32.f16.f16.f32", "the form without `.sync` is not supported"),
    ];
    for (opcode, reason) in forms {
        let operands = operands.replace("{%r2}", if reason.starts_with('2') { "{%r2, %r3}" } else { "{%r2}" });
        let found = refusals(&format!("{opcode} {operands}"));
        assert!(found.len() == 1 && found[0].ends_with(&format!(": {reason}")), "{found:?}");
    }
}
