//! How the threads of a nest access memory: the number of instructions, and of passes over the memory.

use std::sync::Arc;

use tilewright_ir::tile::vectors::{Chunk, Mask, Places, Vectors, chunks, common_mask, firsts, widest};
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};
use tilewright_layout::map::{Map, NONE};

use crate::ids::{MapId, PlacesId};
use crate::issue::Issue;
use crate::nest::{MemoryTouch, Nest};
use crate::tables::Tables;

/// An access of memory by all iterations of a nest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moves {
    /// Where each iteration accesses memory.
    pub(crate) places: PlacesId,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// Elements that a thread moves at once in an access of the greatest width.
    pub(crate) widest: i64,
    /// Elements that a thread moves at once, at most: a power of two.
    pub(crate) most: usize,
    /// Whether the edge of a tensor keeps vectors from being wider.
    pub(crate) ends_at_edge: bool,
    pub(crate) is_shared: bool,
    pub(crate) writes: bool,
    /// How often an iteration does it.
    pub(crate) turns: usize,
    /// Elements of an iteration, which are neighbours in memory.
    pub(crate) elements: usize,
    /// The dimension of the nest along which neighbours are adjacent in memory.
    pub(crate) along: Option<usize>,
}

impl Moves {
    /// The access of a nest.
    pub(crate) fn of(tables: &mut Tables, nest: &Nest, touch: &MemoryTouch) -> Moves {
        let along = touch.places.positions().and_then(|positions| along(nest, touch.elements, positions));
        let aligned = touch.places.most(widest(touch.dtype, touch.widest, nest.vector));
        let most = match along {
            _ if !touch.is_movable => 1,
            Some(along) if touch.elements == 1 && nest.turns == 1 => {
                let apart = nest.extents[along + 1..].iter().map(|extent| (*extent).max(1) as usize).product();
                touch.places.most_along(aligned, apart)
            }
            _ => aligned,
        };
        Moves {
            places: tables.number_places(&touch.places),
            bytes: touch.dtype.bytes() as usize,
            widest: touch.widest / touch.dtype.bytes(),
            most,
            ends_at_edge: touch.is_movable && most < aligned,
            is_shared: touch.is_shared,
            writes: touch.writes,
            turns: touch.turns,
            elements: touch.elements,
            along,
        }
    }

    /// Elements that a thread could move at once in vectors of `vector` iterations along a dimension.
    pub(crate) fn most_along(&self, nest: &Nest, vector: usize, along: usize) -> usize {
        match nest.turns {
            1 if self.along == Some(along) => self.most.min(vector.saturating_mul(self.elements)),
            1 => self.most.min(self.elements),
            _ => self.most,
        }
    }
}

/// The dimension along which neighbouring iterations are adjacent in memory; each of the turns of an iteration has
/// `elements` positions.
fn along(nest: &Nest, elements: usize, positions: &[i64]) -> Option<usize> {
    let mut stride = nest.turns * elements;
    for (dimension, extent) in nest.extents.iter().enumerate().rev() {
        if *extent > 1 && positions.get(stride).is_some_and(|next| next - positions[0] == elements as i64) {
            return Some(dimension);
        }
        stride *= (*extent).max(1) as usize;
    }
    None
}

impl Tables {
    /// What an access costs in these steps of its nest.
    pub(crate) fn issue(&mut self, nest: &Nest, moves: &Moves, steps: MapId) -> Issue {
        let steps = self.with_turns(steps, nest.turns * moves.elements);
        let together = nest.together * moves.elements;
        let key = (steps, together, moves.places, moves.most, moves.bytes, moves.is_shared, moves.writes);
        if let Some(known) = self.answers.issues.get(&key) {
            return *known;
        }
        self.visit(steps);
        let chunks = self.chunks(steps, together);
        let firsts = if moves.writes && !self.facts(steps).is_sole {
            Some(firsts(self.map(steps), self.owners(steps)))
        } else {
            None
        };
        let issue = issue(moves, self.places(moves.places), self.map(steps), &chunks, firsts.as_deref());
        self.answers.issues.insert(key, issue);
        issue
    }

    /// The steps, cut into chunks of `together` steps.
    fn chunks(&mut self, steps: MapId, together: usize) -> Arc<Vec<Chunk>> {
        if let Some(known) = self.answers.chunks.get(&(steps, together)) {
            return Arc::clone(known);
        }
        let chunks = Arc::new(chunks(self.map(steps), together));
        self.answers.chunks.insert((steps, together), Arc::clone(&chunks));
        chunks
    }
}

fn issue(moves: &Moves, places: &Places, steps: &Map, chunks: &[Chunk], firsts: Option<&[Mask]>) -> Issue {
    let passes = places.positions().map(|positions| Passes::of(moves, positions, steps));
    let mut busy = vec![0u64; steps.threads().div_ceil(LANES)];
    let mut issue = Issue { widths: (usize::MAX, 1), ..Issue::default() };
    for chunk in chunks {
        let mask = firsts.map_or(Some(&chunk.mask), |firsts| common_mask(firsts, chunk));
        let single = || Vectors { width: 1, steps: chunk.steps.clone().collect() };
        let vectors = mask.map_or_else(single, |mask| places.vectors(steps, &chunk.steps, mask, moves.most));
        let width = vectors.width;
        // Where no thread is the first to do an iteration, nothing is written.
        if mask.is_none_or(|mask| mask.contains(&true)) {
            issue.widths = (issue.widths.0.min(width), issue.widths.1.max(width));
        }
        for (busy, warp) in busy.iter_mut().zip(chunk.mask.chunks(LANES)) {
            *busy += if warp.contains(&true) { (chunk.steps.len() / width) as u64 } else { 0 };
        }
        let firsts = vectors.steps.iter().step_by(width);
        issue.passes += passes.as_ref().map_or(0, |passes| firsts.map(|step| passes.of_vectors(*step, width)).sum());
    }
    issue.widths.0 = issue.widths.0.min(issue.widths.1);
    issue.issued = busy.iter().sum();
    issue.busiest = busy.into_iter().max().unwrap_or(0);
    issue
}

/// Counts the passes of an access.
struct Passes<'a> {
    moves: &'a Moves,
    /// The position of each iteration, in elements.
    positions: &'a [i64],
    steps: &'a Map,
    /// Elements that are added to every position, so that addresses are not negative, and stay aligned.
    shift: i64,
}

impl<'a> Passes<'a> {
    fn of(moves: &'a Moves, positions: &'a [i64], steps: &'a Map) -> Passes<'a> {
        let least = positions.iter().copied().min().unwrap_or(0).min(0);
        Passes { moves, positions, steps, shift: least.unsigned_abs().next_multiple_of(1024) as i64 }
    }

    /// Passes of the vectors that begin in a step.
    fn of_vectors(&self, step: usize, width: usize) -> u64 {
        let Moves { bytes, writes, is_shared, .. } = *self.moves;
        let address = |iteration: &u32| (self.positions[*iteration as usize] + self.shift) as u64 * bytes as u64;
        let kind = if writes { AccessKind::Store } else { AccessKind::Load };
        let of_warp = |warp: &[u32]| {
            let of_lane = |lane: usize| warp.get(lane).filter(|iteration| **iteration != NONE).map(address);
            let access = WarpAccess::of((width * bytes) as u64, kind, of_lane);
            u64::from(if is_shared { access.wavefronts() } else { access.sectors() })
        };
        self.steps.column(step).chunks(LANES).map(of_warp).sum()
    }
}

#[cfg(test)]
mod tests {
    use tilewright_diag::Span;

    use super::*;

    fn along_in(extents: &[i64], turns: usize, elements: usize, positions: &[i64]) -> Option<usize> {
        let nest = Nest { turns, ..Nest::empty("parallel i".to_string(), Span::here(), extents.to_vec()) };
        along(&nest, elements, positions)
    }

    #[test]
    fn a_transposed_walk_is_adjacent_along_the_first_dimension() {
        let turned: Vec<i64> = (0..4).flat_map(|i| (0..8).map(move |j| j * 4 + i)).collect();
        assert_eq!((along_in(&[4, 8], 1, 1, &turned), along_in(&[32], 1, 1, &turned)), (Some(0), None));
    }

    #[test]
    fn turns_are_neighbours_before_iterations_are() {
        assert_eq!(along_in(&[4], 8, 1, &(0..32).collect::<Vec<i64>>()), None);
        let turned: Vec<i64> = (0..4).flat_map(|i| (0..8).map(move |turn| turn * 4 + i)).collect();
        assert_eq!(along_in(&[4], 8, 1, &turned), Some(0));
    }

    #[test]
    fn pairs_are_adjacent_where_the_next_iteration_has_the_next_pair() {
        let pairs: Vec<i64> = (0..32).collect();
        assert_eq!((along_in(&[16], 1, 2, &pairs), along_in(&[8], 1, 4, &pairs)), (Some(0), Some(0)));
    }
}
