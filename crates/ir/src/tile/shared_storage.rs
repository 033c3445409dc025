//! Which shared buffers have the same storage: those whose lives do not meet.
//!
//! A buffer lives from the first statement that uses it to the last. Inside a loop, it lives only within an iteration if each
//! iteration first writes all of it; otherwise it lives as long as the loop. Buffers take storage that they do not need alone
//! only where that pays: a barrier may have to keep the threads that still use one from those that already use the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tilewright_expr::{Expr, Var};

use crate::arena::Handle;
use crate::target::{Target, padded_shared_bytes};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::element::{ElementStmt, Parallel};
use crate::tile::fills::for_each_loop;
use crate::tile::kernel::{Kernel, Stmt, Unroll};
use crate::tile::op::Effect;
use crate::tile::role::Role;
use crate::tile::value::Coord;

/// How the shared buffers of a kernel are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedStorage {
    /// The buffers that lie in the storage of another one, which is at least as large.
    pub inside: BTreeMap<Handle<Buffer>, Handle<Buffer>>,
    /// Bytes that all of them take.
    pub bytes: i64,
    /// Bytes that they would take if each had storage of its own.
    pub bytes_apart: i64,
    /// Whether buffers could share storage, but no more CTAs would run on an SM.
    pub is_not_worth_it: bool,
}

/// Storage, and the lives of the buffers in it.
struct Slot {
    owner: Handle<Buffer>,
    /// The role whose statements use the buffers.
    role: Option<Handle<Role>>,
    lives: Vec<Range<usize>>,
}

impl Kernel {
    /// How the shared buffers are stored on a target.
    pub fn shared_storage(&self, target: Target) -> SharedStorage {
        let inside = self.sharing();
        let bytes_of = |counts: &dyn Fn(Handle<Buffer>) -> bool| {
            let each = self.buffers_of_their_own().filter(|(handle, _)| counts(*handle));
            each.map(|(_, bytes)| padded_shared_bytes(bytes)).fold(0, i64::saturating_add)
        };
        let (bytes_apart, bytes) = (bytes_of(&|_| true), bytes_of(&|handle| !inside.contains_key(&handle)));
        let ctas = |bytes: i64| target.ctas_of_an_sm(self.threads, bytes);
        let is_not_worth_it = !inside.is_empty() && !self.always_shares && ctas(bytes) == ctas(bytes_apart);
        match is_not_worth_it {
            true => SharedStorage { inside: BTreeMap::new(), bytes: bytes_apart, bytes_apart, is_not_worth_it },
            false => SharedStorage { inside, bytes, bytes_apart, is_not_worth_it },
        }
    }

    /// The bytes of a shared buffer, of all stages together.
    fn bytes_of(&self, handle: Handle<Buffer>) -> i64 {
        let buffer = &self.buffers[handle];
        let bytes = buffer.span_elements().saturating_mul(buffer.dtype.bytes());
        match self.ring_of(handle) {
            None => bytes,
            Some(ring) => self.stage_bytes(handle).saturating_mul(self.rings[ring].stages),
        }
    }

    /// The shared buffers that are not views of others, with their bytes.
    fn buffers_of_their_own(&self) -> impl Iterator<Item = (Handle<Buffer>, i64)> {
        let shared = self.buffers.iter().filter(|(_, b)| b.space == Space::Shared && b.view_of.is_none());
        shared.map(|(handle, _)| (handle, self.bytes_of(handle)))
    }

    /// The buffers that could lie in another one, as large or larger. The largest are placed first, each in the smallest storage
    /// that is free while it lives.
    fn sharing(&self) -> BTreeMap<Handle<Buffer>, Handle<Buffer>> {
        let (fixed, users) = (self.fixed(), self.users());
        let mut movable: Vec<(Handle<Buffer>, i64)> =
            self.buffers_of_their_own().filter(|(handle, _)| !fixed.contains(handle)).collect();
        movable.sort_by_key(|(handle, bytes)| (std::cmp::Reverse(*bytes), *handle));
        let (mut slots, mut inside): (Vec<Slot>, _) = (Vec::new(), BTreeMap::new());
        for (handle, _) in movable {
            let Some([role]) = users.get(&handle).map(Vec::as_slice) else { continue };
            let Some(life) = self.life_in(&self.body, 0, handle) else { continue };
            let is_free = |slot: &&mut Slot| slot.role == *role && slot.lives.iter().all(|other| !meet(other, &life));
            match slots.iter_mut().rev().find(is_free) {
                Some(slot) => {
                    inside.insert(handle, slot.owner);
                    slot.lives.push(life);
                }
                None => slots.push(Slot { owner: handle, role: *role, lives: vec![life] }),
            }
        }
        inside
    }

    /// The buffers that must not share: those that the user set apart, those that pipelined loops use, whose copies run
    /// ahead, and the stages of rings.
    fn fixed(&self) -> BTreeSet<Handle<Buffer>> {
        let mut fixed: BTreeSet<Handle<Buffer>> = self.alone.iter().map(|handle| self.storage(*handle)).collect();
        fixed.extend(self.rings.iter().flat_map(|(_, ring)| ring.buffers.iter().copied()));
        for_each_loop(&self.body, &mut |inner| {
            if matches!(inner.unroll, Unroll::Pipelined(_)) {
                self.for_each_use_in(&inner.body, &mut |buffer, _, _| {
                    fixed.insert(self.storage(buffer));
                });
            }
        });
        fixed
    }

    /// The roles whose statements use each storage; `None` for the statements of all threads. Those of different roles are in
    /// no common order.
    fn users(&self) -> BTreeMap<Handle<Buffer>, Vec<Option<Handle<Role>>>> {
        let mut users: BTreeMap<Handle<Buffer>, Vec<Option<Handle<Role>>>> = BTreeMap::new();
        for_each_stmt(&self.body, &mut |stmt| {
            let role = match stmt {
                Stmt::Op(op) => self.ops[*op].role,
                Stmt::Parallel(parallel) => self.parallels[*parallel].role,
                Stmt::EachThread(_) | Stmt::If(_) => None,
                Stmt::Loop(_) | Stmt::Begin(_) | Stmt::End(_) => return,
            };
            let mut visit = |buffer: Handle<Buffer>| {
                let known = users.entry(self.storage(buffer)).or_default();
                if !known.contains(&role) {
                    known.push(role);
                }
            };
            match stmt {
                // What stands in a branch is visited on its own.
                Stmt::If(branch) => branch.cond.for_each_load(&mut |access| visit(access.buffer)),
                _ => self.for_each_use_in(std::slice::from_ref(stmt), &mut |buffer, _, _| visit(buffer)),
            }
        });
        users
    }

    /// The statements, numbered in their order from `first` on, during which a buffer keeps what it holds; `None` if none of
    /// them uses it.
    fn life_in(&self, body: &[Stmt], first: usize, buffer: Handle<Buffer>) -> Option<Range<usize>> {
        let (mut at, mut users) = (first, Vec::new());
        for stmt in body {
            let all = at..at + statements(stmt);
            at = all.end;
            if self.uses_in(std::slice::from_ref(stmt), buffer) > 0 {
                users.push((stmt, all));
            }
        }
        match &users[..] {
            [] => None,
            [(only, all)] => Some(self.life_in_stmt(only, all, buffer)),
            [(_, begin), .., (_, end)] => Some(begin.start..end.end),
        }
    }

    /// The same in a statement that uses the buffer and has these numbers, if no other does.
    fn life_in_stmt(&self, stmt: &Stmt, all: &Range<usize>, buffer: Handle<Buffer>) -> Range<usize> {
        let Stmt::Loop(inner) = stmt else { return all.clone() };
        let begins_anew = self.begins_anew(&inner.body, buffer);
        let within = if begins_anew { self.life_in(&inner.body, all.start + 1, buffer) } else { None };
        within.unwrap_or(all.clone())
    }

    /// Whether views may access what lies between the elements of a buffer. One that only reorders dimensions does not.
    fn has_more_than_its_elements(&self, buffer: Handle<Buffer>) -> bool {
        let is_other = |(handle, view): (Handle<Buffer>, &Buffer)| {
            handle != buffer && view.order.is_none() && self.storage(handle) == buffer
        };
        let elements = self.buffers[buffer].shape.iter().fold(1, |all: i64, extent| all.saturating_mul(*extent));
        self.buffers[buffer].span_elements() > elements && self.buffers.iter().any(is_other)
    }

    /// Whether the first of these statements that uses a buffer writes all of it, and reads nothing of it.
    fn begins_anew(&self, body: &[Stmt], buffer: Handle<Buffer>) -> bool {
        let first = body.iter().find(|stmt| self.uses_in(std::slice::from_ref(stmt), buffer) > 0);
        let uses = first.map_or(0, |first| self.uses_in(std::slice::from_ref(first), buffer));
        let shape = &self.buffers[buffer].shape;
        if self.has_more_than_its_elements(buffer) {
            return false;
        }
        match first {
            Some(Stmt::Op(op)) => {
                let op = &self.ops[*op];
                let dst = &op.operands[0];
                let is_whole = dst.buffer == buffer && dst.extents == *shape;
                is_whole && uses == 1 && op.effect(0) == Effect::Write && op.warp.is_none()
            }
            Some(Stmt::Parallel(parallel)) => {
                let parallel = &self.parallels[*parallel];
                uses == 1
                    && parallel.extents() == *shape
                    && parallel.body.iter().any(|stmt| writes_all(parallel, stmt, buffer))
            }
            // What loops and branches write may not be all.
            Some(Stmt::Loop(_) | Stmt::If(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_)) | None => false,
        }
    }
}

fn for_each_stmt<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in body {
        visit(stmt);
        match stmt {
            Stmt::Loop(inner) => for_each_stmt(&inner.body, visit),
            Stmt::If(branch) => {
                [&branch.then, &branch.otherwise].into_iter().for_each(|body| for_each_stmt(body, visit))
            }
            Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => {}
        }
    }
}

/// Whether a statement stores to the element of the buffer that has the variables of the loop as its index.
fn writes_all(parallel: &Parallel, stmt: &ElementStmt, buffer: Handle<Buffer>) -> bool {
    let ElementStmt::Store { to, .. } = stmt else { return false };
    let is_var = |(coord, var): (&Coord, &Var)| matches!(coord, Coord::At(index) if *index == Expr::var(var));
    let is_own = to.buffer == buffer && to.index.len() == parallel.vars.len();
    is_own && to.index.iter().zip(&parallel.vars).all(is_var)
}

fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// How many statements there are in one, with itself.
fn statements(stmt: &Stmt) -> usize {
    let of = |body: &[Stmt]| body.iter().map(statements).sum::<usize>();
    match stmt {
        Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) | Stmt::Begin(_) | Stmt::End(_) => 1,
        Stmt::Loop(inner) => 1 + of(&inner.body),
        Stmt::If(branch) => 1 + of(&branch.then) + of(&branch.otherwise),
    }
}
