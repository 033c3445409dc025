//! Which thread holds which parts of the rows of a scan, and which threads combine theirs by shuffles.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_layout::access::LANES;

/// Where a thread has an element: the number of its slots in the results and the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(super) usize);

/// Elements of a row that follow each other and that one thread holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(super) row: usize,
    /// How many elements precede it in its row.
    pub(super) start: usize,
    pub(super) places: Arc<[Place]>,
}

impl Run {
    fn end(&self) -> usize {
        self.start + self.places.len()
    }
}

/// What a thread does in a round: a run of its own, which may be empty, among those of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(super) run: Run,
    /// The first element of the runs of the group, and the one after the last.
    pub(super) group: (usize, usize),
}

/// Groups of threads that differ only in some bits of their lanes. In each round, the runs of a group follow each other in
/// the order of these bits.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// The bits of the lanes, as a mask.
    pub(super) bits: usize,
    /// Whether the order is that of descending lanes.
    is_descending: bool,
    /// By round and thread.
    pub(super) rounds: Vec<Vec<Option<Cell>>>,
}

/// The runs of a thread, from its elements: the row and the place in it of each.
pub(super) fn runs(mut elements: Vec<(usize, usize, Place)>) -> Vec<Run> {
    elements.sort_unstable();
    let follows =
        |(row, at, _): &(usize, usize, Place), next: &(usize, usize, Place)| (*row, at + 1) == (next.0, next.1);
    let run = |run: &[(usize, usize, Place)]| {
        let places = run.iter().map(|(_, _, place)| *place).collect();
        Run { row: run[0].0, start: run[0].1, places }
    };
    elements.chunk_by(follows).map(run).collect()
}

impl Groups {
    /// The groups for all choices of bits for which there are some, those of fewer bits first.
    pub(super) fn all(runs: &[Vec<Run>], is_descending: bool) -> impl Iterator<Item = Groups> {
        let mut masks: Vec<usize> = (0..LANES).collect();
        masks.sort_by_key(|bits| (bits.count_ones(), *bits));
        masks.into_iter().filter_map(move |bits| Groups::of(runs, bits, is_descending))
    }

    /// The groups for these bits; `None` if runs do not follow each other, or a group has lanes without a thread.
    fn of(runs: &[Vec<Run>], bits: usize, is_descending: bool) -> Option<Groups> {
        let mut rounds: Vec<Vec<Option<Cell>>> = Vec::new();
        for leader in (0..runs.len()).filter(|thread| thread & bits == 0) {
            let mut members: Vec<usize> =
                (0..LANES).filter(|lane| lane & !bits == 0).map(|lane| leader + lane).collect();
            if is_descending {
                members.reverse();
            }
            if members.iter().any(|member| *member >= runs.len()) {
                return None;
            }
            for (at, cells) in rounds_of(runs, &members)?.into_iter().enumerate() {
                if rounds.len() == at {
                    rounds.push(vec![None; runs.len()]);
                }
                for (member, cell) in members.iter().zip(cells) {
                    rounds[at][*member] = Some(cell);
                }
            }
        }
        Some(Groups { bits, is_descending, rounds })
    }

    /// The lane or thread in whose place this one is, counted in the order of the runs.
    fn in_order(&self, lane: usize) -> usize {
        if self.is_descending { lane ^ self.bits } else { lane }
    }

    /// Whether the runs of a lane are the first of its group.
    pub(super) fn is_first(&self, lane: usize) -> bool {
        self.in_order(lane) & self.bits == 0
    }

    /// Whether they are the last ones.
    pub(super) fn is_last(&self, lane: usize) -> bool {
        self.in_order(lane) & self.bits == self.bits
    }

    /// Whether a lane is in the second of two halves that are joined by a bit.
    pub(super) fn is_behind(&self, lane: usize, mask: usize) -> bool {
        self.in_order(lane) & mask != 0
    }

    /// The last lane of the first of two halves that are joined by a bit: it has all that precedes the second.
    pub(super) fn end_of_first(&self, lane: usize, mask: usize) -> usize {
        let lower = self.bits & (mask - 1);
        self.in_order((self.in_order(lane) & !mask) | lower)
    }

    /// The lane whose runs precede those of a lane; `None` for the first one of a group.
    pub(super) fn predecessor(&self, lane: usize) -> Option<usize> {
        let at = self.in_order(lane);
        let earlier = (at & self.bits).checked_sub(1)? & self.bits;
        Some(self.in_order((at & !self.bits) | earlier))
    }

    /// The last lane of the group of a lane.
    pub(super) fn last(&self, lane: usize) -> usize {
        self.in_order(self.in_order(lane) | self.bits)
    }

    /// The masks of the shuffles, lowest bit first.
    pub(super) fn masks(&self) -> impl Iterator<Item = usize> {
        let bits = self.bits;
        (0..5).map(|bit| 1 << bit).filter(move |mask| bits & mask != 0)
    }

    /// The cells of a thread, in order.
    fn cells(&self, thread: usize) -> impl Iterator<Item = &Cell> {
        self.rounds.iter().filter_map(move |round| round[thread].as_ref())
    }

    /// Whether every thread takes part in all of each of its rows, of this extent, round after round.
    pub(super) fn complete_rows(&self, extent: usize) -> bool {
        let threads = self.rounds.first().map_or(0, Vec::len);
        (0..threads).all(|thread| {
            let cells: Vec<&Cell> = self.cells(thread).collect();
            cells.chunk_by(|a, b| a.run.row == b.run.row).all(|row| {
                let follow = row.windows(2).all(|pair| pair[0].group.1 == pair[1].group.0);
                row[0].group.0 == 0 && follow && row[row.len() - 1].group.1 == extent
            })
        })
    }

    /// The parts that the groups divide each row into, in order, each with a thread that has it after the shuffles and the
    /// round. `None` if the parts overlap.
    pub(super) fn parts(&self, rows: usize, extent: usize) -> Option<Vec<Vec<Part>>> {
        let mut found: Vec<BTreeMap<(usize, usize), Part>> = vec![BTreeMap::new(); rows];
        for (round, cells) in self.rounds.iter().enumerate() {
            for (thread, cell) in cells.iter().enumerate().filter(|(thread, _)| self.is_last(*thread)) {
                if let Some(Cell { run, group }) = cell {
                    found[run.row].entry(*group).or_insert(Part { thread, round, begin: group.0 });
                }
            }
        }
        let in_order = |parts: BTreeMap<(usize, usize), Part>| {
            let ends = parts.keys().try_fold(0, |end, (begin, next)| (*begin == end && next > begin).then_some(*next));
            (ends == Some(extent)).then(|| parts.into_values().collect())
        };
        found.into_iter().map(in_order).collect()
    }
}

/// A part of a row that a group of threads has after their shuffles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first thread that is the last one of its group.
    pub(super) thread: usize,
    pub(super) round: usize,
    /// The first element.
    pub(super) begin: usize,
}

/// The rounds of a group, each with a cell for every member; `None` if their runs do not follow each other.
fn rounds_of(runs: &[Vec<Run>], members: &[usize]) -> Option<Vec<Vec<Cell>>> {
    let mut rows: Vec<usize> = members.iter().flat_map(|member| runs[*member].iter().map(|run| run.row)).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut rounds = Vec::new();
    for row in rows {
        let of_row = |member: &usize| {
            let all = &runs[*member][..];
            &all[all.partition_point(|run| run.row < row)..all.partition_point(|run| run.row <= row)]
        };
        let lists: Vec<&[Run]> = members.iter().map(of_row).collect();
        for round in 0..lists.iter().map(|list| list.len()).max().unwrap_or(0) {
            let begin = lists[0].get(round)?.start;
            let mut end = begin;
            let mut cells = Vec::with_capacity(members.len());
            for list in &lists {
                // Threads behind the end of the row have empty runs.
                let none = || Run { row, start: end, places: Arc::new([]) };
                let run = list.get(round).cloned().unwrap_or_else(none);
                if run.start != end {
                    return None;
                }
                end = run.end();
                cells.push(run);
            }
            let group = (begin, end);
            rounds.push(cells.into_iter().map(|run| Cell { run, group }).collect());
        }
    }
    Some(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row on so many threads, `vector` elements at a time, round after round.
    fn spread(threads: usize, extent: usize, vector: usize) -> Vec<Vec<Run>> {
        let of = |thread: usize| {
            let own = (0..extent).filter(|at| at / vector % threads == thread);
            runs(own.enumerate().map(|(slot, at)| (0, at, Place(slot))).collect())
        };
        (0..threads).map(of).collect()
    }

    fn complete(runs: &[Vec<Run>], extent: usize) -> Option<usize> {
        Groups::all(runs, false).find(|groups| groups.complete_rows(extent)).map(|groups| groups.bits)
    }

    #[test]
    fn neighbouring_threads_combine_their_runs() {
        assert_eq!(complete(&spread(8, 64, 4), 64), Some(7));
        assert_eq!(complete(&spread(8, 100, 1), 100), Some(7));
        assert_eq!(complete(&spread(1, 5, 1), 5), Some(0));
        // Rows on two warps.
        assert_eq!(complete(&spread(64, 256, 4), 256), None);
    }

    #[test]
    fn warps_have_parts_of_a_row() {
        let runs = spread(64, 512, 4);
        let widest = Groups::all(&runs, false).last().expect("no bits are possible");
        assert_eq!((widest.bits, widest.rounds.len()), (31, 2));
        let parts = widest.parts(1, 512).expect("they do not overlap");
        let parts: Vec<_> = parts[0].iter().map(|part| (part.thread, part.round, part.begin)).collect();
        assert_eq!(parts, [(31, 0, 0), (63, 0, 128), (31, 1, 256), (63, 1, 384)]);
    }

    #[test]
    fn halves_are_joined_in_the_order_of_the_runs() {
        let of = |is_descending, bits| Groups { bits, is_descending, rounds: Vec::new() };
        let before = |groups: &Groups, mask| {
            let of = |lane: usize| groups.is_behind(lane, mask).then(|| groups.end_of_first(lane, mask));
            (0..8).map(of).collect::<Vec<_>>()
        };
        let own = |lanes: [i64; 8]| lanes.map(|lane| usize::try_from(lane).ok()).to_vec();
        let (up, down) = (of(false, 7), of(true, 7));
        assert_eq!(before(&up, 2), own([-1, -1, 1, 1, -1, -1, 5, 5]));
        assert_eq!(before(&down, 2), own([2, 2, -1, -1, 6, 6, -1, -1]));
        // Bits with a gap.
        let apart = of(false, 5);
        assert_eq!(before(&apart, 4), own([-1, -1, -1, -1, 1, 1, 3, 3]));
        let earlier = |groups: &Groups| (0..8).map(|lane| groups.predecessor(lane)).collect::<Vec<_>>();
        assert_eq!(earlier(&apart), own([-1, 0, -1, 2, 1, 4, 3, 6]));
        assert_eq!(earlier(&down), own([1, 2, 3, 4, 5, 6, 7, -1]));
        assert_eq!([up.last(2), down.last(2), apart.last(2)], [7, 0, 7]);
    }

    #[test]
    fn a_gap_ends_a_run() {
        let elements = [(0, 0), (0, 1), (1, 0), (0, 4)];
        let runs = runs(elements.iter().map(|(row, at)| (*row, *at, Place(0))).collect());
        let ends: Vec<_> = runs.iter().map(|run| (run.row, run.start, run.end())).collect();
        assert_eq!(ends, [(0, 0, 2), (0, 4, 5), (1, 0, 1)]);
    }
}
