//! Random kernels of all kinds: the meaning of the kernel as written is compared with the compiled program.
//!
//! The reference ([`evaluate`]) evaluates the kernel that the user wrote, independently of threads; [`machine`]
//! executes the resulting thread program. A kernel without a meaning must be refused, and one with a meaning must
//! compute it.

pub mod check;
mod engine;
pub mod evaluate;
pub mod generate;
pub mod machine;
pub mod numbers;
mod pending;
mod stores;
#[cfg(test)]
mod tests;
pub mod virtual_gpu;
pub mod widths;

use std::fmt;
use std::ops::Range;
use std::time::Instant;

use tilewright::prelude::{Kernel, Target};
use tilewright::runtime::{Device, Toolchain};

use crate::rng::Rng;
use check::{Ended, Tally, Wrong, caught, check};
use evaluate::Rules;
use generate::random_kernel;
use virtual_gpu::check_on;

/// The number of examples kept per kind of failure.
const EXAMPLES: usize = 3;

/// The report of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeaningReport {
    /// Number of kernels that compute the expected result.
    pub right: u64,
    /// Number of kernels that depend on false claims or on unwritten memory.
    pub undefined: u64,
    /// Number of kernels that are refused, by error code.
    pub refused: Tally,
    /// Number of failures, by kind.
    pub wrong: Tally,
    /// Examples of failures.
    pub examples: Vec<(String, String)>,
    /// The kernels that took longest to compile and check: microseconds and kernel number, the slowest first.
    pub slowest: Vec<(u128, u64)>,
}

/// The number of slow kernels that are kept.
const SLOWEST: usize = 10;

/// Part of a run: the kernels with these numbers, on the interpreter for thread programs.
pub fn run_kernels(seed: u64, kernels: Range<u64>, rules: Rules) -> MeaningReport {
    run(seed, kernels, &|kernel, rng| check(kernel, rng, rules))
}

/// Part of a run: the kernels with these numbers, compiled with NVRTC and run on a device.
pub fn run_kernels_on(seed: u64, kernels: Range<u64>, toolchain: &Toolchain, on: (&Device, Target)) -> MeaningReport {
    run(seed, kernels, &|kernel, rng| check_on(kernel, rng, toolchain, on))
}

type Check<'a> = &'a dyn Fn(&Kernel, &mut Rng) -> Result<Ended, Wrong>;

fn run(seed: u64, kernels: Range<u64>, check: Check<'_>) -> MeaningReport {
    let mut report = MeaningReport::default();
    for number in kernels {
        let mut rng = Rng::new(seed, number);
        let kernel = random_kernel(&mut rng);
        let start = Instant::now();
        match caught(|| check(&kernel, &mut rng)) {
            Ok(Ended::Right) => report.right += 1,
            Ok(Ended::Undefined) => report.undefined += 1,
            Ok(Ended::Refused(code)) => *report.refused.entry(code.to_string()).or_default() += 1,
            Err(wrong) => {
                *report.wrong.entry(wrong.class.clone()).or_default() += 1;
                let text = format!("kernel {number} of seed {seed}: {}\n{kernel}", wrong.what);
                report.keep(wrong.class, text);
            }
        }
        report.took(start.elapsed().as_micros(), number);
    }
    report
}

impl MeaningReport {
    /// The report of a run that cannot start.
    pub fn stopped(why: &str) -> MeaningReport {
        let mut report = MeaningReport::default();
        report.wrong.insert("the run cannot start".to_string(), 1);
        report.keep("the run cannot start".to_string(), why.to_string());
        report
    }

    fn keep(&mut self, class: String, text: String) {
        if self.examples.iter().filter(|(known, _)| *known == class).count() < EXAMPLES {
            self.examples.push((class, text));
        }
    }

    fn took(&mut self, microseconds: u128, number: u64) {
        self.slowest.push((microseconds, number));
        self.slowest.sort_unstable_by(|one, other| other.cmp(one));
        self.slowest.truncate(SLOWEST);
    }

    /// Merges two parts of a run.
    pub fn merged(mut self, other: MeaningReport) -> MeaningReport {
        self.right += other.right;
        self.undefined += other.undefined;
        other.refused.into_iter().for_each(|(code, count)| *self.refused.entry(code).or_default() += count);
        other.wrong.into_iter().for_each(|(class, count)| *self.wrong.entry(class).or_default() += count);
        other.slowest.into_iter().for_each(|(time, number)| self.took(time, number));
        other.examples.into_iter().for_each(|(class, text)| self.keep(class, text));
        self
    }

    /// The number of failures.
    pub fn wrongs(&self) -> u64 {
        self.wrong.values().sum()
    }
}

impl fmt::Display for MeaningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused: u64 = self.refused.values().sum();
        let all = self.right + self.undefined + refused + self.wrongs();
        writeln!(
            f,
            "{all} kernels: {} right, {} undefined, {refused} refused, {} wrong",
            self.right,
            self.undefined,
            self.wrongs()
        )?;
        for (code, count) in &self.refused {
            writeln!(f, "  refused {code}: {count}")?;
        }
        for (class, count) in &self.wrong {
            writeln!(f, "  wrong {class}: {count}")?;
        }
        for (microseconds, number) in &self.slowest {
            writeln!(f, "  kernel {number} took {:.1} ms", *microseconds as f64 / 1000.0)?;
        }
        Ok(())
    }
}
