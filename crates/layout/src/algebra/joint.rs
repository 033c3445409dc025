//! Cuts several layouts of one tile into iters of the same extents.

use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

/// Cuts all layouts so that iter `i` of each has the same extent: iter by iter, the same digit of the element index.
///
/// Iters of extent 1 are dropped. Errors: layouts of different sizes, or iters whose boundaries do not nest.
pub fn refine_together(layouts: &[&TileLayout]) -> Result<Vec<TileLayout>, LayoutError> {
    let Some(first) = layouts.first() else { return Ok(Vec::new()) };
    let size = first.size();
    let mut boundaries: Vec<i64> = vec![size];
    for layout in layouts {
        layout.check_shape(&[size])?;
        let mut inner_size = size;
        boundaries.extend(layout.shard().iter().map(|iter| {
            inner_size /= iter.extent;
            inner_size
        }));
    }
    boundaries.sort_unstable_by(|a, b| b.cmp(a));
    boundaries.dedup();
    let mut extents = Vec::with_capacity(boundaries.len());
    for (dimension, pair) in boundaries.windows(2).enumerate() {
        if pair[0] % pair[1] != 0 {
            let why = format!("ends where an iter of another layout ends: {} does not divide {}", pair[1], pair[0]);
            let (layout, shape) = (first.to_string(), vec![size / pair[1], pair[1]]);
            return Err(LayoutError::NotGroupable { layout, shape, dimension: dimension.min(1), why });
        }
        extents.push(pair[0] / pair[1]);
    }
    layouts.iter().map(|layout| layout.group(&extents).map(|g| g.layout)).collect()
}

impl TileLayout {
    /// The shard iters of more than one position.
    pub(crate) fn moving_iters(&self) -> Vec<Iter> {
        self.shard().iter().filter(|iter| iter.extent > 1).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refined(a: &str, b: &str) -> String {
        let (a, b): (TileLayout, TileLayout) = (a.parse().unwrap(), b.parse().unwrap());
        match refine_together(&[&a, &b]) {
            Ok(both) => format!("{} | {}", both[0], both[1]),
            Err(e) => e.code().to_string(),
        }
    }

    #[test]
    fn both_get_the_same_extents() {
        assert_eq!(refined("S[128:1]", "S[(1,4,32):(9,1,4)]"), "S[(4,32):(32@m,1@m)] | S[(4,32):(1@m,4@m)]");
    }

    #[test]
    fn boundaries_that_do_not_nest_are_an_error() {
        assert_eq!(refined("S[(3,4):(4,1)]", "S[(4,3):(3,1)]"), "L0108");
    }

    #[test]
    fn one_element_is_no_iter() {
        assert_eq!(refined("S[(1,1):(4,1)]", "S[1:1]"), "S[():()] | S[():()]");
    }
}
