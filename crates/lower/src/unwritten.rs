//! Registers that may be read before they are written: parts of fragments that a kernel, or a thread, never writes.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::{Cond, Program, RegArray, Regs, Resource, Stmt, WarpState};
use tilewright_ir::tile::Role;
use tilewright_ir::{Handle, HwIndex};
use tilewright_layout::access::LANES;

/// The arrays with a register that a thread may read before it has written it.
///
/// For the arrays that `body` declares outside of all ops, which are fragments, a write under a condition counts for the
/// threads for which the condition holds, and for what is under the same condition. In other arrays, which belong to one
/// op, a write under a condition on the thread is assumed to happen for the threads that read.
pub(crate) fn unwritten(program: &Program, body: &[Stmt]) -> BTreeSet<Handle<RegArray>> {
    let declared = |stmt: &Stmt| if let Stmt::Declare(array) = stmt { Some(*array) } else { None };
    let mut scan = Scan {
        program,
        fragments: body.iter().filter_map(declared).collect(),
        lets: BTreeMap::new(),
        guards: Vec::new(),
        branches: 0,
        written: BTreeMap::new(),
        found: BTreeSet::new(),
    };
    scan.body(body);
    scan.found
}

/// Why a statement may not be executed by all threads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Guard {
    /// Only by the warps of a role.
    Of(Handle<Role>),
    /// Only where this holds, for indices as the role sees them.
    Holds(Option<Handle<Role>>, Cond),
    /// Only where not all of these hold.
    NotAll(Option<Handle<Role>>, Vec<Cond>),
    /// Only where data says so, or where a loop has an iteration: the branch or loop with this number.
    Branch(usize),
}

struct Scan<'a> {
    program: &'a Program,
    fragments: BTreeSet<Handle<RegArray>>,
    /// The values of named indices, in terms of those that are not named.
    lets: BTreeMap<Var, Expr>,
    /// Those around the current statement, outermost first.
    guards: Vec<Guard>,
    /// Branches on data, and loops that may have no iteration, seen so far.
    branches: usize,
    /// The guards under which each register was written.
    written: BTreeMap<(Handle<RegArray>, i64), Vec<Vec<Guard>>>,
    found: BTreeSet<Handle<RegArray>>,
}

impl Scan<'_> {
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
        match stmt {
            Stmt::Let { var, value } => {
                let value = self.resolved(value);
                self.lets.insert(var.clone(), value);
            }
            Stmt::If { cond, body } => self.guarded(Guard::Holds(self.role(), self.resolved_cond(cond)), body),
            Stmt::Unless { conds, body } => {
                let conds: Vec<Cond> = conds.iter().map(|cond| self.resolved_cond(cond)).collect();
                self.guarded(Guard::NotAll(self.role(), conds.clone()), body);
                self.joined(&conds);
            }
            Stmt::IfValue { body, .. } => self.branch(body),
            Stmt::For { counter, body, .. } if !counter.is_never_empty() => self.branch(body),
            Stmt::Role { role, body } => self.guarded(Guard::Of(*role), body),
            Stmt::Op { body, .. } | Stmt::For { body, .. } | Stmt::Elect { body } => self.body(body),
            Stmt::Declare(_) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Lookup { .. } | Stmt::Set { .. } => {}
            Stmt::Move { .. } | Stmt::Assign { .. } | Stmt::AssignPair { .. } | Stmt::LetValue { .. } => {}
            Stmt::TensorMma(_) | Stmt::TensorMove(_) => {}
            Stmt::Mma(_) | Stmt::WarpgroupMma(_) | Stmt::TensorCopy(_) | Stmt::Inst(_) | Stmt::Advance { .. } => {}
        }
    }

    /// The role of the current statement.
    fn role(&self) -> Option<Handle<Role>> {
        self.guards.iter().find_map(|guard| if let Guard::Of(role) = guard { Some(*role) } else { None })
    }

    fn branch(&mut self, body: &[Stmt]) {
        self.branches += 1;
        self.guarded(Guard::Branch(self.branches), body);
    }

    fn guarded(&mut self, guard: Guard, body: &[Stmt]) {
        self.guards.push(guard);
        self.body(body);
        self.guards.pop();
    }

    /// What is written both where all of these hold and where not all do is written.
    fn joined(&mut self, conds: &[Cond]) {
        let under = |guards: &[Guard], more: &mut dyn Iterator<Item = Guard>| -> Vec<Guard> {
            guards.iter().cloned().chain(more).collect()
        };
        let role = self.role();
        let all = under(&self.guards, &mut conds.iter().cloned().map(|cond| Guard::Holds(role, cond)));
        let not_all = under(&self.guards, &mut std::iter::once(Guard::NotAll(role, conds.to_vec())));
        for writes in self.written.values_mut() {
            if writes.contains(&all) && writes.contains(&not_all) {
                writes.push(self.guards.clone());
            }
        }
    }

    fn read(&mut self, regs: &Regs) {
        if self.found.contains(&regs.array) || self.program.scalars.contains(&regs.array) {
            return;
        }
        let is_written = match registers(regs) {
            Some(all) => all.iter().all(|one| self.is_written(one)),
            // The index depends on a loop: all registers in its range count.
            None => {
                let (range, last) = (regs.first.range(), (regs.count - 1) * regs.step);
                (range.lo..=range.hi + last).all(|register| self.is_written(&(regs.array, register)))
            }
        };
        if !is_written {
            self.found.insert(regs.array);
        }
    }

    fn write(&mut self, regs: &Regs) {
        let is_fragment = self.fragments.contains(&regs.array);
        let counts = |guard: &&Guard| is_fragment || matches!(guard, Guard::Branch(_));
        let guards: Vec<Guard> = self.guards.iter().filter(counts).cloned().collect();
        for register in registers(regs).into_iter().flatten() {
            let writes = self.written.entry(register).or_default();
            if !writes.iter().any(|known| is_subset(known, &guards)) {
                writes.push(guards.clone());
            }
        }
    }

    /// Whether every thread that executes the current statement has written a register.
    fn is_written(&self, register: &(Handle<RegArray>, i64)) -> bool {
        let Some(writes) = self.written.get(register) else { return false };
        if writes.iter().any(|guards| is_subset(guards, &self.guards)) {
            return true;
        }
        let mut missing = self.threads(&self.guards);
        for guards in writes {
            let by_thread: Vec<Guard> = guards.iter().filter(|guard| !self.guards.contains(guard)).cloned().collect();
            if by_thread.iter().all(|guard| self.mask(guard).is_some()) {
                let some = self.threads(&by_thread);
                missing.iter_mut().zip(some).for_each(|(missing, has)| *missing &= !has);
            }
        }
        !missing.contains(&true)
    }

    /// The threads for which all of these guards hold; those that depend on more than the thread may hold.
    fn threads(&self, guards: &[Guard]) -> Vec<bool> {
        let mut threads = vec![true; self.program.threads.max(0) as usize];
        for mask in guards.iter().filter_map(|guard| self.mask(guard)) {
            threads.iter_mut().zip(mask).for_each(|(thread, holds)| *thread &= holds);
        }
        threads
    }

    /// The threads for which a guard holds, if nothing else decides that.
    fn mask(&self, guard: &Guard) -> Option<Vec<bool>> {
        match guard {
            Guard::Of(role) => Some(self.members(*role)),
            Guard::Holds(role, cond) => self.mask_of(*role, cond),
            Guard::NotAll(role, conds) => {
                let masks: Vec<Vec<bool>> =
                    conds.iter().map(|cond| self.mask_of(*role, cond)).collect::<Option<_>>()?;
                let all = |thread: usize| masks.iter().all(|mask| mask[thread]);
                Some((0..self.program.threads.max(0) as usize).map(|thread| !all(thread)).collect())
            }
            Guard::Branch(_) => None,
        }
    }

    /// The threads of a role.
    fn members(&self, role: Handle<Role>) -> Vec<bool> {
        let role = &self.program.roles[role];
        (0..self.program.threads).map(|thread| role.has_warp(thread / LANES as i64)).collect()
    }

    /// The threads for which a condition holds; of a role, only its own.
    fn mask_of(&self, role: Option<Handle<Role>>, cond: &Cond) -> Option<Vec<bool>> {
        let mut is_of_thread = true;
        cond.sides().into_iter().for_each(|side| {
            side.for_each_var(&mut |var| {
                is_of_thread &= matches!(HwIndex::of(var), Some(HwIndex::Tid | HwIndex::Lane | HwIndex::Warp));
            });
        });
        if !is_of_thread {
            return None;
        }
        let threads = self.program.threads.max(0) as usize;
        let mut mask = Vec::with_capacity(threads);
        let mut warp = WarpState::first();
        for position in 0..threads.div_ceil(LANES) {
            warp.place([0; 3], position as i64);
            let Some(role) = role else {
                mask.extend(warp.holds(cond).ok()?);
                continue;
            };
            match warp.enter_role(&self.program.roles[role]) {
                None => mask.extend([false; LANES]),
                Some(outer) => {
                    mask.extend(warp.holds(cond).ok()?);
                    warp.leave_role(outer);
                }
            }
        }
        mask.truncate(threads);
        Some(mask)
    }

    fn resolved(&self, expr: &Expr) -> Expr {
        if self.lets.is_empty() { expr.clone() } else { expr.substitute(&|var| self.lets.get(var).cloned()) }
    }

    fn resolved_cond(&self, cond: &Cond) -> Cond {
        let mut resolved = cond.clone();
        resolved.sides_mut().into_iter().for_each(|side| *side = self.resolved(side));
        resolved
    }
}

/// Whether all of `guards` are among `others`.
fn is_subset(guards: &[Guard], others: &[Guard]) -> bool {
    guards.iter().all(|guard| others.contains(guard))
}

/// The registers, if their indices are constants. Others do not count as written.
fn registers(regs: &Regs) -> Option<Vec<(Handle<RegArray>, i64)>> {
    let first = regs.first.as_const()?;
    Some((0..regs.count).map(|at| (regs.array, first + at * regs.step)).collect())
}
