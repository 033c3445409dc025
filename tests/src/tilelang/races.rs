//! Races: iterations of a parallel operation that write the same element. This is an error in the program, for any
//! layouts.

use std::collections::BTreeMap;
use std::fmt;

use super::accesses::{Kind, accesses};
use super::boxes::{point, points, position};
use super::fault::Place;
use super::program::{Op, Parallel, Program};
use super::storage::{Storage, storages};
use super::walk::{Env, steps};

/// Two iterations that write the same element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The number of the operation, counted as for faults.
    pub op: usize,
    /// The element.
    pub place: Place,
    /// The two iterations.
    pub iterations: [Vec<i64>; 2],
}

/// The races of a program, at most a few per operation. Atomic additions do not race; elements with data-dependent
/// indices are assumed to be distinct, and indices out of bounds to be guarded.
pub fn races(program: &Program) -> Vec<Race> {
    let storages = storages(program);
    let mut races = Vec::new();
    for step in steps(program) {
        let Op::Parallel(nest) = step.op else { continue };
        // Blocks and enclosing loops change the place of a write, but rarely whether iterations collide.
        let mut met = step.settings().into_iter().map(|env| meetings(program, nest, env, &storages));
        let first = met.find(|met| !met.is_empty()).unwrap_or_default();
        races.extend(first.into_iter().map(|(place, iterations)| Race { op: step.number, place, iterations }));
    }
    races
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.iterations;
        write!(f, "op {}: iterations {first:?} and {second:?} both write {}", self.op, self.place)
    }
}

/// A write of a unit of storage, ordered by the unit.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Write<'a> {
    root: &'a str,
    unit: i64,
    iteration: i64,
    buffer: &'a str,
    element: usize,
}

const MOST_OF_AN_OPERATION: usize = 8;

fn meetings<'a>(
    program: &'a Program,
    nest: &'a Parallel,
    env: Env<'a>,
    storages: &BTreeMap<&'a str, Storage<'a>>,
) -> Vec<(Place, [Vec<i64>; 2])> {
    let mut writes = writes(program, nest, env, storages);
    writes.sort_unstable();
    let pairs = writes.windows(2).filter_map(|pair| match pair {
        [one, other] if (one.root, one.unit) == (other.root, other.unit) && one.iteration != other.iteration => {
            let iterations = [one, other].map(|write| point(write.iteration, &nest.extents));
            Some((Place::of(program, one.buffer, one.element), iterations))
        }
        _ => None,
    });
    pairs.take(MOST_OF_AN_OPERATION).collect()
}

fn writes<'a>(
    program: &'a Program,
    nest: &'a Parallel,
    mut env: Env<'a>,
    storages: &BTreeMap<&'a str, Storage<'a>>,
) -> Vec<Write<'a>> {
    let (mut writes, mut found) = (Vec::new(), Vec::new());
    let depth = env.depth();
    for (iteration, at) in (0..).zip(points(&nest.extents)) {
        for (var, value) in nest.vars.iter().zip(&at) {
            env.bind(var, Some(*value));
        }
        accesses(&nest.body, &mut env, &mut found);
        env.back_to(depth);
        for access in found.drain(..).filter(|access| access.kind == Kind::Store) {
            let index: Option<Vec<i64>> = access.index.into_iter().collect();
            let (Some(index), Some(buffer)) = (index, program.buffer(access.buffer)) else { continue };
            let element = position(&index, &buffer.shape);
            let (Some(element), Some(storage)) = (element, storages.get(access.buffer)) else { continue };
            let first = element as i64 * storage.units;
            let write = |unit| Write { root: storage.root, unit, iteration, buffer: access.buffer, element };
            writes.extend((first..first + storage.units).map(write));
        }
    }
    writes
}
