//! Our kernels on the virtual GPU, at every level at which NVRTC optimizes.

use tilewright::ir::plan::MemoryKind;
use tilewright::prelude::*;
use tilewright::runtime::{Device, HostTensor, op_traffic, run};
use tilewright_tests::levels::{OPTIMIZED, assert_right_at};
use tilewright_tests::pages::compiled;
use tilewright_tests::toolchain::built_or_skipped;

/// Ops are counted separately, even if they have the same title and source line.
#[test]
fn ops_of_one_line_are_counted_apart() {
    let twice = kernel("twice", |k| {
        let (x, y) = (k.input("x", F32, [32]), k.output("y", F32, [32]));
        let tile = k.shared("tile", F32, [32]);
        for _ in 0..2 {
            k.copy(tile, x);
            k.copy(y, tile);
        }
    });
    for artifact in compiled(&twice, &[]) {
        let Some(built) = built_or_skipped(&artifact, "ops_of_one_line_are_counted_apart") else { return };
        let outcome = run(&artifact, &built, &[HostTensor::pattern(F32, &[32])], &Device::Virtual).expect("it runs");
        let traffic = op_traffic(&artifact, &outcome.report.expect("the virtual GPU counts")).expect("predictions");
        let shared: Vec<String> =
            traffic.iter().filter(|op| op.memory == MemoryKind::Shared).map(|op| op.to_string()).collect();
        assert_eq!(shared.len(), 4, "{shared:?}");
        for op in &traffic {
            assert!(op.counted <= op.predicted, "{op}");
        }
    }
}

#[test]
fn every_kernel_is_right_at_every_level() {
    assert_right_at("every_kernel_is_right_at_every_level", &OPTIMIZED);
}
