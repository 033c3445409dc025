use std::collections::{BTreeMap, BTreeSet};

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;

/// The maximum number of shard or replica iters. No tile needs more (55 of extent 2 fill all positions), and the limit
/// keeps every operation bounded.
const MAX_ITERS: usize = 256;
/// The maximum number of copies of one element that are listed.
const MAX_COPIES: i64 = 1 << 16;

/// A place: a position on each axis of a layout.
pub type Coord = BTreeMap<Axis, i64>;

/// Shard + replica + offset over named axes: `L(x) = { D(x) + r + O | r in R }`.
///
/// Element `x` (a flat row-major index) splits into digits over the shard extents, the last fastest; each digit times
/// its stride is added on its axis. Replicas add every combination of their digits; the offset shifts all places.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileLayout {
    shard: Vec<Iter>,
    replica: Vec<Iter>,
    offset: BTreeMap<Axis, i64>,
}

impl TileLayout {
    /// A layout from its parts. Offsets on one axis add up. Errors: an extent below 1, sizes or positions beyond 56
    /// bits, more than 256 shard or replica iters, an axis whose name is not valid in the notation.
    pub fn new(
        shard: Vec<Iter>,
        replica: Vec<Iter>,
        offset: impl IntoIterator<Item = (Axis, i64)>,
    ) -> Result<TileLayout, LayoutError> {
        let most = shard.len().max(replica.len());
        if most > MAX_ITERS {
            return Err(LayoutError::TooManyIters { count: most });
        }
        if let Some(bad) = shard.iter().chain(&replica).find(|iter| iter.extent < 1) {
            return Err(LayoutError::Extent { extent: bad.extent });
        }
        let mut sums: BTreeMap<Axis, i64> = BTreeMap::new();
        for (axis, value) in offset {
            let sum = sums.entry(axis).or_insert(0);
            *sum = sum.checked_add(value).ok_or(LayoutError::Overflow)?;
        }
        sums.retain(|_, value| *value != 0);
        let layout = TileLayout { shard, replica, offset: sums };
        let mut axes = layout.shard.iter().chain(&layout.replica).map(|iter| &iter.axis).chain(layout.offset.keys());
        if let Some(axis) = axes.find(|axis| !axis.is_valid_name()) {
            return Err(LayoutError::Axes { problem: format!("`{axis}` is not a valid axis name") });
        }
        layout.check_sizes()?;
        Ok(layout)
    }

    /// A layout from parts that are valid because of those they were made from: as many elements, or fewer, at places
    /// that another layout has, or fewer of its axes. Offsets on one axis add up.
    pub(crate) fn from_valid_parts(
        shard: Vec<Iter>,
        replica: Vec<Iter>,
        offset: impl IntoIterator<Item = (Axis, i64)>,
    ) -> TileLayout {
        let mut sums: BTreeMap<Axis, i64> = BTreeMap::new();
        for (axis, value) in offset {
            *sums.entry(axis).or_insert(0) += value;
        }
        sums.retain(|_, value| *value != 0);
        TileLayout { shard, replica, offset: sums }
    }

    /// One element at position 0 of linear memory.
    pub fn one() -> TileLayout {
        TileLayout { shard: vec![Iter::memory(1, 1)], replica: Vec::new(), offset: BTreeMap::new() }
    }

    /// Row-major on linear memory: the last dimension has stride 1.
    pub fn row_major(shape: &[i64]) -> Result<TileLayout, LayoutError> {
        let mut stride = 1i64;
        let mut shard = Vec::with_capacity(shape.len());
        for &extent in shape.iter().rev() {
            shard.push(Iter::memory(extent, stride));
            stride = stride.checked_mul(extent.max(1)).ok_or(LayoutError::Overflow)?;
        }
        shard.reverse();
        TileLayout::new(shard, Vec::new(), [])
    }

    /// Size and positions must fit in 56 bits, so that later sums, also in bytes, cannot overflow. Apart from idle
    /// strides, only the places of the elements matter, so a layout and its normal form pass or fail together.
    fn check_sizes(&self) -> Result<(), LayoutError> {
        const LIMIT: i64 = 1 << 56;
        let mut size = 1i64;
        for iter in &self.shard {
            size = size.checked_mul(iter.extent).filter(|s| *s < LIMIT).ok_or(LayoutError::Overflow)?;
        }
        let fits = |axis: &Axis| {
            let (low, high) = self.range_on(axis);
            low > -i128::from(LIMIT) && high < i128::from(LIMIT)
        };
        // The stride of an iter of extent 1 moves nothing, but later operations may multiply it.
        let idle = |iter: &Iter| iter.extent == 1 && iter.stride.saturating_abs() >= LIMIT << 4;
        let mut axes = self.shard.iter().chain(&self.replica).map(|iter| &iter.axis).chain(self.offset.keys());
        let far = axes.any(|axis| !fits(axis)) || self.shard.iter().chain(&self.replica).any(idle);
        if far { Err(LayoutError::Overflow) } else { Ok(()) }
    }

    /// The least and the greatest position on an axis; both fit in 56 bits once the sizes are checked.
    fn range_on(&self, axis: &Axis) -> (i128, i128) {
        let offset = i128::from(self.offset.get(axis).copied().unwrap_or(0));
        let here = self.shard.iter().chain(&self.replica).filter(|iter| iter.axis == *axis);
        here.fold((offset, offset), |(low, high), iter| {
            let far = i128::from(iter.extent - 1) * i128::from(iter.stride);
            (low + far.min(0), high + far.max(0))
        })
    }

    /// The shard iters, slowest first.
    pub fn shard(&self) -> &[Iter] {
        &self.shard
    }

    /// The replica iters.
    pub fn replica(&self) -> &[Iter] {
        &self.replica
    }

    /// The nonzero offsets, by axis.
    pub fn offset(&self) -> &BTreeMap<Axis, i64> {
        &self.offset
    }

    /// The offset on one axis.
    pub fn offset_on(&self, axis: &Axis) -> i64 {
        self.offset.get(axis).copied().unwrap_or(0)
    }

    /// The same layout with every `from` axis renamed to `to`; attaching a layout to a fragment renames `m` to `reg`.
    /// Error: positions that add up beyond 56 bits where the layout is on both axes.
    pub fn renamed(&self, from: &Axis, to: &Axis) -> Result<TileLayout, LayoutError> {
        let rename = |axis: &Axis| if axis == from { to.clone() } else { axis.clone() };
        let iters = |list: &[Iter]| list.iter().map(|i| Iter { axis: rename(&i.axis), ..i.clone() }).collect();
        let offset = self.offset.iter().map(|(axis, value)| (rename(axis), *value));
        TileLayout::new(iters(&self.shard), iters(&self.replica), offset)
    }

    /// The same layout without replicas.
    pub fn shard_only(&self) -> TileLayout {
        TileLayout { replica: Vec::new(), ..self.clone() }
    }

    /// An upper bound on the number of places: elements times the combinations of replica digits.
    pub(crate) fn places_at_most(&self) -> i64 {
        self.replica.iter().fold(self.size(), |n, iter| n.saturating_mul(iter.extent))
    }

    /// How many elements it places: the product of the shard extents.
    pub fn size(&self) -> i64 {
        self.shard.iter().map(|iter| iter.extent).product()
    }

    /// The product of the shard extents on one axis; 1 if there is none.
    pub fn size_on(&self, axis: &Axis) -> i64 {
        self.shard.iter().filter(|iter| iter.axis == *axis).map(|iter| iter.extent).product()
    }

    /// One more than the greatest position on `axis`, replicas and offset included (the space to reserve from 0 on).
    pub fn span_on(&self, axis: &Axis) -> i64 {
        self.range_on(axis).1 as i64 + 1
    }

    /// The least position on `axis`, replicas and offset included.
    pub fn least_on(&self, axis: &Axis) -> i64 {
        self.range_on(axis).0 as i64
    }

    /// How many positions there are on `axis` from the least to the greatest. Unlike for [`TileLayout::span_on`], the
    /// offset does not matter.
    pub fn cosize_on(&self, axis: &Axis) -> i64 {
        let (least, greatest) = self.range_on(axis);
        (greatest - least) as i64 + 1
    }

    /// One more than the sum over the memory axes of the greatest position on each.
    pub fn span(&self) -> i64 {
        1 + self.axes().iter().filter(|axis| axis.is_memory()).map(|axis| self.span_on(axis) - 1).sum::<i64>()
    }

    /// The axes it mentions, in order of name.
    pub fn axes(&self) -> BTreeSet<Axis> {
        let iters = self.shard.iter().chain(&self.replica).map(|iter| iter.axis.clone());
        iters.chain(self.offset.keys().cloned()).collect()
    }

    /// True when element `x` is at position `x` of one memory axis: one iter of stride 1, no replicas, no offset.
    pub fn is_trivial(&self) -> bool {
        let c = self.canonicalize();
        let unit = |iter: &Iter| iter.stride == 1 && iter.axis.is_memory() || iter.extent == 1 && iter.axis.is_memory();
        self.replica.is_empty() && c.offset.is_empty() && matches!(&c.shard[..], [iter] if unit(iter))
    }

    /// The places of element `flat`, as a sorted set. Errors: an index outside the layout, more than 65536 copies.
    pub fn apply(&self, flat: i64) -> Result<Vec<Coord>, LayoutError> {
        let size = self.size();
        if flat < 0 || flat >= size {
            return Err(LayoutError::OutOfRange { index: flat, extent: size });
        }
        let mut base = self.origin();
        let mut rest = flat;
        for iter in self.shard.iter().rev() {
            *base.entry(iter.axis.clone()).or_insert(0) += rest % iter.extent * iter.stride;
            rest /= iter.extent;
        }
        if self.replica.is_empty() { Ok(vec![base]) } else { self.with_copies(base) }
    }

    /// The places of element 0, in order. Those of any other element are at the same distances from each other.
    /// Error: more than 65536 of them.
    pub(crate) fn copies(&self) -> Result<Vec<Coord>, LayoutError> {
        self.with_copies(self.origin())
    }

    /// The offset, with a position on every axis of a replica.
    fn origin(&self) -> Coord {
        let mut origin = self.offset.clone();
        for iter in &self.replica {
            origin.entry(iter.axis.clone()).or_insert(0);
        }
        origin
    }

    /// The place and its copies, in order.
    fn with_copies(&self, base: Coord) -> Result<Vec<Coord>, LayoutError> {
        let mut places = vec![base];
        let axes: BTreeSet<&Axis> = self.replica.iter().map(|iter| &iter.axis).collect();
        for axis in axes {
            let offsets = crate::algebra::offsets_on(&self.replica, axis, MAX_COPIES)?;
            let points = (offsets.len() * places.len()) as i64;
            if points > MAX_COPIES {
                return Err(LayoutError::TooLarge { points });
            }
            let moved = |place: &Coord, offset: i64| {
                let mut copy = place.clone();
                *copy.entry(axis.clone()).or_insert(0) += offset;
                copy
            };
            places = places.iter().flat_map(|place| offsets.iter().map(|offset| moved(place, *offset))).collect();
        }
        places.sort();
        Ok(places)
    }

    /// Where the element at `coordinate` of a tile of this `shape` lives.
    /// Errors: wrong rank, a coordinate out of range, a shape of another size.
    pub fn apply_in(&self, coordinate: &[i64], shape: &[i64]) -> Result<Vec<Coord>, LayoutError> {
        self.check_shape(shape)?;
        self.apply(flatten(coordinate, shape)?)
    }

    /// Where the element at `coordinate` lives, one index per shard iter.
    pub fn apply_digits(&self, coordinate: &[i64]) -> Result<Vec<Coord>, LayoutError> {
        let extents: Vec<i64> = self.shard.iter().map(|iter| iter.extent).collect();
        self.apply(flatten(coordinate, &extents)?)
    }

    /// The digit of every iter for the element at `coordinate`: of the iters grouped by `shape` if the layout groups by
    /// it, otherwise of the iters as they are.
    pub fn digits_in(&self, coordinate: &[i64], shape: &[i64]) -> Result<Vec<i64>, LayoutError> {
        self.check_shape(shape)?;
        let iters = self.group(shape).map_or_else(|_| self.shard.clone(), |grouped| grouped.layout.shard);
        let mut rest = flatten(coordinate, shape)?;
        let mut digits = Vec::with_capacity(iters.len());
        for iter in iters.iter().rev() {
            digits.push(rest % iter.extent);
            rest /= iter.extent;
        }
        digits.reverse();
        Ok(digits)
    }

    pub(crate) fn check_shape(&self, shape: &[i64]) -> Result<(), LayoutError> {
        check_size(shape, self.size())
    }

    /// The positions of all elements on one axis, in order, replicas left out. One number per element, so call it only
    /// for tiles that are enumerated anyway.
    pub fn positions(&self, axis: &Axis) -> Vec<i64> {
        let mut positions = self.digit_sums(|on| i64::from(on == axis));
        let offset = self.offset_on(axis);
        positions.iter_mut().for_each(|position| *position += offset);
        positions
    }

    /// For all elements in order, the sum of their positions on all axes, each times the weight of the axis; replicas
    /// and the offset are left out.
    pub(crate) fn digit_sums(&self, weight: impl Fn(&Axis) -> i64) -> Vec<i64> {
        let mut sums = vec![0];
        for iter in &self.shard {
            let stride = iter.stride * weight(&iter.axis);
            sums = sums.iter().flat_map(|sum| (0..iter.extent).map(move |digit| sum + digit * stride)).collect();
        }
        sums
    }

    /// The position of element `flat` on one axis, replicas left out. `flat` must be inside the layout.
    pub fn position(&self, flat: i64, axis: &Axis) -> i64 {
        let mut rest = flat;
        let mut position = self.offset_on(axis);
        for iter in self.shard.iter().rev() {
            if iter.axis == *axis {
                position += rest % iter.extent * iter.stride;
            }
            rest /= iter.extent;
        }
        position
    }
}

/// Error: a shape whose number of elements is not `size`, or an extent below 1.
pub(crate) fn check_size(shape: &[i64], size: i64) -> Result<(), LayoutError> {
    let product = shape.iter().try_fold(1i64, |product, &extent| product.checked_mul(extent));
    if shape.iter().any(|extent| *extent < 1) || product != Some(size) {
        return Err(LayoutError::Size { shape: shape.to_vec(), size });
    }
    Ok(())
}

/// Row-major flat index of a coordinate; checks rank and range.
pub(crate) fn flatten(coordinate: &[i64], shape: &[i64]) -> Result<i64, LayoutError> {
    if coordinate.len() != shape.len() {
        return Err(LayoutError::Rank { given: coordinate.len(), needed: shape.len() });
    }
    let mut flat = 0i64;
    for (&index, &extent) in coordinate.iter().zip(shape) {
        if index < 0 || index >= extent {
            return Err(LayoutError::OutOfRange { index, extent });
        }
        flat = flat * extent + index;
    }
    Ok(flat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{LANEID, M, WARPID};

    fn seed() -> TileLayout {
        "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid".parse().unwrap()
    }

    #[test]
    fn an_element_with_replicas_lives_at_a_set_of_places() {
        let places = seed().apply_in(&[3, 9], &[8, 16]).unwrap();
        let seen: Vec<_> = places.iter().map(|p| (p[&LANEID], p[&WARPID], p[&M])).collect();
        assert_eq!(seen, [(12, 6, 1), (12, 10, 1)]);
    }

    #[test]
    fn wrong_ranks_sizes_and_indices_are_errors() {
        let wrong = [
            seed().apply_in(&[1, 3], &[7, 5]).unwrap_err().code(),
            seed().apply_digits(&[1, 1]).unwrap_err().code(),
            seed().apply(128).unwrap_err().code(),
            seed().apply(-1).unwrap_err().code(),
        ];
        assert_eq!(wrong, ["L0105", "L0104", "L0106", "L0106"]);
    }

    #[test]
    fn all_positions_at_once_are_those_of_each_element() {
        for axis in [LANEID, WARPID, M] {
            let one_by_one: Vec<i64> = (0..128).map(|flat| seed().position(flat, &axis)).collect();
            assert_eq!(seed().positions(&axis), one_by_one);
        }
    }

    #[test]
    fn a_span_counts_replicas_and_offset() {
        assert_eq!((seed().span_on(&WARPID), seed().span_on(&LANEID), seed().size_on(&LANEID)), (11, 32, 32));
    }
}
