//! The Rust of the README and of the book, compiled and run as doctests.

#[doc = include_str!("../../README.md")]
mod readme {}
#[doc = include_str!("../../docs/notation.md")]
mod notation {}
#[doc = include_str!("../../docs/layout-algebra.md")]
mod layout_algebra {}
#[doc = include_str!("../../docs/layout-tool.md")]
mod layout_tool {}
#[doc = include_str!("../../docs/kernel.md")]
mod kernel {}
#[doc = include_str!("../../docs/how-layouts-are-inferred.md")]
mod how_layouts_are_inferred {}
#[doc = include_str!("../../docs/moving-tiles.md")]
mod moving_tiles {}
#[doc = include_str!("../../docs/architecture.md")]
mod architecture {}
#[doc = include_str!("../../docs/add-a-tile-op.md")]
mod add_a_tile_op {}
#[doc = include_str!("../../docs/running.md")]
mod running {}
#[doc = include_str!("../../docs/virtual-gpu.md")]
mod virtual_gpu {}
#[doc = include_str!("../../docs/diagnostics.md")]
mod diagnostics {}
