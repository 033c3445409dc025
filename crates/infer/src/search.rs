//! The free pass: for every connected component, plans are tried and the cheapest is kept.
//!
//! A plan shares one family of nests and fragments among the threads; what follows from it is derived, and the
//! fragments that remain without a map are placed one by one. Every plan has a lower bound on its cost: a plan that
//! cannot be cheaper than what was found, or that gives its fragments maps that were tried before, is skipped. The
//! number of plans that are tried is bounded, and so is the number of places of elements that they visit
//! ([`Tables::visit`]): a component has a share of those of the kernel, beyond which the search ends with what it found.
//! While nothing is found, a part of the share is kept for the last resorts, which are few and simple.

use crate::cost::{Cost, of_registers};
use crate::families::Family;
use crate::ids::MapId;
use crate::plans::{Plan, WHOLE, Way};
use crate::scene::Scene;
use crate::state::{State, Steps};
use crate::steps::Violation;
use crate::tables::Tables;

/// The maximum number of families whose plans are tried; the largest come first.
const FAMILIES: usize = 16;
/// The maximum number of plans that are tried: once one works, and while none does.
const ATTEMPTS: [usize; 2] = [32, 64];
/// Plans of a family that may fail while none works, before the next family is tried.
const FAILURES: usize = 8;
/// A plan is not tried if it can save no more than one part in `WORTHWHILE` of the cost that was found.
const WORTHWHILE: u64 = 16;

/// While nothing is found, one part in `KEPT` of the places that a component may visit is kept for the last resorts.
const KEPT: u64 = 8;

/// Layouts of a component, the steps of its nests, and what they cost.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) state: State,
    /// The steps of each nest.
    pub(crate) steps: Vec<Steps>,
    pub(crate) cost: Cost,
}

/// Why a component has no layouts.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The first conflict in the attempt that got furthest.
    pub(crate) violation: Violation,
    /// Whether the search ended because it may visit no more places.
    pub(crate) is_cut: bool,
}

/// The cheapest layouts of a component. Its plans visit at most about `share` places; where they find nothing, the last
/// resorts may visit all that the kernel has left.
pub(crate) fn best(scene: &Scene, tables: &mut Tables, share: u64) -> Result<Settled, Failure> {
    let mut start = scene.start();
    let everything = (0..scene.items.len()).collect();
    scene.propagate(tables, &mut start, everything, u64::MAX, &mut Vec::new());
    if scene.open(&start).is_some() {
        return Search::new(scene, tables, start).run(share);
    }
    let is_cut = tables.is_spent();
    let finished = scene.finish(tables, &start, u64::MAX);
    finished.map_err(|_| Failure { violation: scene.violation(tables, &start), is_cut })
}

impl Scene<'_> {
    /// Settles all ops. Error: how many could be settled; under a finite `limit` the count stops where the choice
    /// fails or reaches the limit.
    fn finish(&self, tables: &mut Tables, state: &State, limit: u64) -> Result<Settled, usize> {
        let mut settled = Settled { state: state.clone(), steps: Vec::new(), cost: Cost::default() };
        let mut done = 0;
        for item in 0..self.items.len() {
            let left = limit.saturating_sub(settled.cost.total());
            let settlement = self.settle(tables, state, item, left);
            if limit < u64::MAX && (settlement.is_none() || left == 0) {
                return Err(done);
            }
            if let Some(settlement) = settlement {
                done += 1;
                settled.cost += settlement.cost;
                settled.steps.extend(settlement.steps);
            }
        }
        for storage in 0..self.storages.len() {
            let map = state.map(storage).ok_or(done)?;
            settled.cost.registers += of_registers(tables.map(map).slots(), self.storages[storage].bytes);
        }
        let is_done = done == self.items.len() && settled.cost.total() < limit;
        if is_done { Ok(settled) } else { Err(done) }
    }
}

/// The search of a component.
pub(crate) struct Search<'a> {
    pub(crate) scene: &'a Scene<'a>,
    pub(crate) tables: &'a mut Tables,
    /// The state after the common pass, before any plan.
    start: State,
    families: Vec<Family>,
    /// The family of each storage.
    family_of: Vec<Option<usize>>,
    /// The plans of each family, the cheapest first.
    plans: Vec<Vec<Plan>>,
    /// The maps of all storages at the end of each attempt.
    tried: Vec<Vec<Option<MapId>>>,
    /// The cheapest choice so far.
    found: Option<Settled>,
    /// The way that led to `found`.
    taken: Option<Way>,
    /// While no choice works, the one that got furthest, with the number of ops that it settled.
    furthest: Option<(usize, State)>,
    /// Places that are kept for the last resorts.
    kept: u64,
    /// How many fragments may still be placed one by one; ignored while no choice works.
    placements: usize,
}

impl<'a> Search<'a> {
    fn new(scene: &'a Scene<'a>, tables: &'a mut Tables, start: State) -> Search<'a> {
        let (families, family_of) = scene.families(tables, &start);
        let plans = families.iter().map(|family| scene.plans(family)).collect();
        Search {
            scene,
            tables,
            start,
            families,
            family_of,
            plans,
            tried: Vec::new(),
            found: None,
            taken: None,
            furthest: None,
            kept: 0,
            placements: 2 * scene.items.len() + 32,
        }
    }

    fn run(mut self, share: u64) -> Result<Settled, Failure> {
        let of_others = self.tables.keep(share);
        self.kept = self.tables.keep(share - share / KEPT);
        self.try_plans();
        let are_plans_cut = self.tables.is_spent();
        self.tables.left += of_others + std::mem::take(&mut self.kept);
        if self.found.is_none() && !self.tables.is_spent() {
            self.try_followers();
        }
        if self.found.is_none() && !self.tables.is_spent() {
            self.try_whole();
        }
        if let Some(found) = self.found {
            return Ok(found);
        }
        let is_cut = are_plans_cut || self.tables.is_spent();
        let state = self.furthest.map_or(self.start, |(_, state)| state);
        Err(Failure { violation: self.scene.violation(self.tables, &state), is_cut })
    }

    fn try_plans(&mut self) {
        let least = |plans: &Vec<Plan>| plans.first().map_or(0, |plan| plan.least);
        let least_of_all: u64 = self.plans.iter().map(least).sum();
        for family in self.order() {
            let of_others = least_of_all - least(&self.plans[family]);
            self.try_family(family, of_others);
        }
        self.try_neighbouring_rows();
    }

    /// The families whose plans are tried, the largest first.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.families.len()).collect();
        order.sort_by_key(|family| std::cmp::Reverse(self.families[*family].size(self.scene)));
        order.truncate(FAMILIES);
        order
    }

    /// Tries the plans of a family; the other families cost at least `of_others`.
    fn try_family(&mut self, family: usize, of_others: u64) {
        let mut failures = 0;
        for at in 0..self.plans[family].len() {
            let Plan { way, least } = self.plans[family][at];
            let has_found = self.found.is_some();
            let is_over = self.tried.len() >= ATTEMPTS[usize::from(!has_found)] || self.tables.is_spent();
            if is_over || self.is_not_worthwhile(least + of_others) || !has_found && failures >= FAILURES {
                return;
            }
            if !self.attempt(way) {
                failures += 1;
            }
        }
    }

    fn is_not_worthwhile(&self, least: u64) -> bool {
        let limit = self.limit();
        limit < u64::MAX && least >= limit - limit / WORTHWHILE
    }

    /// The cost that another choice has to stay below.
    pub(crate) fn limit(&self) -> u64 {
        self.found.as_ref().map_or(u64::MAX, |found| found.cost.total())
    }

    pub(crate) fn has_found(&self) -> bool {
        self.found.is_some()
    }

    pub(crate) fn plans_of(&self, storage: usize) -> Vec<Plan> {
        self.family_of[storage].map_or_else(Vec::new, |family| self.plans[family].clone())
    }

    /// Tries a way. False if it fails.
    fn attempt(&mut self, way: Way) -> bool {
        let mut state = self.start.clone();
        let chosen = self.scene.follow(self.tables, way, &mut state);
        if chosen.is_empty() || self.is_tried(&chosen, &state) {
            return true;
        }
        let is_placed = self.place_all(Some(way), &chosen, &mut state);
        self.tried.push((0..self.scene.storages.len()).map(|storage| state.map(storage)).collect());
        let limit = self.limit();
        let works = is_placed && self.keep(state);
        if self.limit() < limit {
            self.taken = Some(way);
        }
        works
    }

    /// Tries what was taken with the rows of a thread next to each other: it then has neighbours of what there is one of
    /// for each row.
    fn try_neighbouring_rows(&mut self) {
        let way = self.taken.and_then(|way| self.scene.with_neighbouring_rows(way));
        if let Some(way) = way.filter(|_| !self.tables.is_spent()) {
            self.attempt(way);
        }
    }

    /// Whether an earlier attempt ended with the same maps of these storages.
    fn is_tried(&self, chosen: &[usize], state: &State) -> bool {
        self.tried.iter().any(|tried| chosen.iter().all(|storage| tried[*storage] == state.map(*storage)))
    }

    /// Derives what follows from the storages that were chosen, and places the rest one by one, the largest first.
    fn place_all(&mut self, way: Option<Way>, chosen: &[usize], state: &mut State) -> bool {
        let (users, limit) = (self.scene.users_of(chosen), self.limit());
        if !self.scene.propagate(self.tables, state, users, limit, &mut Vec::new()) {
            return false;
        }
        let granules = |storage: &usize| self.scene.storages[*storage].granules;
        let largest = chosen.iter().map(granules).max().unwrap_or(0);
        while let Some(storage) = self.scene.open(state) {
            if self.tables.is_spent() || self.has_found() && self.placements == 0 {
                return false;
            }
            self.placements = self.placements.saturating_sub(1);
            let may_plan = !self.has_found() || self.scene.storages[storage].granules <= largest;
            match self.place_next(state, storage, way, may_plan) {
                Some(next) => *state = next,
                None => return false,
            }
        }
        true
    }

    /// Keeps a choice if it is the cheapest so far. False if it does not work.
    fn keep(&mut self, state: State) -> bool {
        let limit = self.limit();
        match self.scene.finish(self.tables, &state, limit) {
            Ok(settled) => {
                self.found = Some(settled);
                self.tables.left += std::mem::take(&mut self.kept);
            }
            Err(done) if !self.has_found() => {
                if self.furthest.as_ref().is_none_or(|(most, _)| done > *most) {
                    self.furthest = Some((done, state));
                }
                return false;
            }
            Err(_) => {}
        }
        true
    }

    /// Without a plan: every fragment is placed by the nests whose steps are known, if there are some.
    fn try_followers(&mut self) {
        let mut state = self.start.clone();
        if self.place_all(None, &[], &mut state) {
            self.keep(state);
        }
    }

    /// The last resort: every fragment without a map is whole on every thread.
    fn try_whole(&mut self) {
        let mut state = self.start.clone();
        let open: Vec<usize> = (0..self.scene.storages.len()).filter(|at| state.map(*at).is_none()).collect();
        for storage in &open {
            let map = self.tables.replicated(self.scene.storages[*storage].granules);
            self.scene.choose(&mut state, *storage, map, WHOLE);
        }
        let users = self.scene.users_of(&open);
        self.scene.propagate(self.tables, &mut state, users, u64::MAX, &mut Vec::new());
        self.keep(state);
    }
}
