//! The hand-written kernels that the emitted code is compared with are right, and so are the library's at these sizes.

use tilewright::prelude::Target;
use tilewright_tests::by_hand::{WIDTHS, pairs, transpose};
use tilewright_tests::toolchain::{skip, toolchain};

#[test]
fn hand_written_kernels_are_right() {
    let toolchain = toolchain();
    if toolchain.nvrtc(Target::Sm100a.name()).is_err() {
        return skip("hand-written kernels");
    }
    let ragged = WIDTHS.into_iter().filter_map(|dtype| transpose(dtype, 33, 71));
    for pair in pairs().into_iter().chain(ragged) {
        let both = pair.compare(&toolchain, Target::Sm100a).unwrap_or_else(|why| panic!("{pair}: {why}"));
        assert!(both.is_right, "{pair}");
    }
}
