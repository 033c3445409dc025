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
mod subject;

pub use report::Summary;
pub use subject::{PAIRS, TARGET, WIDTHS, title};

use tilewright::prelude::DType;
use tilewright::runtime::Toolchain;

use measure::try_out;
use pairs::Pair;
use report::Width;
use subject::{PACKED, SCHEDULED, XOR};

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
