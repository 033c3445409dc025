//! Copies that load all their vectors before they store the first, vector by vector instead, if that is allowed: only
//! then do they roll up. Loads from memory that no store of the kernel reaches move to the front again in ptxas.

use std::collections::BTreeSet;

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Memory, RegArray, Regs, Stmt};

use super::shape::Mentions;
use crate::builder::Builder;

/// The statements with such copies vector by vector, each through an array of its own.
pub(super) fn interleaved(builder: &mut Builder, body: Vec<Stmt>) -> Vec<Stmt> {
    let is_of_vectors = |array: &RegArray| array.vector > 1 && array.len > array.vector;
    if !builder.program.registers.iter().any(|(_, array)| is_of_vectors(array)) {
        return body;
    }
    let mentions = Mentions::of(&body);
    list(builder, &mentions, body)
}

fn list(builder: &mut Builder, mentions: &Mentions, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = Vec::new();
    let mut rest = &body[..];
    while let Some((stmt, after)) = rest.split_first() {
        match Copy::of(builder, mentions, rest) {
            Some(copy) => {
                rest = &rest[2 * copy.loads.len()..];
                copy.write(builder, &mut out);
            }
            None => {
                rest = after;
                out.push(stmt.clone().map_inner(|body| list(builder, mentions, body)));
            }
        }
    }
    out
}

/// Loads of all vectors of an array, followed by their stores.
struct Copy<'a> {
    array: Handle<RegArray>,
    from: Handle<Memory>,
    loads: Vec<&'a Expr>,
    to: Handle<Memory>,
    stores: Vec<&'a Expr>,
}

impl<'a> Copy<'a> {
    /// The copy with which the statements begin.
    fn of(builder: &Builder, mentions: &Mentions, body: &'a [Stmt]) -> Option<Copy<'a>> {
        let Some(Stmt::Load { to: Regs { array, .. }, memory: from, .. }) = body.first() else { return None };
        let RegArray { len, vector, .. } = builder.program.registers[*array];
        let count = (len / vector) as usize;
        if vector == 1 || count < 2 || mentions.count(*array) != 2 * count || body.len() < 2 * count {
            return None;
        }
        let is_vector = |regs: &Regs, at: usize| {
            regs.array == *array && regs.count == vector && regs.first.as_const() == Some(at as i64 * vector)
        };
        let load = |(at, stmt): (usize, &'a Stmt)| match stmt {
            Stmt::Load { to, memory, index } if memory == from && is_vector(to, at) => Some(index),
            _ => None,
        };
        let Some(Stmt::Store { memory: to, .. }) = body.get(count) else { return None };
        let store = |(at, stmt): (usize, &'a Stmt)| match stmt {
            Stmt::Store { memory, index, from } if memory == to && is_vector(from, at) => Some(index),
            _ => None,
        };
        let loads: Vec<&Expr> = body[..count].iter().enumerate().map(load).collect::<Option<_>>()?;
        let stores: Vec<&Expr> = body[count..2 * count].iter().enumerate().map(store).collect::<Option<_>>()?;
        (builder.are_apart(*from, *to) && grows_evenly(&loads) && grows_evenly(&stores)).then_some(Copy {
            array: *array,
            from: *from,
            loads,
            to: *to,
            stores,
        })
    }

    fn write(self, builder: &mut Builder, out: &mut Vec<Stmt>) {
        let RegArray { dtype, vector, .. } = builder.program.registers[self.array];
        builder.program.registers[self.array].len = vector;
        for (at, (load, store)) in self.loads.into_iter().zip(self.stores).enumerate() {
            let array = if at == 0 { self.array } else { builder.registers("r", dtype, vector, vector, out) };
            let regs = || crate::builder::regs(array, 0, vector);
            out.push(Stmt::Load { to: regs(), memory: self.from, index: load.clone() });
            out.push(Stmt::Store { memory: self.to, index: store.clone(), from: regs() });
        }
    }
}

/// Whether the indices differ by the same number from one to the next.
fn grows_evenly(indices: &[&Expr]) -> bool {
    let steps: BTreeSet<Option<i64>> =
        indices.windows(2).map(|pair| normalize(&(pair[1] - pair[0])).as_const()).collect();
    steps.len() == 1 && !steps.contains(&None)
}
