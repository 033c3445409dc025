//! The limits that the driver and the copy engine set for a tensor map.
//!
//! Sources: CUDA driver API, `cuTensorMapEncodeTiled`, as documented in the header of CUDA 13.5; PTX ISA, section
//! "cp.async.bulk.tensor" (where a box starts in shared memory).

use tilewright_diag::counted;

use crate::error::LayoutError;

use super::pattern::SwizzlePattern;
use super::tensor_map::{Interleave, TensorMap, refuse};

/// Maximum number of dimensions of a map.
pub(crate) const MAX_RANK: usize = 5;
/// Maximum length of a side of a box, in elements.
pub(crate) const MAX_BOX: i64 = 256;
/// Alignment of strides, of the start in global memory and of the inner side of a box, in bytes.
pub const UNIT: i64 = 16;
/// Legal widths of an element, in bits.
pub(crate) const WIDTHS: [i64; 5] = [4, 8, 16, 32, 64];
/// Alignment of the start of a box in shared memory, in bytes.
pub const SHARED_UNIT: i64 = 128;
/// Maximum number of elements of a dimension.
const MAX_EXTENT: i64 = 1 << 31;
/// Exclusive upper bound of strides, in bytes.
const STRIDE_END: i64 = 1 << 40;
/// Maximum step between elements that are moved.
const MAX_STEP: i64 = 8;

impl TensorMap {
    /// Checks all limits. A hand-made map is checked wherever it is used, so that nothing overflows after this check.
    pub(crate) fn check(&self) -> Result<(), LayoutError> {
        self.check_parts()?;
        self.check_tensor()?;
        self.check_box()?;
        self.check_swizzle()?;
        self.boxes.iter().try_for_each(|copy| check_shared(copy.shared))
    }

    /// Checks that the parts of the map are consistent.
    fn check_parts(&self) -> Result<(), LayoutError> {
        let rank = self.rank();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(refuse(format!("it needs {rank} dimensions"), "1 to 5 dimensions"));
        }
        if self.interleave != Interleave::None && rank < 3 {
            return Err(refuse(format!("it interleaves channels but has rank {rank}"), "3 to 5 dimensions"));
        }
        let parts = [self.strides.len() + 1, self.box_dims.len(), self.element_strides.len(), self.sources.len()];
        let offsets = self.boxes.iter().map(|copy| copy.offset.len());
        if parts.into_iter().chain(offsets).any(|other| other != rank) {
            return Err(refuse("its parts have different ranks".to_string(), "one rank for all"));
        }
        if let Some(bad) = self.sources.iter().find(|source| source.dimension >= self.tensor_rank || source.step < 1) {
            let problem = format!(
                "it counts dimension {} of a tensor of rank {} in steps of {}",
                bad.dimension, self.tensor_rank, bad.step
            );
            return Err(refuse(problem, "dimensions of the tensor, in steps of 1 or more"));
        }
        if !WIDTHS.contains(&self.bits) {
            return Err(refuse(format!("elements have {} bits", self.bits), "4, 8, 16, 32 or 64 bits"));
        }
        Ok(())
    }

    fn check_tensor(&self) -> Result<(), LayoutError> {
        let unit = if self.interleave == Interleave::B32 { 2 * UNIT } else { UNIT };
        if self.start % unit != 0 {
            return Err(refuse(
                format!("the tensor starts at byte {}", self.start),
                &format!("multiples of {unit} bytes"),
            ));
        }
        if let Some(bad) = self.strides.iter().find(|s| **s % unit != 0 || !(1..STRIDE_END).contains(*s)) {
            let problem = format!("neighbours of a dimension are {bad} bytes apart in global memory");
            return Err(refuse(problem, &format!("multiples of {unit} bytes below 2^40")));
        }
        if let Some(bad) = self.dims.iter().find(|d| !(1..=MAX_EXTENT).contains(*d)) {
            return Err(refuse(format!("a dimension has {bad} elements"), "1 to 2^31 elements"));
        }
        match self.dims.first() {
            Some(row) if self.bits == 4 && row % 2 != 0 => {
                Err(refuse(format!("a row of 4-bit elements has length {row}"), "an even length"))
            }
            _ => Ok(()),
        }
    }

    fn check_box(&self) -> Result<(), LayoutError> {
        if let Some(bad) = self.box_dims.iter().find(|side| !(1..=MAX_BOX).contains(*side)) {
            return Err(refuse(format!("a side of the box has {bad} elements"), "1 to 256 elements"));
        }
        if let Some(bad) = self.element_strides.iter().find(|step| !(1..=MAX_STEP).contains(*step)) {
            return Err(refuse(format!("an element stride of the box is {bad}"), "element strides of 1 to 8"));
        }
        let (elements, bits) = self.row();
        if self.interleave == Interleave::None && bits % (UNIT * 8) != 0 {
            return Err(uneven_row(elements, bits));
        }
        Ok(())
    }

    fn check_swizzle(&self) -> Result<(), LayoutError> {
        let swizzle = self.swizzle;
        match self.interleave {
            Interleave::B16 => Ok(()),
            Interleave::B32 if swizzle == SwizzlePattern::B32 => Ok(()),
            Interleave::B32 => {
                let problem = format!("channels are interleaved by 32 bytes, with {}", swizzle.name());
                Err(refuse(problem, SwizzlePattern::B32.name()))
            }
            Interleave::None => {
                let (span, bits) = (swizzle.span(), self.row().1);
                if swizzle == SwizzlePattern::None || bits <= span * 8 {
                    return Ok(());
                }
                let problem = format!("a row of the box has {} bytes, with {}", bits / 8, swizzle.name());
                Err(refuse(problem, &format!("rows of up to {span} bytes")))
            }
        }
    }

    /// Elements and bits of a row of the box; the sides must have been checked.
    fn row(&self) -> (i64, i64) {
        let elements = self.box_dims.first().copied().unwrap_or(0);
        (elements, elements * self.bits)
    }
}

/// The error for a row of a box that is not a whole number of 16-byte chunks.
pub(crate) fn uneven_row(elements: i64, bits: i64) -> LayoutError {
    let problem = format!("a row of the box has {bits} bits ({})", counted(elements, "element"));
    refuse(problem, "rows of a multiple of 16 bytes")
}

/// Checks a number that divides the distance of neighbours in global memory, in bytes.
pub(crate) fn check_stride(divisor: i64) -> Result<(), LayoutError> {
    if divisor > 0 && divisor % UNIT == 0 {
        return Ok(());
    }
    let problem = format!("neighbours of a dimension are {divisor} bytes apart in global memory");
    Err(refuse(problem, "multiples of 16 bytes below 2^40"))
}

/// Checks where a box starts in shared memory.
pub(crate) fn check_shared(start: i64) -> Result<(), LayoutError> {
    if start >= 0 && start % SHARED_UNIT == 0 {
        return Ok(());
    }
    let problem = format!("a box would start at byte {start} of shared memory");
    Err(refuse(problem, "boxes that start at multiples of 128 bytes"))
}

#[cfg(test)]
mod tests {
    use super::super::tensor_map::{BoxCopy, Source, small_map};
    use super::*;

    /// Rows of 64 elements of 16 bits, of which a box takes 8 by 2.
    fn map() -> TensorMap {
        TensorMap {
            dims: vec![64, 10],
            strides: vec![128],
            boxes: vec![BoxCopy { offset: vec![0, 0], shared: 0 }],
            ..small_map()
        }
    }

    /// A map of 3 dimensions whose channels are interleaved.
    fn interleaved(interleave: Interleave, swizzle: SwizzlePattern) -> TensorMap {
        let sources = (0..3).map(|dimension| Source { dimension, step: 1 }).collect();
        TensorMap {
            tensor_rank: 3,
            dims: vec![16, 8, 4],
            strides: vec![64, 512],
            box_dims: vec![3, 2, 2],
            element_strides: vec![1, 1, 1],
            swizzle,
            interleave,
            sources,
            boxes: Vec::new(),
            ..map()
        }
    }

    /// The error message for the map after a change.
    fn said(change: impl Fn(&mut TensorMap)) -> String {
        let mut map = map();
        change(&mut map);
        map.check().unwrap_err().to_string().replace("no tensor map describes this layout: ", "")
    }

    #[test]
    fn the_map_itself_is_legal() {
        assert_eq!(map().check(), Ok(()));
    }

    #[test]
    fn parts_of_different_ranks_are_refused() {
        assert_eq!(said(|map| map.dims = Vec::new()), "it needs 0 dimensions");
        assert_eq!(said(|map| map.dims = vec![1; 6]), "it needs 6 dimensions");
        let ranks = [
            said(|map| map.strides = Vec::new()),
            said(|map| map.box_dims.push(1)),
            said(|map| map.element_strides.push(1)),
            said(|map| map.sources.truncate(1)),
            said(|map| map.boxes[0].offset.push(0)),
        ];
        assert!(ranks.iter().all(|said| said == "its parts have different ranks"), "{ranks:?}");
    }

    #[test]
    fn sources_are_dimensions_of_the_tensor() {
        assert_eq!(
            said(|map| map.sources[0].dimension = 2),
            "it counts dimension 2 of a tensor of rank 2 in steps of 1"
        );
        assert_eq!(said(|map| map.sources[1].step = 0), "it counts dimension 0 of a tensor of rank 2 in steps of 0");
    }

    #[test]
    fn the_limits_of_the_tensor_are_those_of_the_driver() {
        assert_eq!(said(|map| map.bits = 6), "elements have 6 bits");
        assert_eq!(said(|map| map.start = 8), "the tensor starts at byte 8");
        for stride in [60, 0, -16, 1 << 40] {
            let apart = format!("neighbours of a dimension are {stride} bytes apart in global memory");
            assert_eq!(said(|map| map.strides = vec![stride]), apart);
        }
        for extent in [0, (1 << 31) + 1] {
            assert_eq!(said(|map| map.dims[1] = extent), format!("a dimension has {extent} elements"));
        }
        assert!(TensorMap { dims: vec![64, 1 << 31], ..map() }.check().is_ok());
    }

    #[test]
    fn rows_of_4_bits_have_an_even_number_of_elements() {
        let four = |row| TensorMap { bits: 4, dims: vec![row, 10], box_dims: vec![32, 2], ..map() };
        assert!(four(66).check().is_ok());
        assert!(four(65).check().unwrap_err().to_string().ends_with("a row of 4-bit elements has length 65"));
    }

    #[test]
    fn the_limits_of_the_box_are_those_of_the_driver() {
        for side in [0, 257, i64::MAX] {
            assert_eq!(said(|map| map.box_dims[1] = side), format!("a side of the box has {side} elements"));
        }
        for step in [0, 9, i64::MAX] {
            assert_eq!(said(|map| map.element_strides[0] = step), format!("an element stride of the box is {step}"));
        }
        assert_eq!(said(|map| map.box_dims[0] = 12), "a row of the box has 192 bits (12 elements)");
        for start in [64, -128] {
            let starts = format!("a box would start at byte {start} of shared memory");
            assert_eq!(said(|map| map.boxes[0].shared = start), starts);
        }
    }

    #[test]
    fn a_row_of_the_box_is_no_longer_than_the_swizzle() {
        for (swizzle, row) in [(SwizzlePattern::B32, 16), (SwizzlePattern::B64, 32), (SwizzlePattern::B128Atom32, 64)] {
            let map = |row| TensorMap { swizzle, box_dims: vec![row, 2], ..map() };
            assert_eq!(map(row).check(), Ok(()), "{}", swizzle.name());
            let error = map(row + 8).check().unwrap_err().to_string();
            assert!(error.ends_with(&format!("a row of the box has {} bytes, with {}", 2 * row + 16, swizzle.name())));
        }
    }

    #[test]
    fn interleaved_channels_have_limits_of_their_own() {
        assert_eq!(interleaved(Interleave::B16, SwizzlePattern::B128).check(), Ok(()));
        assert_eq!(interleaved(Interleave::B32, SwizzlePattern::B32).check(), Ok(()));
        let refused = [
            interleaved(Interleave::B32, SwizzlePattern::B128),
            TensorMap { strides: vec![80, 512], ..interleaved(Interleave::B32, SwizzlePattern::B32) },
            TensorMap { interleave: Interleave::B16, ..map() },
        ];
        assert!(refused.iter().all(|map| map.check().is_err()));
    }
}
