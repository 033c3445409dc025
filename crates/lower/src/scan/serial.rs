//! A scan of rows in shared memory, each by one thread: for layouts in which the elements of a row follow no order of the
//! threads.

use std::collections::BTreeMap;

use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Cond, Inst, Memory, Stmt, Unroll};

use super::context::Context;
use super::runs::Place;
use super::writer::Writer;
use crate::builder::Builder;
use crate::conditions::under;
use crate::refusal::Refusal;
use crate::tuples::{Arrays, assigned, registers, values};

/// By place, the position of the element in shared memory that each thread has there.
type Positions = BTreeMap<Place, Vec<Option<i64>>>;

/// Elements from one row to the next: odd, so that threads that go through rows side by side access different banks.
pub(super) fn pitch(context: &Context) -> usize {
    context.extent | 1
}

/// The statements: every element goes to shared memory, each row is combined there, and every thread takes its results.
pub(super) fn statements(context: &Context, builder: &mut Builder) -> Result<Vec<Stmt>, Refusal> {
    let mut writer = Writer::new(context, builder);
    let memories = writer.scratch("rows", context.rows * pitch(context));
    let held = writer.arrays("held", 1);
    let mut stored = vec![false; context.rows * pitch(context)];
    for (place, mut positions) in positions(context, 0) {
        // Of several threads that hold an element, the first stores it.
        for position in &mut positions {
            *position = position.filter(|at| !std::mem::replace(&mut stored[*at as usize], true));
        }
        let from = registers(&held, 0);
        let read = assigned(from.clone(), context.tuple(place)).collect();
        let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
        writer.store(&memories, (&positions, &set), read, from);
    }
    writer.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
    rows(&mut writer, &memories, &held)?;
    writer.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
    results(&mut writer, &memories, &held);
    Ok(writer.out)
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
fn rows(writer: &mut Writer, memories: &[Handle<Memory>], held: &Arrays) -> Result<(), Refusal> {
    let context = writer.context;
    let sum = writer.arrays("sum", 1);
    let (threads, rows) = (context.runs.len() as i64, context.rows as i64);
    let turn = Var::new(writer.builder.fresh("turn"), 0, (rows - 1) / threads);
    let row = if rows > threads { context.thread.clone() + Expr::var(&turn) * threads } else { context.thread.clone() };
    let var = Var::new(writer.builder.fresh("at"), 0, context.extent as i64 - 1);
    let index = row.clone() * pitch(context) as i64 + Expr::var(&var);
    let mut body = Vec::new();
    for (memory, to) in memories.iter().zip(registers(held, 0)) {
        body.push(Stmt::Load { to, memory: *memory, index: index.clone() });
    }
    body.extend(writer.combined(registers(&sum, 0), &values(&sum, 0), &values(held, 0))?);
    for (memory, from) in memories.iter().zip(registers(&sum, 0)) {
        body.push(Stmt::Store { memory: *memory, index: index.clone(), from });
    }
    let mut of_row = writer.set_to_neutral(&sum);
    of_row.push(Stmt::For { counter: Counter::of(var), unroll: Unroll::Auto, body });
    let body = under(&[Cond::Less(row, Expr::constant(rows))], of_row);
    match rows > threads {
        true => writer.out.push(Stmt::For { counter: Counter::of(turn), unroll: Unroll::Auto, body }),
        false => writer.out.extend(body),
    }
    Ok(())
}

/// Every thread takes the results of its elements.
fn results(writer: &mut Writer, memories: &[Handle<Memory>], held: &Arrays) {
    let context = writer.context;
    let is_exclusive = context.order.is_exclusive;
    for (place, positions) in positions(context, usize::from(is_exclusive)) {
        let result = writer.written(place, values(held, 0));
        writer.load(memories, &positions, registers(held, 0), result);
        let first = writer.set(|thread| is_exclusive && is_first(context, thread, place));
        if first.contains(&true) {
            let start = writer.written(place, writer.start());
            writer.by(&first, start);
        }
    }
}

/// Whether the element of a thread at a place is the first of its row.
fn is_first(context: &Context, thread: usize, place: Place) -> bool {
    context.runs[thread].iter().any(|run| run.start == 0 && run.places.first() == Some(&place))
}
