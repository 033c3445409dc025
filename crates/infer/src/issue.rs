//! What an access of memory costs in given steps.

use crate::ids::{MapId, PlacesId};

/// What an access costs in given steps of its nest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Issue {
    /// Elements that a thread moves at once: the least and the most of all chunks.
    pub(crate) widths: (usize, usize),
    /// Instructions of all warps.
    pub(crate) issued: u64,
    /// Instructions of the busiest warp.
    pub(crate) busiest: u64,
    /// Wavefronts of shared memory or sectors of global memory; 0 where the places are not known.
    pub(crate) passes: u64,
}

/// What an issue depends on: steps, how many are done together, places, the most elements at once, bytes of an element,
/// whether the memory is shared, whether the access is a write.
pub(crate) type IssueKey = (MapId, usize, PlacesId, usize, usize, bool, bool);
