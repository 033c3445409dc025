//! Indices that move by a distance known only at launch.
//!
//! The rows of a tensor whose sizes come at launch are a product apart: `cols*(t*512 + i*32 + tid/4)`. If the loop over
//! `i` is unrolled, each of its iterations multiplies, in 64 bits. The same index as `cols*(t*512 + tid/4) + i*stride`,
//! with `stride = cols*32` named before the loop, is a sum in each iteration: NVRTC then adds the stride to the address of
//! the iteration before. It does that only where each iteration has the access; under a condition, a product of 64 bits
//! by `stride` would cost more than that of two integers of 32 bits, so such accesses are left as they are.

use std::collections::BTreeSet;

use tilewright_expr::linear::{linear, normalize};
use tilewright_expr::{Expr, Node, Var};
use tilewright_ir::thread::{Stmt, Unroll, for_each_stmt};

use crate::builder::Builder;

/// The greatest `int` of CUDA.
const MOST_INT: i64 = i32::MAX as i64;

/// The statements, with the strides of accesses to global memory named before the unrolled loops that they belong to.
pub(super) fn strided(builder: &mut Builder, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for stmt in body {
        let mut stmt = stmt.map_inner(|inner| strided(builder, inner));
        if let Stmt::For { counter, unroll: Unroll::Full | Unroll::By(_), body } = &mut stmt {
            let mut inside = BTreeSet::new();
            for_each_stmt(body, &mut |stmt| inside.extend(stmt.defines().iter().cloned()));
            let mut named = Named { builder: &mut *builder, var: counter.var.clone(), inside, strides: Vec::new() };
            named.list(body);
            out.extend(named.strides.into_iter().map(|(value, var)| Stmt::Let { var, value }));
        }
        out.push(stmt);
    }
    out
}

/// The strides of one loop.
struct Named<'a> {
    builder: &'a mut Builder,
    /// The variable of the loop.
    var: Var,
    /// The variables that its body defines: nothing before the loop can name them.
    inside: BTreeSet<Var>,
    strides: Vec<(Expr, Var)>,
}

impl Named<'_> {
    /// The accesses that every iteration has.
    fn list(&mut self, body: &mut [Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::For { body, .. } => self.list(body),
                Stmt::Load { memory, index, .. } | Stmt::Store { memory, index, .. }
                    if self.builder.program.memories[*memory].is_global() && exceeds_an_int(index) =>
                {
                    self.index(index);
                }
                _ => {}
            }
        }
    }

    fn index(&mut self, index: &mut Expr) {
        if let Some((rest, stride)) = moved(index, &self.var).filter(|(_, stride)| has_name(stride, &self.inside)) {
            *index = normalize(&(rest + Expr::var(&self.var) * self.name(stride)));
        }
    }

    /// The name of a stride: a variable of 64 bits whatever its values are, since NVRTC adds nothing narrower to addresses.
    fn name(&mut self, stride: Expr) -> Expr {
        if let Some((_, var)) = self.strides.iter().find(|(known, _)| *known == stride) {
            return Expr::var(var);
        }
        let range = stride.range();
        let most = range.hi.max(MOST_INT + 1);
        let var = Var::multiple_of(self.builder.fresh("stride"), range.lo, most, stride.multiple());
        self.strides.push((stride, var.clone()));
        Expr::var(&var)
    }
}

/// Whether an index may exceed an `int`.
fn exceeds_an_int(index: &Expr) -> bool {
    index.range().hi > MOST_INT
}

/// Whether a stride gets a name before a loop: it is not a number, and mentions nothing that the loop defines.
fn has_name(stride: &Expr, inside: &BTreeSet<Var>) -> bool {
    stride.as_const().is_none() && !inside.iter().any(|var| stride.mentions(var))
}

/// The index as `rest + var*stride`, if neither mentions the variable.
fn moved(index: &Expr, var: &Var) -> Option<(Expr, Expr)> {
    let sum = linear(index);
    let (mut rest, mut stride) = (Expr::constant(sum.constant), Expr::constant(0));
    for (factor, atom) in &sum.terms {
        let (of_rest, of_stride) = match atom.node() {
            _ if !atom.mentions(var) => (atom.clone(), Expr::constant(0)),
            Node::Var(_) => (Expr::constant(0), Expr::constant(1)),
            Node::Mul(a, b) => {
                let (of, by) = if a.mentions(var) { (a, b) } else { (b, a) };
                let (rest, stride) = moved(of, var).filter(|_| !by.mentions(var))?;
                (rest * by.clone(), stride * by.clone())
            }
            _ => return None,
        };
        rest = rest + of_rest * *factor;
        stride = stride + of_stride * *factor;
    }
    Some((normalize(&rest), normalize(&stride)))
}

#[cfg(test)]
mod tests;
