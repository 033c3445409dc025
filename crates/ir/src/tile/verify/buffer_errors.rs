//! Errors about buffers that both ops and statements on elements may have.

use tilewright_diag::{Diagnostic, Span};

use crate::arena::Handle;
use crate::tile::atomic::{Atomic, AtomicChange, AtomicOp, MemoryOrdering};
use crate::tile::buffer::Buffer;
use crate::tile::kernel::Kernel;

/// The error for a handle that is not valid in this kernel. The builder recognizes those of another kernel.
pub(super) fn no_buffer(span: Span) -> Diagnostic {
    Diagnostic::error("K0213", "a buffer of another kernel")
        .label(span, "used here")
        .help("declare the buffer in this kernel")
}

/// The error for an atomic operation on a buffer of a dtype that has none, such as small integers (PTX ISA, `atom` and `red`).
pub(super) fn no_atomic(
    kernel: &Kernel,
    change: AtomicChange,
    buffer: Handle<Buffer>,
    span: Span,
) -> Option<Diagnostic> {
    let buffer = kernel.buffers.get(buffer)?;
    let dtype = buffer.dtype;
    let is_wide = dtype.bytes() >= 4;
    let is_there = match change {
        AtomicChange::Combine(AtomicOp::Add) if dtype.is_float() => dtype.bytes() >= 2,
        AtomicChange::Combine(_) => is_wide && dtype.is_integer(),
        AtomicChange::Exchange | AtomicChange::CompareExchange => is_wide && (dtype.is_integer() || dtype.is_float()),
    };
    if is_there {
        return None;
    }
    let finding = Diagnostic::error("K0246", format!("there is no {} for {dtype}", change.name()))
        .label(span, "here")
        .label(buffer.span, format!("`{}` is {dtype}", buffer.name));
    Some(match change {
        AtomicChange::Combine(AtomicOp::Add) => {
            finding.help("add to a buffer of i32, u32, i64, u64, f16, bf16, f32 or f64, and convert the result")
        }
        AtomicChange::Combine(AtomicOp::Min | AtomicOp::Max) if dtype.is_float() => finding
            .help("reduce with k.reduce, and combine the results of CTAs in another kernel")
            .help("or use a buffer of i32, u32, i64 or u64 with integers in the order of the numbers"),
        AtomicChange::Combine(AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor) => {
            finding.help("use a buffer of i32, u32, i64 or u64")
        }
        AtomicChange::Exchange | AtomicChange::CompareExchange => {
            finding.help("use a buffer of i32, u32, i64, u64, f32 or f64")
        }
    })
}

/// The error for more than the addition itself in 16 bits, which CUDA has in a header only.
pub(super) fn more_than_an_addition(kernel: &Kernel, atomic: &Atomic) -> Option<Diagnostic> {
    let buffer = &kernel.buffers[atomic.to.buffer];
    let is_more = atomic.old.is_some() || atomic.ordering != MemoryOrdering::default();
    let (name, dtype) = (atomic.change.name(), buffer.dtype);
    let message = format!("an {name} to {dtype} gives no old element, and has no order and no scope");
    (is_more && dtype.bytes() == 2 && dtype.is_float()).then(|| {
        Diagnostic::error("K0246", message)
            .label(atomic.to.span, "here")
            .label(buffer.span, format!("`{}` is {}", buffer.name, buffer.dtype))
            .help("use a buffer of f32, or leave out .old(..), .order(..) and .scope(..)")
    })
}
