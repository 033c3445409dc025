//! `run-kernel`: from the DSL to a checked result.

use std::path::PathBuf;

use clap::{Args, value_parser};
use serde_json::{Value, json};
use tilewright::compile::{Artifact, Parameter};
use tilewright::files::read_text;
use tilewright::ir::plan::OpPlan;
use tilewright::runtime::{
    AccessKind, Built, Comparison, CudaText, Device, DeviceChoice, Failure, HostTensor, OpTraffic, Origin, Resources,
    Run, TensorError, Tolerance, compare_all, counted_instructions, op_traffic, run_watched, spill_error,
};
use tilewright::vgpu::{BulkCount, MAX_INSTRUCTIONS_PER_THREAD, Options};

use crate::counted::{counted, shows};
use crate::exit::Exit;
use crate::request::{Compiled, KernelArguments};
use crate::terminal::{fail, launch_bar, paint, print_diagnostics, print_error, show_launch};
use crate::toolchain::provisioned;

/// Arguments of `run-kernel`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    kernel: KernelArguments,
    /// Where to run: auto uses a GPU that can run the target, or else the virtual GPU.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Run this CUDA text, edited by hand, in place of the generated one.
    #[arg(long, value_name = "FILE")]
    cuda: Option<PathBuf>,
    /// On the virtual GPU: how many instructions per thread a CTA may execute before it is stopped.
    #[arg(long, value_name = "N", default_value_t = MAX_INSTRUCTIONS_PER_THREAD)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    max_instructions: u64,
    /// Run the kernel even if it spills registers to memory.
    #[arg(long)]
    allow_spills: bool,
    /// Print every counted line, not only the first 40 followed by sums for each op.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Everything that is reported about a run.
struct Outcome {
    compiled: Compiled,
    built: Built,
    device: Device,
    run: Run,
    /// For each output, its name and the comparison with the reference.
    comparisons: Vec<(String, Comparison)>,
    /// What each op moved, if it was counted.
    traffic: Vec<OpTraffic>,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    let outcome = match attempt(arguments) {
        Ok(outcome) => outcome,
        Err(exit) => return exit,
    };
    if arguments.json {
        say!("{}", outcome.json());
    } else {
        outcome.print(arguments.all);
    }
    if outcome.is_right() { Exit::Done } else { Exit::Differs }
}

fn attempt(arguments: &Arguments) -> Result<Outcome, Exit> {
    let bad = |text: String| {
        print_error(&text);
        Exit::BadInput
    };
    let choice: DeviceChoice = arguments.device.parse().map_err(bad)?;
    let text = match &arguments.cuda {
        None => CudaText::Generated,
        Some(path) => {
            let text = read_text(path).map_err(|error| bad(error.to_string()))?;
            if text.contains('\0') {
                return Err(bad(format!("{} contains a zero byte; it is not CUDA text", path.display())));
            }
            CudaText::Edited { path: path.clone(), text }
        }
    };
    let compiled = arguments.kernel.compile()?;
    compiled.warn()?;
    let failed = |failure: Failure| compiled.failed(failure);
    let target = compiled.artifact.target().name();
    let device = Device::choose(choice, target).map_err(failed)?;
    let built = provisioned(target).build(&compiled.artifact, &text).map_err(failed)?;
    print_diagnostics(&built.warnings);
    for note in &built.notes {
        eprintln!("note: {note}");
    }
    let resources = built.resources.as_ref().filter(|_| !arguments.allow_spills);
    if let Some(spilled) = resources.and_then(|resources| spill_error(&compiled.artifact, resources)) {
        print_diagnostics(&[spilled]);
        return Err(Exit::BadInput);
    }
    let inputs = (compiled.entry.inputs)(&compiled.config);
    let run = launch(arguments, &compiled, &built, &inputs, &device).map_err(failed)?;
    let expected = (compiled.entry.reference)(&compiled.config, &inputs);
    let comparisons =
        compared(compiled.artifact.parameters(), &run.outputs, &expected, (compiled.entry.tolerance)(&compiled.config));
    let comparisons = comparisons.map_err(|why| fail(Exit::Differs, &why))?;
    let traffic = traffic(&compiled, &run)?;
    Ok(Outcome { compiled, built, device, run, comparisons, traffic })
}

/// The name of each output, with its comparison with the reference. Error: a reference that lacks an output.
fn compared(
    parameters: &[Parameter],
    got: &[HostTensor],
    expected: &[HostTensor],
    tolerance: Tolerance,
) -> Result<Vec<(String, Comparison)>, TensorError> {
    let names = parameters.iter().filter(|parameter| parameter.is_output()).map(|parameter| parameter.name.clone());
    Ok(names.zip(compare_all(got, expected, tolerance)?).collect())
}

/// The traffic of every op, as far as it was counted.
fn traffic(compiled: &Compiled, run: &Run) -> Result<Vec<OpTraffic>, Exit> {
    let Some(report) = &run.report else { return Ok(Vec::new()) };
    let traffic = op_traffic(&compiled.artifact, report);
    traffic.map_err(|defect| compiled.fail_on(vec![defect], Exit::Fault))
}

/// Runs the kernel, and shows the progress of a long run of the virtual GPU on a terminal.
fn launch(
    arguments: &Arguments,
    compiled: &Compiled,
    built: &Built,
    inputs: &[HostTensor],
    device: &Device,
) -> Result<Run, Failure> {
    let options = Options { max_instructions_per_thread: arguments.max_instructions, ..Options::default() };
    let bar = launch_bar();
    let mut watch = |progress| show_launch(&bar, progress);
    let run = run_watched(&compiled.artifact, built, inputs, device, &options, &mut watch);
    bar.finish_and_clear();
    run
}

fn line(name: &str, text: &str) {
    say!("{} {text}", paint("1", &format!("{name:<10}")));
}

impl Outcome {
    fn is_right(&self) -> bool {
        self.comparisons.iter().all(|(_, comparison)| comparison.mismatch.is_none())
    }

    fn max_error(&self) -> f64 {
        self.comparisons.iter().map(|(_, comparison)| comparison.max_error).fold(0.0, f64::max)
    }

    fn print(&self, all: bool) {
        let artifact = &self.compiled.artifact;
        line("kernel", &kernel_title(artifact));
        line("device", &self.device.to_string());
        line("target", artifact.target().name());
        line("shape", &self.compiled.config.to_string());
        line("compiled", &self.origin());
        for plan in artifact.plans() {
            print_plan(plan);
        }
        if let Some(counts) = &self.run.report {
            let counted = counted(artifact, &self.built, &counts.accesses, all);
            for text in &counted.lines {
                line("counted", text);
            }
            if let Some(text) = &counted.note {
                line("note", text);
            }
            if counts.bulk.copies > 0 {
                let BulkCount { copies, bytes, sectors, ideal_sectors } = counts.bulk;
                line("engine", &format!("{copies} copies, {bytes} bytes, {sectors} sectors (ideal {ideal_sectors})"));
            }
            for op in &self.traffic {
                line("checked", &op.to_string());
            }
            for note in counts.notes.iter().filter(|note| note.name == "benign_race") {
                line("note", &format!("{} at PTX line {}, count {}", note.name, note.ptx_line, note.count));
            }
            let (counted, threads) = (counted_instructions(counts), counts.thread_instructions);
            line("executed", &format!("{counted} warp instructions, {threads} thread instructions"));
        }
        line("registers", &resources(self.built.resources.as_ref()));
        if let Some(timing) = self.run.timing {
            line("time", &self.timing_text(timing.milliseconds, timing.launches));
        }
        line("max error", &self.max_error().to_string());
        self.print_verdict();
    }

    fn print_verdict(&self) {
        for (name, comparison) in self.comparisons.iter().filter(|(_, comparison)| comparison.not_finite > 0) {
            let count = comparison.not_finite;
            let (are, them) = if count == 1 { (" is", "it must") } else { ("s are", "they must") };
            line(
                "not finite",
                &format!("{count} element{are} NaN or infinite in the reference of `{name}`; {them} match exactly"),
            );
        }
        for (output, (name, comparison)) in self.comparisons.iter().enumerate() {
            let Some(mismatch) = &comparison.mismatch else { continue };
            let index: Vec<String> = mismatch.index.iter().map(i64::to_string).collect();
            say!("{name}[{}]: expected {}, got {}", index.join(", "), mismatch.expected, mismatch.got);
            if let Some(owner) = self.run.owner(output, mismatch.flat) {
                say!("  written by {owner}");
            }
            say!("  elements of `{name}` that differ: {}", comparison.mismatches);
        }
        say!("{}", if self.is_right() { paint("1;32", "ok") } else { paint("1;31", "wrong") });
    }

    fn origin(&self) -> String {
        match &self.built.origin {
            Origin::Nvrtc { version: (major, minor), path } => {
                format!("by NVRTC {major}.{minor} at {}", path.display())
            }
            Origin::Fixture(path) => format!("from committed PTX {}", path.display()),
        }
    }

    fn timing_text(&self, milliseconds: f64, launches: u32) -> String {
        let bytes: i64 =
            self.compiled.artifact.parameters().iter().map(|p| p.memory_elements() * p.dtype.bytes()).sum();
        let rate = bytes as f64 / (milliseconds * 1e-3) / 1e9;
        format!("{milliseconds:.4} ms (mean of {launches} launches), {rate:.1} GB/s")
    }

    fn json(&self) -> Value {
        let artifact = &self.compiled.artifact;
        let sizes: serde_json::Map<String, Value> =
            self.compiled.config.sizes().map(|(name, value)| (name.to_string(), json!(value))).collect();
        let accesses = self.run.report.iter().flat_map(|r| &r.accesses).filter(|a| shows(a)).map(|a| {
            json!({
                "ptx_line": a.ptx_line, "cuda_line": a.cuda_line, "space": a.space.as_str(),
                "bytes_per_lane": a.bytes_per_lane, "executions": a.executions, "wavefronts": a.wavefronts,
                "ideal_wavefronts": a.ideal_wavefronts, "sectors": a.sectors, "ideal_sectors": a.ideal_sectors,
                "bytes": a.bytes,
            })
        });
        let outputs = self.comparisons.iter().enumerate().map(|(output, (name, c))| {
            let first = c.mismatch.as_ref().map(|m| {
                json!({"index": m.index, "expected": m.expected, "got": m.got, "owner": self.run.owner(output, m.flat)})
            });
            json!({"name": name, "max_error": c.max_error, "mismatches": c.mismatches, "not_finite": c.not_finite, "first_mismatch": first})
        });
        let registers = self.built.resources.as_ref().map(|r| {
            json!({
                "registers": r.registers, "spill_store_bytes": r.spill_store_bytes,
                "spill_load_bytes": r.spill_load_bytes, "stack_bytes": r.stack_bytes, "shared_bytes": r.shared_bytes,
            })
        });
        json!({
            "kernel": artifact.name(),
            "entry": artifact.entry(),
            "device": self.device.to_string(),
            "target": artifact.target().name(),
            "dtype": self.compiled.config.dtype.name(),
            "shape": sizes,
            "compiled": self.origin(),
            "plans": artifact.plans().iter().map(plan_json).collect::<Vec<_>>(),
            "accesses": accesses.collect::<Vec<_>>(),
            "thread_instructions": self.run.report.as_ref().map(|r| r.thread_instructions),
            "warp_instructions": self.run.report.as_ref().map(counted_instructions),
            "bulk": self.run.report.as_ref().map(|r| {
                let BulkCount { copies, bytes, sectors, ideal_sectors } = r.bulk;
                json!({"copies": copies, "bytes": bytes, "sectors": sectors, "ideal_sectors": ideal_sectors})
            }),
            "passes": self.traffic.iter().map(traffic_json).collect::<Vec<_>>(),
            "resources": registers,
            "milliseconds": self.run.timing.map(|t| t.milliseconds),
            "outputs": outputs.collect::<Vec<_>>(),
            "max_error": self.max_error(),
            "ok": self.is_right(),
        })
    }
}

/// The kernel's name, and its name in CUDA if that differs.
fn kernel_title(artifact: &Artifact) -> String {
    let (name, entry) = (artifact.name(), artifact.entry());
    if name == entry { name.to_string() } else { format!("{name}, in CUDA {entry}") }
}

fn print_plan(plan: &OpPlan) {
    line("plan", &format!("{}  {}", plan.title, plan.span));
    for barrier in &plan.barriers {
        line("", &format!("  {}: {}", barrier.what, barrier.reason));
    }
    if let Some(facts) = plan.facts() {
        line("", &format!("  {}: {}", plan.chosen, facts.summary));
        for access in &facts.accesses {
            line("", &format!("    {access}"));
        }
    }
}

fn plan_json(plan: &OpPlan) -> Value {
    let accesses = plan.facts().into_iter().flat_map(|facts| &facts.accesses).map(|a| {
        json!({"what": a.what(), "width": a.width, "count": a.count, "passes": a.passes, "ideal": a.ideal, "unit": a.memory.passes()})
    });
    json!({
        "op": plan.title, "span": plan.span.to_string(), "variant": plan.chosen, "forced": plan.forced,
        "cost": plan.facts().map(|f| f.cost()), "summary": plan.facts().map(|f| f.summary.clone()),
        "accesses": accesses.collect::<Vec<_>>(),
        "barriers": plan.barriers.iter().map(|b| json!({"what": b.what, "reason": b.reason})).collect::<Vec<_>>(),
    })
}

fn traffic_json(op: &OpTraffic) -> Value {
    let verb = if op.kind == AccessKind::Load { "read" } else { "write" };
    json!({
        "op": op.title, "access": verb, "unit": op.memory.passes(), "predicted": op.predicted, "counted": op.counted,
    })
}

fn resources(resources: Option<&Resources>) -> String {
    let Some(r) = resources else { return "unknown: NVRTC did not report them".to_string() };
    let spills = r.spill_store_bytes + r.spill_load_bytes;
    let spills = if spills == 0 { "0 spills".to_string() } else { format!("{spills} bytes of SPILLS") };
    format!("{}, {spills}, {} bytes stack, {} bytes shared", r.registers, r.stack_bytes, r.shared_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::compile;
    use tilewright::prelude::Target;
    use tilewright_kernels::{Config, KernelEntry, find};

    /// What a run reports whose outputs are those of the library's reference, for a kernel with another reference.
    fn told(reference: fn(&Config, &[HostTensor]) -> Vec<HostTensor>) -> Result<i64, String> {
        let library = find("row_sum").expect("a kernel of the library");
        let entry = KernelEntry { reference, ..*library };
        let config = entry.config(None, &[]).expect("its defaults");
        let options = compile::Options::new(Target::Sm100a);
        let artifact = compile::compile((entry.build)(&config, Target::Sm100a), &options).expect("it compiles");
        let inputs = (entry.inputs)(&config);
        let outputs = (library.reference)(&config, &inputs);
        let compared =
            compared(artifact.parameters(), &outputs, &(entry.reference)(&config, &inputs), (entry.tolerance)(&config));
        let mismatches = compared.map(|all| all.iter().map(|(_, comparison)| comparison.mismatches).sum());
        mismatches.map_err(|why| why.to_string())
    }

    #[test]
    fn a_reference_with_too_few_outputs_is_not_ok() {
        assert_eq!(told(find("row_sum").expect("a kernel of the library").reference), Ok(0));
        let message = "the kernel has 1 output, but its reference has 0 tensors".to_string();
        assert_eq!(told(|_, _| Vec::new()), Err(message));
    }
}
