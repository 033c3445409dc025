//! What is decided on values as the user wrote them, before layouts are inferred.

use crate::tile::contract::contract;
use crate::tile::kernel::Kernel;
use crate::tile::unused_names::without_unused_names;
use crate::tile::verify::VerifiedKernel;

/// The kernel without names that nothing uses, and with products fused into sums.
pub fn prepare(kernel: VerifiedKernel) -> Kernel {
    contract(without_unused_names(kernel.into_kernel()))
}
