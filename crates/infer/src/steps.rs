//! Which thread does which iteration of a nest, in which step.

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::{Map, NONE, Owners};

use crate::pattern::Pattern;

/// Why a choice of layouts fails: the first conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The op.
    pub op: String,
    /// Where the op was written.
    pub span: Span,
    /// What is wrong, in words.
    pub what: String,
    /// The element that is not on the threads that use it, if that is the conflict.
    pub clash: Option<Clash>,
}

/// An element that is not on the threads that use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// Where the access was written.
    pub span: Span,
    /// The fragment that owns the storage.
    pub fragment: Handle<Buffer>,
    /// The element, counted in granules of the storage.
    pub element: usize,
    /// Whether it is written.
    pub writes: bool,
    /// The threads that use it.
    pub executing: Vec<u32>,
    /// The threads that have it.
    pub owning: Vec<u32>,
}

/// The steps in which every thread does the iterations that touch its granules, in the order of the slots of `map`. An
/// iteration that touches several granules is done on the threads that have all of them; one that touches none is done
/// where there is room.
pub(crate) fn steps_from(pattern: &Pattern, map: &Map, owners: &Owners) -> Map {
    let (visits, most, slots) = (pattern.visits(), pattern.most(), map.slots());
    let mut steps = Map::empty(map.threads(), pattern.iterations());
    for (slot, column) in map.columns().enumerate() {
        for (thread, granule) in column.iter().enumerate().filter(|(_, granule)| **granule != NONE) {
            for (nth, iteration) in visits.of(*granule as usize).iter().enumerate() {
                let has_all = || pattern.of(*iteration).all(|granule| owners.has(granule, thread));
                if pattern.trips() == 1 || has_all() {
                    let step = if pattern.is_together() { slot * most + nth } else { nth * slots + slot };
                    steps.put(thread, step, *iteration);
                }
            }
        }
    }
    let steps = steps.without_empty_slots();
    if pattern.is_total() || !is_missing_idle_only(pattern, &steps) { steps } else { steps.filled() }
}

/// Whether the iterations that no thread does touch nothing.
fn is_missing_idle_only(pattern: &Pattern, steps: &Map) -> bool {
    let mut is_done = vec![false; pattern.iterations()];
    for (_, _, iteration) in steps.entries() {
        is_done[iteration] = true;
    }
    is_done.iter().enumerate().all(|(iteration, is_done)| *is_done || pattern.of(iteration).next().is_none())
}

/// The map of a fragment whose granules are on the threads that touch them in these steps.
pub(crate) fn complete(pattern: &Pattern, steps: &Map) -> Map {
    match pattern.table() {
        None => steps.clone(),
        Some(table) if pattern.is_own() => steps.renamed(pattern.granules(), table),
        Some(table) => steps.through_table(pattern.granules(), pattern.trips(), table),
    }
}

/// The first iteration and granule on the wrong threads: a read has to be on threads that have the granule, a write on
/// exactly those.
pub(crate) fn first_wrong(
    pattern: &Pattern,
    executors: &Owners,
    writes: bool,
    owners: &Owners,
) -> Option<(usize, usize)> {
    let is_right = |iteration: usize, granule: usize| {
        let (executing, owning) = (executors.of(iteration), owners.of(granule));
        executing == owning || !writes && executing.iter().all(|thread| owning.binary_search(thread).is_ok())
    };
    let wrong = |iteration: usize| {
        let granule = pattern.of(iteration).find(|granule| !is_right(iteration, *granule))?;
        Some((iteration, granule))
    };
    (0..pattern.iterations()).find_map(wrong)
}

/// The number of slots beyond the first in which threads have what they touch in the same step: registers cannot be
/// indexed, so the code has to select each of them.
pub(crate) fn selections(pattern: &Pattern, steps: &Map, map: &Map) -> u64 {
    let mut slot_of = vec![0; map.elements()];
    let mut seen: Vec<Vec<usize>> = vec![Vec::new(); steps.slots() * pattern.trips()];
    for thread in 0..map.threads() {
        for slot in 0..map.slots() {
            if let Some(granule) = map.at(thread, slot) {
                slot_of[granule] = slot;
            }
        }
        for step in 0..steps.slots() {
            let Some(iteration) = steps.at(thread, step) else { continue };
            for trip in 0..pattern.trips() {
                let Some(granule) = pattern.at(iteration, trip) else { continue };
                let seen = &mut seen[step * pattern.trips() + trip];
                if !seen.contains(&slot_of[granule]) {
                    seen.push(slot_of[granule]);
                }
            }
        }
    }
    seen.iter().map(|slots| slots.len().saturating_sub(1) as u64).sum()
}

/// `thread 3`, or `threads 0, 1, 2, ... (16)`.
pub(crate) fn threads_title(threads: &[u32]) -> String {
    let listed: Vec<String> = threads.iter().take(4).map(u32::to_string).collect();
    match threads.len() {
        0 => "no thread".to_string(),
        1 => format!("thread {}", listed[0]),
        2..=4 => format!("threads {}", listed.join(", ")),
        count => format!("threads {}, ... ({count})", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use tilewright_layout::map::Spread;

    use super::*;

    fn plain(elements: usize, threads: usize, vector: usize) -> Map {
        Map::spread(threads, elements, Spread { row: elements, group: threads, groups: 1, vector })
    }

    fn listed(map: &Map, thread: usize) -> Vec<Option<usize>> {
        (0..map.slots()).map(|slot| map.at(thread, slot)).collect()
    }

    #[test]
    fn iterations_that_share_an_element_follow_each_other() {
        let rows = Pattern::of_table(4, 1, vec![0, 0, 1, 1, 2, 2, 3, 3]);
        let map = plain(4, 2, 1);
        assert_eq!(listed(&steps_from(&rows, &map, &map.owners()), 1), [Some(2), Some(3), Some(6), Some(7)]);
    }

    #[test]
    fn repeated_rows_are_done_one_after_the_other() {
        let copies = Pattern::of_table(4, 1, vec![0, 1, 2, 3, 0, 1, 2, 3]);
        let map = plain(4, 2, 2);
        assert_eq!(listed(&steps_from(&copies, &map, &map.owners()), 1), [Some(2), Some(3), Some(6), Some(7)]);
    }

    #[test]
    fn an_iteration_is_where_all_that_it_touches_is() {
        let pairs = Pattern::of_table(4, 2, vec![0, 1, 1, 2, 2, 3]);
        let map = plain(4, 2, 2);
        let steps = steps_from(&pairs, &map, &map.owners());
        assert_eq!((listed(&steps, 0), listed(&steps, 1)), (vec![Some(0)], vec![Some(2)]));
    }

    #[test]
    fn an_iteration_that_touches_nothing_is_where_there_is_room() {
        let half = Pattern::of_table(4, 1, vec![0, 1, NONE, NONE]);
        let map = plain(4, 4, 1);
        let steps = steps_from(&half, &map, &map.owners());
        assert_eq!((listed(&steps, 1), listed(&steps, 2), steps.missing()), (vec![Some(1)], vec![Some(2)], None));
    }

    #[test]
    fn reads_may_be_fewer_and_writes_may_not() {
        let (all, one, same) = (Map::replicated(2, 4).owners(), plain(4, 2, 1).owners(), Pattern::identity(4));
        assert_eq!(first_wrong(&same, &one, false, &all), None);
        assert_eq!(first_wrong(&same, &one, true, &all), Some((0, 0)));
        assert_eq!(first_wrong(&same, &all, false, &one), Some((0, 0)));
    }

    #[test]
    fn slots_that_differ_by_thread_are_counted() {
        let steps = plain(4, 4, 1);
        let skewed = Map::of_slots(4, 4, |thread, slot| (thread % 2 == slot).then_some(thread), 2);
        assert_eq!(selections(&Pattern::identity(4), &steps, &steps), 0);
        assert_eq!(selections(&Pattern::identity(4), &steps, &skewed), 1);
    }
}
