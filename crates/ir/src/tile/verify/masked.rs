//! Warns about out-of-bounds accesses to tensors in global memory, where no partial tile explains them: a read gives 0,
//! a store or an addition is dropped.
//!
//! A tile that begins in bounds may end out of bounds: tiles seldom divide the tensor, and the excess is masked
//! silently. An index that is negative, or that goes beyond the last tile, is more likely off by one. There is no
//! warning where the enclosing conditions keep the index in bounds, or where the user specifies that 0 is intended.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::{Linear, linear};
use tilewright_expr::{Expr, Node, Var};

use super::bounds::{self, Outside};
use super::conditions::{Condition, KnownFacts};
use crate::tile::atomic::{AtomicChange, AtomicOp};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::edge_masks::uncertain_edges;
use crate::tile::element::ElementStmt;
use crate::tile::kernel::{Kernel, Stmt};
use crate::tile::print::access_title;
use crate::tile::value::{Access, Coord, ElementOp, Value};

/// Warnings about a valid kernel: those found while it was built, out-of-bounds accesses to tensors, elements from beyond the
/// edge of a tensor that count, and functions of tuples whose result depends on an order.
pub fn warnings(kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = kernel.build_findings.clone();
    for loaded in &kernel.loaded {
        Walk::new(kernel, (false, &[]), &[], &mut found).value(&loaded.of);
    }
    check_body(kernel, &kernel.body, &mut Vec::new(), &mut found);
    found.extend(uncertain_edges(kernel));
    for (_, op) in kernel.ops.iter() {
        found.extend(op.kind.tuples().into_iter().flat_map(|of| kernel.combiners[of.combiner].broken_laws(op.kind)));
    }
    found
}

fn check_body<'a>(
    kernel: &'a Kernel,
    body: &'a [Stmt],
    around: &mut Vec<(&'a Value, bool)>,
    found: &mut Vec<Diagnostic>,
) {
    for stmt in body {
        match stmt {
            Stmt::Op(_) | Stmt::Begin(_) | Stmt::End(_) => {}
            Stmt::Loop(inner) => check_body(kernel, &inner.body, around, found),
            Stmt::Parallel(parallel) => {
                let parallel = &kernel.parallels[*parallel];
                Walk::new(kernel, (false, &parallel.vars), around, found).elements(&parallel.body);
            }
            Stmt::EachThread(elements) => Walk::new(kernel, (true, &[kernel.tid()]), around, found).elements(elements),
            Stmt::If(branch) => {
                Walk::new(kernel, (false, &[]), around, found).value(&branch.cond);
                for (body, holds) in [(&branch.then, true), (&branch.otherwise, false)] {
                    around.push((&branch.cond, holds));
                    check_body(kernel, body, around, found);
                    around.pop();
                }
            }
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug)]
enum Verb {
    Read,
    Store,
    Add,
    Change,
}

impl Verb {
    /// Third person: `reads`.
    fn present(self) -> &'static str {
        match self {
            Verb::Read => "reads",
            Verb::Store => "stores to",
            Verb::Add => "adds to",
            Verb::Change => "changes",
        }
    }

    /// What happens out of bounds.
    fn effect(self) -> &'static str {
        match self {
            Verb::Read => "out-of-bounds elements read as 0",
            Verb::Store => "stores out of bounds are dropped",
            Verb::Add => "additions out of bounds are dropped",
            Verb::Change => "changes out of bounds are dropped",
        }
    }
}

struct Walk<'a, 'f> {
    kernel: &'a Kernel,
    /// What is known at the current statement.
    known: KnownFacts,
    /// Variables of the iteration, and of the loops inside it: together they go through a tile.
    own: Vec<Var>,
    /// Conditions under which the current value is used: it is stored to a tensor, and the index of the store is in
    /// bounds.
    counts: Vec<Condition>,
    found: &'f mut Vec<Diagnostic>,
}

impl<'a, 'f> Walk<'a, 'f> {
    fn new(
        kernel: &'a Kernel,
        (is_by_threads, own): (bool, &[Var]),
        around: &[(&Value, bool)],
        found: &'f mut Vec<Diagnostic>,
    ) -> Walk<'a, 'f> {
        Walk {
            kernel,
            known: KnownFacts::new(kernel, is_by_threads, around),
            own: own.to_vec(),
            counts: Vec::new(),
            found,
        }
    }

    fn elements(&mut self, body: &[ElementStmt]) {
        let mark = self.known.mark();
        for element in body {
            self.element(element);
        }
        self.known.rewind(mark);
    }

    fn element(&mut self, element: &ElementStmt) {
        match element {
            ElementStmt::Let { name, value, .. } => {
                self.value(value);
                self.known.name(name, value);
            }
            ElementStmt::Store { to, value, .. } => {
                self.stored(to, value);
                self.indices(to);
                self.written(to, Verb::Store);
            }
            ElementStmt::Atomic(atomic) => {
                let to = &atomic.to;
                atomic.values().for_each(|value| self.stored(to, value));
                self.indices(to);
                let is_addition = atomic.change == AtomicChange::Combine(AtomicOp::Add);
                self.written(to, if is_addition { Verb::Add } else { Verb::Change });
            }
            ElementStmt::If { cond, then, otherwise, .. } => {
                self.value(cond);
                self.under(cond, true, |this| this.elements(then));
                self.under(cond, false, |this| this.elements(otherwise));
            }
            ElementStmt::For { counter, body, .. } => {
                self.own.push(counter.var.clone());
                self.elements(body);
                self.own.pop();
            }
        }
    }

    /// Checks a stored value, which is dropped where its index is outside of a tensor.
    fn stored(&mut self, to: &Access, value: &Value) {
        let buffer = &self.kernel.buffers[to.buffer];
        if matches!(buffer.space, Space::Global(_)) {
            for (dimension, coord) in to.index.iter().enumerate() {
                if let Coord::At(index) = coord {
                    self.counts.extend(self.known.inside(index, &buffer.extent(dimension)));
                }
            }
        }
        self.value(value);
        self.counts.clear();
    }

    /// Runs `check` where a condition holds, or does not.
    fn under(&mut self, cond: &Value, holds: bool, check: impl FnOnce(&mut Self)) {
        let mark = self.known.mark();
        self.known.assume(cond, holds);
        check(self);
        self.known.rewind(mark);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Const(_) | Value::Index(_) | Value::Named(_) => {}
            Value::Load(access) => {
                self.indices(access);
                self.read(access);
            }
            Value::Op(op, operands) => match (op, &operands[..]) {
                (ElementOp::Select, [cond, then, otherwise]) => {
                    self.value(cond);
                    self.under(cond, true, |this| this.value(then));
                    self.under(cond, false, |this| this.value(otherwise));
                }
                (_, operands) => operands.iter().for_each(|operand| self.value(operand)),
            },
            Value::Cast(_, _, of) => self.value(of),
        }
    }

    fn indices(&mut self, access: &Access) {
        for coord in &access.index {
            if let Coord::Data(value) = coord {
                self.value(value);
            }
        }
    }

    fn read(&mut self, access: &Access) {
        let buffer = &self.kernel.buffers[access.buffer];
        if access.or_zero || !matches!(buffer.space, Space::Global(_)) {
            return;
        }
        for (dimension, coord) in access.index.iter().enumerate() {
            let Coord::At(index) = coord else { continue };
            let beyond = self.beyond(buffer, dimension, index);
            if let Some(outside) = beyond.filter(|_| !self.is_dropped(buffer, dimension, index)) {
                self.report(access, (dimension, index), &outside, Verb::Read);
            }
        }
    }

    /// Checks the index of a store or an addition, which is dropped where the index is out of bounds.
    fn written(&mut self, to: &Access, verb: Verb) {
        let buffer = &self.kernel.buffers[to.buffer];
        if !matches!(buffer.space, Space::Global(_)) {
            return;
        }
        for (dimension, coord) in to.index.iter().enumerate() {
            let Coord::At(index) = coord else { continue };
            if let Some(outside) = self.beyond(buffer, dimension, index) {
                self.report(to, (dimension, index), &outside, verb);
            }
        }
    }

    /// Adds the warning, unless it is already there: a value that occurs several times in the kernel is one access in
    /// the source.
    fn report(&mut self, access: &Access, at: (usize, &Expr), outside: &Outside, verb: Verb) {
        let finding = self.finding(access, at, outside, verb);
        if !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }

    /// How an index goes beyond the tiles that begin in bounds of a dimension; `None` if it does not, or if there are
    /// too many values to evaluate.
    fn beyond(&self, buffer: &Buffer, dimension: usize, index: &Expr) -> Option<Outside> {
        let (index, extent) = (self.known.of_thread(index), buffer.extent(dimension));
        // Who truncates a tensor wants elements to be left out.
        let is_wanted = self.kernel.loaded_end(buffer).is_some();
        if is_wanted || index.range().within(0, extent.range().lo) || self.is_of_tiles(&index, &extent) {
            return None;
        }
        let limit = rounded_up(extent.range().hi, self.span(&index));
        bounds::outside(&index, limit, self.known.conditions()).filter(|outside| outside.at.is_some())
    }

    /// Whether every value that is read out of bounds is dropped.
    fn is_dropped(&self, buffer: &Buffer, dimension: usize, index: &Expr) -> bool {
        if self.counts.is_empty() {
            return false;
        }
        let all = [self.known.conditions(), &self.counts[..]].concat();
        let (index, extent) = (self.known.of_thread(index), buffer.extent(dimension).range().lo);
        bounds::outside(&index, extent, &all).is_none()
    }

    /// Whether CTA indices and enclosing loops move the index through tiles, each of which begins in bounds and does not reach
    /// into the next one.
    fn is_of_tiles(&self, index: &Expr, extent: &Expr) -> bool {
        let sum = linear(index);
        let is_own = |atom: &Expr| self.own.iter().any(|var| atom.mentions(var));
        let (own, begin): (Vec<_>, Vec<_>) = sum.terms.iter().cloned().partition(|(_, atom)| is_own(atom));
        let inside = Linear { terms: own, constant: sum.constant }.to_expr();
        let is_tile = |(factor, atom): &(i64, Expr)| {
            let Node::Var(var) = atom.node() else { return false };
            let tile = factor.saturating_mul(var.multiple());
            tile > 0 && bounds::outside(&inside, tile, self.known.conditions()).is_none()
        };
        let is_moved = begin.iter().any(is_tile);
        let begin = Linear { terms: begin, constant: 0 }.to_expr();
        is_moved && self.kernel.is_never_negative(&begin) && self.kernel.is_never_negative(&(extent - &begin - 1))
    }

    /// The extent of the tile that the variables of the iteration go through.
    fn span(&self, index: &Expr) -> i64 {
        let sum = linear(index);
        let is_own = |atom: &Expr| self.own.iter().any(|var| atom.mentions(var));
        let width = |(factor, atom): &(i64, Expr)| {
            let range = atom.range();
            let count = range.hi.saturating_sub(range.lo).saturating_add(1);
            count.saturating_mul(factor.saturating_abs())
        };
        sum.terms.iter().filter(|(_, atom)| is_own(atom)).map(width).max().unwrap_or(1)
    }

    fn finding(
        &self,
        access: &Access,
        (dimension, index): (usize, &Expr),
        outside: &Outside,
        verb: Verb,
    ) -> Diagnostic {
        let buffer = &self.kernel.buffers[access.buffer];
        let (title, extent) = (access_title(self.kernel, access), buffer.extent(dimension));
        let Outside { least, most, at } = outside;
        let which = if least == most { format!("index {least}") } else { format!("indices {least} to {most}") };
        let message = format!("`{title}` {} {which} of dimension {dimension} (extent {extent})", verb.present());
        let reached = if *least < 0 { least } else { most };
        let finding = Diagnostic::warning("K0266", message)
            .label(access.span, verb.effect())
            .label(buffer.span, format!("declared with shape {}", buffer.shape_title()));
        let finding = match at.as_deref() {
            None | Some([]) => finding,
            Some(at) => {
                let at: Vec<String> = at.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                finding.note(format!("it {} index {reached} for {}", verb.present(), at.join(", ")))
            }
        };
        // A condition on a number always has the same result.
        if index.as_const().is_some() {
            return finding.help(format!("an index of this dimension is at least 0 and below {extent}"));
        }
        let of = if index.operands().is_some() { format!("({index})") } else { index.to_string() };
        let below = (*least < 0).then(|| format!("`{of}.ge(0)`"));
        let above = (*most >= extent.range().lo).then(|| format!("`{of}.lt({extent})`"));
        let asked: Vec<String> = below.into_iter().chain(above).collect();
        let asked = asked.join(" and ");
        match verb {
            Verb::Read => finding
                .help(format!("read it only in bounds: in k.if_ or an arm of select, with {asked}"))
                .help("or append .or_zero() if 0 is intended there"),
            Verb::Store => finding.help(format!("store it only in bounds: in k.if_, with {asked}")),
            Verb::Add => finding.help(format!("add to it only in bounds: in k.if_, with {asked}")),
            Verb::Change => finding.help(format!("change it only in bounds: in k.if_, with {asked}")),
        }
    }
}

/// The end of the last tile of `span` elements that begins below `extent`.
fn rounded_up(extent: i64, span: i64) -> i64 {
    let span = span.max(1);
    extent.saturating_add(span - 1).div_euclid(span).saturating_mul(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_that_begins_inside_ends_where_the_next_would_begin() {
        assert_eq!(
            [(100, 32), (96, 32), (10, 32), (10, 1)].map(|(extent, span)| rounded_up(extent, span)),
            [128, 96, 32, 10]
        );
    }
}
