//! Values that update the element that they are stored to: running maxima, sums that are scaled and added to.
//!
//! Where another operand is invalid, the update leaves that operand out: `sum*alpha + v` is `sum*alpha` there.

use crate::tile::valid_extents::Limits;
use crate::tile::value::{Access, Coord, ElementOp, Value};

/// A value that depends on the element that it replaces.
pub(super) struct Update {
    /// The value, without operands where they are invalid.
    pub(super) value: Value,
    /// Beyond these limits, the element keeps its value.
    pub(super) guard: Limits,
    /// The limits of everything in the value that counts.
    pub(super) all: Limits,
    /// Whether an element that is 0 where it is invalid stays so.
    pub(super) keeps_zero: bool,
}

/// Recognises the updates of an element.
pub(super) struct Updates<'a> {
    /// The element.
    pub(super) to: &'a Access,
    /// Up to where it is valid.
    pub(super) own: Limits,
    /// Up to where a value is valid.
    pub(super) limits: &'a dyn Fn(&Value) -> Limits,
    /// The names in scope, the latest last; those that depend on the element have the limits of what else is in them.
    pub(super) names: Vec<(&'a str, Option<Limits>)>,
}

impl Updates<'_> {
    /// A value, or a part of one if it is not the root, that depends on the element; `None` for other values, and where a
    /// function or a choice of the user stands between.
    pub(super) fn part(&self, value: &Value, is_root: bool) -> Option<Update> {
        let unchanged = |all: Limits| {
            let guard = all.clone();
            Update { value: value.clone(), guard, all, keeps_zero: false }
        };
        match value {
            Value::Load(access) if self.is_own(access) => {
                Some(Update { keeps_zero: true, ..unchanged(Limits::default()) })
            }
            Value::Load(_) | Value::Const(_) | Value::Index(_) => None,
            Value::Named(name) => {
                let (_, limits) = self.names.iter().rev().find(|(known, _)| known == name)?;
                limits.clone().map(unchanged)
            }
            Value::Cast(from, to, of) => {
                let part = self.part(of, is_root)?;
                Some(Update { value: Value::Cast(*from, *to, part.value.into()), ..part })
            }
            Value::Op(ElementOp::Rounded, operands) => {
                let part = self.part(operands.first()?, is_root)?;
                Some(Update { value: Value::Op(ElementOp::Rounded, [part.value].into()), ..part })
            }
            Value::Op(ElementOp::Select, _) => None,
            Value::Op(op, operands) => self.operation(*op, operands, is_root),
        }
    }

    fn operation(&self, op: ElementOp, operands: &[Value], is_root: bool) -> Option<Update> {
        let parts: Vec<Option<Update>> = operands.iter().map(|operand| self.part(operand, false)).collect();
        let of_others = |at: usize| (self.limits)(&operands[at]);
        let others: Vec<usize> = (0..operands.len()).filter(|at| parts[*at].is_none()).collect();
        let is_function = operands.len() == 1 && !matches!(operands, [Value::Load(_)]);
        if others.len() == operands.len() || is_function {
            return None;
        }
        let own: Vec<&Update> = parts.iter().flatten().collect();
        let inner = own.iter().fold(Limits::default(), |all, part| all.and(&part.guard));
        let replaced = |(part, operand): (&Option<Update>, &Value)| {
            part.as_ref().map_or_else(|| operand.clone(), |part| part.value.clone())
        };
        let values: Vec<Value> = parts.iter().zip(operands).map(replaced).collect();
        let value = Value::Op(op, values.clone().into());
        let adds_zeros = || others.iter().all(|at| is_term(op, *at) && self.is_zero_with_own(&of_others(*at)));
        let keeps_zero =
            own.iter().any(|part| part.keeps_zero) && (op == ElementOp::Mul || (is_zero_of_zeros(op) && adds_zeros()));
        let counting = others.iter().copied().filter(|at| !is_neutral(op, *at, &of_others(*at)));
        let limits = counting.clone().fold(Limits::default(), |all, at| all.and(&of_others(at)));
        let of = limits.of.filtered(|sum, limit| self.own.of.limit(sum) != Some(limit));
        let limits = Limits { of, is_zero: false, ..limits };
        let all = own.iter().fold(limits.clone(), |all, part| all.and(&part.all));
        let without = match (op, &values[..]) {
            // Only the addend is invalid: the product stays.
            (ElementOp::Fma, [a, b, _]) if counting.eq([2]) => Value::Op(ElementOp::Mul, [a.clone(), b.clone()].into()),
            _ => own.first()?.value.clone(),
        };
        if limits.of.is_empty() {
            return Some(Update { value, guard: inner, all, keeps_zero });
        }
        if own.len() > 1 || (is_root && matches!(&without, Value::Load(_))) {
            return Some(Update { value, guard: inner.and(&limits), all, keeps_zero });
        }
        Some(Update { value: within(&limits, value, without), guard: inner, all, keeps_zero })
    }

    /// Whether a value with these limits is 0 wherever the element is invalid.
    fn is_zero_with_own(&self, limits: &Limits) -> bool {
        limits.is_zero && self.own.of.iter().all(|(sum, limit)| limits.of.limit(sum) == Some(limit))
    }

    fn is_own(&self, access: &Access) -> bool {
        let is_same =
            |(one, other): (&Coord, &Coord)| matches!((one, other), (Coord::At(one), Coord::At(other)) if one == other);
        access.buffer == self.to.buffer && access.index.iter().zip(&self.to.index).all(is_same)
    }
}

/// Whether the result for operands that are all 0 is 0: it is not for exponentials and quotients.
fn is_zero_of_zeros(op: ElementOp) -> bool {
    match op {
        ElementOp::Add | ElementOp::Sub | ElementOp::Mul | ElementOp::Fma | ElementOp::Neg | ElementOp::Abs => true,
        ElementOp::Max | ElementOp::Min | ElementOp::Rounded => true,
        ElementOp::And | ElementOp::Or | ElementOp::Xor | ElementOp::Shl | ElementOp::Shr => true,
        ElementOp::Div | ElementOp::Rem | ElementOp::Not | ElementOp::Select | ElementOp::Function(_) => false,
        ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge | ElementOp::Eq | ElementOp::Ne => false,
    }
}

/// Whether an operand is a term of a sum.
fn is_term(op: ElementOp, place: usize) -> bool {
    matches!((op, place), (ElementOp::Add, _) | (ElementOp::Sub, 1) | (ElementOp::Fma, 2))
}

/// Whether an operand with these limits changes nothing where it is invalid: a term that is 0 there.
fn is_neutral(op: ElementOp, place: usize, limits: &Limits) -> bool {
    (limits.of.is_empty() && limits.lost.is_none()) || (is_term(op, place) && limits.is_zero)
}

/// A value within limits, and another beyond them.
fn within(limits: &Limits, value: Value, beyond: Value) -> Value {
    limits
        .conditions()
        .fold(value, |value, is_valid| Value::Op(ElementOp::Select, [is_valid, value, beyond.clone()].into()))
}
