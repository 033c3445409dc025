//! Pipelined loops whose stages the copy engine (TMA) fills: one thread issues the copies of an iteration, and barriers in
//! shared memory order the rest. For 3 stages:
//!
//! ```text
//! one thread:         initialise the barriers; for ahead in 0..2: announce bytes, start the copies of iteration `ahead`
//! barrier:            all threads see the barriers
//! for i in 0..n:
//!     warp 0:         wait until stage (i + 2) % 3 is empty; one thread: announce bytes, start the copies of iteration i + 2
//!     all threads:    wait until stage i % 3 is full
//!     use stage i % 3
//!     each warp:      arrive: stage i % 3 is empty
//! ```
//!
//! Where the copies, or what uses them, are those of one role, only its warps take part: the warps of a role that copies wait for
//! empty stages alone, and those of a role that uses them for full ones.
//!
//! A loop that is executed several times initialises its barriers each time, since how many phases have passed may depend on
//! the launch.

use tilewright_diag::counted_as;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{Barrier, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Call, Cond, EngineWay, Inst, Memory, Reach, Ring, Stmt, Unroll};
use tilewright_ir::tile::{EngineMove, MovedPart};
use tilewright_ir::{Counter, Handle, HwIndex, SHARED_ALIGNMENT};
use tilewright_layout::access::LANES;

use super::RunsAhead;
use super::rotate::{Iteration, Rotation, stage_names};
use super::teams::{Team, Teams};
use crate::conditions::{settled, under};
use crate::engine::{OF_A_COPY, OF_AN_ISSUE, barrier_call, facts, no_whole_warp};
use crate::sync::{Block, LoopBlock, LoopRef, OpBlock};

/// Instructions of a warp in an iteration beside those that issue copies: it waits for a stage, and arrives when it has read it.
const OF_AN_ITERATION: i64 = 8;

/// How the copy engine fills the stages of a loop.
pub(super) struct ByEngine {
    pub(super) stages: i64,
    /// The copies of an iteration.
    fills: Vec<EngineMove>,
    pub(super) facts: PlanFacts,
}

impl ByEngine {
    /// Instructions of the busiest warp in an iteration.
    fn instructions(fills: &[EngineMove]) -> i64 {
        OF_AN_ITERATION + OF_AN_ISSUE + fills.iter().map(|fill| fill.copy_count() as i64).sum::<i64>() * OF_A_COPY
    }
}

/// Bytes that the copies of an iteration bring.
fn bytes(fills: &[EngineMove]) -> i64 {
    fills.iter().map(EngineMove::bytes).sum()
}

impl Rotation<'_> {
    /// How the copy engine fills the stages of a loop. Error: why it does not.
    pub(super) fn by_engine(&self, ahead: &RunsAhead, counter: &Counter) -> Result<ByEngine, Vec<Reason>> {
        let mut reasons: Vec<Reason> = no_whole_warp(self.builder.program.threads).into_iter().collect();
        for copy in &ahead.copies {
            if let Err(Reason { text, accepted }) = &copy.by_engine {
                reasons.push(Reason::new(format!("`{}`: {text}", copy.title), accepted.clone()));
            }
        }
        if !reasons.is_empty() {
            return Err(reasons);
        }
        let fills: Vec<EngineMove> = ahead.copies.iter().filter_map(|copy| copy.by_engine.clone().ok()).collect();
        let aligned = |memory: Handle<Memory>| {
            let of_memory = fills.iter().filter(|fill| self.owner(fill) == memory);
            of_memory.map(|fill| fill.alignment()).max().unwrap_or(SHARED_ALIGNMENT)
        };
        // The barriers of a loop take as much as two buffers at most.
        let barriers = self.served.count().max(1) * 2 * SHARED_ALIGNMENT;
        let stages = self.stages(ahead, counter, self.asked(ahead), barriers, &aligned)?;
        let copies: usize = fills.iter().map(EngineMove::copy_count).sum();
        let are_boxes = fills.iter().all(|fill| matches!(fill.part, MovedPart::Boxes { .. }));
        let [one, several] = if are_boxes { ["box", "boxes"] } else { ["copy", "copies"] };
        let summary = format!(
            "{}; one thread issues {}",
            self.summary(ahead, counter, stages),
            counted_as(copies, one, several),
        );
        let facts = PlanFacts::without_accesses(summary, ByEngine::instructions(&fills));
        Ok(ByEngine { stages, fills, facts })
    }

    /// The memory that a statement fills.
    fn owner(&self, fill: &EngineMove) -> Handle<Memory> {
        self.builder.program.owner(self.builder.memory(fill.shared))
    }

    /// A loop whose stages the copy engine fills, with what comes before and after it.
    pub(super) fn rotated_by_engine(&mut self, inner: LoopBlock, ahead: RunsAhead, way: ByEngine) -> Vec<Block> {
        let ByEngine { stages, fills, .. } = way;
        for fill in &fills {
            let owner = self.owner(fill);
            self.builder.align(owner, fill.alignment());
        }
        self.stretch(&ahead, stages);
        self.choose_engine(&ahead, &fills);
        let is_shared = ahead.memories().into_iter().any(|memory| self.builder.program.ring_of(memory).is_some());
        let teams = Teams::of(&self.builder.program, &ahead, &inner.body);
        let ring = self.ring(&ahead, &inner.inner.counter, stages, &teams.users);
        let numbers = Iteration::of(self.builder, &inner.inner.counter, stages);
        let copies = EngineCopies {
            fills,
            ring: ring.clone(),
            teams,
            plan: ahead.plan,
            title: self.plans[ahead.plan].title.clone(),
        };
        let mut begin = self.begin(&copies, &numbers);
        if is_shared {
            let sync = self.sync(
                ahead.plan,
                &copies.teams.all,
                "all threads have finished with the stages of the loop before",
            );
            begin.body.insert(0, sync);
        } else if self.depth > 0 {
            begin.body.insert(0, Stmt::from(Call::plain(Inst::SyncWarp)));
        }
        let main = self.main_by_engine(inner, &ahead, &copies, numbers);
        let mut all = vec![Block::Op(begin), Block::Loop(main)];
        if self.depth > 0 {
            all.push(Block::Op(self.end(&copies)));
        }
        all
    }

    /// Writes into the plans of the statements how they run ahead.
    fn choose_engine(&mut self, ahead: &RunsAhead, fills: &[EngineMove]) {
        for (copy, fill) in ahead.copies.iter().zip(fills) {
            let plan = &mut self.plans[copy.plan];
            plan.chosen = fill.variant();
            plan.considered.push(VariantResult { variant: fill.variant(), answer: Ok(facts(fill)) });
        }
    }

    /// The ring of a loop.
    fn ring(&mut self, ahead: &RunsAhead, counter: &Counter, stages: i64, users: &[Team]) -> Ring {
        let name = counter.var.name().to_string();
        let span = self.plans[ahead.plan].span;
        let mut barriers = |what: &str| self.builder.barriers(&format!("{name}_{what}"), stages, span);
        let full = barriers("full");
        // As many stages as iterations are filled once.
        let empty = (counter.most_trips() > stages).then(|| barriers("empty"));
        let consumers = users.iter().map(|team| (team.threads + LANES as i64 - 1) / LANES as i64).sum();
        let payload = ahead.memories().into_iter().collect();
        let ring = Ring { name, payload, stages, full, empty, consumers };
        self.builder.program.rings.push(ring.clone());
        ring
    }

    /// The barriers begin, and the copies of the first iterations start.
    fn begin(&mut self, copies: &EngineCopies, numbers: &Iteration) -> OpBlock {
        let EngineCopies { ring, teams, plan, title, .. } = copies;
        let Iteration { counter, .. } = numbers;
        let stage = Var::new(self.builder.fresh("stage"), 0, ring.stages - 1);
        let at = Expr::var(&stage);
        let full = barrier_call(Inst::BarrierInit, (ring.full, at.clone()), Some(Expr::constant(1)));
        let empty =
            ring.empty.map(|empty| barrier_call(Inst::BarrierInit, (empty, at), Some(Expr::constant(ring.consumers))));
        let inits = std::iter::once(full).chain(empty).collect();
        let mut body = vec![
            Stmt::For { counter: Counter::of(stage), unroll: Unroll::Auto, body: inits },
            Stmt::from(Call::plain(Inst::BarrierInitFence)),
        ];
        if ring.stages == 2 {
            body.extend(self.first_issue(copies, counter, &Expr::constant(0)));
        } else {
            let var = Var::new(self.builder.fresh("ahead"), 0, ring.stages - 2);
            let first = self.first_issue(copies, counter, &Expr::var(&var));
            body.push(Stmt::For { counter: Counter::of(var), unroll: Unroll::Auto, body: first });
        }
        let mut all = teams.all.by_first_of(&teams.issuers, vec![Stmt::Elect { body }]);
        all.push(self.sync(*plan, &teams.all, "all threads see the barriers of the stages"));
        OpBlock::new(title.clone(), None, all, *plan).of(teams.all.role)
    }

    /// Starts the copies of the iteration that is so far behind the first one, if there is one.
    fn first_issue(&mut self, copies: &EngineCopies, counter: &Counter, ahead: &Expr) -> Vec<Stmt> {
        let iteration = normalize(&(ahead * counter.step + counter.begin.clone()));
        let exists = Cond::Less(iteration.clone(), counter.end.clone());
        settled(under(&[exists], self.issue(copies, counter, &iteration, ahead)))
    }

    /// The barriers end, so that they may begin again.
    fn end(&mut self, copies: &EngineCopies) -> OpBlock {
        let EngineCopies { ring, teams, plan, title, .. } = copies;
        let stage = Var::new(self.builder.fresh("stage"), 0, ring.stages - 1);
        let invalid = |memory: Handle<Memory>| barrier_call(Inst::BarrierInvalidate, (memory, Expr::var(&stage)), None);
        let body = std::iter::once(ring.full).chain(ring.empty).map(invalid).collect();
        let body = vec![Stmt::For { counter: Counter::of(stage), unroll: Unroll::Auto, body }];
        let sync = self.sync(*plan, &teams.all, "all threads have finished with the stages and their barriers");
        let ends = teams.all.by_first_of(&teams.issuers, vec![Stmt::Elect { body }]);
        let body = std::iter::once(sync).chain(ends).collect();
        OpBlock::new(title.clone(), None, body, *plan).part("the barriers end").of(teams.all.role)
    }

    /// A barrier of the threads that go through the loop, with its reason in the plan of the loop.
    fn sync(&mut self, plan: usize, team: &Team, reason: &str) -> Stmt {
        let (sync, what) = self.sync_of(team.role);
        self.plans[plan].barriers.push(Barrier { what: what.to_string(), reason: reason.to_string() });
        Stmt::from(Call::plain(sync))
    }

    /// The loop, in which copies are ahead of what uses them.
    fn main_by_engine(
        &mut self,
        inner: LoopBlock,
        ahead: &RunsAhead,
        copies: &EngineCopies,
        numbers: Iteration,
    ) -> LoopBlock {
        let LoopBlock { inner, barrier, body, .. } = inner;
        let EngineCopies { ring, teams, plan, title, .. } = copies;
        let exists = Cond::Less(numbers.next.clone(), numbers.counter.end.clone());
        let issue = self.issue(copies, &numbers.counter, &numbers.next, &numbers.next_stage);
        let waits = ring.empty.map(|empty| {
            let parity = normalize(&((numbers.next_phase.clone() + 1) % 2));
            barrier_call(Inst::BarrierWait, (empty, numbers.next_stage.clone()), Some(parity))
        });
        let issue = under(&[exists], waits.into_iter().chain([Stmt::Elect { body: issue }]).collect());
        let parity = normalize(&(numbers.phase.clone() % 2));
        let wait = barrier_call(Inst::BarrierWait, (ring.full, numbers.stage.clone()), Some(parity));
        let op = |body: Vec<Stmt>, part: &'static str, team: &Team| {
            Block::Op(OpBlock::new(title.clone(), None, body, *plan).part(part).of(team.role))
        };
        let mut all = Vec::new();
        if teams.is_one() {
            let mut first = settled(teams.all.by_first_of(&teams.issuers, issue));
            first.push(wait);
            all.push(op(first, "fill a stage ahead, wait for this one", &teams.all));
        } else {
            let issue = settled(teams.issuers.by_first_of(&teams.issuers, issue));
            all.push(op(issue, "fill a stage ahead", &teams.issuers));
            all.extend(teams.users.iter().map(|users| op(vec![wait.clone()], "wait for a stage", users)));
        }
        all.extend(self.uses(body, ahead, &numbers.stage));
        let reasons = &mut self.plans[*plan].barriers;
        let full = "the copies of an iteration have arrived";
        reasons.push(Barrier { what: "full mbarriers".to_string(), reason: full.to_string() });
        if let Some(empty) = ring.empty {
            let reason = "all warps have finished with the stage that is copied to next";
            reasons.push(Barrier { what: "empty mbarriers".to_string(), reason: reason.to_string() });
            let arrive = barrier_call(Inst::BarrierArrive, (empty, numbers.stage.clone()), None);
            for users in &teams.users {
                let lane = HwIndex::Lane.var(users.threads, &self.builder.program.grid);
                let arrives = under(&[Cond::Equal(Expr::var(&lane), Expr::constant(0))], vec![arrive.clone()]);
                let release = std::iter::once(Stmt::from(Call::plain(Inst::SyncWarp))).chain(arrives).collect();
                all.push(op(release, "this stage is empty", users));
            }
        }
        let inner = LoopRef { names: stage_names(numbers.names, &all), ..inner };
        LoopBlock { inner, barrier, body: all, ahead: None }
    }

    /// Announces the bytes of an iteration, and starts its copies, to a stage.
    fn issue(&mut self, copies: &EngineCopies, counter: &Counter, iteration: &Expr, stage: &Expr) -> Vec<Stmt> {
        let EngineCopies { fills, ring, .. } = copies;
        let barrier = (ring.full, stage.clone());
        let of_iteration = |var: &Var| (*var == counter.var).then(|| iteration.clone());
        let mut all = vec![barrier_call(Inst::BarrierExpect, barrier.clone(), Some(Expr::constant(bytes(fills))))];
        for fill in fills {
            let fill = fill.clone().map_exprs(&|expr| expr.substitute(&of_iteration));
            let memory = self.builder.memory(fill.shared);
            let first = fill.place.clone() + stage * self.builder.program.memories[memory].stage_elements();
            let way = EngineWay::ToShared { full: barrier.clone(), reach: Reach::Own };
            all.extend(self.builder.copies(&fill, (memory, &first), &way));
        }
        all
    }
}

/// The copies of an iteration, and the ring that they fill.
struct EngineCopies {
    fills: Vec<EngineMove>,
    ring: Ring,
    teams: Teams,
    /// The plan of the loop, and its title.
    plan: usize,
    title: String,
}
