//! Where the parts of rows lie in shared memory, through which they pass from the threads that have them to those that
//! must hold results.

use std::collections::BTreeSet;

use tilewright_ir::tile::vectors::WIDEST;

use super::context::Context;
use super::rows::Rows;
use crate::fragment_registers::Slot;

/// The position of each thread's part, for the threads that have one.
pub(super) type Positions = Vec<Option<i64>>;

/// The accesses to shared memory, in elements: the parts of a row follow each other at a distance of all rows.
pub(super) struct Staging {
    /// All elements.
    pub(super) elements: usize,
    /// For each of a thread's parts, where it is stored.
    pub(super) stores: Vec<Positions>,
    /// For each slot of the result, where the parts of its row are.
    pub(super) loads: Vec<SlotLoads>,
}

/// The parts that are combined into a slot of the result.
pub(super) struct SlotLoads {
    pub(super) slot: Slot,
    /// The positions of the first part of the row, of the second, and so on.
    pub(super) parts: Vec<Positions>,
}

impl Staging {
    /// The accesses for these leaders of each row: the threads that have a part of it.
    pub(super) fn of(context: &Context, rows: &Rows, leaders: &[Vec<usize>]) -> Staging {
        let most = leaders.iter().map(Vec::len).max().unwrap_or(0);
        let position = |at: usize, row: usize| (at * leaders.len() + row) as i64;
        let place_of = |row: usize, thread: usize| {
            let at = leaders[row].iter().position(|leader| *leader == thread)?;
            Some(position(at, row))
        };
        let store = |place: usize| {
            let at = |thread: usize| rows.at(thread, place).and_then(|(row, _)| place_of(row, thread));
            (0..rows.threads()).map(at).collect()
        };
        let load = |slot: Slot| {
            let row_of = |thread: usize| context.slots(thread).find(|(at, _)| *at == slot).map(|(_, row)| row);
            let rows: Vec<Option<usize>> = (0..context.owned().len()).map(row_of).collect();
            let of_part = |at: usize| {
                rows.iter().map(|row| row.filter(|row| at < leaders[*row].len()).map(|row| position(at, row))).collect()
            };
            SlotLoads { slot, parts: (0..most).map(of_part).collect() }
        };
        let slots: BTreeSet<Slot> =
            (0..context.owned().len()).flat_map(|thread| context.slots(thread)).map(|(slot, _)| slot).collect();
        Staging {
            elements: leaders.len() * most,
            stores: (0..rows.most_parts()).map(store).collect(),
            loads: slots.into_iter().map(load).collect(),
        }
    }

    /// How many neighbouring elements all accesses move together, if an element has so many bytes.
    pub(super) fn width(&self, bytes: i64) -> i64 {
        let widths = [4, 2].into_iter().filter(|width| width * bytes <= WIDEST);
        widths.into_iter().find(|width| self.moves_together(*width as usize)).unwrap_or(1)
    }

    fn moves_together(&self, width: usize) -> bool {
        let are_whole = |positions: &[&Positions]| {
            positions.len() == width && (0..positions[0].len()).all(|thread| is_vector(positions, thread))
        };
        let stores = self.stores.chunks(width).all(|group| are_whole(&group.iter().collect::<Vec<_>>()));
        stores
            && self.loads.chunks(width).all(|group| {
                let parts = 0..group[0].parts.len();
                parts.into_iter().all(|at| are_whole(&group.iter().map(|slot| &slot.parts[at]).collect::<Vec<_>>()))
            })
    }
}

/// Whether a thread has neighbouring positions from a multiple of their number on, or none.
fn is_vector(positions: &[&Positions], thread: usize) -> bool {
    let first = positions[0][thread];
    let is_aligned = first.is_none_or(|first| first % positions.len() as i64 == 0);
    is_aligned && (0..).zip(positions).all(|(at, positions)| positions[thread] == first.map(|first| first + at))
}
