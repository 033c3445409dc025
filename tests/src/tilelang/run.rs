//! Golden programs on the virtual GPU: built, laid out, compiled and run; the results are compared with the evaluation.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::diag::Diagnostic;
use tilewright::infer::lay_out;
use tilewright::ir::Target;
use tilewright::ir::tile::verify;
use tilewright::runtime::{Built, CudaText, Toolchain};
use tilewright::vgpu::{self, Arg, BufferId, Launch, Memory, Module};

use super::case::{Case, Class};
use super::compare::compare;
use super::debug_stores::debug_stores;
use super::evaluate::{Evaluation, evaluate};
use super::inputs::inputs;
use super::kernel::kernel_of;
use super::program::{Buffer, Program, Scope};
use super::storage::storages;
use crate::toolchain::has_no_nvrtc;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Every parameter and every fragment of the last block has the expected contents.
    Passed,
    /// Some contents are wrong, or the program could not be built or run.
    Failed(String),
    /// It could not be run here.
    NotRun(String),
    /// It is refused, as expected.
    Refused,
}

/// Runs one case on the virtual GPU.
pub fn run_case(case: &Case, toolchain: &Toolchain) -> RunOutcome {
    match attempt(case, toolchain) {
        Ok(()) => RunOutcome::Passed,
        Err(Stop::Failed(why)) => RunOutcome::Failed(why),
        Err(Stop::NotRun(why)) => RunOutcome::NotRun(why),
        Err(Stop::Refused) => RunOutcome::Refused,
    }
}

enum Stop {
    Failed(String),
    NotRun(String),
    Refused,
}

/// The value of unwritten memory.
const UNTOUCHED: u8 = 0xa5;

fn attempt(case: &Case, toolchain: &Toolchain) -> Result<(), Stop> {
    let target = if case.arch.starts_with("sm_100") { Target::Sm100a } else { Target::Sm90a };
    let artifact = compiled(case, target)?;
    let built = toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| {
        if has_no_nvrtc(&failure) { Stop::NotRun(failure.to_string()) } else { Stop::Failed(failure.to_string()) }
    })?;
    let left = launched(case, &artifact, &built).map_err(Stop::Failed)?;
    compared(case, &left).map_err(Stop::Failed)
}

/// The compiled kernel, with debug stores.
fn compiled(case: &Case, target: Target) -> Result<Artifact, Stop> {
    let kernel = kernel_of(case).map_err(Stop::NotRun)?;
    let verified = verify(kernel, target).map_err(|found| refused(case, &found))?;
    let (mut kernel, _) = lay_out(verified.into_kernel()).map_err(|found| refused(case, &found))?;
    debug_stores(&mut kernel).map_err(Stop::Failed)?;
    compile(kernel, &Options::new(target)).map_err(|found| Stop::Failed(text(&found)))
}

/// Refused by the verifier or by inference, which may be correct.
fn refused(case: &Case, found: &[Diagnostic]) -> Stop {
    let must_accept = match case.verdict.class {
        Class::AcceptsSound | Class::RejectsValid => true,
        Class::AcceptsWrong => case.witness.is_some(),
        Class::AcceptsRacy | Class::Rejects => false,
    };
    if must_accept { Stop::Failed(text(found)) } else { Stop::Refused }
}

fn text(found: &[Diagnostic]) -> String {
    found.iter().map(|finding| format!("{}: {}", finding.code, finding.message)).collect::<Vec<_>>().join("; ")
}

/// The bytes of all parameters of the kernel after a launch: those of the program first, then the contents of
/// fragments. A parameter that the kernel writes is initialized with its input too, since the program may read it or
/// leave parts unchanged.
fn launched(case: &Case, artifact: &Artifact, built: &Built) -> Result<Vec<Vec<u8>>, String> {
    let module = Module::parse(&built.ptx).map_err(|error| error.to_string())?;
    let mut given = inputs(case)?;
    let mut memory = Memory::new();
    let mut buffers: Vec<BufferId> = Vec::new();
    for (number, parameter) in artifact.parameters().iter().enumerate() {
        let size = (parameter.memory_elements() * parameter.dtype.bytes()) as usize;
        let told = case.program.params.get(number).and_then(|param| given.remove(&param.name));
        let bytes = told.unwrap_or_else(|| vec![UNTOUCHED; size]);
        if bytes.len() != size {
            return Err(format!("{} bytes for `{}`, which has {size}", bytes.len(), parameter.name));
        }
        buffers.push(memory.allocate(&parameter.name, bytes));
    }
    let launch = Launch {
        kernel: artifact.entry().to_string(),
        grid: artifact.grid().map(|ctas| ctas as u32),
        block: [artifact.threads() as u32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: artifact.dynamic_shared_bytes() as u32,
        args: buffers.iter().map(|buffer| Arg::Buffer { buffer: *buffer, byte_offset: 0 }).collect(),
    };
    vgpu::run(&module, &launch, &mut memory, &vgpu::Options::default()).map_err(|error| error.to_string())?;
    Ok(buffers.iter().map(|buffer| memory.bytes(*buffer).to_vec()).collect())
}

/// Compares every parameter, and every fragment and its views in the last block, with the evaluation.
fn compared(case: &Case, left: &[Vec<u8>]) -> Result<(), String> {
    let program = &case.program;
    let evaluation = evaluate(program, &inputs(case)?).map_err(|why| format!("the evaluation: {why}"))?;
    let wrong: Vec<String> = program
        .params
        .iter()
        .chain(program.buffers.iter().filter(|buffer| buffer.scope == Scope::Fragment))
        .filter_map(|buffer| compared_buffer(program, buffer, &evaluation, left).err())
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn compared_buffer(
    program: &Program,
    buffer: &Buffer,
    evaluation: &Evaluation,
    left: &[Vec<u8>],
) -> Result<(), String> {
    let owner = storages(program).get(buffer.name.as_str()).map(|storage| storage.root).unwrap_or(&buffer.name);
    let fragments = program.buffers.iter().filter(|of| of.scope == Scope::Fragment && of.alias_of.is_none());
    let shown = program.params.iter().chain(fragments).zip(left).find(|(shown, _)| shown.name == owner);
    let (_, bytes) = shown.ok_or_else(|| format!("`{owner}` has no debug output"))?;
    let expected = evaluation.contents(owner)?;
    // The last block is the last part.
    let last = bytes.len().checked_sub(expected.size()).and_then(|start| bytes.get(start..));
    compare(buffer, expected, last.ok_or_else(|| format!("`{owner}` has {} bytes", bytes.len()))?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read_folder;
    use super::*;

    fn cases() -> Vec<Case> {
        read_folder(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"))).unwrap()
    }

    #[test]
    fn every_program_can_be_evaluated() {
        let evaluated = |case: &Case| evaluate(&case.program, &inputs(case)?).map(|_| ());
        let told = |case: &Case| evaluated(case).err().map(|why| format!("{}: {why}", case.name));
        let wrong: Vec<String> = cases().iter().filter_map(told).collect();
        assert_eq!(wrong, ["rej_copy_shape: extents [8, 8] do not match [64]"]);
    }

    #[test]
    fn a_run_is_compared_with_the_last_block() {
        let case = cases().into_iter().find(|case| case.name == "np2_copy_oob_rows").unwrap();
        let given = inputs(&case).unwrap();
        let evaluation = evaluate(&case.program, &given).unwrap();
        // B becomes equal to A, and rows 100 to 127 of a, which are out of bounds of A, become zero.
        let rows = |first: usize, last: usize| given["A"][first * 256..last * 256].to_vec();
        let fragment = [rows(0, 64), rows(64, 100), vec![0; 28 * 256]].concat();
        let left = [given["A"].clone(), given["A"].clone(), fragment.clone()];
        assert_eq!(compared(&case, &left), Ok(()));
        assert_eq!(evaluation.contents("a").unwrap().size(), 64 * 256);
        let swapped = [given["A"].clone(), given["B"].clone(), fragment];
        assert!(compared(&case, &swapped).unwrap_err().contains("B[0, 0] is "));
    }
}
