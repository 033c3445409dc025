//! Which thread does which iteration of a nest, in which step.

use tilewright_layout::map::{Map, Owners};

use crate::known::Known;
use crate::nest::{Nest, Touch};

/// What stands against a choice: the first thing that it violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The op.
    pub op: String,
    /// What is wrong, in words.
    pub what: String,
}

impl Nest {
    fn violation(&self, what: String) -> Violation {
        Violation { op: self.title.clone(), what }
    }

    /// The iterations that a thread does where it has what they touch: the steps follow the slots of `map`. An iteration
    /// that touches several granules is done where all of them are.
    pub(crate) fn steps_from(&self, touch: &Touch, map: &Map, owners: &Owners) -> Map {
        let mut visits: Vec<Vec<usize>> = vec![Vec::new(); map.elements()];
        for iteration in 0..self.iterations() {
            if let Some(first) = touch.of(iteration).next() {
                visits[first].push(iteration);
            }
        }
        let most = visits.iter().map(Vec::len).max().unwrap_or(0);
        let at = |thread: usize, step: usize| {
            let granule = map.at(thread, step / most.max(1))?;
            let iteration = *visits[granule].get(step % most.max(1))?;
            touch.of(iteration).all(|granule| owners.has(granule, thread)).then_some(iteration)
        };
        Map::of_slots(map.threads(), self.iterations(), at, map.slots() * most).without_empty_slots()
    }

    /// Where a fragment is if it is where it is touched.
    pub(crate) fn complete(&self, touch: &Touch, steps: &Map, granules: usize) -> Map {
        let to = |iteration: usize, trip: usize| match touch.granules[iteration * touch.trips + trip] {
            crate::nest::NOWHERE => None,
            granule => Some(granule as usize),
        };
        steps.through_trips(granules, touch.trips, &to)
    }

    /// The iterations' threads, if every fragment that is touched is known: reads only where the element is, writes
    /// exactly where it is.
    pub(crate) fn check(&self, steps: &Map, known: &Known) -> Result<(), Violation> {
        if let Some(iteration) = steps.missing() {
            return Err(self.violation(format!("no thread can do iteration {iteration}")));
        }
        let executors = steps.owners();
        for touch in &self.touches {
            let Some(fixed) = known.get(touch.storage) else { continue };
            for iteration in 0..self.iterations() {
                let threads = executors.of(iteration);
                for granule in touch.of(iteration) {
                    let owners = fixed.owners.of(granule);
                    let is_right = match touch.writes {
                        true => threads == owners,
                        false => threads.iter().all(|thread| owners.binary_search(thread).is_ok()),
                    };
                    if !is_right {
                        let verb = if touch.writes { "writes" } else { "reads" };
                        return Err(self.violation(format!(
                            "iteration {iteration} on {} {verb} `{}`, element {granule} of it is on {}",
                            threads_title(threads),
                            touch.title,
                            threads_title(owners)
                        )));
                    }
                }
            }
        }
        Ok(())
    }
}

/// `thread 3`, or `threads 0, 1, 2, ... (16)`.
fn threads_title(threads: &[u32]) -> String {
    let listed: Vec<String> = threads.iter().take(4).map(u32::to_string).collect();
    match threads.len() {
        0 => "no thread".to_string(),
        1 => format!("thread {}", listed[0]),
        2..=4 => format!("threads {}", listed.join(", ")),
        count => format!("threads {}, ... ({count})", listed.join(", ")),
    }
}
