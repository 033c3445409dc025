//! Positions in a nest.

use tilewright_ir::tile::vectors::Mask;

/// A position in a nest: the step, and the threads for which all enclosing conditions hold.
pub(super) struct ActiveStep {
    pub(super) step: usize,
    pub(super) mask: Mask,
}
