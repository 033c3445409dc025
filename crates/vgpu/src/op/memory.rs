//! Memory accesses.

use std::ops::Range;

use crate::isa::Strong;
use crate::op::operand::{FloatType, MemRef, Reg};

/// `ld`.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) at: MemRef,
    pub(crate) regs: Box<[Reg]>,
    /// Bytes of one element.
    pub(crate) size: u32,
    /// Width of the destination register in bits, if the element is signed.
    pub(crate) extend: Option<u32>,
    /// Volatile, relaxed or acquire.
    pub(crate) strong: Option<Strong>,
}

/// `st`.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) at: MemRef,
    /// One register for each element.
    pub(crate) regs: Box<[Reg]>,
    /// The elements that are written, in runs: `_` stands for elements that are not (PTX ISA, `st`).
    pub(crate) runs: Box<[Range<usize>]>,
    /// Size of one element in bytes.
    pub(crate) size: u32,
    /// Volatile, relaxed or release.
    pub(crate) strong: Option<Strong>,
}

/// Read-modify-write functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomFn {
    Add,
    AddFloat(FloatType, bool),
    MinFloat(FloatType, bool),
    MaxFloat(FloatType, bool),
    Min { signed: bool },
    Max { signed: bool },
    Exch,
    Cas,
    Inc,
    Dec,
    And,
    Or,
    Xor,
}

/// `atom` or `red`, of one element or of a vector of them.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) at: MemRef,
    pub(crate) f: AtomFn,
    pub(crate) strong: Strong,
    /// Bytes of one element.
    pub(crate) size: u32,
    /// Flush f32 subnormals, in global memory only.
    pub(crate) ftz: bool,
    /// One register for each element; none for `red`.
    pub(crate) d: Box<[Reg]>,
    /// The operand, one register for each element.
    pub(crate) b: Box<[Reg]>,
    /// The new value of `cas`; unused by other functions.
    pub(crate) c: Reg,
}

/// A copy within one thread's local memory: a parameter or result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalCopy {
    /// Source offset in the thread's local memory, in bytes.
    pub(crate) from: u32,
    /// Destination offset in the thread's local memory, in bytes.
    pub(crate) to: u32,
    pub(crate) bytes: u32,
}
