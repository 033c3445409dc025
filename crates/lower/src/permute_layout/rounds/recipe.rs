//! How the lanes of a round exchange units: rows of blocks become columns.
//!
//! A lane has its rows in the words 0, 1, ..., in the order in which it read them. The words that it writes are at the
//! end where [`written`] says. Byte permutations take selectors that differ from lane to lane.

use tilewright_expr::Expr;

use super::shape::RoundShape;

/// A register of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VirtualReg {
    /// One of the words that were read.
    Word(i64),
    /// An intermediate value.
    Scratch(i64),
}

/// One instruction of the exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Four of the eight bytes of two registers.
    Permute {
        to: VirtualReg,
        from: [VirtualReg; 2],
        /// Index of the selector among the lane's selectors.
        selector: usize,
        /// The bits that are XORed into the selector here.
        flip: i64,
    },
    /// The register of the lane whose number differs in the bits of the mask.
    Shuffle { to: VirtualReg, from: VirtualReg, mask: i64 },
}

use VirtualReg::{Scratch, Word};

/// XORed into a selector, moves from one column of a block of bytes to its neighbour.
const NEXT_BYTE: i64 = 0x1111;
/// XORed into a selector, moves from one column of a block of halves to the other.
const OTHER_HALF: i64 = 0x2222;

fn permute(to: VirtualReg, from: [VirtualReg; 2], selector: usize, flip: i64) -> Action {
    Action::Permute { to, from, selector, flip }
}

/// The exchange of a round.
pub(crate) fn actions(shape: RoundShape) -> Vec<Action> {
    match shape {
        RoundShape::Four => vec![
            permute(Scratch(0), [Word(0), Word(1)], 0, 0),
            permute(Scratch(1), [Word(2), Word(3)], 0, 0),
            permute(Scratch(2), [Word(0), Word(1)], 1, 0),
            permute(Scratch(3), [Word(2), Word(3)], 1, 0),
            permute(Word(0), [Scratch(0), Scratch(1)], 2, 0),
            permute(Word(1), [Scratch(0), Scratch(1)], 2, NEXT_BYTE),
            permute(Word(2), [Scratch(2), Scratch(3)], 2, 0),
            permute(Word(3), [Scratch(2), Scratch(3)], 2, NEXT_BYTE),
        ],
        RoundShape::FourInTwo => vec![
            permute(Scratch(0), [Word(0), Word(1)], 0, 0),
            permute(Scratch(1), [Word(0), Word(1)], 1, 0),
            Action::Shuffle { to: Scratch(2), from: Scratch(1), mask: 1 },
            permute(Word(0), [Scratch(0), Scratch(2)], 2, 0),
            permute(Word(1), [Scratch(0), Scratch(2)], 2, NEXT_BYTE),
        ],
        RoundShape::FourInFour => vec![
            Action::Shuffle { to: Scratch(0), from: Word(0), mask: 1 },
            permute(Scratch(1), [Word(0), Scratch(0)], 0, 0),
            Action::Shuffle { to: Scratch(2), from: Scratch(1), mask: 2 },
            permute(Word(0), [Scratch(1), Scratch(2)], 1, 0),
        ],
        RoundShape::Two => {
            vec![permute(Scratch(0), [Word(0), Word(1)], 0, 0), permute(Word(1), [Word(0), Word(1)], 0, OTHER_HALF)]
        }
        RoundShape::TwoInTwo => vec![
            Action::Shuffle { to: Scratch(0), from: Word(0), mask: 1 },
            permute(Word(0), [Word(0), Scratch(0)], 0, 0),
        ],
        RoundShape::One => Vec::new(),
    }
}

/// Where the words that are written are after the exchange, step by step.
pub(crate) fn written(shape: RoundShape) -> Vec<VirtualReg> {
    match shape {
        RoundShape::Two => vec![Scratch(0), Word(1)],
        RoundShape::Four | RoundShape::FourInTwo | RoundShape::FourInFour | RoundShape::TwoInTwo | RoundShape::One => {
            (0..shape.steps() as i64).map(Word).collect()
        }
    }
}

/// Selectors of a lane that accesses row `step ^ read` and column `step ^ write` of its own block; `None` for blocks
/// that lanes share.
pub(crate) fn of_turns(shape: RoundShape, read: &Expr, write: &Expr) -> Option<Vec<Expr>> {
    let flipped = |selector: i64, turn: &Expr, bits: i64| Expr::constant(selector) ^ (turn * bits);
    Some(match shape {
        RoundShape::Four => vec![
            flipped(0x5410, write, NEXT_BYTE),
            flipped(0x7632, write, NEXT_BYTE),
            flipped(0x6420, read, OTHER_HALF),
        ],
        RoundShape::Two => vec![flipped(0x5410, write, OTHER_HALF) ^ (read * 0x4444)],
        RoundShape::One => Vec::new(),
        RoundShape::FourInTwo | RoundShape::FourInFour | RoundShape::TwoInTwo => return None,
    })
}

/// Selectors of a lane that holds one row, and writes the column of the same number; `None` for lanes with more rows.
pub(crate) fn of_lane(shape: RoundShape, lane: &Expr) -> Option<Vec<Expr>> {
    let of_bytes = || Expr::constant(0x6240) ^ (lane % 2 * 0x5555);
    let of_halves = |bit: i64| Expr::constant(0x5410) ^ (lane / bit % 2 * 0x6666);
    Some(match shape {
        RoundShape::FourInFour => vec![of_bytes(), of_halves(2)],
        RoundShape::TwoInTwo => vec![of_halves(1)],
        RoundShape::One => Vec::new(),
        RoundShape::Four | RoundShape::FourInTwo | RoundShape::Two => return None,
    })
}

/// Selectors of a lane, given the orders in which all lanes access their rows and columns. A lane with one row needs
/// none that depend on orders.
pub(crate) fn of_orders(shape: RoundShape, lane: usize, reads: &[Vec<usize>], writes: &[Vec<usize>]) -> Vec<i64> {
    match shape {
        RoundShape::Four => {
            let (read, write) = (&reads[lane], &writes[lane]);
            let rows = read.iter().copied().zip(0..);
            vec![two_columns(write[0], write[1]), two_columns(write[2], write[3]), gathered(rows)]
        }
        RoundShape::FourInTwo => {
            let partner = lane ^ 1;
            let (here, there) = (2 * (lane % 2), 2 * (partner % 2));
            let (mine, theirs) = (&writes[lane], &writes[partner]);
            let own = reads[lane].iter().map(|row| here + row).zip(0..);
            let sent = reads[partner].iter().map(|row| there + row).zip(2..);
            vec![
                two_columns(here + mine[0], here + mine[1]),
                two_columns(there + theirs[0], there + theirs[1]),
                gathered(own.chain(sent)),
            ]
        }
        RoundShape::Two => {
            let (read, write) = (&reads[lane], &writes[lane]);
            let half = |(row, step): (&usize, usize)| {
                let first = 4 * step + 2 * write[0];
                (first | ((first + 1) << 4)) << (8 * row)
            };
            vec![read.iter().zip(0..).map(half).sum::<usize>() as i64]
        }
        RoundShape::FourInFour | RoundShape::TwoInTwo | RoundShape::One => Vec::new(),
    }
}

/// The selector that takes two columns of both words, those of the first word first.
fn two_columns(first: usize, second: usize) -> i64 {
    (first | (second << 4) | ((4 + first) << 8) | ((4 + second) << 12)) as i64
}

/// The selector that assembles a column from pairs of columns, given each row and which pair has it.
fn gathered(rows: impl Iterator<Item = (usize, usize)>) -> i64 {
    rows.map(|(row, pair)| (2 * pair) << (4 * row)).sum::<usize>() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permute_layout::rounds::machine::{Lane, execute};

    /// All orders of so many things.
    fn permutations(count: usize) -> Vec<Vec<usize>> {
        let inserted = |order: Vec<usize>, last: usize| {
            (0..=order.len()).map(move |at| [&order[..at], &[last], &order[at..]].concat())
        };
        (0..count)
            .fold(vec![Vec::new()], |orders, last| orders.into_iter().flat_map(|order| inserted(order, last)).collect())
    }

    /// Units of a row: `(row, column)` as one number per byte.
    fn row_of(row: usize, width: usize) -> [i64; 4] {
        std::array::from_fn(|byte| (16 * row + byte * width / 4) as i64)
    }

    fn column_of(column: usize, width: usize) -> [i64; 4] {
        std::array::from_fn(|byte| (16 * (byte * width / 4) + column) as i64)
    }

    /// Lets the lanes of one block read, exchange and write.
    fn check(shape: RoundShape, reads: &[Vec<usize>], writes: &[Vec<usize>], selectors: &dyn Fn(usize) -> Vec<i64>) {
        let width = shape.width();
        let mut lanes: Vec<Lane> = vec![Lane::default(); shape.sharing()];
        for (number, lane) in lanes.iter_mut().enumerate() {
            lane.selectors = selectors(number);
            for (step, row) in reads[number].iter().enumerate() {
                lane.words[step] = row_of(number * shape.steps() + row, width);
            }
        }
        execute(&actions(shape), &mut lanes);
        for (number, lane) in lanes.iter().enumerate() {
            for (place, column) in written(shape).into_iter().zip(&writes[number]) {
                let expected = column_of(number * shape.steps() + column, width);
                assert_eq!(lane.get(place), expected, "{shape:?}, {reads:?} to {writes:?}, lane {number}");
            }
        }
    }

    #[test]
    fn rows_become_columns_in_any_order() {
        for shape in [RoundShape::Four, RoundShape::Two, RoundShape::One] {
            for read in permutations(shape.steps()) {
                for write in permutations(shape.steps()) {
                    let (reads, writes) = ([read.clone()], [write.clone()]);
                    check(shape, &reads, &writes, &|lane| of_orders(shape, lane, &reads, &writes));
                }
            }
        }
    }

    #[test]
    fn two_lanes_share_a_block_in_any_order() {
        let shape = RoundShape::FourInTwo;
        for orders in 0..16 {
            let order = |bit: i32| if (orders >> bit) & 1 == 1 { vec![1, 0] } else { vec![0, 1] };
            let (reads, writes) = ([order(0), order(1)], [order(2), order(3)]);
            check(shape, &reads, &writes, &|lane| of_orders(shape, lane, &reads, &writes));
        }
    }

    #[test]
    fn every_row_may_have_a_lane_of_its_own() {
        for shape in [RoundShape::TwoInTwo, RoundShape::FourInFour] {
            let orders = vec![vec![0]; shape.sharing()];
            let selectors = |lane: usize| {
                let found = of_lane(shape, &Expr::constant(lane as i64)).expect("one row per lane");
                found.iter().map(|selector| selector.as_const().expect("a number")).collect::<Vec<i64>>()
            };
            check(shape, &orders, &orders, &selectors);
        }
    }

    #[test]
    fn turned_orders_need_no_table() {
        for shape in [RoundShape::Two, RoundShape::Four] {
            let steps = shape.steps();
            let turned = |turn: usize| (0..steps).map(|step| step ^ turn).collect::<Vec<_>>();
            for (read, write) in (0..steps).flat_map(|read| (0..steps).map(move |write| (read, write))) {
                let turns = [read, write].map(|turn| Expr::constant(turn as i64));
                let found = of_turns(shape, &turns[0], &turns[1]).expect("a block in one lane");
                let found: Vec<Option<i64>> = found.iter().map(Expr::as_const).collect();
                let expected = of_orders(shape, 0, &[turned(read)], &[turned(write)]);
                assert_eq!(found, expected.into_iter().map(Some).collect::<Vec<_>>(), "{read} {write}");
            }
        }
    }
}
