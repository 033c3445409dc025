//! A machine for thread programs: a few lines that execute the IR itself, to judge lowering without NVRTC.
//!
//! Threads run one after the other between barriers, which is one of the orders that hardware may take.

use std::collections::BTreeMap;

use tilewright::expr::{Expr, Var};
use tilewright::ir::thread::{Cond, Memory, MemorySpace, Program, Regs, Stmt};
use tilewright::ir::{Handle, Scalar};

/// What is in memory: element values by memory and position.
pub type Contents = BTreeMap<(usize, i64), i64>;

/// Runs a one-CTA program; `contents` holds the inputs and gets the outputs. Elements are opaque numbers, so views of
/// another width are not supported. Errors: a read of what was never written.
pub fn execute(program: &Program, contents: &mut Contents) -> Result<(), String> {
    let threads = (0..program.threads).map(|tid| Thread { tid, env: Vec::new(), registers: BTreeMap::new() }).collect();
    let mut machine = Machine { program, contents, threads };
    machine.body(&program.body)
}

struct Thread {
    tid: i64,
    env: Vec<(Var, i64)>,
    registers: BTreeMap<(usize, i64), i64>,
}

struct Machine<'a> {
    program: &'a Program,
    contents: &'a mut Contents,
    threads: Vec<Thread>,
}

impl Thread {
    fn eval(&self, expr: &Expr) -> Result<i64, String> {
        let value = |var: &Var| match var.name() {
            "lane" => Some(self.tid % 32),
            "warp" => Some(self.tid / 32),
            "tid" => Some(self.tid),
            "bx" | "by" | "bz" => Some(0),
            _ => self.env.iter().rev().find(|(known, _)| known == var).map(|(_, value)| *value),
        };
        expr.eval(&value).map_err(|e| e.to_string())
    }

    fn holds(&self, cond: &Cond) -> Result<bool, String> {
        Ok(match cond {
            Cond::Less(a, b) => self.eval(a)? < self.eval(b)?,
            Cond::Equal(a, b) => self.eval(a)? == self.eval(b)?,
        })
    }

    fn slots(&self, regs: &Regs) -> Result<Vec<(usize, i64)>, String> {
        let first = self.eval(&regs.first)?;
        Ok((first..first + regs.count).map(|i| (regs.array.index(), i)).collect())
    }
}

impl Machine<'_> {
    /// Every statement is executed by all threads before the next: finer barriers can only order more.
    fn body(&mut self, body: &[Stmt]) -> Result<(), String> {
        let everyone: Vec<usize> = (0..self.threads.len()).collect();
        self.body_by(body, &everyone)
    }

    fn body_by(&mut self, body: &[Stmt], active: &[usize]) -> Result<(), String> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, active))
    }

    fn stmt(&mut self, stmt: &Stmt, active: &[usize]) -> Result<(), String> {
        match stmt {
            Stmt::Op { body, .. } => self.body_by(body, active),
            Stmt::Declare(_) | Stmt::Inst(_) => Ok(()),
            Stmt::For { var, body } => {
                let range = var.range();
                (range.lo..=range.hi).try_for_each(|value| {
                    self.threads.iter_mut().for_each(|thread| thread.env.push((var.clone(), value)));
                    self.body_by(body, active)
                })
            }
            Stmt::If { cond, body } => {
                let mut inside = Vec::new();
                for &at in active {
                    if self.threads[at].holds(cond)? {
                        inside.push(at);
                    }
                }
                self.body_by(body, &inside)
            }
            Stmt::Let { .. } | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Set { .. } | Stmt::Move { .. } => {
                active.iter().try_for_each(|&at| self.one(stmt, at))
            }
        }
    }

    fn owner(&self, memory: Handle<Memory>) -> usize {
        match self.program.memories[memory].space {
            MemorySpace::SharedView { of } => of.index(),
            MemorySpace::Global { .. } | MemorySpace::Shared => memory.index(),
        }
    }

    fn one(&mut self, stmt: &Stmt, at: usize) -> Result<(), String> {
        match stmt {
            Stmt::Let { var, value } => {
                let value = self.threads[at].eval(value)?;
                self.threads[at].env.push((var.clone(), value));
            }
            Stmt::Load { to, memory, index } => {
                let (first, slots) = (self.threads[at].eval(index)?, self.threads[at].slots(to)?);
                for (position, slot) in (first..).zip(slots) {
                    let place = (self.owner(*memory), position);
                    let value =
                        *self.contents.get(&place).ok_or_else(|| format!("thread {at} reads unwritten {place:?}"))?;
                    self.threads[at].registers.insert(slot, value);
                }
            }
            Stmt::Store { memory, index, from } => {
                let (first, slots) = (self.threads[at].eval(index)?, self.threads[at].slots(from)?);
                for (position, slot) in (first..).zip(slots) {
                    let value = *self.threads[at].registers.get(&slot).ok_or("an empty register")?;
                    self.contents.insert((self.owner(*memory), position), value);
                }
            }
            Stmt::Set { to, value } => {
                let number = match value {
                    Scalar::Int(v) => *v,
                    Scalar::Float(v) => *v as i64,
                };
                for slot in self.threads[at].slots(to)? {
                    self.threads[at].registers.insert(slot, number);
                }
            }
            Stmt::Move { to, from } => {
                let (to, from) = (self.threads[at].slots(to)?, self.threads[at].slots(from)?);
                for (to, from) in to.into_iter().zip(from) {
                    let value = *self.threads[at].registers.get(&from).ok_or("an empty register")?;
                    self.threads[at].registers.insert(to, value);
                }
            }
            Stmt::Op { .. } | Stmt::For { .. } | Stmt::If { .. } | Stmt::Declare(_) | Stmt::Inst(_) => {}
        }
        Ok(())
    }
}
