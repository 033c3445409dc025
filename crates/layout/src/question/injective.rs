//! Do two different elements ever share a place?

use std::collections::BTreeSet;

use crate::algebra::normal_form;
use crate::axis::Axis;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::question::{Equation, Unknown};
use crate::tile::{Iter, TileLayout};

impl TileLayout {
    /// True when different elements never share a place, replicas included.
    ///
    /// Two elements share a place exactly if on every axis some difference of shard digits, with some difference of
    /// replica digits, adds to zero, and a shard digit differs somewhere. All other digits may agree, so one axis on
    /// which this happens decides.
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        let idle = self.shard().iter().any(|iter| iter.stride == 0 && iter.extent > 1);
        if idle {
            return Ok(false);
        }
        let mut budget = crate::ENUMERATION_LIMIT;
        let copies = normal_form(self.replica()).0;
        let axes: BTreeSet<&Axis> = self.shard().iter().map(|iter| &iter.axis).collect();
        for axis in axes {
            if self.collides_on(axis, &copies, &mut budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn collides_on(&self, axis: &Axis, copies: &[Iter], budget: &mut i64) -> Result<bool, LayoutError> {
        let shard = self.shard().iter().map(|iter| (iter, true));
        let all = shard.chain(copies.iter().map(|iter| (iter, false)));
        let here: Vec<_> = all.filter(|(iter, _)| iter.axis == *axis && iter.extent > 1).collect();
        let difference = |(name, (iter, _)): (usize, &(&Iter, bool))| Unknown {
            stride: iter.stride,
            low: 1 - iter.extent,
            high: iter.extent - 1,
            name,
        };
        let equation = Equation::new(here.iter().enumerate().map(difference).collect());
        equation.solve(0, budget, &mut |digits| digits.iter().any(|(name, digit)| here[*name].1 && *digit != 0))
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
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

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
}
