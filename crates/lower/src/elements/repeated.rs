//! Long nests as loops. Where every step of a nest has indices of its own, its statements do not roll up. But if the
//! iterations are dealt out to the threads in turn, the number of an iteration is linear in the turn, and its indices are
//! digits of that number.

use tilewright_expr::linear::normalize;
use tilewright_expr::points::extent;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Stmt, Unroll};
use tilewright_ir::tile::{ElementStmt, Kernel, Space};
use tilewright_layout::map::Map;

use super::lowering::written_out;
use super::nest::Nest;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::roll::rolled_length;

/// A nest of fewer turns is written out. So is a longer one, if that many turns roll up well.
const FEWEST: usize = 32;
/// Turns roll up well if they are no longer than this many that do not.
const LONGEST: usize = 8;

/// Lowers a nest, as a loop if it is shorter that way.
pub(super) fn lowered(kernel: &Kernel, builder: &mut Builder, nest: &Nest) -> Result<Vec<Stmt>, Refusal> {
    let mark = builder.mark();
    if let Some(repeated) = Repeated::of(kernel, builder, nest) {
        let is_better = !rolls_up(kernel, builder, nest, repeated.adjacent);
        if is_better && let Ok(body) = repeated.lower(kernel, builder) {
            return Ok(body);
        }
    }
    builder.rewind(mark);
    written_out(kernel, builder, nest)
}

/// Whether the first turns of a nest, written out, roll up well.
fn rolls_up(kernel: &Kernel, builder: &mut Builder, nest: &Nest, adjacent: usize) -> bool {
    let mut length = |turns: usize| {
        let mark = builder.mark();
        let body = written_out(kernel, builder, &nest.of_steps(0..turns * adjacent));
        let length = body.map(|body| rolled_length(builder, body));
        builder.rewind(mark);
        length
    };
    match (length(1), length(FEWEST)) {
        (Ok(one), Ok(several)) => several <= LONGEST * one,
        // Written out, the nest is refused with the reason.
        _ => true,
    }
}

/// A nest as a loop over turns: in each, every thread executes a group of adjacent iterations.
struct Repeated {
    /// Iterations of a group.
    adjacent: usize,
    /// The turn, of those in which every thread takes part.
    turn: Var,
    /// The number of the thread's group.
    group: Var,
    /// This number, in terms of turn and thread.
    number: Expr,
    /// The iterations of one turn.
    inside: Nest,
    /// The iterations after the last whole turn.
    rest: Nest,
}

impl Repeated {
    /// The nest as a loop; `None` if it is short, has registers, which have no addresses, or deals its iterations out in
    /// another way.
    fn of(kernel: &Kernel, builder: &mut Builder, nest: &Nest) -> Option<Repeated> {
        let (threads, adjacent) = (nest.steps.threads(), adjacent(&nest.steps)?);
        let turns = nest.steps.elements() / (threads * adjacent);
        if turns < FEWEST || uses_fragments(kernel, nest) {
            return None;
        }
        let turn = Var::new(builder.fresh("turn"), 0, turns as i64 - 1);
        let group = Var::new(builder.fresh("at"), 0, (turns * threads) as i64 - 1);
        let digits = Digits::of(&nest.vars, adjacent as i64, &group)?;
        let index = |var: &Var| nest.vars.iter().position(|known| known == var).map(|at| digits.indices[at].clone());
        let in_digits = |element: &ElementStmt| element.map_exprs(&|expr| normalize(&expr.substitute(&index)));
        let body = nest.body.iter().map(in_digits).collect();
        let thread = Var::new(builder.fresh("thread"), 0, threads as i64 - 1);
        let vars = std::iter::once(thread).chain(digits.inner).collect();
        let at = |thread: usize, slot: usize| Some(thread * adjacent + slot);
        let steps = Map::of_slots(threads, threads * adjacent, at, adjacent);
        Some(Repeated {
            adjacent,
            number: Expr::var(&turn) * threads as i64 + Expr::var(&kernel.thread()),
            turn,
            group,
            inside: Nest { vars, body, steps, vector: nest.vector },
            rest: nest.of_steps(turns * adjacent..nest.steps.slots()),
        })
    }

    fn lower(self, kernel: &Kernel, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let mut body = vec![Stmt::Let { var: self.group, value: self.number }];
        body.extend(written_out(kernel, builder, &self.inside)?);
        let repeated = Stmt::For { var: self.turn, unroll: Unroll::Full, body };
        let rest = written_out(kernel, builder, &self.rest)?;
        Ok(std::iter::once(repeated).chain(rest).collect())
    }
}

/// How many adjacent iterations a thread executes in a row, if the threads take turns with as many each.
fn adjacent(steps: &Map) -> Option<usize> {
    let in_a_row = |slot: &usize| steps.at(0, *slot) == Some(*slot);
    let adjacent = (0..steps.slots()).take_while(in_a_row).count().max(1);
    let expected =
        |thread: usize, slot: usize| (slot / adjacent * steps.threads() + thread) * adjacent + slot % adjacent;
    let is_expected = |(thread, slot, iteration): (usize, usize, usize)| iteration == expected(thread, slot);
    let is_complete = steps.entries().count() == steps.elements();
    (is_complete && steps.entries().all(is_expected)).then_some(adjacent)
}

fn uses_fragments(kernel: &Kernel, nest: &Nest) -> bool {
    let mut found = false;
    for element in &nest.body {
        element.for_each_access(&mut |access, _| found |= kernel.buffers[access.buffer].space == Space::Fragment);
    }
    found
}

/// The variables of a nest as digits of the number of a group of adjacent iterations and of the place in the group.
struct Digits {
    /// Each variable of the nest.
    indices: Vec<Expr>,
    /// The digits of the place in the group, outermost first.
    inner: Vec<Var>,
}

impl Digits {
    /// `None` if a group ends inside the range of a variable that it does not divide.
    fn of(vars: &[Var], adjacent: i64, group: &Var) -> Option<Digits> {
        let (mut left, mut stride) = (adjacent, 1);
        let (mut indices, mut inner) = (Vec::new(), Vec::new());
        for (at, var) in vars.iter().enumerate().rev() {
            let extent = extent(var) as i64;
            let within = if left % extent == 0 { extent } else { left };
            if extent % within != 0 {
                return None;
            }
            left /= within;
            let digit = Expr::var(group) / stride;
            let digit = if at == 0 { digit } else { digit % (extent / within) };
            stride *= extent / within;
            let place = Var::new(var.name(), 0, within - 1);
            indices.push(digit * within + Expr::var(&place));
            inner.push(place);
        }
        indices.reverse();
        inner.reverse();
        Some(Digits { indices, inner })
    }
}

#[cfg(test)]
mod tests;
