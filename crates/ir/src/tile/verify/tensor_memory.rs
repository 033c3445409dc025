//! Tensor memory holds sums of asynchronous products: these write it, and copies to fragments read it.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Expr;

use crate::arena::Handle;
use crate::scalar::Scalar;
use crate::target::Target;
use crate::thread::{COLUMN_BYTES, TENSOR_COLUMNS, TENSOR_LANES};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Loop, Stmt};
use crate::tile::op::{Effect, Op, OpKind};
use crate::tile::print::tile_title;
use crate::tile::role::WARPS_OF_A_WARPGROUP;
use crate::tile::tiles::Tile;

pub(super) fn check(kernel: &Kernel, target: Target, found: &mut Vec<Diagnostic>) {
    let in_tensor_memory = || kernel.buffers.iter().map(|(_, buffer)| buffer).filter(|of| of.space == Space::Tensor);
    let Some(first) = in_tensor_memory().next() else { return };
    if target != Target::Sm100a {
        let message = format!("`{}` is in tensor memory, which {target} does not have", first.name);
        let finding = Diagnostic::error("K0286", message).label(first.span, "declared here");
        found.push(finding.help("on sm_90a, the sums of gemm_async are in a fragment: k.fragment(..)"));
        return;
    }
    in_tensor_memory().for_each(|buffer| found.extend(wrong_shape(buffer)));
    let columns = kernel.tensor_columns();
    if !columns.fit() {
        let message = format!("{} columns of tensor memory, but an SM has {TENSOR_COLUMNS}", columns.taken);
        let finding = Diagnostic::error("K0286", message).label(first.span, "the first buffer in tensor memory");
        found.push(finding.help("use fewer stages or narrower sums: a column has 32 bits of each of 128 rows"));
    }
    kernel.ops.iter().for_each(|(_, op)| found.extend(wrong_use(kernel, op)));
    without_products(kernel, &kernel.body, found);
    rewritten_factors(kernel, found);
    for (_, parallel) in kernel.parallels.iter() {
        parallel.body.iter().for_each(|element| by_element(kernel, element, found));
    }
}

/// The error for a buffer that is not 128 rows of columns of 32 bits.
fn wrong_shape(buffer: &Buffer) -> Option<Diagnostic> {
    let bytes = buffer.dtype.bytes();
    let is_right =
        matches!(buffer.shape[..], [TENSOR_LANES, columns] if columns * bytes % 32 == 0) && bytes <= COLUMN_BYTES;
    let message = format!("`{}` has shape {:?} of {}", buffer.name, buffer.shape, buffer.dtype);
    let help = format!(
        "in tensor memory are {TENSOR_LANES} rows of a multiple of 32 bytes: sums of f32 or i32, or a left factor of products"
    );
    (!is_right).then(|| Diagnostic::error("K0286", message).label(buffer.span, "declared here").help(help))
}

/// The error for an op that tensor memory is not for.
fn wrong_use(kernel: &Kernel, op: &Op) -> Option<Diagnostic> {
    let in_tensor_memory = |(_, tile): &(usize, &Tile)| kernel.is_in_tensor_memory(tile.buffer);
    op.operands.iter().enumerate().filter(in_tensor_memory).find_map(|operand| wrong_operand(kernel, op, operand))
}

/// The error for an operand in tensor memory.
fn wrong_operand(kernel: &Kernel, op: &Op, (place, tile): (usize, &Tile)) -> Option<Diagnostic> {
    let title = tile_title(kernel, tile);
    let wrong = |message: String| Diagnostic::error("K0286", message).label(op.span, "this op");
    let is_zero = |value: Scalar| matches!(value, Scalar::Int(0)) || value == Scalar::Float(0.0);
    match (op.kind, place) {
        (OpKind::GemmAsync(_), 0) if kernel.buffers[tile.buffer].dtype.bytes() != COLUMN_BYTES => {
            let message = format!("the sums `{title}` are of {}", kernel.buffers[tile.buffer].dtype);
            return Some(wrong(message).help("sums in tensor memory are of f32 or i32"));
        }
        (OpKind::GemmAsync(_), 0 | 1) | (OpKind::Copy, 0 | 1) => {}
        (OpKind::GemmAsync(_), _) => {
            let message = format!("`{title}` is in tensor memory, and is the right factor");
            return Some(wrong(message).help(
                "only the left factor may be there: compute the transposed product, or pass it in shared memory",
            ));
        }
        (OpKind::Fill(value), 0) if is_zero(value) && multiplies_into(kernel, op, tile.buffer) => {}
        (OpKind::Fill(value), 0) if is_zero(value) => {
            let help = "copy a fragment of zeros to it: k.fill(part, 0.0), k.copy(sums.sub((.., at(0, 32))), part)";
            let message = format!("`{title}` is in tensor memory, and is filled by a role that adds no products to it");
            return Some(wrong(message).help(help));
        }
        (OpKind::Fill(value), 0) => {
            let help = "fill it with 0, which lets the next product replace it, and add the rest where it is read";
            return Some(wrong(format!("`{title}` is in tensor memory, and is filled with {value}")).help(help));
        }
        _ => {
            let message = format!("`{}` does not work on `{title}`, which is in tensor memory", op.kind.info().name);
            let help = "gemm_async adds to it, k.fill(.., 0) lets the next product replace it, and k.copy moves it from and to fragments";
            return Some(wrong(message).help(help));
        }
    }
    let is_copy = op.kind == OpKind::Copy;
    let other = op.operands.get(1 - place).filter(|_| is_copy).map(|tile| &kernel.buffers[tile.buffer]);
    if other.is_some_and(|other| other.space != Space::Fragment) {
        let (to, help) = match place {
            0 => ("from memory", "copy that to a fragment, and the fragment to tensor memory"),
            _ => ("to memory", "copy it to a fragment, and that to memory"),
        };
        return Some(wrong(format!("`{title}` is in tensor memory, and is copied {to}")).help(help));
    }
    let warps = op.role.map_or(kernel.warps(), |role| kernel.roles[role].warps);
    if is_copy && warps != WARPS_OF_A_WARPGROUP {
        let does = if place == 0 { "written" } else { "read" };
        let message = format!("`{title}` has {TENSOR_LANES} rows, and is {does} by {warps} warps");
        let help = "each warp of a warpgroup reaches 32 rows: let a role of 4 warps copy it";
        return Some(wrong(message).help(help));
    }
    let is_whole = match is_copy {
        false => tile.extents == kernel.buffers[tile.buffer].shape,
        true => tile.extents.first() == kernel.buffers[tile.buffer].shape.first(),
    };
    if !is_whole {
        let help = "products take all of it, and copies take all rows of some columns";
        return Some(wrong(format!("`{title}` is a part of tensor memory")).help(help));
    }
    let in_column = COLUMN_BYTES / kernel.buffers[tile.buffer].dtype.bytes();
    let is_aligned = |at: &Expr| at.multiple() % in_column == 0;
    let (start, extent) = (tile.starts.last()?, tile.extents.last()?);
    (extent % in_column != 0 || !is_aligned(start)).then(|| {
        let message = format!("`{title}` begins or ends inside of a column of tensor memory");
        let help = format!(
            "a column has {in_column} elements of a row: let the first index and the extent be multiples of {in_column}"
        );
        wrong(message).help(help)
    })
}

/// Whether the role of an op adds products to these sums.
fn multiplies_into(kernel: &Kernel, op: &Op, sums: Handle<Buffer>) -> bool {
    let adds = |other: &Op| {
        other.role == op.role
            && matches!(other.kind, OpKind::GemmAsync(_))
            && other.operands.first().is_some_and(|tile| tile.buffer == sums)
    };
    kernel.ops.iter().any(|(_, other)| adds(other))
}

/// Adds the errors for sums that are filled, and to which nothing may be added before they are used: a fill alone writes nothing.
fn without_products(kernel: &Kernel, body: &[Stmt], found: &mut Vec<Diagnostic>) {
    for (at, stmt) in body.iter().enumerate() {
        match stmt {
            Stmt::Op(op) => {
                let op = &kernel.ops[*op];
                let filled = op.operands.first().map(|tile| tile.buffer).filter(|_| matches!(op.kind, OpKind::Fill(_)));
                let Some(sums) = filled.filter(|sums| kernel.is_in_tensor_memory(*sums)) else { continue };
                if !body[at + 1..].iter().any(|after| surely_adds(kernel, after, sums)) {
                    let message =
                        format!("`{}` is filled, and there may be no product to add", kernel.buffers[sums].name);
                    let finding = Diagnostic::error("K0286", message).label(op.span, "filled here");
                    let help = "a fill of tensor memory lets the first product replace what is there, and writes nothing: let a gemm_async \
                                follow it, outside of conditions, and in loops that have an iteration for all sizes";
                    found.push(finding.help(help));
                }
            }
            Stmt::Loop(inner) => without_products(kernel, &inner.body, found),
            Stmt::If(branches) => {
                without_products(kernel, &branches.then, found);
                without_products(kernel, &branches.otherwise, found);
            }
            Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => {}
        }
    }
}

/// Whether a statement adds a product to these sums, whatever the sizes are.
fn surely_adds(kernel: &Kernel, stmt: &Stmt, sums: Handle<Buffer>) -> bool {
    match stmt {
        Stmt::Op(op) => {
            let op = &kernel.ops[*op];
            matches!(op.kind, OpKind::GemmAsync(_)) && op.operands.first().is_some_and(|tile| tile.buffer == sums)
        }
        Stmt::Loop(inner) => {
            inner.counter.is_never_empty() && inner.body.iter().any(|stmt| surely_adds(kernel, stmt, sums))
        }
        Stmt::If(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => false,
    }
}

/// Adds the errors for accesses to single elements.
fn by_element(kernel: &Kernel, element: &ElementStmt, found: &mut Vec<Diagnostic>) {
    element.for_each_access(&mut |access, _| {
        if kernel.is_in_tensor_memory(access.buffer) {
            let name = &kernel.buffers[access.buffer].name;
            let message = format!("`{name}` is in tensor memory, which has no single elements");
            let finding = Diagnostic::error("K0286", message).label(access.span, "here");
            found.push(finding.help("copy it to a fragment, and use that: k.copy(part, sums)"));
        }
    });
}

/// A statement that reads or writes shared memory, with the loops around it.
struct Touch {
    storage: Handle<Buffer>,
    /// Whether products read it.
    is_factor: bool,
    loops: Vec<*const Loop>,
    span: Span,
}

/// Adds the errors for factors outside of rings that are written while products may still read them: only the barriers of a ring tell when
/// products into tensor memory are done.
fn rewritten_factors(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let mut all = Vec::new();
    touches(kernel, &kernel.body, &mut Vec::new(), &mut all);
    for (at, factor) in all.iter().enumerate().filter(|(_, touch)| touch.is_factor) {
        let follows = |(place, other): &(usize, &Touch)| {
            let again = other.loops.iter().any(|around| factor.loops.contains(around));
            !other.is_factor && other.storage == factor.storage && (*place > at || again)
        };
        let Some((_, write)) = all.iter().enumerate().find(follows) else { continue };
        let name = &kernel.buffers[factor.storage].name;
        let message = format!("`{name}` is written while products may still read it");
        let finding = Diagnostic::error("K0286", message).label(write.span, "written here");
        let finding = finding.label(factor.span, "these products are not waited for");
        let help = "let another role write it in the stages of a ring, which are released when the products are done";
        found.push(finding.help(help));
        return;
    }
}

fn touches(kernel: &Kernel, body: &[Stmt], loops: &mut Vec<*const Loop>, all: &mut Vec<Touch>) {
    let outside = |buffer: Handle<Buffer>| {
        let storage = kernel.storage(buffer);
        let is_plain = kernel.buffers[storage].space == Space::Shared && kernel.ring_of(buffer).is_none();
        is_plain.then_some(storage)
    };
    for stmt in body {
        match stmt {
            Stmt::Op(op) => {
                let op = &kernel.ops[*op];
                let multiplies = matches!(op.kind, OpKind::GemmAsync(_)) && kernel.uses_tensor_memory(op);
                for (place, tile) in op.operands.iter().enumerate() {
                    let writes = matches!(op.effect(place), Effect::Write | Effect::Update);
                    if let Some(storage) = outside(tile.buffer).filter(|_| writes || multiplies) {
                        all.push(Touch { storage, is_factor: !writes, loops: loops.clone(), span: op.span });
                    }
                }
            }
            Stmt::Parallel(parallel) => {
                for element in &kernel.parallels[*parallel].body {
                    element.for_each_access(&mut |access, writes| {
                        if let Some(storage) = outside(access.buffer).filter(|_| writes) {
                            all.push(Touch { storage, is_factor: false, loops: loops.clone(), span: access.span });
                        }
                    });
                }
            }
            Stmt::Loop(inner) => {
                let repeats = inner.counter.repeats();
                loops.extend(repeats.then_some(std::ptr::from_ref(inner)));
                touches(kernel, &inner.body, loops, all);
                if repeats {
                    loops.pop();
                }
            }
            Stmt::If(branches) => {
                touches(kernel, &branches.then, loops, all);
                touches(kernel, &branches.otherwise, loops, all);
            }
            Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => {}
        }
    }
}
