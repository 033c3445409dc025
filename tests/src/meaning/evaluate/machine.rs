//! The machine that evaluates a kernel, and why it may stop.

use std::collections::BTreeMap;

use tilewright::expr::Var;
use tilewright::ir::Handle;
use tilewright::ir::tile::{AtomicChange, AtomicOp, Buffer, Claim, Kernel, Role};
use tilewright::layout::DType;

/// Bytes of storages; `None` for what was never written.
pub type Bytes = BTreeMap<Handle<Buffer>, Vec<Option<u8>>>;

/// Why an evaluation ends without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaningless {
    /// Two iterations touch one byte, and one of them writes it.
    Race(String),
    /// A claim of the user's is not true.
    Claim(String),
    /// Any of several values may stay, as the user says.
    Chance(String),
    /// The bits of a NaN are read through a view: they may be any of a NaN's.
    Payload(String),
    /// Memory is read that was never written.
    Unwritten(String),
    /// Threads would do different things, or hold different copies.
    Divergent(String),
    /// It leaves a tile.
    Outside(String),
    /// The evaluator does not know how.
    Unknown(String),
}

/// Which rules are judged; each is switched off in a test, to see that it is missed.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Iterations that touch what another one writes.
    pub races: bool,
    /// Claims.
    pub claims: bool,
    /// Reads of memory that was never written.
    pub unwritten: bool,
    /// What threads judge or hold differently.
    pub divergence: bool,
}

impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules { races: true, claims: true, unwritten: true, divergence: true };
}

/// What iterations did to a byte: the first of them, for each kind of access.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    pub(super) read: Option<i64>,
    pub(super) stored: Option<i64>,
    pub(super) stored_any: Option<i64>,
    pub(super) stored_unique: Option<i64>,
    pub(super) atomic: [Option<i64>; CHANGES],
    /// An atomic change of which the old element is used, or that does not combine.
    pub(super) in_order: Option<i64>,
}

/// The number of atomic changes: those that combine, exchange, and compare-and-exchange.
pub(super) const CHANGES: usize = AtomicOp::ALL.len() + 2;

/// The number of an atomic change.
pub(super) fn number_of(change: AtomicChange) -> usize {
    match change {
        AtomicChange::Combine(op) => op as usize,
        AtomicChange::Exchange => AtomicOp::ALL.len(),
        AtomicChange::CompareExchange => AtomicOp::ALL.len() + 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Store(Claim),
    /// An atomic change, and whether its order among others matters.
    Atomic(AtomicChange, bool),
}

pub(super) struct Running {
    pub(super) iteration: i64,
    /// Fragments are each thread's own.
    pub(super) by_threads: bool,
    pub(super) bytes: BTreeMap<(Handle<Buffer>, usize), Marks>,
}

pub(super) struct Machine<'a> {
    pub(super) kernel: &'a Kernel,
    /// The sizes, with their values.
    pub(super) sizes: Vec<(Var, i64)>,
    pub(super) storages: Bytes,
    pub(super) env: Vec<(Var, i64)>,
    pub(super) names: Vec<(String, Number)>,
    pub(super) marks: Option<Running>,
    /// Bytes of NaNs, and the dtype as which they were written.
    pub(super) nans: BTreeMap<(Handle<Buffer>, usize), DType>,
    /// What was published of each buffer of a ring, stage by stage.
    pub(super) published: BTreeMap<Handle<Buffer>, Vec<Vec<Option<u8>>>>,
    /// How many stages each role has used of them.
    pub(super) places: BTreeMap<(Handle<Buffer>, Option<Handle<Role>>), usize>,
    /// The first CTA that read, stored, and made each atomic change to each byte of global memory: CTAs have no order.
    pub(super) ctas: BTreeMap<(Handle<Buffer>, usize), [Option<i64>; 2 + CHANGES]>,
    pub(super) cta: i64,
    pub(super) rules: Rules,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Of(DType, u64),
    Integer(i128),
    Real(f64),
    Truth(bool),
}

pub(super) type Outcome<T> = Result<T, Meaningless>;

pub(super) fn unknown<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Meaningless::Unknown(what.into()))
}
