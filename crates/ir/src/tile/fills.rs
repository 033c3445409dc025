//! What a pipelined loop loads ahead: the statements that fill shared buffers from tensors.

use std::collections::BTreeSet;

use tilewright_expr::Var;
use tilewright_layout::access::LANES;
use tilewright_layout::axis::Scope;

use crate::arena::Handle;
use crate::plan::Reason;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::{ElementStmt, Parallel};
use crate::tile::kernel::{Kernel, Loop, Stmt, Unroll};
use crate::tile::op::{Op, OpKind};
use crate::tile::producer::{BULK, TMA};
use crate::tile::tiles::Tile;
use crate::tile::value::{Access, Coord};

/// The statements of a pipelined loop that may run ahead, and why others that fill shared buffers may not.
///
/// A buffer of these has a copy for each stage, so an iteration may only read what was written in the same iteration:
/// only the loop uses the buffer, every iteration writes the same elements of it, and all writes come before all reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fills {
    /// Their positions among the statements of the loop, in order.
    pub statements: Vec<usize>,
    /// The storages that they fill.
    pub buffers: BTreeSet<Handle<Buffer>>,
    /// The storages that they copy from.
    pub tensors: BTreeSet<Handle<Buffer>>,
    /// Why others do not run ahead.
    pub against: Vec<Reason>,
}

/// A statement that moves elements of tensors to shared buffers.
struct Fill<'a> {
    position: usize,
    /// What it writes, and what it reads.
    to: Vec<Access>,
    from: Vec<Access>,
    /// The statement as it is called in reasons.
    title: String,
    inner: &'a Loop,
}

/// The title of a statement, and what it writes and reads.
type Moves = (String, Vec<Access>, Vec<Access>);

impl Kernel {
    /// The statements of a loop that may run ahead; none if it is not pipelined.
    pub fn fills(&self, inner: &Loop) -> Fills {
        let Unroll::Pipelined(stages) = inner.unroll else { return Fills::default() };
        let refused = |text, accepted| Fills { against: vec![Reason::new(text, accepted)], ..Fills::default() };
        if stages.is_some_and(|stages| stages < 2) {
            return refused("the loop has 1 stage", "2 stages or more");
        }
        if !inner.counter.repeats() {
            return refused("the loop has at most 1 iteration", "2 iterations or more");
        }
        let (mut all, mut found) = (Vec::new(), Fills::default());
        for position in 0..inner.body.len() {
            match self.fill(inner, position) {
                Ok(fill) => all.extend(fill),
                Err(reason) => found.against.push(reason),
            }
        }
        // A statement that fills two buffers runs ahead only if both allow it, and a buffer only with all its statements.
        let mut left: Vec<&Fill<'_>> = all.iter().collect();
        loop {
            let reasons: Vec<Option<Reason>> = left.iter().map(|fill| self.against(fill, &left)).collect();
            if reasons.iter().all(Option::is_none) {
                break;
            }
            left =
                left.into_iter().zip(&reasons).filter(|(_, reason)| reason.is_none()).map(|(fill, _)| fill).collect();
            for reason in reasons.into_iter().flatten() {
                if !found.against.contains(&reason) {
                    found.against.push(reason);
                }
            }
        }
        found.statements = left.iter().map(|fill| fill.position).collect();
        found.buffers = left.iter().flat_map(|fill| self.filled(fill)).collect();
        found.tensors = left.iter().flat_map(|fill| &fill.from).map(|from| self.storage(from.buffer)).collect();
        found
    }

    /// The shared buffers that loops of the kernel fill ahead, and those that other asynchronous copies fill.
    pub(super) fn filled_ahead(&self) -> BTreeSet<Handle<Buffer>> {
        let of_loops = self.all_fills().into_iter().flat_map(|(_, fills)| fills.buffers);
        of_loops.chain(self.asynchronous_copies().map(|[dst, _]| self.storage(dst.buffer))).collect()
    }

    /// The tensors that loops of the kernel copy ahead, and those of other asynchronous copies.
    pub(super) fn copied_ahead(&self) -> BTreeSet<Handle<Buffer>> {
        let of_loops = self.all_fills().into_iter().flat_map(|(_, fills)| fills.tensors);
        of_loops.chain(self.asynchronous_copies().map(|[_, src]| self.storage(src.buffer))).collect()
    }

    /// Destination and source of the asynchronous copies from tensors to shared memory.
    fn asynchronous_copies(&self) -> impl Iterator<Item = [&Tile; 2]> {
        self.ops.iter().filter_map(|(_, op)| {
            let [dst, src] = &op.operands[..] else { return None };
            if !self.is_asynchronous_copy(op) {
                return None;
            }
            let [to, from] = [dst, src].map(|tile| self.buffers[tile.buffer].space);
            matches!((to, from), (Space::Shared, Space::Global(_))).then_some([dst, src])
        })
    }

    /// Whether an op is a copy that may still be in flight after it: it is asked for, or fills a stage of a ring.
    pub fn is_asynchronous_copy(&self, op: &Op) -> bool {
        let fills_stage = || op.operands.first().is_some_and(|dst| self.ring_of(dst.buffer).is_some());
        op.kind == OpKind::CopyAsync || op.kind == OpKind::Copy && fills_stage()
    }

    /// The ops that the copy engine may execute between shared memory and tensors, beside those that run ahead in loops, and the
    /// storages in shared memory.
    pub(super) fn moves_in_flight(&self) -> impl Iterator<Item = (&Op, Handle<Buffer>)> {
        let has_warp = self.threads >= LANES as i64;
        let ops = self.ops.iter().map(|(_, op)| op).filter(move |_| has_warp);
        let is_open = |op: &&Op| op.variant.as_deref().is_none_or(|asked| [BULK, TMA].contains(&asked));
        ops.filter(is_open).filter_map(move |op| {
            let [dst, src] = &op.operands[..] else { return None };
            let is_async = self.is_asynchronous_copy(op);
            let stores = self.is_to_tensor(op) && (is_async || op.kind.is_atomic());
            let loads = self.is_from_tensor(op) && is_async;
            let shared = if stores { Some(src) } else { loads.then_some(dst) };
            Some((op, self.storage(shared?.buffer)))
        })
    }

    /// All loops, with what they fill ahead.
    pub(super) fn all_fills(&self) -> Vec<(&Loop, Fills)> {
        let mut found = Vec::new();
        for_each_loop(&self.body, &mut |inner| found.push((inner, self.fills(inner))));
        found
    }

    /// The statement at a position of a loop, if it moves elements of tensors to shared buffers. Error: why it may not run
    /// ahead although it does.
    fn fill<'a>(&self, inner: &'a Loop, position: usize) -> Result<Option<Fill<'a>>, Reason> {
        let stmt = &inner.body[position];
        if !self.moves_to_shared(stmt) || self.fills_stages(stmt) {
            return Ok(None);
        }
        let (title, to, from) = match stmt {
            Stmt::Op(op) => match self.copied(&self.ops[*op])? {
                Some(copy) => copy,
                None => return Ok(None),
            },
            Stmt::Parallel(parallel) => self.moved(&self.parallels[*parallel])?,
            Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) | Stmt::Begin(_) | Stmt::End(_) => {
                let text = "a shared buffer is filled inside of a branch, an inner loop or `each_thread`";
                return Err(Reason::new(text, "copies directly in the loop"));
            }
        };
        let name = |access: &Access| format!("`{}`", self.buffers[access.buffer].name);
        let is_shared = |access: &&Access| self.buffers[access.buffer].space == Space::Shared;
        let is_tensor = |access: &&Access| matches!(self.buffers[access.buffer].space, Space::Global(_));
        if let Some(other) = to.iter().find(|to| !is_shared(to)) {
            let text = format!("`{title}` also stores to {}", name(other));
            return Err(Reason::new(text, "stores to shared buffers only"));
        }
        if let Some(other) = from.iter().find(|from| !is_tensor(from)) {
            return Err(Reason::new(format!("`{title}` also loads from {}", name(other)), "loads from tensors only"));
        }
        Ok(Some(Fill { position, to, from, title, inner }))
    }

    /// The title of a copy, and what it writes and reads; `None` for other ops.
    fn copied(&self, op: &Op) -> Result<Option<Moves>, Reason> {
        let ([dst, src], true) = (&op.operands[..], op.kind.is_copy()) else { return Ok(None) };
        let title = self.op_title(op);
        if op.scope != Scope::Cta || op.warp.is_some() {
            let text = format!("`{title}` is not in CTA scope");
            return Err(Reason::new(text, "copies by all threads of the CTA"));
        }
        let vars: Vec<Var> = dst.non_unit_extents().iter().map(|extent| Var::new("#", 0, extent - 1)).collect();
        let [to, from] = [dst, src].map(|tile| vec![tile.access(&vars, op.span)]);
        Ok(Some((title, to, from)))
    }

    /// The title of a parallel loop of named values and stores, and what it writes and reads.
    fn moved(&self, parallel: &Parallel) -> Result<Moves, Reason> {
        let vars: Vec<&str> = parallel.vars.iter().map(Var::name).collect();
        let title = format!("parallel {}", vars.join(", "));
        let is_plain = |element: &ElementStmt| matches!(element, ElementStmt::Store { .. } | ElementStmt::Let { .. });
        if !parallel.body.iter().all(is_plain) {
            let text = format!("`{title}` has conditions, inner loops or atomic operations");
            return Err(Reason::new(text, "named values and stores"));
        }
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for element in &parallel.body {
            element.for_each_access(&mut |access, writes| {
                if writes { &mut to } else { &mut from }.push(access.clone());
            });
        }
        Ok((title, to, from))
    }

    /// Whether a statement stores to shared buffers and loads from tensors.
    fn moves_to_shared(&self, stmt: &Stmt) -> bool {
        let (mut loads, mut stores) = (false, false);
        self.for_each_use_in(std::slice::from_ref(stmt), &mut |buffer, writes, _| match self.buffers[buffer].space {
            Space::Shared => stores |= writes,
            Space::Global(_) => loads |= !writes,
            Space::Fragment | Space::Tensor => {}
        });
        loads && stores
    }

    /// Whether a statement writes stages of rings, which are filled ahead anyway.
    fn fills_stages(&self, stmt: &Stmt) -> bool {
        let mut fills = false;
        self.for_each_use_in(std::slice::from_ref(stmt), &mut |buffer, writes, _| {
            fills |= writes && self.ring_of(buffer).is_some();
        });
        fills
    }

    /// The storages that a statement fills.
    fn filled(&self, fill: &Fill<'_>) -> BTreeSet<Handle<Buffer>> {
        fill.to.iter().map(|access| self.storage(access.buffer)).collect()
    }

    /// Why a statement does not run ahead, if only `left` do.
    fn against(&self, fill: &Fill<'_>, left: &[&Fill<'_>]) -> Option<Reason> {
        self.against_places(fill)
            .or_else(|| self.filled(fill).into_iter().find_map(|storage| self.against_uses(storage, fill.inner, left)))
    }

    /// Why a statement does not run ahead, because of what it loads, or of where it stores.
    fn against_places(&self, fill: &Fill<'_>) -> Option<Reason> {
        let Fill { inner, title, .. } = fill;
        let (var, written) = (&inner.counter.var, self.written());
        let name = |storage: Handle<Buffer>| format!("`{}`", self.buffers[storage].name);
        if let Some(from) = fill.from.iter().map(|from| self.storage(from.buffer)).find(|from| written.contains(from)) {
            let text = format!("the kernel writes {}, which `{title}` loads", name(from));
            return Some(Reason::new(text, "tensors that are only read"));
        }
        let of_stores = || fill.to.iter().flat_map(|to| to.index.iter().map(|at| (to.buffer, at)));
        of_stores().find_map(|(buffer, at)| match at {
            Coord::Data(_) => {
                let text = format!("which elements of {} `{title}` fills depends on data", name(buffer));
                Some(Reason::new(text, "indices that are expressions"))
            }
            Coord::At(at) => at.mentions(var).then(|| {
                let text = format!("which elements of {} `{title}` fills depends on `{}`", name(buffer), var.name());
                Reason::new(text, "the same elements in each iteration")
            }),
        })
    }

    /// Why a storage is not filled ahead in a loop, if only `left` run ahead, because of what else uses it.
    fn against_uses(&self, storage: Handle<Buffer>, inner: &Loop, left: &[&Fill<'_>]) -> Option<Reason> {
        let (name, body) = (&self.buffers[storage].name, &inner.body);
        if self.uses_in(&self.body, storage) > self.uses_in(body, storage) {
            let text = format!("`{name}` is used outside of the loop");
            return Some(Reason::new(text, "buffers that only the loop uses"));
        }
        let is_fill = |at: &usize| left.iter().any(|fill| fill.position == *at && self.filled(fill).contains(&storage));
        let is_other = |at: &usize| self.uses_in(&body[*at..=*at], storage) > 0 && !is_fill(at);
        let other = (0..body.len()).find(is_other)?;
        if (other..body.len()).any(|at| is_fill(&at)) {
            let text = format!("`{name}` is used in the loop before all of it is filled");
            return Some(Reason::new(text, "copies in front of all other uses"));
        }
        self.written_in(&body[other..]).contains(&storage).then(|| {
            Reason::new(format!("other statements of the loop write `{name}` too"), "buffers that only copies write")
        })
    }
}

/// Calls `visit` on all loops of a body.
pub(super) fn for_each_loop<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Loop)) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                visit(inner);
                for_each_loop(&inner.body, visit);
            }
            Stmt::If(branch) => {
                [&branch.then, &branch.otherwise].into_iter().for_each(|body| for_each_loop(body, visit))
            }
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => {}
        }
    }
}
