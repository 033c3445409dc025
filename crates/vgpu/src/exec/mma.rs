//! `mma.sync`: products of small matrices that are distributed over a warp.
//!
//! The ISA does not specify the order and rounding of floating-point sums. Here a sum starts with the element of C and
//! adds one product after another, in the order of k: products are exact, and every addition is rounded to the nearest
//! f32, ties to even. f16 sums are kept in f32 too, and rounded once at the end. Subnormals are kept. Integer sums are
//! exact, and wrap or clamp at the end.

use crate::float::{F16, bits32, narrow, widen};
use crate::isa::{Round, mask};
use crate::lanes::Lanes;
use crate::op::{AccumulatorType, Mma, Multiplicand, Reg};

/// Rows of A, or columns of B, of at most 32 elements.
type Lines<T, const N: usize> = [[T; 32]; N];
/// Rows of C and D.
type Accumulators<T> = [[T; 8]; 16];

/// Executes an `mma.sync` in all lanes.
pub(crate) fn execute(regs: &mut [Lanes], op: &Mma) {
    let sums = match op.accumulator {
        AccumulatorType::S32 { saturate } => {
            let (a, b) = multiplicands(regs, op, integer);
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
    let (a, b) = multiplicands(regs, op, single);
    let c = read_sums(regs, &op.c, read);
    multiply(&a, &b, &c, op.k, multiply_add)
}

/// `a * b + sum`, rounded once. A product of two multiplicands has at most 22 significant bits, so it is exact in f32
/// unless it leaves the range of normal numbers.
pub(crate) fn multiply_add(a: f32, b: f32, sum: f32) -> f32 {
    let product = a * b;
    if product.is_normal() || a == 0.0 || b == 0.0 { product + sum } else { a.mul_add(b, sum) }
}

fn single(word: u32, element: Multiplicand) -> f32 {
    match element {
        Multiplicand::Float(format) => widen(word, format) as f32,
        Multiplicand::Tf32 => {
            let x = f32::from_bits(word);
            if x.is_nan() { x } else { f32::from_bits(word & !0x1fff) }
        }
        Multiplicand::Integer { .. } => integer(word, element) as f32,
    }
}

fn integer(word: u32, element: Multiplicand) -> i64 {
    if element == (Multiplicand::Integer { signed: true }) { i64::from(word as i8) } else { i64::from(word as u8) }
}

/// The rows of A and the columns of B (PTX ISA, sections "Matrix Fragments for mma.m16n8k4" to "... m16n8k32").
///
/// Lane `l` holds elements of row or column `l / 4` of eight. Each of its registers holds as many adjacent elements
/// along k as fit, and the four lanes of a row are adjacent along k. For A, every second register belongs to the row
/// eight below.
fn multiplicands<T: Copy + Default>(
    regs: &[Lanes],
    op: &Mma,
    read: impl Fn(u32, Multiplicand) -> T,
) -> (Lines<T, 16>, Lines<T, 8>) {
    let mut a: Lines<T, 16> = [[T::default(); 32]; 16];
    let mut b: Lines<T, 8> = [[T::default(); 32]; 8];
    for lane in 0..32 {
        for (index, reg) in op.a.iter().enumerate() {
            let row = &mut a[lane / 4 + index % 2 * 8];
            fill(row, regs[*reg as usize][lane], lane % 4, index / 2, |word| read(word, op.a_type), op.a_type.bits());
        }
        for (index, reg) in op.b.iter().enumerate() {
            let column = &mut b[lane / 4];
            fill(column, regs[*reg as usize][lane], lane % 4, index, |word| read(word, op.b_type), op.b_type.bits());
        }
    }
    (a, b)
}

/// Stores the elements of one register in a row or column: `quarter` is the lane's index among the four of the line,
/// `repetition` the index of the register along k.
fn fill<T>(line: &mut [T], word: u64, quarter: usize, repetition: usize, read: impl Fn(u32) -> T, bits: u32) {
    let run = 32 / bits as usize;
    let first = (repetition * 4 + quarter) * run;
    for (at, slot) in line.iter_mut().skip(first).take(run).enumerate() {
        *slot = read((word >> (bits as usize * at) & mask(bits)) as u32);
    }
}

fn multiply<T: Copy, S: Copy>(
    a: &Lines<T, 16>,
    b: &Lines<T, 8>,
    c: &Accumulators<S>,
    k: usize,
    step: impl Fn(T, T, S) -> S,
) -> Accumulators<S> {
    let mut sums = *c;
    for (row, line) in sums.iter_mut().zip(a) {
        for (sum, column) in row.iter_mut().zip(b) {
            for (a, b) in line.iter().zip(column).take(k) {
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
