//! Loops and ops that inference laid out: lowered element by element.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::Scalar;
use tilewright_ir::plan::{Considered, Facts, OpPlan, Reason};
use tilewright_ir::thread::{Stmt as ThreadStmt, Value as ThreadValue};
use tilewright_ir::tile::{Element, ElementOp, If, Loop, Op, Parallel, Space, Stmt, Tile, value_title};
use tilewright_layout::DType;

use super::{Substitution, Walk, substituted_expr};
use crate::elements::{self, Nest};
use crate::measure::measure;
use crate::refusal::Refusal;
use crate::sync::{Block, Branch, IfBlock, OpBlock};
use crate::variant::Choice;

/// The variant's name in plans.
pub(super) const ELEMENTS: &str = "elements";

/// An op by elements: what was considered, and its statements.
pub(super) struct ByElements {
    pub(super) considered: Vec<Considered>,
    pub(super) body: Vec<ThreadStmt>,
}

impl Walk<'_> {
    /// A parallel loop.
    pub(super) fn parallel(
        &mut self,
        handle: Handle<Parallel>,
        unrolled: &Substitution,
    ) -> Result<OpBlock, Diagnostic> {
        let parallel = &self.kernel.parallels[handle];
        let vars: Vec<&str> = parallel.vars.iter().map(Var::name).collect();
        let title = format!("parallel {}", vars.join(", "));
        let nest = Nest::of_parallel(self.kernel, parallel).map_err(|why| why.diagnostic(&title, parallel.span))?;
        self.nest(&title, parallel.span, nest.substituted(&|expr| substituted_expr(expr, unrolled)))
    }

    /// Statements that every thread executes.
    pub(super) fn each(&mut self, body: &[Element], unrolled: &Substitution) -> Result<OpBlock, Diagnostic> {
        let span = body.first().map_or(self.kernel.span, Element::span);
        let nest = Nest::of_each_thread(self.kernel, body);
        self.nest("each thread", span, nest.substituted(&|expr| substituted_expr(expr, unrolled)))
    }

    /// A condition that is the same for all threads, and its branches.
    pub(super) fn branches(&mut self, branch: &If, unrolled: &Substitution) -> Result<Block, Diagnostic> {
        let title = format!("if {}", value_title(self.kernel, &branch.cond));
        let cond = branch.cond.map_exprs(&|expr| substituted_expr(expr, unrolled));
        let holds = self.builder.registers("holds", DType::I32, 1, 1, &mut Vec::new());
        let made = elements::lower_condition(self.kernel, &mut self.builder, &cond, holds);
        let body = made.map_err(|why| why.diagnostic(&title, branch.span))?;
        let facts = measure(&self.builder.program, &body, 0, "by every thread".to_string());
        let first = self.planned(&title, branch.span, facts, body);
        let mut side = |body: &[Stmt], wanted: i64| {
            let number = ThreadValue::Const(DType::I32, Scalar::Int(wanted));
            let cond = ThreadValue::Op(ElementOp::Eq, vec![ThreadValue::Reg(holds, 0), number]);
            Branch { cond, body: self.body(body, unrolled) }
        };
        let (then, otherwise) = (side(&branch.then, 1), side(&branch.otherwise, 0));
        Ok(Block::If(Box::new(IfBlock { first, then, otherwise })))
    }

    /// A nest that can be lowered in one way only.
    pub(super) fn nest(&mut self, title: &str, span: Span, nest: Nest) -> Result<OpBlock, Diagnostic> {
        let facts = self.facts(&nest).map_err(|why| why.diagnostic(title, span))?;
        let body = elements::lower(self.kernel, &mut self.builder, &nest);
        let body = body.map_err(|why| why.diagnostic(title, span))?;
        Ok(self.planned(title, span, facts, body))
    }

    /// The statements of something that can be done in one way only, and their plan.
    fn planned(&mut self, title: &str, span: Span, facts: Facts, body: Vec<ThreadStmt>) -> OpBlock {
        self.plans.push(OpPlan {
            title: title.to_string(),
            span,
            executions: self.executions_by(self.kernel.warps()),
            considered: vec![Considered { variant: ELEMENTS, answer: Ok(facts) }],
            chosen: ELEMENTS,
            forced: false,
            floor: None,
            barriers: Vec::new(),
        });
        OpBlock { title: title.to_string(), guard: None, body, barrier: None, op: self.plans.len() - 1 }
    }

    /// What a nest costs; what it declares is taken back.
    fn facts(&mut self, nest: &Nest) -> Result<Facts, Refusal> {
        let mark = self.builder.mark();
        let body = elements::lower(self.kernel, &mut self.builder, nest);
        let summary = format!("{} steps of {} threads", nest.steps.slots(), nest.steps.threads());
        let facts = body.map(|body| measure(&self.builder.program, &body, 0, summary));
        self.builder.rewind(mark);
        facts
    }

    /// The statements of an op that was laid out, if the way by elements is asked for, cheaper, or the only one; the
    /// plans of the others get it as one more.
    pub(super) fn by_elements<S>(
        &mut self,
        op: &Op,
        choice: &mut Result<Choice<S>, Diagnostic>,
    ) -> Result<Option<ByElements>, Diagnostic> {
        let Some(nest) = Nest::of_op(self.kernel, op) else { return Ok(None) };
        let reason = |why: Refusal| Reason { text: why.text().to_string(), accepted: "other layouts".to_string() };
        let facts = self.facts(&nest).map_err(|why| vec![reason(why)]);
        let cost = facts.as_ref().map(Facts::cost).ok();
        let one = Considered { variant: ELEMENTS, answer: facts };
        let is_forced = op.variant.as_deref() == Some(ELEMENTS);
        let is_taken = match choice {
            Ok(choice) => {
                let known = choice.considered.iter().find(|other| other.variant == choice.chosen);
                let least = known.and_then(|known| known.answer.as_ref().ok()).map(Facts::cost);
                choice.considered.push(one.clone());
                is_forced || (op.variant.is_none() && cost.is_some() && (least.is_none() || cost < least))
            }
            Err(_) => cost.is_some() && (is_forced || op.variant.is_none()),
        };
        if !is_taken {
            return Ok(None);
        }
        let title = self.kernel.op_title(op);
        let body = elements::lower(self.kernel, &mut self.builder, &nest);
        let considered = choice.as_ref().map_or_else(|_| vec![one], |choice| choice.considered.clone());
        Ok(Some(ByElements { considered, body: body.map_err(|why| why.diagnostic(&title, op.span))? }))
    }

    /// Whether registers are addressed by the variable of a loop, so that it has to be written out.
    pub(super) fn addresses_registers(&self, inner: &Loop) -> bool {
        self.registers_depend(&inner.body, &inner.var)
    }

    fn registers_depend(&self, body: &[Stmt], var: &Var) -> bool {
        let is_fragment = |handle| self.kernel.buffers[handle].space == Space::Fragment;
        let of_elements = |elements: &[Element]| {
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
            Stmt::Each(elements) => of_elements(elements),
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
