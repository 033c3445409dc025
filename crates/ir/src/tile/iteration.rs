//! Iterations of loops that are written out although the launch determines how many there are.

use tilewright_expr::Expr;

use crate::counter::Counter;
use crate::tile::value::{ElementOp, Value};

/// The conditions under which a loop has an iteration with this value of its variable; `None` if it never has.
pub fn iteration_exists(counter: &Counter, value: i64) -> Option<Vec<Value>> {
    let (begin, end) = (counter.begin.range(), counter.end.range());
    if value < begin.lo || value >= end.hi {
        return None;
    }
    let compared = |op: ElementOp, bound: &Expr| {
        Value::Op(op, [Value::Index(bound.clone()), Value::Index(Expr::constant(value))].into())
    };
    let after_begin = (value < begin.hi).then(|| compared(ElementOp::Le, &counter.begin));
    let before_end = (value >= end.lo).then(|| compared(ElementOp::Gt, &counter.end));
    Some(after_begin.into_iter().chain(before_end).collect())
}
