use tilewright_ir::{Handle, tile};

use crate::nodes::Identity;
use crate::region::{IntoRegion, Region};

/// A buffer of the kernel being built; cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) handle: Handle<tile::Buffer>,
    /// The kernel it belongs to: a handle is not valid in another one.
    pub(crate) kernel: Identity,
}

impl Buffer {
    /// Part of it: one index per dimension, each `..`, a number, an expression, a range, or [`crate::at`].
    /// A number or expression takes one index and keeps the dimension, with extent 1.
    #[expect(
        clippy::should_implement_trait,
        reason = "`sub` is the word for a sub-tile, and buffers are not subtracted"
    )]
    #[track_caller]
    pub fn sub(self, indices: impl IntoRegion) -> Region {
        Region { buffer: self, indices: Some(indices.into_indices()) }
    }
}

impl From<Buffer> for Region {
    fn from(buffer: Buffer) -> Region {
        Region { buffer, indices: None }
    }
}
