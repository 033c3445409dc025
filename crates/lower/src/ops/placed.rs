//! Loops, conditions and statements outside of ops, which have only one lowering: element by element.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::Scalar;
use tilewright_ir::plan::{OpPlan, PlanFacts, VariantResult};
use tilewright_ir::thread::{RegArray, Stmt as ThreadStmt, Value as ThreadValue};
use tilewright_ir::tile::{ElementOp, ElementStmt, If, Loop, Parallel, Space, Stmt, Tile, Value, value_title};
use tilewright_layout::DType;

use super::kernel_lowering::{KernelLowering, Substitution, substituted_expr};
use crate::builder::regs;
use crate::elements::{self, ELEMENTS, Nest, NestByElements};
use crate::measure::measure;
use crate::sync::{Block, Branch, IfBlock, OpBlock};
use crate::variant::built;

impl KernelLowering<'_> {
    /// Lowers a parallel loop.
    pub(super) fn parallel(
        &mut self,
        handle: Handle<Parallel>,
        unrolled: &Substitution,
    ) -> Result<OpBlock, Diagnostic> {
        let parallel = &self.kernel.parallels[handle];
        let block = self.in_role(parallel.role, |lowering| lowering.parallel_of_team(parallel, unrolled))?;
        self.plans[block.op].parallel = Some(handle);
        Ok(block.of(self.kernel.part_of_cta(parallel.role)))
    }

    /// Lowers a parallel loop for the threads that execute it together.
    fn parallel_of_team(&mut self, parallel: &Parallel, unrolled: &Substitution) -> Result<OpBlock, Diagnostic> {
        let vars: Vec<&str> = parallel.vars.iter().map(Var::name).collect();
        let title = format!("parallel {}", vars.join(", "));
        let nest = Nest::of_parallel(&self.builder, self.kernel, parallel)
            .map_err(|why| why.diagnostic(&title, parallel.span))?;
        let title = self.title_in_role(parallel.role, &title);
        self.nest(&title, parallel.span, nest.substituted(&|expr| substituted_expr(expr, unrolled)))
    }

    /// Lowers statements that every thread executes.
    pub(super) fn each(&mut self, body: &[ElementStmt], unrolled: &Substitution) -> Result<OpBlock, Diagnostic> {
        let span = body.first().map_or(self.kernel.span, ElementStmt::span);
        let nest = Nest::of_each_thread(self.kernel, body);
        self.nest("each thread", span, nest.substituted(&|expr| substituted_expr(expr, unrolled)))
    }

    /// Lowers a condition that is the same for all threads that evaluate it, and its branches.
    pub(super) fn branches(&mut self, branch: &If, unrolled: &Substitution) -> Result<Block, Diagnostic> {
        let whole = self.kernels.whole();
        let evaluator = whole.evaluator(branch);
        let (mut first, holds) = self.in_role(evaluator, |lowering| lowering.condition(branch, unrolled))?;
        let side = |lowering: &mut Self, body: &[Stmt], wanted: i64| {
            let dtype = lowering.builder.program.registers[holds].dtype;
            let number = ThreadValue::Const(dtype, Scalar::Int(wanted));
            let cond = ThreadValue::Op(ElementOp::Eq, vec![ThreadValue::reg(holds, 0), number]);
            Branch { cond, body: lowering.body(body, unrolled) }
        };
        self.depth += 1;
        let (then, otherwise) = (side(self, &branch.then, 1), side(self, &branch.otherwise, 0));
        self.depth -= 1;
        first.role = whole.part_of_cta(evaluator);
        Ok(Block::If(Box::new(IfBlock { first, then, otherwise })))
    }

    /// The block that computes a condition, and the register that says whether it holds.
    fn condition(&mut self, branch: &If, unrolled: &Substitution) -> Result<(OpBlock, Handle<RegArray>), Diagnostic> {
        let title = format!("if {}", value_title(self.kernel, &branch.cond));
        let cond = branch.cond.map_exprs(&|expr| substituted_expr(expr, unrolled));
        let number = |number: i64| Value::Const(Scalar::Int(number));
        let truth = Value::Op(ElementOp::Select, [cond, number(1), number(0)].into());
        let made = elements::lower_value(self.kernel, &mut self.builder, &truth);
        let (mut body, value) = made.map_err(|why| why.diagnostic(&title, branch.span))?;
        // The numbers have the type of what is compared.
        let dtype = value.dtype(&self.builder.program.registers).unwrap_or(DType::I32);
        let holds = self.builder.registers("holds", dtype, 1, 1, &mut Vec::new());
        body.insert(0, ThreadStmt::Declare(holds));
        body.push(ThreadStmt::Assign { to: regs(holds, 0, 1), value });
        let facts = measure(&self.builder.program, &body, 0, "executed by every thread".to_string(), i64::MAX);
        Ok((self.planned(&title, branch.span, facts, body), holds))
    }

    /// Lowers a nest that has only one lowering.
    fn nest(&mut self, title: &str, span: Span, nest: Nest) -> Result<OpBlock, Diagnostic> {
        let only = NestByElements { kernel: self.kernel, nest };
        let (body, facts) = built(&only, &mut self.builder, 0, i64::MAX).map_err(|why| why.diagnostic(title, span))?;
        Ok(self.planned(title, span, facts, body))
    }

    /// The block of something that has only one lowering; its plan is added.
    pub(super) fn planned(&mut self, title: &str, span: Span, facts: PlanFacts, body: Vec<ThreadStmt>) -> OpBlock {
        let title = span.titled(title);
        let executions = self.executions_by(self.kernel.warps());
        let considered = vec![VariantResult { variant: ELEMENTS, answer: Ok(facts) }];
        self.plans.push(OpPlan { considered, ..OpPlan::new(title.clone(), span, executions, ELEMENTS) });
        OpBlock::new(title, None, body, self.plans.len() - 1)
    }

    /// Whether the loop's variable indexes registers, so that the loop has to be unrolled.
    pub(super) fn addresses_registers(&self, inner: &Loop) -> bool {
        self.registers_depend(&inner.body, &inner.counter.var)
    }

    fn registers_depend(&self, body: &[Stmt], var: &Var) -> bool {
        let is_fragment = |handle| self.kernel.buffers[handle].space == Space::Fragment;
        let of_elements = |elements: &[ElementStmt]| {
            let mut found = false;
            elements.iter().for_each(|element| {
                element.for_each_access(&mut |access, _| {
                    let flat = access.flat(&self.kernel.buffers[access.buffer].shape);
                    found |= is_fragment(access.buffer) && flat.is_some_and(|flat| flat.mentions(var));
                });
            });
            found
        };
        let of_tile = |tile: &Tile| is_fragment(tile.buffer) && tile.starts.iter().any(|start| start.mentions(var));
        body.iter().any(|stmt| match stmt {
            Stmt::Op(op) => self.kernel.ops[*op].operands.iter().any(of_tile),
            Stmt::Loop(inner) => self.registers_depend(&inner.body, var),
            Stmt::Parallel(parallel) => of_elements(&self.kernel.parallels[*parallel].body),
            Stmt::EachThread(elements) => of_elements(elements),
            Stmt::Begin(_) | Stmt::End(_) => false,
            Stmt::If(If { then, otherwise, .. }) => {
                self.registers_depend(then, var) || self.registers_depend(otherwise, var)
            }
        })
    }
}

impl Nest {
    fn substituted(self, to: &dyn Fn(&Expr) -> Expr) -> Nest {
        let body = self.body.iter().map(|element| element.map_exprs(&|expr| normalize(&to(expr)))).collect();
        Nest { body, ..self }
    }
}
