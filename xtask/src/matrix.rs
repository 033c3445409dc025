//! `test kernels`: every kernel whose layouts are inferred, in many sizes, for every target, on the virtual GPU or a GPU.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::diag::Diagnostic;
use tilewright::prelude::Target;
use tilewright::runtime::{CudaText, Device, DeviceChoice, Failure, Mismatch, Toolchain, compare_all, run as launch};
use tilewright_kernels::{Config, ConfigError, KERNELS, KernelEntry};
use tilewright_tests::fuzz::spread;

use crate::defect::with_report;
use crate::exit::Exit;
use crate::terminal::{count_bar, fail, print_error};
use crate::toolchain::provisioned;

/// Rows and columns. 50 rows do not divide into whole blocks.
const SHAPES: [(i64, i64); 8] = [(50, 64), (50, 128), (50, 24), (50, 40), (50, 48), (50, 96), (50, 100), (7, 13)];
/// Threads of a CTA.
const THREADS: [i64; 5] = [32, 64, 128, 192, 256];

/// How many values each size that is known at launch has, in every dtype.
const RAGGED: i64 = 6;

/// The value of a size that is known at launch, `place` of them behind the first: tiny ones, ones beside the default, and ones
/// that nothing divides.
fn ragged(value: i64, place: i64, default: i64) -> i64 {
    match value {
        0 => 1,
        1 => 2 + place,
        2 => 17 + 16 * place,
        3 => (default - 1).max(1),
        4 => default + 1,
        _ => 2 * default + 3 + place,
    }
}

/// A kernel in one size for one target.
struct Job {
    entry: &'static KernelEntry,
    /// Its dtype and sizes.
    config: Config,
    target: Target,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// It ran, and its result is right.
    Ran,
    /// It did not run, or its result is wrong.
    Failed(String),
    /// The compiler rejected it, for this reason.
    Refused(String),
    /// The compiler met a defect of its own. The text names the file with the report.
    Defect(String),
}

/// Runs the kernels whose name contains `name` on a device, for all targets or one.
pub(crate) fn run(name: &str, device: DeviceChoice, target: Option<Target>) -> Exit {
    let mut jobs = match jobs(name) {
        Ok(jobs) => jobs,
        Err(error) => return fail(Exit::BadInput, &error),
    };
    jobs.retain(|job| target.is_none_or(|target| job.target == target));
    if jobs.is_empty() {
        print_error(&format!("no kernel with inferred layouts has `{name}` in its name"));
        return Exit::BadInput;
    }
    let toolchain = match toolchain() {
        Ok(toolchain) => toolchain,
        Err(exit) => return exit,
    };
    let bar = count_bar("kernels", jobs.len() as u64);
    // A GPU belongs to the thread that opened it.
    let outcome = |at: u64| {
        let job = &jobs[at as usize];
        match Device::choose(device, job.target.name()) {
            Ok(device) => job.outcome(&toolchain, &device),
            Err(failure) => Outcome::Failed(first(&failure.diagnostics)),
        }
    };
    let work = |part: Range<u64>| -> Vec<Outcome> { part.map(outcome).collect() };
    let outcomes: Vec<Outcome> =
        spread(jobs.len() as u64, 1, &work, &|count| bar.inc(count)).into_iter().flatten().collect();
    bar.finish_and_clear();
    report(&jobs, &outcomes)
}

fn report(jobs: &[Job], outcomes: &[Outcome]) -> Exit {
    let (mut ran, mut failed, mut refused, mut defects) = (0, 0, 0, 0);
    for (job, outcome) in jobs.iter().zip(outcomes) {
        match outcome {
            Outcome::Ran => ran += 1,
            Outcome::Failed(why) => {
                failed += 1;
                say!("failed {job}: {why}");
            }
            Outcome::Refused(why) => {
                refused += 1;
                say!("refused {job}: {why}");
            }
            Outcome::Defect(why) => {
                defects += 1;
                say!("defect {job}: {why}");
            }
        }
    }
    let with_defects = if defects == 0 { String::new() } else { format!(", {defects} with defects of Tilewright") };
    say!("matrix: {ran} ran, {failed} failed, {refused} refused{with_defects}");
    match (defects, failed) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Differs,
        _ => Exit::Defect,
    }
}

/// A toolchain with an NVRTC for every target.
fn toolchain() -> Result<Toolchain, Exit> {
    let toolchain = provisioned(Target::ALL[0].name());
    for target in Target::ALL {
        toolchain.nvrtc(target.name()).map_err(|error| {
            print_error(&error.to_string());
            Exit::Unsupported
        })?;
    }
    Ok(toolchain)
}

/// Every kernel in the configurations that the tests run, each with a size `threads` in all combinations of its sizes, and each
/// with sizes that are known at launch in ragged ones, for every target.
fn jobs(name: &str) -> Result<Vec<Job>, ConfigError> {
    let has = |entry: &KernelEntry, size: &str| entry.shape.iter().any(|key| key.name == size);
    let mut jobs: Vec<Job> = Vec::new();
    for entry in KERNELS.iter().filter(|entry| entry.name.contains(name)) {
        let mut configs: Vec<Config> = entry.tested_configs()?;
        let shapes: &[(i64, i64)] = if has(entry, "threads") { &SHAPES } else { &[] };
        for (rows, cols) in shapes.iter().copied() {
            for threads in THREADS {
                let is_product = has(entry, "m");
                let n = if is_product { cols } else { rows * cols };
                let given = [("rows", rows), ("cols", cols), ("m", rows), ("n", n), ("k", cols), ("threads", threads)];
                let known = given.into_iter().filter(|(size, _)| has(entry, size));
                let sizes: Vec<(String, i64)> = known.map(|(size, value)| (size.to_string(), value)).collect();
                let config = entry.config(None, &sizes)?;
                // A kernel without rows or columns has the same configuration for several shapes.
                if !configs.contains(&config) {
                    configs.push(config);
                }
            }
        }
        for config in ragged_configs(entry)? {
            if !configs.contains(&config) {
                configs.push(config);
            }
        }
        for config in configs {
            jobs.extend(Target::ALL.iter().map(|target| Job { entry, config: config.clone(), target: *target }));
        }
    }
    Ok(jobs)
}

/// A kernel in every dtype, with ragged values of the sizes that are known at launch.
fn ragged_configs(entry: &KernelEntry) -> Result<Vec<Config>, ConfigError> {
    let default = entry.config(None, &[])?;
    let sizes = entry.sizes(&default);
    let values = if sizes.is_empty() { 0 } else { RAGGED };
    let with = |dtype, value| {
        let at = |(place, (name, default)): (i64, &(&str, i64))| (name.to_string(), ragged(value, place, *default));
        let given: Vec<(String, i64)> = (0..).zip(&sizes).map(at).collect();
        entry.config(Some(dtype), &given)
    };
    let all = entry.dtypes.iter().flat_map(|dtype| (0..values).map(move |value| (*dtype, value)));
    all.map(|(dtype, value)| with(dtype, value)).collect()
}

impl Job {
    /// A panic of the compiler is a failure of this job alone; its message goes to stderr.
    fn outcome(&self, toolchain: &Toolchain, device: &Device) -> Outcome {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(toolchain, device)));
        attempt.unwrap_or_else(|_| Outcome::Failed("a panic".to_string()))
    }

    fn attempt(&self, toolchain: &Toolchain, device: &Device) -> Outcome {
        let options = Options::new(self.target);
        let kernel = (self.entry.build)(&self.config, self.target);
        let artifact = compile(kernel.clone(), &options);
        match artifact.and_then(|artifact| artifact.for_sizes(&self.entry.sizes(&self.config))) {
            Ok(artifact) => self.check(toolchain, &artifact, device).map_or_else(|outcome| outcome, |()| Outcome::Ran),
            Err(found) => outcome_of(&kernel.to_string(), &options, found, Outcome::Refused),
        }
    }

    /// Runs the kernel and compares every element. Error: what is wrong.
    fn check(&self, toolchain: &Toolchain, artifact: &Artifact, device: &Device) -> Result<(), Outcome> {
        let failed = |failure: Failure| {
            let options = Options::new(self.target);
            outcome_of(&artifact.stage(Stage::Tile), &options, failure.diagnostics, Outcome::Failed)
        };
        let built = toolchain.build(artifact, &CudaText::Generated).map_err(failed)?;
        let inputs = (self.entry.inputs)(&self.config);
        let run = launch(artifact, &built, &inputs, device).map_err(failed)?;
        let expected = (self.entry.reference)(&self.config, &inputs);
        let compared = compare_all(&run.outputs, &expected, (self.entry.tolerance)(&self.config));
        let compared = compared.map_err(|why| Outcome::Failed(why.to_string()))?;
        match compared.into_iter().find_map(|comparison| comparison.mismatch) {
            None => Ok(()),
            Some(wrong) => {
                let Mismatch { index, expected, got, .. } = wrong;
                Err(Outcome::Failed(format!("element {index:?}: expected {expected}, got {got}")))
            }
        }
    }
}

/// How a job with these findings ended: as `otherwise` says, unless a defect is among them, which is kept in a file.
fn outcome_of(kernel: &str, options: &Options, found: Vec<Diagnostic>, otherwise: fn(String) -> Outcome) -> Outcome {
    let found = with_report(|| kernel.to_string(), options, found);
    match found.iter().find(|finding| finding.is_internal()) {
        Some(defect) => Outcome::Defect(format!("{}: {}; {}", defect.code, defect.message, defect.help.join("; "))),
        None => otherwise(first(&found)),
    }
}

impl fmt::Display for Job {
    /// `softmax f32 rows=7 cols=13 threads=64 sm_100a`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.entry.name, self.config, self.target)
    }
}

/// The first of some diagnostics, on one line.
fn first(found: &[Diagnostic]) -> String {
    found.first().map_or_else(|| "no reason".to_string(), |one| format!("{}: {}", one.code, one.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_kernels::find;

    #[test]
    fn a_kernel_runs_once_in_every_size_that_it_has() {
        let count = |name: &str| jobs(name).map(|jobs| jobs.len());
        let tested = |name: &str| find(name).map_or(0, |entry| entry.tested.len() + 1);
        assert_eq!(count("sf_transpose"), Ok((tested("sf_transpose") + tested("sf_transpose_global")) * 2));
        // The default configuration has 64 threads.
        assert_eq!(count("plan_then_buffer_layout"), Ok(5 * 2));
        // Six dtypes, each in six ragged sizes.
        assert_eq!(count("transpose_2d"), Ok((tested("transpose_2d") + 6 * 6) * 2));
    }

    #[test]
    fn a_job_is_named_by_what_run_kernel_takes() {
        let jobs = jobs("softmax").expect("sizes of the kernel");
        assert_eq!(jobs[0].to_string(), "softmax f32 rows=64 cols=128 threads=128 sm_100a");
    }

    #[test]
    fn one_failure_fails_all() {
        let jobs = jobs("plan_then_buffer_layout").expect("sizes of the kernel");
        assert_eq!(report(&jobs[..2], &[Outcome::Ran, Outcome::Refused("I0705: no".to_string())]), Exit::Done);
        let failed = Outcome::Failed("a panic".to_string());
        assert_eq!(report(&jobs[..2], &[Outcome::Ran, failed.clone()]), Exit::Differs);
        assert_eq!(report(&jobs[..2], &[failed, Outcome::Defect("V0305: no".to_string())]), Exit::Defect);
    }

    #[test]
    fn a_defect_is_not_a_refusal() {
        let options = Options::new(Target::Sm90a);
        let ended = |found| outcome_of("kernel k\n", &options, vec![found], Outcome::Refused);
        let mistake = ended(Diagnostic::error("I0705", "no"));
        assert_eq!(mistake, Outcome::Refused("I0705: no".to_string()));
        let Outcome::Defect(told) = ended(Diagnostic::internal("V0305", "wrong")) else { panic!("a defect") };
        assert!(told.starts_with("V0305: wrong; please report it") && told.contains("the report was written to "));
    }
}
