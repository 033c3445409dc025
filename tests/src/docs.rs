//! The Rust of the README and of the book, compiled and run as doctests.

#[doc = include_str!("../../README.md")]
mod readme {}
#[doc = include_str!("../../docs/src/notation.md")]
mod notation {}
#[doc = include_str!("../../docs/src/kernel.md")]
mod kernel {}
#[doc = include_str!("../../docs/src/architecture.md")]
mod architecture {}
#[doc = include_str!("../../docs/src/add-a-tile-op.md")]
mod add_a_tile_op {}
#[doc = include_str!("../../docs/src/running.md")]
mod running {}
#[doc = include_str!("../../docs/src/virtual-gpu.md")]
mod virtual_gpu {}
#[doc = include_str!("../../docs/src/diagnostics.md")]
mod diagnostics {}
