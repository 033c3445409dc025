//! What is judged: target, widths and variants.

use tilewright::prelude::{DType, Target};

/// What the pairs are compiled for.
pub const TARGET: Target = Target::Sm100a;
/// The types of elements that are moved, one per width.
pub const WIDTHS: [DType; 5] = [DType::B8, DType::B16, DType::B32, DType::B64, DType::B128];
/// Pairs per width.
pub const PAIRS: usize = 200;

/// The documented XOR.
pub(crate) const XOR: &str = "warp_xor_swizzle";
/// Narrow elements in whole words.
pub(crate) const PACKED: &str = "warp_packed";
/// The variant that takes any pair.
pub(crate) const SCHEDULED: &str = "warp_scheduled";

/// What the line of a width is called, and what filters choose it by: `permute b32`.
pub fn title(dtype: DType) -> String {
    format!("permute {dtype}")
}
