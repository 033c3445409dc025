//! Direct sums: every element of one layout at every element of another.

use crate::algebra::canonical::fused;
use crate::algebra::replicas;
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

impl TileLayout {
    /// This layout (the right addend, of shape `right_shape`) at every element of `left` (of shape `left_shape`).
    ///
    /// In the interleaved shape `(l0, r0, l1, r1, ..)`, `sum(x0, y0, x1, y1, ..) = left(x) + self(y)`; nothing is
    /// scaled. Errors: shapes of different rank, or that do not group.
    pub fn direct_sum(
        &self,
        right_shape: &[i64],
        left: &TileLayout,
        left_shape: &[i64],
    ) -> Result<TileLayout, LayoutError> {
        let shard = interleave(&left.dimensions(left_shape)?, &self.dimensions(right_shape)?)?;
        with_both(shard, left, self)
    }

    /// The two layouts one after the other: `concatenate(b)(|b|*x + y) = self(x) + b(y)`.
    pub fn concatenate(&self, inner: &TileLayout) -> Result<TileLayout, LayoutError> {
        inner.direct_sum(&[inner.size()], self, &[self.size()])
    }

    /// The left addend whose [`TileLayout::direct_sum`] with this layout (shape `right_shape`) is `sum`, or `None` if
    /// there is none. Errors: `interleaved_shape` is not twice the rank, or `sum` does not group by it.
    pub fn is_direct_sum_right(
        &self,
        right_shape: &[i64],
        sum: &TileLayout,
        interleaved_shape: &[i64],
    ) -> Result<Option<TileLayout>, LayoutError> {
        let parts = Interleaved::new(sum, interleaved_shape)?;
        parts.other_addend(self, right_shape, Addend::Inner)
    }

    /// The right addend whose [`TileLayout::direct_sum`] with `self` (the left, shape `left_shape`) is `sum`, or
    /// `None` if there is none. Errors as for [`TileLayout::is_direct_sum_right`].
    pub fn is_direct_sum_left(
        &self,
        left_shape: &[i64],
        sum: &TileLayout,
        interleaved_shape: &[i64],
    ) -> Result<Option<TileLayout>, LayoutError> {
        let parts = Interleaved::new(sum, interleaved_shape)?;
        parts.other_addend(self, left_shape, Addend::Outer)
    }

    /// The iters of each dimension of `shape`, of the canonical form.
    pub(crate) fn dimensions(&self, shape: &[i64]) -> Result<Vec<Vec<Iter>>, LayoutError> {
        let (iters, separators) = self.runs_for(fused(self.shard()), shape)?;
        Ok(separators.windows(2).map(|run| iters[run[0]..run[1]].to_vec()).collect())
    }
}

/// Which of two interleaved layouts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addend {
    /// The slower one: left addend, outer tile.
    Outer,
    /// The faster one: right addend, inner tile.
    Inner,
}

/// A layout seen as two, interleaved dimension by dimension.
pub(crate) struct Interleaved<'a> {
    /// The layout itself.
    whole: &'a TileLayout,
    /// The iters of each slower dimension.
    pub(crate) outer: Vec<Vec<Iter>>,
    /// The iters of each faster dimension.
    pub(crate) inner: Vec<Vec<Iter>>,
}

impl<'a> Interleaved<'a> {
    pub(crate) fn new(whole: &'a TileLayout, shape: &[i64]) -> Result<Interleaved<'a>, LayoutError> {
        if !shape.len().is_multiple_of(2) {
            return Err(LayoutError::Rank { given: shape.len(), needed: shape.len() + 1 });
        }
        let mut outer = Vec::new();
        let mut inner = Vec::new();
        for (at, dimension) in whole.dimensions(shape)?.into_iter().enumerate() {
            if at % 2 == 0 { outer.push(dimension) } else { inner.push(dimension) }
        }
        Ok(Interleaved { whole, outer, inner })
    }

    /// The addend on the other side of `known`, or `None` if `known` is not the addend on `side`.
    fn other_addend(&self, known: &TileLayout, shape: &[i64], side: Addend) -> Result<Option<TileLayout>, LayoutError> {
        let (ours, others) = match side {
            Addend::Outer => (&self.outer, &self.inner),
            Addend::Inner => (&self.inner, &self.outer),
        };
        if shape.len() != ours.len() {
            return Err(LayoutError::Rank { given: shape.len(), needed: ours.len() });
        }
        if !same_dimensions(ours, &known.dimensions(shape)?)? {
            return Ok(None);
        }
        self.without(known, others.concat())
    }

    /// `shard` with what remains of replicas and offsets when those of `known` are taken away.
    pub(crate) fn without(&self, known: &TileLayout, shard: Vec<Iter>) -> Result<Option<TileLayout>, LayoutError> {
        let Some(replica) = replicas::difference(self.whole.replica(), known.replica())? else { return Ok(None) };
        let (_, whole_shift) = replicas::normal_form(self.whole.replica());
        let (_, known_shift) = replicas::normal_form(known.replica());
        let negated = |(axis, value): (&crate::Axis, &i64)| (axis.clone(), -value);
        let offset = self.whole.offset().clone().into_iter().chain(whole_shift);
        let offset = offset.chain(known.offset().iter().map(negated)).chain(known_shift.iter().map(negated));
        TileLayout::new(shard, replica, offset).map(Some)
    }
}

/// True when the iters of every dimension walk the same places, however they are written.
pub(crate) fn same_dimensions(a: &[Vec<Iter>], b: &[Vec<Iter>]) -> Result<bool, LayoutError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        let walk = |iters: &Vec<Iter>| TileLayout::new(iters.clone(), Vec::new(), []).map(|l| l.canonicalize());
        if walk(a)? != walk(b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn interleave(outer: &[Vec<Iter>], inner: &[Vec<Iter>]) -> Result<Vec<Iter>, LayoutError> {
    if outer.len() != inner.len() {
        return Err(LayoutError::Rank { given: outer.len(), needed: inner.len() });
    }
    Ok(outer.iter().zip(inner).flat_map(|(outer, inner)| outer.iter().chain(inner).cloned()).collect())
}

/// `shard` with the replicas and offsets of both.
pub(crate) fn with_both(shard: Vec<Iter>, a: &TileLayout, b: &TileLayout) -> Result<TileLayout, LayoutError> {
    let replica = a.replica().iter().chain(b.replica()).cloned().collect();
    let offset = a.offset().clone().into_iter().chain(b.offset().clone());
    Ok(TileLayout::new(shard, replica, offset)?.canonicalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> TileLayout {
        text.parse().unwrap()
    }

    #[test]
    fn a_sum_gives_back_both_addends() {
        let (left, right) = (layout("S[(4,2):(32,16)] + R[2:512]"), layout("S[(2,2,3,2):(12,6,2,1)] + R[3:100] + 7"));
        let sum = right.direct_sum(&[4, 6], &left, &[4, 2]).unwrap();
        let interleaved = [4, 4, 2, 6];
        let found = |other: Option<TileLayout>| other.map(|layout| layout.canonicalize());
        assert_eq!(found(right.is_direct_sum_right(&[4, 6], &sum, &interleaved).unwrap()), Some(left.canonicalize()));
        assert_eq!(found(left.is_direct_sum_left(&[4, 2], &sum, &interleaved).unwrap()), Some(right.canonicalize()));
    }

    #[test]
    fn what_is_not_an_addend_is_none() {
        let sum = layout("S[(4,8):(8,1)]");
        assert_eq!(layout("S[8:2]").is_direct_sum_right(&[8], &sum, &[4, 8]), Ok(None));
        assert_eq!(layout("S[8:1] + R[2:3]").is_direct_sum_right(&[8], &sum, &[4, 8]), Ok(None));
    }

    #[test]
    fn a_concatenation_adds_the_places() {
        assert_eq!(layout("S[3:100]").concatenate(&layout("S[2:1@tx]")).unwrap().to_string(), "S[(3,2):(100@m,1@tx)]");
    }

    #[test]
    fn ranks_must_agree() {
        let one = layout("S[4:1]");
        assert_eq!(one.direct_sum(&[4], &layout("S[4:4]"), &[2, 2]).unwrap_err().code(), "L0104");
        assert_eq!(one.is_direct_sum_right(&[4], &layout("S[8:1]"), &[8]).unwrap_err().code(), "L0104");
    }
}
