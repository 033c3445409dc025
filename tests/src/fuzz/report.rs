//! The report of a run over the operations.

use std::collections::BTreeMap;
use std::fmt;

use super::judge::{Ended, Outcome};

/// The maximum number of wrong cases whose text is kept, per operation.
const EXAMPLES: usize = 3;

/// The outcomes of the cases of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The name of the operation.
    pub name: &'static str,
    /// Number of cases with a correct result.
    pub accepted: u64,
    /// Number of cases that were refused, justifiably as far as brute force can determine, by error code or by what was
    /// not found.
    pub refused: BTreeMap<&'static str, u64>,
    /// Number of wrong cases.
    pub wrong: u64,
    /// The first wrong cases, each with its number and all that is needed to reproduce it.
    pub examples: Vec<String>,
}

impl Tally {
    pub(crate) fn new(name: &'static str) -> Tally {
        Tally { name, accepted: 0, refused: BTreeMap::new(), wrong: 0, examples: Vec::new() }
    }

    pub(crate) fn count(&mut self, case: u64, outcome: Outcome) {
        match outcome {
            Ok(Ended::Accepted) => self.accepted += 1,
            Ok(Ended::Refused(code)) => *self.refused.entry(code).or_default() += 1,
            Err(what) => {
                self.wrong += 1;
                if self.examples.len() < EXAMPLES {
                    self.examples.push(format!("{}, case {case}: {what}", self.name));
                }
            }
        }
    }

    /// The number of all cases.
    pub fn cases(&self) -> u64 {
        self.accepted + self.wrong + self.refused.values().sum::<u64>()
    }

    /// The share of cases that were accepted; 0 if there are no cases.
    pub fn share(&self) -> f64 {
        self.accepted as f64 / self.cases().max(1) as f64
    }

    fn merge(&mut self, later: Tally) {
        self.accepted += later.accepted;
        self.wrong += later.wrong;
        for (code, count) in later.refused {
            *self.refused.entry(code).or_default() += count;
        }
        self.examples.extend(later.examples);
        self.examples.truncate(EXAMPLES);
    }
}

/// The outcomes of the cases of all operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    tallies: Vec<Tally>,
}

impl Report {
    pub(crate) fn new(tallies: Vec<Tally>) -> Report {
        Report { tallies }
    }

    /// Every operation, in order.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Merges this part of a run with a later one.
    pub fn merged(mut self, later: Report) -> Report {
        for (tally, later) in self.tallies.iter_mut().zip(later.tallies) {
            tally.merge(later);
        }
        self
    }

    /// The number of wrong cases.
    pub fn wrong(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.wrong).sum()
    }

    /// The first wrong cases of each operation.
    pub fn examples(&self) -> impl Iterator<Item = &str> {
        self.tallies.iter().flat_map(|tally| tally.examples.iter().map(String::as_str))
    }

    /// The share of cases that each operation accepted.
    pub fn shares(&self) -> Vec<(&'static str, f64)> {
        self.tallies.iter().map(|tally| (tally.name, tally.share())).collect()
    }
}

/// `L0108 x 12, none x 3`
pub(crate) fn counts(counts: &BTreeMap<&'static str, u64>) -> String {
    let each: Vec<String> = counts.iter().map(|(what, count)| format!("{what} x {count}")).collect();
    each.join(", ")
}

/// One row per operation.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:>8} {:>9} {:>7} {:>6}  refused", "operation", "cases", "accepted", "share", "wrong")?;
        for tally in &self.tallies {
            let Tally { name, accepted, refused, wrong, .. } = tally;
            let (cases, share) = (tally.cases(), 100.0 * tally.share());
            let line = format!("{name:<36} {cases:>8} {accepted:>9} {share:>6.1}% {wrong:>6}  {}", counts(refused));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
