//! What random programs came to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::check::{Ended, Why, Wrong};

/// How random programs ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramReport {
    programs: u64,
    accepted: u64,
    /// By code and reason.
    refused: BTreeMap<(&'static str, Why), u64>,
    /// How many programs have a feature.
    features: BTreeMap<&'static str, u64>,
    /// By class: how many there are, and the first.
    wrong: BTreeMap<String, (u64, String)>,
}

impl ProgramReport {
    pub(crate) fn count(&mut self, features: BTreeSet<&'static str>) {
        self.programs += 1;
        for feature in features {
            *self.features.entry(feature).or_default() += 1;
        }
    }

    pub(crate) fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Accepted => self.accepted += 1,
            Ended::Refused(code, why) => *self.refused.entry((code, why)).or_default() += 1,
        }
    }

    /// Adds a wrong one; `example` makes the text of the first of its class.
    pub(crate) fn failed(&mut self, wrong: &Wrong, example: impl FnOnce() -> String) {
        let (count, _) = self.wrong.entry(wrong.class.clone()).or_insert_with(|| (0, example()));
        *count += 1;
    }

    /// This part of a run, followed by a later one.
    pub fn merged(mut self, later: ProgramReport) -> ProgramReport {
        self.programs += later.programs;
        self.accepted += later.accepted;
        for (key, count) in later.refused {
            *self.refused.entry(key).or_default() += count;
        }
        for (feature, count) in later.features {
            *self.features.entry(feature).or_default() += count;
        }
        for (class, (count, example)) in later.wrong {
            self.wrong.entry(class).or_insert((0, example)).0 += count;
        }
        self
    }

    /// How many programs there were.
    pub fn programs(&self) -> u64 {
        self.programs
    }

    /// How many were accepted, rightly.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// How many were refused, rightly.
    pub fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// How many are wrong.
    pub fn wrong(&self) -> u64 {
        self.wrong.values().map(|(count, _)| count).sum()
    }

    /// How many programs have a feature.
    pub fn features(&self) -> &BTreeMap<&'static str, u64> {
        &self.features
    }

    /// One wrong program of every class, as small as it could be made.
    pub fn examples(&self) -> Vec<String> {
        self.wrong.iter().map(|(class, (count, example))| format!("{class} (x {count}): {example}")).collect()
    }
}

/// A histogram of features, why programs were refused, and a line with the sums.
impl fmt::Display for ProgramReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (feature, count) in &self.features {
            writeln!(f, "{count:>8}  {feature}")?;
        }
        for ((code, why), count) in &self.refused {
            let why = match why {
                Why::Racy => "iterations write one element",
                Why::LaidOut => "it asks for layouts",
                Why::Impossible => "nothing works",
            };
            writeln!(f, "{count:>8}  refused {code}: {why}")?;
        }
        let (programs, accepted, refused, wrong) = (self.programs, self.accepted, self.refused(), self.wrong());
        writeln!(f, "infer: {programs} programs, {accepted} accepted, {refused} rejected, {wrong} wrong")
    }
}
