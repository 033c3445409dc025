//! Errors about buffers that both ops and statements on elements may have.

use tilewright_diag::{Diagnostic, Span};

use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::kernel::Kernel;

/// The error for a handle that is not valid in this kernel. The builder recognizes those of another kernel.
pub(super) fn no_buffer(span: Span) -> Diagnostic {
    Diagnostic::error("K0213", "a buffer of another kernel")
        .label(span, "used here")
        .help("declare the buffer in this kernel")
}

/// The error for atomic additions to a buffer of a dtype that has none, such as small integers (PTX ISA, `red`).
pub(super) fn no_atomic_addition(kernel: &Kernel, buffer: Handle<Buffer>, span: Span) -> Option<Diagnostic> {
    let buffer = kernel.buffers.get(buffer)?;
    let dtype = buffer.dtype;
    if dtype.is_float() || (dtype.is_integer() && dtype.bytes() >= 4) {
        return None;
    }
    let finding = Diagnostic::error("K0246", format!("there is no atomic addition for {dtype}"))
        .label(span, "added to here")
        .label(buffer.span, format!("`{}` is {dtype}", buffer.name))
        .help("add to a buffer of i32, u32, i64, u64, f16, bf16, f32 or f64, and convert the result");
    Some(finding)
}
