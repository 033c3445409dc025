//! Tensor maps derived from layouts: which boxes fill a tile in shared memory.
//!
//! A tile's index splits into digits, each with a step in the tensor and a stride in shared memory. A copy writes its
//! box packed, fastest dimension first. Digits, in order of their shared stride, therefore become dimensions of the box
//! as long as they follow each other without gaps; each combination of values of the remaining digits is one copy.

use crate::ENUMERATION_LIMIT;
use crate::axis::M;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::tile::TileLayout;

use super::limits::{MAX_BOX, MAX_RANK, SHARED_UNIT, UNIT, WIDTHS, check_stride, uneven_row};
use super::pattern::SwizzlePattern;
use super::tensor_map::{BoxCopy, Interleave, Source, TensorMap, refuse};

/// The tensor map with which the copy engine fills a tile of `tile_shape`, laid out in shared memory as `shared`, from
/// a tensor of `global_shape`, laid out in global memory as `global`. Elements have `bits` bits: 4, 8, 16, 32 or 64.
///
/// A single box where possible: a dimension is split where the tile in shared memory stores it in blocks (the columns
/// of a tile wider than the swizzle, the 16-byte chunks of a tile without one), which requires a tensor that is a whole
/// number of blocks. Otherwise several boxes. The shared-memory buffer must start at a multiple of 1024 bytes.
///
/// Errors, if no boxes fill this layout: replicas, axes other than `m`, a table, a swizzle that the engine does not
/// support, rows that are not contiguous in both memories or not a multiple of 16 bytes, strides beyond its limits.
pub fn tensor_map(
    global: &TileLayout,
    global_shape: &[i64],
    tile_shape: &[i64],
    shared: &Layout,
    bits: i64,
) -> Result<TensorMap, LayoutError> {
    if tile_shape.len() != global_shape.len() {
        return Err(LayoutError::Rank { given: tile_shape.len(), needed: global_shape.len() });
    }
    check_width(bits)?;
    check_memory(global, "the tensor")?;
    let strides = tensor_strides(global, global_shape, bits)?;
    let dimension = |(extent, stride): (&i64, &i64)| TensorDimension::known(*extent, *stride);
    let dimensions: Vec<TensorDimension> = global_shape.iter().zip(&strides).map(dimension).collect();
    let boxes = Boxes::of(&dimensions, tile_shape, shared, bits)?;
    boxes.map(bytes(global.offset_on(&M), 1, bits)?, global_shape, &strides)
}

/// What is known of a dimension of a tensor whose sizes may be given later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorDimension {
    /// A number that divides its extent: the extent itself, if that is known.
    pub divisor: i64,
    /// Whether its extent is 1.
    pub is_unit: bool,
    /// Whether its neighbours are one element apart.
    pub is_contiguous: bool,
    /// A number that divides the distance of its neighbours, in elements: the distance itself, if that is known.
    pub stride: i64,
}

impl TensorDimension {
    /// A dimension of this extent, whose neighbours are `stride` elements apart.
    pub fn known(extent: i64, stride: i64) -> TensorDimension {
        TensorDimension { divisor: extent, is_unit: extent == 1, is_contiguous: stride == 1, stride }
    }
}

/// The boxes in which the copy engine fills a tile: what a tensor map says whatever the sizes of the tensor are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    /// Bits of one element.
    pub bits: i64,
    /// Number of dimensions of the tensor.
    pub tensor_rank: usize,
    /// What each dimension of the map counts in the tensor, fastest first.
    pub sources: Vec<Source>,
    /// Elements along each dimension of the map that a box spans.
    pub box_dims: Vec<i64>,
    /// The swizzle of a box in shared memory.
    pub swizzle: SwizzlePattern,
    /// The copies that fill one tile.
    pub copies: Vec<BoxCopy>,
}

impl Boxes {
    /// The boxes that fill a tile of `tile_shape`, laid out in shared memory as `shared`, from a tensor with these
    /// dimensions. Errors as those of [`tensor_map()`], as far as the dimensions are known.
    pub fn of(
        dimensions: &[TensorDimension],
        tile_shape: &[i64],
        shared: &Layout,
        bits: i64,
    ) -> Result<Boxes, LayoutError> {
        if tile_shape.len() != dimensions.len() {
            return Err(LayoutError::Rank { given: tile_shape.len(), needed: dimensions.len() });
        }
        check_width(bits)?;
        let tile = shared.tile()?;
        check_memory(tile, "the tile")?;
        if !tile.is_injective()? {
            return Err(refuse("elements of the tile share places".to_string(), "at most one element per place"));
        }
        let Some(swizzle) = SwizzlePattern::of(shared, bits) else {
            let problem = format!("the copy engine does not support the tile's swizzle on elements of {bits} bits");
            return Err(refuse(problem, "swizzles of 16-byte chunks within 32, 64 or 128 bytes"));
        };
        let tensor = Tensor { dimensions, tile: tile_shape, bits };
        let digits = tensor.digits(tile)?;
        tensor.check_innermost(digits.first())?;
        let (chosen, rest) = tensor.choose(split_to_box_sides(digits, swizzle, bits)?);
        for digit in chosen.iter().skip(1) {
            check_stride(tensor.stride(digit)?)?;
        }
        let boxes = Boxes {
            bits,
            tensor_rank: dimensions.len(),
            sources: chosen.iter().map(|d| Source { dimension: d.dimension, step: d.step }).collect(),
            box_dims: chosen.iter().map(|digit| digit.extent).collect(),
            swizzle,
            copies: box_copies(&chosen, &rest, tile.offset_on(&M), bits)?,
        };
        // The limits of boxes are the same for all tensors, so any will do.
        let rank = boxes.sources.len();
        boxes.of_tensor(0, vec![2; rank], vec![UNIT; rank - 1])?;
        Ok(boxes)
    }

    /// The map of a tensor of `shape` that begins `start` bytes into its memory, with neighbours of each dimension `strides`
    /// elements apart. Error: a map that the driver rejects, or extents and strides that are not the multiples that were
    /// counted on.
    pub fn map(&self, start: i64, shape: &[i64], strides: &[i64]) -> Result<TensorMap, LayoutError> {
        for given in [shape.len(), strides.len()] {
            if given != self.tensor_rank {
                return Err(LayoutError::Rank { given, needed: self.tensor_rank });
            }
        }
        // The driver wants a legal distance even where there are no neighbours.
        let stride = |source: &Source| match shape[source.dimension] {
            1 => Ok(UNIT),
            _ => bytes(source.step, strides[source.dimension], self.bits),
        };
        let dims = self.sources.iter().map(|source| self.extent(source, shape)).collect::<Result<_, _>>()?;
        self.of_tensor(start, dims, self.sources.iter().skip(1).map(stride).collect::<Result<_, _>>()?)
    }

    /// The map with these dimensions and strides.
    fn of_tensor(&self, start: i64, dims: Vec<i64>, strides: Vec<i64>) -> Result<TensorMap, LayoutError> {
        let map = TensorMap {
            bits: self.bits,
            start,
            tensor_rank: self.tensor_rank,
            dims,
            strides,
            box_dims: self.box_dims.clone(),
            element_strides: vec![1; self.box_dims.len()],
            swizzle: self.swizzle,
            interleave: Interleave::None,
            sources: self.sources.clone(),
            boxes: self.copies.clone(),
        };
        map.check()?;
        Ok(map)
    }

    /// Elements along a dimension of the map: up to the next coarser one of the same dimension of the tensor.
    fn extent(&self, source: &Source, shape: &[i64]) -> Result<i64, LayoutError> {
        let coarser = |other: &&Source| other.dimension == source.dimension && other.step > source.step;
        let all = self.sources.iter().filter(coarser).map(|other| other.step).min().unwrap_or(shape[source.dimension]);
        if all % source.step != 0 {
            let problem = format!("dimension {} of the tensor has {all} elements", source.dimension);
            return Err(refuse(problem, &format!("multiples of {}, the blocks of the map in it", source.step)));
        }
        Ok(all / source.step)
    }

    /// The blocks into which the map splits a dimension of the tensor: a tile must begin at a multiple of so many elements.
    pub fn block(&self, dimension: usize) -> i64 {
        block(&self.sources, dimension)
    }

    /// Bytes to whose multiples the tile must begin in shared memory.
    pub fn alignment(&self) -> i64 {
        self.swizzle.repeat().max(SHARED_UNIT)
    }

    /// Bytes that one copy moves, with zeros outside of the tensor: what its barrier must expect.
    pub fn box_bytes(&self) -> i64 {
        self.box_dims.iter().product::<i64>() * self.bits / 8
    }
}

/// The coarsest step in which a map counts a dimension of the tensor.
pub(super) fn block(sources: &[Source], dimension: usize) -> i64 {
    sources.iter().filter(|source| source.dimension == dimension).map(|source| source.step).max().unwrap_or(1)
}

fn check_width(bits: i64) -> Result<(), LayoutError> {
    if WIDTHS.contains(&bits) {
        return Ok(());
    }
    Err(refuse(format!("elements have {bits} bits"), "4, 8, 16, 32 or 64 bits"))
}

/// Part of the index of one dimension of the tile.
#[derive(Clone, Copy, Debug)]
struct BoxDigit {
    /// The dimension of the tensor and of the tile.
    dimension: usize,
    /// Elements of the tensor's dimension from one value to the next.
    step: i64,
    /// Number of values.
    extent: i64,
    /// Stride in shared memory, in elements, before the swizzle.
    shared_stride: i64,
}

/// A tensor in global memory and the shape of a tile of it.
struct Tensor<'a> {
    dimensions: &'a [TensorDimension],
    /// Extents of the tile.
    tile: &'a [i64],
    /// Bits of one element.
    bits: i64,
}

fn check_memory(layout: &TileLayout, what: &str) -> Result<(), LayoutError> {
    if let Some(axis) = layout.axes().into_iter().find(|axis| *axis != M) {
        return Err(refuse(format!("{what} also lives on `{axis}`"), "linear memory `m` only"));
    }
    if !layout.canonicalize().replica().is_empty() {
        return Err(refuse(format!("{what} has replicas"), "one place per element"));
    }
    Ok(())
}

/// `count` steps of `stride` elements, in bytes. Error: not a whole number of bytes.
fn bytes(count: i64, stride: i64, bits: i64) -> Result<i64, LayoutError> {
    let total = count.checked_mul(stride).and_then(|n| n.checked_mul(bits)).ok_or(LayoutError::Overflow)?;
    if total % 8 == 0 { Ok(total / 8) } else { Err(refuse(format!("a distance is {total} bits"), "whole bytes")) }
}

/// The stride of each dimension of a tensor of `shape` with elements of `bits` bits, in elements. Dimensions of extent 1 get
/// the smallest legal stride. Error: a dimension without a single stride.
pub fn tensor_strides(global: &TileLayout, shape: &[i64], bits: i64) -> Result<Vec<i64>, LayoutError> {
    let grouped = global.canonicalize().group(shape)?;
    let stride = |dimension: usize| {
        let moving: Vec<_> = grouped.dimension(dimension).iter().filter(|iter| iter.extent > 1).collect();
        match &moving[..] {
            [] => Ok(UNIT * 8 / bits),
            [iter] => Ok(iter.stride),
            _ => {
                let problem = format!("dimension {dimension} of the tensor has no single stride in global memory");
                Err(refuse(problem, "one stride per dimension"))
            }
        }
    };
    (0..shape.len()).map(stride).collect()
}

/// Splits digits so that each fits a side of a box.
fn split_to_box_sides(digits: Vec<BoxDigit>, swizzle: SwizzlePattern, bits: i64) -> Result<Vec<BoxDigit>, LayoutError> {
    let mut cut: Vec<BoxDigit> = Vec::new();
    for mut rest in digits {
        if cut.is_empty() {
            let side = inner_side(rest.extent, swizzle, bits)?;
            cut.push(rest.split_off(side));
        }
        while rest.extent > 1 {
            // A digit without such a divisor stays whole: it cannot be a side of a box, so each value is a copy.
            let side = largest_side(rest.extent, 1).filter(|side| *side > 1).unwrap_or(rest.extent);
            cut.push(rest.split_off(side));
        }
    }
    Ok(cut)
}

/// Length of the innermost side for `contiguous` elements: a row of the swizzle or, without one, a divisor of them.
fn inner_side(contiguous: i64, swizzle: SwizzlePattern, bits: i64) -> Result<i64, LayoutError> {
    if swizzle == SwizzlePattern::None {
        return largest_side(contiguous, UNIT * 8 / bits).ok_or_else(|| uneven_row(contiguous, contiguous * bits));
    }
    let row = swizzle.span() * 8 / bits;
    if contiguous % row != 0 {
        let problem = format!("{contiguous} of its elements are contiguous, but {} has rows of {row}", swizzle.name());
        return Err(refuse(problem, &format!("contiguous runs of a multiple of {row} elements")));
    }
    Ok(row)
}

/// The longest side of a box that divides `n` and is a multiple of `unit`.
fn largest_side(n: i64, unit: i64) -> Option<i64> {
    (1..=MAX_BOX.min(n)).rev().find(|side| n % side == 0 && side % unit == 0)
}

impl BoxDigit {
    /// Splits off the fastest `extent` values, a divisor of the extent, as a new digit; `self` counts groups of them.
    fn split_off(&mut self, extent: i64) -> BoxDigit {
        let inner = BoxDigit { extent, ..*self };
        self.extent /= extent;
        self.step *= extent;
        self.shared_stride *= extent;
        inner
    }
}

impl Tensor<'_> {
    /// The digits of the tile's index, smallest stride in shared memory first.
    fn digits(&self, tile: &TileLayout) -> Result<Vec<BoxDigit>, LayoutError> {
        let grouped = tile.canonicalize().group(self.tile)?;
        let mut digits = Vec::new();
        for dimension in 0..self.tile.len() {
            let mut step = 1;
            for iter in grouped.dimension(dimension).iter().rev() {
                digits.push(BoxDigit { dimension, step, extent: iter.extent, shared_stride: iter.stride });
                step *= iter.extent;
            }
        }
        digits.retain(|digit| digit.extent > 1);
        digits.sort_by_key(|digit| digit.shared_stride);
        Ok(digits)
    }

    /// The distance in global memory between neighbouring values of a digit, in bytes.
    fn stride(&self, digit: &BoxDigit) -> Result<i64, LayoutError> {
        bytes(digit.step, self.dimensions[digit.dimension].stride, self.bits)
    }

    /// The closest elements of the tile must be neighbours in both memories.
    fn check_innermost(&self, digit: Option<&BoxDigit>) -> Result<(), LayoutError> {
        let legal = "rows that are contiguous in the tensor and in the tile";
        let Some(digit) = digit else { return Err(refuse("it has one element".to_string(), legal)) };
        if digit.shared_stride != 1 {
            let problem = format!("its closest elements are {} elements apart in shared memory", digit.shared_stride);
            return Err(refuse(problem, legal));
        }
        let TensorDimension { is_contiguous, stride, .. } = self.dimensions[digit.dimension];
        if digit.step == 1 && is_contiguous {
            return Ok(());
        }
        let global = digit.step.saturating_mul(stride);
        let apart = if global == 1 { "a number of elements".to_string() } else { format!("{global} elements") };
        Err(refuse(format!("neighbours in shared memory are {apart} apart in the tensor"), legal))
    }

    /// The digits that become dimensions of the map, with the sides of the box as extents, and the remaining ones.
    fn choose(&self, digits: Vec<BoxDigit>) -> (Vec<BoxDigit>, Vec<BoxDigit>) {
        let mut chosen: Vec<BoxDigit> = Vec::new();
        let mut rest = Vec::new();
        let mut packed = 1;
        for digit in digits {
            let follows = rest.is_empty() && digit.shared_stride == packed;
            if chosen.is_empty() || (follows && self.fits(&chosen, digit)) {
                packed *= digit.extent;
                chosen.push(digit);
            } else {
                rest.push(digit);
            }
        }
        let missing = self.unit_digits(&chosen);
        chosen.extend(missing);
        (chosen, rest)
    }

    /// Whether a map may have this digit as its next dimension, after those chosen.
    fn fits(&self, chosen: &[BoxDigit], digit: BoxDigit) -> bool {
        let with: Vec<BoxDigit> = chosen.iter().copied().chain([digit]).collect();
        let stride = self.stride(&digit).unwrap_or(0);
        let whole = self.dimensions[digit.dimension].divisor % digit.step == 0;
        let rank = with.len() + self.unit_digits(&with).len();
        whole && stride > 0 && stride % UNIT == 0 && rank <= MAX_RANK && digit.extent <= MAX_BOX
    }

    /// The dimensions, of side 1, that the chosen ones lack to reach every element of the tensor.
    fn unit_digits(&self, chosen: &[BoxDigit]) -> Vec<BoxDigit> {
        let has = |dimension: usize| chosen.iter().any(|digit| digit.dimension == dimension && digit.step == 1);
        let needed = |dimension: &usize| !self.dimensions[*dimension].is_unit || self.tile[*dimension] > 1;
        let missing = (0..self.dimensions.len()).rev().filter(|dimension| needed(dimension) && !has(*dimension));
        missing.map(|dimension| BoxDigit { dimension, step: 1, extent: 1, shared_stride: 0 }).collect()
    }
}

/// One copy for every combination of values of the remaining digits, in order of increasing shared-memory address.
fn box_copies(chosen: &[BoxDigit], rest: &[BoxDigit], start: i64, bits: i64) -> Result<Vec<BoxCopy>, LayoutError> {
    let points = rest.iter().try_fold(1i64, |n, digit| n.checked_mul(digit.extent)).ok_or(LayoutError::Overflow)?;
    if points > ENUMERATION_LIMIT {
        return Err(LayoutError::TooLarge { points });
    }
    let mut places = vec![(vec![0; chosen.len()], start)];
    for digit in rest.iter().rev() {
        let same = chosen.iter().enumerate().filter(|(_, c)| c.dimension == digit.dimension && c.step <= digit.step);
        let problem = "a digit of the tile has no dimension of the tensor map";
        let (at, holder) = same.max_by_key(|(_, c)| c.step).ok_or(LayoutError::Internal { problem })?;
        let mut next = Vec::with_capacity(places.len());
        for (offset, place) in &places {
            for value in 0..digit.extent {
                let mut offset: Vec<i64> = offset.clone();
                offset[at] += value * (digit.step / holder.step);
                next.push((offset, place + value * digit.shared_stride));
            }
        }
        places = next;
    }
    places.into_iter().map(|(offset, place)| Ok(BoxCopy { offset, shared: bytes(place, 1, bits)? })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map of a tile of a row-major tensor of 16-bit elements.
    fn map(global: &[i64], tile: &[i64], shared: &str) -> Result<TensorMap, String> {
        let tensor = TileLayout::row_major(global).unwrap();
        let shared: Layout = shared.parse().unwrap();
        tensor_map(&tensor, global, tile, &shared, 16).map_err(|e| e.to_string())
    }

    /// Every element moved for the tile that starts at `origin`: its position in shared memory and in the tensor.
    fn moved(map: &TensorMap, origin: &[i64]) -> Vec<(i64, Option<i64>)> {
        let coordinate = map.coordinate(origin).unwrap();
        let mut moved = Vec::new();
        for copy in &map.boxes {
            let at: Vec<i64> = coordinate.iter().zip(&copy.offset).map(|(c, o)| c + o).collect();
            moved.extend(map.box_addresses(&at, copy.shared).unwrap().iter().map(|e| (e.shared, e.global)));
        }
        moved.sort_unstable();
        moved
    }

    /// The expected moves of a 2-dimensional tile according to the layouts, in the same form.
    fn wanted(columns: i64, tile: [i64; 2], origin: [i64; 2], shared: &str) -> Vec<(i64, Option<i64>)> {
        let layout: Layout = shared.parse().unwrap();
        let element = |flat: i64| {
            let (row, column) = (origin[0] + flat / tile[1], origin[1] + flat % tile[1]);
            (layout.memory_position(flat), Some(row * columns + column))
        };
        let mut wanted: Vec<_> = (0..tile[0] * tile[1]).map(element).collect();
        wanted.sort_unstable();
        wanted
    }

    #[test]
    fn a_tile_as_wide_as_the_swizzle_is_one_box_of_rank_2() {
        let shared = "swizzle(M=3,B=3,S=3) o S[(64,64):(64,1)]";
        let found = map(&[256, 512], &[64, 64], shared).unwrap();
        assert_eq!(
            (&found.dims[..], &found.strides[..], &found.box_dims[..]),
            (&[512, 256][..], &[1024][..], &[64, 64][..])
        );
        assert_eq!(moved(&found, &[64, 128]), wanted(512, [64, 64], [64, 128], shared));
    }

    #[test]
    fn a_wider_tile_has_its_blocks_of_columns_as_a_third_dimension() {
        let shared = "swizzle(M=3,B=3,S=3) o S[(16,4,64):(64,1024,1)]";
        let found = map(&[64, 512], &[16, 256], shared).unwrap();
        assert_eq!((&found.dims[..], &found.box_dims[..], found.boxes.len()), (&[64, 64, 8][..], &[64, 16, 4][..], 1));
        assert_eq!(moved(&found, &[16, 256]), wanted(512, [16, 256], [16, 256], shared));
    }

    #[test]
    fn a_tensor_that_is_no_whole_number_of_blocks_takes_several_boxes() {
        let shared = "swizzle(M=3,B=3,S=3) o S[(16,4,64):(64,1024,1)]";
        let found = map(&[64, 520], &[16, 256], shared).unwrap();
        let starts: Vec<(&[i64], i64)> = found.boxes.iter().map(|b| (&b.offset[..], b.shared)).collect();
        let expected: [(&[i64], i64); 4] = [(&[0, 0], 0), (&[64, 0], 2048), (&[128, 0], 4096), (&[192, 0], 6144)];
        assert_eq!(starts, expected);
        assert_eq!(moved(&found, &[16, 8]), wanted(520, [16, 256], [16, 8], shared));
    }

    #[test]
    fn chunks_of_16_bytes_are_the_outer_dimension_without_a_swizzle() {
        let shared = "S[(16,2,8):(8,128,1)]";
        let found = map(&[32, 64], &[16, 16], shared).unwrap();
        assert_eq!((&found.strides[..], &found.box_dims[..]), (&[128, 16][..], &[8, 16, 2][..]));
        assert_eq!(moved(&found, &[16, 48]), wanted(64, [16, 16], [16, 48], shared));
    }

    #[test]
    fn more_than_256_rows_are_split() {
        let shared = "swizzle(M=3,B=3,S=3) o S[(320,64):(64,1)]";
        let found = map(&[640, 64], &[320, 64], shared).unwrap();
        assert_eq!((&found.box_dims[..], found.boxes.len()), (&[64, 160, 2][..], 1));
        assert_eq!(moved(&found, &[320, 0]), wanted(64, [320, 64], [320, 0], shared));
    }

    #[test]
    fn rows_longer_than_256_elements_are_split_into_whole_chunks_of_16_bytes() {
        let shared = "S[(8,264):(264,1)]";
        let found = map(&[64, 264], &[8, 264], shared).unwrap();
        assert_eq!((&found.strides[..], &found.box_dims[..]), (&[176, 528][..], &[88, 3, 8][..]));
        assert_eq!(moved(&found, &[16, 0]), wanted(264, [8, 264], [16, 0], shared));
        let tensor = TileLayout::row_major(&[64, 260]).unwrap();
        let tile: Layout = "S[(8,260):(260,1)]".parse().unwrap();
        assert_eq!(tensor_map(&tensor, &[64, 260], &[8, 260], &tile, 32).unwrap().box_dims, [52, 5, 8]);
    }

    #[test]
    fn a_dimension_of_one_element_is_left_out() {
        let found = map(&[1, 32, 64], &[1, 8, 64], "S[(8,64):(64,1)]").unwrap();
        assert_eq!((found.rank(), found.coordinate(&[0, 8, 0])), (2, Ok(vec![0, 8])));
        assert_eq!((found.coordinate(&[8, 0]).is_err(), found.coordinate(&[1, 8, 0]).is_err()), (true, true));
    }

    #[test]
    fn padded_rows_are_a_box_each() {
        let shared = "S[(4,64):(128,1)]";
        let found = map(&[8, 64], &[4, 64], shared).unwrap();
        assert_eq!((&found.box_dims[..], found.boxes.len()), (&[64, 1][..], 4));
        assert_eq!(moved(&found, &[3, 0]), wanted(64, [4, 64], [3, 0], shared));
    }

    #[test]
    fn a_tile_off_the_blocks_of_the_map_has_no_coordinate() {
        let found = map(&[64, 512], &[16, 256], "swizzle(M=3,B=3,S=3) o S[(16,4,64):(64,1024,1)]").unwrap();
        assert!(found.coordinate(&[0, 32]).unwrap_err().to_string().ends_with("the tile starts at 32 of dimension 1"));
    }

    /// Rows of a matrix of 16-bit elements, of whose extents and rows only divisors are known.
    fn unknown(divisors: [i64; 2], stride: i64) -> [TensorDimension; 2] {
        let [rows, columns] =
            divisors.map(|divisor| TensorDimension { divisor, is_unit: false, is_contiguous: false, stride });
        [rows, TensorDimension { is_contiguous: true, stride: 1, ..columns }]
    }

    #[test]
    fn boxes_are_the_same_for_all_sizes_with_the_divisors() {
        let shared = "swizzle(M=3,B=3,S=3) o S[(16,4,64):(64,1024,1)]".parse().unwrap();
        let boxes = Boxes::of(&unknown([1, 64], 64), &[16, 256], &shared, 16).unwrap();
        assert_eq!((boxes.copies.len(), boxes.block(0), boxes.block(1), boxes.box_bytes()), (1, 1, 64, 8192));
        for columns in [64, 192, 4096] {
            let known = map(&[33, columns], &[16, 256], &shared.to_string()).unwrap();
            assert_eq!(boxes.map(0, &[33, columns], &[columns, 1]), Ok(known));
        }
        let refused = boxes.map(0, &[33, 96], &[96, 1]).unwrap_err().to_string();
        assert!(refused.ends_with("dimension 1 of the tensor has 96 elements"), "{refused}");
    }

    #[test]
    fn a_tensor_of_no_whole_number_of_blocks_that_is_known_takes_several_boxes() {
        let shared = "swizzle(M=3,B=3,S=3) o S[(16,4,64):(64,1024,1)]".parse().unwrap();
        let boxes = Boxes::of(&unknown([1, 8], 8), &[16, 256], &shared, 16).unwrap();
        assert_eq!((boxes.copies.len(), boxes.block(1)), (4, 1));
    }

    #[test]
    fn rows_may_be_any_number_of_16_bytes_apart() {
        let shared = "S[(8,64):(64,1)]".parse().unwrap();
        let of = |stride| Boxes::of(&unknown([1, 1], stride), &[8, 64], &shared, 16).map(|boxes| boxes.box_dims);
        assert_eq!(of(8), Ok(vec![64, 8]));
        assert!(of(4).unwrap_err().to_string().ends_with("are 8 bytes apart in global memory"));
    }

    #[test]
    fn what_no_box_describes_is_refused_with_the_reason() {
        let said = |global: &[i64], tile: &[i64], shared| {
            map(global, tile, shared).unwrap_err().replace("no tensor map describes this layout: ", "")
        };
        let transposed = said(&[64, 64], &[16, 16], "S[(16,16):(1,16)]");
        assert_eq!(transposed, "neighbours in shared memory are 64 elements apart in the tensor");
        let narrow = said(&[16, 8], &[8, 4], "S[(8,4):(4,1)]");
        assert_eq!(narrow, "a row of the box has 64 bits (4 elements)");
        let short = said(&[64, 64], &[8, 32], "swizzle(M=3,B=3,S=3) o S[(8,32):(64,1)]");
        assert_eq!(short, "32 of its elements are contiguous, but the 128-byte swizzle has rows of 64");
        let odd = said(&[64, 36], &[8, 8], "S[(8,8):(8,1)]");
        assert_eq!(odd, "neighbours of a dimension are 72 bytes apart in global memory");
        let unaligned = said(&[64, 64], &[4, 16], "S[(4,16):(24,1)]");
        assert_eq!(unaligned, "a box would start at byte 48 of shared memory");
        let shared = said(&[64, 64], &[8, 8], "S[(8,8):(0,1)]");
        assert_eq!(shared, "elements of the tile share places");
    }
}
