//! Accesses that neighbouring steps make together.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs};
use tilewright_ir::tile::vectors::{StaticAccess, Vectors};
use tilewright_layout::DType;

use crate::builder::regs;
use crate::reorder::{Evenly, word_of};

/// An access that several steps make together as vectors, through an array with one register per element.
#[derive(Clone)]
pub(super) struct VectorAccess {
    /// The access. Its elements count as steps: those of the first step, then those of the next one.
    pub(super) known: StaticAccess,
    /// Whether it is a store; otherwise it is a load.
    pub(super) writes: bool,
    pub(super) array: Handle<RegArray>,
    /// The steps that it covers, and the elements of a vector. The registers are in the order of the steps.
    pub(super) vectors: Vectors,
    /// Instead, for each vector, the words of the array that are its registers.
    pub(super) words: Option<Vec<Evenly>>,
}

impl VectorAccess {
    /// The step of an element and its index.
    pub(super) fn element(&self, step: usize) -> (usize, &[Expr]) {
        let elements = &self.known.elements;
        (step / elements.len(), &elements[step % elements.len()])
    }

    /// The registers of a vector, by its number.
    pub(super) fn regs(&self, dtype: DType, vector: usize) -> Regs {
        let width = self.vectors.width;
        match &self.words {
            Some(words) => words[vector].regs(self.array, 0, width as i64 / word_of(dtype).1),
            None => regs(self.array, (vector * width) as i64, width as i64),
        }
    }
}
