//! Ways to share the iterations of a nest, or the elements of a fragment, among the threads.

use std::collections::BTreeSet;

use tilewright_layout::map::Spread;

use crate::cost::of_registers;
use crate::families::Family;
use crate::ids::MapId;
use crate::known::Pass;
use crate::scene::{Scene, Work};
use crate::state::{State, Why};
use crate::tables::Tables;

/// Slots that a way may need, in multiples of a thread's share.
const MOST_SLOTS: usize = 16;
/// The vector widths that are tried for fragments that no nest accesses in their order.
const WIDTHS: [usize; 2] = [4, 1];

/// Elements of a row from which on threads may have neighbouring rows: shorter rows of a warp would be too far apart for
/// whole lines of 128 bytes.
const LONG_ROW: usize = 64;

/// The rule of fragments that are shared in their plain order.
const IN_ORDER: &str = "shared among the threads in the order of its elements";
/// The rule of nests that are shared.
const SHARED: &str = "shared among the threads by this op";
/// The rule of fragments that every thread has all of, because nothing cheaper was found.
pub(crate) const WHOLE: &str = "every thread has all of it, since nothing cheaper is available";

/// What is shared, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The iterations of a nest, with the given dimension the fastest, or the last one if there is none.
    Nest(usize, Spread, Option<usize>),
    /// The elements of a storage.
    Storage(usize, Spread),
    /// Every thread has all of a storage.
    Whole(usize),
}

/// A way, and a lower bound on its cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) way: Way,
    pub(crate) least: u64,
}

impl Way {
    /// Whether both share their elements in the same way, whatever they share.
    pub(crate) fn is_like(self, other: Way) -> bool {
        self.order().is_some_and(|order| other.order() == Some(order))
    }

    fn order(self) -> Option<(Spread, Option<usize>)> {
        match self {
            Way::Nest(_, spread, along) => Some((spread, along)),
            Way::Storage(_, spread) => Some((spread, None)),
            Way::Whole(_) => None,
        }
    }
}

impl Scene<'_> {
    /// The plans of a family, the cheapest first.
    pub(crate) fn plans(&self, family: &Family) -> Vec<Plan> {
        let by_rows = self.by_rows || family.nests.iter().any(|item| self.is_turned(*item));
        let mut plans = Vec::new();
        let mut seen = BTreeSet::new();
        for item in &family.nests {
            let Some(work) = self.work(*item).filter(|work| work.laid_out.is_none()) else { continue };
            let extents = &work.nest.extents[..];
            for along in dimensions(work).into_iter().filter(|along| seen.insert((extents, work.widest(), *along))) {
                let spreads = all_spreads(&moved(extents, along), &work.widths(), self.threads, by_rows);
                plans.extend(spreads.into_iter().map(|spread| self.plan_of_nest(family, *item, spread, along)));
            }
        }
        let mut seen: BTreeSet<&[i64]> = seen.into_iter().map(|(extents, ..)| extents).collect();
        for storage in &family.storages {
            let extents = self.storages[*storage].extents;
            if seen.insert(extents) {
                let spreads = all_spreads(extents, &WIDTHS, self.threads, by_rows);
                plans.extend(spreads.into_iter().map(|spread| self.plan_of_storage(family, *storage, spread)));
            }
        }
        let whole = |storage: &usize| of_registers(self.storages[*storage].granules, self.storages[*storage].bytes);
        let least = family.storages.iter().map(whole).sum();
        plans.extend(family.storages.iter().map(|storage| Plan { way: Way::Whole(*storage), least }));
        plans.sort_by_key(|plan| (plan.least, self.has_idle_width(plan.way)));
        plans
    }

    /// Whether a nest is shared in vectors that are wider than any of its accesses can be: these move as much with
    /// narrower ones, which leave no gaps between threads.
    fn has_idle_width(&self, way: Way) -> bool {
        let Way::Nest(item, spread, _) = way else { return false };
        let moves = self.work(item).map_or(&[][..], |work| &work.moves);
        let iterations = moves.iter().map(|moves| moves.most.div_ceil(moves.elements)).max().unwrap_or(0);
        moves.iter().any(|moves| moves.most > 1 || moves.ends_at_edge) && spread.vector > iterations
    }

    /// Whether an access of a nest is adjacent in memory along a dimension other than the last.
    fn is_turned(&self, item: usize) -> bool {
        self.work(item).is_some_and(|work| dimensions(work).len() > 1)
    }

    fn plan_of_nest(&self, family: &Family, item: usize, spread: Spread, along: Option<usize>) -> Plan {
        let iterations = self.work(item).map_or(0, |work| work.iterations);
        Plan { way: Way::Nest(item, spread, along), least: self.least(family, iterations, spread, along) }
    }

    fn plan_of_storage(&self, family: &Family, storage: usize, spread: Spread) -> Plan {
        let granules = self.storages[storage].granules;
        Plan { way: Way::Storage(storage, spread), least: self.least(family, granules, spread, None) }
    }

    /// A lower bound on the cost of a family whose elements are shared in this way.
    fn least(&self, family: &Family, elements: usize, spread: Spread, along: Option<usize>) -> u64 {
        let slots = spread.slots(elements);
        let nests = family.nests.iter().filter_map(|item| self.work(*item));
        let nests = nests.filter(|work| work.iterations == elements).map(|work| work.least(&spread, along));
        let registers = family.storages.iter().map(|storage| of_registers(slots, self.storages[*storage].bytes));
        nests.sum::<u64>() + registers.sum::<u64>() + (family.reductions * slots) as u64
    }

    /// The same way, but with neighbouring rows on a thread, if it gives a thread every so many rows now.
    pub(crate) fn with_neighbouring_rows(&self, way: Way) -> Option<Way> {
        match way {
            Way::Nest(item, spread, along) => {
                let extents = moved(&self.work(item)?.nest.extents, along);
                Some(Way::Nest(item, by_neighbouring_rows(spread, &extents)?, along))
            }
            Way::Storage(storage, spread) => {
                Some(Way::Storage(storage, by_neighbouring_rows(spread, self.storages[storage].extents)?))
            }
            Way::Whole(_) => None,
        }
    }

    /// Follows a way: sets the maps that it gives directly, and returns their storages.
    pub(crate) fn follow(&self, tables: &mut Tables, way: Way, state: &mut State) -> Vec<usize> {
        match way {
            Way::Nest(item, spread, along) => self.follow_nest(tables, item, (spread, along), state),
            Way::Storage(storage, spread) => {
                let map = tables.spread(self.storages[storage].granules, spread);
                self.choose(state, storage, map, IN_ORDER)
            }
            Way::Whole(storage) => {
                let map = tables.replicated(self.storages[storage].granules);
                self.choose(state, storage, map, WHOLE)
            }
        }
    }

    fn follow_nest(
        &self,
        tables: &mut Tables,
        item: usize,
        (spread, along): (Spread, Option<usize>),
        state: &mut State,
    ) -> Vec<usize> {
        let Some(work) = self.work(item) else { return Vec::new() };
        let steps = steps_along(tables, &work.nest.extents, spread, along);
        state.hints[item] = Some(steps);
        let mut chosen = Vec::new();
        for touch in &work.touches {
            let map = tables.complete(steps, touch.pattern);
            if state.map(touch.storage).is_none() && tables.facts(map).is_whole {
                let span = work.nest.span;
                state.set(touch.storage, map, Why { pass: Pass::Free, rule: SHARED, item, span, parent: None });
                chosen.push(touch.storage);
            }
        }
        chosen
    }

    /// Gives a storage a map that follows from no other; the reason names the first op that uses it.
    pub(crate) fn choose(&self, state: &mut State, storage: usize, map: MapId, rule: &'static str) -> Vec<usize> {
        let Some(item) = self.users[storage].first().copied() else { return Vec::new() };
        let span = self.items[item].node.span();
        state.set(storage, map, Why { pass: Pass::Free, rule, item, span, parent: None });
        vec![storage]
    }
}

/// Dimensions that may be the fastest: the last (`None`), and others along which accesses are adjacent in memory.
fn dimensions(work: &Work) -> Vec<Option<usize>> {
    let last = work.nest.extents.len().saturating_sub(1);
    let mut dimensions = vec![None];
    for along in work.moves.iter().map(|moves| moves.along.filter(|along| *along != last)) {
        if !dimensions.contains(&along) {
            dimensions.push(along);
        }
    }
    dimensions
}

/// The extents with one dimension moved to the end.
fn moved(extents: &[i64], along: Option<usize>) -> Vec<i64> {
    let others = extents.iter().enumerate().filter(|(at, _)| Some(*at) != along).map(|(_, extent)| *extent);
    others.chain(along.map(|along| extents[along])).collect()
}

/// The steps of a nest that is shared with one dimension as the fastest.
fn steps_along(tables: &mut Tables, extents: &[i64], spread: Spread, along: Option<usize>) -> MapId {
    let iterations = extents.iter().product::<i64>().max(0) as usize;
    let steps = tables.spread(iterations, spread);
    let Some(along) = along else { return steps };
    let below = extents[along + 1..].iter().product::<i64>().max(1) as usize;
    let extent = extents[along].max(1) as usize;
    // In the moved order a number is made of the dimensions above and below, and then of the dimension itself.
    let name = |place: usize| {
        let (others, digit) = (place / extent, place % extent);
        ((others / below * extent + digit) * below + others % below) as u32
    };
    let table: Vec<u32> = (0..iterations).map(name).collect();
    tables.number(tables.map(steps).renamed(iterations, &table))
}

/// Ways to share elements in their plain order.
pub(crate) fn spreads(extents: &[i64], widths: &[usize], threads: usize) -> Vec<Spread> {
    let all = extents.iter().product::<i64>().max(1) as usize;
    let row = extents.last().copied().unwrap_or(1).max(1) as usize;
    let plain = |vector: &usize| Spread { row: all, group: threads, groups: 1, vector: *vector };
    widths.iter().filter(|width| row.is_multiple_of(**width)).map(plain).collect()
}

/// Ways to share elements, on all threads or on fewer, and by rows.
fn all_spreads(extents: &[i64], widths: &[usize], threads: usize, by_rows: bool) -> Vec<Spread> {
    let all = extents.iter().product::<i64>().max(1) as usize;
    let most = MOST_SLOTS * all.div_ceil(threads);
    let mut found: Vec<Spread> = Vec::new();
    for plain in spreads(extents, widths, threads) {
        let fewer = halvings(threads).map(|group| Spread { group, ..plain });
        found.extend(fewer.take_while(|spread| spread.slots(all) <= most.max(plain.slots(all))));
    }
    let last = extents.last().copied().unwrap_or(1).max(1) as usize;
    let mut row = 1;
    for extent in extents.iter().skip(1).rev().filter(|_| by_rows) {
        row *= (*extent).max(1) as usize;
        for vector in widths.iter().copied().filter(|vector| row > 1 && row < all && last.is_multiple_of(*vector)) {
            let of_row = by_row(all, row, vector, threads).into_iter();
            found.extend(of_row.filter(|spread| spread.slots(all) <= most));
        }
    }
    found
}

/// Ways to share rows: each on a power of two of threads, on the threads divided by the rows, or on as many threads as
/// a row has vectors.
fn by_row(all: usize, row: usize, vector: usize, threads: usize) -> Vec<Spread> {
    let (lines, vectors) = (all / row, row / vector);
    let mut sizes: BTreeSet<usize> = (0..=threads.ilog2()).map(|power| 1 << power).collect();
    sizes.extend([(threads / lines).max(1), vectors]);
    let mut found = Vec::new();
    for group in sizes.into_iter().filter(|group| *group <= threads && *group <= vectors) {
        // Of the group counts that are at least the number of rows, only the least is tried.
        for groups in halvings(threads / group).filter(|groups| *groups <= lines || groups / 2 < lines) {
            found.push(Spread { row, group, groups, vector });
        }
    }
    found
}

/// The same with neighbouring rows on a thread, if `groups` groups of threads have every `groups`th row now.
fn by_neighbouring_rows(spread: Spread, extents: &[i64]) -> Option<Spread> {
    let all = extents.iter().product::<i64>().max(1) as usize;
    let row = extents.last().copied().unwrap_or(1).max(1) as usize;
    let Spread { vector, group: threads, groups, .. } = spread;
    if row < LONG_ROW || !row.is_multiple_of(vector) {
        return None;
    }
    let group = row / vector;
    let groups = match spread.row {
        of if of == all && groups == 1 && threads.is_multiple_of(group) => threads / group,
        of if of == row && threads == group => groups,
        _ => return None,
    };
    let lines = all / row;
    (groups > 1 && lines > groups && lines.is_multiple_of(groups)).then_some(Spread {
        row: all / groups,
        group,
        groups,
        vector,
    })
}

/// A number, half of it, and so on, down to 1.
fn halvings(number: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(number), |number| (*number > 1).then_some(number / 2))
}

#[cfg(test)]
mod tests {
    use tilewright_layout::map::Map;

    use super::*;

    #[test]
    fn plain_orders_are_as_wide_as_rows_allow() {
        let widths: Vec<usize> = spreads(&[7, 12], &[8, 4, 2, 1], 32).iter().map(|spread| spread.vector).collect();
        assert_eq!(widths, [4, 2, 1]);
    }

    #[test]
    fn rows_are_shared_by_powers_of_two_and_by_what_fits() {
        let found = by_row(7 * 64, 64, 1, 64);
        let groups: BTreeSet<usize> = found.iter().map(|spread| spread.group).collect();
        assert_eq!(groups, BTreeSet::from([1, 2, 4, 8, 9, 16, 32, 64]));
        assert!(found.contains(&Spread { row: 64, group: 9, groups: 7, vector: 1 }));
    }

    #[test]
    fn every_way_shares_all() {
        for spread in all_spreads(&[6, 20], &[4, 2, 1], 32, true) {
            let map = Map::spread(32, 120, spread);
            assert_eq!((map.missing(), map.slots()), (None, spread.slots(120)), "{spread:?}");
        }
    }

    #[test]
    fn rows_of_a_thread_become_neighbours() {
        let plain = Spread { row: 8 * 128, group: 32, groups: 1, vector: 8 };
        let by_row = Spread { row: 128, group: 16, groups: 2, vector: 8 };
        let neighbours = Spread { row: 4 * 128, group: 16, groups: 2, vector: 8 };
        for spread in [plain, by_row] {
            assert_eq!(by_neighbouring_rows(spread, &[8, 128]), Some(neighbours));
            assert_eq!(spread.slots(8 * 128), neighbours.slots(8 * 128));
        }
        let map = Map::spread(32, 8 * 128, neighbours);
        let rows: BTreeSet<usize> = (0..map.slots()).filter_map(|slot| Some(map.at(16, slot)? / 128)).collect();
        assert_eq!(rows, BTreeSet::from([4, 5, 6, 7]));
    }

    #[test]
    fn short_rows_and_single_rows_stay_apart() {
        let spread = Spread { row: 32, group: 4, groups: 8, vector: 8 };
        assert_eq!(by_neighbouring_rows(spread, &[64, 32]), None);
        let whole = Spread { row: 2 * 128, group: 32, groups: 1, vector: 8 };
        assert_eq!(by_neighbouring_rows(whole, &[2, 128]), None);
    }

    #[test]
    fn another_dimension_can_be_the_fastest() {
        let mut tables = Tables::new(4);
        let spread = Spread { row: 8, group: 4, groups: 1, vector: 2 };
        let steps = steps_along(&mut tables, &[2, 4], spread, Some(0));
        let first: Vec<Option<usize>> = (0..2).map(|step| tables.map(steps).at(0, step)).collect();
        assert_eq!(first, [Some(0), Some(4)]);
        assert_eq!(tables.map(steps).missing(), None);
    }
}
