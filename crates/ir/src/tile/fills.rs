//! What a pipelined loop loads ahead: the statements that fill shared buffers from tensors.

use std::collections::BTreeSet;

use tilewright_expr::Var;
use tilewright_layout::axis::Scope;

use crate::arena::Handle;
use crate::plan::Reason;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Loop, Stmt, Unroll};
use crate::tile::op::OpKind;
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

impl Kernel {
    /// The statements of a loop that may run ahead; none if it is not pipelined.
    pub fn fills(&self, inner: &Loop) -> Fills {
        let Unroll::Pipelined(stages) = inner.unroll else { return Fills::default() };
        let refused = |text: &str, accepted: &str| {
            let reason = Reason { text: text.to_string(), accepted: accepted.to_string() };
            Fills { against: vec![reason], ..Fills::default() }
        };
        if stages < 2 {
            return refused("the loop has 1 stage", "2 stages or more");
        }
        if inner.counter.most_trips() < 2 {
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

    /// The shared buffers that loops of the kernel fill ahead.
    pub(super) fn filled_ahead(&self) -> BTreeSet<Handle<Buffer>> {
        self.all_fills().into_iter().flat_map(|fills| fills.buffers).collect()
    }

    /// The tensors that loops of the kernel copy ahead.
    pub(super) fn copied_ahead(&self) -> BTreeSet<Handle<Buffer>> {
        self.all_fills().into_iter().flat_map(|fills| fills.tensors).collect()
    }

    fn all_fills(&self) -> Vec<Fills> {
        let mut found = Vec::new();
        for_each_loop(&self.body, &mut |inner| found.push(self.fills(inner)));
        found
    }

    /// The statement at a position of a loop, if it moves elements of tensors to shared buffers. Error: why it may not run
    /// ahead although it does.
    fn fill<'a>(&self, inner: &'a Loop, position: usize) -> Result<Option<Fill<'a>>, Reason> {
        let stmt = &inner.body[position];
        if !self.moves_to_shared(stmt) {
            return Ok(None);
        }
        let refused = |text: String, accepted: &str| Err(Reason { text, accepted: accepted.to_string() });
        let (to, from, title) = match stmt {
            Stmt::Op(op) => {
                let op = &self.ops[*op];
                let title = self.op_title(op);
                let ([dst, src], OpKind::Copy) = (&op.operands[..], op.kind) else { return Ok(None) };
                if op.scope != Scope::Cta || op.warp.is_some() {
                    return refused(format!("`{title}` is not in CTA scope"), "copies by all threads of the CTA");
                }
                let vars: Vec<Var> = dst.non_unit_extents().iter().map(|extent| Var::new("#", 0, extent - 1)).collect();
                let [to, from] = [dst, src].map(|tile| vec![tile.access(&vars, op.span)]);
                (to, from, title)
            }
            Stmt::Parallel(parallel) => {
                let parallel = &self.parallels[*parallel];
                let vars: Vec<&str> = parallel.vars.iter().map(Var::name).collect();
                let title = format!("parallel {}", vars.join(", "));
                let is_plain =
                    |element: &ElementStmt| matches!(element, ElementStmt::Store { .. } | ElementStmt::Let { .. });
                if !parallel.body.iter().all(is_plain) {
                    let text = format!("`{title}` has conditions, inner loops or atomic additions");
                    return refused(text, "named values and stores");
                }
                let (mut to, mut from) = (Vec::new(), Vec::new());
                for element in &parallel.body {
                    element.for_each_access(&mut |access, writes| {
                        if writes { &mut to } else { &mut from }.push(access.clone());
                    });
                }
                (to, from, title)
            }
            Stmt::Loop(_) | Stmt::EachThread(_) | Stmt::If(_) => {
                let text = "a shared buffer is filled inside of a branch, an inner loop or `each_thread`".to_string();
                return refused(text, "copies directly in the loop");
            }
        };
        let name = |access: &Access| format!("`{}`", self.buffers[access.buffer].name);
        let is_shared = |access: &&Access| self.buffers[access.buffer].space == Space::Shared;
        let is_tensor = |access: &&Access| matches!(self.buffers[access.buffer].space, Space::Global(_));
        if let Some(other) = to.iter().find(|to| !is_shared(to)) {
            return refused(format!("`{title}` also stores to {}", name(other)), "stores to shared buffers only");
        }
        if let Some(other) = from.iter().find(|from| !is_tensor(from)) {
            return refused(format!("`{title}` also loads from {}", name(other)), "loads from tensors only");
        }
        Ok(Some(Fill { position, to, from, title, inner }))
    }

    /// Whether a statement stores to shared buffers and loads from tensors.
    fn moves_to_shared(&self, stmt: &Stmt) -> bool {
        let (mut loads, mut stores) = (false, false);
        self.for_each_use_in(std::slice::from_ref(stmt), &mut |buffer, writes, _| match self.buffers[buffer].space {
            Space::Shared => stores |= writes,
            Space::Global(_) => loads |= !writes,
            Space::Fragment => {}
        });
        loads && stores
    }

    /// The storages that a statement fills.
    fn filled(&self, fill: &Fill<'_>) -> BTreeSet<Handle<Buffer>> {
        fill.to.iter().map(|access| self.storage(access.buffer)).collect()
    }

    /// Why a statement does not run ahead, if only `left` do.
    fn against(&self, fill: &Fill<'_>, left: &[&Fill<'_>]) -> Option<Reason> {
        let Fill { inner, title, .. } = fill;
        let var = &inner.counter.var;
        let name = |storage: Handle<Buffer>| format!("`{}`", self.buffers[storage].name);
        let written = self.written();
        if let Some(from) = fill.from.iter().map(|from| self.storage(from.buffer)).find(|from| written.contains(from)) {
            let text = format!("the kernel writes {}, which `{title}` loads", name(from));
            return Some(Reason { text, accepted: "tensors that are only read".to_string() });
        }
        let place =
            |is_so: fn(&Coord, &Var) -> bool| fill.to.iter().find(|to| to.index.iter().any(|at| is_so(at, var)));
        if let Some(to) = place(|at, _| matches!(at, Coord::Data(_))) {
            let text = format!("which elements of {} `{title}` fills depends on data", name(to.buffer));
            return Some(Reason { text, accepted: "indices that are expressions".to_string() });
        }
        if let Some(to) = place(|at, var| matches!(at, Coord::At(at) if at.mentions(var))) {
            let text = format!("which elements of {} `{title}` fills depends on `{}`", name(to.buffer), var.name());
            return Some(Reason { text, accepted: "the same elements in each iteration".to_string() });
        }
        self.filled(fill).into_iter().find_map(|storage| {
            if self.uses_in(&self.body, storage) > self.uses_in(&inner.body, storage) {
                let text = format!("{} is used outside of the loop", name(storage));
                return Some(Reason { text, accepted: "buffers that only the loop uses".to_string() });
            }
            let is_by = |position: usize| {
                left.iter().any(|fill| fill.position == position && self.filled(fill).contains(&storage))
            };
            let uses = |position: usize| self.uses_in(std::slice::from_ref(&inner.body[position]), storage) > 0;
            let first_other = (0..inner.body.len()).find(|position| uses(*position) && !is_by(*position));
            let last_fill = (0..inner.body.len()).rfind(|position| is_by(*position));
            if first_other.is_some_and(|other| last_fill > Some(other)) {
                let text = format!("{} is used in the loop before all of it is filled", name(storage));
                return Some(Reason { text, accepted: "copies in front of all other uses".to_string() });
            }
            self.is_written_after(inner, first_other, storage).then(|| {
                let text = format!("other statements of the loop write {} too", name(storage));
                Reason { text, accepted: "buffers that only copies write".to_string() }
            })
        })
    }

    /// Whether statements of a loop from a position on write a storage.
    fn is_written_after(&self, inner: &Loop, from: Option<usize>, storage: Handle<Buffer>) -> bool {
        from.is_some_and(|from| self.written_in(&inner.body[from..]).contains(&storage))
    }
}

/// Calls `visit` on all loops of a body.
fn for_each_loop(body: &[Stmt], visit: &mut dyn FnMut(&Loop)) {
    for stmt in body {
        match stmt {
            Stmt::Loop(inner) => {
                visit(inner);
                for_each_loop(&inner.body, visit);
            }
            Stmt::If(branch) => {
                [&branch.then, &branch.otherwise].into_iter().for_each(|body| for_each_loop(body, visit))
            }
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
        }
    }
}
