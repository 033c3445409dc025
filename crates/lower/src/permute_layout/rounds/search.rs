//! A local search: two blocks of different rounds change places, or a block goes to a free place, until no bank has
//! too many words in any round. Changes for the worse are accepted now and then, more and more rarely.

use std::collections::BTreeMap;

use super::loads::{Loads, Packing};
use super::shape::RoundShape;
use crate::permute_layout::banks::BANKS;

/// Changes that are tried in all searches together.
const PROPOSALS: u64 = 200_000;
/// Searches that share them, from one start after the other.
const SEARCHES: u64 = 4;
/// The denominator of shares.
const WHOLE: u64 = 1 << 16;
/// The share of changes with one more excess word that are accepted at the beginning.
const WORSE: u64 = 10_000;

/// The best that is found from these packings. Blocks that are not movable are in rounds before `first`.
pub(crate) fn improve(
    shapes: &[RoundShape],
    banks: &[Vec<usize>],
    first: usize,
    movable: &[usize],
    starts: [Packing; 2],
) -> Packing {
    let alike = [0..BANKS, BANKS..2 * BANKS].map(|side| Alike::of(banks, movable, |bank| side.contains(bank)));
    let mut best = starts[usize::from(starts[1].conflicts < starts[0].conflicts)].clone();
    for (start, seed) in starts.iter().cycle().zip(1..=SEARCHES) {
        if best.conflicts == 0 {
            break;
        }
        let seats = Seats::of(shapes, banks, first, movable, &start.round_of);
        let mut search = Search { seats, alike: &alike, random: Lcg(seed) };
        let found = search.run(movable, start.clone());
        if found.conflicts < best.conflicts {
            best = found;
        }
    }
    best
}

/// Blocks whose words lie in the same banks of one side: exchanging two of them changes only the other side.
struct Alike {
    /// The blocks of each group.
    groups: Vec<Vec<usize>>,
    /// The group of each block.
    group_of: Vec<usize>,
}

impl Alike {
    fn of(banks: &[Vec<usize>], movable: &[usize], is_here: impl Fn(&usize) -> bool) -> Alike {
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for block in movable {
            let mut here: Vec<usize> = banks[*block].iter().copied().filter(&is_here).collect();
            here.sort_unstable();
            groups.entry(here).or_default().push(*block);
        }
        let groups: Vec<Vec<usize>> = groups.into_values().collect();
        let mut group_of = vec![0; banks.len()];
        for (group, blocks) in groups.iter().enumerate() {
            blocks.iter().for_each(|block| group_of[*block] = group);
        }
        Alike { groups, group_of }
    }

    fn group(&self, block: usize) -> &[usize] {
        &self.groups[self.group_of[block]]
    }
}

/// The places of all rounds from the first movable one on, and which block is in each.
struct Seats<'a> {
    loads: Loads<'a>,
    /// The round of each seat.
    round: Vec<usize>,
    /// The block in each seat, if any.
    block: Vec<Option<usize>>,
    /// The seat of each block.
    seat_of: Vec<usize>,
}

impl<'a> Seats<'a> {
    fn of(
        shapes: &'a [RoundShape],
        banks: &'a [Vec<usize>],
        first: usize,
        movable: &[usize],
        round_of: &[usize],
    ) -> Seats<'a> {
        let (loads, seat_of) = (Loads::new(shapes, banks), vec![0; banks.len()]);
        let mut seats = Seats { loads, round: Vec::new(), block: Vec::new(), seat_of };
        for (round, shape) in shapes.iter().enumerate().skip(first) {
            let here = movable.iter().copied().filter(|block| round_of[*block] == round).map(Some);
            for block in here.chain(std::iter::repeat(None)).take(shape.capacity()) {
                if let Some(block) = block {
                    seats.seat_of[block] = seats.block.len();
                    seats.loads.add(block, round);
                }
                seats.block.push(block);
                seats.round.push(round);
            }
        }
        seats
    }

    /// Exchanges the blocks in two seats. Returns by how much the excess words grow.
    fn exchange(&mut self, one: usize, other: usize) -> i64 {
        let (here, there) = (self.round[one], self.round[other]);
        let (leaving, coming) = (self.block[one], self.block[other]);
        let mut change = 0;
        if let Some(block) = leaving {
            change -= self.loads.remove(block, here);
            self.seat_of[block] = other;
        }
        if let Some(block) = coming {
            change -= self.loads.remove(block, there);
            self.seat_of[block] = one;
        }
        change += leaving.map_or(0, |block| self.loads.add(block, there));
        change += coming.map_or(0, |block| self.loads.add(block, here));
        self.block.swap(one, other);
        change
    }
}

struct Search<'a> {
    seats: Seats<'a>,
    alike: &'a [Alike; 2],
    random: Lcg,
}

impl Search<'_> {
    fn run(&mut self, movable: &[usize], start: Packing) -> Packing {
        let mut conflicts = start.conflicts;
        let mut best = start;
        let tries = PROPOSALS / SEARCHES;
        for left in (1..=tries).rev() {
            if best.conflicts == 0 {
                break;
            }
            let Some((one, other)) = self.proposal() else { continue };
            let change = self.seats.exchange(one, other);
            if !self.accepts(change, WORSE * left / tries) {
                self.seats.exchange(one, other);
                continue;
            }
            conflicts += change;
            if conflicts < best.conflicts {
                best.conflicts = conflicts;
                for block in movable {
                    best.round_of[*block] = self.seats.round[self.seats.seat_of[*block]];
                }
            }
        }
        best
    }

    /// Two seats of different rounds. Half of the time they hold blocks that are alike on one side.
    fn proposal(&mut self) -> Option<(usize, usize)> {
        let one = self.random.below(self.seats.block.len());
        let side = self.random.below(4);
        let other = match (self.seats.block[one], self.alike.get(side)) {
            (Some(block), Some(alike)) => {
                let group = alike.group(block);
                self.seats.seat_of[group[self.random.below(group.len())]]
            }
            _ => self.random.below(self.seats.block.len()),
        };
        (self.seats.round[one] != self.seats.round[other]).then_some((one, other))
    }

    /// Whether a change is accepted, if this share of the changes with one more excess word is.
    fn accepts(&mut self, change: i64, share: u64) -> bool {
        let drawn = self.random.below(WHOLE as usize) as u64;
        match change {
            ..=0 => true,
            1 => drawn < share,
            2 => drawn < share * share / WHOLE,
            _ => false,
        }
    }
}

/// A linear congruential generator: plans must not differ between runs.
struct Lcg(u64);

impl Lcg {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_blocks_in_one_bank_come_apart() {
        let shapes = [RoundShape::One; 2];
        let banks = [vec![0, BANKS], vec![0, BANKS + 1], vec![1, BANKS]];
        let start = Packing { round_of: vec![0, 0, 0], conflicts: 2 };
        let found = improve(&shapes, &banks, 0, &[0, 1, 2], [start.clone(), start]);
        assert_eq!(found.conflicts, 0);
        assert!(found.round_of[0] != found.round_of[1] && found.round_of[0] != found.round_of[2], "{found:?}");
    }

    #[test]
    fn rounds_before_the_first_are_left_alone() {
        let shapes = [RoundShape::One; 3];
        let banks = [vec![0, BANKS], vec![0, BANKS], vec![0, BANKS]];
        let start = Packing { round_of: vec![0, 1, 1], conflicts: 2 };
        let found = improve(&shapes, &banks, 1, &[1, 2], [start.clone(), start]);
        assert_eq!((found.round_of[0], found.conflicts), (0, 0));
        assert_eq!(found.round_of[1] + found.round_of[2], 3);
    }
}
