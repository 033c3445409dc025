//! Regrouping: iters split so that every dimension of a shape owns a run of them.

use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

/// A layout whose shard iters fall into one run per dimension of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// The same map with iters split where dimensions end.
    pub layout: TileLayout,
    /// Dimension `d` owns the iters `separators[d]..separators[d + 1]`.
    pub separators: Vec<usize>,
}

/// A layout whose shard iters fall into runs for several shapes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedMany {
    /// The same map with iters split where a dimension of any of the shapes ends.
    pub layout: TileLayout,
    /// Separators for each shape, as in [`Grouped`].
    pub separators: Vec<Vec<usize>>,
}

impl Grouped {
    /// The iters of one of the shape's dimensions, slowest first.
    pub fn dimension(&self, dimension: usize) -> &[Iter] {
        &self.layout.shard()[self.separators[dimension]..self.separators[dimension + 1]]
    }
}

impl TileLayout {
    /// Splits iters so that every dimension of `shape` owns a run of them; nothing is reordered. Iters of extent 1 are
    /// dropped, and a dimension of extent 1 owns a unit iter. Errors: a shape of a different size, or a
    /// dimension that ends inside an iter that cannot be split there.
    pub fn group(&self, shape: &[i64]) -> Result<Grouped, LayoutError> {
        let (iters, separators) = self.runs_for(self.moving_iters(), shape)?;
        let layout = TileLayout::new(iters, self.replica().to_vec(), self.offset().clone())?;
        Ok(Grouped { layout, separators })
    }

    /// These iters of this layout, cut so that every dimension of `shape` owns a run of them, and where the runs begin.
    pub(crate) fn runs_for(&self, iters: Vec<Iter>, shape: &[i64]) -> Result<(Vec<Iter>, Vec<usize>), LayoutError> {
        self.check_shape(shape)?;
        let mut refined = Refined { iters, size: self.size() };
        refined.cut_by(self, shape)?;
        let separators = refined.separators(shape);
        Ok((refined.iters, separators))
    }

    /// The coarsest split of the iters in which every dimension of every shape owns a run. Iters of extent 1 stay.
    pub fn group_many(&self, shapes: &[Vec<i64>]) -> Result<GroupedMany, LayoutError> {
        for shape in shapes {
            self.check_shape(shape)?;
        }
        let mut refined = Refined { iters: self.shard().to_vec(), size: self.size() };
        for shape in shapes {
            refined.cut_by(self, shape)?;
        }
        let separators = shapes.iter().map(|shape| refined.separators(shape)).collect();
        let layout = TileLayout::new(refined.iters, self.replica().to_vec(), self.offset().clone())?;
        Ok(GroupedMany { layout, separators })
    }
}

/// Iters in order, with the number of elements that they place (the product of their extents).
struct Refined {
    iters: Vec<Iter>,
    /// The product of all extents.
    size: i64,
}

impl Refined {
    /// Splits the iter that contains a boundary. `inner_size` is the number of elements after the boundary.
    fn cut(&mut self, inner_size: i64) -> Result<(), String> {
        let mut after = self.size;
        for at in 0..self.iters.len() {
            let before = after;
            after /= self.iters[at].extent;
            if inner_size == before || inner_size == after {
                return Ok(());
            }
            if inner_size < before && inner_size > after {
                return self.split(at, before, inner_size, after);
            }
        }
        Ok(())
    }

    fn split(&mut self, at: usize, before: i64, inner_size: i64, after: i64) -> Result<(), String> {
        let Iter { extent, stride, axis } = self.iters[at].clone();
        let place = format!("ends inside the iter {extent}:{stride}@{axis}");
        if inner_size % after != 0 {
            return Err(format!("{place}: {after} does not divide the {inner_size} elements after it"));
        }
        let inner = inner_size / after;
        if before % inner_size != 0 {
            return Err(format!("{place}: {inner} does not divide {extent}"));
        }
        self.iters[at] = Iter { extent: before / inner_size, stride: stride * inner, axis: axis.clone() };
        self.iters.insert(at + 1, Iter { extent: inner, stride, axis });
        Ok(())
    }

    fn cut_by(&mut self, layout: &TileLayout, shape: &[i64]) -> Result<(), LayoutError> {
        let mut inner_size = self.size;
        for (dimension, extent) in shape.iter().enumerate() {
            inner_size /= extent;
            self.cut(inner_size).map_err(|why| LayoutError::NotGroupable {
                layout: layout.to_string(),
                shape: shape.to_vec(),
                dimension,
                why,
            })?;
        }
        self.own_unit_dimensions(shape);
        Ok(())
    }

    /// Inserts a unit iter for each dimension of extent 1 that has none yet.
    fn own_unit_dimensions(&mut self, shape: &[i64]) {
        let mut at = 0;
        for &extent in shape {
            let mut rest = extent;
            if extent == 1 && self.iters.get(at).is_none_or(|iter| iter.extent != 1) {
                let next = self.iters.get(at).or(self.iters.last());
                let (stride, axis) = match next {
                    Some(iter) if at < self.iters.len() => (iter.stride * iter.extent, iter.axis.clone()),
                    Some(iter) => (1, iter.axis.clone()),
                    None => (1, crate::axis::M),
                };
                self.iters.insert(at, Iter { extent: 1, stride, axis });
            }
            if extent == 1 {
                at += 1;
                continue;
            }
            while rest > 1 {
                rest /= self.iters[at].extent;
                at += 1;
            }
        }
    }

    /// Where each dimension's run of iters begins and ends; trailing unit iters belong to the last dimension.
    fn separators(&self, shape: &[i64]) -> Vec<usize> {
        let mut separators = vec![0];
        let mut at = 0;
        for (dimension, &extent) in shape.iter().enumerate() {
            let mut rest = extent;
            if extent == 1 {
                at += 1;
            }
            while rest > 1 {
                rest /= self.iters[at].extent;
                at += 1;
            }
            if dimension + 1 == shape.len() {
                at = self.iters.len();
            }
            separators.push(at);
        }
        separators
    }
}

#[cfg(test)]
mod tests {
    use crate::tile::TileLayout;

    fn grouped(text: &str, shape: &[i64]) -> String {
        match text.parse::<TileLayout>().unwrap().group(shape) {
            Ok(g) => format!("{} {:?}", g.layout, g.separators),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn iters_split_where_dimensions_end() {
        assert_eq!(grouped("S[24:1]", &[4, 6]), "S[(4,6):(6@m,1@m)] [0, 1, 2]");
        assert_eq!(grouped("S[(4,6):(7,1)]", &[1, 24]), "S[(1,4,6):(28@m,7@m,1@m)] [0, 1, 3]");
        assert_eq!(grouped("S[(4,6):(7,1)]", &[24, 1]), "S[(4,6,1):(7@m,1@m,1@m)] [0, 2, 3]");
    }

    #[test]
    fn a_dimension_that_ends_inside_an_iter_is_an_error() {
        let head = "S[(2,3,4):(50@m,9@m,1@m)] does not group by";
        let said =
            format!("{head} (4,6): dimension 0 ends inside the iter 3:9@m: 4 does not divide the 6 elements after it");
        assert_eq!(grouped("S[(2,3,4):(50,9,1)]", &[4, 6]), said);
        let said = format!("{head} (3,8): dimension 0 ends inside the iter 3:9@m: 2 does not divide 3");
        assert_eq!(grouped("S[(2,3,4):(50,9,1)]", &[3, 8]), said);
    }
}
