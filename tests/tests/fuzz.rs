//! Short runs of the fuzzers; `cargo xtask fuzz`, with `--layouts`, `--ptx` or `--launch`, has the long ones.

use tilewright_tests::fuzz::{
    ACCEPTED_GOAL, MachineReport, Mutated, PARSED_GOAL, Report, TextReport, UNDERSTOOD_GOAL, run, run_cases,
    run_machine, run_text, run_texts, spread,
};

const SEED: u64 = 1;

#[test]
fn every_operation_agrees_with_brute_force_and_accepts_its_share() {
    let parts = spread(1_000, 25, &|cases| run_cases(SEED, cases), &|_| ());
    let report = parts.into_iter().reduce(Report::merged).expect("there were cases");
    println!("{report}");
    let examples: Vec<&str> = report.examples().collect();
    assert_eq!(report.wrong(), 0, "\n{}", examples.join("\n"));
    let rare: Vec<_> = report.shares().into_iter().filter(|(_, share)| *share < ACCEPTED_GOAL).collect();
    assert!(rare.is_empty(), "accepted too rarely: {rare:?}");
}

#[test]
fn every_mutated_text_comes_back_with_a_layout_or_an_error() {
    let parts = spread(50_000, 1_000, &|inputs| run_texts(SEED, inputs), &|_| ());
    let report = parts.into_iter().reduce(TextReport::merged).expect("there were texts");
    println!("{report}");
    assert_eq!(report.wrong(), 0, "\n{}", report.examples().join("\n"));
    assert!(report.parsed_share() >= PARSED_GOAL, "{:.3} of the texts parse", report.parsed_share());
}

#[test]
fn a_run_in_parts_is_the_run() {
    assert_eq!(run_cases(SEED, 0..3).merged(run_cases(SEED, 3..8)), run(SEED, 8));
    assert_eq!(run_texts(SEED, 0..30).merged(run_texts(SEED, 30..80)), run_text(SEED, 80));
}

#[test]
fn mutated_ptx_and_launch_files_come_back() {
    for mutated in [Mutated::Ptx, Mutated::Launch] {
        let parts = spread(2_000, 100, &|inputs| run_machine(SEED, mutated, inputs), &|_| ());
        let report = parts.into_iter().reduce(MachineReport::merged).expect("there were inputs");
        println!("{mutated:?}\n{report}");
        assert_eq!(report.wrong(), 0, "\n{}", report.examples().join("\n"));
        assert!(report.understood_share() >= UNDERSTOOD_GOAL, "{report}");
    }
}
