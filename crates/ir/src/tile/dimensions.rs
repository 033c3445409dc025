//! Sets of dimensions of a tile.

use std::fmt;

/// Dimensions of a tile, counted from 0, including those of extent 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dimensions(u64);

/// Stands for every dimension from here on; no tile has so many.
const LAST: usize = 63;

impl Dimensions {
    /// The same and one more.
    pub fn with(self, dimension: usize) -> Dimensions {
        Dimensions(self.0 | 1 << dimension.min(LAST))
    }

    /// Whether a dimension is one of them.
    pub fn contains(self, dimension: usize) -> bool {
        self.0 >> dimension.min(LAST) & 1 == 1
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..=LAST).filter(move |dimension| self.contains(*dimension))
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The extents of a tile without these dimensions.
    pub fn left(self, extents: &[i64]) -> Vec<i64> {
        let others = extents.iter().enumerate().filter(|(dimension, _)| !self.contains(*dimension));
        others.map(|(_, extent)| *extent).collect()
    }

    /// For an element of a tile, in row-major order, the element of the tile [without](Dimensions::left) these dimensions that
    /// has the same index in the others.
    pub fn row_of(self, extents: &[i64], element: usize) -> usize {
        let mut rest = element as i64;
        let (mut row, mut stride) = (0, 1);
        for (dimension, extent) in extents.iter().enumerate().rev() {
            if !self.contains(dimension) {
                row += rest % extent * stride;
                stride *= extent;
            }
            rest /= extent;
        }
        row as usize
    }
}

// Only one type of integers, so that the type of a literal can be inferred.
impl From<usize> for Dimensions {
    fn from(dimension: usize) -> Dimensions {
        Dimensions(0).with(dimension)
    }
}

impl<const N: usize> From<[usize; N]> for Dimensions {
    fn from(dimensions: [usize; N]) -> Dimensions {
        dimensions.into_iter().fold(Dimensions(0), Dimensions::with)
    }
}

/// `dimension 1`, `dimensions 0 and 2`.
impl fmt::Display for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.iter().map(|dimension| dimension.to_string()).collect();
        match &all[..] {
            [] => f.write_str("no dimension"),
            [one] => write!(f, "dimension {one}"),
            [first @ .., last] => write!(f, "dimensions {} and {last}", first.join(", ")),
        }
    }
}

impl fmt::Debug for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_belongs_to_the_row_with_its_other_indices() {
        let extents = [2, 3, 4];
        let rows = |of: Dimensions| (0..24).map(|element| of.row_of(&extents, element)).collect::<Vec<_>>();
        assert_eq!(rows(Dimensions::from([0, 1, 2])), [0; 24]);
        assert_eq!(rows(Dimensions::from(2)), (0..24).map(|element| element / 4).collect::<Vec<_>>());
        assert_eq!(rows(Dimensions::from([0, 2])), (0..24).map(|element| element / 4 % 3).collect::<Vec<_>>());
        assert_eq!(rows(Dimensions::from([0, 1])), (0..24).map(|element| element % 4).collect::<Vec<_>>());
        assert_eq!(Dimensions::from([0, 2]).left(&extents), [3]);
    }

    #[test]
    fn a_set_of_dimensions_is_printed_in_order() {
        let text = |of: Dimensions| of.to_string();
        assert_eq!(text(Dimensions::from(1)), "dimension 1");
        assert_eq!(text(Dimensions::from([2, 0, 2])), "dimensions 0 and 2");
        assert_eq!(text(Dimensions::from([3, 0, 1])), "dimensions 0, 1 and 3");
        assert_eq!(text(Dimensions::from([])), "no dimension");
        assert!(Dimensions::from(usize::MAX).contains(1000));
    }
}
