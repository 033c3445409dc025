//! Elements that a statement reads through a value that was made before a store to them: it gets what was stored, not what
//! was there when the value was made.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr as expr;
use tilewright_ir::Handle;
use tilewright_ir::tile::{self, Access, Coord, Kernel, access_title};

use crate::nodes;

/// An element at an index of variables.
type Element = (Handle<tile::Buffer>, Vec<expr::Expr>);

/// The element of an access; `None` if its index is data.
fn element(access: &Access) -> Option<Element> {
    let index = access.index.iter().map(|coord| match coord {
        Coord::At(index) => Some(index.clone()),
        Coord::Data(_) => None,
    });
    Some((access.buffer, index.collect::<Option<_>>()?))
}

/// When the values of elements were made.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Stores so far.
    time: u32,
    /// When a line last made the value of an element.
    made: BTreeMap<(Element, Span), u32>,
    /// What was read again.
    again: Vec<ReadAgain>,
}

/// An element that is read again after a store.
#[derive(Debug)]
pub(crate) struct ReadAgain {
    /// The element, where its value was made.
    read: Access,
    /// Where it was stored since.
    stored: Span,
    /// The statement that reads it.
    used: Span,
}

impl Reads {
    /// Notes that a value of an element is made.
    pub(crate) fn make(&mut self, access: &Access) {
        if let Some(element) = element(access) {
            self.made.insert((element, access.span), self.time);
        }
    }

    /// What was read again.
    pub(crate) fn into_again(self) -> Vec<ReadAgain> {
        self.again
    }
}

impl ReadAgain {
    /// The warning about it.
    pub(crate) fn warning(&self, kernel: &Kernel) -> Diagnostic {
        let title = access_title(kernel, &self.read);
        Diagnostic::warning("K0272", format!("`{title}` is read after a store to it, by a value that was made before"))
            .label(self.used, "this statement gets what was stored")
            .label(self.stored, "stored here")
            .label(self.read.span, "the value is made here, and computed where it is used")
            .help("to use the number from before the store, give it a name there, with `k.named(..)`")
            .help("to use the stored number, write `.at(..)` again after the store")
    }
}

/// The elements that the statements of a loop have stored so far.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    /// When and where each was stored last.
    last: BTreeMap<Element, (u32, Span)>,
    /// When the stores of branches were made that do not run before the current statement, as it is in the other branch.
    elsewhere: Vec<RangeInclusive<u32>>,
}

/// Stores so far, in all loops.
pub(crate) fn now() -> u32 {
    nodes::with_reads(|reads| reads.time).unwrap_or_default()
}

impl Stores {
    /// Notes a store.
    pub(crate) fn add(&mut self, to: &Access) {
        let time = nodes::with_reads(|reads| {
            reads.time += 1;
            reads.time
        });
        if let Some((element, time)) = element(to).zip(time) {
            self.last.insert(element, (time, to.span));
        }
    }

    /// Begins the other branch of what was stored since `begin`.
    pub(crate) fn enter_other_branch(&mut self, begin: u32) {
        self.elsewhere.push(begin + 1..=now());
    }

    /// Ends that branch.
    pub(crate) fn leave_other_branch(&mut self) {
        self.elsewhere.pop();
    }

    /// Finds what a statement reads again.
    pub(crate) fn check(&self, value: &tile::Value, used: Span) {
        if self.last.is_empty() {
            return;
        }
        let (mut open, mut seen) = (vec![value], BTreeSet::new());
        while let Some(value) = open.pop() {
            match value {
                tile::Value::Const(_) | tile::Value::Index(_) | tile::Value::Named(_) => {}
                tile::Value::Load(access) => {
                    self.check_read(access, used);
                    open.extend(access.index.iter().filter_map(|coord| match coord {
                        Coord::Data(value) => Some(value),
                        Coord::At(_) => None,
                    }));
                }
                // Operands may be shared: each is visited once.
                tile::Value::Op(_, operands) if seen.insert(operands.as_ptr()) => open.extend(operands.iter()),
                tile::Value::Cast(_, _, of) if seen.insert(std::ptr::from_ref(&**of)) => open.push(of),
                tile::Value::Op(..) | tile::Value::Cast(..) => {}
            }
        }
    }

    fn check_read(&self, access: &Access, used: Span) {
        let Some(element) = element(access) else { return };
        let Some((stored_at, stored)) = self.last.get(&element).copied() else { return };
        if self.elsewhere.iter().any(|branch| branch.contains(&stored_at)) {
            return;
        }
        nodes::with_reads(|reads| {
            let made = reads.made.get(&(element, access.span));
            let is_known = |known: &ReadAgain| known.used == used && known.read.span == access.span;
            if made.is_some_and(|made| *made < stored_at) && !reads.again.iter().any(is_known) {
                reads.again.push(ReadAgain { read: access.clone(), stored, used });
            }
        });
    }
}
