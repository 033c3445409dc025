//! Registers: arrays of them, and parts of arrays.

use tilewright_expr::Expr;
use tilewright_layout::DType;

use crate::arena::Handle;

/// An array of registers. It stays in registers because every index is a constant once loops are unrolled.
#[derive(Clone, Debug)]
pub struct RegArray {
    /// Its name in CUDA, unless C++ or CUDA reserves it.
    pub name: String,
    /// Type of an element.
    pub dtype: DType,
    /// Number of elements.
    pub len: i64,
    /// Elements that are held, loaded and stored together: 1, or the width of a vector.
    pub vector: i64,
}

/// Registers of one array, adjacent ones if `step` is 1. Loads and stores move as many bytes as the registers hold:
/// elements are moved in registers of their own dtype, or several at once in wider opaque words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regs {
    /// The array.
    pub array: Handle<RegArray>,
    /// Index of the first; must be a constant in every iteration of the unrolled loops around it, which the verifier checks.
    pub first: Expr,
    /// Number of registers.
    pub count: i64,
    /// Distance from one to the next; may differ from 1 only where the registers are read.
    pub step: i64,
}
