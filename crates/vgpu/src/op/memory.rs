//! Accesses to memory.

use crate::op::operand::{Element, MemRef, Reg};

/// `ld`.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) at: MemRef,
    pub(crate) regs: Box<[Reg]>,
    /// Bytes of one element.
    pub(crate) size: u32,
    /// Width of the destination when the element is signed.
    pub(crate) extend: Option<u32>,
    /// Volatile, relaxed or acquire: never races with another strong access.
    pub(crate) strong: bool,
}

/// `st`.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) at: MemRef,
    pub(crate) regs: Box<[Reg]>,
    pub(crate) size: u32,
    pub(crate) strong: bool,
}

/// Read-modify-write functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomFn {
    Add,
    AddFloat(Element, bool),
    MinFloat(Element, bool),
    MaxFloat(Element, bool),
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
    /// Bytes of one element.
    pub(crate) size: u32,
    /// Subnormal f32 are flushed in global memory.
    pub(crate) ftz: bool,
    /// One register for each element; none for `red`.
    pub(crate) d: Box<[Reg]>,
    pub(crate) b: Box<[Reg]>,
    pub(crate) c: Reg,
}

/// Bytes moved inside one thread's local memory: the parameters of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalCopy {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) bytes: u32,
}
