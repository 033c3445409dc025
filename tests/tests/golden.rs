//! `golden tirx: N passed, M failed, K not covered`, and the same for `golden tilelang`: the golden vectors, from this package or from the folder that
//! `TILEWRIGHT_GOLDEN_DIR` names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_tests::golden::{Agreement, Judged, Verdict, judge_folder};
use tilewright_tests::tilelang::{Outcome, RunOutcome, judge_case, read_folder, run_case};
use tilewright_tests::toolchain::{package, toolchain};

fn main() -> ExitCode {
    // Words on the command line: the programs of inference whose names have all of them, run only.
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if !words.is_empty() {
        return if tilelang_run(&words) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match (tirx(), tilelang(), tilelang_run(&[])) {
        (true, true, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The programs of layout inference, built, inferred and judged.
fn tilelang() -> bool {
    let cases = match read_folder(&folder().join("tilelang")) {
        Ok(cases) => cases,
        Err(why) => {
            println!("golden tilelang: cannot be read: {why}");
            return false;
        }
    };
    let (mut passed, mut failed, mut not_covered, mut more_slots) = (0, 0, 0, 0);
    for case in &cases {
        match judge_case(case) {
            Outcome::Passed(slots) => {
                passed += 1;
                if let Some((ours, theirs)) = slots.filter(|(ours, theirs)| ours > theirs) {
                    more_slots += 1;
                    println!("more registers {}: {ours} slots, the reference {theirs}", case.name);
                }
            }
            Outcome::Failed(why) => {
                failed += 1;
                println!("failed {}: {why}", case.name);
            }
            Outcome::NotCovered(why) => {
                not_covered += 1;
                println!("not covered {}: {why}", case.name);
            }
        }
    }
    println!(
        "golden tilelang: {passed} passed, {failed} failed, {not_covered} not covered; {more_slots} with more registers than the reference"
    );
    failed == 0 && passed > 0
}

/// The programs that are accepted, compiled, run on the virtual GPU and compared with a direct evaluation.
fn tilelang_run(words: &[String]) -> bool {
    let cases = match read_folder(&folder().join("tilelang")) {
        Ok(cases) => cases,
        Err(why) => {
            println!("golden tilelang run: cannot be read: {why}");
            return false;
        }
    };
    let toolchain = toolchain();
    let (mut passed, mut failed, mut not_run) = (0, 0, 0);
    for case in cases.iter().filter(|case| words.iter().all(|word| case.name.contains(word.as_str()))) {
        match run_case(case, &toolchain) {
            RunOutcome::Passed => passed += 1,
            RunOutcome::Failed(why) => {
                failed += 1;
                println!("run failed {}: {why}", case.name);
            }
            RunOutcome::Refused => {}
            RunOutcome::NotRun(why) => {
                not_run += 1;
                println!("not run {}: {why}", case.name);
            }
        }
    }
    println!("golden tilelang run: {passed} passed, {failed} failed, {not_run} not run");
    failed == 0 && passed > 0
}

/// This package's vectors, or those that `TILEWRIGHT_GOLDEN_DIR` names.
fn folder() -> PathBuf {
    std::env::var_os("TILEWRIGHT_GOLDEN_DIR").map_or_else(|| package().join("golden"), PathBuf::from)
}

fn tirx() -> bool {
    let judged = match judge_folder(&folder()) {
        Ok(judged) => judged,
        Err(why) => {
            println!("golden tirx: cannot be read: {why}");
            return false;
        }
    };
    let (mut passed, mut failed, mut not_covered) = (0, 0, 0);
    let mut differences: BTreeMap<String, usize> = BTreeMap::new();
    for Judged { id, verdict } in &judged {
        match verdict {
            Verdict::Passed(Agreement::Same) => passed += 1,
            Verdict::Passed(Agreement::Right(reason)) => {
                passed += 1;
                *differences.entry(format!("the case gives the right answer: {reason}")).or_default() += 1;
            }
            Verdict::Passed(Agreement::Proved(reason)) => {
                passed += 1;
                *differences.entry(format!("shown in the test: {reason}")).or_default() += 1;
            }
            Verdict::Failed(why) => {
                failed += 1;
                println!("failed {id}: {why}");
            }
            Verdict::OutOfScope(what) => {
                *differences.entry(format!("out of scope: {what}")).or_default() += 1;
            }
            Verdict::NotCovered(why) => {
                not_covered += 1;
                println!("not covered {id}: {why}");
            }
        }
    }
    println!("where the answer is not the recorded one:");
    for (reason, count) in &differences {
        println!("{count:4}  {reason}");
    }
    println!("golden tirx: {passed} passed, {failed} failed, {not_covered} not covered");
    failed == 0 && not_covered == 0 && passed > 0
}
