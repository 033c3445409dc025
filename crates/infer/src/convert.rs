//! Conversions: where the uses of a fragment agree on no layout, one of them gets a fragment of its own, if the user allows
//! it. `convert_layout` ops move the elements there and back.

use std::sync::Arc;

use tilewright_diag::Span;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::tile::{
    Access, Buffer, Coord, Effect, ElementStmt, Kernel, Op, OpKind, Parallel, Role, Stmt, Tile, Value,
};
use tilewright_layout::axis::Scope;

use crate::steps::Clash;

/// The kernel in which the statement that clashes uses a fragment of its own: the elements are converted to it before the
/// statement unless that overwrites all of them, and back after it if that writes them. `None` if the fragment has views,
/// or is already the copy for this statement.
pub(crate) fn converted(kernel: &Kernel, clash: &Clash) -> Option<Kernel> {
    let is_copy = kernel.buffers[clash.fragment].span == clash.span;
    if is_copy || has_views(kernel, clash) {
        return None;
    }
    let mut kernel = kernel.clone();
    // The kernel keeps its own body meanwhile, so that `free_name` sees all names.
    let mut body = kernel.body.clone();
    let is_done = insert(&mut kernel, &mut body, clash, &mut false);
    kernel.body = body;
    is_done.then_some(kernel)
}

/// Converts around the first statement of `body` that clashes. Returns whether there is one. `is_written` is whether a
/// statement before may have written the fragment.
fn insert(kernel: &mut Kernel, body: &mut Vec<Stmt>, clash: &Clash, is_written: &mut bool) -> bool {
    for at in 0..body.len() {
        let found = match &mut body[at] {
            Stmt::Op(op) => use_of_op(kernel, &kernel.ops[*op], clash),
            Stmt::Parallel(parallel) => use_of_loop(&kernel.parallels[*parallel], clash),
            Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => Use::default(),
            Stmt::Loop(inner) => {
                // An earlier turn may have written it.
                *is_written = true;
                if insert(kernel, &mut inner.body, clash, is_written) {
                    return true;
                }
                Use::default()
            }
            Stmt::If(branch) => {
                if insert(kernel, &mut branch.then, clash, is_written)
                    || insert(kernel, &mut branch.otherwise, clash, is_written)
                {
                    return true;
                }
                Use::default()
            }
        };
        if found.is_meant {
            convert_around(kernel, body, at, clash, found, *is_written);
            return true;
        }
        *is_written |= found.writes;
    }
    false
}

/// What the clashing statement does with the fragment.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Whether it is the statement that clashes.
    is_meant: bool,
    reads: bool,
    writes: bool,
    /// Whether it is known to write every element, whatever was there.
    overwrites: bool,
}

fn use_of_op(kernel: &Kernel, op: &Op, clash: &Clash) -> Use {
    let mut found = Use::default();
    for (place, tile) in op.operands.iter().enumerate().filter(|(_, tile)| tile.buffer == clash.fragment) {
        let (is_whole, effect) = (tile.extents == kernel.buffers[tile.buffer].shape, op.effect(place));
        found.reads |= effect.reads();
        found.writes |= effect.writes();
        found.overwrites |= is_whole && effect == Effect::Write;
        // Conversions that were inserted have the span of the statement that they were inserted for.
        found.is_meant |= op.span == clash.span && op.kind != OpKind::ConvertLayout;
    }
    found
}

fn use_of_loop(parallel: &Parallel, clash: &Clash) -> Use {
    let mut found = Use::default();
    for element in &parallel.body {
        element.for_each_access(&mut |access, writes| {
            if access.buffer == clash.fragment {
                found.is_meant |= access.span == clash.span;
                found.reads |= !writes;
                found.writes |= writes;
            }
        });
    }
    found
}

/// Whether the fragment has views, which would not refer to a copy.
fn has_views(kernel: &Kernel, clash: &Clash) -> bool {
    kernel.buffers.iter().any(|(handle, _)| handle != clash.fragment && kernel.storage(handle) == clash.fragment)
}

/// Lets the statement use a fragment of its own. What it may leave as it is comes back as it was.
fn convert_around(kernel: &mut Kernel, body: &mut Vec<Stmt>, at: usize, clash: &Clash, found: Use, is_written: bool) {
    let buffer = kernel.buffers[clash.fragment].clone();
    let name = kernel.free_name(&format!("{}_converted", buffer.name));
    let copy = kernel.buffers.push(Buffer { name, layout: None, span: clash.span, ..buffer });
    redirect(kernel, &body[at], clash.fragment, copy);
    let role = role_of(kernel, &body[at]);
    let mut conversion = |dst, src| conversion(kernel, [dst, src], role, clash.span);
    if found.writes {
        let back = conversion(clash.fragment, copy);
        body.insert(at + 1, back);
    }
    if found.reads || (is_written && !found.overwrites) {
        let there = conversion(copy, clash.fragment);
        body.insert(at, there);
    }
}

/// The role that executes a statement.
fn role_of(kernel: &Kernel, stmt: &Stmt) -> Option<Handle<Role>> {
    match stmt {
        Stmt::Op(op) => kernel.ops[*op].role,
        Stmt::Parallel(parallel) => kernel.parallels[*parallel].role,
        Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) | Stmt::Begin(_) | Stmt::End(_) => None,
    }
}

fn conversion(kernel: &mut Kernel, [dst, src]: [Handle<Buffer>; 2], role: Option<Handle<Role>>, span: Span) -> Stmt {
    let operands = vec![whole(kernel, dst), whole(kernel, src)];
    let (kind, scope) = (OpKind::ConvertLayout, Scope::Cta);
    let op = Op { kind, scope, warp: None, role, operands, variant: None, name: None, layout: None, span };
    Stmt::Op(kernel.ops.push(op))
}

fn whole(kernel: &Kernel, buffer: Handle<Buffer>) -> Tile {
    let shape = &kernel.buffers[buffer].shape;
    Tile { buffer, starts: vec![Expr::constant(0); shape.len()], extents: shape.clone() }
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
        Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) | Stmt::Begin(_) | Stmt::End(_) => {}
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
        ElementStmt::Atomic(atomic) => {
            ElementStmt::Atomic(atomic.clone().map(&mut |used| value(&used), |place| in_access(&place, from, to)))
        }
        ElementStmt::If { cond, then, otherwise, span } => {
            ElementStmt::If { cond: value(cond), then: all(then), otherwise: all(otherwise), span: *span }
        }
        ElementStmt::For { counter, body, span } => {
            ElementStmt::For { counter: counter.clone(), body: all(body), span: *span }
        }
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
