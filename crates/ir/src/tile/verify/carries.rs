//! Checks of the carries of `scan` and `scan_by`.

use tilewright_diag::Diagnostic;

use crate::tile::attributes::combined_in;
use crate::tile::dimensions::Dimensions;
use crate::tile::kernel::Kernel;
use crate::tile::op::Op;
use crate::tile::print::tile_title;
use crate::tile::tiles::Tile;

/// Adds what is wrong with the carries of a scan along a dimension that its sources have.
pub(super) fn check(kernel: &Kernel, op: &Op, dimension: usize, found: &mut Vec<Diagnostic>) {
    let carries = op.carries();
    let (destinations, sources) = op.operands[..op.operands.len() - carries.len()].split_at(carries.len());
    for (at, (carry, src)) in carries.iter().zip(sources).enumerate() {
        found.extend(wrong_extents(kernel, op, dimension, [carry, src]));
        found.extend(wrong_dtype(kernel, op, [carry, src]));
        let others = carries[..at].iter().chain(destinations).chain(sources);
        found.extend(shared_storage(kernel, op, carry, others));
    }
}

fn wrong_extents(kernel: &Kernel, op: &Op, dimension: usize, [carry, src]: [&Tile; 2]) -> Option<Diagnostic> {
    let along = Dimensions::from(dimension);
    if src.non_unit_extents_without(along).is_none_or(|rows| rows == carry.non_unit_extents()) {
        return None;
    }
    let (name, rows) = (op.kind.info().name, along.left(&src.extents));
    let (of, to) = (&carry.extents, if rows.is_empty() { vec![1] } else { rows });
    let message = format!(
        "the carry `{}` has extents {of:?}; `{name}` along dimension {dimension} of extents {:?} has a carry of {to:?}",
        tile_title(kernel, carry),
        src.extents
    );
    let finding = Diagnostic::error("K0219", message).label(op.span, "this op");
    Some(finding.help(format!("a carry has one element for each row: give it the extents {to:?}")))
}

/// The error for a carry of a dtype that the elements are neither of nor combined in.
fn wrong_dtype(kernel: &Kernel, op: &Op, [carry, src]: [&Tile; 2]) -> Option<Diagnostic> {
    let [carry, from] = [carry, src].map(|tile| &kernel.buffers[tile.buffer]);
    let legal = [from.dtype, combined_in(from.dtype)];
    let help = match legal {
        [of, made_in] if of != made_in => format!("make it {of}, or {made_in}, in which they are combined"),
        [of, _] => format!("make it {of}"),
    };
    let message = format!("the carry `{}` is {}, but elements are {}", carry.name, carry.dtype, from.dtype);
    let finding = Diagnostic::error("K0233", message)
        .label(op.span, "this op")
        .label(carry.span, format!("`{}` is {}", carry.name, carry.dtype))
        .help(help);
    (!legal.contains(&carry.dtype)).then_some(finding)
}

/// The error for a carry in the storage of another operand.
fn shared_storage<'a>(
    kernel: &Kernel,
    op: &Op,
    carry: &Tile,
    mut others: impl Iterator<Item = &'a Tile>,
) -> Option<Diagnostic> {
    let storage = |tile: &Tile| kernel.storage(tile.buffer);
    others.find(|other| storage(other) == storage(carry))?;
    let owner = &kernel.buffers[storage(carry)];
    let finding =
        Diagnostic::error("K0223", format!("`{}` within the storage of `{}`", op.kind.info().name, owner.name))
            .label(op.span, "this op")
            .label(owner.span, "a carry and another operand live here");
    Some(finding.help("give every carry a fragment of its own"))
}
