//! The shapes of rounds, and which of them a move takes.

use tilewright_layout::access::LANES;

/// The shape of a round: how many words of a block a lane holds, and how many neighbouring lanes hold one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundShape {
    /// Blocks of 4 words, each in one lane.
    Four,
    /// Blocks of 4 words, each in two lanes.
    FourInTwo,
    /// Blocks of 4 words, each in four lanes.
    FourInFour,
    /// Blocks of 2 words, each in one lane.
    Two,
    /// Blocks of 2 words, each in two lanes.
    TwoInTwo,
    /// Words that move whole.
    One,
}

impl RoundShape {
    /// Words that a lane holds: its accesses on either side.
    pub(crate) fn steps(self) -> usize {
        match self {
            RoundShape::Four => 4,
            RoundShape::FourInTwo | RoundShape::Two => 2,
            RoundShape::FourInFour | RoundShape::TwoInTwo | RoundShape::One => 1,
        }
    }

    /// Neighbouring lanes that hold one block together.
    pub(crate) fn sharing(self) -> usize {
        match self {
            RoundShape::FourInFour => 4,
            RoundShape::FourInTwo | RoundShape::TwoInTwo => 2,
            RoundShape::Four | RoundShape::Two | RoundShape::One => 1,
        }
    }

    /// Words of a block.
    pub(crate) fn width(self) -> usize {
        self.steps() * self.sharing()
    }

    /// Blocks that fit a round.
    pub(crate) fn capacity(self) -> usize {
        LANES / self.sharing()
    }
}

/// Rounds that hold so many blocks of `width` x `width` units: first those with the fewest steps, in which lanes may
/// have to share blocks, then those in which fewer do. `None` for a width other than 1, 2 or 4.
pub(crate) fn choices(blocks: usize, width: usize) -> Option<Vec<Vec<RoundShape>>> {
    let steps = (blocks * width).div_ceil(LANES);
    let (whole, tails): (RoundShape, &[&[RoundShape]]) = match (width, steps % width.max(1)) {
        (1, _) => (RoundShape::One, &[&[]]),
        (2, 0) => (RoundShape::Two, &[&[]]),
        (2, _) => (RoundShape::Two, &[&[RoundShape::TwoInTwo], &[RoundShape::Two]]),
        (4, 0) => (RoundShape::Four, &[&[]]),
        (4, 1) => (RoundShape::Four, &[&[RoundShape::FourInFour], &[RoundShape::FourInTwo], &[RoundShape::Four]]),
        (4, 2) => (RoundShape::Four, &[&[RoundShape::FourInTwo], &[RoundShape::Four]]),
        (4, _) => (RoundShape::Four, &[&[RoundShape::FourInTwo, RoundShape::FourInFour], &[RoundShape::Four]]),
        _ => return None,
    };
    let with = |tail: &&[RoundShape]| std::iter::repeat_n(whole, steps / width).chain(tail.iter().copied()).collect();
    Some(tails.iter().map(with).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_choice_has_as_many_steps_as_the_words_need() {
        for (width, blocks) in [1, 2, 4].into_iter().flat_map(|width| (1..200).map(move |blocks| (width, blocks))) {
            let choices = choices(blocks, width).unwrap();
            let steps: usize = choices[0].iter().map(|shape| shape.steps()).sum();
            assert_eq!(steps, (blocks * width).div_ceil(32), "{blocks} blocks of {width}");
            for shapes in choices {
                assert!(shapes.iter().map(|shape| shape.capacity()).sum::<usize>() >= blocks, "{shapes:?}");
            }
        }
    }
}
