//! Checks an assignment by enumerating all elements and iterations, independently of the compiler.

use std::collections::BTreeMap;
use std::ops::Range;

use super::accesses::{Access, accesses, value_loads};
use super::assignment::{Assignment, nests};
use super::boxes::{position, size};
use super::fault::{At, Fault, Place, Report};
use super::judge_buffers::{Held, held};
use super::program::{Buffer, Op, Program, Scope};
use super::walk::{Env, Step, steps};

/// The faults of an assignment; at most a few of each kind per operation.
///
/// In a sound assignment, every element of a fragment is on threads of the block, each in a separate register, and
/// views are placed like the viewed elements. The executors of an iteration own all elements that it reads, and are
/// exactly the owners of those that it writes. Elements accessed by all threads are owned by all of them. A result of a
/// reduction is only on threads that hold some of the reduced elements, and a copy between fragments needs no other
/// thread. Without placements of loops, it is enough that suitable executors exist.
pub fn judge(program: &Program, assignment: &Assignment) -> Vec<Fault> {
    let mut report = Report::default();
    let held = held(program, assignment, &mut report);
    let mut judge = Judge { program, assignment, held: &held, nests: 0, report };
    judge.loops();
    for step in steps(program) {
        judge.step(&step);
    }
    judge.report.faults
}

/// The state of the judge.
pub(crate) struct Judge<'a> {
    pub(crate) program: &'a Program,
    pub(crate) assignment: &'a Assignment,
    /// The fragments that have a placement with their shape.
    held: &'a BTreeMap<&'a str, Held>,
    /// The number of parallel operations checked so far.
    pub(crate) nests: usize,
    pub(crate) report: Report,
}

impl<'a> Judge<'a> {
    fn loops(&mut self) {
        let (program, assigned) = (nests(&self.program.body).len(), self.assignment.loops.len());
        if assigned != 0 && assigned != program {
            self.report.add(Fault::WrongLoops { program, assigned });
        }
    }

    fn step(&mut self, step: &Step<'a>) {
        self.report.op = Some(step.number);
        let settings = step.settings();
        match step.op {
            Op::Parallel(nest) => self.parallel(nest, settings),
            Op::Loop(_) => {}
            Op::If { cond, .. } => self.each(&settings, |judge, env| {
                let mut found = Vec::new();
                value_loads(cond, env, &mut found);
                judge.floating(&found);
            }),
            Op::Scalar(body) => self.each(&settings, |judge, env| {
                let mut found = Vec::new();
                accesses(body, &mut env.clone(), &mut found);
                judge.floating(&found);
            }),
            Op::Copy { src, dst, .. } | Op::AtomicAdd { dst, src } => {
                self.each(&settings, |judge, env| judge.copy(src, dst, env));
            }
            Op::Fill { dst, .. } => self.each(&settings, |judge, env| judge.fill(dst, env)),
            Op::Reduce(reduce) => self.reduce(reduce),
            Op::Gemm(gemm) => self.gemm(gemm),
        }
    }

    fn each(&mut self, settings: &[Env<'a>], judge: impl Fn(&mut Self, &Env<'a>)) {
        settings.iter().for_each(|env| judge(self, env));
    }

    /// Accesses by all threads: every thread must own the elements.
    pub(crate) fn floating(&mut self, found: &[Access<'a>]) {
        for access in found {
            let Some(held) = self.fragment(access.buffer) else { continue };
            for element in self.elements(access) {
                let Some(owners) = held.owners(element) else { continue };
                if !owners.iter().copied().eq(0..self.program.threads) {
                    let place = self.place(access.buffer, element);
                    self.report.add(Fault::Floating { op: self.op(), place, owners: owners.to_vec() });
                }
            }
        }
    }

    /// The owners of a fragment's elements; `None` for other buffers, and, with a fault, for a fragment without a
    /// placement.
    pub(crate) fn fragment(&mut self, buffer: &str) -> Option<&'a Held> {
        if self.buffer(buffer)?.scope != Scope::Fragment {
            return None;
        }
        let held = self.held.get(buffer);
        if held.is_none() {
            self.report.add(Fault::NotPlaced(self.at(buffer)));
        }
        held
    }

    pub(crate) fn buffer(&mut self, name: &str) -> Option<&'a Buffer> {
        let buffer = self.program.buffer(name);
        if buffer.is_none() {
            self.report.add(Fault::UnknownBuffer(self.at(name)));
        }
        buffer
    }

    /// The elements that an access to a fragment may touch: one, or all if the index depends on data.
    pub(crate) fn elements(&mut self, access: &Access<'_>) -> Range<usize> {
        let Some(buffer) = self.buffer(access.buffer) else { return 0..0 };
        let known: Option<Vec<i64>> = access.index.iter().copied().collect();
        let found = match known {
            None if access.index.len() == buffer.shape.len() => usize::try_from(size(&buffer.shape)).ok().map(|n| 0..n),
            None => None,
            Some(index) => position(&index, &buffer.shape).map(|element| element..element + 1),
        };
        found.unwrap_or_else(|| {
            self.out_of_bounds(access.buffer, access.index.clone());
            0..0
        })
    }

    pub(crate) fn out_of_bounds(&mut self, buffer: &str, index: Vec<Option<i64>>) {
        self.report.add(Fault::OutOfBounds { op: self.op(), buffer: buffer.to_string(), index });
    }

    pub(crate) fn op(&self) -> usize {
        self.report.op.unwrap_or(0)
    }

    pub(crate) fn at(&self, buffer: &str) -> At {
        At { op: self.op(), buffer: buffer.to_string() }
    }

    pub(crate) fn place(&self, buffer: &str, element: usize) -> Place {
        Place::of(self.program, buffer, element)
    }
}

/// True where all of the first threads are among the second, which are in order.
pub(crate) fn within(some: &[i64], all: &[i64]) -> bool {
    some.iter().all(|thread| all.binary_search(thread).is_ok())
}
