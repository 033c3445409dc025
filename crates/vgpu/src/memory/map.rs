//! The address map. Each space except global has a window in the generic address space (PTX ISA, section 5.1).

use crate::isa::Space;

/// Address of the first byte of a CTA's shared memory in the shared space: a multiple of 1024, and not zero, as on
/// devices that reserve the first KiB.
pub(crate) const SHARED_START: u64 = 1024;
/// Where the rank of a CTA in its cluster is in the addresses of its shared memory. The addresses of a CTA have its own
/// rank, as on devices.
pub(crate) const RANK_BIT: u32 = 24;
/// Bits of a rank.
pub(crate) const RANK_BITS: u32 = 8;
const WINDOW_BYTES: u64 = 1 << 32;
const SHARED_WINDOW: u64 = 1 << 40;
const LOCAL_WINDOW: u64 = 2 << 40;
const PARAM_WINDOW: u64 = 3 << 40;
const CONST_WINDOW: u64 = 4 << 40;
/// Address of the first buffer.
pub(crate) const GLOBAL_START: u64 = 0x7000_0000_0000;
/// Where the module's own global variables start, above every buffer.
pub(crate) const MODULE_START: u64 = 0x7f00_0000_0000;
/// Gap between adjacent buffers in global memory, in bytes: an index that is wrong by less stays outside of every buffer.
pub(crate) const GUARD: u64 = 1 << 30;
/// Alignment of buffers and variables in global memory, in bytes.
pub(crate) const BASE_ALIGN: u64 = 256;

/// Address of the first byte of the shared memory of the CTA of a rank.
pub(crate) fn shared_start(rank: u32) -> u64 {
    (u64::from(rank) << RANK_BIT) + SHARED_START
}

/// The rank in an address of shared memory, and the address without it.
pub(crate) fn split_rank(address: u64) -> (u64, u64) {
    (address >> RANK_BIT, address & ((1 << RANK_BIT) - 1))
}

/// The same address in the shared memory of the CTA of a rank.
pub(crate) fn with_rank(address: u64, rank: u32) -> u64 {
    split_rank(address).1 | u64::from(rank) << RANK_BIT
}

/// The start of the window of a space, which `cvta` adds.
pub(crate) fn window(space: Space) -> u64 {
    match space {
        Space::Generic | Space::Global => 0,
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        Space::Const => CONST_WINDOW,
    }
}

/// The space of a generic address, and the address in it.
pub(crate) fn resolve(address: u64) -> (Space, u64) {
    for space in [Space::Shared, Space::Local, Space::Param, Space::Const] {
        let inside = address.wrapping_sub(window(space));
        if inside < WINDOW_BYTES {
            return (space, inside);
        }
    }
    (Space::Global, address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_resolve_to_their_spaces() {
        for space in [Space::Shared, Space::Local, Space::Param, Space::Const, Space::Global] {
            let address = if space == Space::Global { GLOBAL_START } else { 48 };
            assert_eq!(resolve(address + window(space)), (space, address));
        }
    }
}
