//! Checks of `reduce_by`: its tuples, and the function that combines them.

use tilewright_diag::{Diagnostic, Span};

use super::ops::{different_dtypes, opaque, wrong_dimensions};
use super::values::{Names, Type, check_fits, may_store, type_of};
use crate::scalar::Scalar;
use crate::tile::attributes::ReduceBy;
use crate::tile::combiner::{Combiner, Parameter};
use crate::tile::kernel::{Kernel, ScalarParameter};
use crate::tile::op::Op;
use crate::tile::print::{tile_title, value_title};
use crate::tile::tiles::Tile;
use crate::tile::value::Value;

/// Adds what is wrong with a `reduce_by`, whose tiles are as many destinations as a tuple has values, then the sources.
pub(super) fn check(kernel: &Kernel, op: &Op, by: ReduceBy, tiles: &[Tile], found: &mut Vec<Diagnostic>) {
    let Some(combiner) = kernel.combiners.get(by.combiner) else { return };
    let (destinations, sources) = tiles.split_at(by.values.min(tiles.len()));
    if by.values == 0 {
        let message = "`reduce_by` of tuples without values";
        let finding = Diagnostic::error("K0211", message).label(op.span, "this op");
        found.push(finding.help("give it a destination and a source: k.reduce_by([m], [x], 1, ..)"));
        return;
    }
    let before = found.len();
    for (dst, src) in destinations.iter().zip(sources) {
        found.extend(different_dtypes(kernel, op, [dst, src]));
        found.extend(opaque(op, &kernel.buffers[src.buffer]));
        found.extend(narrow(kernel, op, src));
        found.extend(wrong_dimensions(op, by.dimensions, [dst, src]));
        found.extend(other_extents(kernel, op, [&sources[0], src]));
    }
    found.extend(shared_storage(kernel, op, destinations, sources));
    if found.len() == before {
        check_function(kernel, combiner, found);
    }
}

/// The error for elements that shuffles do not move: those of fewer than 4 bytes.
fn narrow(kernel: &Kernel, op: &Op, src: &Tile) -> Option<Diagnostic> {
    let from = &kernel.buffers[src.buffer];
    let finding = Diagnostic::error("K0233", format!("`reduce_by` combines {}; it needs 4 or 8 bytes", from.dtype))
        .label(op.span, "this op")
        .label(from.span, format!("`{}` is {}", from.name, from.dtype))
        .help("convert the elements first: k.map(t, |[i, j]| x.at((i, j)).cast(F32))");
    (!matches!(from.dtype.bytes(), 4 | 8)).then_some(finding)
}

/// The error for sources whose extents differ: a tuple has an element of each, at one index.
fn other_extents(kernel: &Kernel, op: &Op, [first, other]: [&Tile; 2]) -> Option<Diagnostic> {
    let [one, two] = [first, other].map(|tile| tile_title(kernel, tile));
    let message =
        format!("`reduce_by` of `{one}` with extents {:?} and `{two}` with extents {:?}", first.extents, other.extents);
    let finding = Diagnostic::error("K0219", message).label(op.span, "this op");
    let finding = finding.help("a tuple has an element of every source at the same index: give them the same extents");
    (first.extents != other.extents).then_some(finding)
}

/// The error for a destination in the storage of another operand: results are written while sources are still read.
fn shared_storage(kernel: &Kernel, op: &Op, destinations: &[Tile], sources: &[Tile]) -> Option<Diagnostic> {
    let storage = |tile: &Tile| kernel.storage(tile.buffer);
    let shared = destinations.iter().enumerate().find(|(at, dst)| {
        let mut others = destinations[..*at].iter().chain(sources);
        others.any(|other| storage(other) == storage(dst))
    })?;
    let owner = &kernel.buffers[storage(shared.1)];
    let finding = Diagnostic::error("K0223", format!("`reduce_by` within the storage of `{}`", owner.name))
        .label(op.span, "this op")
        .label(owner.span, "a destination and another operand live here");
    Some(finding.help("give every destination a fragment of its own"))
}

/// Checks the types of what the function computes, and that it uses its tuples alone.
fn check_function(kernel: &Kernel, combiner: &Combiner, found: &mut Vec<Diagnostic>) {
    let of_scalar = |scalar: &ScalarParameter| (scalar.name.clone(), Type::Of(scalar.dtype));
    let mut names: Names = kernel.scalars.iter().map(of_scalar).collect();
    for Parameter { names: both, dtype } in &combiner.parameters {
        names.extend(both.iter().map(|name| (name.clone(), Type::Of(*dtype))));
    }
    let values = combiner.named.iter().map(|(_, value)| value).chain(&combiner.results);
    if let Some(finding) = values.clone().find_map(|value| from_elsewhere(kernel, value, combiner.span)) {
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
fn from_elsewhere(kernel: &Kernel, value: &Value, span: Span) -> Option<Diagnostic> {
    let mut outside = None;
    value.for_each_load(&mut |access| outside = Some(Value::Load(access.clone())));
    value.for_each_expr(&mut |expr| {
        if expr.as_const().is_none() {
            outside = Some(Value::Index(expr.clone()));
        }
    });
    let title = value_title(kernel, &outside?);
    let message = format!("the function of `reduce_by` uses `{title}`, which is not a value of its tuples");
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
    let message = format!("{identity} cannot be represented in {}", parameter.dtype);
    let finding = Diagnostic::error("K0224", message).label(span, "the identity of this op");
    let help = format!("use a number that {} holds", parameter.dtype);
    (!identity.fits(parameter.dtype)).then(|| finding.help(help))
}
