//! What is decided on values as the user wrote them, before layouts are inferred.

use crate::tile::contract::contract;
use crate::tile::edge_masks::with_edge_masks;
use crate::tile::held_operands::with_held_operands;
use crate::tile::kernel::Kernel;
use crate::tile::unused_names::without_unused_names;
use crate::tile::verify::VerifiedKernel;

/// The kernel without names that nothing uses, with fragments for what is reduced, with conditions where elements beyond an edge would count, with products
/// fused into sums, and with the tensors that are copied ahead.
pub fn prepare(kernel: VerifiedKernel) -> Kernel {
    let kernel = without_unused_names(kernel.into_kernel());
    let kernel = contract(with_edge_masks(with_held_operands(kernel)));
    Kernel { copied_ahead: kernel.copied_ahead(), ..kernel }
}
