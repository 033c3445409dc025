//! Compares the contents of a buffer after a run with the evaluation.

use super::arithmetic::Trust;
use super::boxes::{point, size};
use super::contents::Contents;
use super::numbers::{Dtype, Plain};
use super::program::Buffer;

/// Compares the elements of a buffer with the bytes of the same storage. Elements whose value is unknown are not
/// compared.
///
/// An element that was only moved, an integer, or a maximum or minimum must be equal bit for bit; but zeros of either
/// sign are equal, since the sign of a maximum depends on the order of its operands, and all NaNs are equal. Other
/// floats may differ by the error bound that the evaluation computed for that element: the difference of two large
/// numbers has the slack of large numbers, and a small product has little. A bound derived from the buffer's dtype and
/// its largest element would be too strict for the former and too loose for the latter.
pub(crate) fn compare(buffer: &Buffer, expected: &Contents, actual: &[u8]) -> Result<(), String> {
    let dtype = Dtype::named(&buffer.dtype)?;
    if actual.len() != expected.size() {
        return Err(format!("`{}`: {} bytes, expected {}", buffer.name, actual.len(), expected.size()));
    }
    let got = Contents::given(actual.to_vec());
    let mut bad = 0;
    let mut first = String::new();
    for place in 0..size(&buffer.shape) {
        let at = |contents: &Contents| contents.get(dtype, place as usize).map(|piece| piece.number(dtype));
        let (Some(wanted), Some(found)) = (at(expected), at(&got)) else {
            return Err(format!("`{}` is longer than its storage", buffer.name));
        };
        let (is_right, slack) = match wanted.trust {
            Trust::Unknown => continue,
            Trust::Exact => (is_same(dtype, wanted.plain, found.plain), 0.0),
            Trust::Within(slack) => (is_near(wanted.plain.real(), found.plain.real(), slack), slack),
        };
        if !is_right {
            bad += 1;
            if first.is_empty() {
                let index = point(place, &buffer.shape);
                let about = if slack > 0.0 { format!(" within {slack:.1e}") } else { String::new() };
                first = format!("{}{index:?} is {}, expected {}{about}", buffer.name, found.plain, wanted.plain);
            }
        }
    }
    if bad == 0 { Ok(()) } else { Err(format!("{first}; {bad} of {} elements are wrong", size(&buffer.shape))) }
}

fn is_same(dtype: Dtype, wanted: Plain, found: Plain) -> bool {
    let (one, other) = (wanted.real(), found.real());
    dtype.bits(wanted) == dtype.bits(found) || (one == 0.0 && other == 0.0) || (one.is_nan() && other.is_nan())
}

fn is_near(wanted: f64, found: f64, slack: f64) -> bool {
    wanted == found || (wanted.is_nan() && found.is_nan()) || (wanted - found).abs() <= slack
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic::Number;
    use super::super::contents::Piece;
    use super::super::evaluate::samples::buffer;
    use super::super::program::Scope;
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn row(count: i64) -> Buffer {
        buffer("B", Scope::Global, "float32", &[1, count])
    }

    /// Floats with this error bound each.
    fn rough(values: &[f64], slack: f64) -> Contents {
        let mut contents = Contents::unwritten(values.len() * 4);
        for (at, value) in values.iter().enumerate() {
            let number = Number { trust: Trust::Within(slack), ..Number::constant(*value).rounded(Dtype::F32) };
            assert!(contents.put(Dtype::F32, at, &Piece::of(number, Dtype::F32)));
        }
        contents
    }

    #[test]
    fn the_first_bad_element_is_named() {
        let expected = Contents::given(bytes(&[1.0, 2.0, 3.0]));
        let why = compare(&row(3), &expected, &bytes(&[1.0, 2.5, 9.0])).unwrap_err();
        assert_eq!(why, "B[0, 1] is 2.5, expected 2; 2 of 3 elements are wrong");
    }

    #[test]
    fn floats_may_be_off_by_their_slack() {
        let expected = rough(&[10.0, 0.5], 0.01);
        assert_eq!(compare(&row(2), &expected, &bytes(&[10.005, 0.495])), Ok(()));
        let why = compare(&row(2), &expected, &bytes(&[10.0, 0.25])).unwrap_err();
        assert_eq!(why, "B[0, 1] is 0.25, expected 0.5 within 1.0e-2; 1 of 2 elements are wrong");
    }

    #[test]
    fn exact_elements_have_no_slack_but_zeros_have_any_sign() {
        let expected = Contents::given(bytes(&[0.0, f32::NAN, 1.0]));
        assert_eq!(compare(&row(3), &expected, &bytes(&[-0.0, -f32::NAN, 1.0])), Ok(()));
        assert!(compare(&row(3), &expected, &bytes(&[0.0, f32::NAN, 1.0f32.next_up()])).is_err());
    }

    #[test]
    fn what_nobody_wrote_may_be_anything() {
        assert_eq!(compare(&row(1), &Contents::unwritten(4), &bytes(&[7.0])), Ok(()));
        assert!(compare(&row(1), &Contents::unwritten(4), &[0; 3]).is_err());
    }
}
