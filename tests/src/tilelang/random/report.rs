//! The report on random programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::check::{Ended, Why, Wrong};

/// The outcomes of random programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramReport {
    programs: u64,
    accepted: u64,
    /// Refused programs by code and reason.
    refused: BTreeMap<(&'static str, Why), u64>,
    /// How many programs have a feature.
    features: BTreeMap<&'static str, u64>,
    /// Failures by class: their number, and the first one.
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

    /// Adds a failure; `example` produces the text of the first of its class.
    pub(crate) fn failed(&mut self, wrong: &Wrong, example: impl FnOnce() -> String) {
        let (count, _) = self.wrong.entry(wrong.class.clone()).or_insert_with(|| (0, example()));
        *count += 1;
    }

    /// Merges this part of a run with a later one.
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

    /// The number of programs.
    pub fn programs(&self) -> u64 {
        self.programs
    }

    /// The number of programs correctly accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// The number of programs correctly refused.
    pub fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// The number of failures.
    pub fn wrong(&self) -> u64 {
        self.wrong.values().map(|(count, _)| count).sum()
    }

    /// How many programs have a feature.
    pub fn features(&self) -> &BTreeMap<&'static str, u64> {
        &self.features
    }

    /// One failing program per class, shrunk as far as possible.
    pub fn examples(&self) -> Vec<String> {
        self.wrong.iter().map(|(class, (count, example))| format!("{class} (x {count}): {example}")).collect()
    }
}

/// A histogram of features, the reasons for refusals, and a line with the totals.
impl fmt::Display for ProgramReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (feature, count) in &self.features {
            writeln!(f, "{count:>8}  {feature}")?;
        }
        for ((code, why), count) in &self.refused {
            let why = match why {
                Why::Racy => "iterations write the same element",
                Why::LaidOut => "it specifies layouts",
                Why::Impossible => "no valid layouts exist",
            };
            writeln!(f, "{count:>8}  refused {code}: {why}")?;
        }
        let (programs, accepted, refused, wrong) = (self.programs, self.accepted, self.refused(), self.wrong());
        writeln!(f, "infer: {programs} programs, {accepted} accepted, {refused} rejected, {wrong} wrong")
    }
}
