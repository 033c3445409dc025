//! How the threads of a nest move through memory: vectors of adjacent elements, and passes over the memory.

use tilewright_layout::access::{AccessKind, LANES, WarpAccess};
use tilewright_layout::map::{Map, NONE};

use crate::nest::{MemoryTouch, Nest};
use crate::tables::{MapId, PositionsId, Tables};

/// Bytes that a thread moves at once, at most.
pub(crate) const WIDEST: i64 = 16;

/// An access of memory by all iterations of a nest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moves {
    /// Where the iterations are, if that is known.
    pub(crate) positions: Option<PositionsId>,
    pub(crate) bytes: usize,
    /// Elements that a thread moves at once, at most: a power of two.
    pub(crate) most: usize,
    pub(crate) is_shared: bool,
    pub(crate) writes: bool,
    /// How often an iteration does it.
    pub(crate) turns: usize,
    /// Elements that neighbouring turns move at once.
    pub(crate) inner: usize,
    /// The dimension of the nest along which neighbours are adjacent in memory.
    pub(crate) along: Option<usize>,
}

/// What the width of an access depends on.
pub(crate) type Lanes = (MapId, PositionsId, usize);

/// What the passes of an access depend on: steps, positions, lanes, bytes, whether it is shared memory, whether it is
/// written.
pub(crate) type Passes = (MapId, PositionsId, usize, usize, bool, bool);

impl Moves {
    /// The access of a nest. Neighbouring steps may do it together if every iteration does it once,
    /// without a condition.
    pub(crate) fn of(tables: &mut Tables, nest: &Nest, touch: &MemoryTouch) -> Moves {
        let cap = nest.vector.unwrap_or(WIDEST).clamp(1, (WIDEST / touch.bytes).max(1));
        let together = touch.is_plain && !nest.is_alone;
        let mut most: i64 = if together { 1 << cap.ilog2() } else { 1 };
        while most > 1 && touch.aligned % most != 0 {
            most /= 2;
        }
        Moves {
            positions: touch.positions.as_ref().map(|positions| tables.number_positions(positions)),
            bytes: touch.bytes as usize,
            most: most as usize,
            is_shared: touch.is_shared,
            writes: touch.writes,
            turns: touch.turns,
            inner: touch.inner,
            along: touch.positions.as_ref().and_then(|positions| along(&nest.extents, positions)),
        }
    }
}

/// The dimension along which neighbours are adjacent.
fn along(extents: &[i64], positions: &[i64]) -> Option<usize> {
    let mut stride = 1;
    for (dimension, extent) in extents.iter().enumerate().rev() {
        if *extent > 1 && positions.get(stride).is_some_and(|next| next - positions[0] == 1) {
            return Some(dimension);
        }
        stride *= (*extent).max(1) as usize;
    }
    None
}

impl Tables {
    /// Elements that a thread moves at once: the most such that adjacent steps are adjacent in memory, aligned, for all
    /// threads.
    pub(crate) fn lanes(&mut self, moves: &Moves, steps: MapId) -> usize {
        if moves.inner > 1 {
            return moves.inner;
        }
        let Some(positions) = moves.positions.filter(|_| moves.most > 1) else { return 1 };
        let key = (steps, positions, moves.most);
        if let Some(known) = self.answers.lanes.get(&key) {
            return *known;
        }
        let mut lanes = moves.most;
        while lanes > 1 && !fits(self.positions(positions), self.map(steps), lanes) {
            lanes /= 2;
        }
        self.answers.lanes.insert(key, lanes);
        lanes
    }

    /// Passes over the memory: wavefronts of shared memory, sectors of global memory; 0 where positions are not known.
    pub(crate) fn passes(&mut self, moves: &Moves, lanes: usize, steps: MapId) -> u64 {
        let Some(positions) = moves.positions else { return 0 };
        let key = (steps, positions, lanes, moves.bytes, moves.is_shared, moves.writes);
        if let Some(known) = self.answers.passes.get(&key) {
            return *known;
        }
        let passes = passes(moves, self.positions(positions), lanes, self.map(steps));
        self.answers.passes.insert(key, passes);
        passes
    }
}

fn fits(positions: &[i64], steps: &Map, lanes: usize) -> bool {
    if !steps.slots().is_multiple_of(lanes) {
        return false;
    }
    let columns: Vec<&[u32]> = steps.columns().collect();
    let is_vector = |vector: &[&[u32]], thread: usize| match vector[0][thread] {
        NONE => vector.iter().all(|column| column[thread] == NONE),
        first => {
            let start = positions[first as usize];
            let follows = |(lane, column): (usize, &&[u32])| {
                column[thread] != NONE && positions[column[thread] as usize] == start + lane as i64
            };
            start % lanes as i64 == 0 && vector.iter().enumerate().all(follows)
        }
    };
    columns.chunks(lanes).all(|vector| (0..steps.threads()).all(|thread| is_vector(vector, thread)))
}

fn passes(moves: &Moves, positions: &[i64], lanes: usize, steps: &Map) -> u64 {
    let least = positions.iter().copied().min().unwrap_or(0).min(0);
    // Addresses are not negative, and stay aligned.
    let shift = least.unsigned_abs().next_multiple_of(1024) as i64;
    let address = |iteration: &u32| (positions[*iteration as usize] + shift) as u64 * moves.bytes as u64;
    let kind = if moves.writes { AccessKind::Store } else { AccessKind::Load };
    let of_warp = |warp: &[u32]| {
        let of_lane = |lane: usize| warp.get(lane).filter(|iteration| **iteration != NONE).map(address);
        let access = WarpAccess::of((lanes * moves.bytes) as u64, kind, of_lane);
        u64::from(if moves.is_shared { access.wavefronts() } else { access.sectors() })
    };
    steps.columns().step_by(lanes).flat_map(|column| column.chunks(LANES)).map(of_warp).sum()
}

#[cfg(test)]
mod tests {
    use tilewright_layout::map::Spread;

    use super::*;

    fn moves(bytes: usize, most: usize) -> Moves {
        Moves { positions: None, bytes, most, is_shared: false, writes: false, turns: 1, inner: 1, along: None }
    }

    #[test]
    fn vectors_are_adjacent_and_aligned() {
        let steps = Map::spread(32, 256, Spread { row: 256, group: 32, groups: 1, vector: 4 });
        let (dense, odd): (Vec<i64>, Vec<i64>) = ((0..256).collect(), (1..257).collect());
        assert!(fits(&dense, &steps, 4) && !fits(&dense, &steps, 8) && !fits(&odd, &steps, 2));
    }

    #[test]
    fn sectors_are_counted_for_each_vector() {
        let steps = Map::spread(32, 256, Spread { row: 256, group: 32, groups: 1, vector: 4 });
        let (dense, apart): (Vec<i64>, Vec<i64>) = ((0..256).collect(), (0..256).map(|at| -8 * at).collect());
        assert_eq!(passes(&moves(4, 4), &dense, 4, &steps), 32);
        assert_eq!(passes(&moves(4, 4), &apart, 1, &steps), 256);
    }

    #[test]
    fn a_transposed_walk_is_adjacent_along_the_first_dimension() {
        let turned: Vec<i64> = (0..4).flat_map(|i| (0..8).map(move |j| j * 4 + i)).collect();
        assert_eq!((along(&[4, 8], &turned), along(&[32], &turned)), (Some(0), None));
    }
}
