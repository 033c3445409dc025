//! Long nests as loops. Where every step of a nest has indices of its own, its statements do not roll up. But if the
//! iterations are dealt out to the threads in turn, the number of an iteration is linear in the turn, and its indices are
//! digits of that number.

use num_integer::Integer;
use tilewright_expr::linear::normalize;
use tilewright_expr::points::{Splits, extent};
use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::thread::{Stmt, TURN, Unroll};
use tilewright_ir::tile::vectors::Movable;
use tilewright_ir::tile::{Bound, Kernel, Space};
use tilewright_layout::map::{Map, NONE};

use super::lowering::written_out;
use super::nest::Nest;
use crate::builder::Builder;
use crate::refusal::Refusal;
use crate::roll::rolled_length;

/// A nest of fewer turns is written out.
const FEWEST: usize = 4;
/// Written out and rolled up, a nest may be as long as this many turns, or have this many statements; a longer one becomes
/// a loop.
const LONGEST: (usize, usize) = (8, 128);
/// That is first decided for this many turns, then for `GROWTH` times as many, and at last for all.
const FIRST: usize = 32;
const GROWTH: usize = 8;

/// Lowers a nest, as a loop if it does not roll up.
pub(super) fn lowered(kernel: &Kernel, builder: &mut Builder, nest: &Nest) -> Result<Vec<Stmt>, Refusal> {
    let turns = Turns::of(&nest.steps, || group_in_block(kernel, nest));
    let Some(turns) = turns.filter(|turns| turns.whole >= FEWEST && !uses_fragments(kernel, nest)) else {
        return written_out(kernel, builder, nest);
    };
    let mark = builder.mark();
    if let Some(body) = rolled_up(kernel, builder, nest, turns) {
        return Ok(body);
    }
    builder.rewind(mark);
    let mark = builder.mark();
    let repeated = Repeated::of(kernel, builder, nest, turns).map(|repeated| repeated.lower(kernel, builder));
    if let Some(Ok(body)) = repeated {
        return Ok(body);
    }
    builder.rewind(mark);
    written_out(kernel, builder, nest)
}

/// The nest written out, if it rolls up well.
fn rolled_up(kernel: &Kernel, builder: &mut Builder, nest: &Nest, turns: Turns) -> Option<Vec<Stmt>> {
    let mut lowered = |nest: &Nest, is_trial: bool| {
        let mark = builder.mark();
        let body = written_out(kernel, builder, nest).ok();
        let length = body.as_ref().map(|body| rolled_length(builder, body.clone()));
        if is_trial {
            builder.rewind(mark);
        }
        body.zip(length)
    };
    let mut first = |count: usize| Some(lowered(&nest.of_steps(0..count * turns.adjacent), true)?.1);
    let (of_turns, of_statements) = LONGEST;
    let longest = of_statements.max(of_turns * first(1)?);
    let trials = std::iter::successors(Some(FIRST), |count| Some(count * GROWTH));
    for count in trials.take_while(|count| *count < turns.whole) {
        if first(count)? > longest {
            return None;
        }
    }
    let (body, length) = lowered(nest, false)?;
    (length <= longest).then_some(body)
}

/// The most iterations of a group in a block of adjacent ones.
const LONGEST_GROUP: usize = 512;

/// A nest as a loop over turns: in each, every thread executes a group of adjacent iterations.
struct Repeated {
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
    /// `None` if a group of iterations ends inside the range of a variable that it does not divide.
    fn of(kernel: &Kernel, builder: &mut Builder, nest: &Nest, turns: Turns) -> Option<Repeated> {
        let (threads, adjacent) = (nest.steps.threads(), turns.adjacent);
        let turn = Var::new(builder.fresh(TURN), 0, turns.whole as i64 - 1);
        let most = (turns.whole - 1) * turns.of_turn + (threads - 1) * turns.of_thread;
        let group = Var::new(builder.fresh("at"), 0, most as i64);
        let digits = Digits::of(&nest.vars, adjacent as i64, &group)?;
        let index = |var: &Var| nest.vars.iter().position(|known| known == var).map(|at| digits.indices[at].clone());
        let in_digits = |expr: &Expr| normalize(&expr.substitute(&index));
        let body = nest.body.iter().map(|element| element.map_exprs(&in_digits)).collect();
        let bound = |bound: &Bound| Bound { index: in_digits(&bound.index), extent: bound.extent.clone() };
        let thread = Var::new(builder.fresh("thread"), 0, threads as i64 - 1);
        let vars = std::iter::once(thread).chain(digits.inner).collect();
        let at = |thread: usize, slot: usize| Some(thread * adjacent + slot);
        let steps = Map::of_slots(threads, threads * adjacent, at, adjacent);
        let of_thread = Expr::var(&kernel.thread()) * turns.of_thread as i64;
        Some(Repeated {
            number: normalize(&(Expr::var(&turn) * turns.of_turn as i64 + of_thread)),
            turn,
            group,
            inside: Nest { vars, body, steps, vector: nest.vector, inside: nest.inside.iter().map(bound).collect() },
            rest: nest.of_steps(turns.whole * adjacent..nest.steps.slots()),
        })
    }

    fn lower(self, kernel: &Kernel, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
        let mut body = vec![Stmt::Let { var: self.group, value: self.number }];
        body.extend(written_out(kernel, builder, &self.inside)?);
        let repeated = Stmt::For { counter: Counter::of(self.turn), unroll: Unroll::Full, body };
        let rest = written_out(kernel, builder, &self.rest)?;
        Ok(std::iter::once(repeated).chain(rest).collect())
    }
}

/// How the iterations of a nest are dealt out: a thread executes a group of `adjacent` iterations in each turn, and the
/// number of the group is `turn * of_turn + thread * of_thread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    adjacent: usize,
    of_turn: usize,
    of_thread: usize,
    /// The turns from the first one on in which every thread takes part.
    whole: usize,
}

impl Turns {
    /// `None` if the iterations are dealt out in another way, or some to several threads. If all iterations of a thread are
    /// adjacent, groups are as large as `in_block` says.
    fn of(steps: &Map, in_block: impl FnOnce() -> Option<usize>) -> Option<Turns> {
        let first = steps.at(0, 0)?;
        let in_a_row = |slot: &usize| steps.at(0, *slot) == Some(first + slot);
        let row = (0..steps.slots()).take_while(in_a_row).count();
        let adjacent = if row < steps.slots() { row } else { in_block().filter(|group| row.is_multiple_of(*group))? };
        let group = |thread: usize, slot: usize| Some(steps.at(thread, slot)? / adjacent);
        let of_turn = group(0, adjacent)?;
        let of_thread = if steps.threads() > 1 { group(1, 0)? } else { 0 };
        let number =
            |thread: usize, slot: usize| (slot / adjacent * of_turn + thread * of_thread) * adjacent + slot % adjacent;
        let is_expected = |(thread, slot, iteration): (usize, usize, usize)| iteration == number(thread, slot);
        let is_once = steps.entries().count() == steps.elements();
        let is_full = |slot: &usize| steps.column(*slot).iter().all(|held| *held != NONE);
        let whole = (0..steps.slots()).take_while(is_full).count() / adjacent;
        (is_once && steps.entries().all(is_expected)).then_some(Turns { adjacent, of_turn, of_thread, whole })
    }
}

/// The iterations of a group in a block of adjacent ones: as many as accesses may combine, or, if these are in two rows,
/// as many rows as end where combined accesses do. `None` if these are long.
fn group_in_block(kernel: &Kernel, nest: &Nest) -> Option<usize> {
    let innermost = nest.vars.last().map_or(1, extent);
    let movable = Movable::of(kernel, &nest.body, &mut Splits::by(&nest.vars));
    let group = movable.together(kernel, nest.vector);
    let rows = if innermost.is_multiple_of(group) { group } else { group.lcm(&innermost) };
    Some(rows).filter(|rows| *rows <= LONGEST_GROUP)
}

/// Registers have no addresses, so their indices have to be written out.
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
