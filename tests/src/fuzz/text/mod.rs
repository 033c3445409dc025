//! Mutated notation: every text is parsed, and operations are run on the layouts that parse. Every call must return.

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

/// The number of steps run on each layout.
const STEPS_EACH: usize = 4;
/// The maximum number of wrong inputs whose text is kept.
const EXAMPLES: usize = 5;
/// The time limit for one input: all work is bounded, so a longer time counts as wrong.
const LONGEST: Duration = Duration::from_secs(20);

/// The name of the parser's stage in the histogram.
const PARSE: &str = "parse";
const PARSED: &str = "parsed";

/// The outcomes for mutated texts: for each stage, how often each outcome occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextReport {
    stages: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    wrong: u64,
    examples: Vec<String>,
}

/// Runs the parser and the steps after it on `inputs` mutated texts.
pub fn run_text(seed: u64, inputs: u64) -> TextReport {
    run_texts(seed, 0..inputs)
}

/// Part of a run: the texts with these numbers.
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
    /// The number of texts.
    pub fn inputs(&self) -> u64 {
        self.stage(PARSE).values().sum()
    }

    /// The share of texts that parsed; 0 if there are no texts.
    pub fn parsed_share(&self) -> f64 {
        self.stage(PARSE).get(PARSED).copied().unwrap_or(0) as f64 / self.inputs().max(1) as f64
    }

    /// For each stage, how often each outcome occurred: answered, an error code, or skipped.
    pub fn stages(&self) -> &BTreeMap<&'static str, BTreeMap<&'static str, u64>> {
        &self.stages
    }

    /// The number of inputs that panicked, gave a wrong answer, or took too long.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The first wrong inputs, with their texts.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    /// Merges this part of a run with a later one.
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

/// Parses the text and runs a few steps on the layout. Returns the outcome of each stage.
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
            Ok(Tried::TooLarge) => "skipped",
            Err(error) => rendered(rng, &error),
        };
        stages.push((stage, outcome));
    }
    stages
}

/// The code of an error, after checking that the error can be rendered.
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

/// A second layout for binary operations: a seed, or often the normal form of the same tile.
fn other(rng: &mut Rng, tile: &TileLayout, seeds: &[String]) -> TileLayout {
    let own = rng.percent(40);
    let seed = rng.pick(seeds).parse::<Layout>().ok();
    let seed = seed.and_then(|layout| layout.tile().ok().cloned());
    seed.filter(|_| !own).unwrap_or_else(|| tile.canonicalize())
}

/// The histogram: one row per stage.
impl fmt::Display for TextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, share) = (self.inputs(), 100.0 * self.parsed_share());
        writeln!(f, "{inputs} texts, {share:.1}% parsed, {} wrong", self.wrong)?;
        let first = self.stages.get_key_value(PARSE).into_iter();
        let rest = self.stages.iter().filter(|(stage, _)| **stage != PARSE);
        for (stage, outcomes) in first.chain(rest) {
            writeln!(f, "{stage:<16} {}", counts(outcomes))?;
        }
        Ok(())
    }
}
