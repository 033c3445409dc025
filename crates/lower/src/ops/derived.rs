//! What is derived for a whole kernel: its plans, and statements that no op stands for.

use tilewright_diag::Span;
use tilewright_expr::Expr;
use tilewright_ir::plan::{OpPlan, PlanFacts, VariantResult};
use tilewright_ir::thread::{Call, Note, Program, Stmt};

/// The plan of what a method of the builder asks for, with one way to do it.
pub(super) fn plan(method: &str, span: Span, way: &'static str, summary: String) -> OpPlan {
    let considered = vec![VariantResult { variant: way, answer: Ok(PlanFacts::without_accesses(summary, 0)) }];
    OpPlan { considered, ..OpPlan::new(method.to_string(), span, Expr::constant(1), way) }
}

/// An instruction under a title of its own, which belongs to the plan at a place.
pub(super) fn titled(program: &mut Program, title: String, (span, plan): (Span, usize), call: Call) -> Stmt {
    let note = program.notes.push(Note { title, details: Vec::new(), span, plan });
    Stmt::Op { note, body: vec![Stmt::from(call)] }
}
