//! Why a choice of layouts fails, in words and as data.

use crate::ids::{MapId, PatternId};
use crate::scene::{Fold, Kind, Scene, Work};
use crate::state::State;
use crate::steps::{Clash, Violation, first_wrong, threads_title};
use crate::tables::Tables;

/// Why an op cannot be done with its fragments laid out as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A nest uses an element on other threads than those that have it.
    Clash(Clashing),
    /// No thread has all granules that one access of a fragment touches in an iteration.
    Apart { touch: usize, iteration: usize },
    /// No thread can do an iteration.
    Missing { iteration: usize },
    /// The nest reads memory that it writes, and several threads would do one iteration.
    Several,
    /// No known fragment determines the threads that do the nest.
    Nowhere,
    /// A result is on a thread that has no part of its row.
    Row { row: usize, thread: u32 },
}

/// A use of a fragment, and the first granule that is not on the threads that use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clashing {
    /// The index of the use among the touches of the nest.
    pub(crate) touch: usize,
    /// The steps of the nest.
    pub(crate) steps: MapId,
    /// The storage that the steps follow, if any.
    pub(crate) follows: Option<usize>,
    /// The iteration that uses the granule.
    pub(crate) iteration: usize,
    /// The granule, in the storage of the fragment.
    pub(crate) granule: usize,
}

impl Scene<'_> {
    /// The first conflict in a state.
    pub(crate) fn violation(&self, tables: &mut Tables, state: &State) -> Violation {
        match self.fault(tables, state) {
            Some((item, fault)) => self.told(tables, state, item, fault),
            None => self.said(0, "none of its fragments can be placed".to_string(), None),
        }
    }

    /// The first op that cannot be done, whatever becomes of fragments that have no map yet.
    pub(crate) fn fault(&self, tables: &mut Tables, state: &State) -> Option<(usize, Fault)> {
        (0..self.items.len()).find_map(|item| {
            if self.settle(tables, state, item, u64::MAX).is_some() {
                return None;
            }
            let fault = match &self.items[item].kind {
                Kind::Nest(work) => fault_of_nest(tables, work, state),
                Kind::Reduce(fold) => fault_of_reduction(tables, fold, state)?,
                Kind::Dictated => return None,
            };
            Some((item, fault))
        })
    }

    fn said(&self, item: usize, what: String, clash: Option<Clash>) -> Violation {
        let node = self.items[item].node;
        Violation { op: node.title().to_string(), span: node.span(), what, clash }
    }

    fn told(&self, tables: &mut Tables, state: &State, item: usize, fault: Fault) -> Violation {
        let (what, clash) = match fault {
            Fault::Clash(clashing) => match self.clash(tables, state, item, clashing) {
                Some((what, clash)) => (what, Some(clash)),
                None => ("an element is not on the threads that use it".to_string(), None),
            },
            Fault::Apart { iteration, .. } | Fault::Missing { iteration } => {
                (format!("no thread can do iteration {iteration}"), None)
            }
            Fault::Several => {
                ("it reads memory that it writes, and several threads do one iteration".to_string(), None)
            }
            Fault::Nowhere => ("no thread has everything that it touches".to_string(), None),
            Fault::Row { row, thread } => {
                let what = format!("result {row} is on thread {thread}, which has no part of its row");
                (what, self.clash_of_row(tables, state, item, row))
            }
        };
        self.said(item, what, clash)
    }

    fn clash(&self, tables: &Tables, state: &State, item: usize, clashing: Clashing) -> Option<(String, Clash)> {
        let Clashing { touch, steps, iteration, granule, .. } = clashing;
        let work = self.work(item)?;
        let (used, told) = (work.touches[touch], &work.nest.touches[touch]);
        let (executors, owners) = (tables.owners(steps), tables.owners(state.map(used.storage)?));
        let clash = Clash {
            span: told.span,
            fragment: self.storages[used.storage].handle,
            element: granule,
            writes: used.writes,
            executing: executors.of(iteration).to_vec(),
            owning: owners.of(granule).to_vec(),
        };
        let what = format!(
            "iteration {iteration} on {} {} `{}`, but element {granule} of the fragment is on {}",
            threads_title(&clash.executing),
            if used.writes { "writes" } else { "reads" },
            told.title,
            threads_title(&clash.owning)
        );
        Some((what, clash))
    }

    fn clash_of_row(&self, tables: &mut Tables, state: &State, item: usize, row: usize) -> Option<Clash> {
        let Kind::Reduce(fold) = &self.items[item].kind else { return None };
        let rows = tables.complete(state.map(fold.src)?, fold.pattern);
        Some(Clash {
            span: self.items[item].node.span(),
            fragment: self.storages[fold.dst].handle,
            element: row,
            writes: true,
            executing: tables.owners(rows).of(row).to_vec(),
            owning: tables.owners(state.map(fold.dst)?).of(row).to_vec(),
        })
    }
}

fn fault_of_nest(tables: &mut Tables, work: &Work, state: &State) -> Fault {
    for (at, touch) in work.touches.iter().enumerate() {
        let map = state.map(touch.storage);
        if let Some(iteration) = map.and_then(|map| first_apart(tables, touch.pattern, map)) {
            return Fault::Apart { touch: at, iteration };
        }
    }
    let Some((steps, follows)) = first_choice(tables, work, state) else { return Fault::Nowhere };
    if let Some(iteration) = tables.map(steps).missing() {
        return Fault::Missing { iteration };
    }
    for (at, touch) in work.touches.iter().enumerate() {
        let Some(map) = state.map(touch.storage) else { continue };
        let (executors, owners) = (tables.owners(steps), tables.owners(map));
        let wrong = first_wrong(tables.pattern(touch.pattern), executors, touch.writes, owners);
        if let Some((iteration, granule)) = wrong {
            return Fault::Clash(Clashing { touch: at, steps, follows, iteration, granule });
        }
    }
    Fault::Several
}

/// The first iteration with several granules that no thread has all of.
fn first_apart(tables: &Tables, pattern: PatternId, map: MapId) -> Option<usize> {
    let (pattern, owners) = (tables.pattern(pattern), tables.owners(map));
    if pattern.trips() == 1 {
        return None;
    }
    let lacks = |thread: &u32, iteration| pattern.of(iteration).any(|granule| !owners.has(granule, *thread as usize));
    (0..pattern.iterations()).find(|iteration| {
        let first = pattern.of(*iteration).next();
        first.is_some_and(|granule| owners.of(granule).iter().all(|thread| lacks(thread, *iteration)))
    })
}

fn fault_of_reduction(tables: &mut Tables, fold: &Fold, state: &State) -> Option<Fault> {
    let (row, thread) = fold.first_wrong(tables, state.map(fold.src)?, state.map(fold.dst)?)?;
    Some(Fault::Row { row, thread })
}

/// The steps that an error shows, those that follow or else those of the first known fragment, and that storage.
fn first_choice(tables: &mut Tables, work: &Work, state: &State) -> Option<(MapId, Option<usize>)> {
    if (work.laid_out.is_some() || work.writes_fragments())
        && let Some(follows) = work.steps_that_follow(tables, state)
    {
        return Some(follows);
    }
    let (touch, map) = work.touches.iter().find_map(|touch| Some((*touch, state.map(touch.storage)?)))?;
    let steps = tables.steps_from(map, touch.pattern);
    Some((tables.once(steps), Some(touch.storage)))
}
