//! Registers that may be read before they are written: parts of fragments that a kernel never writes.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::thread::{RegArray, Regs, Resource, Stmt};

/// The arrays with a register that is read before any statement writes it. A write under a condition on data may not
/// happen; a write under a condition on the thread is assumed to happen for the threads that read.
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
        stmt.reads(&mut |resource| match resource {
            Resource::Registers(regs) => self.read(regs),
            Resource::Memory(_) => {}
        });
        stmt.writes(&mut |resource| match resource {
            Resource::Registers(regs) => self.write(regs),
            Resource::Memory(_) => {}
        });
        let before = matches!(stmt, Stmt::IfValue { .. }).then(|| self.written.clone());
        self.body(stmt.inner());
        if let Some(before) = before {
            self.written = before;
        }
    }

    fn read(&mut self, regs: &Regs) {
        let is_written = registers(regs).is_some_and(|all| all.iter().all(|one| self.written.contains(one)));
        if !is_written {
            self.found.insert(regs.array);
        }
    }

    fn write(&mut self, regs: &Regs) {
        self.written.extend(registers(regs).into_iter().flatten());
    }
}

/// The registers, if their indices are constants. Others count as read, and not as written.
fn registers(regs: &Regs) -> Option<Vec<(Handle<RegArray>, i64)>> {
    let first = regs.first.as_const()?;
    Some((0..regs.count).map(|at| (regs.array, first + at * regs.step)).collect())
}
