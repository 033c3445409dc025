//! Checks of statements on elements.

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, Span, counted, counted_as};
use tilewright_expr::{Expr, ValueRange, Var};

use super::bounds::{self, Outside};
use super::buffer_errors::{more_than_an_addition, no_atomic, no_buffer};
use super::conditions::KnownFacts;
use super::identifiers::{check_name, taken_help};
use super::races::{self, Iterations, MOST_POINTS, Who};
use super::values::{Names, Type, check_fits, may_store, type_of};
use super::{data, index, owners, uniform};
use crate::tile::atomic::{Atomic, OldElement};
use crate::tile::buffer::{Direction, Space};
use crate::tile::element::{Claim, ElementStmt, Parallel};
use crate::tile::kernel::{If, Kernel, Loop};
use crate::tile::print::{access_title, value_title};
use crate::tile::value::{Access, Coord, ElementOp, Value};

/// The most iterations of a parallel loop, since they are enumerated.
const MAX_ITERATIONS: i64 = 1 << 22;
/// The most iterations of all parallel loops of a kernel together.
const MAX_ITERATIONS_OF_ALL: i64 = 1 << 23;

/// The text of a label where a name was first used.
const FIRST: &str = "first used here";

/// The same for the variables of a parallel loop, whose names the compiler may have chosen.
const OF_LOOP: &str = "the name of a variable of this loop";

struct ElementChecker<'a> {
    kernel: &'a Kernel,
    /// Variables in scope.
    vars: Vec<Var>,
    /// Named values in scope, with their types.
    names: Names,
    /// Where a name was first used, and the text of a label there.
    declared: BTreeMap<String, (Span, &'static str)>,
    /// What the enclosing conditions say.
    known: KnownFacts,
    found: &'a mut Vec<Diagnostic>,
}

/// Checks a parallel loop inside the loops of `scope`, under conditions that are the same for all threads.
pub(super) fn check_parallel(
    kernel: &Kernel,
    parallel: &Parallel,
    scope: &[Loop],
    conditions: &[(&Value, bool)],
    found: &mut Vec<Diagnostic>,
) {
    let before = found.len();
    check_extents(parallel, found);
    let mut context = ElementChecker::inside(kernel, scope, KnownFacts::new(kernel, false, conditions), found);
    for var in &parallel.vars {
        context.declare(var, parallel.span, OF_LOOP);
    }
    context.elements(&parallel.body);
    if found.len() == before {
        uniform::check_iterations(kernel, parallel, found);
    }
    if found.len() == before {
        let iterations = Iterations { vars: parallel.vars.clone(), body: &parallel.body, who: Who::Turns };
        races::check(kernel, &iterations, conditions, found);
    }
    if found.len() == before {
        data::check(kernel, &parallel.body, conditions, found);
    }
}

/// Checks statements that every thread executes.
pub(super) fn check_each(
    kernel: &Kernel,
    elements: &[ElementStmt],
    scope: &[Loop],
    conditions: &[(&Value, bool)],
    found: &mut Vec<Diagnostic>,
) {
    let before = found.len();
    ElementChecker::inside(kernel, scope, KnownFacts::new(kernel, true, conditions), found).elements(elements);
    if found.len() == before {
        uniform::check_fragments(kernel, elements, found);
        let iterations = Iterations { vars: vec![kernel.tid()], body: elements, who: Who::Threads };
        races::check(kernel, &iterations, conditions, found);
    }
    if found.len() == before {
        data::check(kernel, elements, conditions, found);
    }
}

/// Checks a condition around ops, which must be the same for all threads of the CTA.
pub(super) fn check_condition(
    kernel: &Kernel,
    branch: &If,
    scope: &[Loop],
    conditions: &[(&Value, bool)],
    found: &mut Vec<Diagnostic>,
) {
    let before = found.len();
    let known = KnownFacts::new(kernel, false, conditions);
    ElementChecker::inside(kernel, scope, known, found).condition(&branch.cond, branch.span);
    if found.len() == before {
        uniform::check_condition(kernel, &branch.cond, branch.span, found);
        data::check_value(kernel, &branch.cond, conditions, found);
    }
}

/// Checks that the iterations of all parallel loops can be enumerated.
pub(super) fn check_all_iterations(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    let mut sum = 0i64;
    for (_, parallel) in kernel.parallels.iter() {
        let own = parallel.extents().iter().fold(1i64, |product, extent| product.saturating_mul(*extent));
        // Larger ones are errors by themselves.
        sum = sum.saturating_add(if own <= MAX_ITERATIONS { own } else { 0 });
        if sum > MAX_ITERATIONS_OF_ALL {
            let message = format!("up to here, the parallel loops of `{}` have {sum} iterations", kernel.name);
            let help = format!("all of them together have up to {MAX_ITERATIONS_OF_ALL}; give each CTA a smaller part");
            found.push(Diagnostic::error("K0234", message).label(parallel.span, "this loop").help(help));
            return;
        }
    }
}

fn check_extents(parallel: &Parallel, found: &mut Vec<Diagnostic>) {
    let extents = parallel.extents();
    let iterations = extents.iter().fold(1i64, |product, extent| product.saturating_mul(*extent));
    for var in parallel.vars.iter().filter(|var| var.range().lo != 0) {
        let (name, range) = (var.name(), var.range());
        let message = format!("the variable `{name}` of a parallel loop begins at {}", range.lo);
        let help = format!(
            "let it begin at 0, as in Var::new(\"{name}\", 0, {}), and add {} where it is used",
            range.hi.saturating_sub(range.lo),
            range.lo
        );
        found.push(Diagnostic::error("K0234", message).label(parallel.span, "this loop").help(help));
    }
    if parallel.vars.is_empty() || extents.iter().any(|extent| *extent < 1) || iterations > MAX_ITERATIONS {
        found.push(
            Diagnostic::error("K0234", format!("a parallel loop over {extents:?}"))
                .label(parallel.span, "this loop")
                .help(format!("it has one or more extents of at least 1, and up to {MAX_ITERATIONS} iterations")),
        );
    }
    let size = parallel.layout.as_ref().map_or(iterations, |layout| layout.size());
    if size != iterations {
        let message = format!("the layout of a parallel loop over {extents:?} has size {size}");
        let help = format!("the loop has {}: give a layout of this size", counted(iterations, "iteration"));
        found.push(Diagnostic::error("K0205", message).label(parallel.span, "this loop").help(help));
    }
    if let Some(vector) = parallel.vector.filter(|vector| *vector < 1) {
        let message = format!("a vector cannot have {vector} elements");
        found.push(Diagnostic::error("K0234", message).label(parallel.span, "this loop").help("it has at least 1"));
    }
}

impl<'a> ElementChecker<'a> {
    fn inside(
        kernel: &'a Kernel,
        scope: &[Loop],
        known: KnownFacts,
        found: &'a mut Vec<Diagnostic>,
    ) -> ElementChecker<'a> {
        let mut vars = vec![kernel.warp(), kernel.tid()];
        vars.extend(kernel.vars_of_ctas());
        vars.extend(scope.iter().map(|outer| outer.counter.var.clone()));
        let of_sizes = kernel.sizes.iter().map(|size| (size.var.name().to_string(), (size.span, FIRST)));
        let of_loops = scope.iter().map(|outer| (outer.counter.var.name().to_string(), (outer.span, FIRST)));
        let of_scalars = kernel.scalars.iter().map(|scalar| (scalar.name.clone(), (scalar.span, FIRST)));
        let of_loaded = kernel.loaded.iter().map(|loaded| (loaded.var.name().to_string(), (loaded.span, FIRST)));
        let declared = of_sizes.chain(of_loops).chain(of_scalars).chain(of_loaded).collect();
        let names = kernel.scalars.iter().map(|scalar| (scalar.name.clone(), Type::Of(scalar.dtype))).collect();
        let mut checker = ElementChecker { kernel, vars, names, declared, known, found };
        scope.iter().for_each(|outer| checker.known.counted(&outer.counter));
        checker
    }

    /// Declares a variable of a loop; if its name is used again, a label at the loop says `first`.
    fn declare(&mut self, var: &Var, span: Span, first: &'static str) {
        check_name(var.name(), span, "a loop variable", self.found);
        self.check_free(var.name(), span, first);
        self.vars.push(var.clone());
    }

    /// Checks that a name is not that of a buffer or of anything in scope.
    fn check_free(&mut self, name: &str, span: Span, label: &'static str) {
        let buffer = self.kernel.buffers.iter().find(|(_, buffer)| buffer.name == name).map(|(_, buffer)| buffer.span);
        let is_known =
            self.vars.iter().any(|var| var.name() == name) || self.names.iter().any(|(known, _)| known == name);
        if is_known || buffer.is_some() {
            let mut finding =
                Diagnostic::error("K0204", format!("the name `{name}` is taken")).label(span, "named here");
            let first = buffer.map(|first| (first, FIRST)).or_else(|| self.declared.get(name).copied());
            if let Some((first, label)) = first {
                finding = finding.label(first, label);
            }
            let help = match first {
                Some((_, OF_LOOP)) => {
                    "give it another name: the variables of k.parallel are called i, j, k, l, p and q, where these \
                     are free"
                        .to_string()
                }
                _ => taken_help("it", name, first.is_some_and(|(first, _)| first == span)),
            };
            self.found.push(finding.help(help));
        } else {
            self.declared.insert(name.to_string(), (span, label));
        }
    }

    fn elements(&mut self, elements: &[ElementStmt]) {
        let (vars, names, mark) = (self.vars.len(), self.names.len(), self.known.mark());
        for element in elements {
            self.element(element);
        }
        self.vars.truncate(vars);
        self.names.truncate(names);
        self.known.rewind(mark);
    }

    fn element(&mut self, element: &ElementStmt) {
        match element {
            ElementStmt::Let { name, value, span } => {
                check_name(name, *span, "a value", self.found);
                self.check_free(name, *span, FIRST);
                let kind = self.value(value, *span);
                self.known.name(name, value);
                self.names.push((name.clone(), kind.unwrap_or(Type::Integer(ValueRange::new(0, 1)))));
            }
            ElementStmt::Store { to, value, claim } => {
                self.store(to, value);
                if *claim == Claim::AnyWins {
                    self.one_copy(to);
                }
            }
            ElementStmt::Atomic(atomic) => self.atomic(atomic),
            ElementStmt::If { cond, then, otherwise, span } => {
                self.condition(cond, *span);
                self.under(cond, true, |this| this.elements(then));
                self.under(cond, false, |this| this.elements(otherwise));
            }
            ElementStmt::For { counter, body, span } => {
                let (vars, names, mark) = (self.vars.len(), self.names.len(), self.known.mark());
                for bound in [&counter.begin, &counter.end] {
                    self.variables(bound, &counter.to_string(), *span);
                }
                self.declare(&counter.var, *span, FIRST);
                self.known.counted(counter);
                self.elements(body);
                self.vars.truncate(vars);
                self.names.truncate(names);
                self.known.rewind(mark);
            }
        }
    }

    fn atomic(&mut self, atomic: &Atomic) {
        let to = &atomic.to;
        if let Some(condition) = &atomic.condition {
            self.condition(condition, to.span);
        }
        self.store(to, &atomic.value);
        atomic.expected.iter().for_each(|expected| self.stored(to, expected));
        let Some(buffer) = self.kernel.buffers.get(to.buffer) else { return };
        if buffer.space == Space::Fragment {
            let message = format!("`{}` is in registers", access_title(self.kernel, to));
            let finding = Diagnostic::error("K0235", message).label(to.span, "added to here");
            self.found.push(finding.help(
                "registers are private to a thread, so nothing else changes them: store the result, or keep the elements in shared memory",
            ));
        }
        let none = no_atomic(self.kernel, atomic.change, to.buffer, to.span);
        self.found.extend(none.or_else(|| more_than_an_addition(self.kernel, atomic)));
        if let Some(OldElement { name, span }) = &atomic.old {
            check_name(name, *span, "a value", self.found);
            self.check_free(name, *span, FIRST);
            self.names.push((name.clone(), Type::Of(buffer.dtype)));
        }
    }

    /// Runs `check` where a condition holds, or does not.
    fn under(&mut self, cond: &Value, holds: bool, check: impl FnOnce(&mut Self)) {
        let mark = self.known.mark();
        self.known.assume(cond, holds);
        check(self);
        self.known.rewind(mark);
    }

    fn condition(&mut self, cond: &Value, span: Span) {
        if let Some(kind) = self.value(cond, span)
            && kind != Type::Truth
        {
            let message = format!("`{}` is {}, not a condition", value_title(self.kernel, cond), kind.title());
            self.found.push(
                Diagnostic::error("K0233", message).label(span, "in this statement").help("compare it, as in x.ne(0)"),
            );
        }
    }

    /// The type of a value, if its accesses are valid.
    fn value(&mut self, value: &Value, span: Span) -> Option<Type> {
        let before = self.found.len();
        self.indices(value, span);
        if self.found.len() > before {
            return None;
        }
        type_of(self.kernel, value, &self.names, span).map_err(|finding| self.found.push(finding)).ok()
    }

    /// Checks the variables of a value and the indices of its accesses; the arms of `select` are under its condition.
    fn indices(&mut self, value: &Value, span: Span) {
        match value {
            Value::Const(_) | Value::Named(_) => {}
            Value::Index(expr) => self.variables(expr, &expr.to_string(), span),
            Value::Load(access) => self.access(access),
            Value::Op(op, arguments) => match (op, &arguments[..]) {
                (ElementOp::Select, [cond, then, otherwise]) => {
                    self.indices(cond, span);
                    self.under(cond, true, |this| this.indices(then, span));
                    self.under(cond, false, |this| this.indices(otherwise, span));
                }
                (_, arguments) => arguments.iter().for_each(|argument| self.indices(argument, span)),
            },
            Value::Cast(_, _, inner) => self.indices(inner, span),
        }
    }

    fn store(&mut self, to: &Access, value: &Value) {
        self.access(to);
        self.stored(to, value);
        let Some(buffer) = self.kernel.buffers.get(to.buffer) else { return };
        if buffer.space == Space::Global(Direction::Input) {
            self.found.push(
                Diagnostic::error("K0214", format!("a store to the input `{}`", buffer.name))
                    .label(to.span, "written here")
                    .label(buffer.span, "declared as an input here")
                    .help("declare it with k.output, or with k.inout if it is updated; or write another buffer"),
            );
        }
    }

    /// Checks a value that an element may get.
    fn stored(&mut self, to: &Access, value: &Value) {
        let Some(kind) = self.value(value, to.span) else { return };
        let Some(buffer) = self.kernel.buffers.get(to.buffer) else { return };
        if may_store(kind, buffer.dtype) {
            self.found.extend(check_fits(self.kernel, value, kind, buffer.dtype, to.span));
        } else {
            let is_opaque = buffer.dtype.is_opaque() || matches!(kind, Type::Of(dtype) if dtype.is_opaque());
            let help = match kind {
                _ if is_opaque => "opaque elements can be moved, but not converted".to_string(),
                Type::Truth => "choose between two numbers with .select(1, 0)".to_string(),
                Type::Of(_) | Type::Integer(_) | Type::Real => {
                    format!("convert it with value.cast({:?})", buffer.dtype)
                }
            };
            let what = kind.title();
            self.found.push(
                Diagnostic::error("K0218", format!("{what} stored as {}: the dtypes differ", buffer.dtype))
                    .label(to.span, format!("`{}`", value_title(self.kernel, value)))
                    .label(buffer.span, format!("`{}` is {}", buffer.name, buffer.dtype))
                    .help(help),
            );
        }
    }

    /// Checks that an element is not held by several threads: with `.any_wins()`, each could keep a different value.
    fn one_copy(&mut self, to: &Access) {
        let Some(buffer) = self.kernel.buffers.get(to.buffer).filter(|buffer| buffer.space == Space::Fragment) else {
            return;
        };
        let owner = &self.kernel.buffers[self.kernel.storage(to.buffer)];
        let map = match owners::map_of(self.kernel, owner) {
            Ok(map) => map,
            Err(finding) => return self.found.push(finding),
        };
        if map.is_some_and(|map| map.copies() > 1) {
            let message = format!("`.any_wins()` on `{}`, which several threads hold", access_title(self.kernel, to));
            self.found.push(
                Diagnostic::error("K0242", message)
                    .label(to.span, "each thread may keep a different value")
                    .label(buffer.span, owner.laid_out())
                    .help("store to shared memory and copy from there, or reduce with k.reduce"),
            );
        }
    }

    /// Checks rank, variables and bounds of an access.
    fn access(&mut self, access: &Access) {
        let Some(buffer) = self.kernel.buffers.get(access.buffer) else {
            self.found.push(no_buffer(access.span));
            return;
        };
        let title = access_title(self.kernel, access);
        if access.index.len() != buffer.shape.len() {
            let given = counted_as(access.index.len(), "index", "indices");
            let has = counted(buffer.shape.len(), "dimension");
            self.found.push(
                Diagnostic::error("K0215", format!("{given} for `{}`, which has {has}", buffer.name))
                    .label(access.span, "accessed here")
                    .label(buffer.span, format!("declared with shape {}", buffer.shape_title()))
                    .help("give one index per dimension"),
            );
            return;
        }
        if access.or_zero && !matches!(buffer.space, Space::Global(_)) {
            self.found.push(
                Diagnostic::error("K0267", format!("`.or_zero()` on `{title}`, which is not masked"))
                    .label(access.span, "accessed here")
                    .label(buffer.span, "not in global memory")
                    .help("remove it; test with k.if_ or select whether the element is in bounds"),
            );
        }
        let before = self.found.len();
        for (dimension, coord) in access.index.iter().enumerate() {
            match coord {
                Coord::At(expr) => {
                    self.variables(expr, &title, access.span);
                    self.bounds(access, dimension, expr);
                }
                Coord::Data(value) => {
                    if let Some(kind) = self.value(value, access.span) {
                        self.found.extend(data::no_index(self.kernel, value, kind, access));
                    }
                }
            }
        }
        // Masked elements may be anywhere, but their position has to be computed too.
        let is_fixed = matches!(buffer.space, Space::Global(_)) && buffer.dynamic_shape.is_none();
        if let Some(position) = access.flat(&buffer.shape).filter(|_| is_fixed && self.found.len() == before) {
            self.found.extend(index::wrong(&position, &title, access.span));
        }
    }

    fn bounds(&mut self, access: &Access, dimension: usize, index: &Expr) {
        let buffer = &self.kernel.buffers[access.buffer];
        // Elements outside of a tensor in global memory read as zero, and are not written.
        if matches!(buffer.space, Space::Global(_)) {
            return;
        }
        let (index_of, conditions) = (self.known.of_thread(index), self.known.conditions());
        if let Some(outside) = bounds::outside(&index_of, buffer.shape[dimension], conditions) {
            let finding = self.leaves(access, (dimension, index), &outside);
            self.found.push(finding);
        }
    }

    fn leaves(&self, access: &Access, (dimension, index): (usize, &Expr), outside: &Outside) -> Diagnostic {
        let buffer = &self.kernel.buffers[access.buffer];
        let (title, extent) = (access_title(self.kernel, access), buffer.shape[dimension]);
        let reached = if outside.least < 0 { outside.least } else { outside.most };
        let reaches = if outside.at.is_some() { "reaches" } else { "may reach" };
        let message = format!("`{title}` {reaches} index {reached} of dimension {dimension} (extent {extent})");
        let finding = Diagnostic::error("K0216", message)
            .label(access.span, "accessed here")
            .label(buffer.span, format!("declared with shape {}", buffer.shape_title()));
        let has_conditions = !self.known.conditions().is_empty();
        let finding = match &outside.at {
            None => finding.note(format!("deciding whether it does takes more than {MOST_POINTS} evaluations")),
            Some(at) if has_conditions && !at.is_empty() => {
                let at: Vec<String> = at.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                finding.note(format!("the enclosing conditions do not exclude {}", at.join(", ")))
            }
            Some(_) => finding,
        };
        let of = if index.operands().is_some() { format!("({index})") } else { index.to_string() };
        let below = (outside.least < 0).then(|| format!("`{of}.ge(0)`"));
        let above = (outside.most >= extent).then(|| format!("`{of}.lt({extent})`"));
        let asked: Vec<String> = below.into_iter().chain(above).collect();
        finding.help(format!("access it only in bounds: in k.if_ or an arm of select, with {}", asked.join(" and ")))
    }

    fn variables(&mut self, expr: &Expr, title: &str, span: Span) {
        let mut unknown = None;
        expr.for_each_var(&mut |var| {
            if !self.vars.contains(var) {
                unknown = Some(var.clone());
            }
        });
        self.found.extend(index::wrong(expr, title, span));
        self.found.extend(unknown.map(|var| index::undefined(self.kernel, &var, title).label(span, "used here")));
    }
}
