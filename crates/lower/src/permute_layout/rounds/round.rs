//! Rounds: what every lane holds, and how it obtains its offsets.

use tilewright_expr::Expr;
use tilewright_layout::access::{AccessKind, WarpAccess};

use super::orders::orders;
use super::recipe::{of_lane, of_orders, of_turns};
use super::selectors::unpacked;
use super::shape::RoundShape;
use super::units::WordBlock;
use crate::refusal::Refusal;

/// Bytes of a word.
const WORD: i64 = 4;

/// Blocks that move together: in each step every lane accesses one word.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) shape: RoundShape,
    pub(crate) src: RoundSide,
    pub(crate) dst: RoundSide,
    pub(crate) form: OffsetForm,
    pub(crate) selection: Selection,
}

/// What the lanes of a round access on one side, from lane 0 on; further lanes are idle.
#[derive(Clone, Debug)]
pub(crate) struct RoundSide {
    /// The words of every lane: adjacent rows or columns of a block.
    words: Vec<Vec<i64>>,
    /// Which of its words a lane accesses in each step.
    orders: Vec<Vec<usize>>,
}

/// What a table has to hold for the offsets of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffsetForm {
    /// The first word of a lane, and its turn: words lie at equal distances, and step `s` accesses word `s ^ turn`.
    Turned,
    /// The word of every step.
    Listed,
}

/// Where the selectors of a round come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// From the lane's number.
    Lane,
    /// From the turns of both sides.
    Turns,
    /// They are the same in all lanes.
    Same(Vec<i64>),
    /// A table holds those of every lane.
    Listed(Vec<Vec<i64>>),
}

impl RoundSide {
    fn of(words: Vec<Vec<i64>>) -> RoundSide {
        let orders = orders(&words);
        RoundSide { words, orders }
    }

    /// Accesses of a lane.
    fn steps(&self) -> usize {
        self.words.first().map_or(0, Vec::len)
    }

    /// The word that a lane accesses in a step; `None` if it is idle.
    fn word(&self, lane: usize, step: usize) -> Option<i64> {
        Some(self.words.get(lane)?[self.orders[lane][step]])
    }

    /// The greatest word.
    pub(crate) fn most(&self) -> i64 {
        self.words.iter().flatten().copied().max().unwrap_or(0)
    }

    fn is_turned(&self) -> bool {
        self.orders.iter().all(|order| order.iter().enumerate().all(|(step, at)| *at == step ^ order[0]))
    }

    /// True when every lane accesses its words in order.
    fn is_straight(&self) -> bool {
        self.is_turned() && self.orders.iter().all(|order| order[0] == 0)
    }

    /// The distance from one word of a lane to the next, if it is the same everywhere.
    fn distance(&self) -> Option<i64> {
        let first = self.words.first()?;
        let distance = first.get(1)? - first[0];
        let is_even = self.words.iter().all(|words| words.windows(2).all(|pair| pair[1] - pair[0] == distance));
        is_even.then_some(distance)
    }

    /// Wavefronts of all its accesses in shared memory.
    pub(crate) fn wavefronts(&self, kind: AccessKind) -> i64 {
        let address = |lane, step| self.word(lane, step).map(|word| (word * WORD) as u64);
        let of_step = |step| WarpAccess::of(WORD as u64, kind, |lane| address(lane, step)).wavefronts();
        (0..self.steps()).map(|step| i64::from(of_step(step))).sum()
    }

    /// The table entries of a lane, in which each turn counts `unit`; zeros for an idle lane.
    pub(crate) fn values(&self, lane: usize, form: OffsetForm, unit: i64) -> Vec<i64> {
        match form {
            OffsetForm::Turned => {
                let words = self.words.get(lane).zip(self.orders.get(lane));
                vec![words.map_or(0, |(words, order)| words[0] + order[0] as i64 * unit)]
            }
            OffsetForm::Listed => (0..self.steps()).map(|step| self.word(lane, step).unwrap_or(0)).collect(),
        }
    }

    /// The words of all steps and the turn, from the values in a table. `name` binds a value that is used several
    /// times. Error: the values are not those of this form.
    pub(crate) fn located(
        &self,
        values: Vec<Expr>,
        form: OffsetForm,
        unit: i64,
        name: &mut dyn FnMut(Expr) -> Expr,
    ) -> Result<(Vec<Expr>, Expr), Refusal> {
        let (value, distance) = match (form, &values[..], self.distance()) {
            (OffsetForm::Listed, ..) => return Ok((values, Expr::constant(0))),
            (OffsetForm::Turned, [value], Some(distance)) => (value, distance),
            (OffsetForm::Turned, ..) => return Err("words in turned order without one value and one distance".into()),
        };
        let (first, turn) =
            if self.is_straight() { (value.clone(), Expr::constant(0)) } else { (value % unit, value / unit) };
        let (first, turn) = (name(first), name(turn));
        let word = |step: usize| &first + &((&turn ^ &Expr::constant(step as i64)) * distance);
        Ok(((0..self.steps()).map(word).collect(), turn))
    }
}

impl Round {
    pub(crate) fn of(shape: RoundShape, blocks: &[&WordBlock]) -> Round {
        let held = |words: &Vec<i64>| words.chunks(shape.steps()).map(<[i64]>::to_vec).collect::<Vec<_>>();
        let src = RoundSide::of(blocks.iter().flat_map(|block| held(&block.rows)).collect());
        let dst = RoundSide::of(blocks.iter().flat_map(|block| held(&block.columns)).collect());
        let is_turned = |side: &RoundSide| side.is_turned() && side.distance().is_some();
        let form = if shape.sharing() == 1 && is_turned(&src) && is_turned(&dst) {
            OffsetForm::Turned
        } else {
            OffsetForm::Listed
        };
        let selection = match form {
            _ if shape.steps() == 1 => Selection::Lane,
            OffsetForm::Turned => Selection::Turns,
            OffsetForm::Listed => listed(shape, &src, &dst),
        };
        Round { shape, src, dst, form, selection }
    }

    /// Lanes that have something to do.
    pub(crate) fn busy(&self) -> usize {
        self.src.words.len()
    }

    /// Values of one side that a table holds for a lane.
    pub(crate) fn values(&self) -> usize {
        match self.form {
            OffsetForm::Turned => 1,
            OffsetForm::Listed => self.shape.steps(),
        }
    }

    /// The selectors of a lane, from its number, the turns of both sides, and the entries of a table. Error: selectors
    /// of this kind do not suit the round.
    pub(crate) fn selectors(&self, lane: &Expr, turns: [&Expr; 2], entries: &[Expr]) -> Result<Vec<Expr>, Refusal> {
        let found = match &self.selection {
            Selection::Lane => of_lane(self.shape, lane),
            Selection::Turns => of_turns(self.shape, turns[0], turns[1]),
            Selection::Same(selectors) => Some(selectors.iter().copied().map(Expr::constant).collect()),
            Selection::Listed(_) => Some(unpacked(entries)),
        };
        Ok(found.ok_or_else(|| format!("no selectors for a round of the shape {:?}", self.shape))?)
    }
}

/// Selectors of all lanes, listed unless they agree.
fn listed(shape: RoundShape, src: &RoundSide, dst: &RoundSide) -> Selection {
    let of_lane = |lane| of_orders(shape, lane, &src.orders, &dst.orders);
    let selectors: Vec<Vec<i64>> = (0..src.words.len()).map(of_lane).collect();
    match selectors.split_first() {
        Some((first, others)) if others.iter().all(|other| other == first) => Selection::Same(first.clone()),
        _ => Selection::Listed(selectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(row: i64, distance: i64) -> WordBlock {
        let words = |first: i64| (0..4).map(|at| first + at * distance).collect();
        WordBlock { rows: words(row), columns: words(4 * row) }
    }

    #[test]
    fn words_at_equal_distances_need_one_value() {
        let blocks: Vec<WordBlock> = (0..8).map(|row| block(row, 8)).collect();
        let round = Round::of(RoundShape::Four, &blocks.iter().collect::<Vec<_>>());
        assert_eq!((round.form, round.values(), round.busy()), (OffsetForm::Turned, 1, 8));
        assert_eq!(round.selection, Selection::Turns);
    }

    #[test]
    fn other_words_are_listed() {
        let mut blocks: Vec<WordBlock> = (0..8).map(|row| block(row, 8)).collect();
        blocks[3].rows[2] += 32;
        let round = Round::of(RoundShape::Four, &blocks.iter().collect::<Vec<_>>());
        assert_eq!((round.form, round.values()), (OffsetForm::Listed, 4));
    }

    #[test]
    fn lanes_that_share_a_block_hold_neighbouring_rows() {
        let round = Round::of(RoundShape::FourInTwo, &[&block(0, 1)]);
        assert_eq!(round.src.words, [[0, 1], [2, 3]]);
    }

    #[test]
    fn what_is_looked_up_gives_the_words_back() {
        let blocks: Vec<WordBlock> = (0..32).map(|row| block(row % 8 + row / 8 * 64, 8)).collect();
        let side = RoundSide::of(blocks.iter().map(|block| block.rows.clone()).collect());
        assert!(side.is_turned() && !side.is_straight());
        for form in [OffsetForm::Turned, OffsetForm::Listed] {
            for lane in 0..32 {
                let values = side.values(lane, form, 1024).into_iter().map(Expr::constant).collect();
                let (words, _) = side.located(values, form, 1024, &mut |value| value).unwrap();
                let expected: Vec<Option<i64>> = (0..4).map(|step| side.word(lane, step)).collect();
                assert_eq!(words.iter().map(Expr::as_const).collect::<Vec<_>>(), expected, "{form:?}, lane {lane}");
            }
        }
    }
}
