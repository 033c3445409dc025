//! The walk over a kernel: the variant of every op chosen, its statements built, barriers put between.

mod placed;
mod variants;

use tilewright_diag::Diagnostic;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{OpPlan, PlanFacts};
use tilewright_ir::thread::{Call, Cond, Note, Program, Stmt as ThreadStmt};
use tilewright_ir::tile::{Kernel, Loop, Op, Stmt, Tile, Unroll, tile_title};
use tilewright_ir::{Scalar, Target, VerifiedKernel};
use tilewright_layout::{ENUMERATION_LIMIT, LayoutError};

use crate::builder::{Builder, regs};
use crate::conditions::merged;
use crate::sync::{Block, Branch, LoopRef, OpBlock, derive_barriers};
use crate::unwritten::unwritten;
use crate::variant::{Choice, choose};
use variants::{all_names, variants};

/// What a user may ask of lowering beside the kernel itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Takes this variant for every op that has one of that name, unless the kernel forces another.
    pub variant: Option<String>,
}

/// Lowers a kernel to what one thread does. Errors: ops that no variant can do, with every variant's reasons.
pub fn lower(kernel: &VerifiedKernel, target: Target, options: &Options) -> Result<Program, Vec<Diagnostic>> {
    let kernel = kernel.kernel();
    let mut walk = Walk {
        kernel,
        options,
        builder: Builder::new(kernel, target),
        plans: Vec::new(),
        found: Vec::new(),
        trips: 1,
        loops: 0,
    };
    let mut blocks = walk.body(&kernel.body, &[]);
    walk.check_variant_is_known();
    if !walk.found.is_empty() {
        return Err(walk.found);
    }
    derive_barriers(&walk.builder.program, &mut blocks);
    walk.finish(blocks)
}

struct Walk<'a> {
    kernel: &'a Kernel,
    options: &'a Options,
    builder: Builder,
    plans: Vec<OpPlan>,
    found: Vec<Diagnostic>,
    /// Iterations of the serial loops around the current op.
    trips: i64,
    /// Serial loops seen so far.
    loops: usize,
}

/// Values of unrolled loop variables.
type Substitution = [(Var, i64)];

impl Walk<'_> {
    pub(super) fn body(&mut self, body: &[Stmt], unrolled: &Substitution) -> Vec<Block> {
        let mut blocks = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::Op(op) => {
                    let op = substituted(&self.kernel.ops[*op], unrolled);
                    let block = self.op(&op);
                    self.keep(block, &mut blocks);
                }
                Stmt::Loop(inner) => blocks.extend(self.repeat(inner, unrolled)),
                Stmt::Parallel(parallel) => {
                    let block = self.parallel(*parallel, unrolled);
                    self.keep(block, &mut blocks);
                }
                Stmt::If(branch) => match self.branches(branch, unrolled) {
                    Ok(block) => blocks.push(block),
                    Err(finding) => self.found.push(finding),
                },
                Stmt::EachThread(body) => {
                    let block = self.each(body, unrolled);
                    self.keep(block, &mut blocks);
                }
            }
        }
        blocks
    }

    fn keep(&mut self, block: Result<OpBlock, Diagnostic>, blocks: &mut Vec<Block>) {
        match block {
            Ok(block) => blocks.push(Block::Op(block)),
            Err(finding) => self.found.push(finding),
        }
    }

    fn repeat(&mut self, inner: &Loop, unrolled: &Substitution) -> Vec<Block> {
        let range = inner.var.range();
        let is_unrolled = inner.unroll == Unroll::Full || self.addresses_registers(inner);
        match is_unrolled {
            false => {
                let outer = self.trips;
                self.trips = self.trips.saturating_mul(range.hi - range.lo + 1);
                let body = self.body(&inner.body, unrolled);
                self.trips = outer;
                self.loops += 1;
                vec![Block::Loop { inner: LoopRef { id: self.loops, var: inner.var.clone() }, body }]
            }
            true => (range.lo..=range.hi)
                .flat_map(|value| {
                    let mut values = unrolled.to_vec();
                    values.push((inner.var.clone(), value));
                    self.body(&inner.body, &values)
                })
                .collect(),
        }
    }

    fn op(&mut self, op: &Op) -> Result<OpBlock, Diagnostic> {
        let op = &self.with_variant(op);
        if let Some(tile) = op.operands.iter().find(|tile| tile.elements() > ENUMERATION_LIMIT) {
            let error = LayoutError::TooLarge { points: tile.elements() };
            return Err(error.diagnostic().label(op.span, format!("the tile `{}`", tile_title(self.kernel, tile))));
        }
        let Choice { considered, chosen, floor, candidate } =
            choose(&variants(op), &mut self.builder, self.kernel, op)?;
        let body = candidate.build(&mut self.builder);
        let body = merged(body.map_err(|why| why.diagnostic(&self.kernel.op_title(op), op.span))?);
        let title = match &op.name {
            Some(name) => format!("{name}: {}", self.kernel.op_title(op)),
            None => self.kernel.op_title(op),
        };
        let plan = OpPlan {
            title: title.clone(),
            span: op.span,
            executions: self.executions(op),
            considered,
            chosen,
            forced: op.variant.is_some(),
            floor,
            barriers: Vec::new(),
        };
        let guard = op
            .warp
            .filter(|_| self.kernel.warps() > 1)
            .map(|warp| Cond::Equal(Expr::var(&self.kernel.warp()), Expr::constant(warp)));
        self.plans.push(plan);
        Ok(OpBlock { title, guard, body, barrier: None, op: self.plans.len() - 1 })
    }

    /// The op with the variant that the options ask for, where the kernel does not force one.
    fn with_variant(&self, op: &Op) -> Op {
        let asked = self.options.variant.as_deref();
        let asked = asked.filter(|name| variants(op).iter().any(|list| list.names().contains(name)));
        let variant = op.variant.clone().or(asked.map(str::to_string));
        Op { variant, ..op.clone() }
    }

    /// An option that no op of the kernel takes is a mistake, not a silent no-op.
    fn check_variant_is_known(&mut self) {
        let Some(asked) = &self.options.variant else { return };
        if self.plans.iter().any(|plan| plan.forced && plan.chosen == asked) || !self.found.is_empty() {
            return;
        }
        let known = all_names();
        if !known.contains(asked.as_str()) {
            let known: Vec<&str> = known.into_iter().collect();
            self.found.push(
                Diagnostic::error("P0401", format!("there is no variant `{asked}`"))
                    .help(format!("there are {}", known.join(", "))),
            );
        } else {
            self.found
                .push(Diagnostic::error("P0401", format!("no op of this kernel takes the variant `{asked}`")).help(
                    "`emit --stage plan` shows the variants of every op, and which one the kernel itself forces",
                ));
        }
    }

    /// How often a launch executes an op at the current place, over all warps that take part.
    fn executions(&self, op: &Op) -> Expr {
        self.executions_by(op.warp.map_or(self.kernel.warps(), |_| 1))
    }

    fn executions_by(&self, warps: i64) -> Expr {
        let per_cta = Expr::constant(self.trips.saturating_mul(warps));
        self.kernel.grid.iter().fold(per_cta, |product, ctas| product * ctas.clone())
    }

    fn finish(mut self, blocks: Vec<Block>) -> Result<Program, Vec<Diagnostic>> {
        let body = self.assemble(blocks);
        let mut program = self.builder.program;
        // What a kernel reads of a fragment and never wrote is zero, not whatever a register held.
        program.body.extend(body);
        for array in unwritten(&program.body) {
            let to = regs(array, 0, program.registers[array].len);
            let place =
                program.body.iter().position(|stmt| matches!(stmt, ThreadStmt::Declare(known) if *known == array));
            if let Some(place) = place {
                program.body.insert(place + 1, ThreadStmt::Set { to, value: Scalar::Int(0) });
            }
        }
        program.plans = self.plans;
        Ok(program)
    }

    fn assemble(&mut self, blocks: Vec<Block>) -> Vec<ThreadStmt> {
        let mut body = Vec::new();
        for block in blocks {
            match block {
                Block::Op(op) => body.push(self.assemble_op(op)),
                Block::Loop { inner, body: inside } => {
                    let inside = self.assemble(inside);
                    body.push(ThreadStmt::For { var: inner.var, is_unrolled: false, body: inside });
                }
                Block::If(branches) => {
                    body.push(self.assemble_op(branches.first));
                    for Branch { cond, body: inside } in [branches.then, branches.otherwise] {
                        if !inside.is_empty() {
                            let inside = self.assemble(inside);
                            body.push(ThreadStmt::IfValue { cond, is_uniform: true, body: inside });
                        }
                    }
                }
            }
        }
        body
    }

    fn assemble_op(&mut self, op: OpBlock) -> ThreadStmt {
        let plan = &mut self.plans[op.op];
        plan.barriers.extend(op.barrier.as_ref().map(|barrier| barrier.plan()));
        let details = plan.facts().map(|facts| details(plan.chosen, facts)).unwrap_or_default();
        let note = Note { title: plan.title.clone(), details, span: plan.span };
        let note = self.builder.program.notes.push(note);
        let mut body: Vec<ThreadStmt> =
            op.barrier.iter().map(|barrier| ThreadStmt::Inst(Call::plain(barrier.inst()))).collect();
        match op.guard {
            None => body.extend(op.body),
            Some(cond) => body.push(ThreadStmt::If { cond, body: op.body }),
        }
        ThreadStmt::Op { note, body }
    }
}

/// The plan as it stands above the op's CUDA.
fn details(chosen: &str, facts: &PlanFacts) -> Vec<String> {
    let accesses: Vec<String> = facts.accesses.iter().map(|access| access.to_string()).collect();
    let mut lines = vec![format!("{chosen}: {}", facts.summary)];
    if !accesses.is_empty() {
        lines.push(accesses.join("; "));
    }
    lines
}

fn substituted(op: &Op, unrolled: &Substitution) -> Op {
    if unrolled.is_empty() {
        return op.clone();
    }
    let tile = |tile: &Tile| {
        let starts = tile.starts.iter().map(|start| substituted_expr(start, unrolled)).collect();
        Tile { starts, ..tile.clone() }
    };
    Op { operands: op.operands.iter().map(tile).collect(), ..op.clone() }
}

fn substituted_expr(expr: &Expr, unrolled: &Substitution) -> Expr {
    let number = |var: &Var| unrolled.iter().find(|(v, _)| v == var).map(|(_, value)| Expr::constant(*value));
    tilewright_expr::linear::normalize(&expr.substitute(&number))
}
