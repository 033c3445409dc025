//! Results against a reference, element by element.

use crate::tensor::{HostTensor, TensorError};
use tilewright_diag::counted;

/// How far a result may be from the reference: `|got - expected| <= absolute + relative * |expected|`.
///
/// NaN matches only NaN, whatever its bits, and an infinity only itself. -0 matches 0, unless every bit must be equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub absolute: f64,
    /// Relative part.
    pub relative: f64,
}

impl Tolerance {
    /// Every bit equal.
    pub const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };
}

/// The first element outside the tolerance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Its index in row-major order.
    pub flat: i64,
    /// Its index, one number per dimension.
    pub index: Vec<i64>,
    /// The reference value.
    pub expected: String,
    /// What the kernel computed.
    pub got: String,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The greatest absolute difference between numbers; 0 or infinite for opaque elements.
    pub max_error: f64,
    /// The first element outside the tolerance, if any.
    pub mismatch: Option<Mismatch>,
    /// How many elements are outside the tolerance.
    pub mismatches: i64,
    /// How many elements of the reference are NaN or infinite, so that no tolerance applies to them.
    pub not_finite: i64,
}

/// Compares every output of a launch with its reference, in order. Error: a reference that has more tensors, or fewer.
pub fn compare_all(
    got: &[HostTensor],
    expected: &[HostTensor],
    tolerance: Tolerance,
) -> Result<Vec<Comparison>, TensorError> {
    if got.len() != expected.len() {
        let outputs = counted(got.len(), "output");
        let references = counted(expected.len(), "tensor");
        return Err(TensorError(format!("the kernel has {outputs}, but its reference has {references}")));
    }
    Ok(got.iter().zip(expected).map(|(got, expected)| compare(got, expected, tolerance)).collect())
}

/// Compares every element. If the shapes or dtypes differ, every element is a mismatch.
pub fn compare(got: &HostTensor, expected: &HostTensor, tolerance: Tolerance) -> Comparison {
    let mut comparison = Comparison { max_error: 0.0, mismatch: None, mismatches: 0, not_finite: 0 };
    let same_type = got.dtype() == expected.dtype() && got.shape() == expected.shape();
    for i in 0..expected.len() {
        let error = if same_type { difference(got, expected, i, tolerance) } else { f64::INFINITY };
        comparison.max_error = comparison.max_error.max(error);
        let number = expected.number(i).unwrap_or(0.0);
        comparison.not_finite += i64::from(!number.is_finite());
        let allowed = if number.is_finite() { tolerance.absolute + tolerance.relative * number.abs() } else { 0.0 };
        // An infinite error exceeds every tolerance, even an infinite one.
        if error > allowed || error.is_infinite() {
            comparison.mismatches += 1;
            if comparison.mismatch.is_none() {
                let shown = got.show(i).filter(|_| same_type);
                let got = shown.unwrap_or_else(|| format!("a tensor of {} of shape {:?}", got.dtype(), got.shape()));
                let (index, expected) = (unflatten(i, expected.shape()), expected.show(i).unwrap_or_default());
                comparison.mismatch = Some(Mismatch { flat: i, index, expected, got });
            }
        }
    }
    comparison
}

/// The error of an element: 0 if it is equal; infinite for opaque elements that differ, for NaN against a number, and
/// for an infinity against anything else.
fn difference(got: &HostTensor, expected: &HostTensor, i: i64, tolerance: Tolerance) -> f64 {
    if got.element(i) == expected.element(i) {
        return 0.0;
    }
    match (got.number(i), expected.number(i)) {
        (Some(a), Some(b)) if a.is_nan() && b.is_nan() => 0.0,
        (Some(a), Some(b)) if !a.is_finite() || !b.is_finite() => f64::INFINITY,
        // The bits differ: for 64-bit integers perhaps only those that a double cannot hold, or only the sign of 0.
        (Some(a), Some(b)) if a == b && got.dtype().is_float() && tolerance != Tolerance::EXACT => 0.0,
        (Some(a), Some(b)) => (a - b).abs().max(f64::MIN_POSITIVE),
        _ => f64::INFINITY,
    }
}

fn unflatten(flat: i64, shape: &[i64]) -> Vec<i64> {
    let mut rest = flat;
    let mut index: Vec<i64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let digit = rest % extent;
            rest /= extent;
            digit
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::DType;

    fn f32s(values: &[f32]) -> HostTensor {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        HostTensor::from_bytes(DType::F32, &[1, values.len() as i64], bytes).unwrap()
    }

    #[test]
    fn a_reference_without_a_tensor_for_an_output_is_an_error() {
        let (one, two) = (f32s(&[1.0]), f32s(&[2.0]));
        let outputs = [one.clone(), two.clone()];
        let told = |expected: &[HostTensor]| compare_all(&outputs, expected, Tolerance::EXACT);
        let found = told(std::slice::from_ref(&one)).map_err(|error| error.to_string());
        assert_eq!(found, Err("the kernel has 2 outputs, but its reference has 1 tensor".to_string()));
        assert!(told(&[]).is_err() && told(&[one.clone(), two.clone(), two]).is_err());
        let mismatches = told(&[one.clone(), one]).map(|found| found.iter().map(|c| c.mismatches).collect::<Vec<_>>());
        assert_eq!(mismatches, Ok(vec![0, 1]));
    }

    #[test]
    fn the_first_bad_element_is_named() {
        let c = compare(&f32s(&[1.0, 2.5, 9.0]), &f32s(&[1.0, 2.0, 3.0]), Tolerance::EXACT);
        let mismatch = c.mismatch.unwrap();
        assert_eq!((mismatch.index, mismatch.expected.as_str(), mismatch.got.as_str()), (vec![0, 1], "2", "2.5"));
        assert_eq!((c.mismatches, c.max_error), (2, 6.0));
    }

    #[test]
    fn a_tolerance_is_absolute_plus_relative() {
        let within = Tolerance { absolute: 0.1, relative: 0.1 };
        assert_eq!(compare(&f32s(&[10.9, 0.05]), &f32s(&[10.0, 0.0]), within).mismatches, 0);
        assert_eq!(compare(&f32s(&[11.2]), &f32s(&[10.0]), within).mismatches, 1);
    }

    #[test]
    fn nothing_but_itself_passes_for_nan_or_an_infinity() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for tolerance in [Tolerance::EXACT, Tolerance { absolute: f64::INFINITY, relative: 1.0 }] {
            for (got, expected, differs) in [
                (nan, nan, 0),
                (f32::from_bits(0xffc0_0001), nan, 0),
                (1.0, nan, 1),
                (inf, nan, 1),
                (inf, inf, 0),
                (-inf, inf, 1),
                (f32::MAX, inf, 1),
                (nan, inf, 1),
                (inf, 1.0, 1),
                (nan, 1.0, 1),
            ] {
                let found = compare(&f32s(&[got]), &f32s(&[expected]), tolerance);
                assert_eq!(found.mismatches, differs, "{got} for {expected}");
                assert_eq!(found.not_finite, i64::from(!expected.is_finite()), "{expected}");
            }
        }
    }

    #[test]
    fn the_sign_of_zero_counts_only_where_every_bit_does() {
        let tiny = Tolerance { absolute: 0.0, relative: 1e-9 };
        let counts = [tiny, Tolerance::EXACT].map(|t| compare(&f32s(&[-0.0]), &f32s(&[0.0]), t).mismatches);
        assert_eq!(counts, [0, 1]);
    }

    #[test]
    fn nan_never_passes_for_a_number_and_signed_zeros_differ_exactly() {
        let loose = Tolerance { absolute: 1e30, relative: 1.0 };
        assert_eq!(compare(&f32s(&[f32::NAN]), &f32s(&[1.0]), loose).mismatches, 1);
        assert_eq!(compare(&f32s(&[-0.0]), &f32s(&[0.0]), Tolerance::EXACT).mismatches, 1);
    }
}
