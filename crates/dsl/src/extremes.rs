//! Ops that find where a row is greatest or least: three statements each, since the position of the first element that equals
//! the extreme is itself a minimum.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::tile::ReduceKind;

use crate::buffer::Buffer;
use crate::builder::KernelBuilder;
use crate::elements::variables;
use crate::expr::Expr;
use crate::nodes;
use crate::value::Value;

impl KernelBuilder<'_> {
    /// The greatest elements of the fragment `src` along a dimension, and their indices in that dimension: the first one, if
    /// several are equal. NaN is ignored; in a row of nothing but NaN, the result is NaN at index 0. `values` and `indices`
    /// are two fragments with the extents of the source without that dimension, or with 1 for it; indices are integers.
    #[track_caller]
    pub fn argmax(&mut self, values: Buffer, indices: Buffer, src: Buffer, dimension: usize) {
        self.check_indices("argmax", [values, indices], src, dimension);
        self.op("argmax", |k| k.extreme(ReduceKind::Max, [values, indices], src, dimension));
    }

    /// The least elements, like [`KernelBuilder::argmax`].
    #[track_caller]
    pub fn argmin(&mut self, values: Buffer, indices: Buffer, src: Buffer, dimension: usize) {
        self.check_indices("argmin", [values, indices], src, dimension);
        self.op("argmin", |k| k.extreme(ReduceKind::Min, [values, indices], src, dimension));
    }

    /// Reports indices that the dtype of their fragment does not hold, and one fragment for both results.
    #[track_caller]
    fn check_indices(&self, name: &str, [values, indices]: [Buffer; 2], src: Buffer, dimension: usize) {
        let (span, dtype) = (Span::here(), self.dtype(indices));
        let last = self.shape(src).get(dimension).map_or(0, |extent| extent - 1);
        if values == indices {
            let finding = Diagnostic::error("K0223", format!("`{name}` with one fragment for values and indices"));
            nodes::mistake(finding.label(span, "this op").help("declare another fragment for the indices"));
        } else if dtype.integers().is_none_or(|(_, most)| most < i128::from(last)) {
            let finding = Diagnostic::error("K0218", format!("`{name}` with indices up to {last} as {dtype}"));
            nodes::mistake(finding.label(span, "this op").help("declare their fragment as I32"));
        }
    }

    #[track_caller]
    fn extreme(&mut self, kind: ReduceKind, [values, indices]: [Buffer; 2], src: Buffer, dimension: usize) {
        self.reduce(kind, values, src, dimension);
        let (extents, row) = (self.shape(src), self.shape(values));
        let Some(extent) = extents.get(dimension).copied() else { return };
        let kept: Vec<usize> = (0..extents.len()).filter(|at| *at != dimension && extents[*at] != 1).collect();
        if !kept.iter().map(|at| extents[*at]).eq(row.iter().copied().filter(|extent| *extent != 1)) {
            // The reduction reports it.
            return;
        }
        let (dtype, is_float) = (self.dtype(indices), self.dtype(src).is_float());
        let places = self.fragment("places", dtype, extents.clone());
        let vars = variables(&extents, &|name| self.is_taken(name));
        self.parallel_over(vars.clone(), |k| {
            let at: Vec<Expr> = vars.iter().map(Expr::of_loop).collect();
            // The same index in the fragment of the results, where dimensions of extent 1 do not matter.
            let mut of_kept = kept.iter().map(|dimension| Value::from(at[*dimension]));
            let of = |extent: &i64| if *extent == 1 { None } else { of_kept.next() };
            let of_row: Vec<Value> = row.iter().map(of).map(|index| index.unwrap_or(Value::from(0))).collect();
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
