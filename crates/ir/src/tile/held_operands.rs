//! Reductions and scans combine registers: operands in memory, and parts of fragments, are copied to fragments of their own, and
//! results from there to where they belong.

use tilewright_diag::Span;
use tilewright_expr::Expr;

use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::kernel::{If, Kernel, Loop, Stmt};
use crate::tile::op::{Effect, Op, OpClass, OpKind};
use crate::tile::tiles::Tile;

/// The kernel with whole fragments as operands of reductions and scans.
pub(super) fn with_held_operands(mut kernel: Kernel) -> Kernel {
    let body = std::mem::take(&mut kernel.body);
    let body = held(&mut kernel, body);
    Kernel { body, ..kernel }
}

fn held(kernel: &mut Kernel, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for stmt in body {
        match stmt {
            Stmt::Op(op) => {
                let (before, after) = around(kernel, op);
                out.extend(before);
                out.push(Stmt::Op(op));
                out.extend(after);
            }
            Stmt::Loop(inner) => out.push(Stmt::Loop(Loop { body: held(kernel, inner.body), ..inner })),
            Stmt::If(If { cond, then, otherwise, span }) => {
                let [then, otherwise] = [then, otherwise].map(|body| held(kernel, body));
                out.push(Stmt::If(If { cond, then, otherwise, span }));
            }
            Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => out.push(stmt),
        }
    }
    out
}

/// The copies before and after an op, whose operands are replaced.
fn around(kernel: &mut Kernel, handle: Handle<Op>) -> (Vec<Stmt>, Vec<Stmt>) {
    let op = kernel.ops[handle].clone();
    let (mut before, mut after): (Vec<Stmt>, Vec<Stmt>) = (Vec::new(), Vec::new());
    if !matches!(op.kind.info().class, OpClass::Reduction | OpClass::Scan) {
        return (before, after);
    }
    for (place, tile) in op.operands.iter().enumerate() {
        let buffer = &kernel.buffers[tile.buffer];
        if buffer.space == Space::Fragment && tile.extents == buffer.shape {
            continue;
        }
        let own = fragment_of(kernel, tile, op.span);
        let copy = |to: &Tile, from: &Tile| Op {
            kind: OpKind::Copy,
            operands: vec![to.clone(), from.clone()],
            variant: None,
            name: None,
            layout: None,
            ..op.clone()
        };
        let effect = op.effect(place);
        if effect.reads() {
            before.push(Stmt::Op(kernel.ops.push(copy(&own, tile))));
        }
        if effect != Effect::Read {
            after.push(Stmt::Op(kernel.ops.push(copy(tile, &own))));
        }
        kernel.ops[handle].operands[place] = own;
    }
    (before, after)
}

/// A fragment with the extents and the dtype of a tile.
fn fragment_of(kernel: &mut Kernel, tile: &Tile, span: Span) -> Tile {
    let Buffer { name, dtype, .. } = &kernel.buffers[tile.buffer];
    let own = Buffer::fragment(kernel.free_name(&format!("{name}_held")), *dtype, &tile.extents, span);
    let starts = vec![Expr::constant(0); tile.extents.len()];
    Tile { buffer: kernel.buffers.push(own), starts, extents: tile.extents.clone() }
}
