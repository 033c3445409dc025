//! Which threads do a nest whose fragments are all known, why, and what that costs.

use tilewright_ir::tile::vectors::WIDEST;
use tilewright_layout::map::Spread;

use crate::cost::{Cost, least_of_steps};
use crate::ids::MapId;
use crate::known::{Pass, WRITTEN};
use crate::plans::spreads;
use crate::scene::{Fold, Kind, Scene, Use, Work};
use crate::state::{State, Steps, Why};
use crate::tables::Tables;

/// The rule of nests that a plan shared, or that touch no fragment.
const SHARED: &str = "shared among the threads";
/// The rule of nests that are done by the threads that have a fragment's elements.
const FOLLOWS: &str = "done by the threads that have what it touches";
/// The rule of nests that are done by the first thread that has a fragment's element.
const ONCE: &str = "done by the first thread that has what it reads";
/// The rule of other nests, which read elements that several threads have.
const CHEAPEST: &str = "shared among the threads that have what it reads, in the cheapest way";

/// How an op is done with its fragments laid out as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settlement {
    /// The steps, if the op is a nest.
    pub(crate) steps: Option<Steps>,
    pub(crate) cost: Cost,
}

impl Scene<'_> {
    /// The cheapest way to do an op; `None` if there is none, or only ones that are sure to cost `limit`.
    pub(crate) fn settle(&self, tables: &mut Tables, state: &State, item: usize, limit: u64) -> Option<Settlement> {
        match &self.items[item].kind {
            Kind::Nest(work) => {
                let Candidate { steps, cost, rule } = Choice::of(tables, work, state, item).cheapest(limit)?;
                let Rule { pass, words, parent } = rule.unwrap_or(work.shared());
                let why = Why { pass, rule: words, item, span: work.nest.span, parent };
                Some(Settlement { steps: Some(Steps { map: steps, why }), cost })
            }
            Kind::Reduce(fold) => {
                let (source, result) = (state.map(fold.src)?, state.map(fold.dst)?);
                let rows = tables.complete(source, fold.pattern);
                let mut cost =
                    tables.is_within(result, rows).then(|| tables.cost_of_reduction(source, fold.pattern))?;
                cost.steps *= fold.executions;
                cost.shuffles *= fold.exchanges;
                Some(Settlement { steps: None, cost })
            }
            Kind::Dictated => Some(Settlement { steps: None, cost: Cost::default() }),
        }
    }
}

impl Work<'_> {
    /// The greatest vector width of a nest, in elements: a power of two.
    pub(crate) fn widest(&self) -> usize {
        let most = self.moves.iter().map(|moves| moves.widest).max().unwrap_or(WIDEST / 4);
        let widest = self.nest.vector.unwrap_or(most).clamp(1, most.max(WIDEST));
        1 << widest.ilog2()
    }

    /// The vector widths of a nest that are tried, the widest first.
    pub(crate) fn widths(&self) -> Vec<usize> {
        if self.moves.is_empty() {
            return vec![self.widest(), 1];
        }
        std::iter::successors(Some(self.widest()), |width| (*width > 1).then_some(width / 2)).collect()
    }

    /// The rule of steps that follow from nothing.
    fn shared(&self) -> Rule {
        let words = if self.touches.is_empty() { SHARED } else { CHEAPEST };
        Rule { pass: Pass::Free, words, parent: None }
    }

    /// A lower bound on the cost of a nest that is shared in this way, dimension `along` the fastest, or else the last.
    pub(crate) fn least(&self, spread: &Spread, along: Option<usize>) -> u64 {
        let vector = if spread.group == 1 { usize::MAX } else { spread.vector };
        let along = along.unwrap_or(self.nest.extents.len().saturating_sub(1));
        least_of_steps(self, spread.slots(self.iterations), vector, along)
    }
}

/// What says that a nest is done in some steps.
#[derive(Clone, Copy, Debug)]
struct Rule {
    pass: Pass,
    words: &'static str,
    /// The storage that the steps follow.
    parent: Option<usize>,
}

/// Right steps, and what they cost.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    steps: MapId,
    cost: Cost,
    /// `None` if they were tried as one of many ways to share the nest.
    rule: Option<Rule>,
}

/// The steps of a nest that are tried, and the cheapest of those that are right.
struct Choice<'a> {
    tables: &'a mut Tables,
    work: &'a Work<'a>,
    state: &'a State,
    /// The steps that a plan chose.
    hint: Option<MapId>,
    /// The steps that follow from the layout of the loop or from a fragment, and why.
    follows: Option<(MapId, Rule)>,
    /// Steps that were considered.
    tried: Vec<MapId>,
    /// The cheapest right steps so far.
    best: Option<Candidate>,
}

impl<'a> Choice<'a> {
    fn of(tables: &'a mut Tables, work: &'a Work<'a>, state: &'a State, item: usize) -> Choice<'a> {
        let follows = work.steps_that_follow(tables, state).map(|(steps, parent)| {
            let parent = parent.map(|storage| state.origin(storage, item));
            let (pass, words) = if work.laid_out.is_some() { (Pass::Strict, WRITTEN) } else { (Pass::Common, FOLLOWS) };
            (steps, Rule { pass, words, parent })
        });
        Choice { tables, work, state, hint: state.hints[item], follows, tried: Vec::new(), best: None }
    }

    /// The cheapest right steps.
    fn cheapest(mut self, limit: u64) -> Option<Candidate> {
        self.consider_all(limit);
        self.best
    }

    fn consider_all(&mut self, limit: u64) {
        let work = self.work;
        if (work.laid_out.is_some() || work.writes_fragments())
            && let Some((steps, rule)) = self.follows
        {
            return self.consider(steps, Some(rule));
        }
        if self.is_forced(limit) {
            return;
        }
        if let Some(steps) = self.hint {
            self.consider(steps, None);
        }
        for spread in spreads(&work.nest.extents, &work.widths(), self.tables.threads()) {
            if work.least(&spread, None) < self.least() {
                let steps = self.tables.spread(work.iterations, spread);
                self.consider(steps, None);
            }
        }
        self.consider_followers();
    }

    /// Considers the steps that follow from a fragment whose elements are on one thread each. True if no other steps
    /// are possible, or if there are so many that they cost `limit`.
    fn is_forced(&mut self, limit: u64) -> bool {
        let work = self.work;
        for touch in &work.touches {
            let Some(map) = self.state.map(touch.storage) else { continue };
            if self.is_sole(touch, map) {
                if limit < u64::MAX && self.tables.most_steps_from(map, touch.pattern) as u64 >= limit {
                    return true;
                }
                let steps = self.tables.steps_from(map, touch.pattern);
                self.consider(steps, Some(Rule { pass: Pass::Common, words: FOLLOWS, parent: Some(touch.storage) }));
                return self.best.is_some() || self.tables.pattern(touch.pattern).is_total();
            }
        }
        false
    }

    /// Whether a use determines the thread of every iteration.
    fn is_sole(&self, touch: &Use, map: MapId) -> bool {
        self.tables.pattern(touch.pattern).trips() == 1 && self.tables.facts(map).is_sole
    }

    /// Considers the steps that follow from the fragments, unless there are far more of them than a thread's share.
    fn consider_followers(&mut self) {
        let work = self.work;
        let share = work.iterations.div_ceil(self.tables.threads()) as u64;
        for touch in &work.touches {
            let Some(map) = self.state.map(touch.storage) else { continue };
            let many = self.tables.most_steps_from(map, touch.pattern) as u64;
            if many > 4 * share && many / 4 >= self.least() {
                continue;
            }
            let steps = self.tables.steps_from(map, touch.pattern);
            let once = self.tables.once(steps);
            let parent = Some(touch.storage);
            if once != steps {
                self.consider(once, Some(Rule { pass: Pass::Free, words: ONCE, parent }));
            }
            let pass = if self.is_sole(touch, map) { Pass::Common } else { Pass::Free };
            self.consider(steps, Some(Rule { pass, words: FOLLOWS, parent }));
        }
    }

    /// The cost that other steps have to stay below.
    fn least(&self) -> u64 {
        self.best.map_or(u64::MAX, |best| best.cost.total())
    }

    /// Considers steps, and the rule that gives them. A rule says more than none, so steps that were tried without one
    /// get it.
    fn consider(&mut self, steps: MapId, rule: Option<Rule>) {
        let rule = self.first_rule(steps).or(rule);
        if self.tried.contains(&steps) {
            if let Some(best) = self.best.as_mut().filter(|best| best.steps == steps) {
                best.rule = best.rule.or(rule);
            }
            return;
        }
        self.tried.push(steps);
        if self.is_right(steps) {
            let cost = self.cost(steps);
            if cost.total() < self.least() {
                self.best = Some(Candidate { steps, cost, rule });
            }
        }
    }

    /// The rule of steps that several rules give: the plan's choice comes first, then what follows from a fragment.
    fn first_rule(&self, steps: MapId) -> Option<Rule> {
        let follows = self.follows.filter(|(follows, _)| *follows == steps).map(|(_, rule)| rule);
        let is_hint = self.hint == Some(steps) && self.work.laid_out.is_none();
        let shared = Rule { pass: Pass::Free, words: SHARED, parent: None };
        if is_hint { Some(shared) } else { follows }
    }

    fn is_right(&mut self, steps: MapId) -> bool {
        let facts = self.tables.facts(steps);
        let is_possible = facts.is_whole && (facts.is_sole || !self.work.nest.is_alone);
        is_possible
            && (facts.busiest as u64) < self.least()
            && self.work.touches.iter().all(|touch| match self.state.map(touch.storage) {
                Some(map) => self.tables.is_right(steps, touch.pattern, touch.writes, map),
                None => true,
            })
    }

    fn cost(&mut self, steps: MapId) -> Cost {
        let mut cost = self.tables.cost_of_nest(self.work, steps);
        for touch in &self.work.touches {
            if let Some(map) = self.state.map(touch.storage) {
                cost.selections +=
                    self.work.nest.executions * self.tables.cost_of_selections(steps, touch.pattern, map);
            }
        }
        cost
    }
}

impl Fold {
    /// The first result that a thread has without any part of its row, and that thread.
    pub(crate) fn first_wrong(&self, tables: &mut Tables, source: MapId, result: MapId) -> Option<(usize, u32)> {
        let rows = tables.complete(source, self.pattern);
        let (rows, owners) = (tables.owners(rows), tables.owners(result));
        let stray = |row: usize| {
            let thread = owners.of(row).iter().find(|thread| !rows.has(row, **thread as usize))?;
            Some((row, *thread))
        };
        (0..owners.elements()).find_map(stray)
    }
}
