//! Conversions: a fragment whose uses agree on no layout is copied through shared memory, if the user allows it.

use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Access, Buffer, Coord, Effect, ElementStmt, Kernel, Op, OpKind, Space, Stmt, Tile, Value};
use tilewright_layout::axis::Scope;
use tilewright_layout::{Layout, TileLayout};

use crate::steps::Clash;

/// The kernel in which the statement that clashes reads a copy of the fragment, made through shared memory right before
/// it. `None` if the clash is not about a read, the statement also writes the fragment, or the fragment has views.
pub(crate) fn converted(kernel: &Kernel, clash: &Clash) -> Option<Kernel> {
    if clash.writes {
        return None;
    }
    let mut kernel = kernel.clone();
    // The kernel keeps its own body meanwhile, so that `free_name` sees all names.
    let mut body = kernel.body.clone();
    let is_done = insert(&mut kernel, &mut body, clash)?;
    kernel.body = body;
    is_done.then_some(kernel)
}

/// Puts the copies before the first statement of `body` that clashes. Returns whether there is one; `None` if it cannot
/// be done.
fn insert(kernel: &mut Kernel, body: &mut Vec<Stmt>, clash: &Clash) -> Option<bool> {
    for at in 0..body.len() {
        let reads = match &body[at] {
            Stmt::Op(op) => op_reads(kernel, &kernel.ops[*op], clash),
            Stmt::Parallel(parallel) => loop_reads(kernel, &kernel.parallels[*parallel].body, clash),
            Stmt::EachThread(_) => Use::Other,
            Stmt::Loop(_) | Stmt::If(_) => {
                let is_done = match &mut body[at] {
                    Stmt::Loop(inner) => insert(kernel, &mut inner.body, clash)?,
                    Stmt::If(branch) => {
                        insert(kernel, &mut branch.then, clash)? || insert(kernel, &mut branch.otherwise, clash)?
                    }
                    Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => false,
                };
                if is_done {
                    return Some(true);
                }
                Use::Other
            }
        };
        match reads {
            Use::Other => {}
            Use::Writes => return None,
            Use::Reads => {
                let copy = copies(kernel, clash)?;
                redirect(kernel, &body[at], clash.fragment, copy.fragment);
                body.splice(at..at, copy.statements);
                return Some(true);
            }
        }
    }
    Some(false)
}

/// What the clashing statement does with the fragment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is another statement, or does not read it at the clashing place.
    Other,
    /// It reads it.
    Reads,
    /// It also writes the fragment, or the fragment has views.
    Writes,
}

fn op_reads(kernel: &Kernel, op: &Op, clash: &Clash) -> Use {
    if op.span != clash.span {
        return Use::Other;
    }
    let operands = op.kind.info().operands.iter().zip(&op.operands);
    let of_fragment: Vec<Effect> =
        operands.filter(|(_, tile)| kernel.storage(tile.buffer) == clash.fragment).map(|(o, _)| o.effect).collect();
    used(&of_fragment.into_iter().map(Effect::writes).collect::<Vec<_>>(), !of_views(kernel, clash))
}

fn loop_reads(kernel: &Kernel, body: &[ElementStmt], clash: &Clash) -> Use {
    let (mut is_meant, mut uses) = (false, Vec::new());
    for element in body {
        element.for_each_access(&mut |access, writes| {
            if kernel.storage(access.buffer) == clash.fragment {
                is_meant |= access.span == clash.span && !writes;
                uses.push(writes);
            }
        });
    }
    if is_meant { used(&uses, !of_views(kernel, clash)) } else { Use::Other }
}

/// Whether the fragment has views, which would not refer to a copy.
fn of_views(kernel: &Kernel, clash: &Clash) -> bool {
    kernel.buffers.iter().any(|(handle, _)| handle != clash.fragment && kernel.storage(handle) == clash.fragment)
}

fn used(writes: &[bool], is_plain: bool) -> Use {
    match writes {
        [] => Use::Other,
        _ if writes.contains(&true) || !is_plain => Use::Writes,
        _ => Use::Reads,
    }
}

struct Copies {
    /// The copy that the statement reads.
    fragment: Handle<Buffer>,
    /// The copies to shared memory and back.
    statements: Vec<Stmt>,
}

/// A copy of the fragment, and the statements that make it.
fn copies(kernel: &mut Kernel, clash: &Clash) -> Option<Copies> {
    let buffer = kernel.buffers[clash.fragment].clone();
    let staged = Buffer {
        name: kernel.free_name(&format!("{}_staged", buffer.name)),
        space: Space::Shared,
        layout: Some(Layout::Tile(TileLayout::row_major(&buffer.shape).ok()?)),
        span: clash.span,
        ..buffer.clone()
    };
    let staged = kernel.buffers.push(staged);
    let name = kernel.free_name(&format!("{}_converted", buffer.name));
    let fragment = kernel.buffers.push(Buffer { name, layout: None, span: clash.span, ..buffer.clone() });
    let mut statement = |dst, src| {
        let operands = vec![whole(&buffer.shape, dst), whole(&buffer.shape, src)];
        Stmt::Op(kernel.ops.push(copy(operands, clash.span)))
    };
    let statements = vec![statement(staged, clash.fragment), statement(fragment, staged)];
    Some(Copies { fragment, statements })
}

fn whole(shape: &[i64], buffer: Handle<Buffer>) -> Tile {
    Tile { buffer, starts: vec![Expr::constant(0); shape.len()], extents: shape.to_vec() }
}

fn copy(operands: Vec<Tile>, span: Span) -> Op {
    Op {
        kind: OpKind::Copy,
        scope: Scope::Cta,
        warp: None,
        operands,
        variant: None,
        name: Some("conversion".to_string()),
        layout: None,
        span,
    }
}

/// Makes a statement use `to` where it used `from`.
fn redirect(kernel: &mut Kernel, stmt: &Stmt, from: Handle<Buffer>, to: Handle<Buffer>) {
    match stmt {
        Stmt::Op(op) => {
            let tiles = kernel.ops[*op].operands.iter_mut().filter(|tile| tile.buffer == from);
            tiles.for_each(|tile| tile.buffer = to);
        }
        Stmt::Parallel(parallel) => {
            let body = &mut kernel.parallels[*parallel].body;
            *body = body.iter().map(|element| in_element(element, from, to)).collect();
        }
        Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) => {}
    }
}

fn in_element(element: &ElementStmt, from: Handle<Buffer>, to: Handle<Buffer>) -> ElementStmt {
    let value = |value: &Value| in_value(value, from, to);
    let all = |body: &[ElementStmt]| body.iter().map(|element| in_element(element, from, to)).collect();
    match element {
        ElementStmt::Let { name, value: named, span } => {
            ElementStmt::Let { name: name.clone(), value: value(named), span: *span }
        }
        ElementStmt::Store { to: place, value: stored, claim } => {
            ElementStmt::Store { to: in_access(place, from, to), value: value(stored), claim: *claim }
        }
        ElementStmt::AtomicAdd { to: place, value: added } => {
            ElementStmt::AtomicAdd { to: in_access(place, from, to), value: value(added) }
        }
        ElementStmt::If { cond, then, otherwise, span } => {
            ElementStmt::If { cond: value(cond), then: all(then), otherwise: all(otherwise), span: *span }
        }
        ElementStmt::For { var, body, span } => ElementStmt::For { var: var.clone(), body: all(body), span: *span },
    }
}

fn in_value(value: &Value, from: Handle<Buffer>, to: Handle<Buffer>) -> Value {
    match value {
        Value::Const(_) | Value::Index(_) | Value::Named(_) => value.clone(),
        Value::Load(access) => Value::Load(in_access(access, from, to)),
        Value::Op(op, operands) => Value::Op(*op, operands.iter().map(|operand| in_value(operand, from, to)).collect()),
        Value::Cast(dtype, narrowing, of) => Value::Cast(*dtype, *narrowing, Arc::new(in_value(of, from, to))),
    }
}

fn in_access(access: &Access, from: Handle<Buffer>, to: Handle<Buffer>) -> Access {
    let coord = |coord: &Coord| match coord {
        Coord::At(expr) => Coord::At(expr.clone()),
        Coord::Data(value) => Coord::Data(in_value(value, from, to)),
    };
    let buffer = if access.buffer == from { to } else { access.buffer };
    Access { buffer, index: access.index.iter().map(coord).collect(), ..access.clone() }
}
