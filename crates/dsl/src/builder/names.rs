//! Names for expressions: they stand for them in CUDA and in plans.

use tilewright_diag::Span;
use tilewright_expr::Var;
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
    /// Says which variables name the place of a tile in the loop `name`, which was just added.
    pub(crate) fn set_place(&mut self, name: &str, place: Vec<Var>) {
        if let Some(Stmt::Loop(inner)) = self.kernel.body.last_mut()
            && inner.counter.var.name() == name
        {
            inner.place = place;
        }
    }

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
        let named = |body, counter| {
            let (unroll, place) = (Unroll::Once, Vec::new());
            Stmt::Loop(Loop { counter, unroll, variant: None, part: None, place, body, span })
        };
        let around = |body, counter| vec![named(body, counter)];
        let body = counters.into_iter().rev().fold(body, around);
        self.kernel.body.extend(body);
    }
}
