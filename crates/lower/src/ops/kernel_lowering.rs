//! Chooses the variant of every op and builds its statements.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{OpPlan, VariantResult};
use tilewright_ir::thread::{Cond, RegArray, for_each_stmt};
use tilewright_ir::tile::{
    Buffer, If, Kernel, KernelsByRole, Loop, Op, OpKind, Part, Role, Stmt, TensorColumns, Tile, Unroll,
    iteration_exists, tile_title,
};
use tilewright_ir::{Counter, Handle};
use tilewright_layout::{ENUMERATION_LIMIT, LayoutError};

use super::options::Options;
use super::variants::{all_names, variants};
use crate::builder::Builder;
use crate::conditions::merged;
use crate::refusal::{MOST_STATEMENTS, too_many_statements};
use crate::rings::{NextTile, Rings};
use crate::sync::{Block, LoopBlock, LoopPart, LoopRef, OpBlock};
use crate::variant::{AcrossLoop, Choice, choose};

/// A kernel while it is lowered.
pub(super) struct KernelLowering<'a> {
    /// The kernel, as the role of the current statement sees it.
    pub(super) kernel: &'a Kernel,
    pub(super) kernels: &'a KernelsByRole<'a>,
    pub(super) options: &'a Options,
    pub(super) builder: Builder,
    pub(super) rings: Rings,
    /// Which columns of tensor memory buffers have.
    pub(super) tensor_columns: TensorColumns,
    /// The registers that say whether products are added to sums in tensor memory.
    pub(super) sums_flags: BTreeMap<Handle<Buffer>, Handle<RegArray>>,
    /// Plans of the ops lowered so far, in program order.
    pub(super) plans: Vec<OpPlan>,
    /// Errors found so far.
    pub(super) found: Vec<Diagnostic>,
    /// Iterations of the serial loops around the current op.
    pub(super) trips: Expr,
    /// Serial loops seen so far.
    pub(super) loops: usize,
    /// Loops and branches around the current statement.
    pub(super) depth: usize,
    /// The register for the next tile of the innermost loop around the current statement, if its tiles are claimed, and the end of
    /// the loop.
    pub(super) claims: Option<NextTile>,
    /// Statements of the ops lowered so far.
    pub(super) statements: usize,
    /// The ops that are spread over the loops around the current statement.
    pub(super) spread_ops: Vec<AcrossOp>,
}

/// An op that is spread over a loop.
pub(super) struct AcrossOp {
    pub(super) handle: Handle<Op>,
    pub(super) op: Op,
    pub(super) considered: Vec<VariantResult>,
    pub(super) chosen: &'static str,
    /// The summary of the op as a whole.
    pub(super) summary: String,
    pub(super) stages: AcrossLoop,
}

/// Values of unrolled loop variables.
pub(super) type Substitution = [(Var, i64)];

impl KernelLowering<'_> {
    pub(super) fn body(&mut self, body: &[Stmt], unrolled: &Substitution) -> Vec<Block> {
        let mut blocks = Vec::new();
        for stmt in body {
            if self.statements > MOST_STATEMENTS {
                break;
            }
            match stmt {
                Stmt::Op(op) => {
                    let role = self.kernel.ops[*op].role;
                    let block = match self.in_loop(*op) {
                        Some(block) => Ok(Some(block)),
                        None => self.any_op(&substituted(&self.kernel.ops[*op], unrolled)),
                    };
                    let block = block.map(|block| block.map(|block| self.in_stages(role, block)));
                    self.keep(block.transpose(), &mut blocks);
                }
                Stmt::Loop(inner) => blocks.extend(self.repeat(inner, unrolled)),
                Stmt::Parallel(parallel) => {
                    let nest = &self.kernel.parallels[*parallel];
                    self.note_stores_to_stages(nest);
                    let block = self.parallel(*parallel, unrolled);
                    let block = block.map(|block| self.in_stages(nest.role, block));
                    self.keep(Some(block), &mut blocks);
                }
                Stmt::If(branch) => match self.branches(branch, unrolled) {
                    Ok(block) => blocks.push(block),
                    Err(finding) => self.found.push(finding),
                },
                Stmt::EachThread(body) => {
                    let block = self.each(body, unrolled);
                    self.keep(Some(block), &mut blocks);
                }
                Stmt::Begin(hold) => {
                    let block = self.begin_hold(*hold);
                    self.keep(Some(Ok(block)), &mut blocks);
                }
                Stmt::End(hold) => {
                    let block = self.end_hold(*hold);
                    self.keep(block.map(Ok), &mut blocks);
                }
            }
        }
        blocks
    }

    /// The block of an op; `None` if it is a part of another block.
    fn any_op(&mut self, op: &Op) -> Result<Option<OpBlock>, Diagnostic> {
        match op.kind {
            _ if self.kernel.uses_tensor_memory(op) => self.tensor_op(op).map(Some),
            _ if self.stage_filled_by(op).is_some() => self.fill_of_stage(op),
            OpKind::CopyAsync => self.copy_async(op).map(Some),
            kind if kind.is_atomic() => self.atomic(op).map(Some),
            _ => self.op(op).map(Some),
        }
    }

    /// Adds a block, or an error.
    pub(super) fn keep(&mut self, block: Option<Result<OpBlock, Diagnostic>>, blocks: &mut Vec<Block>) {
        let Some(block) = block else { return };
        match block {
            Ok(block) => {
                self.count(&block);
                blocks.push(Block::Op(block));
            }
            Err(finding) => self.found.push(finding),
        }
    }

    /// Counts the statements of an op. The op with which there are too many is an error, and lowering ends there.
    fn count(&mut self, block: &OpBlock) {
        let before = self.statements;
        for_each_stmt(&block.body, &mut |_| self.statements += 1);
        if before <= MOST_STATEMENTS && self.statements > MOST_STATEMENTS {
            self.found.push(too_many_statements().diagnostic(&block.title, self.plans[block.op].span));
        }
    }

    fn repeat(&mut self, inner: &Loop, unrolled: &Substitution) -> Vec<Block> {
        let counter = &inner.counter;
        let values = || counter.possible();
        let is_unrolled = inner.unroll == Unroll::Full || self.addresses_registers(inner);
        match is_unrolled {
            false => {
                let (spread, mut blocks) = self.before_loop(inner, unrolled);
                let (outer, count) = (self.trips.clone(), spread.len());
                self.spread_ops.extend(spread);
                let is_claimed = inner.unroll == Unroll::Claimed;
                // All CTAs together go through the values of a claimed loop once.
                if !is_claimed {
                    let executed = self.most_trips(counter).ceil_div(inner.part.map_or(1, |part| part.of));
                    self.trips = self.trips.clone() * executed;
                }
                let next = is_claimed.then(|| self.builder.next_tile());
                let around = std::mem::replace(&mut self.claims, next.map(|next| (next, counter.end.clone())));
                let ahead = self.pipelined(inner);
                let deeper = usize::from(inner.unroll != Unroll::Once);
                self.depth += deeper;
                let (body, ahead) = self.loop_body(inner, ahead, unrolled);
                self.depth -= deeper;
                self.claims = around;
                self.trips = outer;
                self.loops += 1;
                let counter = counter.map_bounds(&|bound| substituted_expr(bound, unrolled));
                let is_name = inner.unroll == Unroll::Once;
                let part = inner.part.and_then(|part| self.part(part, inner, &counter));
                let own = self.kernels.whole().own_blocks(inner);
                let own = own.into_iter().map(|(tensor, blocks)| (self.builder.memory(tensor), blocks)).collect();
                let inner = LoopRef { is_name, next, part, own, ..LoopRef::new(self.loops, counter) };
                blocks.push(Block::Loop(LoopBlock { inner, barrier: None, body, ahead }));
                blocks.extend(self.after_loop(count));
                blocks
            }
            true => {
                self.not_pipelined(inner);
                values().flat_map(|value| self.iteration(inner, value, unrolled)).collect()
            }
        }
    }

    /// Which iterations the role of a loop executes, and what it passes in the others.
    fn part(&mut self, part: Part, inner: &Loop, counter: &Counter) -> Option<Box<LoopPart>> {
        let Part { index, of } = part;
        let number = normalize(&(Expr::var(&counter.var) - counter.begin.clone())) / counter.step;
        let is_own = Cond::Equal(normalize(&(number % of)), Expr::constant(index));
        match self.kernels.whole().stages_in(&inner.body) {
            Ok(stages) => {
                let passed = stages.into_iter().map(|(ring, count)| {
                    let (cursor, plan) = self.rings.cursor_of(ring);
                    (cursor, plan, count)
                });
                Some(Box::new(LoopPart { part, is_own, passed: passed.collect() }))
            }
            Err(finding) => {
                self.found.push(*finding);
                None
            }
        }
    }

    /// One iteration of a loop that is unrolled, under the condition that it exists if only the launch determines that.
    fn iteration(&mut self, inner: &Loop, value: i64, unrolled: &Substitution) -> Vec<Block> {
        let counter = inner.counter.map_bounds(&|bound| substituted_expr(bound, unrolled));
        let Some(conditions) = iteration_exists(&counter, value) else { return Vec::new() };
        let values = [unrolled, &[(counter.var, value)]].concat();
        if conditions.is_empty() {
            return self.body(&inner.body, &values);
        }
        let body = conditions.into_iter().fold(inner.body.clone(), |then, cond| {
            vec![Stmt::If(If { cond, then, otherwise: Vec::new(), span: inner.span })]
        });
        self.body(&body, &values)
    }

    /// How many iterations a loop has at most, as an expression of sizes: for the last CTA, and the last iteration of each
    /// loop around it.
    fn most_trips(&self, counter: &Counter) -> Expr {
        self.kernel.greatest(&counter.trips())
    }

    /// Lowers something of a role, as if the CTA had only the threads of the role.
    pub(super) fn in_role<T>(&mut self, role: Option<Handle<Role>>, lower: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (self.kernel, self.builder.program.threads, self.builder.role);
        self.kernel = self.kernels.seen_by(role);
        (self.builder.program.threads, self.builder.role) = (self.kernel.threads, role);
        let lowered = lower(self);
        (self.kernel, self.builder.program.threads, self.builder.role) = outer;
        lowered
    }

    pub(super) fn op(&mut self, op: &Op) -> Result<OpBlock, Diagnostic> {
        self.in_role(op.role, |lowering| lowering.op_of_team(op))
    }

    /// Lowers an op for the threads that execute it together.
    fn op_of_team(&mut self, op: &Op) -> Result<OpBlock, Diagnostic> {
        let op = &self.with_variant(op);
        if let Some(tile) = op.operands.iter().find(|tile| tile.elements() > ENUMERATION_LIMIT) {
            let error = LayoutError::TooLarge { points: tile.elements() };
            return Err(error.diagnostic().label(op.span, format!("the tile `{}`", tile_title(self.kernel, tile))));
        }
        let Choice { considered, chosen, floor, candidate } =
            choose(&variants(op), &mut self.builder, self.kernel, op)?;
        let body = candidate.build(&mut self.builder);
        let body = merged(body.map_err(|why| why.diagnostic(&self.kernel.op_title(op), op.span))?);
        let title = self.title(op);
        let plan = OpPlan::new(title.clone(), op.span, self.executions(op), chosen);
        let plan = OpPlan { considered, forced: op.variant.is_some(), floor, ..plan };
        let guard = op
            .warp
            .filter(|_| self.kernel.warps() > 1)
            .map(|warp| Cond::Equal(Expr::var(&self.kernel.warp()), Expr::constant(warp)));
        self.plans.push(plan);
        Ok(OpBlock::new(title, guard, body, self.plans.len() - 1).of(self.kernels.whole().part_of_cta(op.role)))
    }

    /// The title of an op in plans and CUDA, with its name if it has one.
    pub(super) fn title(&self, op: &Op) -> String {
        let title = self.kernel.op_title(op);
        let named = op.name.as_ref().map_or_else(|| title.clone(), |name| format!("{name}: {title}"));
        self.title_in_role(op.role, &op.span.titled(&named))
    }

    /// A title, after the role of what has it.
    pub(super) fn title_in_role(&self, role: Option<Handle<Role>>, title: &str) -> String {
        role.map_or_else(|| title.to_string(), |role| format!("role {}: {title}", self.kernel.roles[role].name))
    }

    /// The op with the variant that the options ask for, where the kernel does not force one.
    pub(super) fn with_variant(&self, op: &Op) -> Op {
        let asked = self.options.variant.as_deref();
        let asked = asked.filter(|name| variants(op).iter().any(|list| list.names().contains(name)));
        let variant = op.variant.clone().or(asked.map(str::to_string));
        Op { variant, ..op.clone() }
    }

    /// An option that no op of the kernel takes is a mistake, not a silent no-op.
    pub(super) fn check_variant_is_known(&mut self) {
        let Some(asked) = &self.options.variant else { return };
        if self.plans.iter().any(|plan| plan.forced && plan.chosen == asked) || !self.found.is_empty() {
            return;
        }
        let known = all_names();
        if !known.contains(asked.as_str()) {
            let known: Vec<&str> = known.into_iter().collect();
            self.found.push(
                Diagnostic::error("P0401", format!("there is no variant `{asked}`"))
                    .help(format!("the variants are {}", known.join(", "))),
            );
        } else {
            self.found
                .push(Diagnostic::error("P0401", format!("no op of this kernel takes the variant `{asked}`")).help(
                    "`emit --stage plan` shows the variants of every op, and which one the kernel itself forces",
                ));
        }
    }

    /// How often a launch executes an op at the current position, over all warps that take part.
    pub(super) fn executions(&self, op: &Op) -> Expr {
        self.executions_by(op.warp.map_or(self.kernel.warps(), |_| 1))
    }

    pub(super) fn executions_by(&self, warps: i64) -> Expr {
        self.kernel.in_all_ctas(self.trips.clone() * warps)
    }
}

pub(super) fn substituted(op: &Op, unrolled: &Substitution) -> Op {
    if unrolled.is_empty() {
        return op.clone();
    }
    let tile = |tile: &Tile| {
        let starts = tile.starts.iter().map(|start| substituted_expr(start, unrolled)).collect();
        Tile { starts, ..tile.clone() }
    };
    Op { operands: op.operands.iter().map(tile).collect(), ..op.clone() }
}

pub(super) fn substituted_expr(expr: &Expr, unrolled: &Substitution) -> Expr {
    let number = |var: &Var| unrolled.iter().find(|(v, _)| v == var).map(|(_, value)| Expr::constant(*value));
    normalize(&expr.substitute(&number))
}
