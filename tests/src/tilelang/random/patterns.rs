//! Indices in random programs: expressions of loop variables that stay in bounds of a dimension for any parameters.
//!
//! This holds under interval arithmetic, which the verifier uses.

use super::super::expr::{Index, IndexOp};
use super::sketch::{Form, Pattern};

/// A loop variable with its extent.
#[derive(Clone, Debug)]
pub(crate) struct LoopVar {
    pub(crate) name: String,
    pub(crate) extent: i64,
}

/// The variables of serial loops: inside an iteration, and around the nest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Serial {
    pub(crate) inner: Option<&'static str>,
    pub(crate) round: Option<&'static str>,
}

/// The inputs for an index of one dimension.
pub(crate) struct Room<'a> {
    pub(crate) var: &'a LoopVar,
    /// Another variable of the nest, or the same if there is only one.
    pub(crate) other: &'a LoopVar,
    pub(crate) serial: Serial,
    /// The extent of the dimension.
    pub(crate) extent: i64,
    /// Whether the index may be out of bounds: accesses out of bounds of a tensor in global memory are masked.
    pub(crate) may_leave: bool,
}

impl Pattern {
    /// The index in a dimension.
    pub(crate) fn index(self, room: &Room<'_>) -> Index {
        let (size, reach, by) = (room.extent, room.var.extent, self.by);
        let var = || named(&room.var.name);
        let fitted = || fitted(var(), reach, size);
        let rotated = |step: Index| modulo(plus(var(), step), size);
        match self.form {
            Form::Same => fitted(),
            Form::Reversed if reach <= size => minus(number(reach - 1), var()),
            Form::Reversed => minus(number(size - 1), fitted()),
            Form::Shifted if room.may_leave || reach + by <= size => plus(var(), number(by)),
            Form::Shifted if reach < size => plus(var(), number(size - reach)),
            Form::Shifted => fitted(),
            Form::Rotated => rotated(number(by + 1)),
            Form::Rolling => rotated(room.serial.round.map_or(number(1), named)),
            Form::Halved => self::fitted(binary(IndexOp::FloorDiv, var(), number(2)), (reach + 1) / 2, size),
            Form::Doubled => self::fitted(binary(IndexOp::Mul, var(), number(2)), 2 * reach - 1, size),
            Form::Wrapped => modulo(var(), (by + 1).min(size)),
            Form::Fixed => number(by % size),
            Form::Diagonal => rotated(named(&room.other.name)),
            Form::Inner => room.serial.inner.map_or_else(fitted, |inner| rotated(named(inner))),
        }
    }
}

pub(crate) fn number(value: i64) -> Index {
    Index::Integer(value)
}

pub(crate) fn named(name: &str) -> Index {
    Index::Variable(name.to_string())
}

pub(crate) fn plus(left: Index, right: Index) -> Index {
    if right == number(0) { left } else { binary(IndexOp::Add, left, right) }
}

pub(crate) fn times(left: Index, right: i64) -> Index {
    if right == 1 { left } else { binary(IndexOp::Mul, left, number(right)) }
}

pub(crate) fn divided(left: Index, right: i64) -> Index {
    if right == 1 { left } else { binary(IndexOp::FloorDiv, left, number(right)) }
}

pub(crate) fn modulo(left: Index, right: i64) -> Index {
    binary(IndexOp::FloorMod, left, number(right))
}

fn minus(left: Index, right: Index) -> Index {
    binary(IndexOp::Sub, left, right)
}

/// An index below `reach`, reduced to one below `size`.
fn fitted(index: Index, reach: i64, size: i64) -> Index {
    if reach <= size { index } else { modulo(index, size) }
}

fn binary(op: IndexOp, left: Index, right: Index) -> Index {
    Index::Binary(op, Box::new(left), Box::new(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form; 11] = [
        Form::Same,
        Form::Reversed,
        Form::Shifted,
        Form::Rotated,
        Form::Rolling,
        Form::Halved,
        Form::Doubled,
        Form::Wrapped,
        Form::Fixed,
        Form::Diagonal,
        Form::Inner,
    ];

    fn var(name: &str, extent: i64) -> LoopVar {
        LoopVar { name: name.to_string(), extent }
    }

    #[test]
    fn every_form_stays_inside() {
        let serial = Serial { inner: Some("r"), round: Some("k") };
        for (reach, size, by) in [(8, 8, 3), (8, 5, 7), (5, 8, 2), (1, 1, 0), (13, 1, 4)] {
            let (i, j) = (var("i", reach), var("j", 3));
            let room = Room { var: &i, other: &j, serial, extent: size, may_leave: false };
            for form in FORMS {
                let index = Pattern { form, by, is_turned: false }.index(&room);
                for (at, step) in (0..reach).flat_map(|at| (0..3).map(move |step| (at, step))) {
                    let value = index.eval(&|name| Some(if name == "i" { at } else { step }));
                    let value = value.expect("all variables are known");
                    assert!((0..size).contains(&value), "{form:?} {reach} {size} {by}: {value}");
                }
            }
        }
    }
}
