//! Which blocks move in the same round.
//!
//! In a round of `s` steps a bank can serve `s` words: then some order of the accesses meets no bank twice in a step
//! (see [`super::orders`]). So blocks are put into rounds such that on neither side a bank has more.

use std::ops::Range;

use tilewright_layout::access::LANES;

use super::loads::{Loads, Packing};
use super::regular::regular_rounds;
use super::search::improve;
use super::shape::RoundShape;
use super::units::WordBlock;
use crate::permute_layout::banks::{BANKS, bank};
use crate::permute_layout::colouring::balanced;

/// Puts blocks into rounds of these shapes; `None` if these have no room for all of them.
pub(crate) fn pack(blocks: &[WordBlock], shapes: &[RoundShape]) -> Option<Packing> {
    let banks: Vec<Vec<usize>> = blocks.iter().map(banks_of).collect();
    if let Some(packing) = of_words(shapes, &banks) {
        return Some(packing);
    }
    let orders = orders(blocks);
    for order in &orders {
        let packing = greedy(shapes, &banks, order, 0..shapes.len(), vec![0; blocks.len()])?;
        if packing.conflicts == 0 {
            return Some(packing);
        }
    }
    searched(blocks, shapes, &banks, &orders)
}

fn banks_of(block: &WordBlock) -> Vec<usize> {
    let columns = block.columns.iter().map(|word| BANKS + bank(*word));
    block.rows.iter().map(|word| bank(*word)).chain(columns).collect()
}

/// The blocks in the order of the source, and of the destination.
fn orders(blocks: &[WordBlock]) -> [Vec<usize>; 2] {
    let by_row: Vec<usize> = (0..blocks.len()).collect();
    let mut by_column = by_row.clone();
    by_column.sort_by_key(|block| blocks[*block].columns[0]);
    [by_row, by_column]
}

/// Words that move whole: an edge colouring, which is optimal.
fn of_words(shapes: &[RoundShape], banks: &[Vec<usize>]) -> Option<Packing> {
    let edge = |banks: &Vec<usize>| match banks[..] {
        [row, column] => Some((row, column - BANKS)),
        _ => None,
    };
    let edges: Vec<(usize, usize)> = banks.iter().map(edge).collect::<Option<_>>()?;
    let round_of = balanced(&edges, shapes.len(), LANES)?;
    let mut loads = Loads::new(shapes, banks);
    let conflicts = round_of.iter().enumerate().map(|(block, round)| loads.add(block, *round)).sum();
    Some(Packing { round_of, conflicts })
}

/// Every block in turn goes where it meets the fewest full banks, into the first of these rounds on ties. `None` if the
/// rounds have no room for all blocks.
fn greedy(
    shapes: &[RoundShape],
    banks: &[Vec<usize>],
    order: &[usize],
    rounds: Range<usize>,
    mut round_of: Vec<usize>,
) -> Option<Packing> {
    let mut loads = Loads::new(shapes, banks);
    let mut filled = vec![0; shapes.len()];
    let mut conflicts = 0;
    for block in order {
        let mut best: Option<(i64, usize)> = None;
        for round in rounds.clone().filter(|round| filled[*round] < shapes[*round].capacity()) {
            let cost = loads.cost(*block, round);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, round));
            }
            if cost == 0 {
                break;
            }
        }
        let (_, round) = best?;
        conflicts += loads.add(*block, round);
        filled[round] += 1;
        round_of[*block] = round;
    }
    Some(Packing { round_of, conflicts })
}

/// Finds as many rounds as possible in which every bank begins one block, and searches for a packing of the other
/// blocks.
fn searched(
    blocks: &[WordBlock],
    shapes: &[RoundShape],
    banks: &[Vec<usize>],
    orders: &[Vec<usize>; 2],
) -> Option<Packing> {
    let whole = shapes.iter().filter(|shape| shape.sharing() == 1).count();
    let (first, regular) = match starts(blocks) {
        Some(starts) => regular_rounds(&starts, whole),
        None => (0, vec![None; blocks.len()]),
    };
    let is_left = |block: &usize| regular[*block].is_none();
    let round_of: Vec<usize> = regular.iter().map(|round| round.unwrap_or(first)).collect();
    let packing = |order: &Vec<usize>| {
        let left: Vec<usize> = order.iter().copied().filter(is_left).collect();
        greedy(shapes, banks, &left, first..shapes.len(), round_of.clone())
    };
    let packings = [packing(&orders[0])?, packing(&orders[1])?];
    let movable: Vec<usize> = (0..blocks.len()).filter(is_left).collect();
    Some(improve(shapes, banks, first, &movable, packings))
}

/// The banks of the first row and the first column of every block, if the others follow in the same way everywhere:
/// then a round in which every bank begins one block has equally many words in every bank.
fn starts(blocks: &[WordBlock]) -> Option<Vec<(usize, usize)>> {
    let steps = |words: &[i64]| words.iter().map(|word| bank(word - words[0])).collect::<Vec<_>>();
    let shape = |block: &WordBlock| (steps(&block.rows), steps(&block.columns));
    let first = shape(blocks.first()?);
    let is_even = blocks.iter().all(|block| shape(block) == first);
    is_even.then(|| blocks.iter().map(|block| (bank(block.rows[0]), bank(block.columns[0]))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permute_layout::rounds::shape::choices;
    use crate::permute_layout::rounds::units::blocks_of;

    fn transpose(rows: i64, cols: i64, bytes: i64) -> Vec<WordBlock> {
        let src: Vec<i64> = (0..rows * cols).collect();
        let dst: Vec<i64> = src.iter().map(|x| x % cols * rows + x / cols).collect();
        blocks_of(bytes, &src, &dst).expect("blocks")
    }

    /// Words beyond the steps of their round, counted anew.
    fn conflicts(blocks: &[WordBlock], shapes: &[RoundShape], round_of: &[usize]) -> i64 {
        let mut words = vec![[0i64; 2 * BANKS]; shapes.len()];
        for (block, round) in blocks.iter().zip(round_of) {
            banks_of(block).into_iter().for_each(|bank| words[*round][bank] += 1);
        }
        let over = |(words, shape): (&[i64; 2 * BANKS], &RoundShape)| {
            words.iter().map(|count| (count - shape.steps() as i64).max(0)).sum::<i64>()
        };
        words.iter().zip(shapes).map(over).sum()
    }

    #[test]
    fn rounds_hold_no_more_than_they_can_and_count_their_conflicts() {
        for (rows, cols, bytes) in [(12, 20, 1), (36, 44, 1), (20, 36, 1), (48, 64, 1), (14, 22, 2), (10, 14, 2)] {
            let blocks = transpose(rows, cols, bytes);
            for shapes in choices(blocks.len(), (4 / bytes) as usize).unwrap() {
                let packing = pack(&blocks, &shapes).unwrap();
                for (round, shape) in shapes.iter().enumerate() {
                    let held = packing.round_of.iter().filter(|r| **r == round).count();
                    assert!(held <= shape.capacity(), "{rows} x {cols}, round {round} of {shapes:?}");
                }
                assert_eq!(packing.conflicts, conflicts(&blocks, &shapes, &packing.round_of), "{rows} x {cols}");
            }
        }
    }

    #[test]
    fn blocks_beyond_the_room_of_the_rounds_are_refused() {
        let blocks = transpose(12, 20, 1);
        assert!(pack(&blocks, &[]).is_none());
        assert!(pack(&blocks, &[RoundShape::FourInFour]).is_none());
    }

    #[test]
    fn dense_transposes_have_rounds_without_conflicts() {
        let of_bytes = [(12, 20), (24, 40), (40, 24), (28, 20), (4, 12), (48, 64), (64, 96), (24, 32)];
        let of_halves = [(6, 10), (10, 14), (30, 34), (48, 64), (96, 80)];
        let tiles = of_bytes.map(|tile| (tile, 1)).into_iter().chain(of_halves.map(|tile| (tile, 2)));
        for ((rows, cols), bytes) in tiles {
            let blocks = transpose(rows, cols, bytes);
            let shapes = choices(blocks.len(), (4 / bytes) as usize).unwrap().swap_remove(0);
            assert_eq!(pack(&blocks, &shapes).unwrap().conflicts, 0, "{rows} x {cols} of {bytes} bytes");
        }
    }
}
