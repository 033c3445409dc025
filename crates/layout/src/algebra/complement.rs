//! The complement: the positions that a layout leaves free.

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

impl TileLayout {
    /// The layout of what this one leaves free of the positions `0..bound` on `axis`.
    ///
    /// Every position of `0..bound` is `p + complement(y)` for exactly one position `p` of this layout on the axis and
    /// one `y`. It exists if the positions begin at 0, the strides on the axis nest and their span divides `bound`;
    /// iters on other axes are ignored. Errors: an offset on the axis, strides that do not nest, a bound that they do
    /// not divide.
    pub fn complement(&self, axis: &Axis, bound: i64) -> Result<TileLayout, LayoutError> {
        let refuse = |problem: String| LayoutError::Algebra { operation: "complement", problem };
        let canonical = self.canonicalize();
        if canonical.offset_on(axis) != 0 {
            let origin = canonical.offset_on(axis);
            return Err(refuse(format!("the positions on `{axis}` begin at {origin}, not at 0")));
        }
        let all = canonical.shard().iter().chain(canonical.replica());
        let mut iters: Vec<&Iter> =
            all.filter(|iter| iter.axis == *axis && iter.extent > 1 && iter.stride != 0).collect();
        iters.sort_by_key(|iter| iter.stride);
        let mut free = Vec::new();
        let mut filled = 1;
        for Iter { extent, stride, .. } in iters {
            if *stride < 1 || stride % filled != 0 {
                return Err(refuse(format!(
                    "the stride {stride} on `{axis}` is not a positive multiple of {filled}, the positions below it"
                )));
            }
            free.push(Iter { extent: stride / filled, stride: filled, axis: axis.clone() });
            filled = stride * extent;
        }
        if bound < 1 || bound % filled != 0 {
            return Err(refuse(format!("the bound {bound} on `{axis}` is not a multiple of the span {filled}")));
        }
        free.push(Iter { extent: bound / filled, stride: filled, axis: axis.clone() });
        free.reverse();
        free.retain(|iter| iter.extent > 1);
        TileLayout::new(free, Vec::new(), [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{LANEID, M};

    fn complement(text: &str, axis: &Axis, bound: i64) -> String {
        let layout: TileLayout = text.parse().unwrap();
        layout.complement(axis, bound).map_or_else(|e| e.to_string(), |c| c.to_string())
    }

    #[test]
    fn gaps_become_iters() {
        assert_eq!(complement("S[(2,4):(64,2)]", &M, 256), "S[(2,8,2):(128@m,8@m,1@m)]");
        assert_eq!(complement("S[(8,4):(4@laneid,1)]", &LANEID, 32), "S[4:1@laneid]");
        assert_eq!(complement("S[32:1@laneid]", &LANEID, 32), "S[():()]");
    }

    #[test]
    fn strides_that_do_not_nest_have_no_complement() {
        let said = "no complement: the stride 3 on `m` is not a positive multiple of 4, the positions below it";
        assert_eq!(complement("S[(2,2):(3,2)]", &M, 12), said);
        assert_eq!(complement("S[4:1]", &M, 6), "no complement: the bound 6 on `m` is not a multiple of the span 4");
    }
}
