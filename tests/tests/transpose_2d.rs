//! Compares `transpose_2d` with a hand-written transpose.

use tilewright::prelude::Target;
use tilewright_tests::by_hand::{WIDTHS, is_ideal, transpose};
use tilewright_tests::toolchain::{skip, toolchain};

#[test]
fn no_more_instructions_than_by_hand_and_whole_sectors() {
    let toolchain = toolchain();
    for target in Target::ALL {
        if toolchain.nvrtc(target.name()).is_err() {
            return skip(&format!("transpose_2d and a hand-written one {target}"));
        }
        for dtype in WIDTHS {
            let pair = transpose(dtype, 256, 512).expect("a hand-written transpose of the dtype");
            let both = pair.compare(&toolchain, *target).unwrap_or_else(|why| panic!("{dtype}: {why}"));
            assert!(both.is_right, "{dtype} {target}");
            assert!(is_ideal(&both.ours), "{dtype} {target}: {:?}", both.ours.accesses);
            let (ours, by_hand) = (both.ours.thread_instructions, both.by_hand.thread_instructions);
            assert!(ours <= by_hand, "{dtype} {target}: {ours} instructions, by hand {by_hand}");
        }
    }
}
