//! Every kernel, compiled at levels of optimization of NVRTC and run on the virtual GPU.

use tilewright::compile::Artifact;
use tilewright::cuda::{Nvrtc, Request};
use tilewright::prelude::Target;
use tilewright::runtime::{Built, Device, run};

use crate::cases::{Case, all};
use crate::fuzz::spread_over;
use crate::toolchain::{built_or_skipped, skip, toolchain};

/// Levels at which NVRTC optimizes, other than the default.
pub const OPTIMIZED: [&[&str]; 2] = [&["--Ofast-compile=min"], &["--fmad=true", "--extra-device-vectorization"]];
/// For fast compilation, and for a debugger.
pub const UNOPTIMIZED: [&[&str]; 2] = [&["--Ofast-compile=max"], &["-G"]];

/// NVRTC for a target, unless there is none.
pub fn nvrtc(test: &str, target: Target) -> Option<Nvrtc> {
    let found = toolchain().nvrtc(target.name()).ok();
    if found.is_none() {
        skip(&format!("virtual GPU: {test} {target}"));
    }
    found
}

/// The PTX of a text at a level.
pub fn ptx_of(nvrtc: &Nvrtc, source: &str, target: Target, level: &[&str]) -> String {
    let options: Vec<String> = level.iter().map(|option| option.to_string()).collect();
    let request = Request { source, name: "/tilewright/test.cu", target: target.name(), options: &options };
    nvrtc.compile(&request).unwrap_or_else(|e| panic!("{level:?}: {e}")).ptx
}

/// Runs every case from its text compiled at these levels, each for one of the targets in turn, and compares all outputs as
/// exactly as the case says, or expects the hazard that the level brings. All are compiled as usual before that.
pub fn assert_right_at(test: &str, levels: &[&[&str]]) {
    let all = all();
    for (at, target) in Target::ALL.iter().enumerate() {
        let built = spread_over(&all, &|case| {
            let artifact = case.compile(*target).expect("the case compiles");
            let built = built_or_skipped(&artifact, test)?;
            Some((artifact, built))
        });
        let Some(built) = built.into_iter().collect::<Option<Vec<_>>>() else { return };
        let cases: Vec<_> = all.iter().zip(built).collect();
        let Some(nvrtc) = nvrtc(test, *target) else { return };
        for (turn, level) in levels.iter().enumerate() {
            let of_level: Vec<_> =
                cases.iter().skip((at + turn) % Target::ALL.len()).step_by(Target::ALL.len()).collect();
            spread_over(&of_level, &|(case, (artifact, built))| assert_right(case, artifact, built, level, &nvrtc));
        }
    }
}

fn assert_right(case: &Case, artifact: &Artifact, built: &Built, level: &[&str], nvrtc: &Nvrtc) {
    let target = artifact.target();
    let mut built = built.clone();
    built.ptx = ptx_of(nvrtc, artifact.cuda(), target, level);
    let outcome = run(artifact, &built, &case.inputs, &Device::Virtual);
    if moves_sums_of_wgmma(artifact, level) {
        let hazard = outcome.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            hazard.contains("async_register_hazard"),
            "{} {target} {level:?}: no hazard, but {hazard:?}",
            case.name
        );
        return;
    }
    let outcome = outcome.unwrap_or_else(|e| panic!("{} {target} {level:?}: {e}", case.name));
    case.compare(&outcome.outputs).unwrap_or_else(|e| panic!("{} {target} {level:?}: {e}", case.name));
}

/// At a level of `--Ofast-compile` or for a debugger NVRTC does not unroll the loop over the products of a batch, and moves
/// their sums from register to register between `wgmma.fence` and the products. PTX does not define what such a product reads
/// (PTX ISA, section on `wgmma.fence`); ptxas waits for each product then.
fn moves_sums_of_wgmma(artifact: &Artifact, level: &[&str]) -> bool {
    artifact.cuda().contains("wgmma_fence();") && level.iter().any(|o| *o == "-G" || o.starts_with("--Ofast-compile"))
}
