use tilewright_diag::{Diagnostic, counted, counted_as};
use tilewright_expr::Expr;
use tilewright_layout::DType;
use tilewright_layout::axis::Scope;

use super::buffer_errors::{no_atomic, no_buffer};
use crate::scalar::Scalar;
use crate::tile::atomic::{AtomicChange, AtomicOp};
use crate::tile::attributes::{Gemm, Reduce, ReduceKind, Scan, ScanOrder};
use crate::tile::buffer::{Buffer, Direction, Space};
use crate::tile::cluster::PAIR;
use crate::tile::dimensions::Dimensions;
use crate::tile::kernel::{Kernel, Loop};
use crate::tile::op::{Op, OpKind, Operand};
use crate::tile::print::tile_title;
use crate::tile::tiles::Tile;

pub(super) fn check(kernel: &Kernel, op: &Op, scope: &[Loop], found: &mut Vec<Diagnostic>) {
    let before = found.len();
    check_row(op, found);
    if found.len() > before {
        return;
    }
    if op.operands.iter().any(|tile| kernel.buffers.get(tile.buffer).is_none()) {
        found.push(no_buffer(op.span));
        return;
    }
    for (operand, tile) in op.tiles() {
        check_operand(kernel, op, operand, tile, scope, found);
    }
    let is_region = |tile: &Tile| {
        tile.extents.len() == kernel.buffers[tile.buffer].shape.len() && tile.extents.iter().all(|extent| *extent > 0)
    };
    if !op.operands.iter().all(is_region) {
        return;
    }
    check_kind(kernel, op, found);
    if found.len() == before {
        super::warps::check(kernel, op, found);
    }
}

/// The checks for ops of one kind.
fn check_kind(kernel: &Kernel, op: &Op, found: &mut Vec<Diagnostic>) {
    match (op.kind, &op.operands[..]) {
        (OpKind::Copy | OpKind::CopyAsync, [dst, src]) => {
            found.extend(different_dtypes(kernel, op, [dst, src]));
            let differ = different_extents(kernel, op, [dst, src]);
            found.extend(differ.map(|finding| transposable(kernel, dst, src, finding)));
            found.extend(aliasing(kernel, op, [dst, src]));
        }
        (OpKind::Fill(value), [dst]) => found.extend(no_value_of(kernel, op, value, dst)),
        (OpKind::PermuteLayout, [dst, src]) => {
            found.extend(different_dtypes(kernel, op, [dst, src]));
            found.extend(different_extents(kernel, op, [dst, src]));
        }
        (OpKind::ConvertLayout, [dst, src]) => check_conversion(kernel, op, [dst, src], found),
        (OpKind::Reduce(reduce), [dst, src]) => check_reduction(kernel, op, reduce, [dst, src], found),
        (OpKind::ReduceBy(_) | OpKind::ScanBy(_), tiles) => {
            op.kind.tuples().into_iter().for_each(|of| super::tuples::check(kernel, op, of, tiles, found));
        }
        (OpKind::Scan(scan), [dst, src, ..]) => check_scan(kernel, op, scan, [dst, src], found),
        (OpKind::Gemm(gemm) | OpKind::GemmAsync(gemm), [c, a, b]) => check_product(kernel, op, gemm, [c, a, b], found),
        (OpKind::Atomic(by), [dst, src]) => {
            found.extend(different_dtypes(kernel, op, [dst, src]));
            found.extend(different_extents(kernel, op, [dst, src]));
            check_atomic(kernel, op, by, [dst, src], found);
        }
        // `check_row` reports other numbers of operands.
        (
            OpKind::Copy
            | OpKind::CopyAsync
            | OpKind::Fill(_)
            | OpKind::PermuteLayout
            | OpKind::ConvertLayout
            | OpKind::Reduce(_)
            | OpKind::Scan(_)
            | OpKind::Gemm(_)
            | OpKind::GemmAsync(_)
            | OpKind::Atomic(_),
            _,
        ) => {}
    }
}

/// Checks arity and scope against the op's row.
fn check_row(op: &Op, found: &mut Vec<Diagnostic>) {
    let (info, arity) = (op.kind.info(), op.kind.arity());
    let values = op.kind.tuples().map_or(1, |tuples| tuples.values);
    if op.kind.scan_order().is_some_and(|order| order.has_carry) && op.carries().len() != values {
        let counts = [counted_as(op.carries().len(), "carry", "carries"), counted(values, "value")];
        let message = format!("{} for `{}` of {}", counts[0], info.name, counts[1]);
        let finding = Diagnostic::error("K0211", message).label(op.span, "this op");
        found.push(finding.help("give a carry for each value: .carry(c), or .carry([a, b]) for tuples of two"));
    } else if op.operands.len() != arity {
        let message = format!("`{}` has arity {arity}, not {}", info.name, op.operands.len());
        found.push(Diagnostic::error("K0211", message).label(op.span, "this op"));
    }
    if !info.scopes.contains(&op.scope) {
        let name = |scope: &Scope| if *scope == Scope::Cta { "CTA" } else { scope.name() };
        let legal: Vec<&str> = info.scopes.iter().map(name).collect();
        found.push(
            Diagnostic::error("K0212", format!("`{}` cannot be executed by a {}", info.name, name(&op.scope)))
                .label(op.span, "this op")
                .help(format!("it can be executed by a {}", legal.join(" or a "))),
        );
    }
}

fn check_operand(
    kernel: &Kernel,
    op: &Op,
    operand: &Operand,
    tile: &Tile,
    scope: &[Loop],
    found: &mut Vec<Diagnostic>,
) {
    let name = op.kind.info().name;
    let buffer = &kernel.buffers[tile.buffer];
    if buffer.space == Space::Global(Direction::Input) && operand.effect.writes() {
        found.push(
            Diagnostic::error("K0214", format!("`{name}` writes the input `{}`", buffer.name))
                .label(op.span, "written here")
                .label(buffer.span, "declared as an input here")
                .help("declare it with k.output, or with k.inout if it is updated; or write another buffer"),
        );
    }
    if tile.starts.len() != buffer.shape.len() || tile.extents.len() != buffer.shape.len() {
        let message = format!(
            "{} for `{}`, which has {}",
            counted_as(tile.starts.len(), "index", "indices"),
            buffer.name,
            counted(buffer.shape.len(), "dimension")
        );
        found.push(
            Diagnostic::error("K0215", message)
                .label(op.span, "in this op")
                .label(buffer.span, format!("declared with shape {}", buffer.shape_title()))
                .help("give one index or range per dimension; `..` takes a whole dimension"),
        );
        return;
    }
    check_variables(kernel, op, tile, scope, found);
    for (dimension, (start, extent)) in tile.starts.iter().zip(&tile.extents).enumerate() {
        let range = start.range();
        let most = buffer.shape[dimension];
        if *extent < 1 {
            found.push(empty_region(kernel, op, tile, dimension));
            continue;
        }
        // A tile may extend beyond a bound known only at launch: what is out of bounds is masked.
        let hangs_over = buffer.dynamic_shape.is_some() && kernel.is_never_negative(start);
        if !hangs_over && (range.lo < 0 || range.hi > most.saturating_sub(*extent)) {
            let message = format!(
                "`{}` reaches index {} of dimension {dimension} (extent {})",
                tile_title(kernel, tile),
                if range.lo < 0 { range.lo } else { range.hi.saturating_add(extent.saturating_sub(1)) },
                buffer.extent(dimension),
            );
            found.push(
                Diagnostic::error("K0216", message)
                    .label(op.span, "in this op")
                    .label(buffer.span, format!("declared with shape {}", buffer.shape_title()))
                    .help(inside_help(buffer, start, *extent, most)),
            );
        }
    }
}

/// The help on keeping a region in bounds of a dimension of extent `most`.
fn inside_help(buffer: &Buffer, start: &Expr, extent: i64, most: i64) -> String {
    let range = start.range();
    if extent == 1 && range.lo >= 0 && range.constant().is_none() && !matches!(buffer.space, Space::Global(_)) {
        let start = if start.operands().is_some() { format!("({start})") } else { start.to_string() };
        return format!(
            "a region must lie inside its buffer; to cycle through stages, take the index `{start} % {most}`"
        );
    }
    match buffer.space {
        Space::Global(_) => {
            "a region must lie inside its tensor; elements beyond an edge, such as those of a halo, are read in k.map or \
             k.parallel, where x.at(..).or_zero() is 0 outside"
                .to_string()
        }
        Space::Shared | Space::Fragment | Space::Tensor => {
            "a region must lie inside its buffer: change where it begins, or make the buffer larger".to_string()
        }
    }
}

/// The error for a region without elements, such as one of a range that ends before it begins.
fn empty_region(kernel: &Kernel, op: &Op, tile: &Tile, dimension: usize) -> Diagnostic {
    let (start, extent) = (&tile.starts[dimension], tile.extents[dimension]);
    let (title, end) = (tile_title(kernel, tile), start + extent);
    let message = format!("`{title}` is empty: the range {start}..{end} of dimension {dimension} contains no index");
    let help = if extent < 0 { "write the smaller number first" } else { "take one index or more" };
    Diagnostic::error("K0264", message).label(op.span, "in this op").help(help)
}

/// Checks that every variable of an index is a hardware index or size of this kernel, or of an enclosing loop.
fn check_variables(kernel: &Kernel, op: &Op, tile: &Tile, scope: &[Loop], found: &mut Vec<Diagnostic>) {
    let mut known = vec![kernel.warp()];
    known.extend(kernel.vars_of_ctas());
    for start in &tile.starts {
        let mut unknown = None;
        start.for_each_var(&mut |var| {
            if !known.contains(var) && !scope.iter().any(|l| l.counter.var == *var) {
                unknown = Some(var.clone());
            }
        });
        let title = tile_title(kernel, tile);
        found.extend(super::index::wrong(start, &title, op.span));
        found.extend(unknown.map(|var| super::index::undefined(kernel, &var, &title).label(op.span, "in this op")));
    }
}

/// The help for an op between two dtypes.
const CAST_HELP: &str = "convert the values in k.parallel, with .cast(..)";

/// The error for different dtypes, since elements are moved without conversion.
pub(super) fn different_dtypes(kernel: &Kernel, op: &Op, [dst, src]: [&Tile; 2]) -> Option<Diagnostic> {
    let (name, to, from) = (op.kind.info().name, &kernel.buffers[dst.buffer], &kernel.buffers[src.buffer]);
    let finding =
        Diagnostic::error("K0218", format!("`{name}` from {} to {}: the dtypes differ", from.dtype, to.dtype))
            .label(op.span, "this op")
            .label(from.span, format!("`{}` is {}", from.name, from.dtype))
            .label(to.span, format!("`{}` is {}", to.name, to.dtype))
            .help(CAST_HELP);
    (to.dtype != from.dtype).then_some(finding)
}

/// The error for different extents, since every element needs a counterpart on the other side.
pub(super) fn different_extents(kernel: &Kernel, op: &Op, [dst, src]: [&Tile; 2]) -> Option<Diagnostic> {
    if dst.non_unit_extents() == src.non_unit_extents() {
        return None;
    }
    let elements = |tile: &Tile| format!("`{}` has {}", tile_title(kernel, tile), counted(tile.elements(), "element"));
    let message = format!("`{}` from extents {:?} to {:?}", op.kind.info().name, src.extents, dst.extents);
    let finding = Diagnostic::error("K0219", message)
        .label(op.span, "this op")
        .note(elements(src))
        .note(elements(dst))
        .help("take tiles whose extents agree; dimensions of extent 1 are ignored");
    let to_declare = [dst, src].into_iter().find_map(|tile| {
        let other = if std::ptr::eq(tile, dst) { src } else { dst };
        shape_help(&kernel.buffers[tile.buffer], tile, other)
    });
    Some(to_declare.into_iter().fold(finding, Diagnostic::help))
}

/// The help for a whole fragment whose layout has more dimensions than the tile `other` of as many elements: the shape
/// can be declared apart from the layout.
fn shape_help(buffer: &Buffer, tile: &Tile, other: &Tile) -> Option<String> {
    let is_split = buffer.space == Space::Fragment
        && buffer.layout.is_some()
        && tile.extents == buffer.shape
        && tile.elements() == other.elements()
        && tile.extents.len() > other.extents.len();
    is_split.then(|| {
        let (name, shape, extents) = (&buffer.name, &other.extents, &buffer.shape);
        format!("to use `{name}` as {shape:?}, declare its shape before its layout: ({shape:?}, S({extents:?}, ..))")
    })
}

/// Adds help on how to transpose, if the extents suggest that a transpose is intended.
fn transposable(kernel: &Kernel, dst: &Tile, src: &Tile, finding: Diagnostic) -> Diagnostic {
    match (&dst.non_unit_extents()[..], &src.non_unit_extents()[..]) {
        ([a, b], [c, d]) if a == d && b == c => finding.help(transposed_help(kernel, dst, src)),
        _ => finding,
    }
}

/// How a copy transposes: by a view of memory with exchanged strides.
fn transposed_help(kernel: &Kernel, dst: &Tile, src: &Tile) -> String {
    let in_memory = |tile: &&Tile| kernel.buffers[tile.buffer].space != Space::Fragment;
    let Some(tile) = [dst, src].into_iter().find(in_memory) else {
        return "to transpose, copy through a tile in shared memory and a view of it with exchanged strides"
            .to_string();
    };
    let buffer = &kernel.buffers[tile.buffer];
    let shown = match &tile.non_unit_extents()[..] {
        [rows, columns] if buffer.dynamic_shape.is_none() && buffer.shape == [*rows, *columns] => {
            format!("S([{columns}, {rows}], [1, {columns}])")
        }
        _ => "..".to_string(),
    };
    let name = &buffer.name;
    format!(
        "to transpose, use a view of `{name}` whose dimensions are exchanged: k.view(\"{name}_t\", {name}, {shown})"
    )
}

/// The errors for operands that are in memory, or parts of fragments.
fn not_whole_fragments(kernel: &Kernel, op: &Op, tiles: [&Tile; 2], instead: &str) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (at, tile) in tiles.iter().enumerate() {
        let buffer = &kernel.buffers[tile.buffer];
        let is_whole = buffer.space == Space::Fragment && tile.extents == buffer.shape;
        if !is_whole && !tiles[..at].contains(tile) {
            let (name, title) = (op.kind.info().name, tile_title(kernel, tile));
            let message = format!("`{name}` of `{title}`, which is not a whole fragment");
            let finding = Diagnostic::error("K0270", message).label(op.span, "this op");
            let help = format!("both operands are whole fragments; {instead}");
            found.push(finding.label(buffer.span, "declared here").help(help));
        }
    }
    found
}

/// Checks that both operands are whole fragments of one dtype and shape, and not the same registers.
fn check_conversion(kernel: &Kernel, op: &Op, [dst, src]: [&Tile; 2], found: &mut Vec<Diagnostic>) {
    found.extend(different_dtypes(kernel, op, [dst, src]));
    let view = "k.view gives a fragment another shape";
    found.extend(different_extents(kernel, op, [dst, src]).map(|finding| finding.help(view)));
    found.extend(not_whole_fragments(kernel, op, [dst, src], "use copy for tiles in memory"));
    let owner = &kernel.buffers[kernel.storage(dst.buffer)];
    if kernel.storage(dst.buffer) == kernel.storage(src.buffer) {
        let finding = Diagnostic::error("K0223", format!("`convert_layout` within the storage of `{}`", owner.name))
            .label(op.span, "this op")
            .label(owner.span, "both operands live here")
            .help("convert to another fragment");
        found.push(finding);
    }
}

fn check_reduction(kernel: &Kernel, op: &Op, reduce: Reduce, [dst, src]: [&Tile; 2], found: &mut Vec<Diagnostic>) {
    found.extend(different_dtypes(kernel, op, [dst, src]));
    found.extend(opaque(op, &kernel.buffers[src.buffer]));
    found.extend(bits_of_floats(op, reduce.kind, &kernel.buffers[src.buffer]));
    found.extend(wrong_dimensions(op, reduce.dimensions, [dst, src]));
}

/// The error for a destination that has not the extents of the source without the dimensions that are reduced, apart from
/// those of 1.
pub(super) fn wrong_dimensions(op: &Op, reduced: Dimensions, [dst, src]: [&Tile; 2]) -> Option<Diagnostic> {
    let (name, dimensions) = (op.kind.info().name, src.extents.len());
    let is_there = |dimension: usize| dimension < dimensions;
    if reduced.is_empty() || !reduced.iter().all(is_there) {
        let message = format!("`{name}` over {reduced} of extents {:?}", src.extents);
        let help = match dimensions {
            1 => "the source has one dimension, number 0".to_string(),
            _ => format!("the dimensions of the source are numbered 0 to {}", dimensions - 1),
        };
        return Some(Diagnostic::error("K0219", message).label(op.span, "this op").help(help));
    }
    if src.non_unit_extents_without(reduced) == Some(dst.non_unit_extents()) {
        return None;
    }
    let (to, from) = (&dst.extents, &src.extents);
    let message = format!("`{name}` over {reduced} from extents {from:?} to {to:?}");
    let finding = Diagnostic::error("K0219", message)
        .label(op.span, "this op")
        .help("the destination must have the extents of the source without that dimension, or with 1 for it");
    Some(match from.contains(&1) {
        true => finding.help("dimensions of the source are counted from 0, including those of extent 1"),
        false => finding,
    })
}

/// The error for combining the bits of floats.
fn bits_of_floats(op: &Op, kind: ReduceKind, from: &Buffer) -> Option<Diagnostic> {
    let (name, dtype) = (op.kind.info().name, from.dtype);
    let message = format!("`{name}` with `{}` of {dtype}; it needs integers", kind.name());
    let finding = Diagnostic::error("K0233", message).label(op.span, "this op");
    let finding = finding.label(from.span, format!("`{}` is {dtype}", from.name));
    let help = format!("compare first, and {name} numbers: k.map(t, |[i, j]| x.at((i, j)).lt(0).select(1, 0))");
    (kind.is_bitwise() && dtype.is_float()).then(|| finding.help(help))
}

/// Checks that both operands of a scan have the same extents, and that the dimension exists.
fn check_scan(kernel: &Kernel, op: &Op, scan: Scan, [dst, src]: [&Tile; 2], found: &mut Vec<Diagnostic>) {
    found.extend(different_dtypes(kernel, op, [dst, src]));
    found.extend(different_extents(kernel, op, [dst, src]));
    found.extend(opaque(op, &kernel.buffers[src.buffer]));
    found.extend(bits_of_floats(op, scan.kind, &kernel.buffers[src.buffer]));
    found.extend(unknown_dimension(op, scan.order, src));
    super::carries::check(kernel, op, scan.order.dimension, found);
}

/// The error for a scan along a dimension that its source has not.
pub(super) fn unknown_dimension(op: &Op, order: ScanOrder, src: &Tile) -> Option<Diagnostic> {
    let message = format!("`{}` along dimension {} of extents {:?}", op.kind.info().name, order.dimension, src.extents);
    let last = src.extents.len().saturating_sub(1);
    let finding = Diagnostic::error("K0219", message).label(op.span, "this op");
    let help = format!("the dimensions are numbered from 0 to {last}");
    (order.dimension >= src.extents.len()).then(|| finding.help(help))
}

/// The error for computing with opaque elements.
pub(super) fn opaque(op: &Op, from: &Buffer) -> Option<Diagnostic> {
    let finding = Diagnostic::error("K0233", format!("`{}` computes with {}", op.kind.info().name, from.dtype))
        .label(op.span, "this op")
        .label(from.span, format!("`{}` is {}", from.name, from.dtype))
        .help("opaque elements can be moved, but not computed with");
    from.dtype.is_opaque().then_some(finding)
}

/// The error for a product that is added to the storage of one of its factors, which threads still read.
fn product_of_itself(kernel: &Kernel, op: &Op, [c, a, b]: [&Tile; 3]) -> Option<Diagnostic> {
    let sums = kernel.storage(c.buffer);
    let factor = [a, b].into_iter().find(|factor| kernel.storage(factor.buffer) == sums)?;
    let (owner, title) = (&kernel.buffers[sums], tile_title(kernel, factor));
    let finding = Diagnostic::error("K0223", format!("`gemm` within the storage of `{}`", owner.name))
        .label(op.span, format!("this op stores there while it reads the factor `{title}`"))
        .label(owner.span, "both operands live here");
    Some(finding.help("store the product in another fragment or buffer, then copy it"))
}

/// Checks that rows, columns and depth of the three matrices agree.
fn check_product(kernel: &Kernel, op: &Op, gemm: Gemm, [c, a, b]: [&Tile; 3], found: &mut Vec<Diagnostic>) {
    found.extend(product_of_itself(kernel, op, [c, a, b]));
    found.extend(disagreeing_matrices(op, gemm, [c, a, b]));
    let (left, right) = (&kernel.buffers[a.buffer], &kernel.buffers[b.buffer]);
    if left.dtype != right.dtype {
        found.push(
            Diagnostic::error("K0218", format!("`gemm` of {} and {}: the dtypes differ", left.dtype, right.dtype))
                .label(op.span, "this op")
                .label(left.span, format!("`{}` is {}", left.name, left.dtype))
                .label(right.span, format!("`{}` is {}", right.name, right.dtype))
                .help("convert one of them in k.parallel, with .cast(..), into a buffer of the other dtype"),
        );
    } else if (left.dtype == DType::F32) != gemm.tf32 {
        let (message, help) = match gemm.tf32 {
            false => (
                "there is no `gemm` of f32 in full precision".to_string(),
                "add .tf32() to round both matrices to 10 bits of mantissa, or convert them to another dtype",
            ),
            true => (format!("`gemm` of {} cannot use tf32", left.dtype), "remove .tf32(): it is for matrices of f32"),
        };
        found.push(
            Diagnostic::error("K0245", message)
                .label(op.span, "this op")
                .label(left.span, format!("`{}` is {}", left.name, left.dtype))
                .help(help),
        );
    }
}

/// The error for matrices of a product that do not fit each other.
fn disagreeing_matrices(op: &Op, gemm: Gemm, [c, a, b]: [&Tile; 3]) -> Option<Diagnostic> {
    let is_transposed = [false, gemm.transpose_a, gemm.transpose_b];
    let written = |at: usize| {
        let prefix = if is_transposed[at] { "the transpose of " } else { "" };
        format!("{prefix}{:?}", [c, a, b][at].extents)
    };
    let message = format!("`gemm` of {} and {} into {}", written(1), written(2), written(0));
    let finding = Diagnostic::error("K0219", message).label(op.span, "this op");
    let [Some(product), Some(left), Some(right)] = [c, a, b].map(Tile::matrix) else {
        let help =
            "a matrix has two dimensions besides those of extent 1; take one index of any other: x.sub((0, .., ..))";
        return Some(finding.help(help));
    };
    let turned = |[rows, columns]: [i64; 2], is_turned: bool| if is_turned { [columns, rows] } else { [rows, columns] };
    let differences = |transpose_a: bool, transpose_b: bool| {
        let ([m, k], [deep, n]) = (turned(left, transpose_a), turned(right, transpose_b));
        let n = if gemm.pair { n * PAIR } else { n };
        let all =
            [("M", ["c", "a"], [product[0], m]), ("N", ["c", "b"], [product[1], n]), ("K", ["a", "b"], [k, deep])];
        let differ = all.into_iter().filter(|(_, _, [one, other])| one != other);
        differ
            .map(|(name, of, [one, other])| format!("{name} is {one} in {} and {other} in {}", of[0], of[1]))
            .collect()
    };
    let found: Vec<String> = differences(gemm.transpose_a, gemm.transpose_b);
    if found.is_empty() {
        return None;
    }
    let finding = found.into_iter().fold(finding, Diagnostic::note);
    let finding =
        finding.help("c is M x N, a is M x K, b is K x N; with transpose_a, a is K x M; with transpose_b, b is N x K");
    let finding = if gemm.pair { finding.help("with pair, each CTA has half of N in b") } else { finding };
    let others = [(false, true), (true, false), (true, true), (false, false)];
    let fits = others.into_iter().find(|(of_a, of_b)| differences(*of_a, *of_b).is_empty());
    Some(match fits {
        None => finding,
        Some((false, false)) => finding.help("they fit if none is transposed"),
        Some((transpose_a, transpose_b)) => {
            let mut set = Vec::new();
            set.extend(transpose_a.then_some("transpose_a: true"));
            set.extend(transpose_b.then_some("transpose_b: true"));
            finding.help(format!("they fit with .with(Gemm {{ {}, ..Gemm::PLAIN }})", set.join(", ")))
        }
    })
}

/// `copy` reads and writes in any order, so its operands must not share storage.
fn aliasing(kernel: &Kernel, op: &Op, [dst, src]: [&Tile; 2]) -> Option<Diagnostic> {
    let owner = &kernel.buffers[kernel.storage(dst.buffer)];
    let finding = Diagnostic::error("K0223", format!("`copy` within the storage of `{}`", owner.name))
        .label(op.span, "this op")
        .label(owner.span, "both operands live here")
        .help("to move a tile in place, let a warp execute permute_layout, or copy through another buffer");
    (kernel.storage(dst.buffer) == kernel.storage(src.buffer)).then_some(finding)
}

/// Checks that the destination's dtype has the operation, and that one side is a fragment, whose threads execute it, or shared
/// memory that may be combined with a tensor.
fn check_atomic(kernel: &Kernel, op: &Op, by: AtomicOp, [dst, src]: [&Tile; 2], found: &mut Vec<Diagnostic>) {
    found.extend(no_atomic(kernel, AtomicChange::Combine(by), dst.buffer, op.span));
    let in_memory = |tile: &Tile| kernel.buffers[tile.buffer].space != Space::Fragment;
    if in_memory(dst) && in_memory(src) && !kernel.is_to_tensor(op) {
        let title = kernel.op_title(op);
        let message = format!(
            "`{title}` combines memory with memory; only shared memory can be combined, and only with a tensor"
        );
        let of = tile_title(kernel, src);
        found.push(
            Diagnostic::error("K0262", message)
                .label(op.span, "this op")
                .help(format!("copy `{of}` into a fragment and use that, or do it element by element in k.parallel")),
        );
    }
}

/// The error for a constant that the destination's dtype cannot represent.
fn no_value_of(kernel: &Kernel, op: &Op, value: Scalar, dst: &Tile) -> Option<Diagnostic> {
    let buffer = &kernel.buffers[dst.buffer];
    let (message, help) = unrepresentable(value, buffer.dtype)?;
    let finding = Diagnostic::error("K0224", message)
        .label(op.span, "this op")
        .label(buffer.span, format!("`{}` is {}", buffer.name, buffer.dtype))
        .help(help);
    Some(finding)
}

/// The message and the help for a constant that a dtype cannot represent; `None` if it can.
pub(super) fn unrepresentable(value: Scalar, dtype: DType) -> Option<(String, String)> {
    if value.fits(dtype) {
        return None;
    }
    let integer = match value {
        Scalar::Float(number) if !dtype.is_float() && number.fract() == 0.0 => Some(Scalar::Int(number as i64)),
        Scalar::Float(_) | Scalar::Int(_) => None,
    };
    Some(match integer.filter(|integer| integer.fits(dtype)) {
        Some(integer) => (format!("{value} is a float, but this is {dtype}"), format!("write an integer: {integer}")),
        None => (
            format!("{value} cannot be represented in {dtype}"),
            format!("use a number that {dtype} holds; nothing is converted"),
        ),
    })
}
