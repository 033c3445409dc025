//! `golden tirx: N passed, M failed, K not covered` and `golden tilelang: N passed, M failed`: the golden vectors, from
//! this package or from the folder given by `TILEWRIGHT_GOLDEN_DIR`. For accepted programs of inference, the cost is
//! also compared with that of the reference's layouts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_tests::golden::{Agreement, Judged, Verdict, judge_folder};
use tilewright_tests::tilelang::{Case, Comparison, Outcome, RunOutcome, judge_case, read_folder, reason, run_case};
use tilewright_tests::toolchain::{package, toolchain};

/// The minimum share, among programs that both we and the reference accept, that must cost no more than the
/// reference's.
const NO_WORSE_GOAL: f64 = 0.95;

fn main() -> ExitCode {
    // Words on the command line select programs of inference whose names contain all of them; only these are run.
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if !words.is_empty() {
        return if tilelang_run(&words) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match (tirx(), tilelang(), tilelang_run(&[])) {
        (true, true, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Builds the programs of layout inference, infers their layouts and checks them.
fn tilelang() -> bool {
    let cases = match read_folder(&folder().join("tilelang")) {
        Ok(cases) => cases,
        Err(why) => {
            println!("golden tilelang: {why}");
            return false;
        }
    };
    let (mut passed, mut failed, mut not_covered) = (0, 0, 0);
    let mut comparisons: Vec<(&Case, Comparison)> = Vec::new();
    for case in &cases {
        match judge_case(case) {
            Outcome::Passed(comparison) => {
                passed += 1;
                comparisons.extend(comparison.map(|comparison| (case, comparison)));
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
    let is_good = quality(&comparisons);
    let rest = if not_covered > 0 { format!(", {not_covered} not covered") } else { String::new() };
    println!("golden tilelang: {passed} passed, {failed} failed{rest}");
    failed == 0 && passed > 0 && is_good
}

/// Lists the programs that cost more than the reference's, with reasons. Returns true if they are few. For some
/// programs the reference has two answers, by cost model or architecture: one with fewer registers, the other with
/// wider accesses. No answer can match both, so it suffices to match one.
fn quality(comparisons: &[(&Case, Comparison)]) -> bool {
    let is_no_worse = |case: &Case| {
        let of_program = comparisons.iter().filter(|(other, _)| other.program == case.program);
        of_program.into_iter().any(|(_, comparison)| comparison.is_no_worse())
    };
    let mut worse = 0;
    for (case, comparison) in comparisons.iter().filter(|(_, comparison)| !comparison.is_no_worse()) {
        let why = reason(&case.name).unwrap_or("no known reason");
        if is_no_worse(case) {
            println!("matches another answer of the reference {}: {comparison}; {why}", case.name);
        } else {
            worse += 1;
            println!("worse {}: {comparison}; {why}", case.name);
        }
    }
    let all = comparisons.len();
    let strictly = comparisons.iter().filter(|(_, comparison)| comparison.is_no_worse()).count();
    let share = (all - worse) as f64 / all.max(1) as f64;
    println!(
        "golden tilelang quality: {} of {all} no worse ({:.1}%), {strictly} of them for every answer",
        all - worse,
        100.0 * share
    );
    share >= NO_WORSE_GOAL
}

/// Compiles the accepted programs, runs them on the virtual GPU, and compares the results with a direct evaluation.
fn tilelang_run(words: &[String]) -> bool {
    let cases = match read_folder(&folder().join("tilelang")) {
        Ok(cases) => cases,
        Err(why) => {
            println!("golden tilelang run: {why}");
            return false;
        }
    };
    let toolchain = toolchain();
    let (mut passed, mut failed, mut not_run, mut refused) = (0, 0, 0, 0);
    for case in cases.iter().filter(|case| words.iter().all(|word| case.name.contains(word.as_str()))) {
        match run_case(case, &toolchain) {
            RunOutcome::Passed => passed += 1,
            RunOutcome::Failed(why) => {
                failed += 1;
                println!("run failed {}: {why}", case.name);
            }
            RunOutcome::Refused => refused += 1,
            RunOutcome::NotRun(why) => {
                not_run += 1;
                println!("not run {}: {why}", case.name);
            }
        }
    }
    // The words come from `cargo xtask test`, and may be intended for other tests.
    let rest = if words.is_empty() { String::new() } else { format!(", {refused} refused") };
    println!("golden tilelang run: {passed} passed, {failed} failed, {not_run} not run{rest}");
    failed == 0 && (passed > 0 || !words.is_empty())
}

/// The path of this package's vectors, or of those given by `TILEWRIGHT_GOLDEN_DIR`.
fn folder() -> PathBuf {
    std::env::var_os("TILEWRIGHT_GOLDEN_DIR").map_or_else(|| package().join("golden"), PathBuf::from)
}

fn tirx() -> bool {
    let judged = match judge_folder(&folder()) {
        Ok(judged) => judged,
        Err(why) => {
            println!("golden tirx: {why}");
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
                *differences.entry(format!("the case contains the correct answer: {reason}")).or_default() += 1;
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
    println!("answers that differ from the recorded ones:");
    for (reason, count) in &differences {
        println!("{count:4}  {reason}");
    }
    println!("golden tirx: {passed} passed, {failed} failed, {not_covered} not covered");
    failed == 0 && not_covered == 0 && passed > 0
}
