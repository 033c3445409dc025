//! The record of the weak accesses of a word or byte.

/// No instruction.
pub(super) const NONE: u32 = u32::MAX;
/// In `read_thread`: the reads are in the set with index `read_clock`.
pub(super) const MANY: u32 = u32::MAX;
/// In `write_cta`: the word is split into the byte cells with index `write_thread`.
pub(super) const SPLIT: u32 = u32::MAX;
/// In `strong` and `equal`: none yet.
pub(super) const NEVER: u32 = u32::MAX;

/// The weak accesses of a word or byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// CTA of the last write; [`SPLIT`] if the word is split.
    pub(super) write_cta: u32,
    pub(super) write_thread: u32,
    pub(super) write_clock: u32,
    /// Program counter of the last write, or [`NONE`].
    pub(super) write_pc: u32,
    pub(super) read_cta: u32,
    /// Thread of the last read; [`MANY`] if several unordered threads have read.
    pub(super) read_thread: u32,
    pub(super) read_clock: u32,
    /// Program counter of the last read, or [`NONE`].
    pub(super) read_pc: u32,
    /// A read by an earlier CTA of the launch.
    pub(super) old_read_pc: u32,
    /// Index of the record of strong accesses, or `NEVER`.
    pub(super) strong: u32,
    /// Index of an earlier write of the same value that the last write is not ordered after, or `NEVER`.
    pub(super) equal: u32,
}

pub(super) const EMPTY: Cell = Cell {
    write_cta: 0,
    write_thread: 0,
    write_clock: 0,
    write_pc: NONE,
    read_cta: 0,
    read_thread: 0,
    read_clock: 0,
    read_pc: NONE,
    old_read_pc: NONE,
    strong: NEVER,
    equal: NEVER,
};
