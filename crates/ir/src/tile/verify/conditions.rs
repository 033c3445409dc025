//! Conditions that are known before a kernel runs: comparisons of integer expressions of variables.

use tilewright_expr::{Expr, Var};

use crate::counter::Counter;
use crate::scalar::Scalar;
use crate::tile::integers::{Comparison, IndexOp};
use crate::tile::kernel::Kernel;
use crate::tile::value::{ElementClass, Value};

/// A comparison of two integer expressions of variables, and whether it holds.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) comparison: Comparison,
    /// The left and the right side of the comparison.
    pub(super) sides: [Expr; 2],
    /// Whether the comparison is known to hold, or known not to hold.
    pub(super) holds: bool,
}

/// What is known at a statement of a kernel, except for conditions on data.
pub(super) struct KnownFacts {
    /// Where iterations are threads: the variables of lane and warp, and the thread in terms of which they are
    /// expressed.
    threads: Option<(Var, Var, Expr)>,
    /// Named values that are made of variables alone.
    names: Vec<(String, Value)>,
    /// Conditions that are known to hold, or not to hold, the innermost last.
    conditions: Vec<Condition>,
}

/// How much was known at a statement, to return to with [`KnownFacts::rewind`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Number of known names.
    names: usize,
    /// Number of known conditions.
    conditions: usize,
}

impl KnownFacts {
    /// What is known under the conditions `around`; `is_by_threads` if iterations are threads.
    pub(super) fn new(kernel: &Kernel, is_by_threads: bool, around: &[(&Value, bool)]) -> KnownFacts {
        let threads = is_by_threads.then(|| (kernel.lane(), kernel.warp(), Expr::var(&kernel.tid())));
        let mut known = KnownFacts { threads, names: Vec::new(), conditions: Vec::new() };
        for (cond, holds) in around {
            known.assume(cond, *holds);
        }
        known
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { names: self.names.len(), conditions: self.conditions.len() }
    }

    /// Forgets what was added since `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.names.truncate(mark.names);
        self.conditions.truncate(mark.conditions);
    }

    pub(super) fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Records a name, if its value is made of variables alone.
    pub(super) fn name(&mut self, name: &str, value: &Value) {
        if let Some(known) = self.resolved(value) {
            self.names.push((name.to_string(), known));
        }
    }

    /// Records a condition, as far as it consists of comparisons of integer expressions of variables.
    pub(super) fn assume(&mut self, cond: &Value, holds: bool) {
        let cond = self.resolved(cond).unwrap_or_else(|| cond.clone());
        if let Some(parts) = cond.implied(holds) {
            parts.into_iter().for_each(|(part, holds)| self.assume(part, holds));
        } else if let Some(Value::Op(op, operands)) = self.resolved(&cond)
            && let Some(comparison) = op.comparison()
            && let [Value::Index(a), Value::Index(b)] = &operands[..]
        {
            self.conditions.push(Condition { comparison, sides: [a.clone(), b.clone()], holds });
        }
    }

    /// Records that a variable is within the bounds of its loop, as far as its range does not tell.
    pub(super) fn counted(&mut self, counter: &Counter) {
        if counter.values().is_some() {
            return;
        }
        let (var, begin, end) = (Expr::var(&counter.var), counter.begin.clone(), counter.end.clone());
        for (comparison, bound) in [(Comparison::Ge, begin), (Comparison::Lt, end)] {
            let sides = [&var, &bound].map(|side| self.of_thread(side));
            self.conditions.push(Condition { comparison, sides, holds: true });
        }
    }

    /// Records that a loop has an iteration, if the bounds alone do not tell.
    pub(super) fn not_empty(&mut self, counter: &Counter) {
        if !counter.is_never_empty() {
            let sides = [&counter.begin, &counter.end].map(|side| self.of_thread(side));
            self.conditions.push(Condition { comparison: Comparison::Lt, sides, holds: true });
        }
    }

    /// The conditions that an index is in bounds of a dimension.
    pub(super) fn inside(&self, index: &Expr, extent: &Expr) -> [Condition; 2] {
        let index = self.of_thread(index);
        [(Comparison::Ge, Expr::constant(0)), (Comparison::Lt, extent.clone())].map(|(comparison, bound)| Condition {
            comparison,
            sides: [index.clone(), bound],
            holds: true,
        })
    }

    /// The value as an integer expression of variables; `None` for other values.
    pub(super) fn integer(&self, value: &Value) -> Option<Expr> {
        match self.resolved(value)? {
            Value::Index(expr) => Some(expr),
            Value::Const(_) | Value::Named(_) | Value::Load(_) | Value::Op(..) | Value::Cast(..) => None,
        }
    }

    /// The expression in terms of the thread, where iterations are threads.
    pub(super) fn of_thread(&self, expr: &Expr) -> Expr {
        let Some((lane, warp, tid)) = &self.threads else { return expr.clone() };
        expr.substitute(&|var| match var {
            var if var == lane => Some(tid % 32),
            var if var == warp => Some(tid / 32),
            _ => None,
        })
    }

    /// The value as an integer expression of variables, a comparison of two, or a condition made of such; `None` for other
    /// values.
    fn resolved(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Const(Scalar::Int(number)) => Some(Value::Index(Expr::constant(*number))),
            Value::Index(expr) => Some(Value::Index(self.of_thread(expr))),
            Value::Named(name) => {
                self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
            Value::Op(op, operands) if op.class() == ElementClass::Comparison => {
                let sides: Option<Vec<Value>> = operands.iter().map(|side| self.side(side).map(Value::Index)).collect();
                Some(Value::Op(*op, sides?.into()))
            }
            Value::Op(op, operands) if op.class() == ElementClass::Bitwise => {
                let parts: Option<Vec<Value>> = operands.iter().map(|part| self.resolved(part)).collect();
                Some(Value::Op(*op, parts?.into()))
            }
            Value::Const(Scalar::Float(_)) | Value::Load(_) | Value::Op(..) | Value::Cast(..) => None,
        }
    }

    /// A side of a comparison: an integer expression of variables, or a sum or product of such.
    fn side(&self, value: &Value) -> Option<Expr> {
        let Value::Op(op, operands) = value else { return self.integer(value) };
        let operands: Option<Vec<Expr>> = operands.iter().map(|operand| self.side(operand)).collect();
        match (op.index_op()?, &operands?[..]) {
            (IndexOp::Add, [a, b]) => Some(a + b),
            (IndexOp::Sub, [a, b]) => Some(a - b),
            (IndexOp::Mul, [a, b]) => Some(a * b),
            (IndexOp::Neg, [a]) => Some(a * -1),
            (IndexOp::Add | IndexOp::Sub | IndexOp::Mul | IndexOp::Neg, _) => None,
        }
    }
}
