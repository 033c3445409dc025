//! Storage of an evaluation: bytes, and the precision of each. Views with other dtypes read the bits.

use std::ops::Range;

use super::arithmetic::{Number, Trust};
use super::numbers::Dtype;

/// The precision of a byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mark {
    /// It was never written, or was computed from unwritten bytes.
    Unknown,
    /// Only this byte is correct.
    Exact,
    /// It belongs to a float of this dtype, and floats within this distance are correct, too.
    Within(Dtype, f32),
}

/// The bytes of an element with their marks; only those within the width of the dtype are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    bytes: [u8; 8],
    marks: [Mark; 8],
}

/// The storage of a buffer and its views.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
}

impl Piece {
    /// A zero of any dtype, which is read out of bounds of a tensor.
    pub(crate) const ZERO: Piece = Piece { bytes: [0; 8], marks: [Mark::Exact; 8] };

    /// The bytes of the number, rounded to the dtype.
    pub(crate) fn of(number: Number, dtype: Dtype) -> Piece {
        let number = number.rounded(dtype);
        let mark = match number.trust {
            Trust::Exact => Mark::Exact,
            Trust::Within(slack) => Mark::Within(dtype, slack as f32),
            Trust::Unknown => Mark::Unknown,
        };
        Piece { bytes: dtype.bits(number.plain).to_le_bytes(), marks: [mark; 8] }
    }

    /// The number represented by the bytes. Bytes of an inexact float of another dtype are unknown, since the low bits
    /// of nearby numbers differ.
    pub(crate) fn number(&self, dtype: Dtype) -> Number {
        let trust = self.marks.iter().take(dtype.bytes()).fold(Trust::Exact, |trust, mark| match (trust, mark) {
            (Trust::Unknown, _) | (_, Mark::Unknown) => Trust::Unknown,
            (_, Mark::Within(of, _)) if *of != dtype => Trust::Unknown,
            (Trust::Exact, Mark::Within(_, slack)) => Trust::within(f64::from(*slack)),
            (Trust::Within(most), Mark::Within(_, slack)) => Trust::within(most.max(f64::from(*slack))),
            (trust, Mark::Exact) => trust,
        });
        Number { plain: dtype.number(self.bits()), dtype: Some(dtype), trust }
    }

    /// The bits. Those beyond the width of the element are not part of it.
    fn bits(&self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }
}

impl Contents {
    /// Unwritten bytes.
    pub(crate) fn unwritten(size: usize) -> Contents {
        Contents { bytes: vec![0; size], marks: vec![Mark::Unknown; size] }
    }

    /// Known bytes.
    pub(crate) fn given(bytes: Vec<u8>) -> Contents {
        let marks = vec![Mark::Exact; bytes.len()];
        Contents { bytes, marks }
    }

    /// The number of bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The element with this index; `None` past the end.
    pub(crate) fn get(&self, dtype: Dtype, element: usize) -> Option<Piece> {
        let range = range(dtype, element);
        let (bytes, marks) = (self.bytes.get(range.clone())?, self.marks.get(range)?);
        let mut piece = Piece::ZERO;
        piece.bytes[..bytes.len()].copy_from_slice(bytes);
        piece.marks[..marks.len()].copy_from_slice(marks);
        Some(piece)
    }

    /// Writes an element; returns false past the end.
    pub(crate) fn put(&mut self, dtype: Dtype, element: usize, piece: &Piece) -> bool {
        let range = range(dtype, element);
        let (Some(bytes), Some(marks)) = (self.bytes.get_mut(range.clone()), self.marks.get_mut(range)) else {
            return false;
        };
        bytes.copy_from_slice(&piece.bytes[..dtype.bytes()]);
        marks.copy_from_slice(&piece.marks[..dtype.bytes()]);
        true
    }
}

fn range(dtype: Dtype, element: usize) -> Range<usize> {
    let first = element * dtype.bytes();
    first..first + dtype.bytes()
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Plain;
    use super::*;

    fn rough(value: f64) -> Number {
        Number { plain: Plain::Real(value), dtype: Some(Dtype::F32), trust: Trust::Within(1e-3) }
    }

    #[test]
    fn elements_keep_what_is_known_of_them() {
        let mut contents = Contents::unwritten(8);
        assert!(contents.put(Dtype::F32, 1, &Piece::of(rough(2.0), Dtype::F32)));
        let number = |element| contents.get(Dtype::F32, element).unwrap().number(Dtype::F32);
        assert_eq!(number(0).trust, Trust::Unknown);
        assert_eq!(number(1).plain, Plain::Real(2.0));
        assert!(matches!(number(1).trust, Trust::Within(slack) if (slack - 1e-3).abs() < 1e-9));
        assert_eq!(contents.get(Dtype::F32, 2), None);
    }

    #[test]
    fn halves_of_a_float_are_known_only_where_it_is_exact() {
        let mut contents = Contents::given(1.0f32.to_le_bytes().to_vec());
        let high = contents.get(Dtype::F16, 1).unwrap().number(Dtype::F16);
        assert_eq!((high.plain, high.trust), (Dtype::F16.number(0x3f80), Trust::Exact));
        contents.put(Dtype::F32, 0, &Piece::of(rough(1.0), Dtype::F32));
        assert_eq!(contents.get(Dtype::F16, 1).unwrap().number(Dtype::F16).trust, Trust::Unknown);
    }
}
