//! Puts the copies of a loop ahead of what uses them.

use std::collections::BTreeSet;

use tilewright_diag::counted;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{Barrier, OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::{Call, Cond, Inst, Memory, MemorySpace, Stmt, for_each_expr, for_each_stmt_mut};
use tilewright_ir::{Counter, Handle, padded_shared_bytes};

use super::{CP_ASYNC, Copy, Halves, RunsAhead, THROUGH_REGISTERS, serial};
use crate::builder::Builder;
use crate::conditions::{settled, under};
use crate::sync::{Block, Branch, LoopBlock, LoopRef, OpBlock};

/// What loops are rotated with.
pub(crate) struct Rotation<'a> {
    pub(crate) builder: &'a mut Builder,
    pub(crate) plans: &'a mut Vec<OpPlan>,
    /// Loops so far.
    pub(crate) loops: &'a mut usize,
}

/// The blocks with the copies of pipelined loops ahead of what uses them, as far as shared memory suffices for their stages.
pub(crate) fn rotated(blocks: Vec<Block>, with: &mut Rotation<'_>) -> Vec<Block> {
    let mut out = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Op(_) => out.push(block),
            Block::If(mut branches) => {
                for Branch { body, .. } in [&mut branches.then, &mut branches.otherwise] {
                    *body = rotated(std::mem::take(body), with);
                }
                out.push(Block::If(branches));
            }
            Block::Loop(mut inner) => match inner.ahead.take() {
                Some(ahead) => out.extend(rotated(with.rotate(inner, ahead), with)),
                None => {
                    inner.body = rotated(inner.body, with);
                    out.push(Block::Loop(inner));
                }
            },
        }
    }
    out
}

impl Rotation<'_> {
    fn rotate(&mut self, inner: LoopBlock, ahead: RunsAhead) -> Vec<Block> {
        let stages = match self.stages(&ahead, &inner.inner.counter) {
            Ok(stages) => stages,
            Err(reasons) => {
                self.plans[ahead.plan].considered = serial(reasons);
                return vec![Block::Loop(inner)];
            }
        };
        let answer = Ok(self.facts(&ahead, &inner.inner.counter, stages));
        let variant = if ahead.has_async_copies() { CP_ASYNC } else { THROUGH_REGISTERS };
        let plan = &mut self.plans[ahead.plan];
        plan.considered = vec![VariantResult { variant, answer }];
        plan.chosen = variant;
        self.stretch(&ahead, stages);
        let numbers = Iteration::of(self.builder, &inner.inner.counter, stages);
        let mut all = self.prologue(&inner, &ahead, &numbers, stages);
        all.push(Block::Loop(self.main(inner, ahead, numbers, stages)));
        all
    }

    /// The stages for which shared memory suffices: at most those that the user asks for, and one for each iteration. Error: why
    /// there is only one.
    fn stages(&self, ahead: &RunsAhead, counter: &Counter) -> Result<i64, Vec<Reason>> {
        let mut reasons = ahead.against.clone();
        if ahead.copies.is_empty() {
            if reasons.is_empty() {
                let text = "no statement of the loop copies a tile of a tensor to shared memory";
                reasons.push(Reason::new(text, "copies directly in the loop"));
            }
            return Err(reasons);
        }
        let (most, taken) = (self.builder.program.target.shared_bytes(), self.builder.program.shared_bytes());
        let more = |memory: &Handle<Memory>, stages: i64| {
            let memory = &self.builder.program.memories[*memory];
            (stages - memory.stages).max(0).saturating_mul(bytes_of_stage(memory))
        };
        let taken_with =
            |stages: i64| ahead.memories().iter().map(|memory| more(memory, stages)).fold(taken, i64::saturating_add);
        let fits = |stages: &i64| taken_with(*stages) <= most;
        // Registers hold one iteration.
        let asked = if ahead.has_async_copies() { ahead.stages } else { ahead.stages.min(2) };
        let needed = asked.min(counter.most_trips());
        (2..=needed).rev().find(fits).ok_or_else(|| {
            let text = format!("with 2 stages, all shared memory of the kernel takes {} B", taken_with(2));
            let accepted = format!("the {most} B that a CTA of {} has", self.builder.program.target);
            reasons.push(Reason::new(text, accepted));
            reasons
        })
    }

    /// Bytes of a stage of all buffers.
    fn stage_bytes(&self, ahead: &RunsAhead) -> i64 {
        ahead.memories().iter().map(|memory| bytes_of_stage(&self.builder.program.memories[*memory])).sum()
    }

    fn facts(&self, ahead: &RunsAhead, counter: &Counter, stages: i64) -> PlanFacts {
        let names = |of: &mut dyn Iterator<Item = Handle<Memory>>| {
            let names: Vec<String> =
                of.map(|memory| format!("`{}`", self.builder.program.memories[memory].name)).collect();
            names.join(", ")
        };
        let in_registers = ahead.copies.iter().filter(|copy| copy.halves.is_some());
        let held: BTreeSet<Handle<Memory>> = in_registers.flat_map(|copy| copy.fills.iter().copied()).collect();
        let fewer = if stages == ahead.stages {
            String::new()
        } else if stages == counter.most_trips() {
            ", as many as iterations".to_string()
        } else if !ahead.has_async_copies() {
            ", since registers hold one iteration".to_string()
        } else {
            format!(", since {} do not fit into shared memory", ahead.stages)
        };
        let way = match (held.is_empty(), ahead.has_async_copies()) {
            (true, _) => String::new(),
            (false, true) => format!(", those to {} through registers", names(&mut held.into_iter())),
            (false, false) => ", through registers".to_string(),
        };
        let summary = format!(
            "{stages} stages of {}{fewer}: {} B each; copies run {} ahead{way}",
            names(&mut ahead.memories().into_iter()),
            self.stage_bytes(ahead),
            counted(stages - 1, "iteration")
        );
        // The wait, the barrier, the commit, and whether there is an iteration to copy for.
        PlanFacts::without_accesses(summary, 5)
    }

    /// Makes room for the stages of all buffers.
    fn stretch(&mut self, ahead: &RunsAhead, stages: i64) {
        let owners = ahead.memories();
        let program = &mut self.builder.program;
        let of_owner: Vec<(Handle<Memory>, i64)> =
            owners.iter().map(|owner| (*owner, bytes_of_stage(&program.memories[*owner]))).collect();
        let all: Vec<Handle<Memory>> = program.memories.iter().map(|(handle, _)| handle).collect();
        for handle in all {
            let owner = program.owner(handle);
            let Some((_, bytes)) = of_owner.iter().find(|(known, _)| *known == owner) else { continue };
            let memory = &mut program.memories[handle];
            // A copy of an unrolled loop may have made room before.
            memory.stages = memory.stages.max(stages);
            memory.elements = memory.stages * (bytes / memory.dtype.bytes());
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
        let (LoopBlock { inner, barrier, body, .. }, memories) = (inner, ahead.memories());
        let [mut loads, stores] = self.next_copies(&body, &ahead, &numbers);
        commit(&mut loads, &ahead);
        let is_copy = |at: usize| ahead.copies.iter().any(|copy| copy.block == at);
        let rest = body.into_iter().enumerate().filter(|(at, _)| !is_copy(*at)).map(|(_, block)| block);
        let mut rest: Vec<Block> = rest.collect();
        for_each_op(&mut rest, &mut |op| self.in_stage(&mut op.body, &memories, &numbers.stage));
        let wait = Block::Op(self.wait(&ahead, stages));
        let all: Vec<Block> = std::iter::once(wait).chain(loads).chain(rest).chain(stores).collect();
        let names = numbers.names.into_iter().filter(|(var, _)| mentions(&all, var)).collect();
        let inner = LoopRef { names, ..inner };
        LoopBlock { inner, barrier, body: all, ahead: None }
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
                    let loads = declarations.iter().cloned().chain(part(loads)).collect();
                    first.push(Block::Op(op.with_body(loads)));
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
    fn wait(&mut self, ahead: &RunsAhead, stages: i64) -> OpBlock {
        let is_warp = self.builder.program.threads <= 32;
        let (sync, what) = if is_warp { (Inst::SyncWarp, "__syncwarp") } else { (Inst::SyncThreads, "__syncthreads") };
        let reason =
            "all threads see the copies of all threads, and have finished with the stage that is copied to next";
        let plan = &mut self.plans[ahead.plan];
        plan.barriers.push(Barrier { what, reason: reason.to_string() });
        let pending = Call { arguments: vec![Expr::constant(stages - 2)], ..Call::plain(Inst::CopyAsyncWait) };
        let waits = ahead.has_async_copies().then(|| Stmt::from(pending));
        let body = waits.into_iter().chain([Stmt::from(Call::plain(sync))]).collect();
        OpBlock::new(plan.title.clone(), None, body, ahead.plan)
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

/// Bytes from the beginning of a stage to that of the next.
fn bytes_of_stage(memory: &Memory) -> i64 {
    padded_shared_bytes(memory.stage_elements() * memory.dtype.bytes())
}

/// The numbers of an iteration of a pipelined loop.
struct Iteration {
    counter: Counter,
    /// Its stage.
    stage: Expr,
    /// The iteration for which copies start, and its stage.
    next: Expr,
    next_stage: Expr,
    /// What has a name in these.
    names: Vec<(Var, Expr)>,
}

impl Iteration {
    fn of(builder: &mut Builder, counter: &Counter, stages: i64) -> Iteration {
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
        let next_stage = named("stage_next", (number + (stages - 1)) % stages);
        Iteration { counter: counter.clone(), stage, next, next_stage, names }
    }
}

/// Closes the group of asynchronous copies.
fn commit(blocks: &mut [Block], ahead: &RunsAhead) {
    if let Some(Block::Op(last)) = blocks.last_mut().filter(|_| ahead.has_async_copies()) {
        last.body.push(Stmt::from(Call::plain(Inst::CopyAsyncCommit)));
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

/// Calls `visit` on all ops of blocks.
fn for_each_op(blocks: &mut [Block], visit: &mut dyn FnMut(&mut OpBlock)) {
    for block in blocks {
        match block {
            Block::Op(op) => visit(op),
            Block::Loop(inner) => for_each_op(&mut inner.body, visit),
            Block::If(branches) => {
                visit(&mut branches.first);
                for_each_op(&mut branches.then.body, visit);
                for_each_op(&mut branches.otherwise.body, visit);
            }
        }
    }
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
