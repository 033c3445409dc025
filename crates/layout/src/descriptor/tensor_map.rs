//! Tensor maps: what the copy engine (TMA) is told of a tensor in global memory and of the box that one copy moves.
//!
//! Sources: CUDA driver API, `cuTensorMapEncodeTiled`; PTX ISA, section "Tensors" (tiled mode, swizzling modes).

use crate::ENUMERATION_LIMIT;
use crate::error::LayoutError;

use super::pattern::SwizzlePattern;

/// The most dimensions of a map.
pub(crate) const MAX_RANK: usize = 5;
/// The longest side of a box.
pub(crate) const MAX_BOX: i64 = 256;
/// What strides, the start in global memory and the inner side of a box are multiples of, in bytes.
pub(crate) const UNIT: i64 = 16;
/// What a box starts at a multiple of in shared memory, in bytes.
pub(crate) const SHARED_UNIT: i64 = 128;

/// How channels are interleaved in global memory (`CUtensorMapInterleave`).
///
/// Derived maps have none: a box with 16-byte chunks of a row as a dimension of its own says the same of any tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Rows are contiguous.
    None,
    /// Slices of 16 bytes of channels.
    B16,
    /// Slices of 32 bytes of channels.
    B32,
}

/// The dimension of the tensor, and how many of its elements apart, that a dimension of a map counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Dimension of the tensor.
    pub dimension: usize,
    /// Elements of that dimension from one index of the map's dimension to the next.
    pub step: i64,
}

/// One of the copies that fill a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxCopy {
    /// What to add to the tile's coordinate in the map, fastest dimension first.
    pub offset: Vec<i64>,
    /// Where it goes in shared memory, in bytes from the start of the buffer.
    pub shared: i64,
}

/// One element that a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxElement {
    /// Its position in the tensor's memory, in elements; `None` outside the tensor, where zero is filled in.
    pub global: Option<i64>,
    /// Its position in shared memory, in elements from the start of the buffer.
    pub shared: i64,
}

/// The arguments of `cuTensorMapEncodeTiled`, fastest dimension first, and the copies that fill one tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Bits of one element: 4, 8, 16, 32 or 64.
    pub bits: i64,
    /// Where the map starts, in bytes from the tensor's start.
    pub start: i64,
    /// Elements along each dimension.
    pub dims: Vec<i64>,
    /// Distance between neighbours along dimensions 1 and up, in bytes; along dimension 0 elements are packed.
    pub strides: Vec<i64>,
    /// Elements along each dimension that a box spans.
    pub box_dims: Vec<i64>,
    /// Which elements of a box are moved: every one (1), every second (2), ... .
    pub element_strides: Vec<i64>,
    /// The swizzle of the box in shared memory.
    pub swizzle: SwizzlePattern,
    /// Interleaved channels in global memory.
    pub interleave: Interleave,
    /// What each dimension counts in the tensor.
    pub sources: Vec<Source>,
    /// The copies of one tile; a single one where a box holds the tile.
    pub boxes: Vec<BoxCopy>,
}

impl TensorMap {
    /// How many dimensions the map has; a dimension of the tensor may be split into several, one of extent 1 left out.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Bytes that one copy moves, zeros outside the tensor included: what the barrier has to expect.
    pub fn box_bytes(&self) -> i64 {
        let elements = self.moved().into_iter().fold(1i64, i64::saturating_mul);
        elements.saturating_mul(self.bits) / 8
    }

    /// Elements along each dimension that are moved.
    fn moved(&self) -> Vec<i64> {
        let sides = self.box_dims.iter().zip(&self.element_strides);
        sides.map(|(side, step)| (side + step - 1) / step.max(&1)).collect()
    }

    /// The coordinate in the map of the tile that starts at `origin` of the tensor. Errors: another rank, or an origin
    /// that is no multiple of the blocks into which the map splits a dimension.
    pub fn coordinate(&self, origin: &[i64]) -> Result<Vec<i64>, LayoutError> {
        let mut coordinate = Vec::with_capacity(self.rank());
        for source in &self.sources {
            let needed = source.dimension + 1;
            let at = *origin.get(source.dimension).ok_or(LayoutError::Rank { given: origin.len(), needed })?;
            let same = self.sources.iter().filter(|other| other.dimension == source.dimension);
            let block = same.map(|other| other.step).max().unwrap_or(1).max(1);
            if at % block != 0 {
                let problem = format!("the tile starts at {at} of dimension {}", source.dimension);
                return Err(refuse(problem, &format!("multiples of {block}, the blocks of the map in that dimension")));
            }
            coordinate.push(if source.step == block { at / block } else { 0 });
        }
        Ok(coordinate)
    }

    /// What a copy of the box at `coordinate` of the map does, with its destination `shared` bytes into the buffer:
    /// every element moved, the fastest dimension first. Errors: another rank, interleaved channels, a huge box.
    pub fn box_addresses(&self, coordinate: &[i64], shared: i64) -> Result<Vec<BoxElement>, LayoutError> {
        self.check_parts()?;
        if coordinate.len() != self.rank() {
            return Err(LayoutError::Rank { given: coordinate.len(), needed: self.rank() });
        }
        let moved = self.moved();
        let points = moved.iter().try_fold(1i64, |product, side| product.checked_mul(*side));
        let points = points.ok_or(LayoutError::Overflow)?;
        if points > ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let swizzle = self.swizzle.swizzle(self.bits);
        let first = shared.saturating_mul(8) / self.bits;
        let element = |flat: i64| {
            let position = first.saturating_add(flat);
            let global = self.global_position(coordinate, &moved, flat);
            BoxElement { global, shared: swizzle.map_or(position, |s| s.apply(position)) }
        };
        Ok((0..points).map(element).collect())
    }

    /// A map made by hand may have parts that do not belong together.
    fn check_parts(&self) -> Result<(), LayoutError> {
        let rank = self.rank();
        let ranks = [self.strides.len() + 1, self.box_dims.len(), self.element_strides.len()];
        if ranks.iter().any(|other| *other != rank) || ![4, 8, 16, 32, 64].contains(&self.bits) {
            return Err(refuse(
                "its parts have different ranks, or no element's width".to_string(),
                "one rank for all",
            ));
        }
        if self.interleave != Interleave::None {
            return Err(refuse("channels are interleaved".to_string(), "maps without interleave"));
        }
        Ok(())
    }

    /// Where element `flat` of the box at `coordinate` is in global memory, in elements.
    fn global_position(&self, coordinate: &[i64], moved: &[i64], flat: i64) -> Option<i64> {
        let mut rest = flat;
        let mut bits = i128::from(self.start) * 8;
        for (i, side) in moved.iter().enumerate() {
            let at = i128::from(coordinate[i]) + i128::from(rest % side) * i128::from(self.element_strides[i]);
            rest /= side;
            if !(0..i128::from(self.dims[i])).contains(&at) {
                return None;
            }
            bits += at * i128::from(if i == 0 { self.bits } else { self.strides[i - 1].saturating_mul(8) });
        }
        i64::try_from(bits / i128::from(self.bits)).ok()
    }

    /// The limits of the driver and of the copy instruction.
    pub(crate) fn check(&self) -> Result<(), LayoutError> {
        if self.rank() > MAX_RANK {
            return Err(refuse(format!("it needs {} dimensions", self.rank()), "up to 5 dimensions"));
        }
        if self.start % UNIT != 0 {
            return Err(refuse(format!("the tensor starts at byte {}", self.start), "multiples of 16 bytes"));
        }
        if let Some(bad) = self.strides.iter().find(|s| **s % UNIT != 0 || !(1..1 << 40).contains(*s)) {
            let problem = format!("neighbours of a dimension are {bad} bytes apart in global memory");
            return Err(refuse(problem, "multiples of 16 bytes below 2^40"));
        }
        if let Some(bad) = self.dims.iter().find(|d| !(1..=1 << 32).contains(*d)) {
            return Err(refuse(format!("a dimension has {bad} elements"), "up to 2^32"));
        }
        let inner = self.box_dims.first().map_or(0, |side| side * self.bits);
        if inner % (UNIT * 8) != 0 || inner == 0 {
            let problem = format!("{} elements in a row of the box are {inner} bits", inner / self.bits);
            return Err(refuse(problem, "rows of a multiple of 16 bytes"));
        }
        if let Some(bad) = self.boxes.iter().find(|copy| copy.shared % SHARED_UNIT != 0) {
            return Err(refuse(
                format!("a box would start at byte {} of shared memory", bad.shared),
                "boxes that start at multiples of 128 bytes",
            ));
        }
        Ok(())
    }
}

/// An error about a tensor map.
pub(crate) fn refuse(problem: String, legal: &str) -> LayoutError {
    LayoutError::Descriptor { name: "tensor map", problem, legal: legal.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 32 elements of 16 bits, of which a box takes 8 by 2.
    fn map() -> TensorMap {
        TensorMap {
            bits: 16,
            start: 0,
            dims: vec![32, 10],
            strides: vec![64],
            box_dims: vec![8, 2],
            element_strides: vec![1, 1],
            swizzle: SwizzlePattern::None,
            interleave: Interleave::None,
            sources: vec![Source { dimension: 1, step: 1 }, Source { dimension: 0, step: 1 }],
            boxes: Vec::new(),
        }
    }

    #[test]
    fn a_box_is_packed_row_by_row() {
        let moved = map().box_addresses(&[16, 3], 128).unwrap();
        assert_eq!((moved.len(), map().box_bytes()), (16, 32));
        assert_eq!(moved[9], BoxElement { global: Some(4 * 32 + 17), shared: 64 + 9 });
    }

    #[test]
    fn what_lies_outside_the_tensor_is_filled_in() {
        let moved = map().box_addresses(&[28, 9], 0).unwrap();
        let inside: Vec<usize> = (0..16).filter(|i| moved[*i].global.is_some()).collect();
        assert_eq!(inside, [0, 1, 2, 3]);
    }

    #[test]
    fn element_strides_skip_elements() {
        let map = TensorMap { element_strides: vec![1, 2], box_dims: vec![8, 3], ..map() };
        let moved = map.box_addresses(&[0, 0], 0).unwrap();
        assert_eq!((moved.len(), moved[8].global), (16, Some(64)));
    }

    #[test]
    fn strides_must_be_multiples_of_16_bytes() {
        let map = TensorMap { strides: vec![60], ..map() };
        let said = map.check().unwrap_err().to_string();
        assert!(said.ends_with("neighbours of a dimension are 60 bytes apart in global memory"), "{said}");
    }
}
