//! Handles and names of another kernel, which say nothing in this one.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::tile::{Access, Coord, Origin, Value};

/// What is wrong with a buffer of another kernel.
pub(crate) fn buffer(used: Span, of: Origin) -> Diagnostic {
    Diagnostic::error("K0213", "a buffer of another kernel")
        .label(used, "used here")
        .label(of.span(), "the kernel that it belongs to")
        .help("declare the buffer in this kernel")
}

/// What is wrong with the name of a value of another kernel.
fn name(text: &str, used: Span, of: Origin) -> Diagnostic {
    Diagnostic::error("K0213", format!("the value `{text}` of another kernel"))
        .label(used, "used here")
        .label(of.span(), "the kernel that it belongs to")
        .help("name the value in this kernel, with k.named")
}

/// What is wrong with a value of a statement in the kernel `own`.
pub(crate) fn in_value(value: &Value, own: Origin, used: Span) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    visit(value, own, used, &mut found);
    found
}

/// What is wrong with an access in the kernel `own`.
pub(crate) fn in_access(access: &Access, own: Origin) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    visit_access(access, own, &mut found);
    found
}

fn visit(value: &Value, own: Origin, used: Span, found: &mut Vec<Diagnostic>) {
    match value {
        Value::Const(_) | Value::Index(_) => {}
        Value::Named(known) if known.origin() == own => {}
        Value::Named(known) => found.push(name(known, used, known.origin())),
        Value::Load(access) => visit_access(access, own, found),
        Value::Op(_, operands) => operands.iter().for_each(|operand| visit(operand, own, used, found)),
        Value::Cast(_, _, of) => visit(of, own, used, found),
    }
}

fn visit_access(access: &Access, own: Origin, found: &mut Vec<Diagnostic>) {
    let other = access.origin.filter(|of| *of != own);
    found.extend(other.map(|of| buffer(access.span, of)));
    for coord in &access.index {
        if let Coord::Data(value) = coord {
            visit(value, own, access.span, found);
        }
    }
}
