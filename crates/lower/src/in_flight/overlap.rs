//! Whether tiles that are stored in different iterations, or by different copies, are apart.
//!
//! Copies by the engine are in no order, so those that may store to the same elements wait for each other. This is decided
//! dimension by dimension; what is not found apart so only waits.

use num_integer::Integer;
use tilewright_expr::linear::linear;
use tilewright_expr::{Expr, Var};
use tilewright_ir::thread::Memory;
use tilewright_ir::tile::EngineMove;
use tilewright_ir::{Counter, Handle};

use crate::sync::LoopRef;

/// A tile that a copy stores to a tensor, in the loops around the copy.
pub(super) struct Stored<'a> {
    /// The plan of the copy.
    pub(super) plan: usize,
    pub(super) moved: &'a EngineMove,
    /// The tensor.
    pub(super) memory: Handle<Memory>,
    pub(super) loops: &'a [LoopRef],
}

impl Stored<'_> {
    /// Whether each iteration of each loop stores a tile of its own: for each loop there is a dimension in which the tile
    /// moves on by its side or more, whatever the other loops do.
    fn differs_in_each_iteration(&self) -> bool {
        let several =
            self.loops.iter().filter(|around| around.counter.repeats() && !around.own.contains_key(&self.memory));
        let EngineMove { starts, sides, .. } = self.moved;
        let moves_on = |start: &Expr, side: i64, counter: &Counter| {
            let others = self.loops.iter().filter(|other| other.counter.var != counter.var);
            let depends_on_others = others.into_iter().any(|other| start.mentions(&other.counter.var));
            !depends_on_others
                && factor(start, &counter.var)
                    .is_some_and(|factor| factor.saturating_mul(counter.step).saturating_abs() >= side)
        };
        several
            .into_iter()
            .all(|around| starts.iter().zip(sides).any(|(start, side)| moves_on(start, *side, &around.counter)))
    }

    /// Whether the copies of two plans are in no need of an order, whatever the iterations of both are: both combine in
    /// the same way, or they never store to the same elements.
    pub(super) fn is_apart(&self, other: &Stored<'_>) -> bool {
        let combines_alike = self.moved.combined.is_some() && self.moved.combined == other.moved.combined;
        combines_alike
            || if self.plan == other.plan {
                self.differs_in_each_iteration()
            } else {
                self.is_beside(other) || self.is_in_other_turn(other)
            }
    }

    /// Whether the two are in the turns of different roles.
    fn is_in_other_turn(&self, other: &Stored<'_>) -> bool {
        let is_apart = |a: &LoopRef| other.loops.iter().any(|b| a.is_in_other_turn(b, self.memory));
        self.memory == other.memory && self.loops.iter().any(is_apart)
    }

    /// Whether in some dimension the tiles of two copies are never at the same places.
    fn is_beside(&self, other: &Stored<'_>) -> bool {
        let (a, b) = (self.moved, other.moved);
        let is_same_tensor = (a.tensor, a.start, &a.extents, &a.strides) == (b.tensor, b.start, &b.extents, &b.strides);
        let loops: Vec<&Counter> = self.loops.iter().chain(other.loops).map(|around| &around.counter).collect();
        let mut dimensions = a.starts.iter().zip(&b.starts).zip(a.sides.iter().zip(&b.sides));
        is_same_tensor
            && dimensions.any(|((first, second), (of_first, of_second))| {
                distance([first, second], &loops).is_some_and(|distance| distance.is_beyond([*of_first, *of_second]))
            })
    }
}

/// How far one position may be behind another one: a number, plus any multiple of a unit.
struct Distance {
    number: i64,
    unit: i64,
}

impl Distance {
    /// Whether tiles with these sides at the two positions never overlap.
    fn is_beyond(&self, [of_first, of_second]: [i64; 2]) -> bool {
        let Distance { number, unit } = *self;
        if unit == 0 {
            return number >= of_first || number <= -of_second;
        }
        let after = number.rem_euclid(unit);
        after >= of_first && unit - after >= of_second
    }
}

/// How far the second of two positions is behind the first, each in any iteration of the loops. `None` if that is not known.
fn distance([first, second]: [&Expr; 2], loops: &[&Counter]) -> Option<Distance> {
    let (mut fixed, mut unit) = ([Vec::new(), Vec::new()], 0);
    let sums = [first, second].map(linear);
    for (sum, fixed) in sums.iter().zip(&mut fixed) {
        for (factor, atom) in &sum.terms {
            match loops.iter().find(|counter| atom.mentions(&counter.var)) {
                Some(counter) if *atom == Expr::var(&counter.var) => {
                    unit = unit.gcd(&factor.checked_mul(unit_of(counter))?.checked_abs()?)
                }
                Some(_) => return None,
                None => fixed.push((*factor, atom.clone())),
            }
        }
    }
    let number = sums[1].constant.checked_sub(sums[0].constant)?;
    (fixed[0] == fixed[1]).then_some(Distance { number, unit })
}

/// A divisor of every value of a loop's variable.
fn unit_of(counter: &Counter) -> i64 {
    counter.step.gcd(&counter.begin.as_const().unwrap_or(counter.begin.multiple()))
}

/// The multiple of a variable that an expression is the sum of, with something that does not depend on the variable.
fn factor(expr: &Expr, var: &Var) -> Option<i64> {
    let terms = linear(expr).terms;
    let (own, others): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, atom)| *atom == Expr::var(var));
    let depends = others.iter().any(|(_, atom)| atom.mentions(var));
    own.first().map(|(factor, _)| *factor).filter(|_| !depends)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether rows of these sides at two positions, which mention `t` and `bx`, never overlap.
    fn apart(positions: impl Fn(&Expr, &Expr) -> [Expr; 2], sides: [i64; 2], begin: i64, step: i64) -> bool {
        let (t, bx) = (Var::new("t", begin, 100), Var::new("bx", 0, 7));
        let counter = Counter { step, ..Counter::of(t.clone()) };
        let [first, second] = positions(&Expr::var(&t), &Expr::var(&bx));
        distance([&first, &second], &[&counter]).is_some_and(|distance| distance.is_beyond(sides))
    }

    #[test]
    fn rows_of_two_copies_alternate() {
        let rows = |t: &Expr, bx: &Expr| [t * 2 + bx * 128, t * 2 + bx * 128 + 1];
        assert!(apart(rows, [1, 1], 0, 1));
        assert!(!apart(rows, [2, 1], 0, 1));
        assert!(!apart(rows, [1, 2], 0, 1));
        assert!(apart(rows, [1, 3], 0, 2));
        assert!(!apart(rows, [1, 3], 1, 2));
    }

    #[test]
    fn rows_at_fixed_places_are_apart_by_their_sides() {
        let fixed = |by: i64| move |_: &Expr, bx: &Expr| [bx * 8, bx * 8 + by];
        assert!(apart(fixed(4), [4, 9], 0, 1) && !apart(fixed(3), [4, 9], 0, 1));
        assert!(apart(fixed(-9), [4, 9], 0, 1) && !apart(fixed(-8), [4, 9], 0, 1));
    }

    #[test]
    fn what_depends_on_a_loop_in_another_way_may_overlap() {
        assert!(!apart(|t, _| [t % 2, t % 2 + 1], [1, 1], 0, 1));
        assert!(!apart(|t, bx| [t.clone(), bx * 200 + 150], [1, 1], 0, 1));
        assert!(!apart(|t, _| [t.clone(), Expr::constant(100)], [1, 1], 0, 1));
    }
}
