//! What follows from maps and patterns, worked out once for each pair of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::tile::vectors::Chunk;
use tilewright_layout::map::{Map, Spread};

use crate::steps;
use crate::tables::{MapId, PatternId, Tables};
use crate::vectors::{Issue, IssueKey};

/// Answers that are known already.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    spreads: BTreeMap<(usize, Spread), MapId>,
    completed: BTreeMap<(MapId, PatternId), MapId>,
    followed: BTreeMap<(MapId, PatternId), MapId>,
    once: BTreeMap<MapId, MapId>,
    filled: BTreeMap<MapId, MapId>,
    widened: BTreeMap<(MapId, MapId), MapId>,
    within: BTreeMap<(MapId, MapId), bool>,
    right: BTreeMap<(MapId, PatternId, bool, MapId), bool>,
    selections: BTreeMap<(MapId, PatternId, MapId), u64>,
    turned: BTreeMap<(MapId, usize), MapId>,
    pub(crate) chunks: BTreeMap<(MapId, usize), Rc<Vec<Chunk>>>,
    pub(crate) issues: BTreeMap<IssueKey, Issue>,
    pub(crate) shuffles: BTreeMap<(MapId, PatternId), u64>,
}

impl Tables {
    /// So many elements, shared in this way.
    pub(crate) fn spread(&mut self, elements: usize, spread: Spread) -> MapId {
        if let Some(known) = self.answers.spreads.get(&(elements, spread)) {
            return *known;
        }
        let id = self.number(Map::spread(self.threads(), elements, spread));
        self.answers.spreads.insert((elements, spread), id);
        id
    }

    /// So many elements on every thread.
    pub(crate) fn replicated(&mut self, elements: usize) -> MapId {
        self.number(Map::replicated(self.threads(), elements))
    }

    /// Where a fragment is if it is where the steps touch it.
    pub(crate) fn complete(&mut self, steps: MapId, pattern: PatternId) -> MapId {
        if self.pattern(pattern).is_identity() {
            return steps;
        }
        if let Some(known) = self.answers.completed.get(&(steps, pattern)) {
            return *known;
        }
        let id = self.number(steps::complete(self.pattern(pattern), self.map(steps)));
        self.answers.completed.insert((steps, pattern), id);
        id
    }

    /// The steps of a nest that is done where a fragment is that it touches.
    pub(crate) fn steps_from(&mut self, map: MapId, pattern: PatternId) -> MapId {
        if self.pattern(pattern).is_identity() {
            return map;
        }
        if let Some(known) = self.answers.followed.get(&(map, pattern)) {
            return *known;
        }
        let id = self.number(steps::steps_from(self.pattern(pattern), self.map(map), self.owners(map)));
        self.answers.followed.insert((map, pattern), id);
        id
    }

    /// Steps that [`Tables::steps_from`] has at most.
    pub(crate) fn most_steps_from(&self, map: MapId, pattern: PatternId) -> usize {
        self.map(map).slots() * self.pattern(pattern).most()
    }

    /// Steps in which every iteration is so many.
    pub(crate) fn with_turns(&mut self, steps: MapId, turns: usize) -> MapId {
        if turns == 1 {
            return steps;
        }
        if let Some(known) = self.answers.turned.get(&(steps, turns)) {
            return *known;
        }
        let id = self.number(self.map(steps).with_turns(turns));
        self.answers.turned.insert((steps, turns), id);
        id
    }

    /// The same with one owner of every element.
    pub(crate) fn once(&mut self, map: MapId) -> MapId {
        if self.facts(map).is_sole {
            return map;
        }
        if let Some(known) = self.answers.once.get(&map) {
            return *known;
        }
        let id = self.number(self.map(map).once());
        self.answers.once.insert(map, id);
        id
    }

    /// The same with an owner for every element.
    pub(crate) fn filled(&mut self, map: MapId) -> MapId {
        if self.facts(map).is_whole {
            return map;
        }
        if let Some(known) = self.answers.filled.get(&map) {
            return *known;
        }
        let id = self.number(self.map(map).filled());
        self.answers.filled.insert(map, id);
        id
    }

    /// The map with the owners of both.
    pub(crate) fn widened(&mut self, map: MapId, other: MapId) -> MapId {
        if let Some(known) = self.answers.widened.get(&(map, other)) {
            return *known;
        }
        let id = self.number(self.map(map).widened(self.map(other)));
        self.answers.widened.insert((map, other), id);
        id
    }

    /// Whether every owner of an element has it in the other map too.
    pub(crate) fn is_within(&mut self, map: MapId, other: MapId) -> bool {
        if map == other {
            return true;
        }
        if let Some(known) = self.answers.within.get(&(map, other)) {
            return *known;
        }
        let is_within = self.owners(map).is_within(self.owners(other));
        self.answers.within.insert((map, other), is_within);
        is_within
    }

    /// Whether the steps touch a fragment only where they may: reads where the element is, writes exactly there.
    pub(crate) fn is_right(&mut self, steps: MapId, pattern: PatternId, writes: bool, map: MapId) -> bool {
        let follows = !writes || self.pattern(pattern).is_own();
        if follows && self.complete(steps, pattern) == map {
            return true;
        }
        if let Some(known) = self.answers.right.get(&(steps, pattern, writes, map)) {
            return *known;
        }
        let wrong = steps::first_wrong(self.pattern(pattern), self.owners(steps), writes, self.owners(map));
        self.answers.right.insert((steps, pattern, writes, map), wrong.is_none());
        wrong.is_none()
    }

    /// Slots that have to be told apart by thread. Where a fragment follows from the steps, so do its slots.
    pub(crate) fn selections(&mut self, steps: MapId, pattern: PatternId, map: MapId) -> u64 {
        if self.complete(steps, pattern) == map {
            return 0;
        }
        if let Some(known) = self.answers.selections.get(&(steps, pattern, map)) {
            return *known;
        }
        let selections = steps::selections(self.pattern(pattern), self.map(steps), self.map(map));
        self.answers.selections.insert((steps, pattern, map), selections);
        selections
    }
}
