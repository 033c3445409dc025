//! The accesses of statements: thread statements are evaluated for every thread of a CTA, without running anything.

use tilewright_expr::{EvalError, Var};
use tilewright_ir::Handle;
use tilewright_ir::thread::{Lanes, Memory, MemoryAccess, Moved, Observer, Program, Stmt, WarpState, walk};
use tilewright_layout::access::{LANES, SECTOR};

/// One access of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) thread: i64,
    /// Position of the statement among the loads and stores, in order of execution; the same for all threads.
    pub(crate) step: usize,
    pub(crate) memory: Handle<Memory>,
    pub(crate) first_byte: i64,
    pub(crate) bytes: i64,
    pub(crate) writes: bool,
    /// Whether the thread only gives the address, and other threads of its warp have parts of the bytes.
    pub(crate) is_of_warp: bool,
    /// Whether an engine accesses the bytes by itself.
    pub(crate) is_by_engine: bool,
}

/// Values of the variables that are defined outside the traced statements. A size that is not listed has its greatest
/// value.
pub(crate) type Env = Vec<(Var, i64)>;

/// The most accesses that are listed.
const MOST_TOUCHES: usize = 1 << 21;

/// The accesses of some statements.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) touches: Vec<Touch>,
    /// Whether the list is complete. If there are too many accesses, only the first of each warp are listed.
    pub(crate) is_whole: bool,
}

/// Lists the accesses of warps.
struct Tracer<'a> {
    program: &'a Program,
    touches: Vec<Touch>,
    /// Position of the next access among the loads and stores of the warp.
    step: usize,
    /// How many touches may be listed until the end of this warp.
    most: usize,
}

/// The accesses of `warps` in `body`. `outer` gives loop variables and block indices; one that is not listed has its
/// least value.
pub(crate) fn trace(program: &Program, body: &[Stmt], warps: std::ops::Range<i64>, outer: &Env) -> Trace {
    let of_warp = MOST_TOUCHES / (warps.end - warps.start).max(1) as usize;
    traced(program, body, warps, outer, of_warp)
}

/// The first accesses of a warp, about `most` of them; see [`trace`].
pub(crate) fn trace_first(program: &Program, body: &[Stmt], warp: i64, outer: &Env, most: usize) -> Trace {
    traced(program, body, warp..warp + 1, outer, most)
}

fn traced(program: &Program, body: &[Stmt], warps: std::ops::Range<i64>, outer: &Env, of_warp: usize) -> Trace {
    let mut tracer = Tracer { program, touches: Vec::new(), step: 0, most: 0 };
    let mut is_whole = true;
    for position in warps {
        let mut warp = WarpState::of(program, position);
        outer.iter().for_each(|(var, value)| warp.fix(var, *value));
        tracer.step = 0;
        tracer.most = tracer.touches.len() + of_warp;
        // A trace ends at an expression that cannot be evaluated.
        is_whole &= walk(program, body, &mut warp, &mut tracer).is_ok();
        is_whole &= !tracer.is_done();
    }
    Trace { touches: tracer.touches, is_whole }
}

/// How many accesses each thread executes if all conditions hold, and no loop has more than `most` iterations.
pub(crate) fn steps(body: &[Stmt], most: i64) -> u64 {
    let turns = |stmt: &Stmt| {
        let Stmt::For { counter, .. } = stmt else { return 1 };
        counter.most_trips().clamp(0, most) as u64
    };
    let of = |stmt: &Stmt| {
        let inside = steps(stmt.inner(), most).saturating_mul(turns(stmt));
        inside.saturating_add(stmt.accesses().count() as u64)
    };
    body.iter().map(of).fold(0, u64::saturating_add)
}

/// Values assumed for a variable that is read from data: one for every lane, as far apart as its range allows. Where it
/// may be any number, they are in different sectors, but not so far apart that they would be outside of most tensors.
pub(crate) fn scattered(var: &Var) -> Lanes {
    let (range, lanes) = (var.range(), LANES as i64);
    let count = range.hi.saturating_sub(range.lo).saturating_add(1);
    let (first, apart) =
        if count > MOST_INDICES { (range.lo.max(0), SECTOR as i64) } else { (range.lo, count / lanes) };
    std::array::from_fn(|lane| (first + lane as i64 * apart.max(1)).min(range.hi))
}

/// A variable with more values is not meant to take all of them as an index.
const MOST_INDICES: i64 = 1 << 24;

impl Observer for Tracer<'_> {
    /// Every active lane touches the bytes of the access.
    fn access(&mut self, warp: &WarpState, access: &MemoryAccess<'_>) -> Result<(), EvalError> {
        let index = warp.eval(access.index)?;
        let width = self.program.memories[access.memory].dtype.bytes();
        let (bytes, writes) = (access.bytes(self.program), access.effect.writes());
        for lane in (0..access.lanes).filter(|lane| warp.active()[*lane]) {
            self.touches.push(Touch {
                thread: warp.thread(lane),
                step: self.step,
                memory: access.memory,
                first_byte: index[lane] * width,
                bytes,
                writes,
                is_of_warp: matches!(access.moved, Moved::Bytes(_)),
                is_by_engine: matches!(access.moved, Moved::Box(_)),
            });
        }
        self.step += 1;
        Ok(())
    }

    fn data(&self, var: &Var) -> Lanes {
        scattered(var)
    }

    fn is_done(&self) -> bool {
        self.touches.len() >= self.most
    }
}
