//! Tensors of numbers: inputs, and what references compute, rounded to a dtype.

use tilewright::prelude::DType;
use tilewright::runtime::HostTensor;

/// A tensor whose element `i` is `value(i)`, rounded to the nearest number of the dtype.
pub(crate) fn tensor(dtype: DType, shape: &[i64], value: impl Fn(i64) -> f64) -> HostTensor {
    HostTensor::from_f64(dtype, shape, value)
}

/// A tensor of these elements in row-major order.
pub(crate) fn listed(dtype: DType, shape: &[i64], elements: &[f64]) -> HostTensor {
    tensor(dtype, shape, |i| elements[i as usize])
}

/// Numbers from -2 to 2: the same on every run, different for each seed.
pub(crate) fn scattered(dtype: DType, shape: &[i64], seed: u64) -> HostTensor {
    tensor(dtype, shape, |i| number(i, seed))
}

/// The same, but multiples of 1/2: exact in 8-bit floats, and sums have few digits.
pub(crate) fn small(dtype: DType, shape: &[i64], seed: u64) -> HostTensor {
    tensor(dtype, shape, |i| (number(i, seed) * 2.0).round() / 2.0)
}

/// Numbers from -5 to -1, so that a stray zero would be the maximum.
pub(crate) fn negative(dtype: DType, shape: &[i64], seed: u64) -> HostTensor {
    tensor(dtype, shape, |i| number(i, seed) - 3.0)
}

/// The elements as numbers, in row-major order.
pub(crate) fn elements(tensor: &HostTensor) -> Vec<f64> {
    (0..tensor.len()).map(|i| tensor.number(i).unwrap_or(f64::NAN)).collect()
}

/// The results of `of_row` for every row of a matrix, concatenated.
pub(crate) fn by_rows(matrix: &HostTensor, cols: i64, of_row: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    elements(matrix).chunks(cols.max(1) as usize).flat_map(of_row).collect()
}

/// The square root of 2/pi, and the factor of the cube, in the approximation of gelu by tanh.
pub(crate) const ROOT: f64 = 0.797_884_560_802_865_4;
pub(crate) const CUBE: f64 = 0.044_715;

/// That approximation: `x/2 * (1 + tanh(ROOT * (x + CUBE * x^3)))`.
pub(crate) fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (ROOT * (x + CUBE * x.powi(3))).tanh())
}

/// The maximum of some numbers.
pub(crate) fn greatest(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// A multiple of 1/64 from -2 to 2: exact in every 16-bit float dtype, and sums of many are exact in f32.
fn number(i: i64, seed: u64) -> f64 {
    // Bits are mixed as in SplitMix64.
    let start = (i as u64).wrapping_add(seed << 40).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (start ^ (start >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed >> 40) % 257) as f64 / 64.0 - 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_in_every_dtype() {
        let numbers = elements(&scattered(DType::F64, &[200], 1));
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            assert_eq!(elements(&scattered(dtype, &[200], 1)), numbers, "{dtype}");
        }
        assert!(numbers.iter().all(|number| (-2.0..=2.0).contains(number)));
        assert_ne!(elements(&scattered(DType::F64, &[200], 2)), numbers);
    }

    #[test]
    fn negative_numbers_are_below_zero() {
        assert!(greatest(&elements(&negative(DType::F32, &[200], 1))) <= -1.0);
    }
}
