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

/// Bits of a row of A or a column of B, if it has all elements.
const ROW_BITS: usize = 256;

/// Rows of A of at most K elements.
type Rows<T, const K: usize> = [[T; K]; 16];
/// The columns of B: those of one k are adjacent.
type Columns<T, const K: usize> = [[T; 8]; K];
/// Rows of C and D.
type Accumulators<T> = [[T; 8]; 16];

/// The rows of A and the columns of B.
struct Multiplicands<T, const K: usize> {
    a: Rows<T, K>,
    b: Columns<T, K>,
}

/// Executes an `mma.sync` in all lanes.
pub(crate) fn execute(regs: &mut [Lanes], op: &Mma) {
    match op.a_type.bits() {
        8 => execute_of::<32>(regs, op),
        16 => execute_of::<16>(regs, op),
        _ => execute_of::<8>(regs, op),
    }
}

/// Executes a product of elements of which a row has K.
fn execute_of<const K: usize>(regs: &mut [Lanes], op: &Mma) {
    let mut words = Multiplicands { a: [[0; K]; 16], b: [[0; 8]; K] };
    left(regs, &op.a, &mut words.a);
    right(regs, &op.b, &mut words.b);
    match op.accumulator {
        AccumulatorType::S32 { saturate } => {
            let a = words.a.map(|row| row.map(|word| integer(word, op.a_type)));
            let b = words.b.map(|columns| columns.map(|word| integer(word, op.b_type)));
            let mut sums = read_sums(regs, &op.c, |word| i64::from(word as i32));
            multiply(&Multiplicands { a, b }, &mut sums, op.k, |a, b, sum| sum + a * b);
            let clamped = |sum: i64| sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            write_sums(regs, &op.d, &sums, |sum| if saturate { clamped(sum) as u32 } else { sum as u32 });
        }
        AccumulatorType::F32 => {
            let mut sums = read_sums(regs, &op.c, f32::from_bits);
            vectorized(FloatProduct { op, words: &words, sums: &mut sums });
            write_sums(regs, &op.d, &sums, |sum| bits32(sum) as u32);
        }
        AccumulatorType::F16 => {
            let mut sums = read_sums(regs, &op.c, |word| widen(word, F16) as f32);
            vectorized(FloatProduct { op, words: &words, sums: &mut sums });
            write_sums(regs, &op.d, &sums, |sum| narrow(f64::from(sum), F16, Round::Nearest));
        }
    }
}

/// Adds the products of two multiplicands to sums.
struct FloatProduct<'a, const K: usize> {
    op: &'a Mma,
    words: &'a Multiplicands<u32, K>,
    sums: &'a mut Accumulators<f32>,
}

impl<const K: usize> Loop for FloatProduct<'_, K> {
    #[inline(always)]
    fn run(self) {
        let FloatProduct { op, words, sums } = self;
        let mut values = Multiplicands { a: [[0.0; K]; 16], b: [[0.0; 8]; K] };
        singles(values.a.as_flattened_mut(), words.a.as_flattened(), op.a_type);
        singles(values.b.as_flattened_mut(), words.b.as_flattened(), op.b_type);
        let has_exact_products = |element: Multiplicand| match element {
            Multiplicand::Float(format) => format.has_exact_products(),
            Multiplicand::Tf32 | Multiplicand::Integer { .. } => false,
        };
        let is_exact = has_exact_products(op.a_type) && has_exact_products(op.b_type)
            || are_products_exact(values.a.as_flattened(), values.b.as_flattened());
        match is_exact {
            true => multiply(&values, sums, op.k, |a, b, sum| a * b + sum),
            false => multiply(&values, sums, op.k, multiply_add),
        }
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
fn singles(values: &mut [f32], words: &[u32], element: Multiplicand) {
    match element {
        Multiplicand::Float(F16) => each(values, words, half),
        Multiplicand::Float(format) => each(values, words, |word| widen32(word, format)),
        Multiplicand::Tf32 => each(values, words, |word| {
            let x = f32::from_bits(word);
            if x.is_nan() { x } else { f32::from_bits(word & !0x1fff) }
        }),
        Multiplicand::Integer { .. } => each(values, words, |word| integer(word, element) as f32),
    }
}

#[inline(always)]
fn each(values: &mut [f32], words: &[u32], read: impl Fn(u32) -> f32) {
    for (value, word) in values.iter_mut().zip(words) {
        *value = read(*word);
    }
}

fn integer(word: u32, element: Multiplicand) -> i64 {
    if element == (Multiplicand::Integer { signed: true }) { i64::from(word as i8) } else { i64::from(word as u8) }
}

/// The rows of A from its registers (PTX ISA, sections "Matrix Fragments for mma.m16n8k4" to "... m16n8k32").
///
/// Lane `l` holds elements of row or column `l / 4` of eight. Each of its registers holds as many adjacent elements
/// along k as fit, and the four lanes of a row are adjacent along k. For A, every second register belongs to the row
/// eight below.
fn left<const K: usize>(regs: &[Lanes], of: &[Reg], rows: &mut Rows<u32, K>) {
    for (index, reg) in of.iter().enumerate() {
        for (row, lanes) in regs[*reg as usize].as_chunks::<4>().0.iter().enumerate() {
            elements::<K>(lanes, &mut rows[row + index % 2 * 8][index / 2 * K / 2..][..K / 2]);
        }
    }
}

/// The columns of B from its registers; see [`left`].
fn right<const K: usize>(regs: &[Lanes], of: &[Reg], columns: &mut Columns<u32, K>) {
    let mut along = [0; K];
    for (index, reg) in of.iter().enumerate() {
        for (column, lanes) in regs[*reg as usize].as_chunks::<4>().0.iter().enumerate() {
            elements::<K>(lanes, &mut along[..K / 2]);
            for (columns, word) in columns[index * K / 2..].iter_mut().zip(&along[..K / 2]) {
                columns[column] = *word;
            }
        }
    }
}

/// The bits of the elements of four lanes, adjacent along k.
#[inline(always)]
fn elements<const K: usize>(lanes: &[u64; 4], out: &mut [u32]) {
    let bits = ROW_BITS / K;
    for (word, out) in lanes.iter().zip(out.chunks_exact_mut(32 / bits)) {
        for (at, out) in out.iter_mut().enumerate() {
            *out = (word >> (bits * at) & mask(bits as u32)) as u32;
        }
    }
}

#[inline(always)]
fn multiply<T: Copy, S: Copy, const K: usize>(
    of: &Multiplicands<T, K>,
    sums: &mut Accumulators<S>,
    k: usize,
    step: impl Fn(T, T, S) -> S,
) {
    for (row, line) in sums.iter_mut().zip(&of.a) {
        let mut local = *row;
        for (a, columns) in line.iter().zip(&of.b).take(k) {
            for (sum, b) in local.iter_mut().zip(columns) {
                *sum = step(*a, *b, *sum);
            }
        }
        *row = local;
    }
}

/// Reads C: two registers hold two f16 elements each, four registers hold one element each. Of the four elements of a lane,
/// the first two are adjacent in row `l / 4`, and the others eight rows below.
fn read_sums<T: Copy + Default>(regs: &[Lanes], c: &[Reg], read: impl Fn(u32) -> T) -> Accumulators<T> {
    let mut out = [[T::default(); 8]; 16];
    let is_packed = c.len() == 2;
    for i in 0..4 {
        let register = &regs[c[if is_packed { i / 2 } else { i }] as usize];
        let (shift, keep) = if is_packed { (i % 2 * 16, mask(16)) } else { (0, mask(32)) };
        for (row, lanes) in out[i / 2 * 8..].iter_mut().zip(register.as_chunks::<4>().0) {
            for (pair, word) in row.as_chunks_mut::<2>().0.iter_mut().zip(lanes) {
                pair[i % 2] = read((word >> shift & keep) as u32);
            }
        }
    }
    out
}

/// Writes D, which is as C.
fn write_sums<T: Copy>(regs: &mut [Lanes], d: &[Reg], sums: &Accumulators<T>, write: impl Fn(T) -> u32) {
    let is_packed = d.len() == 2;
    for (index, reg) in d.iter().enumerate() {
        let first = if is_packed { index * 2 } else { index };
        let lanes = regs[*reg as usize].as_chunks_mut::<4>().0;
        for (row, lanes) in sums[first / 2 * 8..].iter().zip(lanes) {
            for (pair, register) in row.as_chunks::<2>().0.iter().zip(lanes) {
                let upper = if is_packed { u64::from(write(pair[1])) << 16 } else { 0 };
                *register = upper | u64::from(write(pair[first % 2]));
            }
        }
    }
}
