//! Tensors of numbers: inputs, and what references compute, rounded to a dtype.

use tilewright::ir::{nearest_bf16, nearest_f16};
use tilewright::prelude::DType;
use tilewright::runtime::HostTensor;

/// A tensor whose element `i` is `value(i)`, rounded to the nearest number of the dtype.
pub(crate) fn tensor(dtype: DType, shape: &[i64], value: impl Fn(i64) -> f64) -> HostTensor {
    HostTensor::from_fn(dtype, shape, |i| bits(dtype, value(i)))
}

/// A tensor of these elements in row-major order.
pub(crate) fn listed(dtype: DType, shape: &[i64], elements: &[f64]) -> HostTensor {
    tensor(dtype, shape, |i| elements[i as usize])
}

/// Numbers from -2 to 2: the same on every run, different for each seed.
pub(crate) fn scattered(dtype: DType, shape: &[i64], seed: u64) -> HostTensor {
    tensor(dtype, shape, |i| number(i, seed))
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

/// The bits of the number of a dtype nearest to `value`; for integers and opaque dtypes it is truncated towards zero.
fn bits(dtype: DType, value: f64) -> u128 {
    match dtype {
        DType::F64 => u128::from(value.to_bits()),
        DType::F32 => u128::from((value as f32).to_bits()),
        DType::F16 => u128::from(nearest_f16(value).to_bits()),
        DType::BF16 => u128::from(nearest_bf16(value).to_bits()),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
            value as i64 as u128
        }
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => value as i64 as u128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_to_nearest_even() {
        let f16 = |value| bits(DType::F16, value);
        let expected = [0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0x0001, 0x0400, 0x3c00, 0x3c02];
        let numbers =
            [0.0, -0.0, 1.0, -2.0, 65504.0, 1e300, 2f64.powi(-24), 2f64.powi(-14), 1.00048828125, 1.00146484375];
        assert_eq!(numbers.map(f16), expected);
        let bf16 = |value| bits(DType::BF16, value);
        assert_eq!([1.0, f64::NEG_INFINITY, 3.0e38, 1.00390625].map(bf16), [0x3f80, 0xff80, 0x7f62, 0x3f80]);
    }

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
