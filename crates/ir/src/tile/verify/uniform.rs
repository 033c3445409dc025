//! Checks of what must be uniform in the CTA: conditions around ops, stores of `each_thread` to fragments, of which
//! every thread has a copy, and parallel loops that do not specify which thread executes which iteration.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Expr;
use tilewright_layout::axis::Scope;

use crate::counter::Counter;
use crate::hw_index::HwIndex;
use crate::tile::atomic::Atomic;
use crate::tile::buffer::Space;
use crate::tile::element::{ElementStmt, Parallel};
use crate::tile::kernel::Kernel;
use crate::tile::print::{access_title, value_title};
use crate::tile::value::{Access, Coord, Value};

/// Reports a condition around ops that differs between threads.
pub(super) fn check_condition(kernel: &Kernel, cond: &Value, span: Span, found: &mut Vec<Diagnostic>) {
    let Some(on) = Uniformity::new(kernel).of_value(cond) else { return };
    let message = format!("the condition `{}` differs between threads: it depends on {on}", value_title(kernel, cond));
    found.push(
        Diagnostic::error("K0240", message)
            .label(span, "the ops inside need all threads of the CTA")
            .help("let one warp execute an op with k.warp_at(0) or in a role of its own, or test it inside k.parallel or k.each_thread"),
    );
}

/// Reports stores to fragments that make the copies of threads differ.
pub(super) fn check_fragments(kernel: &Kernel, body: &[ElementStmt], found: &mut Vec<Diagnostic>) {
    let mut uniformity = Uniformity::new(kernel);
    uniformity.elements(body, None, found);
}

/// Reports a hardware index that differs between threads in a parallel loop whose iterations any thread may execute.
pub(super) fn check_iterations(kernel: &Kernel, parallel: &Parallel, found: &mut Vec<Diagnostic>) {
    let mut uniformity = Uniformity::new(kernel);
    let first = parallel.body.iter().find_map(|element| uniformity.first(element));
    let Some((span, on)) = first.filter(|_| parallel.layout.is_none()) else { return };
    let vars: Vec<&str> = parallel.vars.iter().map(|var| var.name()).collect();
    let message =
        format!("`parallel {}` depends on {on}, but does not say which thread does which iteration", vars.join(", "));
    found.push(
        Diagnostic::error("K0265", message)
            .label(span, "in this statement")
            .label(parallel.span, "the compiler chooses how the threads divide the iterations of this loop")
            .help("use a variable of the loop instead, or k.each_thread, in which the threads are the iterations")
            .help("or specify which thread executes which iteration, with .layout(..) on the loop"),
    );
}

struct Uniformity<'a> {
    kernel: &'a Kernel,
    /// Named values, with the hardware index that each depends on, if it differs between threads.
    names: Vec<(&'a str, Option<String>)>,
}

/// What the old element of an atomic operation depends on.
const OF_ATOMIC: &str = "the order of atomic operations";

impl<'a> Uniformity<'a> {
    fn new(kernel: &'a Kernel) -> Uniformity<'a> {
        let names = kernel.scalars.iter().map(|scalar| (scalar.name.as_str(), None)).collect();
        Uniformity { kernel, names }
    }

    /// `around` is the hardware index that the enclosing conditions depend on, if it differs between threads.
    fn elements(&mut self, body: &'a [ElementStmt], around: Option<&str>, found: &mut Vec<Diagnostic>) {
        let names = self.names.len();
        for element in body {
            match element {
                ElementStmt::Let { name, value, .. } => self.names.push((name, self.of_value(value))),
                ElementStmt::Atomic(Atomic { old, .. }) => {
                    self.names.extend(old.iter().map(|old| (old.name.as_str(), Some(OF_ATOMIC.to_string()))));
                }
                ElementStmt::Store { to, value, .. } => {
                    let on = around.map(str::to_string).or_else(|| self.of_access(to)).or_else(|| self.of_value(value));
                    if let Some(on) = on.filter(|_| self.kernel.buffers[to.buffer].space == Space::Fragment) {
                        found.push(self.differing(to, &on));
                    }
                }
                ElementStmt::If { cond, then, otherwise, .. } => {
                    let cond = around.map(str::to_string).or_else(|| self.of_value(cond));
                    self.elements(then, cond.as_deref(), found);
                    self.elements(otherwise, cond.as_deref(), found);
                }
                ElementStmt::For { counter, body, .. } => {
                    let bounds = around.map(str::to_string).or_else(|| self.of_bounds(counter));
                    self.elements(body, bounds.as_deref(), found);
                }
            }
        }
        self.names.truncate(names);
    }

    /// The first statement, this one or one inside it, that depends on a hardware index that differs between threads,
    /// with that index.
    fn first(&mut self, element: &'a ElementStmt) -> Option<(Span, String)> {
        let own = match element {
            ElementStmt::Let { name, value, .. } => {
                let on = self.of_value(value);
                self.names.push((name, on.clone()));
                on
            }
            ElementStmt::Store { to, value, .. } => self.of_access(to).or_else(|| self.of_value(value)),
            ElementStmt::Atomic(atomic) => {
                let of_values = || atomic.values().find_map(|value| self.of_value(value));
                let on = self.of_access(&atomic.to).or_else(of_values);
                self.names.extend(atomic.old.iter().map(|old| (old.name.as_str(), None)));
                on
            }
            ElementStmt::If { cond, .. } => self.of_value(cond),
            ElementStmt::For { counter, .. } => self.of_bounds(counter),
        };
        let own = own.map(|on| (element.span(), on));
        own.or_else(|| element.inner().find_map(|inner| self.first(inner)))
    }

    fn differing(&self, to: &Access, on: &str) -> Diagnostic {
        let message = format!("threads would hold different copies of `{}`", access_title(self.kernel, to));
        Diagnostic::error("K0241", message)
            .label(to.span, format!("what is stored depends on {on}"))
            .label(self.kernel.buffers[to.buffer].span, "every thread has a copy of this fragment")
            .help("store in k.parallel, where the threads that hold an element store it")
    }

    /// The hardware index that a value depends on, if it differs between threads.
    fn of_value(&self, value: &Value) -> Option<String> {
        match value {
            Value::Const(_) => None,
            Value::Index(expr) => self.of_expr(expr),
            Value::Named(name) => match self.names.iter().rev().find(|(known, _)| known == name) {
                Some((_, on)) => on.clone(),
                // Of a value that is not in scope, nothing is known.
                None => Some(format!("the value `{name}`")),
            },
            Value::Load(access) => self.of_access(access),
            Value::Op(_, operands) => operands.iter().find_map(|operand| self.of_value(operand)),
            Value::Cast(_, _, of) => self.of_value(of),
        }
    }

    fn of_bounds(&self, counter: &Counter) -> Option<String> {
        self.of_expr(&counter.begin).or_else(|| self.of_expr(&counter.end))
    }

    fn of_access(&self, access: &Access) -> Option<String> {
        access.index.iter().find_map(|coord| match coord {
            Coord::At(expr) => self.of_expr(expr),
            Coord::Data(value) => self.of_value(value),
        })
    }

    fn of_expr(&self, expr: &Expr) -> Option<String> {
        let differs = |index: &HwIndex| {
            let var = self.kernel.hw_index(*index);
            index.uniform_in() < Scope::Cta && var.range().constant().is_none() && expr.mentions(&var)
        };
        HwIndex::ALL.into_iter().find(differs).map(|index| match index {
            HwIndex::Tid => "the thread".to_string(),
            HwIndex::Lane | HwIndex::Warp | HwIndex::Block(_) => format!("the {}", index.name()),
        })
    }
}
