//! The accesses of warp 0 to shared memory in one tile op, found without running the kernel.

use tilewright_expr::{EvalError, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Lanes, Memory, MemoryAccess, MemorySpace, Note, Observer, Program, WarpState, walk};
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

/// No more accesses than this are kept.
pub(crate) const MOST_ACCESSES: usize = 1024;

/// A memory, and an access of the warp to it.
pub(crate) type Access = (Handle<Memory>, WarpAccess);

/// The accesses of one op to shared memory.
pub(crate) struct Accesses<'a> {
    program: &'a Program,
    /// Index of the op among the program's notes.
    op: usize,
    /// Whether the walk is inside the op.
    is_inside: bool,
    /// The accesses, in order.
    pub(crate) found: Vec<Access>,
    /// Whether accesses beyond [`MOST_ACCESSES`] were dropped.
    pub(crate) is_cut: bool,
}

impl<'a> Accesses<'a> {
    /// The accesses of the `op`th op. Loops around it are at their first iteration, loops inside it are run. `None` if
    /// an expression has no value.
    pub(crate) fn of(program: &'a Program, op: usize) -> Option<Accesses<'a>> {
        let mut accesses = Accesses { program, op, is_inside: false, found: Vec::new(), is_cut: false };
        walk(program, &program.body, &mut WarpState::of(program, 0), &mut accesses).ok()?;
        Some(accesses)
    }
}

impl Observer for Accesses<'_> {
    /// Keeps an access to shared memory in which some lane takes part.
    fn access(&mut self, warp: &WarpState, access: &MemoryAccess<'_>) -> Result<(), EvalError> {
        let Memory { space, dtype, .. } = &self.program.memories[access.memory];
        if !self.is_inside || !matches!(space, MemorySpace::Shared | MemorySpace::SharedView { .. }) {
            return Ok(());
        }
        if self.found.len() == MOST_ACCESSES {
            self.is_cut = true;
            return Ok(());
        }
        let index = warp.eval(access.index)?;
        let address = |lane: usize| {
            let byte = index[lane].checked_mul(dtype.bytes())?;
            u64::try_from(byte).ok().filter(|_| warp.active()[lane])
        };
        let width = u64::try_from(access.bytes(self.program)).unwrap_or(0);
        let kind = if access.effect.writes() { AccessKind::Store } else { AccessKind::Load };
        let touched = WarpAccess::of(width, kind, address);
        if width > 0 && touched.addresses.iter().any(Option::is_some) {
            self.found.push((access.memory, touched));
        }
        Ok(())
    }

    /// Values that come from data are not known here: the least possible value is used.
    fn data(&self, var: &Var) -> Lanes {
        [var.range().lo; LANES]
    }

    fn enter(&mut self, op: Handle<Note>) {
        self.is_inside = op.index() == self.op;
    }

    fn leave(&mut self, _op: Handle<Note>) {
        self.is_inside = false;
    }

    fn last(&self, var: &Var) -> i64 {
        if self.is_inside { var.range().hi } else { var.range().lo }
    }

    fn is_done(&self) -> bool {
        self.is_cut
    }
}
