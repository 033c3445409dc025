//! What a run of the operations came to.

use std::collections::BTreeMap;
use std::fmt;

use super::judge::{Ended, Outcome};

/// How many texts of wrong cases are kept for each operation.
const EXAMPLES: usize = 3;

/// How the cases of one operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The operation.
    pub name: &'static str,
    /// Cases with an answer that is right.
    pub accepted: u64,
    /// Cases without an answer, rightly as far as brute force can tell: by code, or by what was not found.
    pub refused: BTreeMap<&'static str, u64>,
    /// Cases that are wrong.
    pub wrong: u64,
    /// The first of them, each with its number and all that is needed to see it again.
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

    /// All its cases.
    pub fn cases(&self) -> u64 {
        self.accepted + self.wrong + self.refused.values().sum::<u64>()
    }

    /// The share of its cases that were accepted; 0 without cases.
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

/// How the cases of all operations ended.
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

    /// This part of a run, followed by a later one.
    pub fn merged(mut self, later: Report) -> Report {
        for (tally, later) in self.tallies.iter_mut().zip(later.tallies) {
            tally.merge(later);
        }
        self
    }

    /// How many cases are wrong.
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

/// A row for each operation.
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
