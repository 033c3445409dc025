//! Statements on elements: the bodies of parallel loops.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_ir::Scalar;
use tilewright_ir::tile::{
    self, Access, Atomic, AtomicChange, AtomicOp, Claim, Coord, ElementStmt, MemoryOrder, MemoryScope, OldElement,
};

use crate::buffer::Buffer;
use crate::expr::Expr;
use crate::later::{Later, WriteAttributes, WriteId};
use crate::loop_range::LoopRange;
use crate::nodes::{self, BodyId};
use crate::reads::{self, Stores};
use crate::value::Value;

/// The most elements that the index of an element may be made of without names.
const MAX_INSIDE: usize = 1 << 8;

/// Names of the variables of parallel loops, the outermost first.
const NAMES: [&str; 6] = ["i", "j", "k", "l", "p", "q"];

/// Variables of a parallel loop, with names that are not `taken`.
pub(crate) fn variables(extents: &[i64], taken: &dyn Fn(&str) -> bool) -> Vec<Var> {
    let mut vars: Vec<Var> = Vec::with_capacity(extents.len());
    for (place, extent) in extents.iter().enumerate() {
        let base = NAMES[place % NAMES.len()];
        let is_used = |name: &str| taken(name) || vars.iter().any(|var| var.name() == name);
        let numbered = (1..).map(|number| format!("{base}{number}"));
        let name = std::iter::once(base.to_string()).chain(numbered).find(|name| !is_used(name));
        vars.push(Var::new(name.unwrap_or_default(), 0, extent.saturating_sub(1).max(0)));
    }
    vars
}

/// The statements of an iteration, being built.
#[derive(Debug)]
pub struct Elements<'k> {
    /// The statements of the innermost body that is open.
    body: Vec<ElementStmt>,
    /// What was stored so far.
    stores: Stores,
    /// Where the claims, names and orders of its stores and atomic operations are kept.
    later: &'k Later,
}

/// A store that was just added, to claim something about it before its loop is complete.
#[derive(Clone, Copy, Debug)]
pub struct StoreRef<'k> {
    later: &'k Later,
    store: WriteId,
}

impl StoreRef<'_> {
    /// Claims that no two iterations store to the same element, though the index depends on data. The virtual GPU
    /// checks this.
    #[track_caller]
    pub fn unique(self) {
        self.claim(Claim::Unique, ".unique()");
    }

    /// Lets several iterations store to the same element; any of the values may remain.
    #[track_caller]
    pub fn any_wins(self) {
        self.claim(Claim::AnyWins, ".any_wins()");
    }

    #[track_caller]
    fn claim(self, claimed: Claim, method: &str) {
        if !self.later.specify(self.store, |attributes| attributes.claim = claimed) {
            too_late(method, ["a", "store"], &format!("k.store(..){method}"));
        }
    }
}

/// An atomic operation that was just added, to specify more of it before its loop is complete.
#[derive(Clone, Copy, Debug)]
pub struct AtomicRef<'k> {
    later: &'k Later,
    operation: WriteId,
    /// The body that it is in.
    body: BodyId,
}

impl AtomicRef<'_> {
    /// The element as it was before the operation, as a value with a name; 0 where the element is beyond the edge of a
    /// tensor. One thread executes an iteration that uses it.
    #[track_caller]
    pub fn old(self, name: &str) -> Value {
        let (name, span, mut is_second) = (name.to_string(), Span::here(), false);
        let named = OldElement { name: name.clone(), span };
        if !self.later.specify(self.operation, |attributes| is_second = attributes.old.replace(named).is_some()) {
            too_late(".old(..)", OPERATION, "k.atomic_add(..).old(\"name\")");
        }
        if is_second {
            let finding = Diagnostic::error("K0217", "`.old(..)` names the old element of an operation twice");
            nodes::mistake(finding.label(span, "called here").help("use the value that the first call returns"));
        }
        Value::of(tile::Value::Named(name), self.body)
    }

    /// How it orders the other accesses of its thread, as other threads see them; the default is [`MemoryOrder::Relaxed`], no
    /// order. With [`MemoryOrder::Release`], it comes after everything that the threads of the CTA (of the role, in a role) do
    /// before the loop; with [`MemoryOrder::Acquire`], it comes before everything that they do after the loop.
    #[track_caller]
    pub fn order(self, order: MemoryOrder) -> Self {
        if !self.later.specify(self.operation, |attributes| attributes.ordering.order = order) {
            too_late(".order(..)", OPERATION, "k.atomic_add(..).order(..)");
        }
        self
    }

    /// The threads among which it is atomic and ordered; the default is [`MemoryScope::Gpu`].
    #[track_caller]
    pub fn scope(self, scope: MemoryScope) -> Self {
        if !self.later.specify(self.operation, |attributes| attributes.ordering.scope = scope) {
            too_late(".scope(..)", OPERATION, "k.atomic_add(..).scope(..)");
        }
        self
    }
}

/// What an atomic operation is called, with its article.
const OPERATION: [&str; 2] = ["an", "atomic operation"];

/// Reports a call on a statement whose loop is complete.
#[track_caller]
fn too_late(method: &str, [article, what]: [&str; 2], instead: &str) {
    let message = format!("`{method}` on {article} {what} whose loop is complete");
    let finding = Diagnostic::error("K0217", message).label(Span::here(), "called here");
    nodes::mistake(finding.help(format!("call it where the {what} is added: {instead}")));
}

impl<'k> Elements<'k> {
    /// The statements that `body` makes.
    pub(crate) fn build<T>(
        later: &'k Later,
        begins: Span,
        body: impl FnOnce(&mut Elements<'k>) -> T,
    ) -> Vec<ElementStmt> {
        let mut elements = Elements { body: Vec::new(), stores: Stores::default(), later };
        let first = later.next_write();
        let mut made = elements.inside(begins, body);
        complete(&mut made, later.attributes_from(first));
        made
    }

    /// The statements that `body` makes inside of this one.
    fn inside<T>(&mut self, begins: Span, body: impl FnOnce(&mut Elements<'k>) -> T) -> Vec<ElementStmt> {
        let outer = std::mem::take(&mut self.body);
        nodes::in_body(begins, || body(self));
        std::mem::replace(&mut self.body, outer)
    }

    /// `buffer[index] = value`
    #[track_caller]
    pub fn store(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> StoreRef<'k> {
        let (to, value) = (access(buffer, index.into_coords()), value.into().resolved());
        self.stores.check(&value, Span::here());
        self.stores.add(&to);
        self.body.push(ElementStmt::Store { to, value, claim: Claim::None });
        StoreRef { later: self.later, store: self.later.add_write() }
    }

    /// A store that was written at `span`.
    pub(crate) fn store_at(&mut self, span: Span, buffer: Buffer, index: impl IntoCoords, value: Value) {
        let (to, value) = (Access { span, ..access(buffer, index.into_coords()) }, value.resolved_at(span));
        self.body.push(ElementStmt::Store { to, value, claim: Claim::None });
        self.later.add_write();
    }

    /// `buffer[index] += value`, atomically.
    #[track_caller]
    pub fn atomic_add(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Combine(AtomicOp::Add), buffer, index, (None, value.into()))
    }

    /// The lesser of `buffer[index]` and `value` replaces the element, atomically.
    #[track_caller]
    pub fn atomic_min(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Combine(AtomicOp::Min), buffer, index, (None, value.into()))
    }

    /// The greater of `buffer[index]` and `value` replaces the element, atomically.
    #[track_caller]
    pub fn atomic_max(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Combine(AtomicOp::Max), buffer, index, (None, value.into()))
    }

    /// `buffer[index] &= value`, atomically.
    #[track_caller]
    pub fn atomic_and(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Combine(AtomicOp::And), buffer, index, (None, value.into()))
    }

    /// `buffer[index] |= value`, atomically.
    #[track_caller]
    pub fn atomic_or(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Combine(AtomicOp::Or), buffer, index, (None, value.into()))
    }

    /// `buffer[index] ^= value`, atomically.
    #[track_caller]
    pub fn atomic_xor(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Combine(AtomicOp::Xor), buffer, index, (None, value.into()))
    }

    /// `buffer[index] = value`, atomically, for the old element: `k.atomic_exchange(..).old("was")`.
    #[track_caller]
    pub fn atomic_exchange(
        &mut self,
        buffer: Buffer,
        index: impl IntoCoords,
        value: impl Into<Value>,
    ) -> AtomicRef<'k> {
        self.atomic(AtomicChange::Exchange, buffer, index, (None, value.into()))
    }

    /// `buffer[index] = value` if the element has the bits of `expected`, atomically: if the old element has them too, it was
    /// replaced.
    #[track_caller]
    pub fn atomic_compare_exchange(
        &mut self,
        buffer: Buffer,
        index: impl IntoCoords,
        expected: impl Into<Value>,
        value: impl Into<Value>,
    ) -> AtomicRef<'k> {
        self.atomic(AtomicChange::CompareExchange, buffer, index, (Some(expected.into()), value.into()))
    }

    #[track_caller]
    fn atomic(
        &mut self,
        change: AtomicChange,
        buffer: Buffer,
        index: impl IntoCoords,
        (expected, value): (Option<Value>, Value),
    ) -> AtomicRef<'k> {
        let (to, value) = (access(buffer, index.into_coords()), value.resolved());
        let expected = expected.map(Value::resolved);
        expected.iter().chain([&value]).for_each(|value| self.stores.check(value, to.span));
        self.body.push(ElementStmt::Atomic(Atomic { expected, ..Atomic::new(change, to, value) }));
        AtomicRef { later: self.later, operation: self.later.add_write(), body: nodes::innermost() }
    }

    /// A value with a name, which CUDA code uses too.
    #[track_caller]
    pub fn named(&mut self, name: &str, value: impl Into<Value>) -> Value {
        let value = value.into().resolved();
        self.stores.check(&value, Span::here());
        self.body.push(ElementStmt::Let { name: name.to_string(), value, span: Span::here() });
        Value::of(tile::Value::Named(name.to_string()), nodes::innermost())
    }

    /// Statements under a condition.
    #[track_caller]
    pub fn if_<T>(&mut self, cond: impl Into<Value>, then: impl FnOnce(&mut Elements<'k>) -> T) {
        self.if_else(cond, then, |_| {});
    }

    /// Statements under a condition, and others where it does not hold.
    #[track_caller]
    pub fn if_else<T, U>(
        &mut self,
        cond: impl Into<Value>,
        then: impl FnOnce(&mut Elements<'k>) -> T,
        otherwise: impl FnOnce(&mut Elements<'k>) -> U,
    ) {
        let (span, cond) = (Span::here(), cond.into().resolved());
        self.stores.check(&cond, span);
        let begin = reads::now();
        let then = self.inside(span, then);
        self.stores.enter_other_branch(begin);
        let otherwise = self.inside(span, otherwise);
        self.stores.leave_other_branch();
        self.body.push(ElementStmt::If { cond, then, otherwise, span });
    }

    /// A loop in each iteration; one over an empty range such as `3..3` does nothing. Its bounds may also use the variables
    /// of the parallel loop.
    #[track_caller]
    pub fn serial<T>(&mut self, name: &str, range: impl LoopRange, body: impl FnOnce(&mut Elements<'k>, Expr) -> T) {
        let span = Span::here();
        let Some((counter, first)) = range.bounds().counter(name, span) else { return };
        let body = self.inside(span, |k| body(k, Expr::of_loop(&counter.var) + first));
        self.body.push(ElementStmt::For { counter, body, span });
    }
}

/// Gives the stores and atomic operations of a loop their attributes, which are in the order in which they were added.
fn complete(body: &mut [ElementStmt], attributes: Vec<WriteAttributes>) {
    let mut writes = Vec::with_capacity(attributes.len());
    collect_writes(body, &mut writes);
    for (write, WriteAttributes { claim: claimed, old, ordering }) in writes.into_iter().zip(attributes) {
        match write {
            ElementStmt::Store { claim, .. } => *claim = claimed,
            ElementStmt::Atomic(atomic) => (atomic.old, atomic.ordering) = (old, ordering),
            ElementStmt::Let { .. } | ElementStmt::If { .. } | ElementStmt::For { .. } => {}
        }
    }
}

/// Adds the stores and atomic operations in a body, in order.
fn collect_writes<'b>(body: &'b mut [ElementStmt], writes: &mut Vec<&'b mut ElementStmt>) {
    for element in body {
        match element {
            ElementStmt::Store { .. } | ElementStmt::Atomic(_) => writes.push(element),
            ElementStmt::If { then, otherwise, .. } => {
                collect_writes(then, writes);
                collect_writes(otherwise, writes);
            }
            ElementStmt::For { body, .. } => collect_writes(body, writes),
            ElementStmt::Let { .. } => {}
        }
    }
}

#[track_caller]
fn access(buffer: Buffer, index: Vec<Value>) -> Access {
    buffer.is_own();
    let span = Span::here();
    // A loop, not a closure: `coord` reports the user's line, and `#[track_caller]` does not reach through a closure.
    let mut coords = Vec::with_capacity(index.len());
    for index in index {
        coords.push(coord(index));
    }
    if elements_inside(&coords) > MAX_INSIDE {
        let message = format!("an element whose index contains more than {MAX_INSIDE} other elements without a name");
        let finding = Diagnostic::error("K0268", message).label(span, "this element");
        nodes::mistake(finding.help("name indices with k.named"));
        // Placeholders until the mistake is reported.
        coords.fill(Coord::from(0i64));
    }
    Access { buffer: buffer.handle, index: coords, or_zero: false, span }
}

/// An index of one dimension, in the compiler's form.
#[track_caller]
fn coord(index: Value) -> Coord {
    match index.resolved() {
        tile::Value::Const(Scalar::Int(number)) => Coord::from(number),
        index => Coord::from(index),
    }
}

/// The number of elements that an index is made of, without those in operations: a copy of the index copies them too.
fn elements_inside(index: &[Coord]) -> usize {
    let (mut count, mut open) = (0, vec![index]);
    while let Some(index) = open.pop() {
        for coord in index {
            if let Coord::Data(tile::Value::Load(inner)) = coord {
                count += 1;
                open.push(&inner.index);
            }
        }
    }
    count
}

impl Buffer {
    /// The element at an index: one number, expression or value per dimension.
    #[track_caller]
    pub fn at(self, index: impl IntoCoords) -> Value {
        let index = index.into_coords();
        let body = index.iter().fold(BodyId::KERNEL, |body, index| body.and(index.body()));
        let access = access(self, index);
        nodes::with_reads(|reads| reads.make(&access));
        Value::of(tile::Value::Load(access), body)
    }
}

/// Tuples, arrays and vectors of indices.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the index of an element",
    label = "not a tuple, an array or a vector of indices",
    note = "write a tuple with one index for each dimension, also for a single one: `x.at((i,))`"
)]
pub trait IntoCoords {
    /// One index per dimension.
    #[track_caller]
    fn into_coords(self) -> Vec<Value>;
}

impl<T: Into<Value>, const N: usize> IntoCoords for [T; N] {
    #[track_caller]
    fn into_coords(self) -> Vec<Value> {
        let mut coords = Vec::with_capacity(N);
        for index in self {
            coords.push(index.into());
        }
        coords
    }
}

impl IntoCoords for Vec<Coord> {
    fn into_coords(self) -> Vec<Value> {
        let value = |coord| match coord {
            Coord::At(index) => Value::from(index),
            Coord::Data(value) => Value::from(value),
        };
        self.into_iter().map(value).collect()
    }
}

impl IntoCoords for Vec<Value> {
    fn into_coords(self) -> Vec<Value> {
        self
    }
}

macro_rules! tuple_coords {
    ($($name:ident),*) => {
        impl<$($name: Into<Value>),*> IntoCoords for ($($name,)*) {
            #[allow(non_snake_case)]
            #[track_caller]
            fn into_coords(self) -> Vec<Value> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    };
}

tuple_coords!(A);
tuple_coords!(A, B);
tuple_coords!(A, B, C);
tuple_coords!(A, B, C, D);
tuple_coords!(A, B, C, D, E);
tuple_coords!(A, B, C, D, E, F);
