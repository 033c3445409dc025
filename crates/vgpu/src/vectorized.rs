//! Loops over lanes and elements, compiled for the vectors that the host has. The results are the same on every host: nothing
//! is fused or reordered.

use pulp::{Arch, Simd, WithSimd};

/// A loop over plain numbers. What it calls should be small enough to be inlined, and `run` must be `#[inline(always)]`, or
/// else it is not compiled for other vectors than those that every host has.
pub(crate) trait Loop {
    fn run(self);
}

struct Compiled<L>(L);

impl<L: Loop> WithSimd for Compiled<L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.0.run();
    }
}

/// Runs a loop in the version for the host: with AVX2 and FMA, or without.
#[inline(always)]
pub(crate) fn vectorized(of: impl Loop) {
    Arch::new().dispatch(Compiled(of));
}
