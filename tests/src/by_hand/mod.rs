//! Compares kernels of the library with hand-written ones (`fixtures/cuda`), both run on the virtual GPU.

mod launch;
mod pairs;

use std::fmt;

use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::prelude::{DType, Target};
use tilewright::runtime::{CudaText, Device, HostTensor, Report, Space, Tolerance, Toolchain, compare_all, run};
use tilewright_kernels::find;

pub use launch::{HandWritten, HandWrittenRun, MapByHand};
pub use pairs::{WIDTHS, pairs, transpose};

/// A kernel of the library, and a hand-written kernel that computes the same.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The kernel of the library.
    pub kernel: &'static str,
    /// Its dtype.
    pub dtype: DType,
    /// Its sizes.
    pub sizes: Vec<(&'static str, i64)>,
    /// The variant that is asked for, if it is not the cheapest.
    pub variant: Option<&'static str>,
    /// The hand-written kernel.
    pub by_hand: HandWritten,
}

/// The results of both kernels for the same inputs.
pub struct Compared {
    /// Counters of the compiled kernel.
    pub ours: Report,
    /// Machine code of the compiled kernel, and its name there.
    pub our_cubin: (Vec<u8>, String),
    /// Counters of the hand-written kernel.
    pub by_hand: Report,
    /// Machine code of all kernels in the hand-written kernel's file.
    pub cubin_by_hand: Vec<u8>,
    /// Whether the outputs of both are correct.
    pub is_right: bool,
}

impl fmt::Display for Pair {
    /// `softmax rows=64 cols=2048 threads=32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kernel)?;
        self.sizes.iter().try_for_each(|(name, size)| write!(f, " {name}={size}"))?;
        self.variant.iter().try_for_each(|variant| write!(f, " {variant}"))
    }
}

impl Pair {
    /// Runs both. Errors: no NVRTC, or a failure.
    pub fn compare(&self, toolchain: &Toolchain, target: Target) -> Result<Compared, String> {
        let Pair { kernel, dtype, sizes, variant, by_hand } = self;
        let entry = find(kernel).ok_or_else(|| format!("the kernel `{kernel}` is not in the library"))?;
        let sizes: Vec<(String, i64)> = sizes.iter().map(|(name, size)| (name.to_string(), *size)).collect();
        let config = entry.config(Some(*dtype), &sizes).map_err(|error| error.to_string())?;
        let said = |found: Vec<tilewright::diag::Diagnostic>| format!("{found:?}");
        let lower = LowerOptions { variant: variant.map(str::to_string) };
        let artifact = compile((entry.build)(&config, target), &Options { target, lower }).map_err(said)?;
        let artifact = artifact.for_sizes(&entry.sizes(&config)).map_err(said)?;
        let built = toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| failure.to_string())?;
        let inputs = (entry.inputs)(&config);
        let ours = run(&artifact, &built, &inputs, &Device::Virtual).map_err(|failure| failure.to_string())?;
        let expected = (entry.reference)(&config, &inputs);
        let by_hand = by_hand.run(toolchain, target, &inputs, &expected)?;
        let tolerance = (entry.tolerance)(&config);
        let is_right =
            matches(&ours.outputs, &expected, tolerance)? && matches(&by_hand.outputs, &expected, tolerance)?;
        Ok(Compared {
            ours: ours.report.ok_or("the virtual GPU counted nothing")?,
            our_cubin: (built.cubin, artifact.entry().to_string()),
            by_hand: by_hand.report,
            cubin_by_hand: by_hand.cubin,
            is_right,
        })
    }
}

fn matches(got: &[HostTensor], expected: &[HostTensor], tolerance: Tolerance) -> Result<bool, String> {
    let compared = compare_all(got, expected, tolerance).map_err(|error| error.to_string())?;
    Ok(compared.iter().all(|comparison| comparison.mismatches == 0))
}

/// True if every sector of global memory that a warp touches is used in full, and no access to shared memory needs
/// extra wavefronts.
pub fn is_ideal(report: &Report) -> bool {
    report.accesses.iter().all(|access| match access.space {
        Space::Global => access.sectors == access.ideal_sectors,
        _ => access.wavefronts == access.ideal_wavefronts,
    })
}
