//! Without NVRTC and network, committed PTX runs: the kernels of the library with their defaults, and those whose PTX
//! is mutated by the tests of faults.

use tilewright::prelude::Target;
use tilewright::runtime::{CudaText, Device, Origin, run};
use tilewright_kernels::KERNELS;
use tilewright_tests::cases::{Case, all};
use tilewright_tests::toolchain::offline;

/// Runs a case from the PTX committed for its text, and compares its outputs.
fn assert_runs_offline(case: &Case, target: Target) {
    let artifact = case.compile(target).unwrap_or_else(|found| panic!("{}: {found:?}", case.name));
    let built = offline()
        .build(&artifact, &CudaText::Generated)
        .unwrap_or_else(|e| panic!("{} {target}: {e}; run `cargo xtask test --bless` with NVRTC", case.name));
    assert!(matches!(built.origin, Origin::Fixture(_)), "{} {target}: {:?}", case.name, built.origin);
    let outcome = run(&artifact, &built, &case.inputs, &Device::Virtual)
        .unwrap_or_else(|e| panic!("{} {target}: {e}", case.name));
    case.compare(&outcome.outputs).unwrap_or_else(|e| panic!("{} {target}: {e}", case.name));
}

#[test]
fn committed_ptx_runs_and_is_right() {
    for case in all() {
        case.committed_targets().iter().for_each(|target| assert_runs_offline(&case, *target));
    }
}

#[test]
fn every_kernel_of_the_library_has_one_default_case() {
    let cases = all();
    for entry in KERNELS {
        let start = format!("{}-", entry.name);
        let defaults = cases.iter().filter(|case| case.is_default && case.name.starts_with(&start));
        assert_eq!(defaults.count(), 1, "{}", entry.name);
    }
}
