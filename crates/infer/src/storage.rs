//! The storage of fragments and their views, cut into granules: elements of the widest of their dtypes.
//!
//! A granule is on one thread as a whole, so a view with wider elements always fits, and views share one map.

use std::collections::BTreeMap;

use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Space};

/// One storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    /// Bytes of a granule.
    pub(crate) bytes: i64,
    /// How many there are.
    pub(crate) granules: usize,
}

/// All storages of fragments, by the fragment that owns them.
#[derive(Clone, Debug)]
pub(crate) struct Storages(BTreeMap<Handle<Buffer>, Storage>);

impl Storages {
    pub(crate) fn of(kernel: &Kernel) -> Storages {
        let mut widest: BTreeMap<Handle<Buffer>, i64> = BTreeMap::new();
        for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Fragment) {
            let bytes = widest.entry(kernel.storage(handle)).or_default();
            *bytes = (*bytes).max(buffer.dtype.bytes());
        }
        let storage = |(handle, bytes): (Handle<Buffer>, i64)| {
            let owner = &kernel.buffers[handle];
            let total = owner.shape.iter().product::<i64>() * owner.dtype.bytes();
            (handle, Storage { bytes, granules: (total / bytes) as usize })
        };
        Storages(widest.into_iter().map(storage).collect())
    }

    /// The granule of an element of `bytes`, counted in row-major order of its buffer.
    pub(crate) fn granule(&self, storage: Handle<Buffer>, element: i64, bytes: i64) -> u32 {
        (element * bytes / self.get(storage).bytes) as u32
    }

    pub(crate) fn get(&self, storage: Handle<Buffer>) -> Storage {
        self.0.get(&storage).copied().unwrap_or(Storage { bytes: 1, granules: 0 })
    }
}
