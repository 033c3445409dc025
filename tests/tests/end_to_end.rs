//! Every case compiled, run on the virtual GPU and checked: result, spills, and counted passes against predicted ones.
//!
//! With NVRTC, cases are compiled afresh; without it, what is committed under `fixtures/ptx` runs and the rest is
//! counted and named. `TILEWRIGHT_BLESS=1` writes the committed PTX anew.

use std::path::PathBuf;
use std::process::ExitCode;

use tilewright::compile::Artifact;
use tilewright::ir::plan::{Memory, OpPlan};
use tilewright::prelude::Target;
use tilewright::runtime::{
    AccessCount, AccessKind, Built, CudaText, Device, Origin, Run, Space, Toolchain, compare, run,
};
use tilewright_tests::cases::{Case, all};
use tilewright_tests::edits;
use tilewright_tests::toolchain::{fixtures, is_blessing, keep_fixture, skip, toolchain};

/// How one case on one target ended.
enum Ended {
    Ran { from_fixture: bool },
    Skipped,
    Failed(String),
}

fn main() -> ExitCode {
    let filter: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let toolchain = toolchain();
    let (mut ran, mut from_fixtures, mut skipped, mut failed) = (0, 0, Vec::new(), 0);
    let mut used = edits::committed(&toolchain);
    for case in all() {
        for target in Target::ALL {
            let name = format!("{} {target}", case.name);
            if !filter.iter().all(|word| name.contains(word.as_str())) {
                continue;
            }
            match attempt(&toolchain, &case, *target, &mut used) {
                Ended::Ran { from_fixture } => {
                    ran += 1;
                    from_fixtures += usize::from(from_fixture);
                }
                Ended::Skipped => skipped.push(name),
                Ended::Failed(why) => {
                    failed += 1;
                    println!("failed {name}: {why}");
                }
            }
        }
    }
    if filter.is_empty() && failed == 0 && skipped.is_empty() {
        failed += strangers(&used);
    }
    for name in &skipped {
        skip(&format!("end to end: {name}"));
        println!("skipped {name}: no NVRTC, and no committed PTX for this text");
    }
    let skips = skipped.len();
    println!("end to end: {ran} passed ({from_fixtures} from committed PTX), {failed} failed, {skips} skipped");
    if failed == 0 && (ran > 0 || !filter.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Committed PTX that no case uses any more: deleted when blessing, else counted.
fn strangers(used: &[PathBuf]) -> usize {
    let files = std::fs::read_dir(fixtures().folder()).into_iter().flatten().flatten().map(|entry| entry.path());
    let unused: Vec<PathBuf> = files.filter(|path| !used.contains(path)).collect();
    for path in &unused {
        if is_blessing() {
            let _ = std::fs::remove_file(path);
        } else {
            println!("failed {}: no case uses it; run `cargo xtask test --bless`", path.display());
        }
    }
    if is_blessing() { 0 } else { unused.len() }
}

fn attempt(toolchain: &Toolchain, case: &Case, target: Target, used: &mut Vec<PathBuf>) -> Ended {
    let artifact = match case.compile(target) {
        Ok(artifact) => artifact,
        Err(found) => return Ended::Failed(found.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("; ")),
    };
    let built = match toolchain.build(&artifact, &CudaText::Generated) {
        Ok(built) => built,
        Err(failure) if failure.diagnostics[0].code == "R0601" => return Ended::Skipped,
        Err(failure) => return Ended::Failed(failure.to_string()),
    };
    used.push(fixtures().file_for(&artifact, &built).0);
    match check(case, &artifact, &built) {
        Ok(()) => Ended::Ran { from_fixture: matches!(built.origin, Origin::Fixture(_)) },
        Err(why) => Ended::Failed(why),
    }
}

fn check(case: &Case, artifact: &Artifact, built: &Built) -> Result<(), String> {
    let resources = built.resources.as_ref().ok_or("NVRTC says nothing of registers")?;
    if resources.spill_store_bytes + resources.spill_load_bytes + resources.stack_bytes > 0 {
        return Err(format!("spills or stack: {resources:?}"));
    }
    if !built.warnings.is_empty() {
        return Err(format!("warnings: {:?}", built.warnings));
    }
    let outcome =
        run(artifact, built, &case.inputs, &Device::Virtual).map_err(|failure| format!("{:?}", failure.diagnostics))?;
    for (got, expected) in outcome.outputs.iter().zip(&case.expected) {
        if let Some(mismatch) = compare(got, expected, case.tolerance).mismatch {
            return Err(format!("{mismatch:?}"));
        }
    }
    check_counts(case, artifact, &outcome)?;
    keep_fixture(artifact, built)
}

/// Counted passes are never above what the plan predicts for as many bytes, and ideal where the case says so.
fn check_counts(case: &Case, artifact: &Artifact, outcome: &Run) -> Result<(), String> {
    let report = outcome.report.as_ref().ok_or("the virtual GPU counted nothing")?;
    for plan in artifact.plans() {
        for memory in [Memory::Shared, Memory::Global] {
            for kind in [AccessKind::Load, AccessKind::Store] {
                check_op(artifact, plan, memory, kind, &report.accesses)?;
            }
        }
    }
    let conflicts = report.accesses.iter().find(|a| a.space == Space::Shared && a.wavefronts > a.ideal_wavefronts);
    match conflicts {
        Some(access) if case.ideal => Err(format!("a bank conflict: {access:?}")),
        _ => Ok(()),
    }
}

/// The passes that one op's loads or stores in one memory took, against its plan.
fn check_op(
    artifact: &Artifact,
    plan: &OpPlan,
    memory: Memory,
    kind: AccessKind,
    counted: &[AccessCount],
) -> Result<(), String> {
    let verb = if kind == AccessKind::Load { "read" } else { "write" };
    let accesses = plan.facts().into_iter().flat_map(|f| &f.accesses);
    let one: i64 = accesses.filter(|a| a.memory == memory && a.what.starts_with(verb)).map(|a| a.passes).sum();
    let predicted = (one * plan.executions) as u64;
    let space = if memory == Memory::Shared { Space::Shared } else { Space::Global };
    let of_op = |a: &&AccessCount| {
        let origin = a.cuda_line.and_then(|line| artifact.source_map().origin(line));
        a.space == space && a.kind == kind && origin.is_some_and(|o| o.span == plan.span && o.title == plan.title)
    };
    let passes_of = |a: &AccessCount| if memory == Memory::Shared { a.wavefronts } else { a.sectors };
    let passes: u64 = counted.iter().filter(of_op).map(passes_of).sum();
    if passes > predicted {
        return Err(format!("{}: {passes} {} counted, {predicted} predicted", plan.title, memory.passes()));
    }
    Ok(())
}
