//! Random tile programs through inference: racy programs are refused, accepted ones pass the judge, refused ones have
//! no valid layouts, and nothing panics.
//!
//! A program depends only on the seed and its number, so runs that are split or parallel give the same report. Failing
//! programs are shrunk before they are reported.

mod build;
mod check;
mod copies;
mod features;
mod layouts;
mod nests;
mod over;
mod patterns;
mod report;
mod sketch;
mod slow;
mod strategy;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::case::Case;
use super::kernel::kernel_of;
use super::program::Program;
use crate::rng::Rng;
use build::program;
use check::{Ended, Wrong, case, check};
use features::features;
use sketch::Sketch;
use strategy::sketches;

pub use report::ProgramReport;
pub use slow::{SlowProgram, slower, slowest_programs};

/// The maximum number of shrinking steps.
const MOST_STEPS: usize = 2_000;

/// Part of a run: the programs with these numbers.
pub fn run_programs(seed: u64, programs: Range<u64>) -> ProgramReport {
    let strategy = sketches();
    let mut report = ProgramReport::default();
    for number in programs {
        let Some(mut tree) = drawn(&strategy, seed, number) else { continue };
        let sketch = tree.current();
        report.count(features(&sketch));
        match check(&program(&sketch)) {
            Ok(ended) => report.ended(ended),
            Err(wrong) => report.failed(&wrong, || {
                let (small, what) = shrunk(&mut tree, &wrong);
                format!("program {number} of seed {seed}: {what}\n{}", shown(&small))
            }),
        }
    }
    report
}

/// The first accepted programs of a seed, as cases that can be run; at most `most`.
pub fn accepted_programs(seed: u64, most: usize) -> Vec<Case> {
    let strategy = sketches();
    let numbers = 0..20 * most as u64;
    let programs = numbers.filter_map(|number| {
        let program = program(&drawn(&strategy, seed, number)?.current());
        let is_accepted = check(&program) == Ok(Ended::Accepted);
        is_accepted.then(|| case(&format!("random_{seed}_{number}"), program))
    });
    programs.take(most).collect()
}

/// The sketch with a number, and all sketches that it can be shrunk to.
fn drawn<S: Strategy<Value = Sketch>>(strategy: &S, seed: u64, number: u64) -> Option<S::Tree> {
    let mut rng = Rng::new(seed, number);
    let mut bytes = [0; 32];
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&rng.bits().to_le_bytes());
    }
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    strategy.new_tree(&mut runner).ok()
}

/// A smaller program with the same kind of failure, and that failure.
fn shrunk(tree: &mut impl ValueTree<Value = Sketch>, wrong: &Wrong) -> (Program, String) {
    let mut best = (program(&tree.current()), wrong.what.clone());
    let mut may_go_on = tree.simplify();
    for _ in 0..MOST_STEPS {
        if !may_go_on {
            break;
        }
        let candidate = program(&tree.current());
        may_go_on = match check(&candidate) {
            Err(found) if found.class == wrong.class => {
                best = (candidate, found.what);
                tree.simplify()
            }
            _ => tree.complicate(),
        };
    }
    best
}

/// A program as text: the text of its kernel, if it can be built.
fn shown(program: &Program) -> String {
    let kernel = catch_unwind(AssertUnwindSafe(|| kernel_of(&case("random", program.clone()))));
    match kernel {
        Ok(Ok(kernel)) => kernel.to_string(),
        Ok(Err(_)) | Err(_) => format!("{program:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_parts_is_the_run() {
        assert_eq!(run_programs(3, 0..20).merged(run_programs(3, 20..40)), run_programs(3, 0..40));
    }

    #[test]
    fn other_seeds_give_other_programs() {
        let of = |seed, number| drawn(&sketches(), seed, number).map(|tree| tree.current());
        assert_eq!(of(1, 0), of(1, 0));
        assert!(of(1, 0) != of(1, 1) && of(1, 0) != of(2, 0));
    }

    #[test]
    fn the_smallest_program_has_one_element() {
        let strategy = sketches();
        let mut tree = drawn(&strategy, 1, 0).unwrap();
        let mut steps = 0;
        while tree.simplify() {
            steps += 1;
            assert!(steps < 100_000);
        }
        let sketch = tree.current();
        let shapes: Vec<&[i64]> = sketch.fragments.iter().map(|fragment| &fragment.shape[..]).collect();
        assert_eq!((shapes, sketch.steps.len(), sketch.threads), (vec![&[1][..]], 0, 32));
        assert_eq!(check(&program(&sketch)), Ok(Ended::Accepted));
    }
}
