//! A GPU in tests, where there is one.

use tilewright::cuda::{Gpu, can_compile, gpus};

/// The first GPU whose driver compiles PTX for a target.
///
/// # Panics
///
/// If there is one that cannot be opened.
pub fn gpu_for(target: &str) -> Option<Gpu> {
    let found = gpus().ok()?;
    let ordinal = found.iter().position(|info| can_compile(target, info.compute_capability))?;
    Some(Gpu::open(ordinal).unwrap_or_else(|error| panic!("{error}")))
}
