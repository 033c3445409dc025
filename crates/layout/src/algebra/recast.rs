//! Recasts: the same bytes as elements of a different width.

use crate::axis::{Axis, M};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

impl TileLayout {
    /// The layout of the same bytes in elements `count` times narrower: every element becomes `count` of them.
    ///
    /// On axes that count elements, `unpack(n)(n*x + k) = n * self(x) + k` for every `k` in `0..n`; other axes do not
    /// change. The new iter is on the axis of the last shard iter that counts elements, or on `m`.
    pub fn unpack(&self, count: i64) -> Result<TileLayout, LayoutError> {
        let mut axes = self.shard().iter().rev().map(|iter| &iter.axis);
        let axis = axes.find(|axis| axis.counts_elements()).cloned().unwrap_or(M);
        let wider = self.scaled(|value, _| value.checked_mul(count))?;
        let mut shard = wider.shard().to_vec();
        shard.push(Iter { extent: count, stride: 1, axis });
        TileLayout::new(shard, wider.replica().to_vec(), wider.offset().clone())
    }

    /// The layout of the same bytes in elements `count` times wider: `count` neighbours become one element.
    ///
    /// On axes that count elements, `n * pack(n)(x) = self(n*x)`; other axes do not change. Errors: the last
    /// iter is not `count` neighbours on an axis that counts elements, or a stride, replica or offset on such an axis
    /// is not a multiple of `count`.
    pub fn pack(&self, count: i64) -> Result<TileLayout, LayoutError> {
        if count == 1 {
            return Ok(self.clone());
        }
        // As written where that works; the normal form may have longer runs.
        self.pack_as_written(count).or_else(|_| self.canonicalize().pack_as_written(count))
    }

    fn pack_as_written(&self, count: i64) -> Result<TileLayout, LayoutError> {
        let refuse = |problem: String| Err(LayoutError::Recast { count, problem });
        let Some((last, outer)) = self.shard().split_last() else {
            return refuse("the layout has no iter".to_string());
        };
        if !last.axis.counts_elements() || last.stride != 1 {
            return refuse(format!("the last iter has stride {}@{}, not that of one element", last.stride, last.axis));
        }
        if count < 1 || last.extent % count != 0 {
            return refuse(format!("the last iter has extent {}, which is not a multiple of {count}", last.extent));
        }
        let rest = TileLayout::new(outer.to_vec(), self.replica().to_vec(), self.offset().clone())?;
        let narrow = |value: i64, _: &Axis| (value % count == 0).then_some(value / count);
        let Ok(narrower) = rest.scaled(narrow) else {
            return refuse(format!("a stride, replica or offset that counts elements is not a multiple of {count}"));
        };
        let mut shard = narrower.shard().to_vec();
        shard.push(Iter { extent: last.extent / count, ..last.clone() });
        TileLayout::new(shard, narrower.replica().to_vec(), narrower.offset().clone())
    }

    /// Strides, replicas and offsets on axes that count elements, changed by `scale`.
    fn scaled(&self, scale: impl Fn(i64, &Axis) -> Option<i64>) -> Result<TileLayout, LayoutError> {
        let value = |value: i64, axis: &Axis| {
            if axis.counts_elements() { scale(value, axis).ok_or(LayoutError::Overflow) } else { Ok(value) }
        };
        let iters = |list: &[Iter]| -> Result<Vec<Iter>, LayoutError> {
            list.iter().map(|iter| Ok(Iter { stride: value(iter.stride, &iter.axis)?, ..iter.clone() })).collect()
        };
        let offset = self.offset().iter().map(|(axis, v)| Ok((axis.clone(), value(*v, axis)?)));
        let offset: Vec<(Axis, i64)> = offset.collect::<Result<_, LayoutError>>()?;
        TileLayout::new(iters(self.shard())?, iters(self.replica())?, offset)
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn only_axes_that_count_elements_scale() {
        let fragment = layout("S[(8,4,2):(4@laneid,1@laneid,1@reg)] + R[2:2@reg] + 3@laneid + 4@reg");
        let text = "S[(8,4,2,2):(4@laneid,1@laneid,2@reg,1@reg)] + R[2:4@reg] + 3@laneid + 8@reg";
        assert_eq!(fragment.unpack(2).unwrap().to_string(), text);
    }

    #[test]
    fn packing_undoes_unpacking() {
        let tile = layout("S[(8,64):(64,1)] + R[2:512] + 8");
        assert_eq!(tile.unpack(4).unwrap().pack(4).unwrap().canonicalize(), tile.canonicalize());
    }

    #[test]
    fn what_does_not_divide_is_an_error() {
        for text in ["S[(4,3):(4,1)]", "S[8:1] + 3", "S[8:4@laneid]", "S[8:2]", "S[():()]"] {
            assert_eq!(layout(text).pack(2).unwrap_err().code(), "L0117", "{text}");
        }
    }
}
