//! The storage of fragments and their views, cut into granules: elements of the widest of their dtypes.
//!
//! A granule is on one thread as a whole, so a view with wider elements always fits, and views share one map.

use std::collections::BTreeMap;

use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Space};

/// The storage of a fragment and its views.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    /// Bytes of a granule.
    pub(crate) bytes: i64,
    /// The number of granules.
    pub(crate) granules: usize,
}

/// All storages of fragments, by the fragment that owns them.
#[derive(Clone, Debug)]
pub(crate) struct Storages {
    /// By the index of the buffer.
    known: Vec<Storage>,
    /// Extents of the owner, counted in granules.
    extents: BTreeMap<Handle<Buffer>, Vec<i64>>,
}

/// The entry of a buffer that owns no fragment storage.
const NOTHING: Storage = Storage { bytes: 1, granules: 0 };

impl Storages {
    pub(crate) fn of(kernel: &Kernel) -> Storages {
        let mut widest: BTreeMap<Handle<Buffer>, i64> = BTreeMap::new();
        for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Fragment) {
            let bytes = widest.entry(kernel.storage(handle)).or_default();
            *bytes = (*bytes).max(buffer.dtype.bytes());
        }
        let mut storages = Storages { known: vec![NOTHING; kernel.buffers.len()], extents: BTreeMap::new() };
        for (handle, bytes) in widest {
            let owner = &kernel.buffers[handle];
            let total = owner.shape.iter().product::<i64>() * owner.dtype.bytes();
            let granules = total / bytes;
            storages.known[handle.index()] = Storage { bytes, granules: granules as usize };
            storages.extents.insert(handle, in_granules(&owner.shape, granules, bytes / owner.dtype.bytes().max(1)));
        }
        storages
    }

    /// The granule of an element of `bytes` bytes, which is numbered in row-major order of its buffer.
    pub(crate) fn granule(&self, storage: Handle<Buffer>, element: i64, bytes: i64) -> u32 {
        (element * bytes / self.get(storage).bytes) as u32
    }

    pub(crate) fn get(&self, storage: Handle<Buffer>) -> Storage {
        self.known.get(storage.index()).copied().unwrap_or(NOTHING)
    }

    /// The extents of the fragment that owns a storage, counted in granules.
    pub(crate) fn extents(&self, storage: Handle<Buffer>) -> &[i64] {
        self.extents.get(&storage).map_or(&[], Vec::as_slice)
    }
}

/// The extents of a fragment, counted in groups of `ratio` elements; one dimension if `ratio` does not divide the rows.
fn in_granules(shape: &[i64], granules: i64, ratio: i64) -> Vec<i64> {
    match shape.split_last() {
        Some((last, above)) if last % ratio.max(1) == 0 => above.iter().copied().chain([last / ratio.max(1)]).collect(),
        _ => vec![granules],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_in_granules() {
        assert_eq!(in_granules(&[4, 8], 16, 2), [4, 4]);
        assert_eq!(in_granules(&[4, 3], 6, 2), [6]);
        assert_eq!(in_granules(&[], 1, 1), [1]);
    }
}
