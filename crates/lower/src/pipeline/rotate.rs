//! Puts the copies of a loop ahead of what uses them.

use std::collections::BTreeSet;

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{Barrier, OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Call, Cond, Inst, Memory, MemorySpace, Stmt, for_each_expr, for_each_stmt_mut};
use tilewright_ir::tile::{Role, TMA_WARP_SPECIALISED};
use tilewright_ir::{Counter, Handle};

use super::choice::{Ways, bytes_of_stage};
use super::served::Served;
use super::teams::Team;
use super::{Copy, Halves, RunsAhead, SERIAL, in_order, unmet_by_loop};
use crate::builder::Builder;
use crate::conditions::{settled, under};
use crate::sync::{Block, Branch, LoopBlock, LoopRef, OpBlock, for_each_op, role_of};

/// What loops are rotated with.
pub(crate) struct Rotation<'a> {
    pub(super) builder: &'a mut Builder,
    pub(super) plans: &'a mut Vec<OpPlan>,
    /// Loops so far.
    pub(super) loops: &'a mut usize,
    /// Errors about loops.
    pub(super) found: &'a mut Vec<Diagnostic>,
    /// The loops and branches around the current block.
    pub(super) depth: usize,
    /// The loops that the copy engine serves.
    pub(super) served: Served,
}

impl<'a> Rotation<'a> {
    /// The blocks with the copies of pipelined loops ahead of what uses them, as far as shared memory suffices for their
    /// stages. `loops` counts loops, and `found` takes errors about them.
    pub(crate) fn rotated(
        builder: &'a mut Builder,
        plans: &'a mut Vec<OpPlan>,
        loops: &'a mut usize,
        found: &'a mut Vec<Diagnostic>,
        blocks: Vec<Block>,
    ) -> Vec<Block> {
        let mut rotation = Rotation { builder, plans, loops, found, depth: 0, served: Served::default() };
        let takes =
            |ahead: &RunsAhead, inner: &LoopBlock| rotation.ways(ahead, &inner.inner.counter).takes_engine(ahead);
        rotation.served = Served::of(&rotation.builder.program, &blocks, &takes);
        rotation.blocks(blocks)
    }

    fn blocks(&mut self, blocks: Vec<Block>) -> Vec<Block> {
        let mut out = Vec::with_capacity(blocks.len());
        for block in blocks {
            match block {
                Block::Op(_) => out.push(block),
                Block::If(mut branches) => {
                    for Branch { body, .. } in [&mut branches.then, &mut branches.otherwise] {
                        *body = self.inside(std::mem::take(body));
                    }
                    out.push(Block::If(branches));
                }
                Block::Loop(mut inner) => match inner.ahead.take() {
                    Some(ahead) => {
                        let rotated = self.rotate(inner, ahead);
                        out.extend(self.blocks(rotated));
                    }
                    None => {
                        inner.body = self.inside(inner.body);
                        out.push(Block::Loop(inner));
                    }
                },
            }
        }
        out
    }

    /// The blocks of a loop or a branch.
    fn inside(&mut self, blocks: Vec<Block>) -> Vec<Block> {
        self.depth += 1;
        let rotated = self.blocks(blocks);
        self.depth -= 1;
        rotated
    }

    fn rotate(&mut self, inner: LoopBlock, ahead: RunsAhead) -> Vec<Block> {
        let ways = self.ways(&ahead, &inner.inner.counter);
        let takes_engine = ways.takes_engine(&ahead);
        let Ways { mut engine, threads } = ways;
        let is_served = self.served.take(inner.inner.id, engine.is_err());
        if takes_engine && !is_served {
            let text = "another copy of this loop, which is unrolled, does not take it";
            engine = Err(vec![Reason::new(text, "as many iterations in each")]);
        }
        let of = |variant, answer| VariantResult { variant, answer };
        let answer_of_engine = engine.as_ref().map(|engine| engine.facts.clone()).map_err(Clone::clone);
        let threads_answer = threads.as_ref().map(|(_, facts)| facts.clone()).map_err(Clone::clone);
        let plan = &mut self.plans[ahead.plan];
        plan.forced = ahead.variant.is_some();
        plan.considered = vec![of(ahead.by_threads(), threads_answer)];
        if !ahead.copies.is_empty() {
            plan.considered.insert(0, of(ahead.by_engine(), answer_of_engine));
        }
        let asks_for_producer = ahead.variant.as_deref() == Some(TMA_WARP_SPECIALISED);
        if let Some(reason) = ahead.producer.as_ref().err().filter(|_| asks_for_producer) {
            plan.considered.insert(0, of(TMA_WARP_SPECIALISED, Err(vec![reason.clone()])));
        }
        match (engine, threads) {
            (Ok(way), _) if is_served => {
                plan.chosen = ahead.by_engine();
                self.rotated_by_engine(inner, ahead, way)
            }
            (_, Ok((stages, _))) if ahead.may_be(ahead.by_threads()) => {
                plan.chosen = ahead.by_threads();
                self.rotated_by_threads(inner, ahead, stages)
            }
            _ => {
                plan.considered.push(in_order());
                plan.chosen = SERIAL;
                let asked = ahead.variant.as_deref().filter(|asked| *asked != SERIAL);
                self.found.extend(asked.map(|asked| unmet_by_loop(plan, asked)));
                vec![Block::Loop(inner)]
            }
        }
    }

    fn rotated_by_threads(&mut self, inner: LoopBlock, ahead: RunsAhead, stages: i64) -> Vec<Block> {
        self.stretch(&ahead, stages);
        let numbers = Iteration::of(self.builder, &inner.inner.counter, stages);
        let mut all = self.prologue(&inner, &ahead, &numbers, stages);
        all.push(Block::Loop(self.main(inner, ahead, numbers, stages)));
        all
    }

    /// Makes room for the stages of all buffers.
    pub(super) fn stretch(&mut self, ahead: &RunsAhead, stages: i64) {
        for owner in ahead.memories() {
            let memory = &self.builder.program.memories[owner];
            let bytes = bytes_of_stage(memory, memory.alignment);
            self.builder.for_each_view(&[owner], &mut |memory| {
                // A copy of an unrolled loop may have made room before.
                memory.stages = memory.stages.max(stages);
                memory.elements = memory.stages * (bytes / memory.dtype.bytes());
            });
        }
    }

    /// The copies of the first iterations.
    fn prologue(&mut self, inner: &LoopBlock, ahead: &RunsAhead, numbers: &Iteration, stages: i64) -> Vec<Block> {
        let Counter { begin, step, .. } = &numbers.counter;
        if stages == 2 {
            return self.first_copies(&inner.body, ahead, (&numbers.counter, begin), &Expr::constant(0));
        }
        let var = Var::new(self.builder.fresh("ahead"), 0, stages - 2);
        let iteration = normalize(&(Expr::var(&var) * *step + begin.clone()));
        let body = self.first_copies(&inner.body, ahead, (&numbers.counter, &iteration), &Expr::var(&var));
        *self.loops += 1;
        let inner = LoopRef::new(*self.loops, Counter::of(var));
        vec![Block::Loop(LoopBlock { inner, barrier: None, body, ahead: None })]
    }

    /// The copies of one of the first iterations, to a stage.
    fn first_copies(
        &mut self,
        body: &[Block],
        ahead: &RunsAhead,
        iteration: (&Counter, &Expr),
        stage: &Expr,
    ) -> Vec<Block> {
        let mut all = Vec::with_capacity(ahead.copies.len());
        for copy in &ahead.copies {
            let Block::Op(op) = &body[copy.block] else { continue };
            let statements = self.ahead(&copy.statements, ahead, iteration, stage);
            all.push(Block::Op(op.with_body(statements)));
        }
        commit(&mut all, ahead);
        all
    }

    /// The loop, in which copies are ahead of what uses them.
    fn main(&mut self, inner: LoopBlock, ahead: RunsAhead, numbers: Iteration, stages: i64) -> LoopBlock {
        let LoopBlock { inner, barrier, body, .. } = inner;
        let role = role_of(&body);
        let [mut loads, stores] = self.next_copies(&body, &ahead, &numbers);
        commit(&mut loads, &ahead);
        let rest = self.uses(body, &ahead, &numbers.stage);
        let wait = Block::Op(self.wait(&ahead, stages, role));
        let all: Vec<Block> = std::iter::once(wait).chain(loads).chain(rest).chain(stores).collect();
        let inner = LoopRef { names: stage_names(numbers.names, &all), ..inner };
        LoopBlock { inner, barrier, body: all, ahead: None }
    }

    /// The blocks of a loop that do not run ahead, at a stage.
    pub(super) fn uses(&self, body: Vec<Block>, ahead: &RunsAhead, stage: &Expr) -> Vec<Block> {
        let memories = ahead.memories();
        let is_copy = |at: usize| ahead.copies.iter().any(|copy| copy.block == at);
        let rest = body.into_iter().enumerate().filter(|(at, _)| !is_copy(*at)).map(|(_, block)| block);
        let mut rest: Vec<Block> = rest.collect();
        for_each_op(&mut rest, &mut |op| self.in_stage(&mut op.body, &memories, stage));
        rest
    }

    /// What starts before the rest of an iteration, and what is stored after it.
    fn next_copies(&mut self, body: &[Block], ahead: &RunsAhead, numbers: &Iteration) -> [Vec<Block>; 2] {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let iteration = (&numbers.counter, &numbers.next);
        for copy in &ahead.copies {
            let Block::Op(op) = &body[copy.block] else { continue };
            self.choose(op.op, copy);
            let part = |statements: &[Stmt]| self.ahead(statements, ahead, iteration, &numbers.next_stage);
            match &copy.halves {
                None => first.push(Block::Op(op.with_body(part(&copy.statements)))),
                Some(Halves { declarations, loads, stores, .. }) => {
                    // The branch of a role is a block of its own: registers that outlive it are declared before it.
                    let (loads, held) = (part(loads), declarations.clone());
                    if op.role.is_some() {
                        let held = OpBlock::new(op.title.clone(), None, held, op.op);
                        first.push(Block::Op(held.part("registers for what is loaded ahead")));
                        first.push(Block::Op(op.with_body(loads)));
                    } else {
                        first.push(Block::Op(op.with_body([held, loads].concat())));
                    }
                    last.push(Block::Op(op.with_body(part(stores))));
                }
            }
        }
        [first, last]
    }

    /// Writes into the plan of an op how it runs ahead.
    fn choose(&mut self, plan: usize, copy: &Copy) {
        let plan = &mut self.plans[plan];
        let summary = plan.facts().map(|facts| facts.summary.clone()).unwrap_or_default();
        let facts = PlanFacts { summary, ..copy.facts.clone() };
        plan.chosen = copy.name();
        plan.considered.push(VariantResult { variant: plan.chosen, answer: Ok(facts) });
    }

    /// The block that waits for the copies of an iteration.
    fn wait(&mut self, ahead: &RunsAhead, stages: i64, role: Option<Handle<Role>>) -> OpBlock {
        let (sync, what) = self.sync_of(role);
        let reason =
            "all threads see the copies of all threads, and have finished with the stage that is copied to next";
        let plan = &mut self.plans[ahead.plan];
        plan.barriers.push(Barrier { what: what.to_string(), reason: reason.to_string() });
        let pending = Call { arguments: vec![Expr::constant(stages - 2)], ..Call::plain(Inst::CopyAsyncWait) };
        let waits = ahead.has_async_copies().then(|| Stmt::from(pending));
        let body = waits.into_iter().chain([Stmt::from(Call::plain(sync))]).collect();
        OpBlock::new(plan.title.clone(), None, body, ahead.plan).part("wait for a stage").of(role)
    }

    /// The barrier for all threads of a role, or of the CTA, and what it is called in plans.
    pub(super) fn sync_of(&self, role: Option<Handle<Role>>) -> (Inst, &'static str) {
        Team::of(&self.builder.program, role).sync()
    }

    /// Statements of an op for another iteration, if there is such an iteration, at a stage.
    fn ahead(
        &self,
        statements: &[Stmt],
        ahead: &RunsAhead,
        (counter, iteration): (&Counter, &Expr),
        stage: &Expr,
    ) -> Vec<Stmt> {
        let mut body = substituted(statements.to_vec(), &mut vec![(counter.var.clone(), iteration.clone())]);
        self.in_stage(&mut body, &ahead.memories(), stage);
        let exists = Cond::Less(iteration.clone(), counter.end.clone());
        under(&[exists], settled(body))
    }

    /// Moves the accesses to these memories to a stage.
    fn in_stage(&self, body: &mut [Stmt], memories: &BTreeSet<Handle<Memory>>, stage: &Expr) {
        let program = &self.builder.program;
        for_each_stmt_mut(body, &mut |stmt| {
            stmt.for_each_place_mut(&mut |memory, index| {
                let is_shared = !matches!(program.memories[memory].space, MemorySpace::Global { .. });
                if is_shared && memories.contains(&program.owner(memory)) {
                    *index = normalize(&(stage * program.memories[memory].stage_elements() + index.clone()));
                }
            });
        });
    }
}

/// The names of an iteration that blocks mention, and those that these are made of.
pub(super) fn stage_names(names: Vec<(Var, Expr)>, body: &[Block]) -> Vec<(Var, Expr)> {
    let mut found: Vec<(Var, Expr)> = Vec::new();
    for (var, value) in names.into_iter().rev() {
        if mentions(body, &var) || found.iter().any(|(_, later)| later.mentions(&var)) {
            found.push((var, value));
        }
    }
    found.reverse();
    found
}

/// The numbers of an iteration of a pipelined loop.
pub(super) struct Iteration {
    pub(super) counter: Counter,
    /// Its stage, and how often the stage was used before.
    pub(super) stage: Expr,
    pub(super) phase: Expr,
    /// The iteration for which copies start, with its stage and phase.
    pub(super) next: Expr,
    pub(super) next_stage: Expr,
    pub(super) next_phase: Expr,
    /// What has a name in these.
    pub(super) names: Vec<(Var, Expr)>,
}

impl Iteration {
    pub(super) fn of(builder: &mut Builder, counter: &Counter, stages: i64) -> Iteration {
        let Counter { var, begin, step, .. } = counter;
        let number = normalize(&(normalize(&(Expr::var(var) - begin.clone())) / *step));
        let mut names = Vec::new();
        let mut named = |base: &str, value: Expr| {
            let value = normalize(&value);
            if value.operands().is_none() {
                return value;
            }
            let range = value.range();
            let name = Var::multiple_of(builder.fresh(base), range.lo, range.hi, value.multiple());
            names.push((name.clone(), value));
            Expr::var(&name)
        };
        let stage = named("stage", &number % stages);
        let next = named(&format!("{}_next", var.name()), Expr::var(var) + (stages - 1) * step);
        // The stage before this one, which is that of `number + stages - 1`; stage 0 comes after the last one, in this phase.
        // A second remainder would cost more.
        let after_first = stage.clone().at_most(1);
        let next_stage = match stages {
            2 => 1 - stage.clone(),
            _ => stage.clone() + (stages - 1) - after_first.clone() * stages,
        };
        let next_stage = named("stage_next", next_stage);
        let phase = named("phase", number / stages);
        let next_phase = phase.clone() + after_first;
        Iteration { counter: counter.clone(), stage, phase, next, next_stage, next_phase, names }
    }
}

/// Closes the group of asynchronous copies, in each role that has some: behind the last of its blocks.
fn commit(blocks: &mut [Block], ahead: &RunsAhead) {
    let roles: BTreeSet<Option<Handle<Role>>> =
        ahead.copies.iter().filter(|copy| copy.halves.is_none()).map(|copy| copy.role).collect();
    for role in roles {
        let of_role = blocks.iter_mut().rev().find_map(|block| match block {
            Block::Op(op) if op.role == role => Some(op),
            Block::Op(_) | Block::Loop(_) | Block::If(_) => None,
        });
        if let Some(op) = of_role {
            op.body.push(Stmt::from(Call::plain(Inst::CopyAsyncCommit)));
        }
    }
}

/// Whether statements of blocks mention a variable.
fn mentions(blocks: &[Block], var: &Var) -> bool {
    let in_body = |body: &[Stmt]| {
        let mut found = false;
        for_each_expr(body, &mut |expr| found |= expr.mentions(var));
        found
    };
    blocks.iter().any(|block| match block {
        Block::Op(op) => in_body(&op.body),
        Block::Loop(inner) => mentions(&inner.body, var),
        Block::If(branches) => {
            in_body(&branches.first.body)
                || [&branches.then, &branches.otherwise].into_iter().any(|branch| mentions(&branch.body, var))
        }
    })
}

/// The statements with variables replaced. What they name is named anew, since it may have other values.
fn substituted(body: Vec<Stmt>, values: &mut Vec<(Var, Expr)>) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in body {
        let of = |var: &Var| values.iter().find(|(known, _)| known == var).map(|(_, value)| value.clone());
        stmt.exprs_mut(&mut |expr| *expr = normalize(&expr.substitute(&of)));
        if let Stmt::Let { var, value } = &mut stmt {
            let range = value.range();
            let anew = Var::multiple_of(var.name(), range.lo, range.hi, value.multiple());
            values.push((std::mem::replace(var, anew.clone()), Expr::var(&anew)));
        }
        out.push(stmt.map_inner(|inner| substituted(inner, values)));
    }
    out
}
