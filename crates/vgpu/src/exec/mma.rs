//! `mma.sync`: products of small matrices that are distributed over a warp.
//!
//! The ISA does not specify the order and rounding of floating-point sums. Here a sum starts with the element of C and
//! adds one product after another, in the order of k: products are exact, and every addition is rounded to the nearest
//! f32, ties to even. f16 sums are kept in f32 too, and rounded once at the end. Subnormals are kept. Integer sums are
//! exact, and wrap or clamp at the end.

use crate::exec::product::are_products_exact;
use crate::float::{F16, bits32, half, narrow, widen, widen32};
use crate::isa::{Round, mask};
use crate::lanes::Lanes;
use crate::op::{AccumulatorType, Mma, Multiplicand, Reg};
use crate::vectorized::{Loop, vectorized};

/// Rows of A of at most 32 elements.
type Rows<T> = [[T; 32]; 16];
/// The columns of B: those of one k are adjacent.
type Columns<T> = [[T; 8]; 32];
/// Rows of C and D.
type Accumulators<T> = [[T; 8]; 16];

/// Executes an `mma.sync` in all lanes.
pub(crate) fn execute(regs: &mut [Lanes], op: &Mma) {
    let sums = match op.accumulator {
        AccumulatorType::S32 { saturate } => {
            let (a, b) = multiplicands(regs, op);
            let a = a.map(|row| row.map(|word| integer(word, op.a_type)));
            let b = b.map(|columns| columns.map(|word| integer(word, op.b_type)));
            let c = read_sums(regs, &op.c, |word| i64::from(word as i32));
            let sums = multiply(&a, &b, &c, op.k, |a, b, sum| sum + a * b);
            let clamped = |sum: i64| sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            words(&sums, |sum| if saturate { clamped(sum) as u32 } else { sum as u32 })
        }
        AccumulatorType::F32 => {
            let sums = float_sums(regs, op, f32::from_bits);
            words(&sums, |sum| bits32(sum) as u32)
        }
        AccumulatorType::F16 => {
            let sums = float_sums(regs, op, |word| widen(word, F16) as f32);
            words(&sums, |sum| narrow(f64::from(sum), F16, Round::Nearest))
        }
    };
    write_sums(regs, &op.d, &sums);
}

fn float_sums(regs: &[Lanes], op: &Mma, read: impl Fn(u32) -> f32) -> Accumulators<f32> {
    let (a, b) = multiplicands(regs, op);
    let mut sums = read_sums(regs, &op.c, read);
    vectorized(FloatProduct { op, a: &a, b: &b, sums: &mut sums });
    sums
}

/// Adds the products of two multiplicands to sums.
struct FloatProduct<'a> {
    op: &'a Mma,
    a: &'a Rows<u32>,
    b: &'a Columns<u32>,
    sums: &'a mut Accumulators<f32>,
}

impl Loop for FloatProduct<'_> {
    #[inline(always)]
    fn run(self) {
        let FloatProduct { op, a, b, sums } = self;
        let (a, b) = (singles(a, op.a_type), singles(b, op.b_type));
        let has_exact_products = |element: Multiplicand| match element {
            Multiplicand::Float(format) => format.has_exact_products(),
            Multiplicand::Tf32 | Multiplicand::Integer { .. } => false,
        };
        let is_exact = has_exact_products(op.a_type) && has_exact_products(op.b_type)
            || are_products_exact(a.as_flattened(), b.as_flattened());
        *sums = match is_exact {
            true => multiply(&a, &b, sums, op.k, |a, b, sum| a * b + sum),
            false => multiply(&a, &b, sums, op.k, multiply_add),
        };
    }
}

/// `a * b + sum`, rounded once. A product of two multiplicands has at most 22 significant bits, so it is exact in f32
/// unless it leaves the range of normal numbers.
pub(crate) fn multiply_add(a: f32, b: f32, sum: f32) -> f32 {
    let product = a * b;
    if product.is_normal() || a == 0.0 || b == 0.0 { product + sum } else { a.mul_add(b, sum) }
}

/// The values of elements; the type is the same for all, so that it is looked at once.
#[inline(always)]
fn singles<const N: usize, const M: usize>(words: &[[u32; N]; M], element: Multiplicand) -> [[f32; N]; M] {
    match element {
        Multiplicand::Float(F16) => each(words, half),
        Multiplicand::Float(format) => each(words, |word| widen32(word, format)),
        Multiplicand::Tf32 => each(words, |word| {
            let x = f32::from_bits(word);
            if x.is_nan() { x } else { f32::from_bits(word & !0x1fff) }
        }),
        Multiplicand::Integer { .. } => each(words, |word| integer(word, element) as f32),
    }
}

#[inline(always)]
fn each<const N: usize, const M: usize>(words: &[[u32; N]; M], read: impl Fn(u32) -> f32) -> [[f32; N]; M] {
    let mut values = [[0.0; N]; M];
    for (value, word) in values.as_flattened_mut().iter_mut().zip(words.as_flattened()) {
        *value = read(*word);
    }
    values
}

fn integer(word: u32, element: Multiplicand) -> i64 {
    if element == (Multiplicand::Integer { signed: true }) { i64::from(word as i8) } else { i64::from(word as u8) }
}

/// The rows of A and the columns of B (PTX ISA, sections "Matrix Fragments for mma.m16n8k4" to "... m16n8k32").
///
/// Lane `l` holds elements of row or column `l / 4` of eight. Each of its registers holds as many adjacent elements
/// along k as fit, and the four lanes of a row are adjacent along k. For A, every second register belongs to the row
/// eight below.
fn multiplicands(regs: &[Lanes], op: &Mma) -> (Rows<u32>, Columns<u32>) {
    let (mut a, mut b): (Rows<u32>, Columns<u32>) = ([[0; 32]; 16], [[0; 8]; 32]);
    elements(regs, &op.a, 2, op.a_type, |row, k, word| a[row][k] = word);
    elements(regs, &op.b, 1, op.b_type, |column, k, word| b[k][column] = word);
    (a, b)
}

/// Calls `f` with the line, the place along k and the bits of each element in the registers of a multiplicand with
/// `eights` times eight lines.
fn elements(regs: &[Lanes], of: &[Reg], eights: usize, element: Multiplicand, f: impl FnMut(usize, usize, u32)) {
    // The width is the same for all, so that it is looked at once.
    match element.bits() {
        8 => elements_of::<8>(regs, of, eights, f),
        16 => elements_of::<16>(regs, of, eights, f),
        _ => elements_of::<32>(regs, of, eights, f),
    }
}

fn elements_of<const BITS: usize>(regs: &[Lanes], of: &[Reg], eights: usize, mut f: impl FnMut(usize, usize, u32)) {
    let run = 32 / BITS;
    for (index, reg) in of.iter().enumerate() {
        for (lane, word) in regs[*reg as usize].iter().enumerate() {
            let (line, first) = (lane / 4 + index % eights * 8, (index / eights * 4 + lane % 4) * run);
            (0..run).for_each(|at| f(line, first + at, (word >> (BITS * at) & mask(BITS as u32)) as u32));
        }
    }
}

#[inline(always)]
fn multiply<T: Copy, S: Copy>(
    a: &Rows<T>,
    b: &Columns<T>,
    c: &Accumulators<S>,
    k: usize,
    step: impl Fn(T, T, S) -> S,
) -> Accumulators<S> {
    let mut sums = *c;
    for (row, line) in sums.iter_mut().zip(a) {
        for (a, columns) in line.iter().zip(b).take(k) {
            for (sum, b) in row.iter_mut().zip(columns) {
                *sum = step(*a, *b, *sum);
            }
        }
    }
    sums
}

/// Row and column of the `i`-th of the four elements of a lane in C and D.
fn place(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2)
}

/// Reads C: two registers hold two f16 elements each, four registers hold one element each.
fn read_sums<T: Copy + Default>(regs: &[Lanes], c: &[Reg], read: impl Fn(u32) -> T) -> Accumulators<T> {
    let mut out = [[T::default(); 8]; 16];
    let in_register = 4 / c.len();
    for i in 0..4 {
        for (lane, word) in regs[c[i / in_register] as usize].iter().enumerate() {
            let (row, column) = place(lane, i);
            out[row][column] =
                read(if in_register == 2 { (word >> (i % 2 * 16)) as u32 & 0xffff } else { *word as u32 });
        }
    }
    out
}

fn words<T: Copy>(sums: &Accumulators<T>, write: impl Fn(T) -> u32) -> Accumulators<u32> {
    sums.map(|row| row.map(&write))
}

fn write_sums(regs: &mut [Lanes], d: &[Reg], sums: &Accumulators<u32>) {
    let in_register = 4 / d.len();
    for (index, reg) in d.iter().enumerate() {
        let first = index * in_register;
        for (lane, register) in regs[*reg as usize].iter_mut().enumerate() {
            let word = |i: usize| {
                let (row, column) = place(lane, i);
                u64::from(sums[row][column])
            };
            let upper = if in_register == 2 { word(first + 1) << 16 } else { 0 };
            *register = upper | word(first);
        }
    }
}
