//! `golden tirx: N passed, M failed, K not covered`: the golden vectors, from this package or from the folder that
//! `TILEWRIGHT_GOLDEN_DIR` names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_tests::golden::{Agreement, Judged, Verdict, judge_folder};
use tilewright_tests::toolchain::package;

fn main() -> ExitCode {
    let folder = std::env::var_os("TILEWRIGHT_GOLDEN_DIR").map_or_else(|| package().join("golden"), PathBuf::from);
    let judged = match judge_folder(&folder) {
        Ok(judged) => judged,
        Err(why) => {
            println!("golden tirx: cannot be read: {why}");
            return ExitCode::FAILURE;
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
    if failed == 0 && not_covered == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
