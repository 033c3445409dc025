//! Names for expressions: they stand for them in CUDA and in plans.

use tilewright_diag::Span;
use tilewright_ir::Counter;
use tilewright_ir::tile::{Loop, Stmt, Unroll};

use crate::builder::KernelBuilder;
use crate::expr::Expr;

/// Expressions with names, each of which may use those before it.
pub(crate) struct Names<'a, 'k> {
    builder: &'a KernelBuilder<'k>,
    counters: Vec<Counter>,
}

impl Names<'_, '_> {
    /// Names an expression, with a number behind the name if it is taken. The result stands for the expression.
    pub(crate) fn name(&mut self, name: &str, value: Expr) -> Expr {
        let counter = Counter::named(&self.builder.free_name(name), value.resolved());
        let named = Expr::of_loop(&counter.var);
        self.counters.push(counter);
        named
    }
}

impl<'k> KernelBuilder<'k> {
    /// `body`, in which the names that `values` gives are known.
    #[track_caller]
    pub(crate) fn named<V, T>(
        &mut self,
        values: impl FnOnce(&mut Names<'_, 'k>) -> V,
        body: impl FnOnce(&mut KernelBuilder<'k>, V) -> T,
    ) {
        let span = Span::here();
        let mut names = Names { builder: self, counters: Vec::new() };
        let values = values(&mut names);
        let counters = names.counters;
        let outer = self.loops.len();
        self.loops.extend(counters.iter().map(|counter| counter.var.name().to_string()));
        let body = self.inside(span, |k| body(k, values));
        self.loops.truncate(outer);
        let around =
            |body, counter| vec![Stmt::Loop(Loop { counter, unroll: Unroll::Once, variant: None, body, span })];
        let body = counters.into_iter().rev().fold(body, around);
        self.kernel.body.extend(body);
    }
}
