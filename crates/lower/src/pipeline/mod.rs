//! Pipelined loops: copies to shared memory run iterations ahead of what uses them.
//!
//! [`Kernel::fills`](tilewright_ir::Kernel::fills) says which statements of a loop may run ahead. Those whose lowered form can
//! be written with asynchronous copies do so: each of their buffers gets a copy for every stage, and iteration `i` uses
//! stage `i % stages`. For 3 stages:
//!
//! ```text
//! for ahead in 0..2:  start the copies of iteration `ahead`; commit
//! for i in 0..n:
//!     wait until at most 1 group is pending: the copies of iteration i have arrived
//!     barrier: all threads see them, and have finished with the stage of iteration i - 1
//!     start the copies of iteration i + 2, to that stage; commit
//!     use stage i % 3
//! ```
//!
//! A group is committed in each iteration, whether or not there is an iteration to copy for, so the number of groups to wait
//! for is the same in all of them.
//!
//! What asynchronous copies cannot do runs ahead through registers: an iteration loads where it would start the copies, and
//! stores at its end.

mod asynchronous;
mod by_engine;
mod choice;
mod rotate;
mod served;
mod teams;
mod through_registers;

pub(crate) use rotate::Rotation;

use std::collections::BTreeSet;

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Memory, Program, Stmt, for_each_stmt};
pub(crate) use tilewright_ir::tile::{BULK, TMA};
use tilewright_ir::tile::{EngineMove, Role, TMA_WARP_SPECIALISED};

use crate::measure::measure;
use crate::sync::{Block, OpBlock, role_of};
use crate::trace::{Env, Trace, trace};
pub(crate) use asynchronous::asynchronous;
pub(crate) use teams::Team;
use through_registers::{Halves, MOST_BYTES, halves};

/// The name of the variant in which asynchronous copies run ahead: in the plan of a loop, and in those of its copies.
pub(crate) const CP_ASYNC: &str = "cp_async";
/// The name of the variant in which loads run ahead and hold their elements in registers, in the same plans.
pub(crate) const THROUGH_REGISTERS: &str = "through_registers";
/// The name of the variant in which nothing runs ahead, in the plan of a loop.
pub(crate) const SERIAL: &str = "serial";

/// The variants of a loop.
pub(crate) const VARIANTS: [&str; 5] = [TMA, TMA_WARP_SPECIALISED, CP_ASYNC, THROUGH_REGISTERS, SERIAL];

/// The variants of a loop in which nothing runs ahead, for these reasons.
pub(crate) fn serial(reasons: Vec<Reason>) -> Vec<VariantResult> {
    vec![VariantResult { variant: CP_ASYNC, answer: Err(reasons) }, in_order()]
}

/// The variant of a loop in which nothing runs ahead.
fn in_order() -> VariantResult {
    VariantResult { variant: SERIAL, answer: Ok(PlanFacts::without_accesses("nothing runs ahead", 0)) }
}

/// The error for a loop that is asked for a variant that it does not take.
fn unmet_by_loop(plan: &OpPlan, asked: &str) -> Diagnostic {
    if VARIANTS.contains(&asked) {
        return unmet(plan, asked);
    }
    Diagnostic::error("P0401", format!("`pipelined` has no variant `{asked}`"))
        .label(plan.span, plan.title.clone())
        .help(format!("its variants are {}", VARIANTS.join(", ")))
}

/// The error for a copy or a loop that cannot have the variant that the user asks for.
pub(crate) fn unmet(plan: &OpPlan, asked: &str) -> Diagnostic {
    let message = format!("the variant `{asked}` cannot do this");
    let mut found = Diagnostic::error("P0402", message).label(plan.span, plan.title.clone());
    for one in plan.considered.iter().filter(|one| one.variant == asked) {
        for Reason { text, accepted } in one.answer.as_ref().err().into_iter().flatten() {
            found = found.note(format!("{asked}: {text}; accepted: {accepted}"));
        }
    }
    if asked == THROUGH_REGISTERS && !plan.considered.iter().any(|one| one.variant == asked) {
        found =
            found.note(format!("{asked}: `cp.async` moves all of its copies; accepted: copies that it cannot move"));
    }
    let possible = plan.considered.iter().filter(|one| one.answer.is_ok()).map(|one| one.variant);
    found.help(format!("leave the choice open; possible here: {}", possible.collect::<Vec<_>>().join(", ")))
}

/// Warnings about pipelined loops in which nothing runs ahead, with the reasons.
pub fn serial_loops(program: &Program) -> Vec<Diagnostic> {
    let warning = |plan: &OpPlan| {
        let reasons = plan.considered.iter().find(|one| one.variant == CP_ASYNC)?.answer.as_ref().err()?;
        let message = format!("nothing runs ahead in `{}`", plan.title);
        let mut found = Diagnostic::warning("P0405", message).label(plan.span, "this loop is serial");
        for Reason { text, accepted } in reasons {
            found = found.note(format!("{text}; accepted: {accepted}"));
        }
        Some(found.help("change this, or write `k.serial`"))
    };
    program.plans.iter().filter(|plan| plan.chosen == SERIAL).filter_map(warning).collect()
}

/// What may run ahead in a loop.
#[derive(Clone, Debug)]
pub(crate) struct RunsAhead {
    /// Index of the loop's plan.
    pub(crate) plan: usize,
    /// The stages that the user asks for; `None` if the choice is left open.
    pub(crate) stages: Option<i64>,
    /// The variant that the user asks for.
    pub(crate) variant: Option<String>,
    /// The blocks that run ahead, in their order.
    pub(crate) copies: Vec<Copy>,
    /// Why others that fill shared buffers do not run ahead.
    pub(crate) against: Vec<Reason>,
    /// Whether a role of their own executes the copies. Otherwise, why none can be made for them.
    pub(crate) producer: Result<(), Reason>,
    /// The memory that they fill.
    refused: BTreeSet<Handle<Memory>>,
}

/// A block of a loop that may run ahead.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    /// Its position in the body of the loop.
    pub(crate) block: usize,
    /// How the copy engine does the same, or why it cannot.
    pub(crate) by_engine: Result<EngineMove, Reason>,
}

/// A block of a loop that runs ahead.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// Its position in the body of the loop.
    block: usize,
    /// The index of its plan, and its title.
    plan: usize,
    title: String,
    /// The role that executes it, if not all threads do.
    role: Option<Handle<Role>>,
    /// How the copy engine does the same, or why it cannot.
    by_engine: Result<EngineMove, Reason>,
    /// All of its statements: with asynchronous copies, if these can do it, otherwise as they were lowered.
    statements: Vec<Stmt>,
    /// What runs ahead and what follows later, if asynchronous copies cannot do it.
    halves: Option<Halves>,
    facts: PlanFacts,
    /// The shared memory that it fills.
    fills: BTreeSet<Handle<Memory>>,
}

impl Copy {
    /// How an op runs ahead, where `free` bytes of registers are left. Error: why it does not, neither with asynchronous copies
    /// nor through registers.
    fn of(program: &Program, op: &OpBlock, fill: &Fill, free: i64) -> Result<Copy, Vec<Reason>> {
        let (statements, halves) = match asynchronous(program, &op.body) {
            Ok(copies) => (copies, None),
            Err(reason) => {
                let halves = halves(program, &op.body, free).map_err(|other| vec![reason, other])?;
                (op.body.clone(), Some(halves))
            }
        };
        let facts = measure(program, &statements, 0, String::new(), i64::MAX);
        let (Fill { block, by_engine }, fills) = (fill.clone(), filled(program, &op.body));
        Ok(Copy {
            block,
            plan: op.op,
            title: op.title.clone(),
            role: op.role,
            by_engine,
            statements,
            halves,
            facts,
            fills,
        })
    }

    /// The variant of the op.
    fn name(&self) -> &'static str {
        if self.halves.is_some() { THROUGH_REGISTERS } else { CP_ASYNC }
    }
}

impl RunsAhead {
    /// Nothing, in a loop with this plan.
    pub(crate) fn new(plan: usize, stages: Option<i64>, variant: Option<String>) -> RunsAhead {
        let producer = Err(Reason::new("no copies run ahead", "copies from tensors to shared buffers"));
        RunsAhead { plan, stages, variant, copies: Vec::new(), against: Vec::new(), producer, refused: BTreeSet::new() }
    }

    /// Notes whether a role of their own executes the copies; `why_not` says why none was made for them.
    pub(crate) fn find_producer(&mut self, body: &[Block], why_not: Option<Reason>) {
        let Some(first) = self.copies.first() else { return };
        let is_own = first.role.is_some() && self.copies.iter().all(|copy| copy.role == first.role);
        let not_asked = || Reason::new("all threads take part in the copies", "`.variant(\"tma_warp_specialised\")`");
        self.producer = match is_own && role_of(body).is_none() {
            true => Ok(()),
            false => Err(why_not.unwrap_or_else(not_asked)),
        };
    }

    /// Leaves out what fills the same memory as an op that does not run ahead.
    pub(crate) fn leave_out(&mut self, program: &Program, op: &OpBlock) {
        self.refused.extend(filled(program, &op.body));
    }

    /// Finds how the blocks of `fills` run ahead. A memory is filled ahead by all that fill it, or by none.
    pub(crate) fn find(&mut self, program: &Program, body: &[Block], fills: &[Fill]) {
        let mut refused = std::mem::take(&mut self.refused);
        for fill in fills {
            let Block::Op(op) = &body[fill.block] else { continue };
            match Copy::of(program, op, fill, MOST_BYTES - self.held_bytes()) {
                Ok(copy) => self.copies.push(copy),
                Err(reasons) => {
                    let of_op = |Reason { text, accepted }| Reason::new(format!("`{}`: {text}", op.title), accepted);
                    self.against.extend(reasons.into_iter().map(of_op));
                    refused.extend(filled(program, &op.body));
                }
            }
        }
        self.refuse_overlaps(program, &mut refused);
        while let Some(at) = self.copies.iter().position(|copy| !copy.fills.is_disjoint(&refused)) {
            refused.extend(self.copies.remove(at).fills);
        }
    }

    /// Refuses memories of which some bytes are filled twice in an iteration: the copies would be in no order.
    fn refuse_overlaps(&mut self, program: &Program, refused: &mut BTreeSet<Handle<Memory>>) {
        let mut stores: Vec<(Handle<Memory>, i64, i64)> = Vec::new();
        for copy in &self.copies {
            let warps = copy.role.map_or(program.warps(), |role| program.roles[role].warps);
            let Trace { touches, is_whole } = trace(program, &copy.statements, 0..warps, &Env::new());
            if !is_whole {
                refused.extend(copy.fills.iter().copied());
            }
            let written = touches.iter().filter(|touch| touch.writes);
            stores.extend(written.map(|touch| (program.owner(touch.memory), touch.first_byte, touch.bytes)));
        }
        stores.sort_unstable();
        for pair in stores.windows(2) {
            let [(memory, first, bytes), (next_memory, next, _)] = pair else { continue };
            if memory == next_memory && first + bytes > *next && refused.insert(*memory) {
                let text = format!("an iteration fills some elements of `{}` twice", program.memories[*memory].name);
                self.against.push(Reason::new(text, "copies to different elements"));
            }
        }
    }

    /// Bytes that a thread holds for an iteration.
    fn held_bytes(&self) -> i64 {
        self.copies.iter().filter_map(|copy| copy.halves.as_ref()).map(|halves| halves.bytes).sum()
    }

    /// The variant in which the copy engine fills stages.
    fn by_engine(&self) -> &'static str {
        if self.producer.is_ok() { TMA_WARP_SPECIALISED } else { TMA }
    }

    /// Whether the copy engine may fill the stages: a role that executes the copies is one for `tma` too.
    fn may_be_engine(&self) -> bool {
        self.may_be(self.by_engine()) || self.may_be(TMA)
    }

    /// Whether the user asks for a variant, or leaves the choice open.
    fn may_be(&self, variant: &str) -> bool {
        self.variant.as_deref().is_none_or(|asked| asked == variant)
    }

    /// The variant in which the copies run ahead without the copy engine.
    fn by_threads(&self) -> &'static str {
        if self.has_async_copies() || self.copies.is_empty() { CP_ASYNC } else { THROUGH_REGISTERS }
    }

    /// Instructions of the busiest warp that copy in an iteration without the copy engine.
    fn instructions(&self) -> i64 {
        self.copies.iter().map(|copy| copy.facts.instructions).sum()
    }

    /// Whether some copies are asynchronous.
    fn has_async_copies(&self) -> bool {
        self.copies.iter().any(|copy| copy.halves.is_none())
    }

    /// The memories that copies fill.
    pub(crate) fn memories(&self) -> BTreeSet<Handle<Memory>> {
        self.copies.iter().flat_map(|copy| copy.fills.iter().copied()).collect()
    }
}

/// Whether statements can be written with asynchronous copies.
pub(crate) fn is_asynchronous(program: &Program, body: &[Stmt]) -> bool {
    asynchronous(program, body).is_ok()
}

/// The memories that statements store to.
fn filled(program: &Program, body: &[Stmt]) -> BTreeSet<Handle<Memory>> {
    let mut found = BTreeSet::new();
    for_each_stmt(body, &mut |stmt| {
        let writes = stmt.accesses().filter(|access| access.effect.writes());
        found.extend(writes.map(|access| program.owner(access.memory)));
    });
    found
}
