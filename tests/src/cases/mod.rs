//! Kernels with inputs and expected outputs: those of the library in their tested configurations, and small ones used
//! only by tests.

mod extra;

use tilewright::compile::{Artifact, LowerOptions, Options, compile};
use tilewright::diag::Diagnostic;
use tilewright::prelude::{Kernel, Target};
use tilewright::runtime::{HostTensor, Tolerance, compare_all};
use tilewright_kernels::{Config, KERNELS, KernelEntry};

/// Where the kernel of a case comes from.
#[derive(Clone)]
pub enum Source {
    /// The library builds it for each target.
    Library(&'static KernelEntry, Config),
    /// It is the same for all targets.
    Written(Box<Kernel>),
}

/// A kernel to run, and its expected outputs.
pub struct Case {
    /// Its name, unique among the cases: `warp_transpose-b32-rows=4-cols=32`.
    pub name: String,
    /// The kernel.
    pub kernel: Source,
    /// The requested variant, if any.
    pub variant: Option<String>,
    /// The values of the sizes that are known only at launch.
    pub sizes: Vec<(&'static str, i64)>,
    /// The input tensors.
    pub inputs: Vec<HostTensor>,
    /// The expected output tensors.
    pub expected: Vec<HostTensor>,
    /// How exact the result is.
    pub tolerance: Tolerance,
    /// Whether every access to shared memory must take the minimum number of wavefronts.
    pub ideal: bool,
    /// Whether it is a kernel of the library with the default dtype and sizes of `run-kernel`.
    pub is_default: bool,
}

impl Case {
    /// The targets for which its PTX is committed. Without NVRTC, `run-kernel` runs the kernels of the library with their
    /// defaults, and the tests of faults run [`MUTATED`].
    pub fn committed_targets(&self) -> &'static [Target] {
        if self.is_default {
            return Target::ALL;
        }
        if MUTATED.contains(&self.name.as_str()) { &[Target::Sm100a] } else { &[] }
    }

    /// Compiles it for a target.
    pub fn compile(&self, target: Target) -> Result<Artifact, Vec<Diagnostic>> {
        let options = Options { target, lower: LowerOptions { variant: self.variant.clone() } };
        let kernel = match &self.kernel {
            Source::Library(entry, config) => (entry.build)(config, target),
            Source::Written(kernel) => (**kernel).clone(),
        };
        compile(kernel, &options)?.for_sizes(&self.sizes)
    }

    /// Compares outputs with the expected ones, as exactly as the case requires. Error: a different number of outputs,
    /// or the first element whose error is too large.
    pub fn compare(&self, outputs: &[HostTensor]) -> Result<(), String> {
        let compared = compare_all(outputs, &self.expected, self.tolerance).map_err(|error| error.to_string())?;
        match compared.into_iter().find_map(|comparison| comparison.mismatch) {
            Some(mismatch) => Err(format!("{mismatch:?}")),
            None => Ok(()),
        }
    }
}

/// Kernels with different threads, barriers and memories. Tests change one line of their PTX.
pub const MUTATED: [&str; 4] = [
    "sf_transpose-f32",
    "warp_transpose-b32-rows=32-cols=32-tiles=2",
    "one_warp_permutes_for_all",
    "a_buffer_used_again",
];

/// Cases whose accesses to shared memory are all free of bank conflicts.
const IDEAL: [&str; 14] = [
    "sf_transpose-f32",
    "sf_transpose-f32-warp_xor_swizzle",
    "warp_transpose-b32-rows=32-cols=32-tiles=2",
    "warp_transpose-b32-rows=4-cols=32-tiles=2",
    "warp_transpose-b32-rows=32-cols=4-tiles=2",
    "warp_transpose-b32-rows=8-cols=32-tiles=2",
    "warp_transpose-b32-rows=16-cols=32-tiles=2",
    "warp_transpose-b32-rows=2-cols=64-tiles=2",
    "warp_transpose-b32-rows=4-cols=64-tiles=2",
    "warp_transpose-b32-rows=4-cols=128-tiles=2",
    "warp_transpose-b32-rows=64-cols=4-tiles=2",
    "warp_transpose-b32-rows=64-cols=2-tiles=2",
    "warp_transpose-b16-rows=8-cols=32-tiles=2",
    "warp_transpose-b8-rows=4-cols=32-tiles=2",
];

/// The kernels of the library in their tested configurations.
pub fn library() -> Vec<Case> {
    KERNELS
        .iter()
        .flat_map(|entry| {
            let configs = entry.tested_configs().expect("configurations of the kernel");
            configs.into_iter().enumerate().map(move |(at, config)| {
                let inputs = (entry.inputs)(&config);
                Case {
                    name: format!("{}-{}", entry.name, config.to_string().replace(' ', "-")),
                    variant: None,
                    sizes: entry.sizes(&config),
                    expected: (entry.reference)(&config, &inputs),
                    inputs,
                    tolerance: (entry.tolerance)(&config),
                    kernel: Source::Library(entry, config),
                    ideal: false,
                    // The default configuration is the first of those that are tested.
                    is_default: at == 0,
                }
            })
        })
        .collect()
}

/// All cases, those of the library first.
pub fn all() -> Vec<Case> {
    let mut cases = library();
    cases.push(forced(&cases, "sf_transpose-f32", "warp_xor_swizzle"));
    cases.extend(extra::cases());
    for case in &mut cases {
        case.ideal = IDEAL.contains(&case.name.as_str());
    }
    cases
}

/// The same case with a requested variant.
fn forced(cases: &[Case], name: &str, variant: &str) -> Case {
    let case = cases.iter().find(|case| case.name == name).unwrap_or(&cases[0]);
    Case {
        name: format!("{name}-{variant}"),
        kernel: case.kernel.clone(),
        variant: Some(variant.to_string()),
        sizes: case.sizes.clone(),
        inputs: case.inputs.clone(),
        expected: case.expected.clone(),
        tolerance: case.tolerance,
        ideal: false,
        is_default: false,
    }
}
