//! The results for one pair.

use tilewright::ir::plan::VariantResult;

use super::judge::Bounds;
use super::measure::Trial;
use super::pairs::Pair;
use super::subject::{SCHEDULED, XOR};

/// A pair with the results of all variants tried.
pub(crate) struct Story<'p> {
    pub(crate) pair: &'p Pair,
    pub(crate) bounds: Bounds,
    /// The variant chosen by the compiler, once it was run.
    pub(crate) chosen: Option<&'static str>,
    pub(crate) failures: Vec<String>,
    considered: Vec<VariantResult>,
    /// The successful trials.
    trials: Vec<Trial>,
}

impl<'p> Story<'p> {
    pub(crate) fn new(pair: &'p Pair) -> Story<'p> {
        let bounds = pair.bounds();
        Story { pair, bounds, chosen: None, failures: Vec::new(), considered: Vec::new(), trials: Vec::new() }
    }

    /// Adds the result of a variant; the first is the chosen one.
    pub(crate) fn take(&mut self, trial: Result<Trial, String>) {
        let mut trial = match trial {
            Ok(trial) => trial,
            Err(why) => return self.failures.push(why),
        };
        if self.chosen.is_none() {
            self.chosen = Some(trial.variant);
            self.considered = std::mem::take(&mut trial.considered);
            let refusal = self.refusal();
            self.failures.extend(refusal);
        }
        match trial.wrong.take().or_else(|| self.excess(&trial)) {
            Some(why) => self.failures.push(format!("{}: {why}", trial.variant)),
            None => self.trials.push(trial),
        }
    }

    /// The failure if a variant takes more wavefronts than the positions require. Only schedules of single elements
    /// guarantee so few; other variants trade wavefronts for instructions.
    fn excess(&self, trial: &Trial) -> Option<String> {
        let promises = [SCHEDULED, XOR].contains(&trial.variant);
        if promises { self.bounds.check(trial.wavefronts).err() } else { None }
    }

    /// Why `warp_scheduled`, which should accept every legal pair, refuses this one.
    fn refusal(&self) -> Option<String> {
        let answer = self.considered.iter().find(|c| c.variant == SCHEDULED).map(|c| &c.answer);
        match answer {
            Some(Ok(_)) => None,
            Some(Err(reasons)) => Some(format!("{SCHEDULED} refuses: {reasons:?}")),
            None => Some(format!("{SCHEDULED} was not considered")),
        }
    }

    /// Whether a variant accepts the pair and is not the chosen one.
    pub(crate) fn is_left_for(&self, variant: &str) -> bool {
        let accepts = self.considered.iter().any(|c| c.variant == variant && c.answer.is_ok());
        accepts && self.chosen != Some(variant)
    }

    /// The wavefronts of a variant for reading and for writing, if it moved the pair correctly.
    pub(crate) fn wavefronts(&self, variant: &str) -> Option<[u64; 2]> {
        self.trials.iter().find(|trial| trial.variant == variant).map(|trial| trial.wavefronts)
    }

    /// The wavefronts of the chosen variant.
    pub(crate) fn chosen_wavefronts(&self) -> Option<[u64; 2]> {
        self.wavefronts(self.chosen?)
    }
}
