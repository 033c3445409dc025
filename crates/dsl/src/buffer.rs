use tilewright_diag::Span;
use tilewright_ir::{Caching, Handle, tile};

use crate::nodes::{self, KernelId};

/// A buffer of the kernel being built; cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) handle: Handle<tile::Buffer>,
    /// The kernel it belongs to: a handle is not valid in another one.
    pub(crate) kernel: KernelId,
}

impl Buffer {
    /// For a shared buffer: no other has its storage. Otherwise buffers whose lives do not meet may have the same, where that
    /// lets more CTAs run on an SM.
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::F32;
    ///
    /// let apart = kernel("apart", |k| {
    ///     let (x, y) = (k.input("x", F32, [64, 64]), k.output("y", F32, [64, 64]));
    ///     k.threads(128);
    ///     let tile = k.shared("tile", F32, [64, 64]).alone();
    ///     k.copy(tile, x);
    ///     k.copy(y, tile);
    /// });
    /// ```
    #[track_caller]
    pub fn alone(self) -> Self {
        if self.is_own() {
            nodes::set_apart(self.handle);
        }
        self
    }

    /// For a tensor and its views: each element is used once, so that caches evict it first. Threads load with `__ldcs` what the
    /// kernel only reads, and store with `__stcs`, at most 16 bytes at once; the copy engine takes no hint.
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::F32;
    ///
    /// let copied = kernel("copied", |k| {
    ///     let (x, y) = (k.input("x", F32, [4096]).streamed(), k.output("y", F32, [4096]).streamed());
    ///     k.threads(128);
    ///     k.copy(y, x);
    /// });
    /// ```
    #[track_caller]
    pub fn streamed(self) -> Self {
        self.cached(Caching::Streamed)
    }

    /// For a tensor and its views: elements are cached in L2 only, not in the L1 cache of an SM, which other data keeps. Threads
    /// load with `__ldcg` what the kernel only reads, and store with `__stcg`, at most 16 bytes at once; the copy engine does not
    /// use L1.
    ///
    /// ```
    /// use tilewright_dsl::kernel;
    /// use tilewright_layout::DType::F32;
    ///
    /// let copied = kernel("copied", |k| {
    ///     let (x, y) = (k.input("x", F32, [4096]).in_l2(), k.output("y", F32, [4096]));
    ///     k.threads(128);
    ///     k.copy(y, x);
    /// });
    /// ```
    #[track_caller]
    pub fn in_l2(self) -> Self {
        self.cached(Caching::InL2)
    }

    #[track_caller]
    fn cached(self, caching: Caching) -> Self {
        if self.is_own() {
            nodes::set_caching(self.handle, caching);
        }
        self
    }

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
