use tilewright_diag::Span;
use tilewright_ir::{Handle, tile};

use crate::nodes::{self, KernelId};

/// A buffer of the kernel being built; cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) handle: Handle<tile::Buffer>,
    /// The kernel it belongs to: a handle is not valid in another one.
    pub(crate) kernel: KernelId,
}

impl Buffer {
    /// Whether it belongs to the kernel that is being built; if not, that is a mistake at the caller's line.
    #[track_caller]
    pub(crate) fn is_own(self) -> bool {
        let is_own = nodes::current() == Some(self.kernel);
        if !is_own {
            nodes::mistake(nodes::foreign("a buffer", Span::here(), Some(self.kernel)));
        }
        is_own
    }
}
