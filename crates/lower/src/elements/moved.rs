//! Accesses that neighbouring steps make together.

use tilewright_ir::Handle;
use tilewright_ir::thread::RegArray;
use tilewright_ir::tile::vectors::{StaticAccess, Vectors};

/// An access that several steps make together as vectors, through an array with one register per step.
#[derive(Clone)]
pub(super) struct VectorAccess {
    /// The access.
    pub(super) known: StaticAccess,
    /// Whether it is a store; otherwise it is a load.
    pub(super) writes: bool,
    pub(super) array: Handle<RegArray>,
    /// The steps that it covers, and the elements of a vector. The registers are in the order of the steps.
    pub(super) vectors: Vectors,
}
