//! A scan of rows in shared memory, each by one thread: for layouts in which the elements of a row follow no order of the
//! threads.

use std::collections::BTreeMap;

use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Cond, Inst, Memory, RegArray, Stmt, Unroll, Value};

use super::context::Context;
use super::make::{access, scratch};
use super::runs::Place;
use crate::builder::{Builder, regs};
use crate::combine::neutral;
use crate::conditions::under;
use crate::refusal::Refusal;
use crate::threads::by_threads;

/// By place, the position of the element in shared memory that each thread has there.
type Positions = BTreeMap<Place, Vec<Option<i64>>>;

/// Elements from one row to the next: odd, so that threads that go through rows side by side access different banks.
pub(super) fn pitch(context: &Context) -> usize {
    context.extent | 1
}

/// The statements: every element goes to shared memory, each row is combined there, and every thread takes its results.
pub(super) fn statements(context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
    let mut out = Vec::new();
    let memory = scratch(context, builder, "rows", context.dtype, context.rows * pitch(context));
    let held = builder.registers("held", context.dtype, 1, 1, &mut out);
    let mut stored = vec![false; context.rows * pitch(context)];
    for (place, mut positions) in positions(context, 0) {
        // Of several threads that hold an element, the first stores it.
        for position in &mut positions {
            *position = position.filter(|at| !std::mem::replace(&mut stored[*at as usize], true));
        }
        let from = regs(held, 0, 1);
        let load = Stmt::Assign { to: from.clone(), value: context.element(place) };
        access(context, builder, &positions, &mut out, |index| vec![load, Stmt::Store { memory, index, from }]);
    }
    out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
    rows(context, builder, (memory, held), &mut out)?;
    out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
    results(context, builder, (memory, held), &mut out)?;
    Ok(out)
}

/// The positions of the elements of each thread, `before` elements earlier in their rows.
fn positions(context: &Context, before: usize) -> Positions {
    let mut found = Positions::new();
    for (thread, runs) in context.runs.iter().enumerate() {
        for (run, (at, place)) in runs.iter().flat_map(|run| run.places.iter().enumerate().map(move |at| (run, at))) {
            let position = (run.start + at).checked_sub(before).map(|at| (run.row * pitch(context) + at) as i64);
            found.entry(*place).or_insert_with(|| vec![None; context.runs.len()])[thread] = position;
        }
    }
    found
}

/// The loops of the threads over their rows.
fn rows(
    context: &Context,
    builder: &mut Builder,
    (memory, held): (Handle<Memory>, Handle<RegArray>),
    out: &mut Vec<Stmt>,
) -> Result<(), Refusal> {
    let sum = builder.registers("sum", context.dtype, 1, 1, out);
    let (threads, rows) = (context.runs.len() as i64, context.rows as i64);
    let turn = Var::new(builder.fresh("turn"), 0, (rows - 1) / threads);
    let row = if rows > threads { context.thread.clone() + Expr::var(&turn) * threads } else { context.thread.clone() };
    let var = Var::new(builder.fresh("at"), 0, context.extent as i64 - 1);
    let index = row.clone() * pitch(context) as i64 + Expr::var(&var);
    let value = context.combined(Value::reg(sum, 0), Value::reg(held, 0));
    let body = vec![
        Stmt::Load { to: regs(held, 0, 1), memory, index: index.clone() },
        Stmt::Assign { to: regs(sum, 0, 1), value },
        Stmt::Store { memory, index, from: regs(sum, 0, 1) },
    ];
    let start = neutral(context.attributes.kind, context.dtype)?;
    let body = vec![
        Stmt::Set { to: regs(sum, 0, 1), value: start },
        Stmt::For { counter: Counter::of(var), unroll: Unroll::Auto, body },
    ];
    let body = under(&[Cond::Less(row, Expr::constant(rows))], body);
    match rows > threads {
        true => out.push(Stmt::For { counter: Counter::of(turn), unroll: Unroll::Auto, body }),
        false => out.extend(body),
    }
    Ok(())
}

/// Every thread takes the results of its elements.
fn results(
    context: &Context,
    builder: &mut Builder,
    (memory, held): (Handle<Memory>, Handle<RegArray>),
    out: &mut Vec<Stmt>,
) -> Result<(), Refusal> {
    let is_exclusive = context.attributes.is_exclusive;
    for (place, positions) in positions(context, usize::from(is_exclusive)) {
        let slot = place.result;
        let write = |value: Value| {
            let value = context.result.written(slot, value);
            Stmt::Assign { to: regs(context.result.array, slot.register, 1), value }
        };
        let result = write(context.rounded(Value::reg(held, 0)));
        let to = regs(held, 0, 1);
        access(context, builder, &positions, out, |index| vec![Stmt::Load { to, memory, index }, result]);
        if is_exclusive {
            let start = context.attributes.kind.start(context.of);
            let start = start.ok_or_else(|| Refusal::from(format!("no first result of {}", context.of)))?;
            let first: Vec<bool> = (0..context.runs.len()).map(|thread| is_first(context, thread, place)).collect();
            if first.contains(&true) {
                let body = vec![write(Value::Const(context.of, start))];
                by_threads(&first, |_| false, body, &context.thread, builder, out);
            }
        }
    }
    Ok(())
}

/// Whether the element of a thread at a place is the first of its row.
fn is_first(context: &Context, thread: usize, place: Place) -> bool {
    context.runs[thread].iter().any(|run| run.start == 0 && run.places.first() == Some(&place))
}
