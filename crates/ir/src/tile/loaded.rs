//! Integers that every CTA computes from tensors before all else, to use them in indices: where a sequence begins, or how many rows
//! belong to an expert.

use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;

use crate::hw_index::Dim;
use crate::tile::buffer::Buffer;
use crate::tile::kernel::Kernel;
use crate::tile::value::{ElementOp, Narrowing, Value};

/// An integer that a CTA computes from elements of inputs before all else. It is the same for all of its threads.
#[derive(Clone, Debug)]
pub struct LoadedIndex {
    /// Its variable, from 0 up.
    pub var: Var,
    /// What it is made of: elements of inputs, sizes, block indices, and integers loaded before.
    pub of: Value,
    /// No value is greater than this expression of sizes and of integers loaded before: a greater one counts as it, and a negative one
    /// as 0.
    pub most: Expr,
    /// Where it was written.
    pub span: Span,
}

impl LoadedIndex {
    /// Its value in a kernel, from 0 to the greatest, which a narrow type would not hold.
    pub fn value(&self, kernel: &Kernel) -> Value {
        let pair = |op: ElementOp, a: Value, b: Value| Value::Op(op, [a, b].into());
        let cast = |of: Value| Value::Cast(DType::I32, Narrowing::Wraps, Arc::new(of));
        let dtype = self.of.dtype(&kernel.buffers, &|name| kernel.scalar_dtype(name));
        let is_narrow = dtype.is_some_and(|dtype| dtype.bytes() < DType::I32.bytes());
        let of = if is_narrow { cast(self.of.clone()) } else { self.of.clone() };
        let at_least = pair(ElementOp::Max, of, Value::Index(Expr::constant(0)));
        let within = pair(ElementOp::Min, at_least, Value::Index(self.most.clone()));
        cast(within)
    }

    /// Whether its value depends on one of these variables.
    pub(crate) fn depends_on(&self, is_one: &dyn Fn(&Var) -> bool) -> bool {
        let mut found = false;
        let mut see = |expr: &Expr| expr.for_each_var(&mut |var| found |= is_one(var));
        see(&self.most);
        self.of.for_each_expr(&mut see);
        found
    }
}

impl Kernel {
    /// The variables that have a value everywhere in the kernel, the same for all threads of a CTA: block indices, sizes, and loaded
    /// integers.
    pub fn vars_of_ctas(&self) -> Vec<Var> {
        let blocks = Dim::ALL.into_iter().map(|dimension| self.block(dimension));
        let sizes = self.sizes.iter().map(|size| size.var.clone());
        blocks.chain(sizes).chain(self.loaded.iter().map(|loaded| loaded.var.clone())).collect()
    }

    /// Whether the shape or the strides of a buffer depend on a variable.
    pub fn ends_at(&self, buffer: &Buffer, var: &Var) -> bool {
        let exprs = buffer.dynamic_shape.iter().flat_map(|shape| shape.extents.iter().chain(&shape.strides));
        exprs.into_iter().any(|expr| expr.mentions(var))
    }

    /// A loaded integer on which the shape of a buffer depends, if there is one: the end of a truncated view.
    pub fn loaded_end(&self, buffer: &Buffer) -> Option<&LoadedIndex> {
        self.loaded.iter().find(|loaded| self.ends_at(buffer, &loaded.var))
    }
}
