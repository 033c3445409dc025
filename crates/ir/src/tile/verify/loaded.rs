//! Checks of integers that a CTA loads before all else, and of views that end at one.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};

use super::identifiers::check_name;
use super::{elements, index, sizes};
use crate::arena::Handle;
use crate::tile::buffer::{Buffer, Direction, Space};
use crate::tile::kernel::{If, Kernel};
use crate::tile::loaded::LoadedIndex;
use crate::tile::print::access_title;
use crate::tile::value::{ElementOp, Value};

/// Checks all loaded integers. Each may use those before it.
pub(super) fn check(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    if kernel.loaded.is_empty() {
        return;
    }
    let mut before = Kernel { loaded: Vec::new(), ..kernel.clone() };
    for loaded in &kernel.loaded {
        check_one(&before, loaded, found);
        before.loaded.push(loaded.clone());
    }
}

fn check_one(kernel: &Kernel, loaded: &LoadedIndex, found: &mut Vec<Diagnostic>) {
    let LoadedIndex { var, of, most, span } = loaded;
    check_name(var.name(), *span, "an index", found);
    if kernel.taken_names().contains(var.name()) {
        let finding = Diagnostic::error("K0204", format!("the name `{}` is taken", var.name()));
        found.push(finding.label(*span, "this index").help("give the index another name"));
    }
    let is_before = |other: &Var| kernel.loaded.iter().any(|loaded| loaded.var == *other);
    found.extend(sizes::unknown(kernel, most, *span, &is_before));
    found.extend(index::wrong(most, &most.to_string(), *span));
    if !most.range().within(0, i64::from(i32::MAX)) {
        let message = format!("`{}` may be up to `{most}`, which ranges from {} on", var.name(), most.range().lo);
        let finding = Diagnostic::error("K0293", message).label(*span, "this index");
        found.push(finding.help("the greatest value is a number or an expression of sizes, from 0 to 2147483646"));
    }
    of.for_each_load(&mut |access| {
        let buffer = &kernel.buffers[access.buffer];
        if kernel.buffers[kernel.storage(access.buffer)].space != Space::Global(Direction::Input) {
            let title = access_title(kernel, access);
            let message = format!("`{}` is made of `{title}`, but `{}` is not an input", var.name(), buffer.name);
            let finding = Diagnostic::error("K0293", message).label(*span, "this index");
            let finding = finding.label(buffer.span, "declared here");
            found.push(finding.help("an index is loaded when a CTA begins, so it is made of elements of inputs"));
        }
    });
    let of_scalar = |name: &str| kernel.scalar_dtype(name);
    if let Some(dtype) = of.dtype(&kernel.buffers, &of_scalar).filter(|dtype| !dtype.is_integer()) {
        let message = format!("`{}` is a value of {dtype}, but an index is an integer", var.name());
        let finding = Diagnostic::error("K0293", message).label(*span, "this index");
        found.push(finding.help("convert it, with .cast(I32)"));
    }
    // It is computed as a condition is: by every thread, and for all of them alike.
    let cond = Value::Op(ElementOp::Ge, [of.clone(), Value::Index(Expr::constant(0))].into());
    let branch = If { cond, then: Vec::new(), otherwise: Vec::new(), span: *span };
    let mut of_value = Vec::new();
    elements::check_condition(kernel, &branch, &[], &[], &mut of_value);
    found.extend(of_value.into_iter().map(|finding| match finding.code {
        "K0240" => {
            let message = format!("`{}` differs between threads of a CTA", var.name());
            let finding = Diagnostic::error("K0293", message).label(*span, "this index");
            finding.help(
                "an index is the same for all threads: make it of elements at block indices, sizes and other indices",
            )
        }
        "K0217" => finding.help("k.index is computed when a CTA begins, before all loops"),
        _ => finding,
    }));
}

/// Checks that a view whose extents are loaded lies inside of its tensor.
pub(super) fn check_view(kernel: &Kernel, handle: Handle<Buffer>, found: &mut Vec<Diagnostic>) {
    let view = &kernel.buffers[handle];
    let Some(shape) = &view.dynamic_shape else { return };
    let Some(loaded) = kernel.loaded_end(view) else { return };
    let is_parameter = view.view_of.is_none();
    let owner = &kernel.buffers[view.view_of.unwrap_or(handle)];
    let is_inside = |at: usize, of: usize| kernel.is_never_negative(&(owner.extent(of) - shape.extents[at].clone()));
    // The dimensions may be in another order.
    let is_part = |(start, strides): (i64, Vec<Expr>)| {
        let mut left: Vec<usize> = (0..strides.len()).collect();
        let mut is_found = |at: usize| {
            let place = left.iter().position(|of| strides[*of] == shape.strides[at] && is_inside(at, *of));
            place.map(|place| left.remove(place)).is_some()
        };
        start == 0 && strides.len() == shape.extents.len() && (0..shape.extents.len()).all(&mut is_found)
    };
    if is_parameter || !owner.strides().is_some_and(is_part) {
        let finding = wrong_view(view, owner, loaded, is_parameter);
        found.push(finding);
    }
}

fn wrong_view(view: &Buffer, owner: &Buffer, loaded: &LoadedIndex, is_parameter: bool) -> Diagnostic {
    let (name, end): (&str, (Span, &str)) = (&view.name, (loaded.span, "known only when the kernel runs"));
    let finding = |message: String| Diagnostic::error("K0293", message).label(view.span, "declared here");
    if is_parameter {
        let finding = finding(format!("the shape of the tensor `{name}` depends on `{}`", loaded.var.name()));
        let help = "declare it with the extents of the launch, and let a view end earlier: k.truncated(..)";
        return finding.label(end.0, end.1).help(help);
    }
    let finding = finding(format!("the view `{name}` may be larger than `{}`", owner.name));
    let shape = format!("it has the shape {}", owner.shape_title());
    let help = format!(
        "use k.truncated(..), and give `{}` the extent of the tensor as the most that it may be",
        loaded.var.name()
    );
    finding.label(owner.span, shape).label(end.0, end.1).help(help)
}
