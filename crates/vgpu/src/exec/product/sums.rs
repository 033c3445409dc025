//! The sums of products.
//!
//! The ISA does not specify the order and rounding of floating-point sums. Here a sum starts with the element of D and adds
//! one product after another, in the order of k: products are exact, and every addition is rounded to the nearest f32, ties
//! to even; f16 sums are rounded once more at the end. With scale factors, the products of one instruction are added up in
//! f64, and their sum is added to D with one rounding. Integer sums are exact, and wrap or saturate at the end.

use crate::exec::memory::little_endian;
use crate::exec::mma::multiply_add;
use crate::exec::product::{Element, Multiplier, Scale, Shape, Sum, UNIT};
use crate::float::{BF16, E4M3, F16, bits32, half, narrow, power, widen, widen32};
use crate::isa::Round;
use crate::vectorized::{Loop, vectorized};

/// The elements of a multiplicand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// K elements of each line.
    pub(crate) elements: Vec<f32>,
    /// For each line, where an undefined bit comes from, if there is one.
    pub(crate) origins: Vec<Option<u32>>,
    /// The scale factors of each line; without scaling there are none.
    pub(crate) scales: Vec<f64>,
}

impl Values {
    /// One of several parts of as many lines.
    pub(crate) fn part(&self, part: usize, parts: usize) -> Values {
        let range = |len: usize| part * len / parts..(part + 1) * len / parts;
        Values {
            elements: self.elements[range(self.elements.len())].to_vec(),
            origins: self.origins[range(self.origins.len())].to_vec(),
            scales: self.scales[range(self.scales.len())].to_vec(),
        }
    }
}

/// Appends the elements of a unit of 16 bytes.
pub(crate) fn extend_with_unit(values: &mut Vec<f32>, unit: &[u8; UNIT as usize], multiplier: &Multiplier) {
    let signed = |value: f32| if multiplier.is_negated { -value } else { value };
    let pairs = unit.as_chunks().0.iter().map(|pair| u32::from(u16::from_le_bytes(*pair)));
    // Common types are looked at once for all elements.
    match multiplier.element {
        Element::Float(BF16) => values.extend(pairs.map(|bits| signed(f32::from_bits(bits << 16)))),
        Element::Float(F16) => values.extend(pairs.map(|bits| signed(half(bits)))),
        other => values.extend((0..other.in_unit()).map(|at| element(unit, at, multiplier))),
    }
}

/// The value of an element of a unit of 16 bytes.
pub(crate) fn element(unit: &[u8; UNIT as usize], at: usize, multiplier: &Multiplier) -> f32 {
    let bits = match multiplier.element.bits() {
        width @ (8 | 16 | 32) => little_endian(&unit[at * width / 8..][..width / 8]) as u32,
        width => (u128::from_le_bytes(*unit) >> (at * width)) as u32 & ((1 << width) - 1),
    };
    let value = match multiplier.element {
        Element::Float(format) | Element::Padded(format) => widen32(bits, format),
        // The lower 13 bits of the fraction are ignored.
        Element::Tf32 if f32::from_bits(bits).is_nan() => f32::NAN,
        Element::Tf32 => f32::from_bits(bits & !0x1fff),
        Element::Integer { signed: true } => f32::from(bits as i8),
        Element::Integer { signed: false } => f32::from(bits as u8),
    };
    if multiplier.is_negated { -value } else { value }
}

/// The value of a scale factor.
pub(crate) fn scale(byte: u8, format: Scale) -> f64 {
    match format {
        Scale::Ue8m0 => power(byte),
        // Without a sign.
        Scale::Ue4m3 => widen(u32::from(byte & 0x7f), E4M3),
    }
}

/// D as words, from D as words: `shift` is the power of two that it is divided by before.
pub(crate) fn multiply(shape: &Shape, a: &Values, b: &Values, d: &mut [u32], shift: u32) {
    let divisor = 2f32.powi(shift as i32);
    match shape.sum {
        Sum::S32 { saturates } => integer_sums(shape, a, b, d, saturates),
        Sum::F32 => {
            let mut sums = vec![0.0; d.len()];
            vectorized(ReadSums { words: d, sums: &mut sums, divisor });
            float_sums(shape, a, b, &mut sums);
            vectorized(WriteSums { words: d, sums: &sums });
        }
        Sum::F16 => {
            let mut sums: Vec<f32> = d.iter().map(|word| widen(word & 0xffff, F16) as f32 / divisor).collect();
            float_sums(shape, a, b, &mut sums);
            d.iter_mut().zip(sums).for_each(|(word, sum)| *word = narrow(f64::from(sum), F16, Round::Nearest));
        }
    }
}

/// Reads D, divided by a power of two.
struct ReadSums<'a> {
    words: &'a [u32],
    sums: &'a mut [f32],
    divisor: f32,
}

impl Loop for ReadSums<'_> {
    #[inline(always)]
    fn run(self) {
        for (sum, word) in self.sums.iter_mut().zip(self.words) {
            *sum = f32::from_bits(*word) / self.divisor;
        }
    }
}

struct WriteSums<'a> {
    words: &'a mut [u32],
    sums: &'a [f32],
}

impl Loop for WriteSums<'_> {
    #[inline(always)]
    fn run(self) {
        for (word, sum) in self.words.iter_mut().zip(self.sums) {
            *word = bits32(*sum) as u32;
        }
    }
}

/// `n` lines of `k` numbers as `k` lines of `n`.
fn transposed<T: Copy + Default>(of: &[T], [n, k]: [usize; 2]) -> Vec<T> {
    let mut columns = vec![T::default(); k * n];
    for (column, line) in of.chunks_exact(k).take(n).enumerate() {
        for (k, element) in line.iter().enumerate() {
            columns[k * n + column] = *element;
        }
    }
    columns
}

/// Adds products to sums, row by row. The columns of B for one k are adjacent.
struct FloatSums<'a> {
    shape: &'a Shape,
    a: &'a [f32],
    columns: &'a [f32],
    sums: &'a mut [f32],
}

impl Loop for FloatSums<'_> {
    #[inline(always)]
    fn run(self) {
        let FloatSums { shape, a, columns, sums } = self;
        let is_exact = are_products_exact(a, columns);
        for (line, sums) in a.chunks_exact(shape.k).zip(sums.chunks_exact_mut(shape.n)) {
            match is_exact {
                true => add_row(line, columns, sums, |a, b, sum| sum + a * b),
                false => add_row(line, columns, sums, multiply_add),
            }
        }
    }
}

/// Sums that are in vector registers at once.
const BLOCK: usize = 32;

#[inline(always)]
fn add_row<T: Copy>(line: &[f32], columns: &[f32], sums: &mut [T], f: impl Fn(f32, f32, T) -> T) {
    let n = sums.len();
    let (blocks, rest) = sums.as_chunks_mut::<BLOCK>();
    let first_of_rest = blocks.len() * BLOCK;
    for (number, block) in blocks.iter_mut().enumerate() {
        let mut local = *block;
        for (a, columns) in line.iter().zip(columns.chunks_exact(n)) {
            let columns = &columns[number * BLOCK..][..BLOCK];
            for (sum, b) in local.iter_mut().zip(columns) {
                *sum = f(*a, *b, *sum);
            }
        }
        *block = local;
    }
    for (a, columns) in line.iter().zip(columns.chunks_exact(n)) {
        for (sum, b) in rest.iter_mut().zip(&columns[first_of_rest..]) {
            *sum = f(*a, *b, *sum);
        }
    }
}

fn float_sums(shape: &Shape, a: &Values, b: &Values, sums: &mut [f32]) {
    let columns = &transposed(&b.elements, [shape.n, shape.k]);
    if a.scales.is_empty() {
        return vectorized(FloatSums { shape, a: &a.elements, columns, sums });
    }
    let scales = &transposed(&b.scales, [shape.n, a.scales.len() / shape.m]);
    vectorized(ScaledSums { shape, a, columns, scales, sums });
}

/// Whether all products are in the range of normal numbers, so that f32 has them exactly.
#[inline(always)]
pub(crate) fn are_products_exact(a: &[f32], b: &[f32]) -> bool {
    let ((least_a, most_a), (least_b, most_b)) = (magnitudes(a), magnitudes(b));
    let is_finite = most_a.is_finite() && most_b.is_finite();
    is_finite && least_a * least_b >= f64::from(f32::MIN_POSITIVE) && most_a * most_b <= f64::from(f32::MAX)
}

/// The least magnitude but zero, and the greatest. The bits of positive numbers are in the order of the numbers.
#[inline(always)]
fn magnitudes(values: &[f32]) -> (f64, f64) {
    let (mut least, mut most) = (u32::MAX, 0);
    for value in values {
        let bits = value.abs().to_bits();
        // A zero becomes the greatest of all.
        least = least.min(bits.wrapping_sub(1));
        most = most.max(bits);
    }
    let number = |bits: u32| f64::from(f32::from_bits(bits));
    (if least == u32::MAX { f64::INFINITY } else { number(least + 1) }, number(most))
}

/// Adds products with scale factors to sums, row by row. The columns of B for one k are adjacent, and so are those of its factors.
struct ScaledSums<'a> {
    shape: &'a Shape,
    a: &'a Values,
    columns: &'a [f32],
    scales: &'a [f64],
    sums: &'a mut [f32],
}

impl Loop for ScaledSums<'_> {
    #[inline(always)]
    fn run(self) {
        let ScaledSums { shape, a, columns, scales, sums } = self;
        let factors = a.scales.len() / shape.m;
        let block = shape.k / factors;
        let (mut totals, mut products) = (vec![0.0; shape.n], vec![0.0; shape.n]);
        let lines = a.elements.chunks_exact(shape.k).zip(a.scales.chunks_exact(factors));
        for ((line, left), sums) in lines.zip(sums.chunks_exact_mut(shape.n)) {
            totals.fill(0.0);
            let blocks = line.chunks_exact(block).zip(columns.chunks_exact(block * shape.n));
            for ((line, columns), (left, right)) in blocks.zip(left.iter().zip(scales.chunks_exact(shape.n))) {
                products.fill(0.0);
                add_row(line, columns, &mut products, |a, b, sum| sum + f64::from(a) * f64::from(b));
                for ((total, product), right) in totals.iter_mut().zip(&products).zip(right) {
                    *total += product * (left * right);
                }
            }
            for (sum, total) in sums.iter_mut().zip(&totals) {
                *sum = (f64::from(*sum) + total) as f32;
            }
        }
    }
}

fn integer_sums(shape: &Shape, a: &Values, b: &Values, d: &mut [u32], saturates: bool) {
    let integers = |values: &Values| values.elements.iter().map(|value| *value as i32).collect::<Vec<i32>>();
    let (a, b) = (integers(a), integers(b));
    for (at, word) in d.iter_mut().enumerate() {
        let (left, right) = (&a[at / shape.n * shape.k..][..shape.k], &b[at % shape.n * shape.k..][..shape.k]);
        let sum = i64::from(left.iter().zip(right).map(|(a, b)| a * b).sum::<i32>()) + i64::from(*word as i32);
        let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        *word = if saturates { clamped as u32 } else { sum as u32 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::product::Major;

    /// Numbers of many magnitudes: in another order, their sums have other bits.
    fn numbers(count: usize, step: usize) -> Vec<f32> {
        let number = |at: usize| (at as f32 - 8.0) * 2f32.powi((at * 5 % 80) as i32 - 40);
        (0..count).map(|at| number(at * step % 17)).collect()
    }

    fn values(lines: usize, step: usize) -> Values {
        let scales = numbers(lines * 2, step + 1).into_iter().map(f64::from).collect();
        Values { elements: numbers(lines * 8, step), scales, ..Values::default() }
    }

    #[test]
    fn products_of_a_block_are_added_up_before_they_are_scaled() {
        let of = Multiplier { element: Element::Float(E4M3), is_negated: false, major: Major::K, scale_byte: 0 };
        let shape = Shape { m: 3, n: 5, k: 8, a: of, b: of, sum: Sum::F32, scale: Scale::Ue8m0 };
        let (a, b, d) = (values(3, 7), values(5, 11), numbers(15, 3));
        let mut found: Vec<u32> = d.iter().map(|number| number.to_bits()).collect();
        multiply(&shape, &a, &b, &mut found, 0);
        for (at, found) in found.into_iter().enumerate() {
            let (row, column) = (at / 5, at % 5);
            let mut total = 0.0;
            for block in 0..2 {
                let mut sum = 0.0;
                for k in 4 * block..4 * block + 4 {
                    sum += f64::from(a.elements[row * 8 + k]) * f64::from(b.elements[column * 8 + k]);
                }
                total += sum * (a.scales[row * 2 + block] * b.scales[column * 2 + block]);
            }
            assert_eq!(f32::from_bits(found), (f64::from(d[at]) + total) as f32, "{at}");
        }
    }
}
