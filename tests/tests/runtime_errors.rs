//! Errors for artifacts that cannot be run.

use insta::{assert_snapshot, with_settings};
use tilewright::compile::{Artifact, Options as CompileOptions, compile};
use tilewright::cuda::SearchOptions;
use tilewright::prelude::*;
use tilewright::runtime::{Built, CudaText, Device, Failure, FailureKind, HostTensor, Toolchain, run, run_watched};
use tilewright::vgpu::Options;
use tilewright::viz::{Style, render_all};
use tilewright_tests::cases::{Case, all};
use tilewright_tests::toolchain::{package, toolchain};

fn subject() -> (Case, Artifact, Built) {
    let case = all().into_iter().find(|case| case.name == "sf_transpose-f32").expect("the case");
    let artifact = case.compile(Target::Sm100a).expect("it compiles");
    let built = toolchain().build(&artifact, &CudaText::Generated).expect("NVRTC, or committed PTX");
    (case, artifact, built)
}

fn assert_failure(name: &str, failure: &Failure, kind: FailureKind) {
    assert_eq!(failure.kind, kind);
    let folder = package().join("snapshots/diagnostics");
    with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true }, {
        assert_snapshot!(name, render_all(&failure.diagnostics, &|_| None, Style::Plain));
    });
}

/// Runs the subject with modified PTX.
fn with_ptx(change: impl Fn(&str) -> String) -> Failure {
    let (case, artifact, mut built) = subject();
    built.ptx = change(&built.ptx);
    run(&artifact, &built, &case.inputs, &Device::Virtual).expect_err("the PTX is broken")
}

#[test]
fn no_nvrtc_and_no_committed_ptx() {
    let (_, artifact, _) = subject();
    let search = SearchOptions { disabled: true, ..SearchOptions::default() };
    let failure = Toolchain::new(search, None, None).build(&artifact, &CudaText::Generated).expect_err("no NVRTC");
    assert_failure("no_nvrtc", &failure, FailureKind::Unsupported);
}

#[test]
fn inputs_that_do_not_fit() {
    let (_, artifact, built) = subject();
    let small = vec![HostTensor::pattern(F32, &[8])];
    for (name, inputs) in [("input_of_another_shape", small), ("too_few_inputs", Vec::new())] {
        let failure = run(&artifact, &built, &inputs, &Device::Virtual).expect_err("the inputs do not fit");
        assert_failure(name, &failure, FailureKind::BadInput);
    }
}

#[test]
fn sizes_that_are_not_bound() {
    let sized = kernel("sized", |k| {
        let (m, n) = (k.size("m"), k.size("n"));
        let y = k.output("y", F32, (m, n));
        let [row] = k.grid([m]);
        k.threads(32);
        let v = k.fragment("v", F32, [32]);
        k.fill(v, 1.0);
        k.copy(y.sub((row, at(0, 32))), v);
    });
    let artifact = compile(sized, &CompileOptions::new(Target::Sm100a)).expect("it compiles");
    let (_, _, built) = subject();
    let failure = run(&artifact, &built, &[], &Device::Virtual).expect_err("no sizes");
    assert_failure("sizes_that_are_not_bound", &failure, FailureKind::BadInput);
}

#[test]
fn ptx_that_is_none() {
    let failure = with_ptx(|ptx| ptx.replace(".visible .entry", ".visible .entree"));
    assert_failure("ptx_that_is_none", &failure, FailureKind::Unsupported);
}

#[test]
fn an_instruction_that_is_not_supported() {
    let failure =
        with_ptx(|ptx| ptx.replacen("bar.warp.sync", "suld.b.1d.b32.trap %r1, [%rd1, {%r1}]; bar.warp.sync", 1));
    assert_failure("unsupported_instruction", &failure, FailureKind::Unsupported);
}

/// The error has the line of the op that hangs, the number of executed instructions, and how to raise the limit.
#[test]
fn an_endless_loop() {
    let again = "{ .reg .b32 n; mov.u32 n, 0; $again: add.u32 n, n, 1; bra.uni $again; } ld.shared";
    let failure = with_ptx(|ptx| ptx.replacen("ld.shared", again, 1));
    assert_eq!(failure.kind, FailureKind::Fault);
    let finding = &failure.diagnostics[0];
    let told = "thread instructions (block size 32, limit 1000000 per thread); 0 of 1 CTAs ended before it";
    assert!(finding.message.starts_with("step_limit: ") && finding.message.ends_with(told), "{finding}");
    assert_eq!(finding.labels[0].text, "here, in permute_layout(transposed, tile)");
    assert!(finding.help[0].contains("`run-kernel --max-instructions N`"), "{:?}", finding.help);
}

#[test]
fn a_loop_in_which_nothing_changes() {
    let failure = with_ptx(|ptx| ptx.replacen("ld.shared", "$again: bra.uni $again; ld.shared", 1));
    assert_eq!(failure.kind, FailureKind::Fault);
    let finding = &failure.diagnostics[0];
    assert!(finding.message.ends_with("or is in a loop in which nothing changes any more"), "{finding}");
    assert_eq!(finding.labels[0].text, "here, in permute_layout(transposed, tile)");
    let waits = "warp 0, lanes 0-31: waiting for nothing: the loop reads no memory and does not end";
    assert!(finding.notes.iter().any(|note| note.contains(waits)), "{:?}", finding.notes);
}

#[test]
fn options_of_the_virtual_gpu_say_how_much_a_thread_may_execute() {
    let (case, artifact, built) = subject();
    let run_up_to = |max_instructions_per_thread| {
        let options = Options { max_instructions_per_thread, ..Options::default() };
        run_watched(&artifact, &built, &case.inputs, &Device::Virtual, &options, &mut |_| ())
    };
    let failure = run_up_to(5).expect_err("it needs more");
    assert!(failure.to_string().contains("160 thread instructions (block size 32, limit 5 per thread)"), "{failure}");
    let run = run_up_to(500).expect("it needs no more");
    assert!(run.report.is_some_and(|report| report.thread_instructions <= 32 * 500));
}

#[test]
fn an_output_that_is_not_written() {
    let failure = with_ptx(|ptx| {
        let kept = ptx.lines().filter(|line| !line.trim_start().starts_with("st.global"));
        kept.collect::<Vec<_>>().join("\n")
    });
    assert_failure("unwritten_output", &failure, FailureKind::Fault);
}
