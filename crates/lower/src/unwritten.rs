//! Registers that may be read before they hold anything: parts of fragments that a kernel never writes.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs, Stmt, Value};

/// The arrays of which a register is read where no statement before writes it. A write under a condition on data may not
/// happen; one under a condition on the thread does for the threads that read.
pub(crate) fn unwritten(body: &[Stmt]) -> BTreeSet<Handle<RegArray>> {
    let mut scan = Scan::default();
    scan.body(body);
    scan.found
}

#[derive(Default)]
struct Scan {
    written: BTreeSet<(Handle<RegArray>, i64)>,
    found: BTreeSet<Handle<RegArray>>,
}

impl Scan {
    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Load { to, .. } | Stmt::Set { to, .. } => self.write(to),
            Stmt::Store { from, .. } | Stmt::AtomicAdd { from, .. } => self.read(from),
            Stmt::Move { to, from } => {
                self.read(from);
                self.write(to);
            }
            Stmt::Compute { to, from, .. } => {
                from.iter().for_each(|regs| self.read(regs));
                self.write(to);
            }
            Stmt::Mma { sums, a, b, .. } => [sums, a, b].into_iter().for_each(|regs| self.read(regs)),
            Stmt::Assign { to, value } => {
                self.value(value);
                self.write(to);
            }
            Stmt::Name { value, .. } => self.value(value),
            Stmt::When { cond, body, .. } => {
                self.value(cond);
                let before = self.written.clone();
                self.body(body);
                self.written = before;
                return;
            }
            Stmt::Op { .. }
            | Stmt::Let { .. }
            | Stmt::Declare(_)
            | Stmt::Lookup { .. }
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Inst(_) => {}
        }
        self.body(stmt.inner());
    }

    fn value(&mut self, value: &Value) {
        value.for_each(&mut |part| {
            if let Value::Reg(array, at) = part
                && !self.written.contains(&(*array, *at))
            {
                self.found.insert(*array);
            }
        });
    }

    fn read(&mut self, regs: &Regs) {
        if registers(regs).any(|register| !self.written.contains(&register)) {
            self.found.insert(regs.array);
        }
    }

    fn write(&mut self, regs: &Regs) {
        self.written.extend(registers(regs));
    }
}

fn registers(regs: &Regs) -> impl Iterator<Item = (Handle<RegArray>, i64)> + '_ {
    let first = regs.first.as_const().unwrap_or(0);
    (0..regs.count).map(move |at| (regs.array, first + at * regs.step))
}
