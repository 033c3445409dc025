//! Runs edited CUDA: the output of `run-kernel --cuda`. Offline, committed PTX is used if it exists.

use insta::{assert_snapshot, with_settings};
use tilewright::runtime::{AccessKind, Device, Failure, FailureKind, Run, Space, run};
use tilewright::viz::{Style, render_all};
use tilewright_tests::edits::find;
use tilewright_tests::toolchain::{has_no_nvrtc, keep_fixture, package, skip, toolchain, workspace};

/// The outcome of an edit; `None` if there is neither NVRTC nor committed PTX for it.
fn outcome(name: &str) -> Option<Result<Run, Failure>> {
    let edit = find(name);
    let (artifact, built) = edit.build(&toolchain());
    let built = match built {
        Ok(built) => built,
        Err(failure) if has_no_nvrtc(&failure) => {
            skip(&format!("edited: {name}"));
            return None;
        }
        Err(failure) => return Some(Err(failure)),
    };
    keep_fixture(&artifact, &built).expect("the committed PTX is kept");
    Some(run(&artifact, &built, &edit.case().inputs, &Device::Virtual))
}

fn assert_failure(name: &str, kind: FailureKind) {
    let Some(outcome) = outcome(name) else { return };
    let failure = outcome.expect_err("the edit is a mistake");
    assert_eq!(failure.kind, kind);
    let source = |file: &str| std::fs::read_to_string(workspace().join(file)).ok();
    let text = render_all(&failure.diagnostics, &source, Style::Plain);
    let folder = package().join("snapshots/diagnostics");
    with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true }, {
        assert_snapshot!(format!("edited_{name}"), text);
    });
}

#[test]
fn deleted_barriers_are_a_race_with_both_source_lines() {
    assert_failure("no_syncwarp", FailureKind::Fault);
}

#[test]
fn an_index_past_the_end_is_out_of_bounds_with_buffer_and_offset() {
    assert_failure("past_the_end", FailureKind::Fault);
}

#[test]
fn a_store_to_an_input_is_told_with_its_line() {
    assert_failure("writes_an_input", FailureKind::Fault);
}

#[test]
fn text_that_does_not_compile_is_told_at_the_users_line() {
    assert_failure("does_not_compile", FailureKind::BadInput);
}

#[test]
fn another_entry_point_is_told() {
    assert_failure("another_name", FailureKind::BadInput);
}

#[test]
fn another_signature_is_told() {
    assert_failure("another_signature", FailureKind::BadInput);
}

/// Without the XOR, and with separate stores, four lanes conflict in one bank.
#[test]
fn the_xor_removed_shows_in_the_wavefronts() {
    let Some(outcome) = outcome("no_xor") else { return };
    let report = outcome.expect("it is slow, but correct").report.expect("counts");
    let worst = |kind| {
        let accesses =
            report.accesses.iter().filter(|a| a.space == Space::Shared && a.kind == kind && a.bytes_per_lane == 4);
        accesses.map(|a| a.wavefronts / a.executions).max()
    };
    assert_eq!((worst(AccessKind::Load), worst(AccessKind::Store)), (Some(1), Some(4)));
}
