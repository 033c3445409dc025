//! How full the banks are in every round.

use super::shape::RoundShape;
use crate::permute_layout::banks::BANKS;

/// The round of every block, and the number of excess words: those beyond what their banks can serve.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    /// The round of every block.
    pub(crate) round_of: Vec<usize>,
    /// Excess words in all rounds.
    pub(crate) conflicts: i64,
}

/// How many words of each bank move in each round.
#[derive(Clone, Debug)]
pub(crate) struct Loads<'a> {
    shapes: &'a [RoundShape],
    /// Banks of the words of every block.
    banks: &'a [Vec<usize>],
    /// By round: words of each bank, of the source and then of the destination.
    words: Vec<[usize; 2 * BANKS]>,
}

impl<'a> Loads<'a> {
    pub(crate) fn new(shapes: &'a [RoundShape], banks: &'a [Vec<usize>]) -> Loads<'a> {
        Loads { shapes, banks, words: vec![[0; 2 * BANKS]; shapes.len()] }
    }

    /// Puts a block into a round. Returns by how many the excess words grow.
    pub(crate) fn add(&mut self, block: usize, round: usize) -> i64 {
        let (words, steps) = (&mut self.words[round], self.shapes[round].steps());
        let mut more = 0;
        for bank in &self.banks[block] {
            words[*bank] += 1;
            more += i64::from(words[*bank] > steps);
        }
        more
    }

    /// Takes a block out of a round. Returns by how many the excess words shrink.
    pub(crate) fn remove(&mut self, block: usize, round: usize) -> i64 {
        let (words, steps) = (&mut self.words[round], self.shapes[round].steps());
        let mut fewer = 0;
        for bank in &self.banks[block] {
            fewer += i64::from(words[*bank] > steps);
            words[*bank] -= 1;
        }
        fewer
    }

    /// By how many the excess words would grow if the block were put into the round.
    pub(crate) fn cost(&mut self, block: usize, round: usize) -> i64 {
        let cost = self.add(block, round);
        self.remove(block, round);
        cost
    }
}
