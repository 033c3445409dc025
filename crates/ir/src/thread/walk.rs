//! Walks a warp through statements, all lanes together, without executing them.

use tilewright_expr::{EvalError, Expr, Var};
use tilewright_layout::access::LANES;

use crate::arena::Handle;
use crate::counter::Counter;
use crate::thread::effects::MemoryAccess;
use crate::thread::program::{Memory, Note, Program, Stmt};
use crate::thread::warp::{Lanes, WarpState};

/// Is notified while a warp walks through statements.
pub trait Observer {
    /// The active lanes of the warp access memory.
    fn access(&mut self, warp: &WarpState, access: &MemoryAccess<'_>) -> Result<(), EvalError>;

    /// The values to assume for a variable that stands for data, which is known only when the program runs.
    fn data(&self, var: &Var) -> Lanes;

    /// The warp is about to walk through the statements of an op.
    fn enter(&mut self, _op: Handle<Note>) {}

    /// The warp has walked through the statements of an op.
    fn leave(&mut self, _op: Handle<Note>) {}

    /// The value of a loop's variable in the last iteration to walk through.
    fn last(&self, var: &Var) -> i64 {
        var.range().hi
    }

    /// Whether the remaining iterations of loops can be skipped.
    fn is_done(&self) -> bool {
        false
    }
}

/// Walks a warp through `body`. All lanes enter branches on data, since data may require it.
///
/// Fails where an expression has no value; the warp stops there.
pub fn walk(
    program: &Program,
    body: &[Stmt],
    warp: &mut WarpState,
    observer: &mut dyn Observer,
) -> Result<(), EvalError> {
    Walker { program, warp, observer }.body(body)
}

struct Walker<'a> {
    program: &'a Program,
    warp: &'a mut WarpState,
    observer: &'a mut dyn Observer,
}

impl Walker<'_> {
    fn body(&mut self, body: &[Stmt]) -> Result<(), EvalError> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), EvalError> {
        for access in stmt.accesses() {
            self.observer.access(self.warp, &access)?;
        }
        match stmt {
            Stmt::Op { note, body } => {
                self.observer.enter(*note);
                self.body(body)?;
                self.observer.leave(*note);
            }
            Stmt::Let { var, value } => {
                let values = self.warp.eval(value)?;
                self.warp.define(var, values);
            }
            Stmt::Lookup { vars, table, index } => self.lookup(vars, *table, index)?,
            Stmt::LetValue { var, .. } => self.warp.define(var, self.observer.data(var)),
            Stmt::For { counter, body, .. } => self.repeat(counter, body)?,
            Stmt::If { cond, body } => {
                let outer = self.warp.narrow(cond)?;
                self.body(body)?;
                self.warp.activate(outer);
            }
            Stmt::Unless { conds, body } => {
                let outer = *self.warp.active();
                for cond in conds {
                    self.warp.narrow(cond)?;
                }
                let all_hold = *self.warp.active();
                self.warp.activate(std::array::from_fn(|lane| outer[lane] && !all_hold[lane]));
                self.body(body)?;
                self.warp.activate(outer);
            }
            Stmt::IfValue { body, .. } => self.body(body)?,
            Stmt::Role { role, body } => {
                if let Some(outer) = self.warp.enter_role(&self.program.roles[*role]) {
                    self.body(body)?;
                    self.warp.leave_role(outer);
                }
            }
            Stmt::Elect { body } => {
                let outer = *self.warp.active();
                let first = outer.iter().position(|is_active| *is_active);
                self.warp.activate(std::array::from_fn(|lane| Some(lane) == first));
                self.body(body)?;
                self.warp.activate(outer);
            }
            Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Set { .. } | Stmt::Move { .. } => {}
            Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::Mma(_) | Stmt::WarpgroupMma(_) => {}
            Stmt::TensorMma(_) | Stmt::TensorMove(_) => {}
            Stmt::Advance { cursor, by } => {
                let by = self.warp.eval(by)?[0];
                self.warp.advance(&self.program.cursors[*cursor], by);
            }
            Stmt::TensorCopy(_) | Stmt::Inst(_) => {}
        }
        Ok(())
    }

    /// Every lane counts from its own begin, and is active while it is below its own end.
    fn repeat(&mut self, counter: &Counter, body: &[Stmt]) -> Result<(), EvalError> {
        let var = &counter.var;
        let (begin, end) = (self.warp.eval(&counter.begin)?, self.warp.eval(&counter.end)?);
        let (most, step) = (self.observer.last(var).saturating_add(1), counter.step.max(1));
        let outer = *self.warp.active();
        let trips = |lane: usize| (end[lane].min(most) - begin[lane] + step - 1).div_euclid(step);
        let longest = (0..LANES).filter(|lane| outer[*lane]).map(trips).max().unwrap_or(0);
        let mark = self.warp.mark();
        for trip in 0..longest {
            if self.observer.is_done() {
                break;
            }
            self.warp.define(var, std::array::from_fn(|lane| begin[lane] + trip * step));
            self.warp.activate(std::array::from_fn(|lane| outer[lane] && trip < trips(lane)));
            self.body(body)?;
            self.warp.rewind(mark);
        }
        self.warp.activate(outer);
        Ok(())
    }

    /// Defines variables from entries of a table. An inactive lane may look up an entry that does not exist, and gets
    /// 0.
    fn lookup(&mut self, vars: &[Var], table: Handle<Memory>, index: &Expr) -> Result<(), EvalError> {
        let first = self.warp.eval(index)?;
        let values = &self.program.memories[table].values;
        for (offset, var) in vars.iter().enumerate() {
            let entry = |lane: usize| {
                let at = usize::try_from(first[lane]).ok()?.checked_add(offset)?;
                values.get(at).copied()
            };
            self.warp.define(var, std::array::from_fn(|lane| entry(lane).unwrap_or(0)));
        }
        Ok(())
    }
}
