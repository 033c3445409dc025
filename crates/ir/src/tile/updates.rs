//! Values that update the element that they are stored to: running maxima, sums that are scaled and added to.
//!
//! Where another operand is invalid, the update leaves that operand out: `sum*alpha + v` is `sum*alpha` there. A product that is
//! fused into a sum stays so where everything is valid.

use std::sync::Arc;

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
        if let (ElementOp::Fma, [a, b, addend]) = (op, operands)
            && [a, b].iter().all(|factor| self.part(factor, false).is_none())
        {
            // Without the fusion it is a sum with a product.
            let factors: Arc<[Value]> = [a.clone(), b.clone()].into();
            let product = Value::Op(ElementOp::Mul, Arc::clone(&factors));
            let update = self.operation(ElementOp::Add, &[product, addend.clone()], is_root)?;
            return Some(Update { value: with_fused(&update.value, &factors), ..update });
        }
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
        let is_zero = |at: usize| is_term(op, at) && self.is_zero_with_own(&of_others(at));
        let adds_zeros = || others.iter().all(|at| is_factor(op, *at) || is_zero(*at));
        let keeps_zero =
            own.iter().any(|part| part.keeps_zero) && (op == ElementOp::Mul || (is_zero_of_zeros(op) && adds_zeros()));
        let limits_at = |at: usize| {
            let limits = of_others(at);
            let of = limits.of.filtered(|sum, limit| self.own.of.limit(sum) != Some(limit));
            if is_neutral(op, at, &limits) { Limits::default() } else { Limits { of, is_zero: false, ..limits } }
        };
        let limits = others.iter().fold(Limits::default(), |all, at| all.and(&limits_at(*at)));
        let all = own.iter().fold(limits.clone(), |all, part| all.and(&part.all));
        let without = own.first()?.value.clone();
        let (limits, value, without) = match (op, &values[..], &own[..]) {
            (ElementOp::Fma, [a, b, c], [_]) if parts[2].is_none() => {
                let of_factor = limits_at(if parts[0].is_none() { 0 } else { 1 });
                let addend = Addend { value: c, limits: of_others(2), counting: limits_at(2) };
                let (value, beyond) = scaled_sum([a, b], &addend, without, &of_factor);
                (of_factor, value, beyond)
            }
            _ => (limits, value, without),
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

/// What is added to a product that has the element as a factor.
struct Addend<'v> {
    value: &'v Value,
    limits: Limits,
    /// The limits beyond which it has to be left out.
    counting: Limits,
}

/// `a*b + c`, where the element, of which `own` is what is valid, is a factor: within the limits of the other factor, and beyond
/// them, where the product is left out.
fn scaled_sum([a, b]: [&Value; 2], addend: &Addend<'_>, own: Value, of_factor: &Limits) -> (Value, Value) {
    let Addend { value: c, limits, counting } = addend;
    let fused = Value::Op(ElementOp::Fma, [a.clone(), b.clone(), (*c).clone()].into());
    let product = Value::Op(ElementOp::Mul, [a.clone(), b.clone()].into());
    let is_zero_beyond = limits.is_zero && of_factor.of.iter().all(|(sum, limit)| limits.of.limit(sum) == Some(limit));
    let beyond = if is_zero_beyond {
        own
    } else {
        let sum = Value::Op(ElementOp::Add, [own.clone(), (*c).clone()].into());
        within(counting, sum, own)
    };
    (within(counting, fused, product), beyond)
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

/// Whether an operand is a factor of a product that is fused into a sum.
fn is_factor(op: ElementOp, place: usize) -> bool {
    matches!((op, place), (ElementOp::Fma, 0 | 1))
}

/// Whether an operand is a term of a sum.
fn is_term(op: ElementOp, place: usize) -> bool {
    matches!((op, place), (ElementOp::Add, _) | (ElementOp::Sub, 1) | (ElementOp::Fma, 2))
}

/// Whether an operand with these limits changes nothing where it is invalid: a term that is 0 there.
fn is_neutral(op: ElementOp, place: usize, limits: &Limits) -> bool {
    (limits.of.is_empty() && limits.lost.is_none()) || (is_term(op, place) && limits.is_zero)
}

/// The value with sums that have the product of these very factors as their first term fused, also under conditions.
fn with_fused(value: &Value, factors: &Arc<[Value]>) -> Value {
    match value {
        Value::Op(ElementOp::Add, terms) => match &terms[..] {
            [Value::Op(ElementOp::Mul, of), addend] if Arc::ptr_eq(of, factors) => {
                Value::Op(ElementOp::Fma, factors.iter().chain([addend]).cloned().collect())
            }
            _ => value.clone(),
        },
        Value::Op(ElementOp::Select, operands) => {
            Value::Op(ElementOp::Select, operands.iter().map(|of| with_fused(of, factors)).collect())
        }
        other => other.clone(),
    }
}

/// A value within limits, and another beyond them.
fn within(limits: &Limits, value: Value, beyond: Value) -> Value {
    limits
        .conditions()
        .fold(value, |value, is_valid| Value::Op(ElementOp::Select, [is_valid, value, beyond.clone()].into()))
}
