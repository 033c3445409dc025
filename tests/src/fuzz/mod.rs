//! Random input for the layout crate: every operation is compared with brute force ([`run`]), and mutated notation is
//! run through the parser and the operations ([`run_text`]).
//!
//! A case depends only on the seed, the operation and the case number, so runs that are split or parallel give the same
//! report: [`run_cases`] of `0..n` is [`run_cases`] of `0..k` merged with that of `k..n`.

mod affine;
mod brute;
mod generate;
mod interleave;
mod judge;
mod machine;
mod operations;
mod report;
mod spread;
mod text;
mod vary;

pub use machine::{MachineReport, Mutated, UNDERSTOOD_GOAL, run_machine};
pub use report::{Report, Tally};
pub use spread::{spread, spread_over};
pub use text::{TextReport, run_text, run_texts};

use std::any::Any;
use std::ops::Range;
use std::panic::catch_unwind;

use crate::rng::Rng;
use judge::Outcome;
use operations::{OPERATIONS, Operation};

/// The minimum share of cases that every operation should accept, so that accepted calls are tested too.
pub const ACCEPTED_GOAL: f64 = 0.30;
/// The minimum share of mutated texts that should parse.
pub const PARSED_GOAL: f64 = 0.20;

/// Runs every operation on `cases` random inputs and compares each result with brute force.
pub fn run(seed: u64, cases: u64) -> Report {
    run_cases(seed, 0..cases)
}

/// Part of a run: the cases with these numbers, for every operation.
pub fn run_cases(seed: u64, cases: Range<u64>) -> Report {
    let tally = |operation: &Operation| {
        let mut tally = Tally::new(operation.name);
        for case in cases.clone() {
            tally.count(case, outcome(operation, seed, case));
        }
        tally
    };
    Report::new(OPERATIONS.iter().map(tally).collect())
}

/// Runs one case; a panic counts as wrong.
fn outcome(operation: &Operation, seed: u64, case: u64) -> Outcome {
    let (name, check) = (operation.name, operation.check);
    let own_seed = name.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    catch_unwind(|| check(&mut Rng::new(own_seed, case))).unwrap_or_else(|panic| Err(said(panic.as_ref())))
}

/// The message of a panic.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    format!("panicked: {}", text.unwrap_or_default())
}
