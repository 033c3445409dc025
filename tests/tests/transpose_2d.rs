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

#[test]
fn hardly_more_instructions_than_by_hand_at_edges() {
    let toolchain = toolchain();
    if toolchain.nvrtc(Target::Sm100a.name()).is_err() {
        return skip("transpose_2d at edges and a hand-written one");
    }
    for (m, n) in [(488, 520), (501, 503)] {
        for dtype in WIDTHS {
            let pair = transpose(dtype, m, n).expect("a hand-written transpose of the dtype");
            let both = pair.compare(&toolchain, Target::Sm100a).unwrap_or_else(|why| panic!("{dtype}: {why}"));
            assert!(both.is_right, "{dtype} {m} x {n}");
            let (ours, by_hand) = (both.ours.warp_instructions, both.by_hand.warp_instructions);
            let most = by_hand + by_hand / 10;
            assert!(ours <= most, "{dtype} {m} x {n}: {ours} instructions, by hand {by_hand}");
        }
    }
}
