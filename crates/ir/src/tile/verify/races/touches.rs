//! The accesses of an iteration, with what stands around them.

use tilewright_expr::{Expr, Var};

use super::{Iterations, Who};
use crate::scalar::Scalar;
use crate::tile::element::{Claim, Element};
use crate::tile::kernel::Kernel;
use crate::tile::value::{Access, Coord, ElementClass, ElementOp, Value};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads the element.
    Read,
    /// Writes it.
    Store(Claim),
    /// Adds to it.
    Atomic,
}

/// A comparison of two integers made of variables, and whether it holds.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) op: ElementOp,
    pub(super) sides: [Expr; 2],
    pub(super) holds: bool,
}

/// An access of an iteration.
#[derive(Clone, Debug)]
pub(super) struct Touch<'a> {
    pub(super) access: &'a Access,
    pub(super) kind: Kind,
    /// One expression per dimension; `None` where one of them depends on data.
    pub(super) index: Option<Vec<Expr>>,
    /// Variables of the loops inside of the iteration.
    pub(super) inner: Vec<Var>,
    /// What is known to hold there; conditions on data are left out.
    pub(super) conditions: Vec<Condition>,
}

/// All accesses of an iteration.
pub(super) fn collect<'a>(kernel: &Kernel, iterations: &Iterations<'a>, around: &[(&Value, bool)]) -> Vec<Touch<'a>> {
    let threads = (iterations.who == Who::Threads).then(|| (kernel.lane(), kernel.warp(), Expr::var(&kernel.tid())));
    let mut walk =
        Collector { threads, inner: Vec::new(), conditions: Vec::new(), names: Vec::new(), touches: Vec::new() };
    for (cond, holds) in around {
        walk.assume(cond, *holds);
    }
    walk.elements(iterations.body);
    walk.touches
}

struct Collector<'a> {
    /// Lane and warp, and the thread that they are parts of, where iterations are threads.
    threads: Option<(Var, Var, Expr)>,
    inner: Vec<Var>,
    conditions: Vec<Condition>,
    /// Named values that are made of variables alone.
    names: Vec<(&'a str, Value)>,
    touches: Vec<Touch<'a>>,
}

impl<'a> Collector<'a> {
    fn elements(&mut self, body: &'a [Element]) {
        let names = self.names.len();
        for element in body {
            self.element(element);
        }
        self.names.truncate(names);
    }

    fn element(&mut self, element: &'a Element) {
        match element {
            Element::Let { name, value, .. } => {
                self.value(value);
                if let Some(known) = self.resolved(value) {
                    self.names.push((name, known));
                }
            }
            Element::Store { to, value, claim } => self.written(to, value, Kind::Store(*claim)),
            Element::AtomicAdd { to, value } => self.written(to, value, Kind::Atomic),
            Element::If { cond, then, otherwise, .. } => {
                self.value(cond);
                for (branch, holds) in [(then, true), (otherwise, false)] {
                    let known = self.conditions.len();
                    self.assume(cond, holds);
                    self.elements(branch);
                    self.conditions.truncate(known);
                }
            }
            Element::For { var, body, .. } => {
                self.inner.push(var.clone());
                self.elements(body);
                self.inner.pop();
            }
        }
    }

    fn written(&mut self, to: &'a Access, value: &'a Value, kind: Kind) {
        self.value(value);
        self.indices(to);
        self.touch(to, kind);
    }

    /// The loads of a value; those that a selection leaves out are under its condition.
    fn value(&mut self, value: &'a Value) {
        match value {
            Value::Const(_) | Value::Index(_) | Value::Named(_) => {}
            Value::Load(access) => {
                self.indices(access);
                self.touch(access, Kind::Read);
            }
            Value::Op(ElementOp::Select, operands) => {
                let [cond, then, otherwise] = &operands[..] else { return };
                self.value(cond);
                for (chosen, holds) in [(then, true), (otherwise, false)] {
                    let known = self.conditions.len();
                    self.assume(cond, holds);
                    self.value(chosen);
                    self.conditions.truncate(known);
                }
            }
            Value::Op(_, operands) => operands.iter().for_each(|operand| self.value(operand)),
            Value::Cast(_, _, of) => self.value(of),
        }
    }

    fn indices(&mut self, access: &'a Access) {
        for coord in &access.index {
            if let Coord::Data(value) = coord {
                self.value(value);
            }
        }
    }

    fn touch(&mut self, access: &'a Access, kind: Kind) {
        let index = access.index.iter().map(|coord| match coord {
            Coord::At(expr) => Some(self.of_thread(expr)),
            Coord::Data(value) => self.integer(value),
        });
        let (inner, conditions) = (self.inner.clone(), self.conditions.clone());
        self.touches.push(Touch { access, kind, index: index.collect(), inner, conditions });
    }

    /// Notes a condition that compares integers made of variables.
    fn assume(&mut self, cond: &Value, holds: bool) {
        if let Some(Value::Op(op, operands)) = self.resolved(cond)
            && let [Value::Index(a), Value::Index(b)] = &operands[..]
        {
            self.conditions.push(Condition { op, sides: [a.clone(), b.clone()], holds });
        }
    }

    fn integer(&self, value: &Value) -> Option<Expr> {
        match self.resolved(value)? {
            Value::Index(expr) => Some(expr),
            Value::Const(_) | Value::Named(_) | Value::Load(_) | Value::Op(..) | Value::Cast(..) => None,
        }
    }

    /// An integer made of variables, or a comparison of two; `None` for other values.
    fn resolved(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Const(Scalar::Int(number)) => Some(Value::Index(Expr::constant(*number))),
            Value::Index(expr) => Some(Value::Index(self.of_thread(expr))),
            Value::Named(name) => {
                self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
            Value::Op(op, operands) if op.class() == ElementClass::Comparison => {
                let sides: Option<Vec<Value>> =
                    operands.iter().map(|side| self.integer(side).map(Value::Index)).collect();
                Some(Value::Op(*op, sides?.into()))
            }
            Value::Const(Scalar::Float(_)) | Value::Load(_) | Value::Op(..) | Value::Cast(..) => None,
        }
    }

    /// The expression in terms of the thread, where iterations are threads.
    fn of_thread(&self, expr: &Expr) -> Expr {
        let Some((lane, warp, tid)) = &self.threads else { return expr.clone() };
        expr.substitute(&|var| match var {
            var if var == lane => Some(tid % 32),
            var if var == warp => Some(tid / 32),
            _ => None,
        })
    }
}
