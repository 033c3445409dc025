//! What stands against a choice, in words and as data.

use crate::place::State;
use crate::scene::{Fold, Kind, Scene, Work};
use crate::steps::{Clash, Violation, first_wrong, threads_title};
use crate::tables::{MapId, Tables};

impl Scene<'_> {
    /// The first thing that a state violates.
    pub(crate) fn violation(&self, tables: &mut Tables, state: &State) -> Violation {
        let violation = (0..self.items.len()).find_map(|item| match &self.items[item].kind {
            _ if self.settle(tables, state, item, u64::MAX).is_some() => None,
            Kind::Nest(work) => Some(self.of_nest(tables, state, (item, work))),
            Kind::Reduce(fold) => self.of_reduction(tables, state, (item, fold)),
            Kind::Dictated => None,
        });
        violation.unwrap_or_else(|| self.said(0, "no fragment of it can be placed".to_string(), None))
    }

    fn said(&self, item: usize, what: String, clash: Option<Clash>) -> Violation {
        let node = self.items[item].node;
        Violation { op: node.title().to_string(), span: node.span(), what, clash }
    }

    fn of_nest(&self, tables: &mut Tables, state: &State, (item, work): (usize, &Work)) -> Violation {
        let nothing = "no thread has all that it touches".to_string();
        let Some(steps) = first_choice(tables, work, state) else { return self.said(item, nothing, None) };
        if let Some(iteration) = tables.map(steps).missing() {
            return self.said(item, format!("no thread can do iteration {iteration}"), None);
        }
        for (at, touch) in work.touches.iter().enumerate() {
            let Some(map) = state.map(touch.storage) else { continue };
            let (executors, owners) = (tables.owners(steps), tables.owners(map));
            let wrong = first_wrong(tables.pattern(touch.pattern), executors, touch.writes, owners);
            let Some((iteration, granule)) = wrong else { continue };
            let clash = Clash {
                span: work.nest.touches[at].span,
                fragment: self.storages[touch.storage].handle,
                element: granule,
                writes: touch.writes,
                executing: executors.of(iteration).to_vec(),
                owning: owners.of(granule).to_vec(),
            };
            let what = format!(
                "iteration {iteration} on {} {} `{}`, element {granule} of it is on {}",
                threads_title(&clash.executing),
                if touch.writes { "writes" } else { "reads" },
                work.nest.touches[at].title,
                threads_title(&clash.owning)
            );
            return self.said(item, what, Some(clash));
        }
        self.said(item, "it reads memory that it writes, and several threads do one iteration".to_string(), None)
    }

    fn of_reduction(&self, tables: &mut Tables, state: &State, (item, fold): (usize, &Fold)) -> Option<Violation> {
        let (source, result) = (state.map(fold.src)?, state.map(fold.dst)?);
        let (row, thread) = fold.first_wrong(tables, source, result)?;
        let rows = tables.complete(source, fold.pattern);
        let clash = Clash {
            span: self.items[item].node.span(),
            fragment: self.storages[fold.dst].handle,
            element: row,
            writes: true,
            executing: tables.owners(rows).of(row).to_vec(),
            owning: tables.owners(result).of(row).to_vec(),
        };
        let what = format!("result {row} is on thread {thread}, which has no part of its row");
        Some(self.said(item, what, Some(clash)))
    }
}

/// The steps that come to mind first: those that follow.
fn first_choice(tables: &mut Tables, work: &Work, state: &State) -> Option<MapId> {
    if (work.laid_out.is_some() || work.writes_fragments())
        && let Some((steps, _)) = work.steps_that_follow(tables, state)
    {
        return Some(steps);
    }
    let (pattern, map) = work.touches.iter().find_map(|touch| Some((touch.pattern, state.map(touch.storage)?)))?;
    let steps = tables.steps_from(map, pattern);
    Some(tables.once(steps))
}
