//! Golden cases: a program, the reference's answer, and a verdict on that answer.

use std::collections::BTreeMap;

use super::program::{Layout, Program};

/// A tile program, the reference's answer for it, and a verdict on that answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The name, which is also the name of the file.
    pub name: String,
    /// The kind of program.
    pub family: String,
    /// The feature that it demonstrates, if any.
    pub note: String,
    /// The architecture, such as `sm_90`.
    pub arch: String,
    /// The program.
    pub program: Program,
    /// The reference's answer.
    pub expected: Expected,
    /// The verdict on that answer.
    pub verdict: Verdict,
    /// Valid layouts, for some of the programs that the reference refuses or gets wrong.
    pub witness: Option<BTreeMap<String, Layout>>,
}

/// The reference's answer for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// `ok`, or the pass that failed.
    pub stage: String,
    /// True if no pass failed.
    pub accepted: bool,
    /// The class of the error.
    pub error: Option<String>,
    /// The layouts of fragments; empty if it failed early.
    pub buffers: BTreeMap<String, Layout>,
    /// The layouts of tiles in shared memory: the slot is the position, the thread is 0.
    pub shared: BTreeMap<String, Layout>,
    /// The loops, in program order, including those of one iteration, `_`, that the reference puts around standalone
    /// statements.
    pub loops: Vec<ExpectedLoop>,
    /// Accesses to global and shared memory, in program order.
    pub accesses: Vec<ExpectedAccess>,
    /// Slots of a thread over all fragments, without views.
    pub register_slots: Option<i64>,
}

/// A parallel nest as the reference executes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedLoop {
    /// The variables; a single one, `a_b_fused`, if the nest is fused.
    pub vars: Vec<String>,
    /// Their extents.
    pub extents: Vec<i64>,
    /// The thread and the step of each iteration. Its shape may be larger than the extents.
    pub layout: Layout,
    /// The condition on the thread `tx` under which the thread is active.
    pub predicate: Option<String>,
    /// True if the layout covers more iterations than there are.
    pub padding_guard: bool,
}

/// An access to memory with its vector width.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedAccess {
    /// The buffer's name.
    pub buffer: String,
    /// The buffer's scope, such as `global` or `shared.dyn`.
    pub scope: String,
    /// `load` or `store`.
    pub kind: String,
    /// Elements per access.
    pub lanes: Option<i64>,
}

/// A verdict on the reference's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The class of the answer.
    pub class: Class,
    /// What is wrong with the answer, as text.
    pub problems: Vec<String>,
    /// Whether some element has more than one owner in the witness.
    pub replicated_witness: Option<bool>,
}

/// The class of the reference's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Accepted, with correct layouts.
    AcceptsSound,
    /// Accepted, with wrong layouts.
    AcceptsWrong,
    /// Accepted, although several iterations write the same element.
    AcceptsRacy,
    /// Refused, although valid layouts exist.
    RejectsValid,
    /// Refused, and no valid layouts exist.
    Rejects,
}
