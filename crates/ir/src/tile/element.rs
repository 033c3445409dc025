//! Statements on single elements, and the parallel loops around them.

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_layout::Layout;

use crate::tile::value::{Access, Value};

/// The most iterations of an inner loop that is unrolled.
const MOST_TURNS: i64 = 16;

/// Unordered iterations, each executed by one thread, or by several threads with the same result.
#[derive(Clone, Debug)]
pub struct Parallel {
    /// Its variables, the innermost last; their ranges begin at 0.
    pub vars: Vec<Var>,
    /// The statements of an iteration.
    pub body: Vec<Element>,
    /// Which thread executes which iteration, if the user specifies it; otherwise it is inferred.
    pub layout: Option<Layout>,
    /// The most elements that a thread moves at once, if the user limits it.
    pub vector: Option<i64>,
    /// Where it was written.
    pub span: Span,
}

impl Parallel {
    /// The loop that is the only statement of an iteration, if it is short and has neither loops nor conditions inside:
    /// its iterations follow each other in a thread like those of the parallel loop, and neighbours may be moved at
    /// once.
    pub fn inner_loop(&self) -> Option<(&Var, &[Element])> {
        let [Element::For { var, body, .. }] = &self.body[..] else { return None };
        let is_short = var.range().lo == 0 && var.range().hi < MOST_TURNS;
        let is_plain = body.iter().all(|element| match element {
            Element::Let { .. } | Element::Store { .. } | Element::AtomicAdd { .. } => true,
            Element::If { .. } | Element::For { .. } => false,
        });
        (is_short && is_plain).then_some((var, body))
    }

    /// Its variables and statements, where an [inner loop](Parallel::inner_loop) counts as part of the parallel loop.
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

/// What the user claims about a store through which several iterations may write one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing: two iterations that store to one element are an error.
    None,
    /// The index, which depends on data, is different in every iteration. The virtual GPU checks this.
    Unique,
    /// Several iterations may store to one element, and any of the values may remain.
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
    /// Stores a value to an element.
    Store {
        /// The element.
        to: Access,
        /// The value.
        value: Value,
        /// What the user claims about its index.
        claim: Claim,
    },
    /// Atomically adds a value to an element.
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
    /// A serial loop inside each iteration.
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

    /// The same statement with every index expression replaced.
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

    /// Calls `visit` on every access of the statement and of those inside it, with whether it writes; loads come first.
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
