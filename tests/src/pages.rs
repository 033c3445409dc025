//! Checks of the examples in the book: each is compiled for every target and, if it computes something, run on the
//! virtual GPU.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, HostTensor, Tolerance, compare_all, run};

use crate::toolchain::built_or_skipped;

/// A tensor whose element `i`, in row-major order, is `element(i)` rounded to the nearest value of the dtype.
pub fn tensor(dtype: DType, shape: &[i64], element: impl Fn(i64) -> f64) -> HostTensor {
    HostTensor::from_f64(dtype, shape, element)
}

/// Compiles a kernel for every target, with these values of its sizes.
///
/// # Panics
///
/// If it is refused.
pub fn compiled(kernel: &Kernel, sizes: &[(&str, i64)]) -> Vec<Artifact> {
    Target::ALL.iter().map(|target| compiled_for(*target, kernel, sizes)).collect()
}

fn compiled_for(target: Target, kernel: &Kernel, sizes: &[(&str, i64)]) -> Artifact {
    let artifact = compile(kernel.clone(), &Options::new(target)).and_then(|artifact| artifact.for_sizes(sizes));
    artifact.unwrap_or_else(|found| panic!("{} for {target}: {found:?}", kernel.name))
}

/// [`check`] for a kernel without sizes, whose outputs must match bit for bit.
pub fn computes(kernel: &Kernel, inputs: &[HostTensor], expected: &[HostTensor]) {
    check(kernel, &[], inputs, expected, Tolerance::EXACT);
}

/// Checks that a kernel computes these outputs from these inputs, for every target. Without NVRTC, it is only compiled.
///
/// # Panics
///
/// If it is refused, faults, or computes something else.
pub fn check(
    kernel: &Kernel,
    sizes: &[(&str, i64)],
    inputs: &[HostTensor],
    expected: &[HostTensor],
    tolerance: Tolerance,
) {
    Target::ALL.iter().for_each(|target| check_on(*target, kernel, sizes, inputs, expected, tolerance));
}

/// The same for one target.
pub fn check_on(
    target: Target,
    kernel: &Kernel,
    sizes: &[(&str, i64)],
    inputs: &[HostTensor],
    expected: &[HostTensor],
    tolerance: Tolerance,
) {
    let artifact = compiled_for(target, kernel, sizes);
    let name = artifact.name();
    let Some(built) = built_or_skipped(&artifact, &format!("example of the book: {name}")) else { return };
    let run = run(&artifact, &built, inputs, &Device::Virtual)
        .unwrap_or_else(|failure| panic!("{name} for {target}: {failure}\n{}", artifact.cuda()));
    let compared = compare_all(&run.outputs, expected, tolerance).unwrap_or_else(|why| panic!("{name}: {why}"));
    for comparison in compared {
        assert_eq!(comparison.mismatch, None, "{name} for {target}\n{}", artifact.cuda());
    }
}
