//! Checks parallel operations: compares the threads that execute an iteration with the owners of the elements that it
//! accesses.

use super::accesses::{Kind, accesses};
use super::assignment::LoopPlacement;
use super::boxes::{points, size};
use super::fault::{Fault, Iteration, Mismatch};
use super::judge::{Judge, within};
use super::program::Parallel;
use super::walk::Env;

/// An element of a fragment that an iteration reads or writes.
struct Touched<'a> {
    kind: Kind,
    buffer: &'a str,
    element: usize,
    owners: &'a [i64],
}

impl<'a> Judge<'a> {
    pub(crate) fn parallel(&mut self, nest: &'a Parallel, settings: Vec<Env<'a>>) {
        let given = self.assignment.loops.get(self.nests);
        self.nests += 1;
        if let Some(given) = given {
            if !is_of(given, nest) {
                self.report.add(Fault::WrongLoop { op: self.op() });
                return;
            }
            self.executors(given);
        }
        for mut env in settings {
            for (number, at) in points(&nest.extents).enumerate() {
                let touched = self.touched(nest, &mut env, &at);
                let iteration = Iteration { op: self.op(), at };
                match given.and_then(|given| given.executors.get(number)) {
                    Some(executors) => self.executed(&iteration, executors, &touched),
                    None => self.derived(&iteration, &touched),
                }
            }
        }
    }

    /// Checks that every iteration is executed, on threads of the block.
    fn executors(&mut self, given: &LoopPlacement) {
        for (at, executors) in points(&given.extents).zip(&given.executors) {
            let iteration = Iteration { op: self.op(), at };
            if executors.is_empty() {
                self.report.add(Fault::NotExecuted(iteration));
            } else if let Some(&thread) = executors.iter().find(|thread| !(0..self.program.threads).contains(*thread)) {
                self.report.add(Fault::ExecutorOutside { iteration, thread });
            }
        }
    }

    fn touched(&mut self, nest: &'a Parallel, env: &mut Env<'a>, at: &[i64]) -> Vec<Touched<'a>> {
        let depth = env.depth();
        for (var, value) in nest.vars.iter().zip(at) {
            env.bind(var, Some(*value));
        }
        let mut found = Vec::new();
        accesses(&nest.body, env, &mut found);
        env.back_to(depth);
        let mut touched = Vec::new();
        for access in found {
            let Some(held) = self.fragment(access.buffer) else { continue };
            for element in self.elements(&access) {
                if let Some(owners) = held.owners(element) {
                    touched.push(Touched { kind: access.kind, buffer: access.buffer, element, owners });
                }
            }
        }
        touched
    }

    /// Checks an iteration on these threads: they must own the elements that it reads, and be the owners of those it
    /// writes.
    fn executed(&mut self, iteration: &Iteration, executors: &[i64], touched: &[Touched<'a>]) {
        for Touched { kind, buffer, element, owners } in touched {
            let mismatch = || Mismatch {
                iteration: iteration.clone(),
                place: self.place(buffer, *element),
                executors: executors.to_vec(),
                owners: owners.to_vec(),
            };
            let fault = match kind {
                Kind::Load => (!within(executors, owners)).then(|| Fault::LoadElsewhere(mismatch())),
                Kind::Store | Kind::AtomicAdd => (executors != *owners).then(|| Fault::StoreElsewhere(mismatch())),
            };
            if let Some(fault) = fault {
                self.report.add(fault);
            }
        }
    }

    /// Checks an iteration without given threads: it runs on the owners of the elements it writes, or on any thread
    /// that owns all it reads.
    fn derived(&mut self, iteration: &Iteration, touched: &[Touched<'a>]) {
        if let Some(written) = touched.iter().find(|touched| touched.kind != Kind::Load) {
            return self.executed(iteration, written.owners, touched);
        }
        let Some((first, others)) = touched.split_first() else { return };
        let owns_all = |thread: &i64| others.iter().all(|other| other.owners.binary_search(thread).is_ok());
        if !first.owners.iter().any(owns_all) {
            self.report.add(Fault::NoReader(iteration.clone()));
        }
    }
}

fn is_of(given: &LoopPlacement, nest: &Parallel) -> bool {
    let ordered = |executors: &Vec<i64>| executors.is_sorted_by(|a, b| a < b);
    given.vars == nest.vars
        && given.extents == nest.extents
        && given.executors.len() as i64 == size(&nest.extents)
        && given.executors.iter().all(ordered)
}
