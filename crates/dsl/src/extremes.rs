//! Ops that find where a row is greatest or least: three statements each, since the position of the first element that equals
//! the extreme is itself a minimum.

use tilewright_ir::tile::ReduceKind;

use crate::buffer::Buffer;
use crate::builder::KernelBuilder;
use crate::elements::variables;
use crate::expr::Expr;
use crate::value::Value;

impl KernelBuilder<'_> {
    /// The greatest elements of the fragment `src` along a dimension, and their indices in that dimension: the first one, if
    /// several are equal. NaN is ignored; in a row of nothing but NaN, the result is NaN at index 0. `values` and `indices`
    /// are fragments with the extents of the source without that dimension, or with 1 for it.
    #[track_caller]
    pub fn argmax(&mut self, values: Buffer, indices: Buffer, src: Buffer, dimension: usize) {
        self.op("argmax", |k| k.extreme(ReduceKind::Max, [values, indices], src, dimension));
    }

    /// The least elements, like [`KernelBuilder::argmax`].
    #[track_caller]
    pub fn argmin(&mut self, values: Buffer, indices: Buffer, src: Buffer, dimension: usize) {
        self.op("argmin", |k| k.extreme(ReduceKind::Min, [values, indices], src, dimension));
    }

    #[track_caller]
    fn extreme(&mut self, kind: ReduceKind, [values, indices]: [Buffer; 2], src: Buffer, dimension: usize) {
        self.reduce(kind, values, src, dimension);
        let (extents, row) = (self.shape(src), self.shape(values));
        let Some(extent) = extents.get(dimension).copied() else { return };
        let mut kept = extents.clone();
        kept.remove(dimension);
        let mut as_one = extents.clone();
        as_one[dimension] = 1;
        if row != as_one && row != kept && !(row == [1] && kept.is_empty()) {
            // The reduction reports it.
            return;
        }
        let (dtype, is_float) = (self.dtype(indices), self.dtype(src).is_float());
        let places = self.fragment("places", dtype, extents.clone());
        let vars = variables(&extents, &|name| self.is_taken(name));
        self.parallel_over(vars.clone(), |k| {
            let at: Vec<Expr> = vars.iter().map(Expr::of_loop).collect();
            // The same index in the fragment of the results.
            let mut of_row: Vec<Value> = at.iter().map(Value::from).collect();
            if row == as_one {
                of_row[dimension] = Value::from(0);
            } else {
                of_row.remove(dimension);
            }
            let index: Vec<Value> = at.iter().map(Value::from).collect();
            let extreme = values.at(of_row);
            let is_equal = src.at(index.clone()).eq(extreme);
            let is_place = if is_float { is_equal | extreme.ne(extreme) } else { is_equal };
            // An element that is not equal gets an index that is never less than that of one that is.
            k.store(places, index, is_place.select(at[dimension], extent - 1));
        });
        self.reduce(ReduceKind::Min, indices, places, dimension);
    }
}
