//! Assembles the program from the lowered ops.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::plan::PlanFacts;
use tilewright_ir::thread::{Call, Cursor, Inst, Note, Program, Stmt as ThreadStmt, Unroll, for_each_expr};
use tilewright_ir::tile::Role;
use tilewright_ir::{Counter, Handle, Scalar};

use super::kernel_lowering::KernelLowering;
use super::overlap::overlap_previous;
use super::registers::move_registers;
use crate::builder::regs;
use crate::elements::ELEMENTS;
use crate::pairs::paired;
use crate::roll::rolled;
use crate::sync::{Block, Branch, LoopBlock, LoopPart, OpBlock, RequiredBarrier, role_of};
use crate::unwritten::unwritten;

impl KernelLowering<'_> {
    /// The program that begins with the blocks of `first`, and goes on with others, between which barriers are in place.
    pub(super) fn finish(mut self, first: Vec<OpBlock>, blocks: Vec<Block>) -> Result<Program, Vec<Diagnostic>> {
        let first: Vec<ThreadStmt> = first.into_iter().map(|block| self.assemble_op(block)).collect();
        let body = self.assemble(blocks, None);
        let body = paired(&mut self.builder, body);
        let program = &mut self.builder.program;
        // Elements of a fragment that the kernel reads and never writes are zero, not whatever a register held.
        program.body.extend(first.into_iter().chain(body));
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
        let unchanged = self.kernel.overlap.iter().flat_map(|overlap| &overlap.unchanged);
        let unchanged = unchanged.map(|buffer| self.builder.memory(*buffer)).collect();
        let mut program = self.builder.program;
        program.body = body;
        program.plans = self.plans;
        if let Some(overlap) = &self.kernel.overlap {
            overlap_previous(&mut program, &unchanged, overlap.span);
        }
        if let Some(span) = self.kernel.moves_registers {
            move_registers(&mut program, span).map_err(|why| vec![why])?;
        }
        Ok(program)
    }

    /// The statements of blocks. Those that only a role executes are in a branch of the role, with their neighbours of the
    /// same role; `around` is the role whose branch they are in already.
    fn assemble(&mut self, blocks: Vec<Block>, around: Option<Handle<Role>>) -> Vec<ThreadStmt> {
        let parts = self.parts(blocks);
        self.in_branches(parts, around)
    }

    /// The statements of blocks, each with the role that alone executes it.
    fn parts(&mut self, blocks: Vec<Block>) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for block in blocks {
            let role = role_of(std::slice::from_ref(&block));
            match block {
                Block::Op(mut op) => {
                    let is_outside = |barrier: &mut RequiredBarrier| barrier.role != op.role;
                    if let Some(barrier) = op.barrier.take_if(is_outside) {
                        parts.push(self.assemble_barrier(&barrier, op.op, false));
                    }
                    parts.push((op.role, self.assemble_op(op)));
                }
                Block::Loop(LoopBlock { inner, barrier, body, .. }) => {
                    if let Some((barrier, op)) = barrier {
                        parts.push(self.assemble_barrier(&barrier, op, true));
                    }
                    let named = inner.names.into_iter().map(|(var, value)| (role, ThreadStmt::Let { var, value }));
                    let body: Vec<Part> = named.chain(self.parts(body)).collect();
                    if inner.is_name {
                        parts.extend(once(&inner.counter, role, body));
                    } else {
                        let body = self.in_branches(body, role);
                        let body = match inner.part {
                            Some(part) => self.own_iterations(*part, body),
                            None => body,
                        };
                        parts.extend(inner.next.map(|next| (role, ThreadStmt::Declare(next))));
                        let unroll = inner.next.map_or(Unroll::Auto, Unroll::Claimed);
                        parts.push((role, ThreadStmt::For { counter: inner.counter, unroll, body }));
                    }
                }
                Block::If(branches) => {
                    let mut first = branches.first;
                    first.role = role;
                    parts.push((role, self.assemble_op(first)));
                    for Branch { cond, body } in [branches.then, branches.otherwise] {
                        if !body.is_empty() {
                            let body = self.assemble(body, role);
                            parts.push((role, ThreadStmt::IfValue { cond, is_uniform: true, body }));
                        }
                    }
                }
            }
        }
        parts
    }

    /// An iteration of a loop of which a role executes some, and passes the stages of the others.
    fn own_iterations(&mut self, LoopPart { is_own, passed, .. }: LoopPart, body: Vec<ThreadStmt>) -> Vec<ThreadStmt> {
        let pass = |(cursor, plan, by): (Handle<Cursor>, usize, Expr)| {
            let (title, span) = (&self.plans[plan].title, self.plans[plan].span);
            let title = format!("{title}: pass the stages of another role");
            let note = Note { title, details: Vec::new(), span, plan };
            let note = self.builder.program.notes.push(note);
            ThreadStmt::Op { note, body: vec![ThreadStmt::Advance { cursor, by }] }
        };
        let passed: Vec<ThreadStmt> = passed.into_iter().map(pass).collect();
        let pass = (!passed.is_empty()).then(|| ThreadStmt::Unless { conds: vec![is_own.clone()], body: passed });
        std::iter::once(ThreadStmt::If { cond: is_own, body }).chain(pass).collect()
    }

    /// A barrier before an op or a loop, with its reason in the plan of an op.
    fn assemble_barrier(&mut self, barrier: &RequiredBarrier, op: usize, is_before_loop: bool) -> Part {
        self.plans[op].barriers.push(barrier.plan(is_before_loop));
        (barrier.role, ThreadStmt::from(Call::plain(barrier.inst())))
    }

    /// The statements, those of another role than the one around them in branches: one for each role between others that are for all
    /// warps, since roles run side by side.
    fn in_branches(&self, parts: Vec<Part>, around: Option<Handle<Role>>) -> Vec<ThreadStmt> {
        let roles = &self.builder.program.roles;
        let mut all: Vec<ThreadStmt> = Vec::new();
        for (role, stmt) in parts {
            let Some(role) = role.filter(|role| Some(*role) != around) else {
                all.push(stmt);
                continue;
            };
            let stmt = with_barriers_of(role, &roles[role], stmt);
            let mut branches = all.iter_mut().rev().map_while(|stmt| match stmt {
                ThreadStmt::Role { role, body } => Some((*role, body)),
                _ => None,
            });
            match branches.find(|(known, _)| *known == role) {
                Some((_, body)) => body.push(stmt),
                None => all.push(ThreadStmt::Role { role, body: vec![stmt] }),
            }
        }
        all.into_iter().map(|stmt| self.in_leading_cta(stmt)).collect()
    }

    /// The statements of a role, under a condition if it runs in the first CTA of a pair only.
    fn in_leading_cta(&self, stmt: ThreadStmt) -> ThreadStmt {
        match stmt {
            ThreadStmt::Role { role, body } if self.builder.leading.contains(&role) => {
                let cond = self.builder.is_first_of_pair();
                ThreadStmt::Role { role, body: vec![ThreadStmt::If { cond, body }] }
            }
            other => other,
        }
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

/// A statement, and the role that executes it, if not all threads do.
type Part = (Option<Handle<Role>>, ThreadStmt);

/// What uses the name of an expression, behind the name, if it does.
fn once(counter: &Counter, role: Option<Handle<Role>>, body: Vec<Part>) -> impl Iterator<Item = Part> {
    let Counter { var, begin, .. } = counter.clone();
    let mut is_used = false;
    for (_, stmt) in &body {
        for_each_expr(std::slice::from_ref(stmt), &mut |expr| is_used |= expr.mentions(&var));
    }
    is_used.then_some((role, ThreadStmt::Let { var, value: begin })).into_iter().chain(body)
}

/// A statement of a role in which its warps wait for each other where it has barriers of the CTA.
fn with_barriers_of(handle: Handle<Role>, role: &Role, stmt: ThreadStmt) -> ThreadStmt {
    let is_barrier = matches!(&stmt, ThreadStmt::Inst(call) if call.inst == Inst::SyncThreads);
    match is_barrier {
        true if role.warps == 1 => ThreadStmt::from(Call::plain(Inst::SyncWarp)),
        true => {
            // Barrier 0 is that of the CTA.
            let arguments = [handle.index() as i64 + 1, role.threads()].map(Expr::constant).to_vec();
            ThreadStmt::from(Call { arguments, ..Call::plain(Inst::SyncWarps) })
        }
        false => stmt.map_inner(|body| body.into_iter().map(|stmt| with_barriers_of(handle, role, stmt)).collect()),
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
