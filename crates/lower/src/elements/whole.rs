//! Nests at the edges of tensors: where all of their accesses are inside, there are statements without guards.

use num_integer::Integer;
use tilewright_expr::points::{Split, Splits};
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Stmt};
use tilewright_ir::tile::{Bound, ElementStmt, Kernel, Space};

use super::nest::Nest;
use super::repeated;
use crate::builder::Builder;
use crate::conditions::{MANY_GUARDED, either, never_hold};
use crate::refusal::Refusal;

/// Lowers a nest, for which one condition decides where many accesses of a thread would be guarded.
pub(super) fn lowered(kernel: &Kernel, builder: &mut Builder, nest: &Nest) -> Result<Vec<Stmt>, Refusal> {
    let guarded = repeated::lowered(kernel, builder, nest)?;
    if guards(&guarded) < MANY_GUARDED {
        return Ok(guarded);
    }
    let edges = Edges::of(kernel, nest);
    let conditions = edges.conditions();
    if conditions.is_empty() || never_hold(&conditions) {
        return Ok(guarded);
    }
    let inside = repeated::lowered(kernel, builder, &Nest { inside: edges.bounds, ..nest.clone() })?;
    Ok(either(&conditions, inside, guarded))
}

/// How many branches a thread executes.
fn guards(body: &[Stmt]) -> i64 {
    let of = |stmt: &Stmt| match stmt {
        Stmt::If { body, .. } => guards(body).max(1),
        Stmt::For { counter, body, .. } => guards(body).saturating_mul(counter.assumed_trips()),
        _ => 0,
    };
    body.iter().map(of).fold(0, i64::saturating_add)
}

/// The indices of a nest that may be outside of their tensors.
#[derive(Default)]
struct Edges {
    bounds: Vec<Bound>,
    lines: Vec<Line>,
}

/// Indices of a dimension that are the same but for a number that depends on the iteration.
struct Line {
    /// What they have in common.
    other: Expr,
    /// The extent of the dimension.
    extent: Expr,
    /// The least and the greatest of the numbers.
    ends: [i64; 2],
}

impl Edges {
    fn of(kernel: &Kernel, nest: &Nest) -> Edges {
        let mut splits = Splits::by(&nest.vars);
        let mut counters = Vec::new();
        nest.body.iter().for_each(|element| counters_of(element, &mut counters));
        let mut edges = Edges::default();
        for element in &nest.body {
            element.for_each_access(&mut |access, _| {
                let buffer = &kernel.buffers[access.buffer];
                let index = access.known_index().filter(|_| matches!(buffer.space, Space::Global(_)));
                let bounds = index.map(|index| kernel.bounds(buffer, &index, &mut splits));
                bounds.into_iter().flatten().for_each(|bound| edges.add(bound, &counters, &mut splits));
            });
        }
        edges
    }

    /// Adds a bound, unless its index depends on a loop inside the nest.
    fn add(&mut self, bound: Bound, counters: &[Var], splits: &mut Splits<'_>) {
        let Some(Split { other, ends: Some(ends), .. }) = splits.of(&bound.index) else { return };
        if self.bounds.contains(&bound) || counters.iter().any(|var| other.mentions(var)) {
            return;
        }
        match self.lines.iter_mut().find(|line| line.other == other && line.extent == bound.extent) {
            Some(line) => line.ends = [line.ends[0].min(ends[0]), line.ends[1].max(ends[1])],
            None => self.lines.push(Line { other, extent: bound.extent.clone(), ends }),
        }
        self.bounds.push(bound);
    }

    /// Conditions that hold if all indices are inside, in all iterations.
    fn conditions(&self) -> Vec<Cond> {
        self.lines.iter().flat_map(Line::conditions).collect()
    }
}

impl Line {
    fn conditions(&self) -> Vec<Cond> {
        let Line { other, extent, ends: [least, most] } = self;
        let is_negative = other.range().lo.saturating_add(*least) < 0;
        let from_start = is_negative.then(|| Cond::Less(Expr::constant(-1 - least), other.clone()));
        // As for tiles, what is subtracted is subtracted from the extent.
        let multiple = other.multiple().gcd(&extent.multiple()).max(1);
        let to_end = Cond::Less(other.clone(), extent - most.div_euclid(multiple) * multiple);
        from_start.into_iter().chain([to_end]).collect()
    }
}

/// The variables of the loops inside a statement.
fn counters_of(element: &ElementStmt, counters: &mut Vec<Var>) {
    match element {
        ElementStmt::For { counter, body, .. } => {
            counters.push(counter.var.clone());
            body.iter().for_each(|inner| counters_of(inner, counters));
        }
        ElementStmt::If { then, otherwise, .. } => {
            then.iter().chain(otherwise).for_each(|inner| counters_of(inner, counters));
        }
        ElementStmt::Let { .. } | ElementStmt::Store { .. } | ElementStmt::Atomic(_) => {}
    }
}
