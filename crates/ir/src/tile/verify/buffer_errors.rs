//! Errors about buffers that both ops and statements on elements may have.

use tilewright_diag::{Diagnostic, Span};

use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::element::AtomicOp;
use crate::tile::kernel::Kernel;

/// The error for a handle that is not valid in this kernel. The builder recognizes those of another kernel.
pub(super) fn no_buffer(span: Span) -> Diagnostic {
    Diagnostic::error("K0213", "a buffer of another kernel")
        .label(span, "used here")
        .help("declare the buffer in this kernel")
}

/// The error for an atomic operation on a buffer of a dtype that has none, such as small integers (PTX ISA, `red`).
pub(super) fn no_atomic(kernel: &Kernel, op: AtomicOp, buffer: Handle<Buffer>, span: Span) -> Option<Diagnostic> {
    let buffer = kernel.buffers.get(buffer)?;
    let dtype = buffer.dtype;
    if (dtype.is_float() && dtype.bytes() >= 2 && op == AtomicOp::Add) || (dtype.is_integer() && dtype.bytes() >= 4) {
        return None;
    }
    let finding = Diagnostic::error("K0246", format!("there is no {} for {dtype}", op.name()))
        .label(span, "here")
        .label(buffer.span, format!("`{}` is {dtype}", buffer.name));
    Some(match op {
        AtomicOp::Add => {
            finding.help("add to a buffer of i32, u32, i64, u64, f16, bf16, f32 or f64, and convert the result")
        }
        AtomicOp::Min | AtomicOp::Max if dtype.is_float() => finding
            .help("reduce with k.reduce, and combine the results of CTAs in another kernel")
            .help("or use a buffer of i32, u32, i64 or u64 with integers in the order of the numbers"),
        AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
            finding.help("use a buffer of i32, u32, i64 or u64")
        }
    })
}
