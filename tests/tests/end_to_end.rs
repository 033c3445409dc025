//! Compiles every case, runs it on the virtual GPU, and checks the result, spills, and counted passes against predicted
//! ones.
//!
//! With NVRTC, all cases are compiled; without it, only cases with PTX under `fixtures/ptx` run, and the others are
//! listed as skipped. With NVRTC, it is also checked that the committed PTX is complete and all of it is needed;
//! `TILEWRIGHT_BLESS=1` rewrites it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use tilewright::compile::Artifact;
use tilewright::prelude::Target;
use tilewright::runtime::{Built, CudaText, Device, Origin, Run, Space, Toolchain, op_traffic, run};
use tilewright::vgpu::MAX_INSTRUCTIONS_PER_THREAD;
use tilewright_tests::cases::{Case, all, library};
use tilewright_tests::edits;
use tilewright_tests::fuzz::spread_over;
use tilewright_tests::quality::{Figures, Quality, path, title};
use tilewright_tests::toolchain::{fixtures, has_no_nvrtc, is_blessing, keep_fixture, skip, toolchain};

/// Kernels may execute at most 1 / `HEADROOM` of the virtual GPU's default instruction limit.
const HEADROOM: u64 = 100;

/// The outcome of one case on one target.
enum Ended {
    Ran { from_fixture: bool },
    Skipped,
    Failed(String),
}

fn main() -> ExitCode {
    let filter: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let toolchain = toolchain();
    let (mut ran, mut from_fixtures, mut skipped, mut failed) = (0, 0, Vec::new(), 0);
    let quality = Quality::committed();
    failed += quality.as_ref().err().map_or(0, |why| {
        println!("failed: {why}; run `cargo xtask report`");
        1
    });
    let quality = quality.unwrap_or_default();
    let mut used = edits::committed(&toolchain);
    let cases = all();
    let attempts: Vec<(&Case, Target)> = cases
        .iter()
        .flat_map(|case| Target::ALL.iter().map(move |target| (case, *target)))
        .filter(|attempt| filter.iter().all(|word| name_of(attempt).contains(word.as_str())))
        .collect();
    let ended = spread_over(&attempts, &|(case, target)| attempt(&toolchain, case, *target, &quality));
    for (attempt, (ended, committed)) in attempts.iter().zip(ended) {
        used.extend(committed);
        match ended {
            Ended::Ran { from_fixture } => {
                ran += 1;
                from_fixtures += usize::from(from_fixture);
            }
            Ended::Skipped => skipped.push(name_of(attempt)),
            Ended::Failed(why) => {
                failed += 1;
                println!("failed {}: {why}", name_of(attempt));
            }
        }
    }
    if filter.is_empty() && failed == 0 && skipped.is_empty() {
        failed += strangers(&used) + unreported(&quality);
    }
    for name in &skipped {
        skip(&format!("end to end: {name}"));
        println!("skipped {name}: no NVRTC, and no committed PTX for this text");
    }
    let skips = skipped.len();
    println!("end to end: {ran} passed ({from_fixtures} from committed PTX), {failed} failed, {skips} skipped");
    if failed == 0 && (ran > 0 || !filter.is_empty()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Committed PTX that is not needed: deleted when blessing, otherwise counted as a failure.
fn strangers(used: &[PathBuf]) -> usize {
    let files = std::fs::read_dir(fixtures().folder()).into_iter().flatten().flatten().map(|entry| entry.path());
    let unused: Vec<PathBuf> = files.filter(|path| !used.contains(path)).collect();
    for path in &unused {
        if is_blessing() {
            let _ = std::fs::remove_file(path);
        } else {
            println!("failed {}: it is not needed; run `cargo xtask test --bless`", path.display());
        }
    }
    if is_blessing() { 0 } else { unused.len() }
}

/// Kernels that the quality report lacks, and those that it has without need.
fn unreported(quality: &Quality) -> usize {
    let titles = library().into_iter().flat_map(|case| Target::ALL.iter().map(move |target| title(&case, *target)));
    let titles: BTreeSet<String> = titles.collect();
    let reported: BTreeSet<String> = quality.figures.keys().cloned().collect();
    let different: Vec<&String> = titles.symmetric_difference(&reported).collect();
    different
        .iter()
        .for_each(|case| println!("failed: {case} is not as in docs/quality.json; run `cargo xtask report`"));
    let is_page = std::fs::read_to_string(path("md")).is_ok_and(|page| page == quality.page());
    if !is_page {
        println!("failed: docs/quality.md is not the page of docs/quality.json; run `cargo xtask report`");
    }
    different.len() + usize::from(!is_page)
}

fn name_of((case, target): &(&Case, Target)) -> String {
    format!("{} {target}", case.name)
}

/// How a case ends, and its committed PTX, if it has some.
fn attempt(toolchain: &Toolchain, case: &Case, target: Target, quality: &Quality) -> (Ended, Option<PathBuf>) {
    let artifact = match case.compile(target) {
        Ok(artifact) => artifact,
        Err(found) => {
            let found: Vec<String> = found.iter().map(|finding| finding.to_string()).collect();
            return (Ended::Failed(found.join("; ")), None);
        }
    };
    let built = match toolchain.build(&artifact, &CudaText::Generated) {
        Ok(built) => built,
        Err(failure) if has_no_nvrtc(&failure) => return (Ended::Skipped, None),
        Err(failure) => return (Ended::Failed(failure.to_string()), None),
    };
    let is_committed = case.committed_targets().contains(&target);
    let committed = is_committed.then(|| fixtures().file_for(&artifact, &built).0);
    let kept = || if is_committed { keep_fixture(&artifact, &built) } else { Ok(()) };
    let ended = match check(case, &artifact, &built, quality).and_then(|()| kept()) {
        Ok(()) => Ended::Ran { from_fixture: matches!(built.origin, Origin::Fixture(_)) },
        Err(why) => Ended::Failed(why),
    };
    (ended, committed)
}

fn check(case: &Case, artifact: &Artifact, built: &Built, quality: &Quality) -> Result<(), String> {
    let resources = built.resources.as_ref().ok_or("NVRTC reported no register usage")?;
    if resources.spill_store_bytes + resources.spill_load_bytes + resources.stack_bytes > 0 {
        return Err(format!("spills or stack: {resources:?}"));
    }
    if !built.warnings.is_empty() {
        return Err(format!("warnings: {:?}", built.warnings));
    }
    let outcome =
        run(artifact, built, &case.inputs, &Device::Virtual).map_err(|failure| format!("{:?}", failure.diagnostics))?;
    case.compare(&outcome.outputs)?;
    check_counts(case, artifact, &outcome)?;
    check_headroom(artifact, &outcome)?;
    let figures = Figures::of(case, artifact, built, &outcome).ok_or("nothing was counted")?;
    match quality.worse(&title(case, artifact.target()), &figures).first() {
        None => Ok(()),
        Some(worse) => Err(format!("{worse}; `cargo xtask report --reason ..` accepts it")),
    }
}

/// Checks that the kernel stays far below the virtual GPU's limit.
fn check_headroom(artifact: &Artifact, outcome: &Run) -> Result<(), String> {
    let executed = outcome.report.as_ref().map_or(0, |report| report.thread_instructions);
    let ctas: i64 = artifact.grid().iter().product();
    let threads = (ctas * artifact.threads()) as u64;
    if executed.saturating_mul(HEADROOM) > threads.saturating_mul(MAX_INSTRUCTIONS_PER_THREAD) {
        return Err(format!("{executed} instructions of {threads} threads are close to the virtual GPU's limit"));
    }
    Ok(())
}

/// Checks that counted passes do not exceed the plan's prediction for the same bytes, and are ideal if the case
/// requires it.
fn check_counts(case: &Case, artifact: &Artifact, outcome: &Run) -> Result<(), String> {
    let report = outcome.report.as_ref().ok_or("the virtual GPU returned no counts")?;
    let traffic = op_traffic(artifact, report).map_err(|defect| defect.to_string())?;
    if let Some(above) = traffic.into_iter().find(|op| op.counted > op.predicted) {
        return Err(above.to_string());
    }
    let conflicts = report.accesses.iter().find(|a| a.space == Space::Shared && a.wavefronts > a.ideal_wavefronts);
    match conflicts {
        Some(access) if case.ideal => Err(format!("bank conflict: {access:?}")),
        _ => Ok(()),
    }
}
