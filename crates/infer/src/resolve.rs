//! Fragments whose maps follow from nothing that is known: each gets the map with which its uses cost the least.

use crate::cost::of_registers;
use crate::ids::MapId;
use crate::known::Pass;
use crate::plans::Way;
use crate::scene::Work;
use crate::search::Search;
use crate::state::{State, Why};

/// The maximum number of maps that are derived from other fragments and tried.
const FOLLOWERS: usize = 8;
/// The maximum number of plans that are tried, other than those that give every thread the whole fragment.
const PLANS: usize = 8;

/// The cheapest map so far: what it adds to the cost, and the state that has it.
type Best = Option<(u64, State)>;

impl Search<'_> {
    /// The state with a map for this storage too: the cheapest of those that follow from other fragments and of its
    /// plans, of which those like `root`, if there is one, come first. While no attempt has worked, a plan that fails is better than
    /// none: the error then says why it fails.
    pub(crate) fn place_next(
        &mut self,
        state: &State,
        storage: usize,
        root: Option<Way>,
        may_plan: bool,
    ) -> Option<State> {
        let mut best: Best = None;
        for (map, why) in self.followers(state, storage) {
            let mut next = state.clone();
            next.set(storage, map, why);
            self.consider(state, next, vec![storage], &mut best);
        }
        if may_plan {
            self.consider_plans(state, storage, root, &mut best);
        }
        let best = best.map(|(_, state)| state);
        if self.has_found() { best } else { best.or_else(|| self.first_plan(state, storage)) }
    }

    /// Maps that put the elements of a storage on the threads that use them, in nests whose steps follow from other
    /// fragments.
    fn followers(&mut self, state: &State, storage: usize) -> Vec<(MapId, Why)> {
        let scene = self.scene;
        let mut followers: Vec<(MapId, Why)> = Vec::new();
        for item in &scene.users[storage] {
            let Some(work) = scene.work(*item) else { continue };
            for (steps, parent) in self.steps(state, storage, work) {
                for touch in work.touches.iter().filter(|touch| touch.storage == storage) {
                    let used = self.tables.complete(steps, touch.pattern);
                    let map = self.tables.filled(used);
                    let rule = if map == used {
                        "each element is on the threads that use it"
                    } else {
                        "each element that is used is on the threads that use it"
                    };
                    let span = work.nest.span;
                    let why = Why { pass: Pass::Free, rule, item: *item, span, parent };
                    if followers.len() < FOLLOWERS && followers.iter().all(|(known, _)| *known != map) {
                        followers.push((map, why));
                    }
                }
            }
        }
        followers
    }

    /// The steps of a nest that follow from known fragments, or would if it followed one of them, unless they are sure
    /// to cost too much.
    fn steps(&mut self, state: &State, storage: usize, work: &Work) -> Vec<(MapId, Option<usize>)> {
        let mut found = Vec::new();
        if let Some(follows) = work.steps_that_follow(self.tables, state) {
            found.push(follows);
        } else {
            for touch in &work.touches {
                let Some(map) = state.map(touch.storage) else { continue };
                let many = self.tables.most_steps_from(map, touch.pattern);
                let registers = of_registers(many, self.scene.storages[storage].bytes);
                if (many as u64).saturating_add(registers) < self.limit() {
                    let steps = self.tables.steps_from(map, touch.pattern);
                    found.push((self.tables.once(steps), Some(touch.storage)));
                    found.push((steps, Some(touch.storage)));
                }
            }
        }
        found.retain(|(steps, _)| self.tables.facts(*steps).is_whole);
        found
    }

    fn consider_plans(&mut self, state: &State, storage: usize, root: Option<Way>, best: &mut Best) {
        let plans = self.plans_of(storage);
        let like = plans.iter().filter(|plan| root.is_some_and(|root| plan.way.is_like(root)));
        let mut left = PLANS;
        for plan in like.chain(&plans) {
            let is_whole = matches!(plan.way, Way::Whole(_));
            let is_too_dear = best.as_ref().is_some_and(|(cost, _)| plan.least >= *cost);
            if is_too_dear || is_whole && best.is_some() || !is_whole && left == 0 {
                continue;
            }
            left -= usize::from(!is_whole);
            let mut next = state.clone();
            let chosen = self.scene.follow(self.tables, plan.way, &mut next);
            if next.map(storage).is_some() {
                self.consider(state, next, chosen, best);
            }
        }
    }

    /// The state of the first plan that gives a storage a map, whether or not the plan works.
    fn first_plan(&mut self, state: &State, storage: usize) -> Option<State> {
        for plan in self.plans_of(storage) {
            let mut next = state.clone();
            let chosen = self.scene.follow(self.tables, plan.way, &mut next);
            if next.map(storage).is_some() {
                let users = self.scene.users_of(&chosen);
                self.scene.propagate(self.tables, &mut next, users, u64::MAX, &mut Vec::new());
                return Some(next);
            }
        }
        None
    }

    /// Derives what follows from the storages that were chosen, and keeps it if it costs the least: its registers, and
    /// the ops whose fragments are all known.
    fn consider(&mut self, state: &State, mut next: State, chosen: Vec<usize>, best: &mut Best) {
        let limit = best.as_ref().map_or(self.limit(), |(cost, _)| self.limit().min(*cost));
        let (users, mut changed) = (self.scene.users_of(&chosen), chosen);
        if !self.scene.propagate(self.tables, &mut next, users, limit, &mut changed) {
            return;
        }
        changed.sort_unstable();
        changed.dedup();
        let mut cost = 0;
        for storage in &changed {
            let registers = |map| self.scene.registers(self.tables, *storage, map);
            let (before, after) = (state.map(*storage).map_or(0, registers), next.map(*storage).map_or(0, registers));
            cost += after.saturating_sub(before);
        }
        for item in self.scene.users_of(&changed) {
            let is_known = self.scene.items[item].storages.iter().all(|storage| next.map(*storage).is_some());
            if is_known {
                let Some(settlement) = self.scene.settle(self.tables, &next, item, limit) else { return };
                cost += settlement.cost.total();
            }
        }
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            *best = Some((cost, next));
        }
    }
}
