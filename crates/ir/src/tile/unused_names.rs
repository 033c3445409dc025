//! Named values that no statement uses are left out: they would take loads and registers, and NVRTC warns of them.

use std::collections::BTreeSet;

use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::value::{Access, Coord, Value};

/// The kernel without names for values that no statement uses.
pub(super) fn without_unused_names(mut kernel: Kernel) -> Kernel {
    let handles: Vec<_> = kernel.parallels.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        keep_used(&mut kernel.parallels[handle].body, &mut BTreeSet::new());
    }
    body(&mut kernel.body);
    kernel
}

fn body(stmts: &mut [Stmt]) {
    for stmt in stmts {
        match stmt {
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::Begin(_) | Stmt::End(_) => {}
            Stmt::Loop(inner) => body(&mut inner.body),
            Stmt::EachThread(elements) => keep_used(elements, &mut BTreeSet::new()),
            Stmt::If(both) => {
                body(&mut both.then);
                body(&mut both.otherwise);
            }
        }
    }
}

/// Removes names that neither a later statement of the body nor one behind it uses: `used` has the names that those
/// behind it use. The names that the body uses are added.
fn keep_used(elements: &mut Vec<ElementStmt>, used: &mut BTreeSet<String>) {
    let mut kept = Vec::with_capacity(elements.len());
    for mut element in elements.drain(..).rev() {
        match &mut element {
            ElementStmt::Let { name, .. } if !used.contains(name) => continue,
            ElementStmt::Let { value, .. } => in_value(value, used),
            ElementStmt::Store { to, value, .. } => {
                in_value(value, used);
                in_index(to, used);
            }
            ElementStmt::Atomic(atomic) => {
                atomic.old.take_if(|old| !used.contains(&old.name));
                atomic.values().for_each(|value| in_value(value, used));
                in_index(&atomic.to, used);
            }
            ElementStmt::If { cond, then, otherwise, .. } => {
                keep_used(then, used);
                keep_used(otherwise, used);
                in_value(cond, used);
            }
            ElementStmt::For { body, .. } => keep_used(body, used),
        }
        kept.push(element);
    }
    elements.extend(kept.into_iter().rev());
}

/// Adds the names that a value uses.
fn in_value(value: &Value, used: &mut BTreeSet<String>) {
    match value {
        Value::Const(_) | Value::Index(_) => {}
        Value::Named(name) => {
            used.insert(name.clone());
        }
        Value::Load(access) => in_index(access, used),
        Value::Op(_, operands) => operands.iter().for_each(|operand| in_value(operand, used)),
        Value::Cast(_, _, of) => in_value(of, used),
    }
}

/// Adds the names that an index uses.
fn in_index(access: &Access, used: &mut BTreeSet<String>) {
    for coord in &access.index {
        if let Coord::Data(value) = coord {
            in_value(value, used);
        }
    }
}
