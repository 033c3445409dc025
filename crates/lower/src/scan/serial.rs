//! A scan of rows in shared memory, each by one thread: for layouts in which the elements of a row follow no order of the
//! threads.

use std::collections::BTreeMap;

use tilewright_expr::{Expr, Var};
use tilewright_ir::Counter;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Cond, Inst, Memory, Regs, Stmt, Unroll};

use super::carry::{Carry, Rows};
use super::context::Context;
use super::runs::{Place, Run};
use super::writer::Writer;
use crate::builder::Builder;
use crate::conditions::under;
use crate::refusal::Refusal;
use crate::tuples::{Arrays, assigned, registers, values};

/// By place, the position of the element in shared memory that each thread has there.
type Positions = BTreeMap<Place, Vec<Option<i64>>>;

/// Elements from one row to the next: odd, so that threads that go through rows side by side access different banks.
pub(super) fn pitch(context: &Context) -> usize {
    (first(context) + context.extent) | 1
}

/// The first element of a row, behind the carry that the user gives.
fn first(context: &Context) -> usize {
    usize::from(context.order.has_carry)
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
    let carry = context.order.has_carry.then(|| Carry::new(&mut writer));
    let own_rows = own_rows(context);
    if let Some(carry) = &carry {
        store_carries(&mut writer, &memories, carry, &own_rows);
    }
    writer.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
    rows(&mut writer, &memories, &held)?;
    writer.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
    results(&mut writer, &memories, &held);
    if let Some(carry) = &carry {
        load_carries(&mut writer, &memories, carry, &own_rows);
    }
    Ok(writer.out)
}

/// By thread, the rows of which it has a part.
fn own_rows(context: &Context) -> Vec<Vec<usize>> {
    let of = |runs: &Vec<Run>| {
        let mut rows: Vec<usize> = runs.iter().map(|run| run.row).collect();
        rows.dedup();
        rows
    };
    context.runs.iter().map(of).collect()
}

/// By turn, one of its rows for each thread that has so many.
fn turns(own_rows: &[Vec<usize>]) -> impl Iterator<Item = Rows> {
    let most = own_rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).map(|turn| own_rows.iter().map(|rows| rows.get(turn).copied()).collect())
}

/// The carries of the rows go in front of their elements; of several threads that have one, the first stores it.
fn store_carries(writer: &mut Writer, memories: &[Handle<Memory>], carry: &Carry, own_rows: &[Vec<usize>]) {
    let mut is_stored = vec![false; writer.context.rows];
    for rows in turns(own_rows) {
        let first = |row: &Option<usize>| row.filter(|row| !std::mem::replace(&mut is_stored[*row], true));
        let rows: Rows = rows.iter().map(first).collect();
        carry.take(writer, &rows);
        let positions = positions_of(writer.context, &rows, 0);
        let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
        writer.store(memories, (&positions, &set), Vec::new(), registers(&carry.arrays, 0));
    }
}

/// What a row was combined to, which stands in the place of its last element, is the new carry.
fn load_carries(writer: &mut Writer, memories: &[Handle<Memory>], carry: &Carry, own_rows: &[Vec<usize>]) {
    for rows in turns(own_rows) {
        let positions = positions_of(writer.context, &rows, writer.context.extent);
        writer.load(memories, &positions, registers(&carry.arrays, 0), Vec::new());
        carry.leave(writer, &rows);
    }
}

fn positions_of(context: &Context, rows: &Rows, at: usize) -> Vec<Option<i64>> {
    rows.iter().map(|row| row.map(|row| (row * pitch(context) + at) as i64)).collect()
}

/// The positions of the elements of each thread, `before` elements earlier in their rows.
fn positions(context: &Context, before: usize) -> Positions {
    let mut found = Positions::new();
    for (thread, runs) in context.runs.iter().enumerate() {
        for (run, (at, place)) in runs.iter().flat_map(|run| run.places.iter().enumerate().map(move |at| (run, at))) {
            let position = (first(context) + run.start + at).checked_sub(before);
            let position = position.map(|at| (run.row * pitch(context) + at) as i64);
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
    let begin = row.clone() * pitch(context) as i64;
    let index = begin.clone() + first(context) as i64 + Expr::var(&var);
    let mut body = Vec::new();
    for (memory, to) in memories.iter().zip(registers(held, 0)) {
        body.push(Stmt::Load { to, memory: *memory, index: index.clone() });
    }
    body.extend(writer.combined(registers(&sum, 0), &values(&sum, 0), &values(held, 0))?);
    for (memory, from) in memories.iter().zip(registers(&sum, 0)) {
        body.push(Stmt::Store { memory: *memory, index: index.clone(), from });
    }
    let mut of_row = writer.set_to_neutral(&sum);
    if context.order.has_carry {
        let load = |(memory, to): (&Handle<Memory>, Regs)| Stmt::Load { to, memory: *memory, index: begin.clone() };
        of_row = memories.iter().zip(registers(&sum, 0)).map(load).collect();
    }
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
        let has_start = is_exclusive && !context.order.has_carry;
        let first = writer.set(|thread| has_start && is_first(context, thread, place));
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
