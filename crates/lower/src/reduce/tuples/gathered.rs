//! Parts of rows that pass through shared memory.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Memory, Stmt};

use super::context::TupleValue;
use super::make::MakeTuples;
use crate::builder::regs;
use crate::refusal::Refusal;
use crate::threads::number;
use crate::tuples::{Arrays, registers, values};

impl MakeTuples<'_> {
    /// Passes the leaders' parts through shared memory to the threads that must hold results: the parts of a row follow each
    /// other at a distance of all rows.
    pub(super) fn across(&mut self, parts: &Arrays, leaders: &[Vec<usize>]) -> Result<(), Refusal> {
        let most = leaders.iter().map(Vec::len).max().unwrap_or(0);
        let memories = self.scratch(leaders.len() * most);
        let position = |at: usize, row: usize| (at * leaders.len() + row) as i64;
        for place in 0..self.rows.most_parts() {
            let own = |thread: usize| {
                let (row, _) = self.rows.at(thread, place)?;
                let at = leaders[row].iter().position(|leader| *leader == thread)?;
                Some(position(at, row))
            };
            let positions: Vec<Option<i64>> = (0..self.rows.threads()).map(own).collect();
            let from = registers(parts, place);
            self.access(&positions, |index| {
                let stores = memories.iter().zip(from);
                stores.map(|(memory, from)| Stmt::Store { memory: *memory, index: index.clone(), from }).collect()
            });
        }
        self.out.push(Stmt::from(Call::plain(Inst::SyncThreads)));
        let wanted = self.context.wanted();
        for place in 0..wanted.iter().map(Vec::len).max().unwrap_or(0) {
            let rows: Vec<Option<usize>> = wanted.iter().map(|rows| rows.get(place).copied()).collect();
            let of_part = |at: usize| {
                let own = |row: &Option<usize>| row.filter(|row| at < leaders[*row].len()).map(|row| position(at, row));
                rows.iter().map(own).collect()
            };
            self.gathered(&rows, (0..most).map(of_part).collect(), &memories)?;
        }
        Ok(())
    }

    /// Every thread combines the parts of its row, and writes the results.
    fn gathered(
        &mut self,
        rows: &[Option<usize>],
        parts: Vec<Vec<Option<i64>>>,
        memories: &[Handle<Memory>],
    ) -> Result<(), Refusal> {
        let (whole, part) = (self.shared_arrays("whole", 1), self.shared_arrays("other", 1));
        let identities: Vec<Stmt> = (self.context.values.iter().zip(&whole))
            .map(|(value, array)| Stmt::Set { to: regs(*array, 0, 1), value: value.identity })
            .collect();
        if rows.contains(&None) {
            self.out.extend(identities);
        }
        for (at, positions) in parts.iter().enumerate() {
            let to = registers(if at == 0 { &whole } else { &part }, 0);
            let then = match at {
                0 => Vec::new(),
                _ => self.combined(&registers(&whole, 0), &values(&whole, 0), &values(&part, 0))?,
            };
            self.access(positions, |index| {
                let loads = memories.iter().zip(to);
                let loads = loads.map(|(memory, to)| Stmt::Load { to, memory: *memory, index: index.clone() });
                loads.chain(then).collect()
            });
        }
        self.write_rows(rows, &whole, 0)
    }

    /// Statements that access the positions of the threads that have one, in elements.
    fn access(&mut self, positions: &[Option<i64>], make: impl FnOnce(Expr) -> Vec<Stmt>) {
        if positions.iter().all(Option::is_none) {
            return;
        }
        let mut body = Vec::new();
        let index = number(positions, 1, &self.context.thread, self.builder, &mut body);
        body.extend(make(index));
        let set: Vec<bool> = positions.iter().map(Option::is_some).collect();
        self.by(&set, |_| false, body);
    }

    /// Shared memory for so many parts of each value.
    fn scratch(&mut self, elements: usize) -> Vec<Handle<Memory>> {
        let context = self.context;
        let mut of = |value: &TupleValue| {
            let base = format!("{}_parts", value.name);
            self.builder.scratch(&base, value.dtype, (elements, value.dtype.bytes()), context.op.span)
        };
        context.values.iter().map(&mut of).collect()
    }
}
