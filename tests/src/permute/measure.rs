//! Runs pairs on the virtual GPU: checks the result, and compares the counted passes with those predicted by the plans.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::ir::plan::{MemoryKind, OpPlan, VariantResult};
use tilewright::layout::access;
use tilewright::runtime::{
    AccessCount, AccessKind, Built, CudaText, Device, HostTensor, Report, Space, Tolerance, Toolchain, compare, run,
};

use super::kernels::{batches, kernel_of};
use super::pairs::Pair;
use super::subject::TARGET;

/// A pair that was moved by one variant.
pub(crate) struct Trial {
    pub(crate) variant: &'static str,
    /// The answers of all variants.
    pub(crate) considered: Vec<VariantResult>,
    /// Wavefronts counted for reading and for writing.
    pub(crate) wavefronts: [u64; 2],
    /// The failure, if any: a wrong result, or more passes than predicted.
    pub(crate) wrong: Option<String>,
}

/// Pairs that were moved by one variant, or by the chosen ones.
#[derive(Default)]
pub(crate) struct Tried {
    /// The trials, by number of the pair.
    pub(crate) trials: Vec<(usize, Result<Trial, String>)>,
    /// Kernels that failed although each of their pairs succeeds alone.
    pub(crate) broken: Vec<String>,
}

/// Moves the pairs with the requested variant, in batches per kernel.
pub(crate) fn try_out(toolchain: &Toolchain, label: &str, pairs: &[&Pair], variant: Option<&str>) -> Tried {
    let mut tried = Tried::default();
    for (at, batch) in batches(pairs).iter().enumerate() {
        let name = format!("permute_{label}_{at}");
        match run_batch(toolchain, &name, batch, variant) {
            Ok(trials) => {
                tried.trials.extend(batch.iter().zip(trials).map(|(pair, trial)| (pair.number, Ok(trial))));
            }
            Err(why) => tried.one_by_one(toolchain, &name, batch, variant, &why),
        }
    }
    tried
}

impl Tried {
    /// Moves the pairs of a failed kernel individually, to find those that fail.
    fn one_by_one(&mut self, toolchain: &Toolchain, name: &str, batch: &[&Pair], variant: Option<&str>, why: &str) {
        let alone = |pair: &Pair| {
            let name = format!("{name}_{}", pair.number);
            let trials = run_batch(toolchain, &name, &[pair], variant)?;
            trials.into_iter().next().ok_or_else(|| "the kernel has no pair".to_string())
        };
        let trials: Vec<_> = batch.iter().map(|&pair| (pair.number, alone(pair))).collect();
        if trials.iter().all(|(_, trial)| trial.is_ok()) {
            self.broken.push(format!("{name}: {why}"));
        }
        self.trials.extend(trials);
    }
}

/// Compiles and runs one kernel. An error applies to all of its pairs.
fn run_batch(toolchain: &Toolchain, name: &str, pairs: &[&Pair], variant: Option<&str>) -> Result<Vec<Trial>, String> {
    let kernel = kernel_of(name, pairs, variant);
    let artifact = compile(kernel, &Options::new(TARGET)).map_err(|found| format!("{found:?}"))?;
    let built =
        toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| format!("{:?}", failure.diagnostics))?;
    check_build(&built)?;
    let inputs: Vec<HostTensor> = pairs.iter().map(|pair| pair.input()).collect();
    let outcome =
        run(&artifact, &built, &inputs, &Device::Virtual).map_err(|failure| format!("{:?}", failure.diagnostics))?;
    let report = outcome.report.as_ref().ok_or("the virtual GPU returned no counts")?;
    let tried = pairs.iter().zip(&outcome.outputs).map(|(pair, output)| trial(pair, &artifact, report, output));
    tried.collect()
}

/// Requires, as for every case: no spills, no stack, no warnings.
fn check_build(built: &Built) -> Result<(), String> {
    let resources = built.resources.as_ref().ok_or("NVRTC reported no register usage")?;
    if resources.spill_store_bytes + resources.spill_load_bytes + resources.stack_bytes > 0 {
        return Err(format!("spills or stack: {resources:?}"));
    }
    if built.warnings.is_empty() { Ok(()) } else { Err(format!("warnings: {:?}", built.warnings)) }
}

/// Checks one pair of a kernel: its result and the passes of its op.
fn trial(pair: &Pair, artifact: &Artifact, report: &Report, output: &HostTensor) -> Result<Trial, String> {
    let head = format!("{}: ", pair.title());
    let plan = artifact.plans().iter().find(|plan| plan.title.starts_with(&head));
    let plan = plan.ok_or_else(|| format!("no op has the title `{head}`"))?;
    let mismatch = compare(output, &pair.expected(), Tolerance::EXACT).mismatch;
    let mut wrong = mismatch.map(|mismatch| format!("{mismatch:?}"));
    let mut wavefronts = [0; 2];
    for (phase, kind) in [AccessKind::Load, AccessKind::Store].into_iter().enumerate() {
        for memory in [MemoryKind::Shared, MemoryKind::Global] {
            let counted = counted_passes(artifact, plan, memory, kind, &report.accesses);
            let predicted = predicted_passes(plan, memory, kind);
            if memory == MemoryKind::Shared {
                wavefronts[phase] = counted;
            }
            if counted > predicted {
                let passes = memory.passes();
                wrong = wrong.or(Some(format!("{kind:?}: {counted} {passes} counted, {predicted} predicted")));
            }
        }
    }
    Ok(Trial { variant: plan.chosen, considered: plan.considered.clone(), wavefronts, wrong })
}

/// The predicted passes of one op's loads or stores in one memory; the op runs once.
fn predicted_passes(plan: &OpPlan, memory: MemoryKind, kind: AccessKind) -> u64 {
    let kind = match kind {
        AccessKind::Load => access::AccessKind::Load,
        AccessKind::Store | AccessKind::Atomic => access::AccessKind::Store,
    };
    let accesses = plan.facts().into_iter().flat_map(|facts| &facts.accesses);
    accesses.filter(|a| a.memory == memory && a.kind == kind).map(|a| a.passes as u64).sum()
}

/// The counted passes of one op's loads or stores in one memory.
fn counted_passes(
    artifact: &Artifact,
    plan: &OpPlan,
    memory: MemoryKind,
    kind: AccessKind,
    counted: &[AccessCount],
) -> u64 {
    let space = if memory == MemoryKind::Shared { Space::Shared } else { Space::Global };
    let of_op = |a: &&AccessCount| {
        let origin = a.cuda_line.and_then(|line| artifact.source_map().origin(line));
        a.space == space && a.kind == kind && origin.is_some_and(|origin| origin.title == plan.title)
    };
    let passes_of = |a: &AccessCount| if memory == MemoryKind::Shared { a.wavefronts } else { a.sectors };
    counted.iter().filter(of_op).map(passes_of).sum()
}
