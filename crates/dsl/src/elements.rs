//! Statements on elements: the bodies of parallel loops.

use std::ops::Range;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};
use tilewright_ir::tile::{Access, Claim, Coord, Element, Value};

use crate::buffer::Buffer;

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

/// What an iteration does, being built.
#[derive(Debug)]
pub struct Elements {
    /// Bodies that are open, the innermost last.
    open: Vec<Vec<Element>>,
    mistakes: Vec<Diagnostic>,
}

/// A store that was just added, to say more about it.
#[derive(Debug)]
pub struct StoreRef<'k> {
    element: Option<&'k mut Element>,
}

impl StoreRef<'_> {
    /// No two iterations store to one element, though the index depends on data. The virtual GPU checks it.
    pub fn unique(self) {
        self.claim(Claim::Unique);
    }

    /// Iterations may store to one element; any of the values may stay.
    pub fn any_wins(self) {
        self.claim(Claim::AnyWins);
    }

    fn claim(self, given: Claim) {
        if let Some(Element::Store { claim, .. }) = self.element {
            *claim = given;
        }
    }
}

impl Elements {
    /// The statements that `body` makes, and its mistakes.
    pub(crate) fn build(body: impl FnOnce(&mut Elements)) -> (Vec<Element>, Vec<Diagnostic>) {
        let mut elements = Elements { open: vec![Vec::new()], mistakes: Vec::new() };
        body(&mut elements);
        (elements.open.pop().unwrap_or_default(), elements.mistakes)
    }

    fn push(&mut self, element: Element) -> Option<&mut Element> {
        let body = self.open.last_mut()?;
        body.push(element);
        body.last_mut()
    }

    fn inside(&mut self, body: impl FnOnce(&mut Elements)) -> Vec<Element> {
        self.open.push(Vec::new());
        body(self);
        self.open.pop().unwrap_or_default()
    }

    /// `buffer[index] = value`
    #[track_caller]
    pub fn store(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) -> StoreRef<'_> {
        let to = access(buffer, index);
        StoreRef { element: self.push(Element::Store { to, value: value.into(), claim: Claim::None }) }
    }

    /// `buffer[index] += value`, whoever else adds to it.
    #[track_caller]
    pub fn atomic_add(&mut self, buffer: Buffer, index: impl IntoCoords, value: impl Into<Value>) {
        let to = access(buffer, index);
        self.push(Element::AtomicAdd { to, value: value.into() });
    }

    /// A value with a name; the name stands in CUDA.
    #[track_caller]
    pub fn named(&mut self, name: &str, value: impl Into<Value>) -> Value {
        self.push(Element::Let { name: name.to_string(), value: value.into(), span: Span::here() });
        Value::Named(name.to_string())
    }

    /// Statements where a condition holds.
    #[track_caller]
    pub fn if_(&mut self, cond: impl Into<Value>, then: impl FnOnce(&mut Elements)) {
        self.if_else(cond, then, |_| {});
    }

    /// Statements where a condition holds, and others where it does not.
    #[track_caller]
    pub fn if_else(
        &mut self,
        cond: impl Into<Value>,
        then: impl FnOnce(&mut Elements),
        otherwise: impl FnOnce(&mut Elements),
    ) {
        let span = Span::here();
        let (then, otherwise) = (self.inside(then), self.inside(otherwise));
        self.push(Element::If { cond: cond.into(), then, otherwise, span });
    }

    /// A loop in each iteration; one over an empty range such as `3..3` does nothing.
    #[track_caller]
    pub fn serial(&mut self, name: &str, range: Range<i64>, body: impl FnOnce(&mut Elements, Expr)) {
        let span = Span::here();
        self.mistakes.extend(reversed(name, &range, span));
        if range.is_empty() {
            return;
        }
        let var = Var::new(name, range.start, range.end - 1);
        let inner = self.inside(|k| body(k, Expr::var(&var)));
        self.push(Element::For { var, body: inner, span });
    }
}

/// A range whose end is before its start is a mistake, not a loop without iterations.
pub(crate) fn reversed(name: &str, range: &Range<i64>, span: Span) -> Option<Diagnostic> {
    let (start, end) = (range.start, range.end);
    let message = format!("the range {start}..{end} of the loop `{name}` is empty: it ends before it begins");
    let finding = Diagnostic::error("K0222", message).label(span, "this loop");
    let help = format!("write the smaller number first: {end}..{start}; 3..3 stands for a loop that does nothing");
    (end < start).then(|| finding.help(help))
}

#[track_caller]
fn access(buffer: Buffer, index: impl IntoCoords) -> Access {
    Access { buffer: buffer.handle, index: index.into_coords(), span: Span::here() }
}

impl Buffer {
    /// The element at an index: one number, expression or value per dimension.
    #[track_caller]
    pub fn at(self, index: impl IntoCoords) -> Value {
        Value::Load(access(self, index))
    }
}

/// Tuples, arrays and vectors of indices.
pub trait IntoCoords {
    /// One index per dimension.
    fn into_coords(self) -> Vec<Coord>;
}

impl<T: Into<Coord>, const N: usize> IntoCoords for [T; N] {
    fn into_coords(self) -> Vec<Coord> {
        self.into_iter().map(|index| index.into()).collect()
    }
}

impl IntoCoords for Vec<Coord> {
    fn into_coords(self) -> Vec<Coord> {
        self
    }
}

macro_rules! tuple_coords {
    ($($name:ident),*) => {
        impl<$($name: Into<Coord>),*> IntoCoords for ($($name,)*) {
            #[allow(non_snake_case)]
            fn into_coords(self) -> Vec<Coord> {
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
