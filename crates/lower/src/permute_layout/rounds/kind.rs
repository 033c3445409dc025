//! The shapes of rounds, and which of them a move takes.

use tilewright_layout::access::LANES;

/// The shape of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Words that a lane holds: its accesses on either side.
    pub(crate) steps: usize,
    /// Neighbouring lanes that hold one block together.
    pub(crate) sharing: usize,
}

impl Kind {
    /// Blocks that fit a round.
    pub(crate) fn capacity(self) -> usize {
        LANES / self.sharing
    }
}

/// Rounds that hold so many blocks of `width` x `width` units: first those with the fewest steps, in which lanes may
/// have to share blocks, then those in which fewer do.
pub(crate) fn choices(blocks: usize, width: usize) -> Vec<Vec<Kind>> {
    let steps = (blocks * width).div_ceil(LANES);
    let tails: &[&[usize]] = match (width, steps % width) {
        (_, 0) => &[&[]],
        (4, 1) => &[&[4], &[2], &[1]],
        (4, 3) => &[&[2, 4], &[1]],
        _ => &[&[2], &[1]],
    };
    let kind = |sharing: usize| Kind { steps: width / sharing, sharing };
    let with = |tail: &&[usize]| {
        let whole = std::iter::repeat_n(1, steps / width);
        whole.chain(tail.iter().copied()).map(kind).collect::<Vec<Kind>>()
    };
    tails.iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_choice_has_as_many_steps_as_the_words_need() {
        for (width, blocks) in [1, 2, 4].into_iter().flat_map(|width| (1..200).map(move |blocks| (width, blocks))) {
            let choices = choices(blocks, width);
            let steps: usize = choices[0].iter().map(|kind| kind.steps).sum();
            assert_eq!(steps, (blocks * width).div_ceil(32), "{blocks} blocks of {width}");
            for kinds in choices {
                assert!(kinds.iter().map(|kind| kind.capacity()).sum::<usize>() >= blocks, "{kinds:?}");
            }
        }
    }
}
