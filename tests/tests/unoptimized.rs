//! Every kernel as NVRTC compiles it without optimization, in a process of its own: in texts that it optimizes after that,
//! NVRTC 13.5 converts the addresses of tensor maps to generic ones twice.

use tilewright_tests::levels::{UNOPTIMIZED, assert_right_at};

#[test]
fn every_kernel_is_right_without_optimization() {
    assert_right_at("every_kernel_is_right_without_optimization", &UNOPTIMIZED);
}
