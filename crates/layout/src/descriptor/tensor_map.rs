//! Tensor maps: how a tensor in global memory, and the box that one copy moves, are described to the copy engine (TMA).
//!
//! Sources: CUDA driver API, `cuTensorMapEncodeTiled`; PTX ISA, section "Tensors" (tiled mode, swizzling modes). The
//! limits are in `limits`.

use crate::error::LayoutError;

use super::pattern::SwizzlePattern;

/// How channels are interleaved in global memory (`CUtensorMapInterleave`).
///
/// Derived maps do not interleave: a box with a separate dimension for the 16-byte chunks of a row is equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Rows are contiguous.
    None,
    /// Slices of 16 bytes of channels.
    B16,
    /// Slices of 32 bytes of channels.
    B32,
}

/// The tensor dimension that a dimension of a map counts, and the step in which it counts.
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
    /// Offset to add to the tile's coordinate in the map, fastest dimension first.
    pub offset: Vec<i64>,
    /// Where it goes in shared memory, in bytes from the start of the buffer.
    pub shared: i64,
}

/// One element that a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxElement {
    /// Its position in the tensor's memory, in elements; `None` outside the tensor, where zeros are filled in.
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
    /// Number of dimensions of the tensor, including those of extent 1, which the map leaves out.
    pub tensor_rank: usize,
    /// Extent of each dimension of the map, in elements.
    pub dims: Vec<i64>,
    /// Distance between neighbours along dimensions 1 and up, in bytes; along dimension 0 elements are packed.
    pub strides: Vec<i64>,
    /// Elements along each dimension that a box spans.
    pub box_dims: Vec<i64>,
    /// Which elements of a box are moved: every one (1), every second (2), ... up to 8. Ignored along dimension 0, of
    /// which every element is moved, unless channels are interleaved.
    pub element_strides: Vec<i64>,
    /// The swizzle of the box in shared memory.
    pub swizzle: SwizzlePattern,
    /// How channels are interleaved in global memory.
    pub interleave: Interleave,
    /// What each dimension of the map counts in the tensor.
    pub sources: Vec<Source>,
    /// The copies that fill one tile; a single one if one box covers the tile.
    pub boxes: Vec<BoxCopy>,
}

impl TensorMap {
    /// How many dimensions the map has; a dimension of the tensor may be split, and one of extent 1 is left out.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
}

/// An error about a tensor map.
pub(crate) fn refuse(problem: String, legal: &str) -> LayoutError {
    LayoutError::Descriptor { name: "tensor map", problem, legal: legal.to_string() }
}

/// For tests: rows of 32 elements of 16 bits, of which a box takes 8 by 2.
#[cfg(test)]
pub(super) fn small_map() -> TensorMap {
    TensorMap {
        bits: 16,
        start: 0,
        tensor_rank: 2,
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
