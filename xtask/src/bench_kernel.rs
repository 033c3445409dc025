//! The kernels that `bench` compiles.

use tilewright::compile::{Artifact, LowerOptions, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Built, CudaText, Failure};
use tilewright_kernels::{Config, KernelEntry, find};

use crate::defect::fail_on_kernel;
use crate::exit::Exit;
use crate::terminal::fail;
use crate::toolchain::provisioned;

/// The options that kernels are compiled with.
pub(crate) fn options(variant: Option<&str>) -> Options {
    Options { target: Target::Sm100a, lower: LowerOptions { variant: variant.map(str::to_string) } }
}

/// A kernel of the library and its configuration. Error: the library has no such kernel, or the kernel no such dtype or sizes.
pub(crate) fn configured(
    name: &str,
    dtype: Option<DType>,
    sizes: &[(&str, i64)],
) -> Result<(&'static KernelEntry, Config), Exit> {
    let missing = || fail(Exit::BadInput, &format!("the kernel `{name}` is not in the library"));
    let entry = find(name).ok_or_else(missing)?;
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let config = entry.config(dtype, &sizes).map_err(|error| fail(Exit::BadInput, &error))?;
    Ok((entry, config))
}

/// A kernel of the library for a target, with the sizes of its launch, and what NVRTC makes of it.
pub(crate) fn built(entry: &KernelEntry, config: &Config, target: Target) -> Result<(Artifact, Built), Exit> {
    let kernel = || (entry.build)(config, target);
    let options = Options::new(target);
    let artifact = compile(kernel(), &options).and_then(|artifact| artifact.for_sizes(&entry.sizes(config)));
    let artifact =
        artifact.map_err(|found| fail_on_kernel(|| kernel().to_string(), &options, found, Exit::BadInput))?;
    let failed = |failure: Failure| fail(failure.kind.into(), &failure);
    let built = provisioned(target.name()).build(&artifact, &CudaText::Generated).map_err(failed)?;
    Ok((artifact, built))
}

/// A kernel of the library with these sizes.
pub(crate) fn library_kernel(name: &str, sizes: &[(&str, i64)]) -> Result<Kernel, Exit> {
    let (entry, config) = configured(name, None, sizes)?;
    Ok((entry.build)(&config, Target::Sm100a))
}

/// Builds and compiles a kernel of the library.
pub(crate) fn compile_named(name: &str, sizes: &[(&str, i64)], variant: Option<&str>) -> Result<Artifact, Exit> {
    compile_built(|| library_kernel(name, sizes), variant)
}

/// Builds and compiles a kernel.
pub(crate) fn compile_kernel(build: impl Fn() -> Kernel, variant: Option<&str>) -> Result<Artifact, Exit> {
    compile_built(|| Ok(build()), variant)
}

/// Builds and compiles a kernel; builds it once more for the report of a defect, since a copy would count as time.
pub(crate) fn compile_built(build: impl Fn() -> Result<Kernel, Exit>, variant: Option<&str>) -> Result<Artifact, Exit> {
    let options = options(variant);
    compile(build()?, &options).map_err(|found| {
        let kernel = || build().map_or_else(|_| "it cannot be built again".to_string(), |kernel| kernel.to_string());
        fail_on_kernel(kernel, &options, found, Exit::BadInput)
    })
}
