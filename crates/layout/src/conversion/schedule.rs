//! Which steps an edge may use: the schedules that are tried.

use std::ops::Range;

use crate::access::LANES;

use super::job::Job;
use super::needs::WordTransfer;

/// An initial number of steps, and the steps that each edge may use: all if there are no ranges.
pub(crate) struct Schedule {
    /// The steps that each edge may use; `None` for all.
    pub(crate) ranges: Option<Ranges>,
    /// The initial number of steps.
    pub(crate) count: usize,
}

/// A range of steps for each key of edges: as many as any lane needs words of that key, so each edge finds a step
/// there.
pub(crate) struct Ranges {
    key: Key,
    /// The range of steps for each key.
    steps: Vec<Range<usize>>,
}

/// What the edges that use the same range of steps have in common.
enum Key {
    /// The XOR of source and lane.
    Mask,
    /// The word that is sent and the word of `b` that it is for.
    Words { words: usize, targets: usize },
}

impl Key {
    fn of(&self, edge: &WordTransfer) -> usize {
        match self {
            Key::Mask => edge.source ^ edge.lane,
            Key::Words { words, .. } => edge.target * words + edge.word,
        }
    }

    fn count(&self) -> usize {
        match self {
            Key::Mask => LANES,
            Key::Words { words, targets } => words * targets,
        }
    }
}

impl Ranges {
    fn by(key: Key, warps: &[Vec<WordTransfer>]) -> Ranges {
        let mut most = vec![0usize; key.count()];
        for edges in warps {
            let mut counts = vec![0usize; LANES * key.count()];
            for edge in edges {
                let count = &mut counts[LANES * key.of(edge) + edge.lane];
                *count += 1;
                most[key.of(edge)] = most[key.of(edge)].max(*count);
            }
        }
        let mut next = 0;
        let mut steps = Vec::with_capacity(most.len());
        for length in most {
            steps.push(next..next + length);
            next += length;
        }
        Ranges { key, steps }
    }

    /// The steps that an edge may use.
    pub(crate) fn of(&self, edge: &WordTransfer) -> Range<usize> {
        self.steps[self.key.of(edge)].clone()
    }

    fn schedule(self) -> Schedule {
        let count = self.steps.last().map_or(0, |last| last.end);
        Schedule { ranges: Some(self), count }
    }
}

/// The schedules in the order in which they are tried: one XOR mask in each step; the fewest steps; one word of `a` for
/// one word of `b` in each step.
pub(crate) fn schedules(job: &Job, warps: &[Vec<WordTransfer>]) -> [Schedule; 3] {
    let words = Key::Words { words: job.words, targets: job.targets };
    [
        Ranges::by(Key::Mask, warps).schedule(),
        Schedule { ranges: None, count: degree(warps) },
        Ranges::by(words, warps).schedule(),
    ]
}

/// The fewest steps of any schedule: words that one lane must receive, or different words that one must send.
fn degree(warps: &[Vec<WordTransfer>]) -> usize {
    let mut most = 0usize;
    for edges in warps {
        let (mut receives, mut sends) = ([0usize; LANES], [0usize; LANES]);
        let mut items: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.source, edge.word)).collect();
        items.sort_unstable();
        items.dedup();
        for (source, _) in items {
            sends[source] += 1;
        }
        for edge in edges {
            receives[edge.lane] += 1;
        }
        most = receives.iter().chain(&sends).fold(most, |most, count| most.max(*count));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(edges: &[(usize, usize, usize)]) -> [usize; 3] {
        let job = Job::new(&"S[4:1@reg]".parse().unwrap(), &"S[4:1@reg]".parse().unwrap(), 32).unwrap();
        let edge = |&(source, word, lane): &(usize, usize, usize)| WordTransfer { source, word, lane, target: 0 };
        let edges: Vec<WordTransfer> = edges.iter().map(edge).collect();
        schedules(&job, &[edges]).map(|schedule| schedule.count)
    }

    #[test]
    fn a_word_for_all_lanes_is_one_step_but_one_for_each_mask() {
        assert_eq!(counts(&[(0, 0, 1), (0, 0, 2), (0, 0, 3)]), [3, 1, 1]);
    }

    #[test]
    fn different_words_of_one_lane_take_turns() {
        assert_eq!(counts(&[(0, 0, 1), (0, 1, 1), (0, 2, 2)]), [3, 3, 3]);
    }
}
