//! Random pairs of layouts, moved by `permute_layout` on the virtual GPU and checked by loops over their positions.
//!
//! Every pair is moved by the chosen variant, by `warp_scheduled`, and, if they accept it, by the documented XOR and in
//! packed words. Every result must be correct, without more passes than predicted; the schedules must be as good as the
//! positions allow.

mod judge;
mod kernels;
mod measure;
mod pairs;
mod report;
mod story;

pub use report::Summary;

use tilewright::prelude::{DType, Target};
use tilewright::runtime::Toolchain;

use measure::try_out;
use pairs::Pair;
use report::Width;

/// The target of the pairs.
pub const TARGET: Target = Target::Sm100a;
/// The dtypes of the elements, one per width.
pub const WIDTHS: [DType; 5] = [DType::B8, DType::B16, DType::B32, DType::B64, DType::B128];
/// Pairs per width.
pub const PAIRS: usize = 200;

/// The variant for the documented XOR.
const XOR: &str = "warp_xor_swizzle";
/// The variant that moves narrow elements in whole words.
const PACKED: &str = "warp_packed";
/// The variant that accepts every pair.
const SCHEDULED: &str = "warp_scheduled";

/// The title of a width, which filters select by: `permute b32`.
pub fn title(dtype: DType) -> String {
    format!("permute {dtype}")
}

/// Moves all pairs of a width by all variants under test.
pub fn judge_width(toolchain: &Toolchain, dtype: DType) -> Summary {
    let pairs: Vec<Pair> = (0..PAIRS).map(|number| Pair::of(dtype, number)).collect();
    let mut width = Width::new(dtype, &pairs);
    width.take(try_out(toolchain, &format!("{dtype}_chosen"), &pairs.iter().collect::<Vec<_>>(), None));
    for variant in [SCHEDULED, XOR, PACKED] {
        let left = width.left_for(variant);
        width.take(try_out(toolchain, &format!("{dtype}_{variant}"), &left, Some(variant)));
    }
    width.summary()
}
