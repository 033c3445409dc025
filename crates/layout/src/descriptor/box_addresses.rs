//! What the copies of a tensor map move: where a box is in the tensor, and where its elements go in shared memory.

use crate::ENUMERATION_LIMIT;
use crate::error::LayoutError;

use super::boxes::block;
use super::limits::{UNIT, check_shared};
use super::tensor_map::{BoxElement, Interleave, Source, TensorMap, refuse};

impl TensorMap {
    /// Bytes that one copy moves, including zeros outside the tensor: the count that the barrier must expect.
    /// Error: a map that the driver rejects.
    pub fn box_bytes(&self) -> Result<i64, LayoutError> {
        self.check()?;
        Ok(self.moved().into_iter().product::<i64>() * self.bits / 8)
    }

    /// Number of elements moved along each dimension; the map must have been checked.
    fn moved(&self) -> Vec<i64> {
        let sides = self.box_dims.iter().enumerate();
        sides.map(|(dimension, side)| (side + self.step(dimension) - 1) / self.step(dimension)).collect()
    }

    /// Distance from one moved element to the next, in elements.
    fn step(&self, dimension: usize) -> i64 {
        let ignored = dimension == 0 && self.interleave == Interleave::None;
        if ignored { 1 } else { self.element_strides[dimension] }
    }

    /// The coordinate in the map of the tile that starts at `origin` of the tensor. Errors: a map that the driver
    /// rejects, a rank other than the tensor's, an origin that is not a multiple of the blocks into which the map
    /// splits a dimension, or is not 0 in a dimension that the map leaves out, or a first coordinate that is not a multiple
    /// of 16 bytes.
    pub fn coordinate(&self, origin: &[i64]) -> Result<Vec<i64>, LayoutError> {
        self.check()?;
        if origin.len() != self.tensor_rank {
            return Err(LayoutError::Rank { given: origin.len(), needed: self.tensor_rank });
        }
        self.check_left_out(origin)?;
        let indices = self.sources.iter().map(|source| self.index(*source, origin[source.dimension]));
        let indices: Vec<i64> = indices.collect::<Result<_, _>>()?;
        self.check_first(&indices)?;
        Ok(indices)
    }

    fn check_first(&self, coordinate: &[i64]) -> Result<(), LayoutError> {
        let unit = UNIT * 8 / self.bits;
        match coordinate.first() {
            Some(first) if self.interleave == Interleave::None && first % unit != 0 => {
                let problem = format!("the first coordinate is {first}");
                Err(refuse(problem, &format!("multiples of {unit}, which are {UNIT} bytes")))
            }
            _ => Ok(()),
        }
    }

    fn check_left_out(&self, origin: &[i64]) -> Result<(), LayoutError> {
        let counted = |dimension: usize| self.sources.iter().any(|source| source.dimension == dimension);
        match origin.iter().enumerate().find(|(dimension, at)| **at != 0 && !counted(*dimension)) {
            None => Ok(()),
            Some((dimension, at)) => {
                let problem = format!("the tile starts at {at} of dimension {dimension}, which the map leaves out");
                Err(refuse(problem, "0 in a dimension of one element"))
            }
        }
    }

    /// The index, in one dimension of the map, of a tile that starts at `at` in the tensor's dimension.
    fn index(&self, source: Source, at: i64) -> Result<i64, LayoutError> {
        let block = block(&self.sources, source.dimension);
        if at % block != 0 {
            let problem = format!("the tile starts at {at} of dimension {}", source.dimension);
            return Err(refuse(problem, &format!("multiples of {block}, the blocks of the map in that dimension")));
        }
        Ok(if source.step == block { at / block } else { 0 })
    }

    /// Every element that a copy of the box at `coordinate` of the map moves, fastest dimension first; its destination
    /// is `shared` bytes into the buffer. Errors: a map that the driver rejects, a wrong rank, interleaved channels, a
    /// destination that is not a multiple of 128 bytes, a first coordinate that is not one of 16 bytes, a box too large to
    /// enumerate.
    pub fn box_addresses(&self, coordinate: &[i64], shared: i64) -> Result<Vec<BoxElement>, LayoutError> {
        self.check()?;
        check_shared(shared)?;
        if self.interleave != Interleave::None {
            return Err(refuse("channels are interleaved".to_string(), "maps without interleaving"));
        }
        if coordinate.len() != self.rank() {
            return Err(LayoutError::Rank { given: coordinate.len(), needed: self.rank() });
        }
        self.check_first(coordinate)?;
        let moved = self.moved();
        let points: i64 = moved.iter().product();
        if points > ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let swizzle = self.swizzle.swizzle(self.bits)?;
        let first = shared.checked_mul(8).ok_or(LayoutError::Overflow)? / self.bits;
        let element = |flat: i64| -> Result<BoxElement, LayoutError> {
            let position = first.checked_add(flat).ok_or(LayoutError::Overflow)?;
            let global = self.global_position(coordinate, &moved, flat)?;
            Ok(BoxElement { global, shared: swizzle.map_or(position, |s| s.apply(position)) })
        };
        (0..points).map(element).collect()
    }

    /// Where element `flat` of the box at `coordinate` is in global memory, in elements; `None` outside the tensor.
    fn global_position(&self, coordinate: &[i64], moved: &[i64], flat: i64) -> Result<Option<i64>, LayoutError> {
        let mut rest = flat;
        let mut bits = i128::from(self.start) * 8;
        for (i, side) in moved.iter().enumerate() {
            let at = i128::from(coordinate[i]) + i128::from(rest % side * self.step(i));
            rest /= side;
            if !(0..i128::from(self.dims[i])).contains(&at) {
                return Ok(None);
            }
            bits += at * i128::from(if i == 0 { self.bits } else { self.strides[i - 1] * 8 });
        }
        i64::try_from(bits / i128::from(self.bits)).map(Some).map_err(|_| LayoutError::Overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tensor_map::small_map as map;
    use super::*;

    #[test]
    fn a_box_is_packed_row_by_row() {
        let moved = map().box_addresses(&[16, 3], 128).unwrap();
        assert_eq!((moved.len(), map().box_bytes()), (16, Ok(32)));
        assert_eq!(moved[9], BoxElement { global: Some(4 * 32 + 17), shared: 64 + 9 });
    }

    #[test]
    fn what_lies_outside_the_tensor_is_filled_in() {
        let map = TensorMap { dims: vec![28, 10], ..map() };
        let moved = map.box_addresses(&[24, 9], 0).unwrap();
        let inside: Vec<usize> = (0..16).filter(|i| moved[*i].global.is_some()).collect();
        assert_eq!(inside, [0, 1, 2, 3]);
    }

    #[test]
    fn element_strides_skip_elements() {
        let map = TensorMap { element_strides: vec![1, 2], box_dims: vec![8, 3], ..map() };
        let moved = map.box_addresses(&[0, 0], 0).unwrap();
        assert_eq!((moved.len(), moved[8].global, map.box_bytes()), (16, Some(64), Ok(32)));
    }

    #[test]
    fn the_first_element_stride_is_ignored() {
        let map = TensorMap { element_strides: vec![2, 1], ..map() };
        let global: Vec<Option<i64>> = map.box_addresses(&[0, 0], 0).unwrap().iter().map(|e| e.global).collect();
        assert_eq!((global.len(), &global[..3]), (16, &[Some(0), Some(1), Some(2)][..]));
    }

    #[test]
    fn what_the_driver_refuses_has_no_addresses_and_no_coordinate() {
        let wrong = [
            TensorMap { box_dims: vec![8, i64::MAX], ..map() },
            TensorMap { element_strides: vec![1, 0], ..map() },
            TensorMap { strides: vec![i64::MAX / 16 * 16], ..map() },
            TensorMap { strides: vec![60], ..map() },
        ];
        for map in wrong {
            assert_eq!(map.box_addresses(&[0, 0], 0).unwrap_err().code(), "L0114");
            assert_eq!(map.coordinate(&[0, 0]).unwrap_err().code(), "L0114");
            assert_eq!(map.box_bytes().unwrap_err().code(), "L0114");
        }
    }

    #[test]
    fn far_coordinates_and_destinations_are_no_overflow() {
        let outside = map().box_addresses(&[i64::MAX - 7, i64::MIN], 0).unwrap();
        assert!(outside.iter().all(|element| element.global.is_none()));
        assert_eq!(map().box_addresses(&[0, 0], 1 << 62), Err(LayoutError::Overflow));
        assert_eq!(map().box_addresses(&[0, 0], 8).unwrap_err().code(), "L0114");
    }

    #[test]
    fn a_box_begins_at_a_multiple_of_16_bytes_in_its_row() {
        let said = |result: Result<(), LayoutError>| result.unwrap_err().to_string();
        let expected = "the first coordinate is 20";
        assert!(said(map().coordinate(&[3, 20]).map(|_| ())).ends_with(expected));
        assert!(said(map().box_addresses(&[20, 3], 0).map(|_| ())).ends_with(expected));
        assert_eq!(map().coordinate(&[3, 24]), Ok(vec![24, 3]));
    }

    #[test]
    fn a_tile_has_a_coordinate_only_in_the_tensor_of_the_map() {
        let map = TensorMap { tensor_rank: 3, ..map() };
        assert_eq!(map.coordinate(&[3, 16, 0]), Ok(vec![16, 3]));
        assert_eq!(map.coordinate(&[3, 16]), Err(LayoutError::Rank { given: 2, needed: 3 }));
        let said = map.coordinate(&[3, 16, 1]).unwrap_err().to_string();
        assert!(said.ends_with("the tile starts at 1 of dimension 2, which the map leaves out"), "{said}");
    }
}
