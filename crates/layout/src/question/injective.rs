//! Injectivity: whether two different elements share a place, and which.

use std::collections::BTreeSet;

use crate::algebra::normal_form;
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::layout::Layout;
use crate::question::{Equation, Unknown};
use crate::tile::TileLayout;

impl TileLayout {
    /// True when different elements never share a place, replicas included.
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        Ok(self.collision()?.is_none())
    }

    /// Two elements that share a place, the lesser first, if any do; replicas included.
    ///
    /// Two elements share a place exactly if on every axis some difference of shard digits, with some difference of
    /// replica digits, adds to zero, and a shard digit differs somewhere. All other digits may agree, so one axis on
    /// which this happens decides.
    pub fn collision(&self) -> Result<Option<(i64, i64)>, LayoutError> {
        if let Some(idle) = self.shard().iter().position(|iter| iter.stride == 0 && iter.extent > 1) {
            return Ok(Some((0, self.elements_per_step(idle))));
        }
        let mut budget = crate::ENUMERATION_LIMIT;
        let copies = normal_form(self.replica()).0;
        let axes: BTreeSet<&Axis> = self.shard().iter().map(|iter| &iter.axis).collect();
        for axis in axes {
            if let Some(pair) = self.collision_on(axis, &copies, &mut budget)? {
                return Ok(Some(pair));
            }
        }
        Ok(None)
    }

    /// A solution gives the differences of the digits: one element has the positive ones, the other the negative ones.
    fn collision_on(&self, axis: &Axis, copies: &[Iter], budget: &mut i64) -> Result<Option<(i64, i64)>, LayoutError> {
        let rank = self.shard().len();
        let all = self.shard().iter().chain(copies).enumerate();
        let here = all.filter(|(_, iter)| iter.axis == *axis && iter.extent > 1);
        let difference = |(name, iter): (usize, &Iter)| Unknown {
            stride: iter.stride,
            low: 1 - iter.extent,
            high: iter.extent - 1,
            name,
        };
        let equation = Equation::new(here.map(difference).collect());
        let mut pair = None;
        equation.solve(0, budget, &mut |digits| {
            let element = |sign: i64| {
                let moved = digits.iter().filter(|(name, digit)| *name < rank && sign * digit > 0);
                moved.map(|(name, digit)| sign * digit * self.elements_per_step(*name)).sum::<i64>()
            };
            let (one, other) = (element(1), element(-1));
            pair = (one != other).then(|| (one.min(other), one.max(other)));
            pair.is_some()
        })?;
        Ok(pair)
    }

    /// What one step of a shard iter adds to the flat index.
    fn elements_per_step(&self, iter: usize) -> i64 {
        self.shard()[iter + 1..].iter().map(|inner| inner.extent).product()
    }
}

impl Layout {
    /// True when different elements never share a place. A swizzle is a bijection and changes nothing.
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.is_injective(),
            Layout::Compose(compose) => compose.tile().is_injective(),
            Layout::Table(table) => Ok(table.is_injective()),
        }
    }

    /// Two elements that share a place, the lesser first, if any do. A swizzle is a bijection and changes nothing.
    pub fn collision(&self) -> Result<Option<(i64, i64)>, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.collision(),
            Layout::Compose(compose) => compose.tile().collision(),
            Layout::Table(table) => Ok(table.collision()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injective(text: &str) -> bool {
        text.parse::<TileLayout>().unwrap().is_injective().unwrap()
    }

    #[test]
    fn nested_strides_are_injective_however_large() {
        assert!(injective("S[(8192,8192):(8192,1)]"));
        assert!(injective("S[(8192,8192):(1,8192)]"));
    }

    #[test]
    fn strides_that_meet_are_not() {
        assert!(!injective("S[(4,4):(3,1)]"));
        assert!(injective("S[(4,3):(3,1)]"));
        assert!(injective("S[(2,2):(2,3)]"));
        assert!(!injective("S[(4,3):(2,3)]"));
    }

    #[test]
    fn strides_without_a_common_divisor_are_decided_at_any_size() {
        assert!(injective("S[(1048576,1048576):(1048577,1048576)]"));
        assert!(!injective("S[(1048577,1048578):(1048577,1048576)]"));
    }

    #[test]
    fn a_stride_of_zero_repeats_an_element() {
        assert!(!injective("S[(4,2):(0,1)]"));
    }

    #[test]
    fn replicas_may_run_into_other_elements() {
        assert!(injective("S[4:1] + R[2:4]"));
        assert!(!injective("S[4:1] + R[2:3]"));
        assert!(injective("S[4:1] + R[2:0]"));
    }

    #[test]
    fn axes_are_independent() {
        assert!(injective("S[(4,4):(1@tx,1@m)]"));
        assert!(!injective("S[(4,2,4):(1@tx,2@tx,1@m)]"));
    }

    /// The pair, which must be in order and truly share a place.
    fn collision(text: &str) -> Option<(i64, i64)> {
        let tile: TileLayout = text.parse().unwrap();
        let pair = tile.collision().unwrap();
        if let Some((one, other)) = pair {
            let (here, there) = (tile.apply(one).unwrap(), tile.apply(other).unwrap());
            assert!(one < other && here.iter().any(|place| there.contains(place)), "{text}: {one} and {other}");
        }
        pair
    }

    /// Whether any two elements share a place, by comparing all of them.
    fn two_share_a_place(text: &str) -> bool {
        let tile: TileLayout = text.parse().unwrap();
        let places: Vec<_> = (0..tile.size()).map(|flat| tile.apply(flat).unwrap()).collect();
        let shares = |at: usize| places[..at].iter().any(|other| other.iter().any(|place| places[at].contains(place)));
        (0..places.len()).any(shares)
    }

    #[test]
    fn a_collision_is_named_exactly_where_two_elements_share_a_place() {
        let texts = [
            "S[(4,4):(3,1)]",
            "S[(4,3):(3,1)]",
            "S[(4,3,2):(2,3,7)]",
            "S[(3,4,5):(-4,6,9)]",
            "S[(2,4,3):(5,0,1)]",
            "S[4:1] + R[2:3]",
            "S[4:1] + R[2:4]",
            "S[(3,4):(10,1)] + R[(2,3):(6,-4)]",
            "S[(4,2,4):(1@tx,2@tx,1@m)]",
            "S[(4,4,2,3):(1@tx,1@m,3,4@tx)]",
            "S[(2,3,2):(1@laneid,1@m,2)] + R[2:5@laneid] + 3@laneid",
        ];
        for text in texts {
            assert_eq!(collision(text).is_some(), two_share_a_place(text), "{text}");
        }
    }

    #[test]
    fn the_first_two_elements_of_a_stride_of_zero_collide() {
        assert_eq!(collision("S[(2,4,3):(3,0,1)]"), Some((0, 3)));
    }

    #[test]
    fn a_collision_is_found_however_large_the_tile() {
        let tile: TileLayout = "S[(1048577,1048578):(1048577,1048576)]".parse().unwrap();
        let (one, other) = tile.collision().unwrap().unwrap();
        assert_eq!((one < other, tile.apply(one)), (true, tile.apply(other)));
    }

    #[test]
    fn a_swizzle_collides_where_its_tile_does() {
        let swizzled: Layout = "swizzle(M=0,B=1,S=1) o S[(4,4):(3,1)]".parse().unwrap();
        assert_eq!(swizzled.collision(), Ok(collision("S[(4,4):(3,1)]")));
    }
}
