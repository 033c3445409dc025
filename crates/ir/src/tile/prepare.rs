//! What is decided on values as the user wrote them, before layouts are inferred.

use crate::tile::contract::contract;
use crate::tile::edge_masks::with_edge_masks;
use crate::tile::held_operands::with_held_operands;
use crate::tile::kernel::Kernel;
use crate::tile::unused_names::without_unused_names;
use crate::tile::verify::VerifiedKernel;

/// The kernel without names that nothing uses, with fragments for what is reduced, with products fused into sums, with
/// conditions where elements beyond an edge would count, and with the tensors that are copied ahead.
pub fn prepare(kernel: VerifiedKernel) -> Kernel {
    let kernel = without_unused_names(kernel.into_kernel());
    // First what is fused: a condition at an edge does not change how a sum inside of it is rounded.
    let kernel = with_edge_masks(contract(with_held_operands(kernel)));
    Kernel { copied_ahead: kernel.copied_ahead(), ..kernel }
}
