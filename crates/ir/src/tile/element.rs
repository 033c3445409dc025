//! Statements on single elements, and the parallel loops around them.

use tilewright_diag::Span;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::Layout;

use crate::arena::Handle;
use crate::counter::Counter;
use crate::tile::atomic::Atomic;
use crate::tile::kernel::Kernel;
use crate::tile::role::Role;
use crate::tile::value::{Access, Coord, Value};

/// The most iterations of an inner loop that is unrolled.
const MAX_INNER_ITERATIONS: i64 = 16;

/// Unordered iterations, each executed by one thread, or by several threads with the same result.
#[derive(Clone, Debug)]
pub struct Parallel {
    /// Its variables, the innermost last; their ranges begin at 0.
    pub vars: Vec<Var>,
    /// The statements of an iteration.
    pub body: Vec<ElementStmt>,
    /// Which thread executes which iteration, if the user specifies it; otherwise it is inferred.
    pub layout: Option<Layout>,
    /// The most elements that a thread moves at once, if the user limits it.
    pub vector: Option<i64>,
    /// The role whose warps execute it, if not all do.
    pub role: Option<Handle<Role>>,
    /// Where it was written.
    pub span: Span,
}

impl Parallel {
    /// The loop that is the only statement of an iteration, if it is short, has neither loops nor conditions inside, and
    /// each of its statements may be executed for all its iterations before the next statement: its iterations follow
    /// each other in a thread like those of the parallel loop, and neighbours may be moved at once.
    pub fn inner_loop(&self, kernel: &Kernel) -> Option<(&Var, &[ElementStmt])> {
        let [ElementStmt::For { counter, body, .. }] = &self.body[..] else { return None };
        let var = &counter.var;
        let is_short = *counter == Counter::of(var.clone())
            && counter.step == 1
            && var.range().lo == 0
            && var.range().hi < MAX_INNER_ITERATIONS;
        let is_plain = body.iter().all(|element| match element {
            ElementStmt::Let { .. } | ElementStmt::Store { .. } | ElementStmt::Atomic(_) => true,
            ElementStmt::If { .. } | ElementStmt::For { .. } => false,
        });
        (is_short && is_plain && (body.len() == 1 || !carries(kernel, var, body))).then_some((var, body))
    }

    /// Its variables and statements, where an [inner loop](Parallel::inner_loop) counts as part of the parallel loop.
    pub fn unfolded(&self, kernel: &Kernel) -> (Vec<Var>, &[ElementStmt]) {
        match self.inner_loop(kernel) {
            Some((inner, body)) => (self.vars.iter().chain([inner]).cloned().collect(), body),
            None => (self.vars.clone(), &self.body),
        }
    }

    /// Iterations along each variable.
    pub fn extents(&self) -> Vec<i64> {
        self.vars.iter().map(|var| var.range().hi + 1).collect()
    }
}

/// The most pairs of accesses that are compared; a loop with more is executed iteration by iteration.
const MOST_PAIRS: usize = 64;

/// Whether an iteration of a loop may access an element that another one stores.
fn carries(kernel: &Kernel, var: &Var, body: &[ElementStmt]) -> bool {
    let mut accesses: Vec<(Access, bool)> = Vec::new();
    body.iter().for_each(|element| {
        element.for_each_access(&mut |access, writes| accesses.push((access.clone(), writes)));
    });
    let is_same = |a: &Access, b: &Access| kernel.storage(a.buffer) == kernel.storage(b.buffer);
    let stores = accesses.iter().filter(|(_, writes)| *writes).map(|(store, _)| store);
    let mut pairs = stores.flat_map(|store| {
        accesses.iter().map(move |(access, _)| (store, access)).filter(|(store, access)| is_same(store, access))
    });
    pairs.by_ref().take(MOST_PAIRS).any(|(store, access)| !are_apart(store, access, var)) || pairs.next().is_some()
}

/// Whether two accesses touch different elements in any two different iterations of a loop.
fn are_apart(a: &Access, b: &Access, var: &Var) -> bool {
    let range = var.range();
    let [one, another] = ["#one", "#another"].map(|name| Var::new(name, range.lo, range.hi));
    let in_iteration = |coord: &Coord, of: &Var| match coord {
        Coord::At(expr) => Some(expr.substitute(&|known| (known == var).then(|| Expr::var(of)))),
        Coord::Data(_) => None,
    };
    let distance = |(a, b): (&Coord, &Coord)| Some(normalize(&(in_iteration(a, &one)? - in_iteration(b, &another)?)));
    let distances: Vec<Expr> = a.index.iter().zip(&b.index).filter_map(distance).collect();
    let differ = |first: i64, second: i64| {
        let number = |known: &Var| if *known == one { Some(first) } else { (*known == another).then_some(second) };
        distances.iter().any(|distance| match distance.eval(&number) {
            Ok(distance) => distance != 0,
            Err(_) => distance.range().lo > 0 || distance.range().hi < 0,
        })
    };
    let iterations = || range.lo..=range.hi;
    a.buffer == b.buffer && iterations().all(|one| iterations().all(|another| one == another || differ(one, another)))
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
pub enum ElementStmt {
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
    /// Changes an element atomically.
    Atomic(Atomic),
    /// Statements under a condition.
    If {
        /// A truth value.
        cond: Value,
        /// Where it holds.
        then: Vec<ElementStmt>,
        /// Where it does not.
        otherwise: Vec<ElementStmt>,
        /// Where it was written.
        span: Span,
    },
    /// A serial loop inside each iteration.
    For {
        /// What it counts through.
        counter: Counter,
        /// What is repeated.
        body: Vec<ElementStmt>,
        /// Where it was written.
        span: Span,
    },
}

impl ElementStmt {
    /// Whether it, or a statement inside it, is an atomic operation that `is_meant`.
    pub fn has_atomic(&self, is_meant: &dyn Fn(&Atomic) -> bool) -> bool {
        matches!(self, ElementStmt::Atomic(atomic) if is_meant(atomic))
            || self.inner().any(|inner| inner.has_atomic(is_meant))
    }

    /// The statements inside it.
    pub fn inner(&self) -> impl Iterator<Item = &ElementStmt> {
        let (first, second): (&[ElementStmt], &[ElementStmt]) = match self {
            ElementStmt::Let { .. } | ElementStmt::Store { .. } | ElementStmt::Atomic(_) => (&[], &[]),
            ElementStmt::If { then, otherwise, .. } => (then, otherwise),
            ElementStmt::For { body, .. } => (body, &[]),
        };
        first.iter().chain(second)
    }

    /// The same statement with every index expression replaced.
    pub fn map_exprs(&self, to: &dyn Fn(&Expr) -> Expr) -> ElementStmt {
        let all = |body: &[ElementStmt]| body.iter().map(|element| element.map_exprs(to)).collect();
        match self {
            ElementStmt::Let { name, value, span } => {
                ElementStmt::Let { name: name.clone(), value: value.map_exprs(to), span: *span }
            }
            ElementStmt::Store { to: place, value, claim } => {
                ElementStmt::Store { to: place.map_exprs(to), value: value.map_exprs(to), claim: *claim }
            }
            ElementStmt::Atomic(atomic) => ElementStmt::Atomic(atomic.map_exprs(to)),
            ElementStmt::If { cond, then, otherwise, span } => {
                ElementStmt::If { cond: cond.map_exprs(to), then: all(then), otherwise: all(otherwise), span: *span }
            }
            ElementStmt::For { counter, body, span } => {
                ElementStmt::For { counter: counter.map_bounds(to), body: all(body), span: *span }
            }
        }
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        match self {
            ElementStmt::Let { span, .. } | ElementStmt::If { span, .. } | ElementStmt::For { span, .. } => *span,
            ElementStmt::Store { to, .. } | ElementStmt::Atomic(Atomic { to, .. }) => to.span,
        }
    }

    /// Calls `visit` on every access of the statement and of those inside it, with whether it writes; loads come first.
    pub fn for_each_access(&self, visit: &mut dyn FnMut(&Access, bool)) {
        match self {
            ElementStmt::Let { value, .. } => value.for_each_load(&mut |access| visit(access, false)),
            ElementStmt::Store { to, value, .. } => {
                value.for_each_load(&mut |access| visit(access, false));
                to.for_each_load(&mut |access| visit(access, false));
                visit(to, true);
            }
            ElementStmt::Atomic(atomic) => {
                atomic.values().for_each(|value| value.for_each_load(&mut |access| visit(access, false)));
                atomic.to.for_each_load(&mut |access| visit(access, false));
                visit(&atomic.to, true);
            }
            ElementStmt::If { cond, .. } => cond.for_each_load(&mut |access| visit(access, false)),
            ElementStmt::For { .. } => {}
        }
        self.inner().for_each(|element| element.for_each_access(visit));
    }
}
