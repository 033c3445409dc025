//! The accesses of warp 0 to shared memory in one tile op, found without running the kernel.

use std::fmt;

use tilewright_expr::{EvalError, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Lanes, Memory, MemoryAccess, Note, Observer, Program, WarpState, walk};
use tilewright_layout::access::{AccessKind, LANES, WarpAccess};

/// No more accesses than this are kept.
pub(crate) const MAX_ACCESSES: usize = 1024;

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
    /// Whether accesses beyond [`MAX_ACCESSES`] were dropped.
    pub(crate) is_cut: bool,
    /// The first access below the beginning of its memory.
    outside: Option<ScheduleError>,
}

impl<'a> Accesses<'a> {
    /// The accesses of the `op`th op. Loops around it are at their first iteration, loops inside it are run. Errors: an
    /// expression without a value, an access below the beginning of a memory.
    pub(crate) fn of(program: &'a Program, op: usize) -> Result<Accesses<'a>, ScheduleError> {
        let mut accesses = Accesses { program, op, is_inside: false, found: Vec::new(), is_cut: false, outside: None };
        walk(program, &program.body, &mut WarpState::of(program, 0), &mut accesses).map_err(ScheduleError::NoValue)?;
        match accesses.outside.take() {
            Some(outside) => Err(outside),
            None => Ok(accesses),
        }
    }
}

/// Why the accesses of an op to shared memory cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// An index or a condition has no value.
    NoValue(EvalError),
    /// A lane accesses an element below 0, as may happen where a condition on data keeps it from that: all lanes enter
    /// such branches here, with the least value that the data may have.
    Outside {
        /// The memory.
        memory: String,
        /// The lane.
        lane: usize,
        /// The index of the element.
        index: i64,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::NoValue(error) => write!(f, "{error}"),
            ScheduleError::Outside { memory, lane, index } => {
                write!(f, "lane {lane} accesses element {index} of `{memory}`")
            }
        }
    }
}

impl std::error::Error for ScheduleError {}

impl Observer for Accesses<'_> {
    /// Keeps an access to shared memory in which some lane takes part.
    fn access(&mut self, warp: &WarpState, access: &MemoryAccess<'_>) -> Result<(), EvalError> {
        let memory = &self.program.memories[access.memory];
        let Memory { dtype, name, .. } = memory;
        if !self.is_inside || !memory.is_shared() {
            return Ok(());
        }
        if self.found.len() == MAX_ACCESSES {
            self.is_cut = true;
            return Ok(());
        }
        let index = warp.eval(access.index)?;
        if let Some(lane) = (0..access.lanes).find(|lane| warp.active()[*lane] && index[*lane] < 0) {
            let outside = ScheduleError::Outside { memory: name.clone(), lane, index: index[lane] };
            self.outside.get_or_insert(outside);
            return Ok(());
        }
        let mut addresses = [None; LANES];
        for lane in (0..access.lanes).filter(|lane| warp.active()[*lane]) {
            let byte = index[lane].checked_mul(dtype.bytes()).ok_or(EvalError::Overflow)?;
            addresses[lane] = Some(byte as u64);
        }
        let width = access.bytes(self.program) as u64;
        let kind = if access.effect.writes() { AccessKind::Store } else { AccessKind::Load };
        if addresses.iter().any(Option::is_some) {
            self.found.push((access.memory, WarpAccess::of(width, kind, |lane| addresses[lane])));
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
