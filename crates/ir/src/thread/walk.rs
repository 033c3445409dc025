//! The way of a warp through statements, all lanes together, without running anything.

use tilewright_expr::{EvalError, Expr, Var};

use crate::arena::Handle;
use crate::thread::effects::MemoryAccess;
use crate::thread::program::{Memory, Note, Program, Stmt};
use crate::thread::warp::{Lanes, Warp};

/// Who looks on while a warp goes through statements.
pub trait Observer {
    /// The active lanes of the warp access memory.
    fn access(&mut self, warp: &Warp, access: &MemoryAccess<'_>) -> Result<(), EvalError>;

    /// What a name of data is taken to be, which is not known before the program runs.
    fn data(&self, var: &Var) -> Lanes;

    /// The statements of an op begin.
    fn enter(&mut self, _op: Handle<Note>) {}

    /// The statements of an op are over.
    fn leave(&mut self, _op: Handle<Note>) {}

    /// The value of a loop's variable in the last iteration that is of interest.
    fn last(&self, var: &Var) -> i64 {
        var.range().hi
    }

    /// Whether no further iteration is of interest.
    fn is_done(&self) -> bool {
        false
    }
}

/// Takes a warp through `body`: all lanes go into branches on data, since data may say so.
///
/// Errors: an expression has no value. The warp stops there.
pub fn walk(program: &Program, body: &[Stmt], warp: &mut Warp, observer: &mut dyn Observer) -> Result<(), EvalError> {
    Walker { program, warp, observer }.body(body)
}

struct Walker<'a> {
    program: &'a Program,
    warp: &'a mut Warp,
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
            Stmt::Name { var, .. } => self.warp.define(var, self.observer.data(var)),
            Stmt::For { var, body, .. } => self.repeat(var, body)?,
            Stmt::If { cond, body } => {
                let outer = self.warp.narrow(cond)?;
                self.body(body)?;
                self.warp.activate(outer);
            }
            Stmt::When { body, .. } => self.body(body)?,
            Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Set { .. } | Stmt::Move { .. } => {}
            Stmt::Assign { .. } | Stmt::Mma { .. } | Stmt::Inst(_) => {}
        }
        Ok(())
    }

    fn repeat(&mut self, var: &Var, body: &[Stmt]) -> Result<(), EvalError> {
        let mark = self.warp.mark();
        for value in var.range().lo..=self.observer.last(var) {
            if self.observer.is_done() {
                break;
            }
            self.warp.fix(var, value);
            self.body(body)?;
            self.warp.rewind(mark);
        }
        Ok(())
    }

    /// Names entries of a table. A lane that is not active may ask for one that is not there.
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
