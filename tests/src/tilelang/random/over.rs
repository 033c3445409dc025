//! The loops that a nest of a random program goes over.

use super::super::expr::Index;
use super::super::program::{Element, Op, Parallel};
use super::patterns::{LoopVar, Room, Serial};
use super::sketch::{NestSketch, Order, Pattern};

/// The variables of parallel loops.
const VARS: [&str; 3] = ["i", "j", "l"];

/// The loops of a nest.
pub(crate) struct Over {
    pub(crate) vars: Vec<LoopVar>,
    /// Of each dimension that the nest goes over, its loop.
    own: Vec<usize>,
}

impl Over {
    /// All elements of a shape.
    pub(crate) fn all(shape: &[i64]) -> Over {
        Over::extents(shape.to_vec(), (0..shape.len()).collect())
    }

    pub(crate) fn extents(extents: Vec<i64>, own: Vec<usize>) -> Over {
        let var = |(name, extent): (&str, i64)| LoopVar { name: name.to_string(), extent };
        Over { vars: VARS.into_iter().zip(extents).map(var).collect(), own }
    }

    pub(crate) fn of(nest: &NestSketch, shape: &[i64]) -> Over {
        let mut extents: Vec<i64> = shape.iter().zip(nest.cut).map(|(extent, cut)| (extent - cut).max(1)).collect();
        let mut own: Vec<usize> = (0..extents.len()).collect();
        if nest.is_swapped {
            extents.reverse();
            own.reverse();
        }
        match nest.extra {
            Some(extra) if extra.is_first => {
                extents.insert(0, extra.extent);
                own.iter_mut().for_each(|at| *at += 1);
            }
            Some(extra) => extents.push(extra.extent),
            None => {}
        }
        Over::extents(extents, own)
    }

    /// The variable that belongs to a dimension, and the next one.
    pub(crate) fn var(&self, dimension: usize, is_turned: bool) -> (&LoopVar, &LoopVar) {
        let own = self.own.get(dimension).copied().unwrap_or(dimension);
        let (at, count) = (own + usize::from(is_turned), self.vars.len());
        (&self.vars[at % count], &self.vars[(at + 1) % count])
    }

    /// Indices of a buffer of this shape.
    pub(crate) fn indices(&self, patterns: &[Pattern; 2], shape: &[i64], serial: Serial) -> Vec<Index> {
        let index = |(dimension, extent): (usize, &i64)| {
            let pattern = patterns.get(dimension).copied().unwrap_or(Pattern::SAME);
            let (var, other) = self.var(dimension, pattern.is_turned);
            pattern.index(&Room { var, other, serial, extent: *extent, may_leave: false })
        };
        shape.iter().enumerate().map(index).collect()
    }

    /// Shape and indices of a tensor in global memory that has a dimension for some of the loops.
    pub(crate) fn tensor(&self, order: Order, patterns: &[Pattern; 2], serial: Serial) -> (Vec<i64>, Vec<Index>) {
        let count = self.vars.len();
        let loops: Vec<usize> = match order {
            Order::Same => (0..count).collect(),
            Order::Turned => (0..count).rev().collect(),
            Order::First => vec![0],
            Order::Last => vec![count - 1],
        };
        let dimension = |(dimension, at): (usize, usize)| {
            let pattern = patterns.get(dimension).copied().unwrap_or(Pattern::SAME);
            let (var, other) = (&self.vars[at], &self.vars[(at + 1) % count]);
            (var.extent, pattern.index(&Room { var, other, serial, extent: var.extent, may_leave: true }))
        };
        loops.into_iter().enumerate().map(dimension).unzip()
    }

    pub(crate) fn shape(&self) -> Vec<i64> {
        self.vars.iter().map(|var| var.extent).collect()
    }

    /// The loops around statements.
    pub(crate) fn parallel(&self, body: Vec<Element>) -> Op {
        Op::Parallel(self.nest(body))
    }

    pub(crate) fn nest(&self, body: Vec<Element>) -> Parallel {
        let vars = self.vars.iter().map(|var| var.name.clone()).collect();
        Parallel { vars, extents: self.shape(), body, loop_layout: None, coalesced_width: None }
    }
}
