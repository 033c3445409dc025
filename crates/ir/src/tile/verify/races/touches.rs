//! The accesses of an iteration, with the loops and conditions around them.

use std::collections::BTreeSet;

use tilewright_expr::{Expr, Var};

use super::iterations::{Iterations, Who};
use crate::counter::Counter;
use crate::tile::atomic::AtomicChange;
use crate::tile::element::{Claim, ElementStmt};
use crate::tile::kernel::Kernel;
use crate::tile::print::access_title;
use crate::tile::value::{Access, Coord, ElementOp, Value};
use crate::tile::verify::conditions::{Condition, KnownFacts};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads the element.
    Read,
    /// Writes it.
    Store(Claim),
    /// Changes it by an atomic operation.
    Atomic(AtomicChange),
}

/// An access of an iteration.
#[derive(Clone, Debug)]
pub(super) struct Touch<'a> {
    pub(super) access: &'a Access,
    pub(super) kind: Kind,
    /// One expression per dimension; `None` where one of them depends on data.
    pub(super) index: Option<Vec<Expr>>,
    /// Variables of the loops inside the iteration that its index or its conditions depend on.
    pub(super) inner: Vec<Var>,
    /// The conditions known at the access, except for those on data.
    pub(super) conditions: Vec<Condition>,
    /// The number of the list of statements that it is in. Names in one list are unique.
    list: usize,
    /// Whether the index has the same value throughout the iteration: the loop does not store to what it is loaded from.
    is_constant: bool,
}

impl<'a> Touch<'a> {
    /// The same access in these dimensions only, as if it were executed under no conditions.
    pub(super) fn in_dimensions(&self, dimensions: &[usize]) -> Touch<'a> {
        let index = self.index.as_ref().map(|index| dimensions.iter().map(|at| index[*at].clone()).collect());
        Touch { index, inner: Vec::new(), conditions: Vec::new(), ..self.clone() }
    }
}

/// Whether two accesses that meet do not conflict.
pub(super) fn is_excused(kernel: &Kernel, one: &Touch, other: &Touch) -> bool {
    let is_unique = |touch: &Touch| touch.kind == Kind::Store(Claim::Unique);
    let depends_on_data = one.index.is_none() || other.index.is_none();
    if depends_on_data && is_unique(one) && is_unique(other) {
        return true;
    }
    // An iteration that alone stores to an element may also read it. The claim says nothing about reads elsewhere.
    if one.index.is_none() && (is_unique(one) && other.kind == Kind::Read || is_unique(other) && one.kind == Kind::Read)
    {
        let is_same = || access_title(kernel, one.access) == access_title(kernel, other.access);
        return one.list == other.list && one.is_constant && other.is_constant && is_same();
    }
    match (one.kind, other.kind) {
        (Kind::Read, Kind::Read) => true,
        // The order of different operations matters.
        (Kind::Atomic(one), Kind::Atomic(other)) => one == other,
        (Kind::Store(Claim::AnyWins), Kind::Store(Claim::AnyWins)) => true,
        (Kind::Read | Kind::Atomic(_) | Kind::Store(_), Kind::Read | Kind::Atomic(_) | Kind::Store(_)) => false,
    }
}

/// All accesses of an iteration.
pub(super) fn collect<'a>(kernel: &Kernel, iterations: &Iterations<'a>, around: &[(&Value, bool)]) -> Vec<Touch<'a>> {
    let known = KnownFacts::new(kernel, iterations.who == Who::Threads, around);
    let mut walk = Collector { known, inner: Vec::new(), list: 0, lists: 0, touches: Vec::new() };
    walk.elements(iterations.body);
    let mut touches = walk.touches;
    let storage = |touch: &Touch| kernel.storage(touch.access.buffer);
    let written: BTreeSet<_> = touches.iter().filter(|touch| touch.kind != Kind::Read).map(storage).collect();
    for touch in &mut touches {
        let access = touch.access;
        access.for_each_load(&mut |load| touch.is_constant &= !written.contains(&kernel.storage(load.buffer)));
    }
    touches
}

struct Collector<'a> {
    known: KnownFacts,
    /// What the loops around the current statement, inside the iteration, count through.
    inner: Vec<Counter>,
    /// The number of the current list of statements, and how many there are so far.
    list: usize,
    lists: usize,
    touches: Vec<Touch<'a>>,
}

impl<'a> Collector<'a> {
    fn elements(&mut self, body: &'a [ElementStmt]) {
        let mark = self.known.mark();
        self.lists += 1;
        let outer = std::mem::replace(&mut self.list, self.lists);
        for element in body {
            self.element(element);
        }
        self.list = outer;
        self.known.rewind(mark);
    }

    fn element(&mut self, element: &'a ElementStmt) {
        match element {
            ElementStmt::Let { name, value, .. } => {
                self.value(value);
                self.known.name(name, value);
            }
            ElementStmt::Store { to, value, claim } => self.written(to, value, Kind::Store(*claim)),
            ElementStmt::Atomic(atomic) => {
                let mark = self.known.mark();
                if let Some(condition) = &atomic.condition {
                    self.value(condition);
                    self.known.assume(condition, true);
                }
                atomic.expected.iter().for_each(|expected| self.value(expected));
                self.written(&atomic.to, &atomic.value, Kind::Atomic(atomic.change));
                self.known.rewind(mark);
            }
            ElementStmt::If { cond, then, otherwise, .. } => {
                self.value(cond);
                for (branch, holds) in [(then, true), (otherwise, false)] {
                    let mark = self.known.mark();
                    self.known.assume(cond, holds);
                    self.elements(branch);
                    self.known.rewind(mark);
                }
            }
            ElementStmt::For { counter, body, .. } => {
                self.inner.push(counter.clone());
                self.elements(body);
                self.inner.pop();
            }
        }
    }

    fn written(&mut self, to: &'a Access, value: &'a Value, kind: Kind) {
        self.value(value);
        self.indices(to);
        self.touch(to, kind);
    }

    /// Collects the loads of a value; those in the arms of a selection are under its condition.
    fn value(&mut self, value: &'a Value) {
        match value {
            Value::Const(_) | Value::Index(_) | Value::Named(_) => {}
            Value::Load(access) => {
                self.indices(access);
                self.touch(access, Kind::Read);
            }
            Value::Op(op, operands) => match (op, &operands[..]) {
                (ElementOp::Select, [cond, then, otherwise]) => {
                    self.value(cond);
                    for (chosen, holds) in [(then, true), (otherwise, false)] {
                        let mark = self.known.mark();
                        self.known.assume(cond, holds);
                        self.value(chosen);
                        self.known.rewind(mark);
                    }
                }
                (_, operands) => operands.iter().for_each(|operand| self.value(operand)),
            },
            Value::Cast(_, _, of) => self.value(of),
        }
    }

    fn indices(&mut self, access: &'a Access) {
        for coord in &access.index {
            if let Coord::Data(value) = coord {
                self.value(value);
            }
        }
    }

    fn touch(&mut self, access: &'a Access, kind: Kind) {
        let index = access.index.iter().map(|coord| match coord {
            Coord::At(expr) => Some(self.known.of_thread(expr)),
            Coord::Data(value) => self.known.integer(value),
        });
        let index: Option<Vec<Expr>> = index.collect();
        let sides = self.known.conditions().iter().flat_map(|condition| &condition.sides);
        let named: Vec<&Expr> = index.iter().flatten().chain(sides).collect();
        let is_named = |counter: &&Counter| named.iter().any(|expr| expr.mentions(&counter.var));
        let (counters, others): (Vec<Counter>, Vec<Counter>) =
            self.inner.iter().cloned().partition(|counter| is_named(&counter));
        let mark = self.known.mark();
        counters.iter().for_each(|counter| self.known.counted(counter));
        others.iter().for_each(|counter| self.known.not_empty(counter));
        let (inner, conditions) =
            (counters.into_iter().map(|counter| counter.var).collect(), self.known.conditions().to_vec());
        self.known.rewind(mark);
        self.touches.push(Touch { access, kind, index, inner, conditions, list: self.list, is_constant: true });
    }
}
