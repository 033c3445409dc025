//! The results for the pairs of one width, and checks of all of them together.

use tilewright::prelude::DType;

use super::measure::Tried;
use super::pairs::{Family, Pair};
use super::story::Story;
use super::subject::{PACKED, SCHEDULED, XOR, title};

/// The percentage of dense shuffles of elements narrower than a word that must take the minimum number of wavefronts.
const FREE_SHUFFLES: usize = 95;
/// The minimum number of pairs of each class.
const LEAST: usize = 30;
/// Classes that do not occur for a dtype.
const WITHOUT: [(DType, Class); 3] = [
    // Elements that are whole words cannot be packed.
    (DType::B32, Class::Packed),
    (DType::B64, Class::Packed),
    (DType::B128, Class::Packed),
];

/// How a pair can be moved. The first three classes are disjoint; a pair that moves in packed words belongs to one of
/// them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// The documented XOR moves it.
    Xor,
    /// It has a schedule without bank conflicts, but the documented XOR does not move it.
    Even,
    /// Bank conflicts are unavoidable.
    Uneven,
    /// `warp_packed` moves it.
    Packed,
}

/// The results of all pairs of a width.
pub(crate) struct Width<'p> {
    dtype: DType,
    stories: Vec<Story<'p>>,
    /// Failures that do not belong to a single pair.
    failures: Vec<String>,
}

/// The summary of a width.
pub struct Summary {
    /// One line with the counts.
    pub line: String,
    /// One line per failure.
    pub failures: Vec<String>,
    /// The number of pairs.
    pub pairs: usize,
    /// The number of pairs, and of checks of all pairs together, that failed.
    pub failed: usize,
}

impl Class {
    const ALL: [Class; 4] = [Class::Xor, Class::Even, Class::Uneven, Class::Packed];

    fn name(self) -> &'static str {
        match self {
            Class::Xor => "by XOR",
            Class::Even => "even but not XOR",
            Class::Uneven => "uneven",
            Class::Packed => "packed",
        }
    }

    /// The variant that moves pairs of this class, if the class belongs to a variant.
    fn variant(self) -> Option<&'static str> {
        match self {
            Class::Xor => Some(XOR),
            Class::Packed => Some(PACKED),
            Class::Even | Class::Uneven => None,
        }
    }

    fn has(self, story: &Story<'_>) -> bool {
        let by_xor = story.wavefronts(XOR).is_some();
        match self {
            Class::Xor => by_xor,
            Class::Even => story.bounds.is_even() && !by_xor,
            Class::Uneven => !story.bounds.is_even(),
            Class::Packed => story.wavefronts(PACKED).is_some(),
        }
    }
}

impl<'p> Width<'p> {
    /// No results yet.
    pub(crate) fn new(dtype: DType, pairs: &'p [Pair]) -> Width<'p> {
        let stories = pairs.iter().map(Story::new).collect();
        Width { dtype, stories, failures: Vec::new() }
    }

    /// Adds the results of a variant, or of the chosen ones.
    pub(crate) fn take(&mut self, tried: Tried) {
        for (number, trial) in tried.trials {
            self.stories[number].take(trial);
        }
        self.failures.extend(tried.broken);
    }

    /// The pairs that a variant accepts but has not moved yet.
    pub(crate) fn left_for(&self, variant: &str) -> Vec<&'p Pair> {
        self.stories.iter().filter(|story| story.is_left_for(variant)).map(|story| story.pair).collect()
    }

    pub(crate) fn summary(mut self) -> Summary {
        self.check_classes();
        self.check_narrow_shuffles();
        let failed_pairs = self.count(|story| !story.failures.is_empty());
        let failed = failed_pairs + self.failures.len();
        Summary { line: self.line(failed_pairs), failures: self.told_failures(), pairs: self.stories.len(), failed }
    }

    fn told_failures(&self) -> Vec<String> {
        let title = title(self.dtype);
        let mut told = Vec::new();
        for story in &self.stories {
            told.extend(story.failures.iter().map(|why| format!("{title} {}: {why}", story.pair)));
        }
        told.extend(self.failures.iter().map(|why| format!("{title}: {why}")));
        told
    }

    fn count(&self, is: impl Fn(&Story<'p>) -> bool) -> usize {
        self.stories.iter().filter(|story| is(story)).count()
    }

    fn line(&self, failed: usize) -> String {
        let pairs = self.stories.len();
        let classes: Vec<String> = Class::ALL.into_iter().map(|class| self.class(class)).collect();
        format!(
            "{}: {pairs} pairs, {} right; {}; {}{}",
            title(self.dtype),
            pairs - failed,
            classes.join(", "),
            self.wavefronts(),
            self.narrow()
        )
    }

    /// `by XOR 62 (20 chosen)`
    fn class(&self, class: Class) -> String {
        let found = self.count(|story| class.has(story));
        let chosen = class.variant().map(|variant| self.count(|story| story.chosen == Some(variant)));
        let chosen = chosen.map(|chosen| format!(" ({chosen} chosen)")).unwrap_or_default();
        format!("{} {found}{chosen}", class.name())
    }

    /// The wavefronts of all pairs, for reading and writing.
    fn wavefronts(&self) -> String {
        let total =
            |of: &dyn Fn(&Story<'p>) -> Option<[u64; 2]>| -> u64 { self.stories.iter().filter_map(of).flatten().sum() };
        let chosen = total(&Story::chosen_wavefronts);
        let scheduled = total(&|story| story.wavefronts(SCHEDULED));
        let least = total(&|story| Some(story.bounds.least()));
        format!("wavefronts {chosen} chosen, {scheduled} scheduled, at least {least} element by element")
    }

    fn is_narrow(&self) -> bool {
        self.dtype.bytes() < 4
    }

    /// The wavefronts of each schedule above the minimum, for the dense shuffles or for all pairs.
    fn gaps(&self, only_dense: bool) -> Vec<u64> {
        let asked = self.stories.iter().filter(|story| !only_dense || story.pair.family == Family::Dense);
        asked.filter_map(|story| Some(story.bounds.gap(story.wavefronts(SCHEDULED)?))).collect()
    }

    fn narrow(&self) -> String {
        if !self.is_narrow() {
            return String::new();
        }
        let dense = self.gaps(true);
        let free = dense.iter().filter(|gap| **gap == 0).count();
        let largest = self.gaps(false).into_iter().max().unwrap_or(0);
        format!("; {free} of {} dense shuffles at the minimum, largest excess {largest}", dense.len())
    }

    fn check_classes(&mut self) {
        for class in Class::ALL {
            let found = self.count(|story| class.has(story));
            if found < LEAST && !WITHOUT.contains(&(self.dtype, class)) {
                self.failures.push(format!("{found} pairs {}, fewer than {LEAST}", class.name()));
            }
        }
    }

    fn check_narrow_shuffles(&mut self) {
        let dense = self.gaps(true);
        let free = dense.iter().filter(|gap| **gap == 0).count();
        if self.is_narrow() && free * 100 < dense.len() * FREE_SHUFFLES {
            self.failures.push(format!("{free} of {} dense shuffles at the minimum", dense.len()));
        }
    }
}
