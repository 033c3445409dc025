//! Checks of sizes that are known only at launch, and of numbers that are parameters.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};

use super::identifiers::check_name;
use crate::hw_index::Dim;
use crate::tile::kernel::{Kernel, ScalarParameter, Size};

/// Checks that a size has a unique name and fits in 31 bits.
pub(super) fn check(kernel: &Kernel, size: &Size, found: &mut Vec<Diagnostic>) {
    let (name, range) = (size.var.name(), size.var.range());
    check_name(name, size.span, "a size", found);
    let first = kernel.sizes.iter().find(|other| other.var.name() == name).map(|other| other.span);
    let buffer = kernel.buffers.iter().find(|(_, buffer)| buffer.name == name).map(|(_, buffer)| buffer.span);
    if let Some(first) = buffer.or(first).filter(|first| *first != size.span) {
        found.push(
            Diagnostic::error("K0204", format!("the name `{name}` is taken"))
                .label(size.span, "this size")
                .label(first, "first used here")
                .help("give the size another name"),
        );
    }
    if range.lo < 1 || range.hi > i64::from(i32::MAX) || range.hi < size.var.multiple() {
        let multiple = size.var.multiple();
        let message = match multiple {
            1 => format!("the size `{name}` may be up to {}", range.hi),
            _ => format!("the size `{name}` cannot be a multiple of {multiple} up to {}", range.hi),
        };
        found.push(
            Diagnostic::error("K0230", message)
                .label(size.span, "this size")
                .help("a size has 31 bits: k.size(\"m\").multiple_of(4).max(1 << 20)"),
        );
    }
}

/// Checks that a scalar parameter has a unique name and a dtype that is a number.
pub(super) fn check_scalar(kernel: &Kernel, at: usize, found: &mut Vec<Diagnostic>) {
    let ScalarParameter { name, dtype, span } = &kernel.scalars[at];
    check_name(name, *span, "a scalar", found);
    let buffer = kernel.buffers.iter().find(|(_, buffer)| buffer.name == *name).map(|(_, buffer)| buffer.span);
    let size = kernel.sizes.iter().find(|size| size.var.name() == name).map(|size| size.span);
    let other = kernel.scalars[..at].iter().find(|other| other.name == *name).map(|other| other.span);
    if let Some(first) = buffer.or(size).or(other) {
        found.push(
            Diagnostic::error("K0204", format!("the name `{name}` is taken"))
                .label(*span, "this scalar")
                .label(first, "first used here")
                .help("give the scalar another name"),
        );
    }
    if dtype.is_opaque() {
        let message = format!("the scalar `{name}` cannot be {dtype}");
        let finding = Diagnostic::error("K0233", message).label(*span, "this scalar");
        found.push(finding.help("opaque elements can be moved, but not computed with"));
    }
}

/// The error for an expression with a size that the kernel does not have.
pub(super) fn unknown_size(kernel: &Kernel, expr: &Expr, span: Span) -> Option<Diagnostic> {
    unknown(kernel, expr, span, &|_| false)
}

/// The error for an expression with something else than sizes of the kernel and what `is_known` holds for.
pub(super) fn unknown(kernel: &Kernel, expr: &Expr, span: Span, is_known: &dyn Fn(&Var) -> bool) -> Option<Diagnostic> {
    let mut unknown = None;
    expr.for_each_var(&mut |var| {
        if !kernel.sizes.iter().any(|size| size.var == *var) && !is_known(var) {
            unknown = Some(var.name().to_string());
        }
    });
    let name = unknown?;
    let finding = Diagnostic::error("K0217", format!("`{name}` is not a size of this kernel")).label(span, "used here");
    if let Some(loaded) = kernel.loaded.iter().find(|loaded| loaded.var.name() == name) {
        let finding = finding.label(loaded.span, "loaded when a CTA begins");
        return Some(finding.help("use the most that it may be, and test the index inside of the kernel"));
    }
    let is_block = Dim::ALL.into_iter().any(|dimension| kernel.block(dimension).name() == name);
    Some(finding.help(match is_block {
        true => "extents are made of sizes, and k.truncated may also end at a k.index; for the part of a CTA, use .sub",
        false => "make the size with this kernel's k.size; call .multiple_of and .max before it is used",
    }))
}
