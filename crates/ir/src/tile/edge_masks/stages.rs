//! What is valid in the stages of rings: what a role has left in a stage, in terms of the loops of the role that gets it.

use std::collections::BTreeMap;

use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};

use super::Masks;
use crate::arena::Handle;
use crate::counter::Counter;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::ring::{Hold, Ring, Side};
use crate::tile::role::Role;
use crate::tile::valid_extents::{State, Valid, joined};

/// A role that fills stages of a ring, and one that uses them.
type Sides = [Option<Handle<Role>>; 2];

/// The loops around a hold, outermost first, each with its number in the kernel.
type Path = Vec<(usize, Counter)>;

/// What is valid in stages.
#[derive(Default)]
pub(super) struct Stages {
    paths: BTreeMap<Handle<Hold>, Path>,
    /// What holds have left in their stages, in terms of the variables of their own loops.
    published: BTreeMap<Handle<Hold>, State>,
    /// For the roles that fill and use stages of a ring, whether their holds are in the same loops, where that was asked.
    same_loops: BTreeMap<(Handle<Ring>, Sides), bool>,
    /// Whether a stage was taken before it was known what is left in it.
    is_taken_early: bool,
}

impl Stages {
    pub(super) fn of(body: &[Stmt]) -> Stages {
        let mut stages = Stages::default();
        stages.add_paths(body, &mut Vec::new(), &mut 0);
        stages
    }

    /// What holds have left in their stages.
    pub(super) fn published(&self) -> &BTreeMap<Handle<Hold>, State> {
        &self.published
    }

    /// Whether all that was taken in a first walk was known, so that another walk finds the same.
    pub(super) fn is_known(&self) -> bool {
        !self.is_taken_early
    }

    fn add_paths(&mut self, body: &[Stmt], path: &mut Path, loops: &mut usize) {
        for stmt in body {
            match stmt {
                Stmt::Begin(hold) => _ = self.paths.insert(*hold, path.clone()),
                Stmt::Loop(inner) => {
                    *loops += 1;
                    path.push((*loops, inner.counter.clone()));
                    self.add_paths(&inner.body, path, loops);
                    path.pop();
                }
                // The verifier has seen that holds are under no conditions.
                Stmt::If(_) | Stmt::End(_) | Stmt::Op(_) | Stmt::Parallel(_) | Stmt::EachThread(_) => {}
            }
        }
    }

    /// What is valid of the buffers of a stage that a role gets. Where the roles go through the stages in different loops, it is not
    /// known which stage that is.
    fn taken(&mut self, kernel: &Kernel, hold: Handle<Hold>) -> State {
        let Hold { ring, role: user, span, .. } = kernel.holds[hold];
        let own = holds(kernel, (ring, Side::Consume, user));
        let mut roles: Vec<Option<Handle<Role>>> = kernel
            .holds
            .iter()
            .filter(|(_, of)| (of.ring, of.side) == (ring, Side::Produce))
            .map(|(_, of)| of.role)
            .collect();
        roles.sort();
        roles.dedup();
        let mut early = false;
        let of_role = |role| {
            let filled = holds(kernel, (ring, Side::Produce, role));
            let place = own.iter().position(|known| *known == hold)?;
            let known = self.same_loops.get(&(ring, [role, user])).copied();
            let is_same = known.unwrap_or_else(|| self.are_in_the_same_loops(&filled, &own));
            self.same_loops.insert((ring, [role, user]), is_same);
            let from = if is_same { &filled[place..=place] } else { &filled[..] };
            early |= from.iter().any(|from| !self.published.contains_key(from));
            let left =
                from.iter().filter_map(|from| self.published.get(from)).fold(State::new(), |all, of| joined(&all, of));
            let known = |valid: &Valid| match is_same {
                true => self.in_loops_of(hold, from[0], valid),
                false => Valid { lost: Some(span), ..Valid::default() },
            };
            Some(left.iter().map(|(buffer, valid)| (*buffer, known(valid))).collect())
        };
        let taken = roles.into_iter().filter_map(of_role).fold(State::new(), |all, of| joined(&all, &of));
        self.is_taken_early |= early;
        taken
    }

    /// What is valid of sums that a role gets from another one, which may have them from it: all that one of the two leaves there.
    fn exchanged(&mut self, kernel: &Kernel, hold: Handle<Hold>) -> State {
        let Hold { ring, span, .. } = kernel.holds[hold];
        let all = kernel.holds.iter().filter(|(_, of)| of.ring == ring).map(|(handle, _)| handle);
        let (known, unknown): (Vec<_>, Vec<_>) = all.partition(|handle| self.published.contains_key(handle));
        self.is_taken_early |= !unknown.is_empty();
        let left = known.iter().flat_map(|handle| self.published[handle].keys());
        let left = left.filter(|buffer| kernel.is_in_tensor_memory(**buffer));
        left.map(|buffer| (*buffer, Valid { lost: Some(span), ..Valid::default() })).collect()
    }

    /// Whether the holds of two roles are in loops of the same ranges, and each next one in as many of those of the one before.
    fn are_in_the_same_loops(&self, some: &[Handle<Hold>], others: &[Handle<Hold>]) -> bool {
        let is_same = |(a, b): (&Handle<Hold>, &Handle<Hold>)| {
            let (a, b) = (&self.paths[a], &self.paths[b]);
            let renamed = |expr: &Expr| normalize(&expr.substitute(&renaming(a, b)));
            let counts = |(a, b): (&Counter, &Counter)| {
                let ends = |of: &Counter| [normalize(&of.begin), normalize(&of.end)];
                [renamed(&a.begin), renamed(&a.end)] == ends(b) && a.step == b.step
            };
            a.len() == b.len() && a.iter().zip(b).all(|((_, a), (_, b))| counts((a, b)))
        };
        let nested = |all: &[Handle<Hold>]| -> Vec<usize> {
            let common = |pair: &[Handle<Hold>]| {
                let [a, b] = [&self.paths[&pair[0]], &self.paths[&pair[1]]];
                a.iter().zip(b).take_while(|((a, _), (b, _))| a == b).count()
            };
            all.windows(2).map(common).collect()
        };
        some.len() == others.len() && some.iter().zip(others).all(is_same) && nested(some) == nested(others)
    }

    /// What is valid in terms of the loops around another hold.
    fn in_loops_of(&self, to: Handle<Hold>, from: Handle<Hold>, valid: &Valid) -> Valid {
        let renaming = renaming(&self.paths[&from], &self.paths[&to]);
        let bounds = valid.bounds.with_limits(&|limit: &Expr| normalize(&limit.substitute(&renaming)));
        Valid { bounds, ..valid.clone() }
    }
}

impl Masks {
    /// A role gets a stage: one that it fills is like new, and in one that it uses is what another role has left there.
    pub(super) fn begin(&mut self, hold: Handle<Hold>) {
        self.take_stage(hold);
        let Hold { ring, side, .. } = self.kernel.holds[hold];
        match side {
            Side::Produce => {}
            Side::Consume => self.state.extend(self.stages.taken(&self.kernel, hold)),
        }
        if self.kernel.rings[ring].is_exchange() {
            self.state.extend(self.stages.exchanged(&self.kernel, hold));
        }
    }

    pub(super) fn end(&mut self, hold: Handle<Hold>) {
        let left = self.take_stage(hold);
        let Hold { ring, side, .. } = self.kernel.holds[hold];
        if side == Side::Produce || self.kernel.rings[ring].is_exchange() {
            self.stages.published.insert(hold, left);
        }
    }

    /// Takes what is known of the buffers of a stage.
    fn take_stage(&mut self, hold: Handle<Hold>) -> State {
        let buffers = &self.kernel.rings[self.kernel.holds[hold].ring].buffers;
        self.written.retain(|buffer| !buffers.contains(buffer));
        let (of_stage, others) = std::mem::take(&mut self.state)
            .into_iter()
            .partition(|(buffer, _)| buffers.contains(&self.kernel.storage(*buffer)));
        self.state = others;
        of_stage
    }
}

/// The variables of loops as those of other loops.
fn renaming(from: &Path, to: &Path) -> impl Fn(&Var) -> Option<Expr> {
    let pairs: Vec<(Var, Expr)> =
        from.iter().zip(to).map(|((_, from), (_, to))| (from.var.clone(), Expr::var(&to.var))).collect();
    move |var| pairs.iter().find(|(known, _)| known == var).map(|(_, new)| new.clone())
}

/// What a role does with the stages of a ring on one side, in order.
fn holds(kernel: &Kernel, of: (Handle<Ring>, Side, Option<Handle<Role>>)) -> Vec<Handle<Hold>> {
    let all = kernel.holds.iter().filter(|(_, hold)| (hold.ring, hold.side, hold.role) == of);
    all.map(|(handle, _)| handle).collect()
}
