//! The kernel library: kernels in the DSL, each with a plain Rust reference and inputs to check it with.

mod config;
mod sf_transpose;
mod sf_transpose_global;
mod transpose_2d;
mod warp_transpose;

pub use config::{Config, ConfigError, KernelEntry, ShapeKey};

/// Every kernel.
pub const KERNELS: &[KernelEntry] =
    &[sf_transpose::ENTRY, sf_transpose_global::ENTRY, transpose_2d::ENTRY, warp_transpose::ENTRY];

/// The kernel called `name`.
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    KERNELS.iter().find(|entry| entry.name == name)
}
