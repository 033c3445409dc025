//! What warp 0 touches in one tile op: statements evaluated for all its lanes, without running anything.

use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Cond, Memory, MemorySpace, Program, Regs, Stmt};
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

/// No more accesses than this are kept.
pub(crate) const MOST_ACCESSES: usize = 1024;

/// A memory, and how the warp touches it.
pub(crate) type Access = (Handle<Memory>, WarpAccess);

/// A value per lane.
type Lanes = [i64; LANES];

/// Warp 0 on its way through the statements, all lanes together.
pub(crate) struct Walk<'a> {
    program: &'a Program,
    /// The op that is drawn, and whether the walk is inside it.
    op: usize,
    is_inside: bool,
    env: Vec<(Var, Lanes)>,
    /// The lanes for which the conditions around hold.
    active: [bool; LANES],
    /// The accesses of the op to shared memory, in order, and whether there were too many.
    pub(crate) found: Vec<Access>,
    pub(crate) is_cut: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(program: &'a Program, op: usize) -> Walk<'a> {
        let active = std::array::from_fn(|lane| (lane as i64) < program.threads);
        Walk { program, op, is_inside: false, env: Vec::new(), active, found: Vec::new(), is_cut: false }
    }

    /// `None` where an expression has no value.
    pub(crate) fn body(&mut self, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Op { note, body } => {
                self.is_inside = note.index() == self.op;
                self.body(body)?;
                self.is_inside = false;
                Some(())
            }
            Stmt::Let { var, value } => {
                let value = self.eval(value)?;
                self.env.push((var.clone(), value));
                Some(())
            }
            Stmt::Load { to, memory, index } => self.access(*memory, index, to, AccessKind::Load),
            Stmt::Store { memory, index, from } => self.access(*memory, index, from, AccessKind::Store),
            Stmt::Lookup { vars, table, index } => self.lookup(vars, *table, index),
            Stmt::For { var, body, .. } => self.repeat(var, body),
            Stmt::If { cond, body } => self.branch(cond, body),
            Stmt::AtomicAdd { memory, index, from } => self.access(*memory, index, from, AccessKind::Store),
            // What data says is not known here: indices that depend on it have no value.
            Stmt::When { body, .. } => self.body(body),
            Stmt::Declare(_)
            | Stmt::Set { .. }
            | Stmt::Move { .. }
            | Stmt::Compute { .. }
            | Stmt::Mma { .. }
            | Stmt::Assign { .. }
            | Stmt::Name { .. }
            | Stmt::Inst(_) => Some(()),
        }
    }

    /// Loops of the op run; loops around it are at their beginning.
    fn repeat(&mut self, var: &Var, body: &[Stmt]) -> Option<()> {
        let range = var.range();
        let last = if self.is_inside { range.hi } else { range.lo };
        let depth = self.env.len();
        for value in range.lo..=last {
            if self.is_cut {
                break;
            }
            self.env.push((var.clone(), [value; LANES]));
            self.body(body)?;
            self.env.truncate(depth);
        }
        Some(())
    }

    fn branch(&mut self, cond: &Cond, body: &[Stmt]) -> Option<()> {
        let (Cond::Less(a, b) | Cond::Equal(a, b)) = cond;
        let (a, b) = (self.eval(a)?, self.eval(b)?);
        let holds = |lane: usize| match cond {
            Cond::Less(..) => a[lane] < b[lane],
            Cond::Equal(..) => a[lane] == b[lane],
        };
        let outer = self.active;
        self.active = std::array::from_fn(|lane| outer[lane] && holds(lane));
        self.body(body)?;
        self.active = outer;
        Some(())
    }

    fn lookup(&mut self, vars: &[Var], table: Handle<Memory>, index: &Expr) -> Option<()> {
        let first = self.eval(index)?;
        let values = &self.program.memories[table].values;
        for (offset, var) in vars.iter().enumerate() {
            let entry = |lane: usize| {
                let first = usize::try_from(first[lane]).ok();
                first.and_then(|first| values.get(first.checked_add(offset)?)).copied().unwrap_or(0)
            };
            self.env.push((var.clone(), std::array::from_fn(entry)));
        }
        Some(())
    }

    /// Keeps an access to shared memory in which some lane takes part.
    fn access(&mut self, memory: Handle<Memory>, index: &Expr, regs: &Regs, kind: AccessKind) -> Option<()> {
        let Memory { space, dtype, .. } = &self.program.memories[memory];
        if !self.is_inside || !matches!(space, MemorySpace::Shared | MemorySpace::SharedView { .. }) {
            return Some(());
        }
        if self.found.len() == MOST_ACCESSES {
            self.is_cut = true;
            return Some(());
        }
        let index = self.eval(index)?;
        let bytes = regs.count * self.program.registers[regs.array].dtype.bytes();
        let width = u64::try_from(bytes).ok().filter(|width| *width > 0)?;
        let active = self.active;
        let address = |lane: usize| {
            let byte = index[lane].checked_mul(dtype.bytes())?;
            u64::try_from(byte).ok().filter(|_| active[lane])
        };
        let access = WarpAccess::of(width, kind, address);
        if access.addresses.iter().any(Option::is_some) {
            self.found.push((memory, access));
        }
        Some(())
    }

    fn eval(&self, expr: &Expr) -> Option<Lanes> {
        expr.eval_all(&|var| Some(self.value(var))).ok()
    }

    fn value(&self, var: &Var) -> Lanes {
        if let Some((_, values)) = self.env.iter().rev().find(|(known, _)| known == var) {
            return *values;
        }
        let range = var.range();
        match var.name() {
            "lane" | "tid" => std::array::from_fn(|lane| lane as i64),
            "warp" => [0; LANES],
            _ if self.program.sizes.contains(var) => [range.hi - range.hi % var.multiple(); LANES],
            _ => [range.lo; LANES],
        }
    }
}
