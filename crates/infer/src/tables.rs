//! Interned maps, patterns and places: equal ones have the same number, and are analysed once.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::tile::vectors::Places;
use tilewright_layout::access::LANES;
use tilewright_layout::map::{Map, NONE, Owners};

use crate::answers::Answers;
use crate::ids::{MapId, PatternId, PlacesId};
use crate::pattern::Pattern;

/// What is known about a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// No element is on two threads.
    pub(crate) is_sole: bool,
    /// Every element is on a thread.
    pub(crate) is_whole: bool,
    /// Pairs of thread and slot that have an element.
    pub(crate) entries: usize,
    /// Slots of the busiest warp that are not empty.
    pub(crate) busiest: usize,
    /// Slots of all warps together that are not empty.
    pub(crate) issued: usize,
}

/// Distinct values, each with a number.
#[derive(Debug)]
struct Numbered<T> {
    /// The values, by number.
    things: Vec<Arc<T>>,
    /// The number of each value.
    numbers: BTreeMap<Arc<T>, usize>,
}

/// All interned values, and the cached answers about them.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Threads of the CTA.
    threads: usize,
    maps: Numbered<Map>,
    /// The owners of each map, computed on the first use.
    owners: Vec<OnceCell<Owners>>,
    /// The facts of each map, computed on the first use.
    facts: Vec<OnceCell<Facts>>,
    patterns: Numbered<Pattern>,
    places: Numbered<Places>,
    pub(crate) answers: Answers,
    /// How many places of elements may still be visited.
    pub(crate) left: u64,
}

/// How many places of elements inference visits at most, for all of a kernel: pairs of thread and slot, in maps that it
/// derives or compares.
pub(crate) const BUDGET: u64 = 3 << 23;

impl<T: Ord> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered { things: Vec::new(), numbers: BTreeMap::new() }
    }

    fn number(&mut self, thing: Arc<T>) -> usize {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        self.things.push(Arc::clone(&thing));
        self.numbers.insert(thing, self.things.len() - 1);
        self.things.len() - 1
    }
}

impl Tables {
    pub(crate) fn new(threads: usize) -> Tables {
        Tables {
            threads,
            maps: Numbered::new(),
            owners: Vec::new(),
            facts: Vec::new(),
            patterns: Numbered::new(),
            places: Numbered::new(),
            answers: Answers::default(),
            left: BUDGET,
        }
    }

    /// Notes a visit of all places of a map.
    pub(crate) fn visit(&mut self, map: MapId) {
        let places = self.map(map).threads() * self.map(map).slots();
        self.left = self.left.saturating_sub(places as u64);
    }

    /// Leaves at most `most` places to visit, and returns how many are kept back.
    pub(crate) fn keep(&mut self, most: u64) -> u64 {
        let kept = self.left.saturating_sub(most);
        self.left -= kept;
        kept
    }

    /// Whether no more places may be visited.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Threads of the block.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Interns a map.
    pub(crate) fn number(&mut self, map: Map) -> MapId {
        let id = MapId(self.maps.number(Arc::new(map)));
        if self.owners.len() < self.maps.things.len() {
            self.owners.push(OnceCell::new());
            self.facts.push(OnceCell::new());
        }
        self.visit(id);
        id
    }

    pub(crate) fn number_pattern(&mut self, pattern: &Arc<Pattern>) -> PatternId {
        PatternId(self.patterns.number(Arc::clone(pattern)))
    }

    pub(crate) fn number_places(&mut self, places: &Arc<Places>) -> PlacesId {
        PlacesId(self.places.number(Arc::clone(places)))
    }

    pub(crate) fn map(&self, id: MapId) -> &Map {
        &self.maps.things[id.0]
    }

    /// The map, to keep after the search.
    pub(crate) fn shared_map(&self, id: MapId) -> Arc<Map> {
        Arc::clone(&self.maps.things[id.0])
    }

    pub(crate) fn pattern(&self, id: PatternId) -> &Pattern {
        &self.patterns.things[id.0]
    }

    pub(crate) fn places(&self, id: PlacesId) -> &Places {
        &self.places.things[id.0]
    }

    pub(crate) fn owners(&self, id: MapId) -> &Owners {
        self.owners[id.0].get_or_init(|| self.map(id).owners())
    }

    /// Whether a thread holds an element in several slots.
    pub(crate) fn is_repeated(&self, id: MapId) -> bool {
        !self.facts(id).is_sole && self.owners(id).entries() < self.facts(id).entries
    }

    pub(crate) fn facts(&self, id: MapId) -> Facts {
        *self.facts[id.0].get_or_init(|| Facts::of(self.map(id)))
    }
}

impl Facts {
    fn of(map: &Map) -> Facts {
        let mut copies = vec![0u32; map.elements()];
        let mut warps = vec![0; map.threads().div_ceil(LANES)];
        for column in map.columns() {
            for (active, lanes) in warps.iter_mut().zip(column.chunks(LANES)) {
                let mut is_active = false;
                for element in lanes.iter().filter(|element| **element != NONE) {
                    copies[*element as usize] += 1;
                    is_active = true;
                }
                *active += usize::from(is_active);
            }
        }
        Facts {
            is_sole: copies.iter().all(|copies| *copies <= 1),
            is_whole: copies.iter().all(|copies| *copies >= 1),
            entries: copies.iter().map(|copies| *copies as usize).sum(),
            busiest: warps.iter().copied().max().unwrap_or(0),
            issued: warps.iter().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_layout::map::Spread;

    use super::*;

    #[test]
    fn equal_maps_have_one_number() {
        let mut tables = Tables::new(4);
        let one = tables.number(Map::replicated(4, 3));
        let other = tables.number(Map::empty(4, 3));
        assert_eq!((tables.number(Map::replicated(4, 3)), one == other), (one, false));
        assert_eq!(tables.owners(one).of(2), [0, 1, 2, 3]);
    }

    #[test]
    fn slots_are_counted_by_warp() {
        let map = Map::spread(64, 80, Spread { row: 80, group: 64, groups: 1, vector: 1 });
        let facts = Facts { is_sole: true, is_whole: true, entries: 80, busiest: 2, issued: 3 };
        assert_eq!(Facts::of(&map), facts);
        assert!(!Facts::of(&Map::empty(64, 1)).is_whole);
        assert!(!Facts::of(&Map::replicated(64, 1)).is_sole);
    }
}
