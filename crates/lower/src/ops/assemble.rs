//! Assembles the program from the lowered ops.

use tilewright_diag::Diagnostic;
use tilewright_ir::Scalar;
use tilewright_ir::plan::PlanFacts;
use tilewright_ir::thread::{Call, Note, Program, Stmt as ThreadStmt, Unroll};

use super::kernel_lowering::KernelLowering;
use crate::builder::regs;
use crate::elements::ELEMENTS;
use crate::pairs::paired;
use crate::roll::rolled;
use crate::sync::{Block, Branch, LoopBlock, OpBlock};
use crate::unwritten::unwritten;

impl KernelLowering<'_> {
    /// The program of these blocks, between which barriers are in place.
    pub(super) fn finish(mut self, blocks: Vec<Block>) -> Result<Program, Vec<Diagnostic>> {
        let body = self.assemble(blocks);
        let body = paired(&mut self.builder, body);
        let program = &mut self.builder.program;
        // Elements of a fragment that the kernel reads and never writes are zero, not whatever a register held.
        program.body.extend(body);
        for array in unwritten(program, &program.body) {
            let to = regs(array, 0, program.registers[array].len);
            let place =
                program.body.iter().position(|stmt| matches!(stmt, ThreadStmt::Declare(known) if *known == array));
            let Some(place) = place else {
                return Err(vec![undeclared(&program.registers[array].name)]);
            };
            program.body.insert(place + 1, ThreadStmt::Set { to, value: Scalar::Int(0) });
        }
        let body = std::mem::take(&mut program.body);
        let body = rolled(&mut self.builder, body);
        let mut program = self.builder.program;
        program.body = body;
        program.plans = self.plans;
        Ok(program)
    }

    fn assemble(&mut self, blocks: Vec<Block>) -> Vec<ThreadStmt> {
        let mut body = Vec::new();
        for block in blocks {
            match block {
                Block::Op(op) => body.push(self.assemble_op(op)),
                Block::Loop(LoopBlock { inner, barrier, body: inside, .. }) => {
                    if let Some((barrier, op)) = barrier {
                        self.plans[op].barriers.push(barrier.plan(true));
                        body.push(ThreadStmt::from(Call::plain(barrier.inst())));
                    }
                    let named = inner.names.into_iter().map(|(var, value)| ThreadStmt::Let { var, value });
                    let inside = named.chain(self.assemble(inside)).collect();
                    body.push(ThreadStmt::For { counter: inner.counter, unroll: Unroll::Auto, body: inside });
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
        plan.barriers.extend(op.barrier.as_ref().map(|barrier| barrier.plan(false)));
        let (title, details) = match op.part {
            None => (plan.title.clone(), plan.facts().map(|facts| details(plan.chosen, facts)).unwrap_or_default()),
            Some(part) => (format!("{}: {part}", plan.title), Vec::new()),
        };
        let note = Note { title, details, span: plan.span, plan: op.op };
        let note = self.builder.program.notes.push(note);
        let mut body: Vec<ThreadStmt> =
            op.barrier.iter().map(|barrier| ThreadStmt::from(Call::plain(barrier.inst()))).collect();
        match op.guard {
            None => body.extend(op.body),
            Some(cond) => body.push(ThreadStmt::If { cond, body: op.body }),
        }
        ThreadStmt::Op { note, body }
    }
}

/// The error for registers that may be read before they are written, and that cannot be set to 0 at the beginning.
fn undeclared(array: &str) -> Diagnostic {
    Diagnostic::internal("P0404", format!("the registers `{array}` of an op may be read before they are written"))
}

/// The plan as it is printed above the op in CUDA. That elements are taken one by one shows in the statements.
fn details(chosen: &str, facts: &PlanFacts) -> Vec<String> {
    let accesses: Vec<String> = facts.accesses.iter().map(|access| access.to_string()).collect();
    let mut lines: Vec<String> = match chosen {
        ELEMENTS => Vec::new(),
        _ => vec![format!("{chosen}: {}", facts.summary)],
    };
    if !accesses.is_empty() {
        lines.push(accesses.join("; "));
    }
    lines
}
