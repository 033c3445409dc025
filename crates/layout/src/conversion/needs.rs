//! What the lanes of each warp need from each other: the words that must travel.

use std::cmp::Reverse;

use crate::access::LANES;

use super::job::Job;
use super::renaming::own_picks;
use super::table::NONE;

/// A lane needs a word of another lane of its warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordTransfer {
    /// The lane that has it.
    pub(crate) source: usize,
    /// Which of the source's words of `a` it is.
    pub(crate) word: usize,
    /// The lane that needs it.
    pub(crate) lane: usize,
    /// The first of that lane's words of `b` that needs it.
    pub(crate) target: usize,
}

/// The edges of all warps.
pub(crate) struct Needs {
    /// The edges of each warp.
    pub(crate) warps: Vec<Vec<WordTransfer>>,
    /// As in [`super::Picks`], but with the number of an edge in its warp in place of a step.
    pub(crate) picks: Vec<i32>,
    /// Whether some element is in several places of a warp that needs it.
    pub(crate) has_choice: bool,
}

impl Needs {
    /// `None` where a warp needs an element that it does not have. Where it has several copies, the nearest lane (least
    /// XOR) is used; with `spread`, words that are sent anyway are preferred, then lanes that send few words.
    pub(crate) fn of(job: &Job, spread: bool) -> Option<Needs> {
        let mut picks = own_picks(job);
        let mut missing = vec![false; job.size];
        let mut found = Needs { warps: Vec::with_capacity(job.warps), picks: Vec::new(), has_choice: false };
        let registers = job.b.registers();
        for (warp, picks) in picks.chunks_mut(LANES * registers).enumerate() {
            let mut needs = WarpNeeds::new(job, warp, spread, &mut missing);
            for (lane, picks) in picks.chunks_mut(registers).enumerate() {
                needs.add_lane(lane, picks)?;
            }
            found.has_choice |= needs.has_choice;
            found.warps.push(needs.edges);
        }
        Some(Needs { picks, ..found })
    }
}

struct WarpNeeds<'a> {
    job: &'a Job,
    warp: usize,
    /// Whether to prefer words that are sent anyway, and lanes that send few words.
    spread: bool,
    /// The edges of the warp so far.
    edges: Vec<WordTransfer>,
    /// The edge over which the current lane gets item `source * words + word`.
    edge_of: Vec<Option<usize>>,
    /// The number of different words that each lane sends.
    sent: [usize; LANES],
    /// Whether item `source * words + word` is sent.
    is_sent: Vec<bool>,
    /// Whether the current lane lacks each element.
    missing: &'a mut [bool],
    /// Whether some element that is needed has several places in the warp.
    has_choice: bool,
}

/// A place from which an element can come.
struct SourceCandidate {
    /// The lane that holds the element.
    source: usize,
    /// The register of that lane in `a`.
    register: usize,
    /// The word of `a` that contains the register.
    word: usize,
    /// `source * words + word`.
    item: usize,
}

impl<'a> WarpNeeds<'a> {
    fn new(job: &'a Job, warp: usize, spread: bool, missing: &'a mut [bool]) -> WarpNeeds<'a> {
        let items = LANES * job.words;
        WarpNeeds {
            job,
            warp,
            spread,
            edges: Vec::new(),
            edge_of: vec![None; items],
            sent: [0; LANES],
            is_sent: vec![false; items],
            missing,
            has_choice: false,
        }
    }

    /// Adds what one lane needs; `None` where no lane of the warp has it.
    fn add_lane(&mut self, lane: usize, picks: &mut [i32]) -> Option<()> {
        let job = self.job;
        let open = self.open(lane, picks);
        for (_, element) in &open {
            self.missing[*element] = true;
        }
        self.edge_of.fill(None);
        let first = self.warp * LANES * job.a.registers();
        for (register, element) in open {
            let places = job.holders.between(element, first, first + LANES * job.a.registers());
            self.has_choice |= places.len() > 1;
            let candidates = places.iter().map(|place| self.candidate(place - first));
            let best = candidates.min_by_key(|candidate| self.rank(candidate, lane))?;
            let edge = match self.edge_of[best.item] {
                Some(edge) => edge,
                None => self.add_edge(&best, lane, register / job.per_word),
            };
            picks[register] = (job.own() + edge * job.per_word + best.register % job.per_word) as i32;
        }
        Some(())
    }

    /// The registers of `b` whose elements are not on the lane, with the elements.
    fn open(&self, lane: usize, picks: &[i32]) -> Vec<(usize, usize)> {
        let thread = self.warp * LANES + lane;
        let unpicked = picks.iter().enumerate().filter(|(_, pick)| **pick == NONE);
        let element = |register: usize| usize::try_from(self.job.b.at(thread, register)).ok();
        unpicked.filter_map(|(register, _)| Some((register, element(register)?))).collect()
    }

    fn candidate(&self, place: usize) -> SourceCandidate {
        let (source, register) = (place / self.job.a.registers(), place % self.job.a.registers());
        let word = register / self.job.per_word;
        SourceCandidate { source, register, word, item: source * self.job.words + word }
    }

    /// Less is better: a word that the lane already gets, then one with many other elements that it lacks, then the
    /// load.
    fn rank(&self, candidate: &SourceCandidate, lane: usize) -> (bool, Reverse<usize>, usize, usize, usize) {
        let SourceCandidate { source, register, word, item } = *candidate;
        let pieces = self.job.pieces(self.warp * LANES + source, word);
        let gain = pieces.filter(|element| *element != NONE && self.missing[*element as usize]).count();
        let load = if self.spread && !self.is_sent[item] { self.sent[source] + 1 } else { 0 };
        (self.edge_of[item].is_none(), Reverse(gain), load, source ^ lane, register)
    }

    fn add_edge(&mut self, from: &SourceCandidate, lane: usize, target: usize) -> usize {
        let SourceCandidate { source, word, item, .. } = *from;
        let job = self.job;
        let edge = self.edges.len();
        self.edges.push(WordTransfer { source, word, lane, target });
        self.edge_of[item] = Some(edge);
        if !self.is_sent[item] {
            self.is_sent[item] = true;
            self.sent[source] += 1;
        }
        for element in job.pieces(self.warp * LANES + source, word).filter(|element| *element != NONE) {
            self.missing[element as usize] = false;
        }
        edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(a: &str, b: &str, bits: i64, spread: bool) -> Option<Vec<Vec<WordTransfer>>> {
        let job = Job::new(&a.parse().unwrap(), &b.parse().unwrap(), bits).unwrap();
        Needs::of(&job, spread).map(|needs| needs.warps)
    }

    #[test]
    fn elements_of_one_word_travel_together() {
        let (a, b) = ("S[(32,4):(1@laneid,1@reg)]", "S[(2,16,4):(1@laneid,2@laneid,1@reg)]");
        let edges = |bits| needs(a, b, bits, false).unwrap()[0].len();
        assert_eq!((edges(32), edges(16), edges(8)), (120, 60, 30));
    }

    #[test]
    fn of_copies_the_nearest_serves_or_the_one_that_sends_anyway() {
        let (a, b) = ("S[2:1@laneid] + R[2:2@laneid]", "S[2:1@reg] + R[4:1@laneid]");
        let sources = |spread| -> Vec<usize> { needs(a, b, 32, spread).unwrap()[0].iter().map(|e| e.source).collect() };
        assert_eq!((sources(false), sources(true)), (vec![1, 0, 3, 2], vec![1, 0, 1, 0]));
    }

    #[test]
    fn what_another_warp_has_cannot_be_shuffled() {
        assert_eq!(needs("S[64:1@tx]", "S[(2,32):(1@tx,2@tx)]", 32, false), None);
    }
}
