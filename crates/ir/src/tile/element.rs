//! Statements on single elements, and the parallel loops around them.

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::Layout;

use crate::tile::value::{Access, Value};

/// Turns of an inner loop that is written out, at most.
const MOST_TURNS: i64 = 16;

/// Iterations without an order, of which each is one thread's, or several threads' with the same result.
#[derive(Clone, Debug)]
pub struct Parallel {
    /// Its variables, the innermost last; their ranges begin at 0.
    pub vars: Vec<Var>,
    /// What an iteration does.
    pub body: Vec<Element>,
    /// Which thread does which iteration, if the user says so; else it is inferred.
    pub layout: Option<Layout>,
    /// Elements that a thread takes together, at most, if the user says so.
    pub vector: Option<i64>,
    /// Where it was written.
    pub span: Span,
}

impl Parallel {
    /// The loop that is all that an iteration does, if it is short and has neither loops nor conditions inside: its turns
    /// follow each other in a thread like iterations, and neighbours may be moved at once.
    pub fn inner_loop(&self) -> Option<(&Var, &[Element])> {
        let [Element::For { var, body, .. }] = &self.body[..] else { return None };
        let is_short = var.range().lo == 0 && var.range().hi < MOST_TURNS;
        let is_plain = body.iter().all(|element| match element {
            Element::Let { .. } | Element::Store { .. } | Element::AtomicAdd { .. } => true,
            Element::If { .. } | Element::For { .. } => false,
        });
        (is_short && is_plain).then_some((var, body))
    }

    /// Its variables and statements, where the turns of an inner loop that is all there is are iterations too.
    pub fn unfolded(&self) -> (Vec<Var>, &[Element]) {
        match self.inner_loop() {
            Some((inner, body)) => (self.vars.iter().chain([inner]).cloned().collect(), body),
            None => (self.vars.clone(), &self.body),
        }
    }

    /// Iterations along each variable.
    pub fn extents(&self) -> Vec<i64> {
        self.vars.iter().map(|var| var.range().hi + 1).collect()
    }
}

/// What the user says of a store that several iterations may do to one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing: two iterations that store to one element are an error.
    None,
    /// An index that is known when the kernel runs only is another in every iteration. The virtual GPU checks it.
    Unique,
    /// Any of the values may stay.
    AnyWins,
}

/// A statement on elements.
#[derive(Clone, Debug)]
pub enum Element {
    /// A named value.
    Let {
        /// Its name.
        name: String,
        /// The value.
        value: Value,
        /// Where it was written.
        span: Span,
    },
    /// An element becomes a value.
    Store {
        /// The element.
        to: Access,
        /// The value.
        value: Value,
        /// What is claimed of its index.
        claim: Claim,
    },
    /// A value is added to an element, atomically.
    AtomicAdd {
        /// The element.
        to: Access,
        /// The value.
        value: Value,
    },
    /// Statements under a condition.
    If {
        /// A truth value.
        cond: Value,
        /// Where it holds.
        then: Vec<Element>,
        /// Where it does not.
        otherwise: Vec<Element>,
        /// Where it was written.
        span: Span,
    },
    /// A loop in each iteration.
    For {
        /// Its variable.
        var: Var,
        /// What is repeated.
        body: Vec<Element>,
        /// Where it was written.
        span: Span,
    },
}

impl Element {
    /// The statements inside it.
    pub fn inner(&self) -> impl Iterator<Item = &Element> {
        let (first, second): (&[Element], &[Element]) = match self {
            Element::Let { .. } | Element::Store { .. } | Element::AtomicAdd { .. } => (&[], &[]),
            Element::If { then, otherwise, .. } => (then, otherwise),
            Element::For { body, .. } => (body, &[]),
        };
        first.iter().chain(second)
    }

    /// The same with every expression of variables replaced.
    pub fn map_exprs(&self, to: &dyn Fn(&Expr) -> Expr) -> Element {
        let all = |body: &[Element]| body.iter().map(|element| element.map_exprs(to)).collect();
        match self {
            Element::Let { name, value, span } => {
                Element::Let { name: name.clone(), value: value.map_exprs(to), span: *span }
            }
            Element::Store { to: place, value, claim } => {
                Element::Store { to: place.map_exprs(to), value: value.map_exprs(to), claim: *claim }
            }
            Element::AtomicAdd { to: place, value } => {
                Element::AtomicAdd { to: place.map_exprs(to), value: value.map_exprs(to) }
            }
            Element::If { cond, then, otherwise, span } => {
                Element::If { cond: cond.map_exprs(to), then: all(then), otherwise: all(otherwise), span: *span }
            }
            Element::For { var, body, span } => Element::For { var: var.clone(), body: all(body), span: *span },
        }
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        match self {
            Element::Let { span, .. } | Element::If { span, .. } | Element::For { span, .. } => *span,
            Element::Store { to, .. } | Element::AtomicAdd { to, .. } => to.span,
        }
    }

    /// Calls `visit` on every access of it and of what is inside, with whether it writes; loads come first.
    pub fn for_each_access(&self, visit: &mut dyn FnMut(&Access, bool)) {
        match self {
            Element::Let { value, .. } => value.for_each_load(&mut |access| visit(access, false)),
            Element::Store { to, value, .. } | Element::AtomicAdd { to, value } => {
                value.for_each_load(&mut |access| visit(access, false));
                to.for_each_load(&mut |access| visit(access, false));
                visit(to, true);
            }
            Element::If { cond, .. } => cond.for_each_load(&mut |access| visit(access, false)),
            Element::For { .. } => {}
        }
        self.inner().for_each(|element| element.for_each_access(visit));
    }
}
