//! What follows from maps and patterns, computed once for each combination of them.

use tilewright_layout::map::{Map, Spread};

use crate::ids::{MapId, PatternId};
use crate::steps;
use crate::tables::Tables;

impl Tables {
    /// The map of `elements` elements that are shared among the threads as `spread` describes.
    pub(crate) fn spread(&mut self, elements: usize, spread: Spread) -> MapId {
        if let Some(known) = self.answers.spreads.get(&(elements, spread)) {
            return *known;
        }
        let id = self.number(Map::spread(self.threads(), elements, spread));
        self.answers.spreads.insert((elements, spread), id);
        id
    }

    /// The map of `elements` elements that are all on every thread.
    pub(crate) fn replicated(&mut self, elements: usize) -> MapId {
        self.number(Map::replicated(self.threads(), elements))
    }

    /// The map of a fragment whose granules are on the threads that touch them in these steps.
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

    /// The steps of a nest that is done on the threads that have what it touches of a fragment.
    pub(crate) fn steps_from(&mut self, map: MapId, pattern: PatternId) -> MapId {
        if self.pattern(pattern).is_identity() && !self.is_repeated(map) {
            return map;
        }
        if let Some(known) = self.answers.followed.get(&(map, pattern)) {
            return *known;
        }
        // A thread does an iteration once, however many registers hold what it touches.
        let id = match self.is_repeated(map) {
            true => {
                let once = self.number(self.map(map).once_per_thread());
                self.steps_from(once, pattern)
            }
            false => self.number(steps::steps_from(self.pattern(pattern), self.map(map), self.owners(map))),
        };
        self.answers.followed.insert((map, pattern), id);
        id
    }

    /// An upper bound on the number of steps of [`Tables::steps_from`].
    pub(crate) fn most_steps_from(&self, map: MapId, pattern: PatternId) -> usize {
        self.map(map).slots() * self.pattern(pattern).most()
    }

    /// The steps with each iteration replaced by `turns` consecutive ones.
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

    /// The map with only the first owner of every element.
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

    /// The map with an owner for every element: those without one are put where there is room.
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
        self.visit(map);
        self.visit(other);
        let is_within = self.owners(map).is_within(self.owners(other));
        self.answers.within.insert((map, other), is_within);
        is_within
    }

    /// Whether the steps touch a fragment on the right threads: reads on threads that have the element, writes on
    /// exactly those.
    pub(crate) fn is_right(&mut self, steps: MapId, pattern: PatternId, writes: bool, map: MapId) -> bool {
        let follows = !writes || self.pattern(pattern).is_own();
        if follows && self.complete(steps, pattern) == map {
            return true;
        }
        if let Some(known) = self.answers.right.get(&(steps, pattern, writes, map)) {
            return *known;
        }
        self.visit(steps);
        self.visit(map);
        let wrong = steps::first_wrong(self.pattern(pattern), self.owners(steps), writes, self.owners(map));
        self.answers.right.insert((steps, pattern, writes, map), wrong.is_none());
        wrong.is_none()
    }

    /// The number of slots that have to be selected by thread; 0 if the map of the fragment follows from the steps.
    pub(crate) fn selections(&mut self, steps: MapId, pattern: PatternId, map: MapId) -> u64 {
        if self.complete(steps, pattern) == map {
            return 0;
        }
        if let Some(known) = self.answers.selections.get(&(steps, pattern, map)) {
            return *known;
        }
        self.visit(steps);
        self.visit(map);
        let selections = steps::selections(self.pattern(pattern), self.map(steps), self.map(map));
        self.answers.selections.insert((steps, pattern, map), selections);
        selections
    }
}
