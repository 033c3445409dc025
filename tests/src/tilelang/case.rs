//! Golden cases: a program, what the reference answers, and what that answer is worth.

use std::collections::BTreeMap;

use super::program::{Layout, Program};

/// A tile program, what the reference answers for it, and what that answer is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The name, which is also the name of the file.
    pub name: String,
    /// What kind of program it is.
    pub family: String,
    /// What it shows, if anything in particular.
    pub note: String,
    /// The architecture, such as `sm_90`.
    pub arch: String,
    /// The program.
    pub program: Program,
    /// What the reference did.
    pub expected: Expected,
    /// A judgement of that answer.
    pub verdict: Verdict,
    /// Layouts that work, for some of the programs that the reference refuses or gets wrong.
    pub witness: Option<BTreeMap<String, Layout>>,
}

/// What the reference did with a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// `ok`, or the pass that failed.
    pub stage: String,
    /// True where nothing failed.
    pub accepted: bool,
    /// The class of the error.
    pub error: Option<String>,
    /// The layouts of fragments; none where it failed early.
    pub buffers: BTreeMap<String, Layout>,
    /// The layouts of tiles in shared memory: the slot is the place, the thread is 0.
    pub shared: BTreeMap<String, Layout>,
    /// The loops, in program order; also those of one iteration, `_`, that the reference puts around loose statements.
    pub loops: Vec<ExpectedLoop>,
    /// Accesses to global and shared memory, in program order.
    pub accesses: Vec<ExpectedAccess>,
    /// Slots of a thread over all fragments, views not counted.
    pub register_slots: Option<i64>,
}

/// A parallel nest as the reference executes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedLoop {
    /// The variables; one, `a_b_fused`, where the nest is fused.
    pub vars: Vec<String>,
    /// Their extents.
    pub extents: Vec<i64>,
    /// On which thread and when an iteration is executed. Its shape may be larger than the extents.
    pub layout: Layout,
    /// The condition on the thread `tx` under which it takes part.
    pub predicate: Option<String>,
    /// True where the layout has room for more iterations than there are.
    pub padding_guard: bool,
}

/// An access to memory with its vector width.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedAccess {
    /// The buffer's name.
    pub buffer: String,
    /// Where the buffer is, such as `global` and `shared.dyn`.
    pub scope: String,
    /// `load` or `store`.
    pub kind: String,
    /// Elements per access.
    pub lanes: Option<i64>,
}

/// A judgement of the reference's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What the answer is worth.
    pub class: Class,
    /// What is wrong with it, in words.
    pub problems: Vec<String>,
    /// Whether the witness has more than one owner for some element.
    pub replicated_witness: Option<bool>,
}

/// What the reference's answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Accepted, and the layouts are right.
    AcceptsSound,
    /// Accepted, and the layouts are wrong.
    AcceptsWrong,
    /// Accepted, although iterations of the program write one element.
    AcceptsRacy,
    /// Refused, although there are layouts that work.
    RejectsValid,
    /// Refused, and nothing works.
    Rejects,
}
