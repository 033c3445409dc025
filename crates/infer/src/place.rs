//! The common pass: layouts that follow from other layouts.

use std::collections::VecDeque;

use tilewright_diag::Span;

use crate::cost::of_registers;
use crate::ids::MapId;
use crate::known::Pass;
use crate::scene::{Fold, Kind, Scene, Use, Work};
use crate::state::{Fixed, State, Why};
use crate::tables::Tables;

/// How often a fragment may get more copies before a choice is given up.
const MOST_WIDENINGS: usize = 16;

impl Scene<'_> {
    /// The state before the search, with the maps that were given.
    pub(crate) fn start(&self) -> State {
        let given = |map: MapId| Fixed { map, why: None };
        State {
            fixed: self.storages.iter().map(|stored| stored.given.map(given)).collect(),
            hints: vec![None; self.items.len()],
        }
    }

    /// The largest storage without a map; the first one, if several are as large.
    pub(crate) fn open(&self, state: &State) -> Option<usize> {
        let open = (0..self.storages.len()).filter(|storage| state.fixed[*storage].is_none());
        open.min_by_key(|storage| std::cmp::Reverse(self.storages[*storage].granules))
    }

    /// The cost of the registers that a storage takes under a map.
    pub(crate) fn registers(&self, tables: &Tables, storage: usize, map: MapId) -> u64 {
        of_registers(tables.map(map).slots(), self.storages[storage].bytes)
    }

    /// Derives what follows from the ops of `from`, breadth first, until nothing more does. `changed` gets the
    /// storages that are given a map or more copies. False if the choice is given up: a fragment costs `limit`, or
    /// keeps growing, or no more places may be visited.
    pub(crate) fn propagate(
        &self,
        tables: &mut Tables,
        state: &mut State,
        from: Vec<usize>,
        limit: u64,
        changed: &mut Vec<usize>,
    ) -> bool {
        let mut is_queued = vec![false; self.items.len()];
        from.iter().for_each(|item| is_queued[*item] = true);
        let mut widened = vec![0; self.storages.len()];
        let mut queue = VecDeque::from(from);
        while let Some(item) = queue.pop_front() {
            if tables.is_spent() {
                return false;
            }
            is_queued[item] = false;
            let first = changed.len();
            self.derive(tables, item, state, changed);
            for storage in &changed[first..] {
                let Some(map) = state.map(*storage) else { continue };
                widened[*storage] += 1;
                if widened[*storage] > MOST_WIDENINGS || self.registers(tables, *storage, map) >= limit {
                    return false;
                }
                for user in self.users[*storage].iter().filter(|user| **user != item) {
                    if !is_queued[*user] {
                        is_queued[*user] = true;
                        queue.push_back(*user);
                    }
                }
            }
        }
        true
    }

    /// Adds to `changed` the storages to which an op gives a map or more copies.
    fn derive(&self, tables: &mut Tables, item: usize, state: &mut State, changed: &mut Vec<usize>) {
        match &self.items[item].kind {
            Kind::Nest(work) => derive_nest(tables, (item, work), state, changed),
            Kind::Reduce(fold) => {
                let span = self.items[item].node.span();
                derive_result(tables, (item, *fold), span, state, changed);
            }
            Kind::Dictated => {}
        }
    }
}

impl Work<'_> {
    /// The steps that follow from a known fragment, and that fragment: one that is written, else one of which every
    /// iteration reads a different element. A layout of the loop itself comes first.
    pub(crate) fn steps_that_follow(&self, tables: &mut Tables, state: &State) -> Option<(MapId, Option<usize>)> {
        if let Some(steps) = self.laid_out {
            return Some((steps, None));
        }
        let known = |touch: &Use| Some((*touch, state.map(touch.storage)?));
        let is_own = |touch: &&Use| !touch.writes && tables.pattern(touch.pattern).is_own();
        let written = self.touches.iter().filter(|touch| touch.writes).find_map(known);
        let (touch, map) = written.or_else(|| self.touches.iter().filter(is_own).find_map(known))?;
        Some((tables.steps_from(map, touch.pattern), Some(touch.storage)))
    }
}

fn derive_nest(tables: &mut Tables, (item, work): (usize, &Work), state: &mut State, changed: &mut Vec<usize>) {
    let Some((steps, parent)) = work.steps_that_follow(tables, state) else { return };
    if !tables.facts(steps).is_whole {
        return;
    }
    for (at, touch) in work.touches.iter().enumerate() {
        let map = tables.complete(steps, touch.pattern);
        let span = work.nest.touches[at].span;
        let why = |rule| Why { pass: Pass::Common, rule, item, span, parent };
        match state.fixed[touch.storage] {
            None if tables.facts(map).is_whole => {
                state.set(touch.storage, map, why("each element is on the threads that use it"));
                changed.push(touch.storage);
            }
            Some(fixed) if !touch.writes && fixed.why.is_some() && !tables.is_within(map, fixed.map) => {
                let wider = tables.widened(fixed.map, map);
                state.set(touch.storage, wider, why("copied to the threads that read it"));
                changed.push(touch.storage);
            }
            None | Some(_) => {}
        }
    }
}

fn derive_result(
    tables: &mut Tables,
    (item, fold): (usize, Fold),
    span: Span,
    state: &mut State,
    changed: &mut Vec<usize>,
) {
    let Some(source) = state.map(fold.src).filter(|_| state.map(fold.dst).is_none()) else { return };
    let map = tables.complete(source, fold.pattern);
    let rule = "each result is on the threads that have part of its row";
    state.set(fold.dst, map, Why { pass: Pass::Common, rule, item, span, parent: Some(fold.src) });
    changed.push(fold.dst);
}
