//! The tables of a move in rounds: for every round and lane, the entries that its offsets and selectors are computed
//! from.

use tilewright_expr::Expr;
use tilewright_layout::access::LANES;

use super::round::{Round, RoundSide, Selection};
use super::selectors::packed;
use crate::permute_layout::entry::{HIGH, MOST_HIGH, pair, unpaired};
use crate::refusal::Refusal;

/// How the offsets of both sides are stored in tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoding {
    /// What each turn counts in an entry of the source: more than any word.
    pub(crate) src_unit: i64,
    /// The same for the destination.
    pub(crate) dst_unit: i64,
    /// Whether one entry holds the values of both sides.
    pub(crate) is_packed: bool,
}

impl Encoding {
    /// The encoding of these rounds; `None` if the values do not fit an entry.
    pub(crate) fn of(rounds: &[Round]) -> Option<Encoding> {
        let unit = |side: fn(&Round) -> &RoundSide| {
            let most = rounds.iter().map(|round| side(round).most()).max().unwrap_or(0);
            u32::try_from(most + 1).ok()?.checked_next_power_of_two().map(i64::from)
        };
        let (src_unit, dst_unit) = (unit(|round| &round.src)?, unit(|round| &round.dst)?);
        let turns = rounds.iter().map(|round| round.shape.steps() as i64).max().unwrap_or(1);
        let is_packed = src_unit * turns <= HIGH && dst_unit * turns <= MOST_HIGH;
        let most = src_unit.max(dst_unit) * turns;
        (most <= i64::from(i32::MAX)).then_some(Encoding { src_unit, dst_unit, is_packed })
    }

    /// What the values in each table are called.
    pub(crate) fn names(&self) -> &'static [&'static str] {
        if self.is_packed { &["offset"] } else { &["from", "to"] }
    }

    /// The tables of offsets: round by round, and lane by lane.
    pub(crate) fn tables(&self, rounds: &[Round]) -> Vec<Vec<i64>> {
        let lanes = rounds.iter().flat_map(|round| (0..LANES).map(move |lane| (round, lane)));
        let both = lanes.map(|(round, lane)| {
            let src = round.src.values(lane, round.form, self.src_unit);
            (src, round.dst.values(lane, round.form, self.dst_unit))
        });
        if self.is_packed {
            let pairs = both.flat_map(|(src, dst)| src.into_iter().zip(dst));
            return vec![pairs.map(|(src, dst)| pair(src, dst)).collect()];
        }
        let (src, dst): (Vec<Vec<i64>>, Vec<Vec<i64>>) = both.unzip();
        vec![src.concat(), dst.concat()]
    }

    /// The values of both sides, from the entries of a lane in every table. Error: there is neither one table nor two.
    pub(crate) fn values(&self, entries: &[Vec<Expr>]) -> Result<[Vec<Expr>; 2], Refusal> {
        match entries {
            [packed] => {
                let (src, dst) = packed.iter().map(unpaired).map(|[src, dst]| (src, dst)).unzip();
                Ok([src, dst])
            }
            [src, dst] => Ok([src.clone(), dst.clone()]),
            others => Err(format!("offsets in {} tables", others.len()).into()),
        }
    }
}

/// Where the entries of a round begin in every table of offsets.
pub(crate) fn first_value(rounds: &[Round], round: usize) -> usize {
    rounds[..round].iter().map(|round| round.values() * LANES).sum()
}

/// Entries of a lane in the table of selectors.
pub(crate) fn selector_entries(round: &Round) -> usize {
    match &round.selection {
        Selection::Listed(selectors) => selectors.first().map_or(0, |selectors| packed(selectors).len()),
        Selection::Lane | Selection::Turns | Selection::Same(_) => 0,
    }
}

/// Where the entries of a round begin in the table of selectors.
pub(crate) fn first_selector(rounds: &[Round], round: usize) -> usize {
    rounds[..round].iter().map(|round| selector_entries(round) * LANES).sum()
}

/// The table of selectors: round by round, and lane by lane.
pub(crate) fn selector_table(rounds: &[Round]) -> Vec<i64> {
    let mut table = Vec::new();
    for round in rounds {
        let Selection::Listed(selectors) = &round.selection else { continue };
        let resting = vec![0; selector_entries(round)];
        let of_lane = |lane: usize| selectors.get(lane).map_or_else(|| resting.clone(), |selectors| packed(selectors));
        table.extend((0..LANES).flat_map(of_lane));
    }
    table
}
