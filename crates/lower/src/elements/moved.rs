//! Accesses that neighbouring steps make together.

use std::ops::Range;

use tilewright_ir::Handle;
use tilewright_ir::thread::RegArray;
use tilewright_ir::tile::vectors::StaticAccess;

/// An access that several steps make together as vectors, through an array with one register per step.
#[derive(Clone)]
pub(super) struct VectorAccess {
    /// The access.
    pub(super) known: StaticAccess,
    /// Whether it is a store; otherwise it is a load.
    pub(super) writes: bool,
    pub(super) array: Handle<RegArray>,
    /// The steps that it covers.
    pub(super) steps: Range<usize>,
}
