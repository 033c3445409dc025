//! `golden tirx: N passed, M failed, K not covered`: the golden vectors, from this package or from the folder that
//! `TILEWRIGHT_GOLDEN_DIR` names.

use std::path::PathBuf;
use std::process::ExitCode;

use tilewright_tests::golden::{Judged, Verdict, judge_folder};
use tilewright_tests::toolchain::package;

/// More uncovered cases than this are a gap in the tests, not an exception.
const MOST_NOT_COVERED: usize = 10;

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
    for Judged { id, verdict } in &judged {
        match verdict {
            Verdict::Passed => passed += 1,
            Verdict::Failed(why) => {
                failed += 1;
                println!("failed {id}: {why}");
            }
            Verdict::NotCovered(why) => {
                not_covered += 1;
                println!("not covered {id}: {why}");
            }
        }
    }
    println!("golden tirx: {passed} passed, {failed} failed, {not_covered} not covered");
    if failed == 0 && not_covered <= MOST_NOT_COVERED && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
