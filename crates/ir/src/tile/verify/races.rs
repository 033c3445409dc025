//! Races: two iterations of a parallel loop that store to one element. Decided exactly.

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::linear::linear;
use tilewright_expr::{Expr, Node, Var};
use tilewright_layout::{Iter, TileLayout};

use crate::arena::Handle;
use crate::tile::element::{Claim, Element, Parallel};
use crate::tile::kernel::{Buffer, Kernel, Space};
use crate::tile::print::access_title;
use crate::tile::value::{Access, Coord, Value};

/// A store, and what stands around it.
struct Store<'a> {
    to: &'a Access,
    /// Its element, counted in row-major order.
    flat: Expr,
    /// Loops inside the iteration.
    inner: Vec<Var>,
    /// Conditions, and whether they hold.
    conditions: Vec<(&'a Value, bool)>,
}

/// An iteration and where it stores.
struct Visit {
    iteration: i64,
    span: Span,
}

/// Reports two iterations of a loop that store to one element; `around` are the conditions under which the loop is done.
pub(super) fn check(kernel: &Kernel, parallel: &Parallel, around: &[(&Value, bool)], found: &mut Vec<Diagnostic>) {
    let mut stores = Vec::new();
    collect(kernel, &parallel.body, &mut Vec::new(), &mut around.to_vec(), &mut stores);
    let mut by_storage: BTreeMap<Handle<Buffer>, Vec<Store>> = BTreeMap::new();
    for store in stores {
        by_storage.entry(kernel.storage(store.to.buffer)).or_default().push(store);
    }
    for stores in by_storage.values() {
        if let [only] = &stores[..]
            && is_injective(parallel, only)
        {
            continue;
        }
        found.extend(meeting(kernel, parallel, stores));
    }
}

fn collect<'a>(
    kernel: &Kernel,
    body: &'a [Element],
    inner: &mut Vec<Var>,
    conditions: &mut Vec<(&'a Value, bool)>,
    stores: &mut Vec<Store<'a>>,
) {
    for element in body {
        match element {
            Element::Let { .. } | Element::AtomicAdd { .. } => {}
            Element::Store { to, claim, .. } => {
                if *claim == Claim::None
                    && let Some(flat) = to.flat(&kernel.buffers[to.buffer].shape)
                {
                    stores.push(Store { to, flat, inner: inner.clone(), conditions: conditions.clone() });
                }
            }
            Element::If { cond, then, otherwise, .. } => {
                for (branch, holds) in [(then, true), (otherwise, false)] {
                    conditions.push((cond, holds));
                    collect(kernel, branch, inner, conditions, stores);
                    conditions.pop();
                }
            }
            Element::For { var, body, .. } => {
                inner.push(var.clone());
                collect(kernel, body, inner, conditions, stores);
                inner.pop();
            }
        }
    }
}

/// True where algebra shows that no two iterations store to one element: a sum of multiples of all variables whose
/// strides do not meet.
fn is_injective(parallel: &Parallel, store: &Store) -> bool {
    if !store.inner.is_empty() {
        return false;
    }
    let sum = linear(&store.flat);
    let stride = |var: &Var| {
        let term = sum.terms.iter().find(|(_, atom)| matches!(atom.node(), Node::Var(known) if known == var));
        term.map_or(0, |(stride, _)| *stride)
    };
    let is_affine = sum.terms.iter().all(|(_, atom)| match atom.node() {
        Node::Var(_) => true,
        _ => !parallel.vars.iter().any(|var| atom.mentions(var)),
    });
    if !is_affine {
        return false;
    }
    let shard = parallel.vars.iter().map(|var| Iter::memory(var.range().hi + 1, stride(var))).collect();
    let layout = TileLayout::new(shard, Vec::new(), []);
    layout.is_ok_and(|layout| matches!(layout.collision(), Ok(None)))
}

/// The first element that two iterations store to, found by enumeration: for all values of the variables around the loop
/// on which it depends who stores where. Where there are too many of them, conditions on them may hold or not.
fn meeting(kernel: &Kernel, parallel: &Parallel, stores: &[Store]) -> Option<Diagnostic> {
    let extents = parallel.extents();
    let iterations: i64 = extents.iter().product();
    let around = around(parallel, stores);
    let turns = around.iter().map(extent).fold(iterations, i64::saturating_mul);
    let is_known = turns <= MOST_POINTS;
    let settings = if is_known { turns / iterations.max(1) } else { 1 };
    for setting in 0..settings {
        let mut visits: BTreeMap<i64, Visit> = BTreeMap::new();
        for iteration in 0..iterations {
            let mut values = Values::of(parallel, iteration, &extents);
            values.set_around(&around, is_known.then_some(setting));
            for store in stores {
                if let Some((element, earlier)) = store.visit(kernel, &mut values, iteration, &mut visits) {
                    return Some(race(kernel, parallel, store, element, iteration, &earlier));
                }
            }
        }
    }
    None
}

/// Points that are enumerated, at most.
const MOST_POINTS: i64 = 1 << 22;

fn extent(var: &Var) -> i64 {
    var.range().hi - var.range().lo + 1
}

/// The variables around the loop on which it depends whether iterations meet: those of conditions, and of indices in which
/// they do more than move all stores alike.
fn around(parallel: &Parallel, stores: &[Store]) -> Vec<Var> {
    let mut found: Vec<Var> = Vec::new();
    for store in stores {
        let is_own = |var: &Var| parallel.vars.contains(var) || store.inner.contains(var);
        let mut note = |var: &Var| {
            if !is_own(var) && !found.contains(var) {
                found.push(var.clone());
            }
        };
        for (cond, _) in &store.conditions {
            cond.for_each_expr(&mut |expr| expr.for_each_var(&mut note));
        }
        for (_, atom) in linear(&store.flat).terms {
            let mut is_tied = stores.len() > 1;
            atom.for_each_var(&mut |var| is_tied |= is_own(var));
            if is_tied {
                atom.for_each_var(&mut note);
            }
        }
    }
    found
}

impl Store<'_> {
    /// Whether it lies outside a global tensor, where nothing is stored.
    fn is_masked(&self, kernel: &Kernel, values: &Values) -> bool {
        let buffer = &kernel.buffers[self.to.buffer];
        let is_outside = |(coord, extent): (&Coord, &i64)| match coord {
            Coord::At(expr) => expr.eval(&|var| values.value(var)).is_ok_and(|at| !(0..*extent).contains(&at)),
            Coord::Data(_) => false,
        };
        matches!(buffer.space, Space::Global(_)) && self.to.index.iter().zip(&buffer.shape).any(is_outside)
    }

    /// Notes what the iteration stores to; an element that another one stores to, and that visit.
    fn visit(
        &self,
        kernel: &Kernel,
        values: &mut Values,
        iteration: i64,
        visits: &mut BTreeMap<i64, Visit>,
    ) -> Option<(i64, Visit)> {
        let trips = self.inner.iter().map(|var| var.range().hi - var.range().lo + 1).product::<i64>();
        for trip in 0..trips {
            values.set_inner(&self.inner, trip);
            if self
                .conditions
                .iter()
                .any(|(cond, holds)| cond.truth(&|var| values.known(var)).is_some_and(|known| known != *holds))
                || self.is_masked(kernel, values)
            {
                continue;
            }
            let Ok(element) = self.flat.eval(&|var| values.value(var)) else { continue };
            match visits.get(&element) {
                Some(earlier) if earlier.iteration != iteration => {
                    return Some((element, Visit { iteration: earlier.iteration, span: earlier.span }));
                }
                Some(_) => {}
                None => {
                    visits.insert(element, Visit { iteration, span: self.to.span });
                }
            }
        }
        None
    }
}

/// Values of variables in one iteration. Variables that are not among them are the same in all iterations; they stand at
/// their least values.
struct Values {
    known: Vec<(Var, i64)>,
    outer: usize,
    /// Variables of which nothing is known.
    unknown: Vec<Var>,
}

impl Values {
    fn of(parallel: &Parallel, iteration: i64, extents: &[i64]) -> Values {
        let mut rest = iteration;
        let mut known: Vec<(Var, i64)> = Vec::with_capacity(extents.len());
        for (var, extent) in parallel.vars.iter().zip(extents).rev() {
            known.push((var.clone(), rest % extent));
            rest /= extent;
        }
        Values { outer: known.len(), known, unknown: Vec::new() }
    }

    /// The `setting`th combination of values of these variables; without one, nothing is known of them.
    fn set_around(&mut self, around: &[Var], setting: Option<i64>) {
        let Some(mut rest) = setting else {
            self.unknown = around.to_vec();
            return;
        };
        for var in around {
            self.known.push((var.clone(), var.range().lo + rest % extent(var)));
            rest /= extent(var);
        }
        self.outer = self.known.len();
    }

    fn known(&self, var: &Var) -> Option<i64> {
        if self.unknown.contains(var) { None } else { self.value(var) }
    }

    fn set_inner(&mut self, inner: &[Var], trip: i64) {
        self.known.truncate(self.outer);
        let mut rest = trip;
        for var in inner.iter().rev() {
            let extent = var.range().hi - var.range().lo + 1;
            self.known.push((var.clone(), var.range().lo + rest % extent));
            rest /= extent;
        }
    }

    fn value(&self, var: &Var) -> Option<i64> {
        let known = self.known.iter().find(|(known, _)| known == var).map(|(_, value)| *value);
        known.or(Some(var.range().lo))
    }
}

fn race(
    kernel: &Kernel,
    parallel: &Parallel,
    store: &Store,
    element: i64,
    iteration: i64,
    earlier: &Visit,
) -> Diagnostic {
    let extents = parallel.extents();
    let title = |iteration: i64| {
        let mut values = Values::of(parallel, iteration, &extents).known;
        values.reverse();
        values.iter().map(|(var, value)| format!("{} = {value}", var.name())).collect::<Vec<_>>().join(", ")
    };
    let buffer = &kernel.buffers[store.to.buffer];
    let place = super::buffers::element_title(&buffer.shape, element);
    let message = format!("two iterations store to one element through `{}`", access_title(kernel, store.to));
    let mut finding = Diagnostic::error("K0237", message).label(store.to.span, "stored here");
    if earlier.span != store.to.span {
        finding = finding.label(earlier.span, "and here");
    }
    finding
        .note(format!(
            "element {place} of `{}`: iterations {} and {}",
            buffer.name,
            title(earlier.iteration),
            title(iteration)
        ))
        .help("reduce with k.reduce, add with k.atomic_add, or say .any_wins() where any of the values will do")
}
