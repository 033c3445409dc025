//! Checks of `reduce_by` and `scan_by`: their tuples, and the functions that combine them.

use tilewright_diag::{Diagnostic, Span};

use super::ops::{different_dtypes, different_extents, opaque, unknown_dimension, wrong_dimensions};
use super::values::{Names, Type, check_fits, may_store, type_of};
use crate::scalar::Scalar;
use crate::tile::combiner::{Combiner, Parameter};
use crate::tile::kernel::{Kernel, ScalarParameter};
use crate::tile::op::{Op, Tuples};
use crate::tile::print::{tile_title, value_title};
use crate::tile::tiles::Tile;
use crate::tile::value::Value;

/// Adds what is wrong with an op on tuples, whose tiles are as many destinations as a tuple has values, then the sources.
pub(super) fn check(kernel: &Kernel, op: &Op, tuples: Tuples, tiles: &[Tile], found: &mut Vec<Diagnostic>) {
    let Some(combiner) = kernel.combiners.get(tuples.combiner) else { return };
    let (destinations, sources) = tiles[..2 * tuples.values].split_at(tuples.values);
    let name = op.kind.info().name;
    if tuples.values == 0 {
        let message = format!("`{name}` of tuples without values");
        let finding = Diagnostic::error("K0211", message).label(op.span, "this op");
        found.push(finding.help(format!("give it a destination and a source: k.{name}([m], [x], 1, ..)")));
        return;
    }
    let before = found.len();
    for (dst, src) in destinations.iter().zip(sources) {
        found.extend(different_dtypes(kernel, op, [dst, src]));
        found.extend(opaque(op, &kernel.buffers[src.buffer]));
        found.extend(narrow(kernel, op, src));
        let wrong =
            wrong_extents(kernel, op, [dst, src]).into_iter().chain(other_extents(kernel, op, [&sources[0], src]));
        // All values of a tuple may have the same mistake.
        for finding in wrong {
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found.extend(shared_storage(kernel, op, destinations, sources));
    if let Some(order) = op.kind.scan_order() {
        super::carries::check(kernel, op, order.dimension, found);
    }
    if found.len() == before {
        check_function(kernel, (op, combiner), found);
    }
}

/// The error for a destination that has not the extents that its source and the op give it.
fn wrong_extents(kernel: &Kernel, op: &Op, [dst, src]: [&Tile; 2]) -> Option<Diagnostic> {
    match (op.kind.reduction(), op.kind.scan_order()) {
        (Some(reduction), _) => wrong_dimensions(op, reduction.dimensions, [dst, src]),
        (None, Some(order)) => different_extents(kernel, op, [dst, src]).or_else(|| unknown_dimension(op, order, src)),
        (None, None) => None,
    }
}

/// The error for elements that shuffles do not move: those of fewer than 4 bytes.
fn narrow(kernel: &Kernel, op: &Op, src: &Tile) -> Option<Diagnostic> {
    let from = &kernel.buffers[src.buffer];
    let message = format!("`{}` combines {}; it needs 4 or 8 bytes", op.kind.info().name, from.dtype);
    let finding = Diagnostic::error("K0233", message)
        .label(op.span, "this op")
        .label(from.span, format!("`{}` is {}", from.name, from.dtype))
        .help("convert the elements first: k.map(t, |[i, j]| x.at((i, j)).cast(F32))");
    (!matches!(from.dtype.bytes(), 4 | 8)).then_some(finding)
}

/// The error for sources whose extents differ: a tuple has an element of each, at one index.
fn other_extents(kernel: &Kernel, op: &Op, [first, other]: [&Tile; 2]) -> Option<Diagnostic> {
    let [one, two] = [first, other].map(|tile| tile_title(kernel, tile));
    let (name, extents) = (op.kind.info().name, [&first.extents, &other.extents]);
    let message =
        format!("`{name}` of `{one}` with extents {:?} and `{two}` with extents {:?}", extents[0], extents[1]);
    let finding = Diagnostic::error("K0219", message).label(op.span, "this op");
    let finding = finding.help("a tuple has an element of every source at the same index: give them the same extents");
    (first.extents != other.extents).then_some(finding)
}

/// The error for a destination in the storage of another operand: results are written while sources are still read. The
/// results of a scan may overwrite its own source, since each takes the place of its element.
fn shared_storage(kernel: &Kernel, op: &Op, destinations: &[Tile], sources: &[Tile]) -> Option<Diagnostic> {
    let storage = |tile: &Tile| kernel.storage(tile.buffer);
    let in_place = |at: usize, other: usize| op.kind.scan_order().is_some() && at == other;
    let shared = destinations.iter().enumerate().find(|(at, dst)| {
        let sources = sources.iter().enumerate();
        let others = sources.filter(|(other, src)| !(in_place(*at, *other) && same_tile(dst, src))).map(|(_, src)| src);
        let mut others = destinations[..*at].iter().chain(others);
        others.any(|other| storage(other) == storage(dst))
    })?;
    let owner = &kernel.buffers[storage(shared.1)];
    let message = format!("`{}` within the storage of `{}`", op.kind.info().name, owner.name);
    let finding = Diagnostic::error("K0223", message)
        .label(op.span, "this op")
        .label(owner.span, "a destination and another operand live here");
    Some(finding.help("give every destination a fragment of its own"))
}

fn same_tile(one: &Tile, other: &Tile) -> bool {
    (one.buffer, &one.starts, &one.extents) == (other.buffer, &other.starts, &other.extents)
}

/// Checks the types of what the function computes, and that it uses its tuples alone.
fn check_function(kernel: &Kernel, (op, combiner): (&Op, &Combiner), found: &mut Vec<Diagnostic>) {
    let of_scalar = |scalar: &ScalarParameter| (scalar.name.clone(), Type::Of(scalar.dtype));
    let mut names: Names = kernel.scalars.iter().map(of_scalar).collect();
    for Parameter { names: both, dtype } in &combiner.parameters {
        names.extend(both.iter().map(|name| (name.clone(), Type::Of(*dtype))));
    }
    let values = combiner.named.iter().map(|(_, value)| value).chain(&combiner.results);
    if let Some(finding) = values.clone().find_map(|value| from_elsewhere(kernel, op, value, combiner.span)) {
        found.push(finding);
        return;
    }
    for (name, value) in &combiner.named {
        match type_of(kernel, value, &names, combiner.span) {
            Ok(known) => names.push((name.clone(), known)),
            Err(finding) => return found.push(finding),
        }
    }
    for ((parameter, result), identity) in combiner.parameters.iter().zip(&combiner.results).zip(&combiner.identity) {
        found.extend(wrong_result(kernel, parameter, result, (&names, combiner.span)));
        found.extend(wrong_identity(parameter, *identity, combiner.span));
    }
}

/// The error for a value that is not computed from the two tuples.
fn from_elsewhere(kernel: &Kernel, op: &Op, value: &Value, span: Span) -> Option<Diagnostic> {
    let mut outside = None;
    value.for_each_load(&mut |access| outside = Some(Value::Load(access.clone())));
    value.for_each_expr(&mut |expr| {
        if expr.as_const().is_none() {
            outside = Some(Value::Index(expr.clone()));
        }
    });
    let title = value_title(kernel, &outside?);
    let name = op.kind.info().name;
    let message = format!("the function of `{name}` uses `{title}`, which is not a value of its tuples");
    let finding = Diagnostic::error("K0277", message).label(span, "in this function");
    Some(finding.help("compute with the two tuples, numbers and k.scalar parameters; put anything else into a tuple"))
}

fn wrong_result(
    kernel: &Kernel,
    parameter: &Parameter,
    result: &Value,
    (names, span): (&Names, Span),
) -> Option<Diagnostic> {
    let known = match type_of(kernel, result, names, span) {
        Ok(known) => known,
        Err(finding) => return Some(finding),
    };
    if may_store(known, parameter.dtype) {
        return check_fits(kernel, result, known, parameter.dtype, span);
    }
    let title = value_title(kernel, result);
    let message = format!("`{title}` is {}, but this value of the tuple is {}", known.title(), parameter.dtype);
    let finding = Diagnostic::error("K0233", message).label(span, "in this function");
    Some(finding.help("the function returns a tuple with the dtypes of its parameters; convert with .cast(..)"))
}

/// The error for a number of the identity that its dtype cannot represent.
fn wrong_identity(parameter: &Parameter, identity: Scalar, span: Span) -> Option<Diagnostic> {
    let (message, help) = super::ops::unrepresentable(identity, parameter.dtype)?;
    Some(Diagnostic::error("K0224", message).label(span, "the identity of this op").help(help))
}
