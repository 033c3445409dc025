//! Mutated notation: every text is parsed, and what parses is put through the operations. Everything must return.

mod mutate;
mod seeds;
mod steps;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tilewright::layout::{Layout, LayoutError, TileLayout};
use tilewright::viz::{Style, render};

use super::report::counts;
use super::said;
use crate::rng::Rng;
use mutate::mutated;
use steps::{Case, STEPS, Tried};

/// How many questions are put to each layout.
const STEPS_EACH: usize = 4;
/// How many texts of wrong inputs are kept.
const EXAMPLES: usize = 5;
/// An input that takes longer is wrong: all work is bounded.
const LONGEST: Duration = Duration::from_secs(20);

/// The stage of the parser in the histogram.
const PARSE: &str = "parse";
const PARSED: &str = "parsed";

/// What mutated texts came to: of every stage, how often it ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextReport {
    stages: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    wrong: u64,
    examples: Vec<String>,
}

/// `inputs` mutated texts through the parser and what follows it.
pub fn run_text(seed: u64, inputs: u64) -> TextReport {
    run_texts(seed, 0..inputs)
}

/// A part of a run: the texts of these numbers.
pub fn run_texts(seed: u64, inputs: Range<u64>) -> TextReport {
    static SEEDS: OnceLock<Vec<String>> = OnceLock::new();
    let seeds = SEEDS.get_or_init(seeds::seeds);
    let mut report = TextReport::default();
    for input in inputs {
        report.try_input(&mut Rng::new(seed, input), seeds);
    }
    report
}

impl TextReport {
    /// How many texts there were.
    pub fn inputs(&self) -> u64 {
        self.stage(PARSE).values().sum()
    }

    /// The share of texts that got past the parser; 0 without texts.
    pub fn parsed_share(&self) -> f64 {
        self.stage(PARSE).get(PARSED).copied().unwrap_or(0) as f64 / self.inputs().max(1) as f64
    }

    /// Of every stage, how often it ended how: with an answer, with the code of an error, or not asked.
    pub fn stages(&self) -> &BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
        &self.stages
    }

    /// How many inputs panicked, gave a wrong answer, or took too long.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The first of them, with their texts.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    /// This part of a run, followed by a later one.
    pub fn merged(mut self, later: TextReport) -> TextReport {
        for (stage, outcomes) in later.stages {
            for (outcome, count) in outcomes {
                *self.stages.entry(stage).or_default().entry(outcome).or_default() += count;
            }
        }
        self.wrong += later.wrong;
        self.examples.extend(later.examples);
        self.examples.truncate(EXAMPLES);
        self
    }

    fn stage(&self, stage: &str) -> BTreeMap<&'static str, u64> {
        self.stages.get(stage).cloned().unwrap_or_default()
    }

    fn count(&mut self, stage: &'static str, outcome: &'static str) {
        *self.stages.entry(stage).or_default().entry(outcome).or_default() += 1;
    }

    fn try_input(&mut self, rng: &mut Rng, seeds: &[String]) {
        let text = mutated(rng, seeds);
        let started = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| follow(rng, &text, seeds)));
        let took = started.elapsed();
        match ended {
            Ok(stages) => stages.into_iter().for_each(|(stage, outcome)| self.count(stage, outcome)),
            Err(panic) => {
                self.count(PARSE, "panicked");
                self.is_wrong(format!("{text:?} {}", said(panic.as_ref())));
            }
        }
        if took > LONGEST {
            self.is_wrong(format!("{text:?} took {} s", took.as_secs()));
        }
    }

    fn is_wrong(&mut self, what: String) {
        self.wrong += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(what);
        }
    }
}

/// Parses the text and puts a few questions to the layout; how each stage ended.
fn follow(rng: &mut Rng, text: &str, seeds: &[String]) -> Vec<(&'static str, &'static str)> {
    let layout: Layout = match text.parse() {
        Ok(layout) => layout,
        Err(error) => return vec![(PARSE, rendered(rng, &error))],
    };
    let mut stages = vec![(PARSE, PARSED), ("parse with axes", with_axes(text))];
    let Ok(tile) = layout.tile() else { return stages };
    let other = other(rng, tile, seeds);
    for _ in 0..STEPS_EACH {
        let (stage, step) = *rng.pick(STEPS);
        let answer = step(&mut Case { rng, layout: &layout, tile, other: &other });
        let outcome = match answer {
            Ok(Tried::Answered) => "answered",
            Ok(Tried::TooLarge) => "not asked",
            Err(error) => rendered(rng, &error),
        };
        stages.push((stage, outcome));
    }
    stages
}

/// The code of an error, which must be fit to be shown.
fn rendered(rng: &mut Rng, error: &LayoutError) -> &'static str {
    if rng.percent(10) {
        let shown = render(&error.diagnostic(), &|_| None, Style::Plain);
        assert!(shown.contains(error.code()), "{shown}");
    }
    assert!(!error.to_string().is_empty());
    error.code()
}

fn with_axes(text: &str) -> &'static str {
    match Layout::parse_with_axes(text, &[]) {
        Ok(_) => "answered",
        Err(error) => error.code(),
    }
}

/// Another layout to ask about: a seed, often the same tile in its normal form.
fn other(rng: &mut Rng, tile: &TileLayout, seeds: &[String]) -> TileLayout {
    let own = rng.percent(40);
    let seed = rng.pick(seeds).parse::<Layout>().ok();
    let seed = seed.and_then(|layout| layout.tile().ok().cloned());
    seed.filter(|_| !own).unwrap_or_else(|| tile.canonicalize())
}

/// The histogram: a row for each stage.
impl fmt::Display for TextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, share) = (self.inputs(), 100.0 * self.parsed_share());
        writeln!(f, "{inputs} texts, {share:.1}% past the parser, {} wrong", self.wrong)?;
        let first = self.stages.get_key_value(PARSE).into_iter();
        let rest = self.stages.iter().filter(|(stage, _)| **stage != PARSE);
        for (stage, outcomes) in first.chain(rest) {
            writeln!(f, "{stage:<16} {}", counts(outcomes))?;
        }
        Ok(())
    }
}
