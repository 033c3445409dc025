//! What writes a buffer: ops and statements, with the loops and conditions around each.

use tilewright_diag::Span;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::tile::{Access, Buffer, Coord, ElementStmt, Kernel, Op, Stmt, Value, access_title};

/// Something that writes a buffer.
pub(crate) struct Writer<'a> {
    /// What it is called in messages.
    pub(crate) title: String,
    pub(crate) span: Span,
    /// The buffer that it names: the one in question, or a view of it.
    pub(crate) buffer: Handle<Buffer>,
    /// In each dimension, the first index and the number of indices; `None` if the index depends on data.
    pub(crate) indices: Vec<Option<(Expr, i64)>>,
    /// The variables of the enclosing loops, the outermost first.
    pub(crate) loops: Vec<(&'a Var, Span)>,
    /// The enclosing conditions, and whether each holds there.
    pub(crate) conditions: Vec<(&'a Value, bool, Span)>,
}

/// Everything that writes a buffer, in the order of the kernel.
pub(crate) fn writers(kernel: &Kernel, buffer: Handle<Buffer>) -> Vec<Writer<'_>> {
    let mut walk = Walk { kernel, buffer, loops: Vec::new(), conditions: Vec::new(), found: Vec::new() };
    walk.body(&kernel.body);
    walk.found
}

struct Walk<'a> {
    /// The kernel whose statements are walked.
    kernel: &'a Kernel,
    buffer: Handle<Buffer>,
    /// The loops around the current statement, the outermost first.
    loops: Vec<(&'a Var, Span)>,
    conditions: Vec<(&'a Value, bool, Span)>,
    /// The writers found so far.
    found: Vec<Writer<'a>>,
}

impl<'a> Walk<'a> {
    fn body(&mut self, body: &'a [Stmt]) {
        let kernel = self.kernel;
        for stmt in body {
            match stmt {
                Stmt::Op(op) => self.op(&kernel.ops[*op]),
                Stmt::Loop(inner) => {
                    self.loops.push((&inner.counter.var, inner.span));
                    self.body(&inner.body);
                    self.loops.pop();
                }
                Stmt::Parallel(parallel) => {
                    let parallel = &kernel.parallels[*parallel];
                    let outside = self.loops.len();
                    self.loops.extend(parallel.vars.iter().map(|var| (var, parallel.span)));
                    self.elements(&parallel.body);
                    self.loops.truncate(outside);
                }
                Stmt::EachThread(elements) => self.elements(elements),
                Stmt::Begin(_) | Stmt::End(_) => {}
                Stmt::If(branch) => {
                    for (body, holds) in [(&branch.then, true), (&branch.otherwise, false)] {
                        self.conditions.push((&branch.cond, holds, branch.span));
                        self.body(body);
                        self.conditions.pop();
                    }
                }
            }
        }
    }

    fn op(&mut self, op: &Op) {
        for (operand, tile) in op.tiles() {
            if operand.effect.writes() {
                let title = format!("`{}`", self.kernel.op_title(op));
                let indices =
                    tile.starts.iter().zip(&tile.extents).map(|(start, extent)| Some((start.clone(), *extent)));
                self.note(tile.buffer, title, op.span, indices.collect());
            }
        }
    }

    fn elements(&mut self, body: &'a [ElementStmt]) {
        for element in body {
            match element {
                ElementStmt::Let { .. } => {}
                ElementStmt::Store { to, .. } => self.access(to, "store"),
                ElementStmt::Atomic(atomic) => self.access(&atomic.to, atomic.change.name()),
                ElementStmt::If { cond, then, otherwise, span } => {
                    for (body, holds) in [(then, true), (otherwise, false)] {
                        self.conditions.push((cond, holds, *span));
                        self.elements(body);
                        self.conditions.pop();
                    }
                }
                ElementStmt::For { counter, body, span } => {
                    self.loops.push((&counter.var, *span));
                    self.elements(body);
                    self.loops.pop();
                }
            }
        }
    }

    fn access(&mut self, to: &Access, what: &str) {
        let title = format!("the {what} to `{}`", access_title(self.kernel, to));
        let indices = to.index.iter().map(|coord| match coord {
            Coord::At(index) => Some((index.clone(), 1)),
            Coord::Data(_) => None,
        });
        self.note(to.buffer, title, to.span, indices.collect());
    }

    fn note(&mut self, buffer: Handle<Buffer>, title: String, span: Span, indices: Vec<Option<(Expr, i64)>>) {
        if self.kernel.storage(buffer) == self.buffer {
            let (loops, conditions) = (self.loops.clone(), self.conditions.clone());
            self.found.push(Writer { title, span, buffer, indices, loops, conditions });
        }
    }
}
