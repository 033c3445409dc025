//! Random tile programs through inference, and some of them on the virtual GPU; `cargo xtask fuzz --infer` is the long
//! run.

use tilewright_tests::fuzz::spread;
use tilewright_tests::tilelang::{ProgramReport, RunOutcome, accepted_programs, run_case, run_programs};
use tilewright_tests::toolchain::{skip, toolchain};

const SEED: u64 = 1;
const PROGRAMS: u64 = 2_000;
/// The number of programs that are compiled and run.
const RUN: usize = 50;

#[test]
fn every_random_program_is_placed_or_rightly_refused() {
    let parts = spread(PROGRAMS, 20, &|programs| run_programs(SEED, programs), &|_| ());
    let report = parts.into_iter().fold(ProgramReport::default(), ProgramReport::merged);
    println!("{report}");
    assert_eq!(report.wrong(), 0, "\n{}", report.examples().join("\n\n"));
    assert_eq!(report.programs(), PROGRAMS);
    assert!(report.accepted() >= PROGRAMS / 2, "most programs should be accepted");
}

#[test]
fn random_programs_compute_on_the_virtual_gpu_what_they_say() {
    let toolchain = toolchain();
    let cases = accepted_programs(SEED, RUN);
    assert_eq!(cases.len(), RUN);
    let mut failed = Vec::new();
    for case in &cases {
        match run_case(case, &toolchain) {
            RunOutcome::Passed => {}
            RunOutcome::Failed(why) => failed.push(format!("{}: {why}", case.name)),
            RunOutcome::Refused => {}
            RunOutcome::NotRun(_) => return skip("random programs on the virtual GPU"),
        }
    }
    assert!(failed.is_empty(), "{} of {RUN} failed:\n{}", failed.len(), failed.join("\n"));
}
