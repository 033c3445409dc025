//! What is valid in parallel loops: values, stores, and conditions.

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};

use super::Masks;
use crate::Scalar;
use crate::arena::Handle;
use crate::tile::atomic::{Atomic, AtomicChange};
use crate::tile::bounds::Bounds;
use crate::tile::buffer::Space;
use crate::tile::element::{Claim, ElementStmt, Parallel};
use crate::tile::updates::{Update, Updates};
use crate::tile::valid_extents::{Limits, Name, Valid, both, joined, tests_indices};
use crate::tile::value::{Access, Coord, ElementOp, Value};

/// A nest while its statements are looked at.
struct Nest {
    /// Its variables, and those of the loops inside it.
    vars: Vec<Var>,
    /// The names in scope, the latest last.
    names: Vec<Name>,
    /// The conditions around the current statement.
    conditions: Vec<Condition>,
}

/// A condition of the user.
enum Condition {
    /// One on indices, which says what happens at the edge.
    OfIndices,
    /// One on data, with the limits of the data.
    OfData(Limits),
}

impl Nest {
    /// Whether a condition of the user has said what happens at the edge.
    fn decides_edges(&self) -> bool {
        self.conditions.iter().any(|condition| matches!(condition, Condition::OfIndices))
    }

    /// Where the data is valid on which conditions depend.
    fn data(&self) -> Limits {
        self.conditions.iter().fold(Limits::default(), |all, condition| match condition {
            Condition::OfIndices => all,
            Condition::OfData(limits) => all.and(limits),
        })
    }

    /// A statement that is executed only within these limits.
    fn guarded(&self, element: ElementStmt, limits: &Limits) -> ElementStmt {
        if self.decides_edges() {
            return element;
        }
        let span = element.span();
        let within = |element, cond| ElementStmt::If { cond, then: vec![element], otherwise: Vec::new(), span };
        limits.conditions().fold(element, within)
    }
}

impl Masks {
    pub(super) fn parallel(&mut self, handle: Handle<Parallel>) {
        let parallel = self.kernel.parallels[handle].clone();
        let mut nest = Nest { vars: parallel.vars.clone(), names: Vec::new(), conditions: Vec::new() };
        let body = self.elements(parallel.body, &mut nest);
        if self.changes() {
            self.kernel.parallels[handle].body = body;
        }
    }

    fn elements(&mut self, body: Vec<ElementStmt>, nest: &mut Nest) -> Vec<ElementStmt> {
        let (vars, names) = (nest.vars.len(), nest.names.len());
        let body = body.into_iter().map(|element| self.element(element, nest)).collect();
        nest.vars.truncate(vars);
        nest.names.truncate(names);
        body
    }

    fn element(&mut self, element: ElementStmt, nest: &mut Nest) -> ElementStmt {
        match element {
            ElementStmt::Let { name, value, span } => {
                let limits = self.limits(&value, nest);
                let is_test = tests_indices(&value, &nest.vars, &nest.names);
                nest.names.push(Name { name: name.clone(), value: value.clone(), limits, is_test });
                ElementStmt::Let { name, value, span }
            }
            ElementStmt::Store { to, value, claim } => self.store(to, value, claim, nest),
            ElementStmt::Atomic(atomic) => self.atomic(atomic, nest),
            ElementStmt::If { cond, then, otherwise, span } => {
                nest.conditions.push(match tests_indices(&cond, &nest.vars, &nest.names) {
                    true => Condition::OfIndices,
                    false => Condition::OfData(self.limits(&cond, nest)),
                });
                let before = self.state.clone();
                let then = self.elements(then, nest);
                let after = std::mem::replace(&mut self.state, before);
                let otherwise = self.elements(otherwise, nest);
                self.state = joined(&after, &self.state);
                nest.conditions.pop();
                ElementStmt::If { cond, then, otherwise, span }
            }
            ElementStmt::For { counter, body, span } => {
                nest.vars.push(counter.var.clone());
                let body = self.elements(body, nest);
                nest.vars.pop();
                ElementStmt::For { counter, body, span }
            }
        }
    }

    fn atomic(&mut self, atomic: Atomic, nest: &mut Nest) -> ElementStmt {
        let all = |limits: Limits, value| limits.and(&self.limits(value, nest));
        let limits = atomic.values().fold(Limits::default(), all);
        let counts = self.limits_of_index(&atomic.to, nest).and(&nest.data());
        let is_neutral = match atomic.change {
            AtomicChange::Combine(op) => self.limits(&atomic.value, nest).is_zero && op.reduction().ignores_zeros(),
            AtomicChange::Exchange | AtomicChange::CompareExchange => false,
        };
        let counts = if is_neutral && atomic.old.is_none() { counts } else { counts.and(&limits) };
        self.count_in_nest(counts.lost, atomic.to.span, "this operation", nest);
        let Some(old) = &atomic.old else {
            return nest.guarded(ElementStmt::Atomic(atomic), &counts);
        };
        // It is no value that an update could be made of, and 0 where there is none.
        let (value, limits) = (Value::Const(Scalar::Int(0)), Limits { is_zero: true, ..counts.clone() });
        nest.names.push(Name { name: old.name.clone(), value, limits, is_test: false });
        if nest.decides_edges() {
            return ElementStmt::Atomic(atomic);
        }
        // The name is used behind the statement, so the condition cannot be around it.
        let both = |one, other| Value::Op(ElementOp::And, [one, other].into());
        let condition = counts.conditions().chain(atomic.condition.clone()).reduce(both);
        ElementStmt::Atomic(Atomic { condition, ..atomic })
    }

    fn limits(&self, value: &Value, nest: &Nest) -> Limits {
        self.kernel.limits(&self.state, &nest.vars, &nest.names, value)
    }

    /// Warns of a statement, unless a condition of the user has said what happens at the edge.
    fn count_in_nest(&mut self, lost: Option<Span>, at: Span, what: &str, nest: &Nest) {
        self.count_anyway(lost.filter(|_| !nest.decides_edges()), at, what);
    }

    /// The limits of the data in an index.
    fn limits_of_index(&self, to: &Access, nest: &Nest) -> Limits {
        to.index.iter().fold(Limits::default(), |all, coord| match coord {
            Coord::At(_) => all,
            Coord::Data(value) => all.and(&self.limits(value, nest)),
        })
    }

    fn store(&mut self, to: Access, value: Value, claim: Claim, nest: &Nest) -> ElementStmt {
        let counts = self.limits_of_index(&to, nest);
        if matches!(self.kernel.buffers[to.buffer].space, Space::Global(_)) {
            self.count_in_nest(counts.lost, to.span, "this store", nest);
            return nest.guarded(ElementStmt::Store { to, value, claim }, &counts);
        }
        // Where a condition depends on data that is no element, the element stays as it is.
        let counts = counts.and(&nest.data());
        if let Some(update) = self.update(&to, &value, nest) {
            // What is valid already stays so: invalid inputs do not change it.
            if let Some(known) = self.state.get_mut(&to.buffer) {
                known.is_zero &= update.keeps_zero;
            }
            let counts = counts.and(&update.guard);
            self.count_in_nest(update.all.lost.or(counts.lost), to.span, "this update", nest);
            return nest.guarded(ElementStmt::Store { to, value: update.value, claim }, &counts);
        }
        self.count_in_nest(counts.lost, to.span, "this store", nest);
        let limits = self.limits(&value, nest);
        self.stored(&to, limits, nest);
        nest.guarded(ElementStmt::Store { to, value, claim }, &counts)
    }

    /// The update that a store is, if its value depends on the element that it replaces.
    fn update(&self, to: &Access, value: &Value, nest: &Nest) -> Option<Update> {
        let limits = |value: &Value| self.limits(value, nest);
        let mut updates = Updates { to, own: limits(&Value::Load(to.clone())), limits: &limits, names: Vec::new() };
        for Name { name, value, .. } in &nest.names {
            let update = updates.part(value, false);
            updates.names.push((name, update.map(|update| update.all)));
        }
        let update = updates.part(value, true)?;
        // A condition of the user has said what happens at the edge.
        Some(if nest.decides_edges() { Update { value: value.clone(), ..update } } else { update })
    }

    /// Records what is valid of a buffer after a store of a value with these limits.
    fn stored(&mut self, to: &Access, limits: Limits, nest: &Nest) {
        let shape = &self.kernel.buffers[to.buffer].shape;
        // The variable that is the index of each dimension; `None` for an index that is something else.
        let variable = |(coord, extent): (&Coord, &i64)| match coord {
            Coord::At(index) if index.as_const() == Some(0) && *extent == 1 => Some(None),
            Coord::At(index) => {
                let var = nest.vars.iter().find(|var| *index == Expr::var(var) && var.range().hi == extent - 1)?;
                Some(Some(var.clone()))
            }
            Coord::Data(_) => None,
        };
        let variables: Option<Vec<Option<Var>>> = to.index.iter().zip(shape).map(variable).collect();
        // A condition of the user says what happens at the edge.
        let limits = if nest.decides_edges() { Limits::default() } else { limits };
        match variables {
            Some(variables) => {
                let dimension = |var: &Var| variables.iter().position(|known| known.as_ref() == Some(var));
                let in_buffer = |of: &Bounds<Var>| of.renamed(dimension);
                let valid = Valid { bounds: in_buffer(&limits.of), is_zero: limits.is_zero, lost: limits.lost };
                let valid = if nest.conditions.is_empty() {
                    valid
                } else {
                    let earlier = self.kernel.valid_buffer(&self.state, to.buffer);
                    partly(&earlier, valid, &in_buffer(&nest.data().of))
                };
                self.replace(to.buffer, valid, to.span);
            }
            None if limits.of.is_empty() => {
                let valid = Valid { lost: limits.lost, ..Valid::everywhere() };
                self.write_part(to.buffer, valid, to.span);
            }
            None => {
                let lost = Valid { bounds: Bounds::default(), is_zero: limits.is_zero, lost: Some(to.span) };
                self.replace(to.buffer, lost, to.span);
            }
        }
    }
}

/// Up to where a buffer is valid after a store under conditions: `earlier` where they do not hold, `stored` where they do, which
/// is within the bounds of the data that they depend on.
fn partly(earlier: &Valid, stored: Valid, data: &Bounds<usize>) -> Valid {
    let bounds = stored.bounds.filtered(|sum, limit| data.limit(sum) != Some(limit));
    // Beyond the bounds of the data nothing is stored, so what was 0 there stays so.
    let keeps_zeros = bounds.is_empty() && earlier.bounds.iter().all(|(sum, limit)| data.limit(sum) == Some(limit));
    let is_zero = stored.is_zero || keeps_zeros;
    both(earlier, &Valid { bounds, is_zero, ..stored })
}
