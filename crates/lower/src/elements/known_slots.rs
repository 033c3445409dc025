//! Slots of fragments that are looked up once.

use std::sync::Arc;

use tilewright_ir::tile::vectors::Mask;

use crate::fragment_registers::HeldSlots;

/// The slots of the last access to a fragment: statements of one step often access the same elements.
pub(super) struct KnownSlots {
    /// The number of each iteration, and what is added to it.
    pub(super) own: Arc<Vec<i64>>,
    pub(super) other: i64,
    pub(super) step: usize,
    pub(super) mask: Mask,
    pub(super) slots: Arc<HeldSlots>,
}
