//! Element operations on integers: comparisons, operations that index expressions also have, and the ranges of results.

use tilewright_expr::ValueRange;

use crate::tile::value::ElementOp;

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
}

impl Comparison {
    /// Whether it holds for two integers.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Lt => a < b,
            Comparison::Le => a <= b,
            Comparison::Gt => a > b,
            Comparison::Ge => a >= b,
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
        }
    }

    /// The comparison that holds where this one does not.
    pub fn opposite(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Ge,
            Comparison::Le => Comparison::Gt,
            Comparison::Gt => Comparison::Le,
            Comparison::Ge => Comparison::Lt,
            Comparison::Eq => Comparison::Ne,
            Comparison::Ne => Comparison::Eq,
        }
    }

    /// The same comparison with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            Comparison::Eq => Comparison::Eq,
            Comparison::Ne => Comparison::Ne,
        }
    }
}

/// An operation that index expressions also have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOp {
    /// Sum of two.
    Add,
    /// Difference of two.
    Sub,
    /// Product of two.
    Mul,
    /// The negative of one.
    Neg,
}

/// The least and the greatest of some integers; wide enough for every integer dtype.
pub type IntegerRange = (i128, i128);

/// The least number with only ones as binary digits that is not less than a number that is not negative.
fn all_ones(number: i128) -> i128 {
    match number.leading_zeros() {
        0 | 1 => i128::MAX,
        zeros => (1 << (i128::BITS - zeros)) - 1,
    }
}

/// The range of a number shifted by `counts`: `ends` gives its ends for a count, and `lost` are those for negative ones.
fn shifted(counts: IntegerRange, ends: impl Fn(u32) -> [i128; 2], lost: [i128; 2]) -> Option<IntegerRange> {
    // Beyond all bits of every dtype.
    const MOST: i128 = 100;
    let count = |count: i128| count.clamp(0, MOST) as u32;
    let mut all: Vec<i128> = Vec::new();
    if counts.1 >= 0 {
        all.extend(ends(count(counts.0)));
        all.extend(ends(count(counts.1)));
    }
    if counts.0 < 0 {
        all.extend(lost);
    }
    Some((*all.iter().min()?, *all.iter().max()?))
}

impl ElementOp {
    /// The comparison that it performs; `None` for other ops.
    pub fn comparison(self) -> Option<Comparison> {
        match self {
            ElementOp::Lt => Some(Comparison::Lt),
            ElementOp::Le => Some(Comparison::Le),
            ElementOp::Gt => Some(Comparison::Gt),
            ElementOp::Ge => Some(Comparison::Ge),
            ElementOp::Eq => Some(Comparison::Eq),
            ElementOp::Ne => Some(Comparison::Ne),
            ElementOp::Add | ElementOp::Sub | ElementOp::Mul | ElementOp::Div | ElementOp::Rem => None,
            ElementOp::Max | ElementOp::Min | ElementOp::Neg | ElementOp::Abs => None,
            ElementOp::And | ElementOp::Or | ElementOp::Xor | ElementOp::Not | ElementOp::Shl | ElementOp::Shr => None,
            ElementOp::Fma | ElementOp::Rounded | ElementOp::Select | ElementOp::Function(_) => None,
        }
    }

    /// The same operation on index expressions; `None` for ops that index expressions do not have.
    pub fn index_op(self) -> Option<IndexOp> {
        match self {
            ElementOp::Add => Some(IndexOp::Add),
            ElementOp::Sub => Some(IndexOp::Sub),
            ElementOp::Mul => Some(IndexOp::Mul),
            ElementOp::Neg => Some(IndexOp::Neg),
            ElementOp::Div | ElementOp::Rem | ElementOp::Max | ElementOp::Min | ElementOp::Abs => None,
            ElementOp::And | ElementOp::Or | ElementOp::Xor | ElementOp::Not | ElementOp::Shl | ElementOp::Shr => None,
            ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge | ElementOp::Eq | ElementOp::Ne => None,
            ElementOp::Fma | ElementOp::Rounded | ElementOp::Select | ElementOp::Function(_) => None,
        }
    }

    /// The range of its result for integers of these ranges, computed exactly; `None` for ops whose results are not
    /// integers. The ends are clamped to 64 bits.
    pub fn integer_range(self, operands: &[ValueRange]) -> Option<ValueRange> {
        let operands: Vec<IntegerRange> = operands.iter().map(|range| (range.lo.into(), range.hi.into())).collect();
        let end = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        self.exact_range(&operands).map(|(lo, hi)| ValueRange::new(end(lo), end(hi)))
    }

    /// The range of its result for integers of these ranges, which may be empty, computed exactly; `None` for ops whose
    /// results are not integers, and for a wrong number of operands. `Select` takes two, without the condition.
    pub fn exact_range(self, operands: &[IntegerRange]) -> Option<IntegerRange> {
        let hull = |ends: &[i128]| Some((*ends.iter().min()?, *ends.iter().max()?));
        let magnitude = |(lo, hi): IntegerRange| lo.saturating_abs().max(hi.saturating_abs());
        match (self, operands) {
            (ElementOp::Add, [a, b]) => Some((a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            (ElementOp::Sub, [a, b]) => Some((a.0.saturating_sub(b.1), a.1.saturating_sub(b.0))),
            (ElementOp::Mul, [a, b]) => {
                let product = |a: i128, b: i128| a.saturating_mul(b);
                hull(&[product(a.0, b.0), product(a.0, b.1), product(a.1, b.0), product(a.1, b.1)])
            }
            // Under conditions that never hold, a range is empty.
            (ElementOp::Div, [a, b]) if b.0 <= b.1 && (b.0 > 0 || b.1 < 0) => {
                hull(&[a.0 / b.0, a.0 / b.1, a.1 / b.0, a.1 / b.1])
            }
            // A quotient is no larger in magnitude than the dividend, and a division by 0 gives 0.
            (ElementOp::Div, [a, b]) => {
                let least = if a.0 < 0 || b.0 < 0 { -magnitude(*a) } else { 0 };
                Some((least, magnitude(*a)))
            }
            (ElementOp::Max, [a, b]) => Some((a.0.max(b.0), a.1.max(b.1))),
            (ElementOp::Min, [a, b]) => Some((a.0.min(b.0), a.1.min(b.1))),
            (ElementOp::Neg, [a]) => Some((a.1.saturating_neg(), a.0.saturating_neg())),
            (ElementOp::Abs, [a]) if a.0 >= 0 => Some(*a),
            (ElementOp::Abs, [a]) => Some((0, magnitude(*a))),
            (ElementOp::Rounded, [a]) => Some(*a),
            (ElementOp::Select, [a, b]) => Some((a.0.min(b.0), a.1.max(b.1))),
            (ElementOp::Rem, [a, b]) => {
                // The remainder is no larger than the dividend, and smaller than a divisor that is not 0.
                let most = if b.0 <= 0 && b.1 >= 0 { magnitude(*a) } else { magnitude(*a).min(magnitude(*b) - 1) };
                Some((if a.0 < 0 { -most } else { 0 }, if a.1 > 0 { most } else { 0 }))
            }
            (ElementOp::And, [a, b]) if a.0 >= 0 || b.0 >= 0 => {
                let most = [a, b].iter().filter(|range| range.0 >= 0).map(|range| range.1).min()?;
                Some((0, most))
            }
            (ElementOp::Or, [a, b]) if a.0 >= 0 && b.0 >= 0 => Some((a.0.max(b.0), all_ones(a.1.max(b.1)))),
            (ElementOp::Xor, [a, b]) if a.0 >= 0 && b.0 >= 0 => Some((0, all_ones(a.1.max(b.1)))),
            (ElementOp::And | ElementOp::Or | ElementOp::Xor, [a, b]) => {
                let bits = all_ones(magnitude(*a).max(magnitude(*b)));
                Some((-bits - 1, bits))
            }
            (ElementOp::Not, [a]) => Some((-1 - a.1, -1 - a.0)),
            (ElementOp::Shl, [a, b]) => {
                let times = |value: i128, by: u32| value.saturating_mul(1 << by);
                shifted(*b, |by| [times(a.0, by), times(a.1, by)], [0, 0])
            }
            (ElementOp::Shr, [a, b]) => shifted(*b, |by| [a.0 >> by, a.1 >> by], [a.0 >> 127, a.1 >> 127]),
            // A wrong number of operands.
            (
                ElementOp::Add
                | ElementOp::Sub
                | ElementOp::Mul
                | ElementOp::Div
                | ElementOp::Rem
                | ElementOp::Max
                | ElementOp::Min
                | ElementOp::Neg
                | ElementOp::Abs
                | ElementOp::And
                | ElementOp::Or
                | ElementOp::Xor
                | ElementOp::Not
                | ElementOp::Shl
                | ElementOp::Shr
                | ElementOp::Rounded
                | ElementOp::Select,
                _,
            ) => None,
            // Ops whose results are not integers.
            (ElementOp::Fma | ElementOp::Function(_), _) => None,
            (ElementOp::Lt | ElementOp::Le | ElementOp::Gt | ElementOp::Ge | ElementOp::Eq | ElementOp::Ne, _) => None,
        }
    }
}
