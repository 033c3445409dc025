//! How many neighbours in the tile are neighbours in one place: the widest access.

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::question::linear::gcd;
use crate::tile::TileLayout;

impl TileLayout {
    /// The contiguous run on `axis`: the greatest `v` that divides the size such that the elements `v*k .. v*k + v`
    /// stand side by side on `axis`, at the same place on all other axes, from a multiple of `v` on, for every `k`.
    pub fn vector_width(&self, axis: &Axis) -> i64 {
        let canonical = self.canonicalize();
        let Some((last, outer)) = canonical.shard().split_last() else { return 1 };
        if last.stride != 1 || last.axis != *axis {
            return 1;
        }
        let others = outer.iter().chain(canonical.replica()).filter(|iter| iter.axis == *axis).map(|iter| iter.stride);
        others.chain([canonical.offset_on(axis)]).fold(last.extent, gcd)
    }
}

impl Layout {
    /// The contiguous run on `axis`; see [`TileLayout::vector_width`].
    pub fn vector_width(&self, axis: &Axis) -> Result<i64, LayoutError> {
        match self {
            Layout::Tile(tile) => Ok(tile.vector_width(axis)),
            Layout::Compose(_) | Layout::Table(_) => {
                self.check_enumerable()?;
                let mut width = 1;
                for candidate in (2..=self.size()).filter(|width| self.size() % width == 0) {
                    if self.runs_of(candidate, axis)? {
                        width = candidate;
                    }
                }
                Ok(width)
            }
        }
    }

    /// True when every aligned group of `width` elements is contiguous and aligned on `axis`.
    fn runs_of(&self, width: i64, axis: &Axis) -> Result<bool, LayoutError> {
        for flat in 0..self.size() {
            let mut start = self.apply(flat - flat % width)?;
            for place in &mut start {
                let position = place.entry(axis.clone()).or_insert(0);
                if *position % width != 0 {
                    return Ok(false);
                }
                *position += flat % width;
            }
            let mut here = self.apply(flat)?;
            for place in &mut here {
                place.entry(axis.clone()).or_insert(0);
            }
            if here != start {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{M, REG};

    fn width(text: &str) -> i64 {
        text.parse::<Layout>().unwrap().vector_width(&M).unwrap()
    }

    #[test]
    fn rows_are_runs() {
        assert_eq!(width("S[(8,12):(12,1)]"), 96);
        assert_eq!(width("S[(8,12):(16,1)]"), 4);
        assert_eq!(width("S[(8,12):(1,8)]"), 1);
    }

    #[test]
    fn an_offset_breaks_alignment() {
        assert_eq!(width("S[64:1] + 6"), 2);
    }

    #[test]
    fn a_swizzle_keeps_its_chunks_together() {
        assert_eq!(width("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]"), 8);
    }

    #[test]
    fn registers_of_one_thread_run_too() {
        let fragment: TileLayout = "S[(8,4,2):(4@laneid,1@laneid,1@reg)]".parse().unwrap();
        assert_eq!(fragment.vector_width(&REG), 2);
    }
}
