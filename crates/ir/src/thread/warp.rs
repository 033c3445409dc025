//! Evaluates index expressions and conditions for all lanes of a warp at once.

use tilewright_expr::{EvalError, Expr, Var};
use tilewright_layout::access::LANES;

use crate::hw_index::HwIndex;
use crate::thread::program::{Cond, Program};
use crate::thread::ring::Cursor;
use crate::tile::Role;

/// A value for each lane of a warp.
pub type Lanes = [i64; LANES];

/// A set of lanes of a warp: true for those that belong to it.
pub type LaneMask = [bool; LANES];

/// A warp of a launch, with the known values of its variables.
#[derive(Clone, Debug)]
pub struct WarpState {
    /// The index of its CTA in the grid.
    cta: [i64; 3],
    /// Its index in the CTA.
    position: i64,
    /// The first warp of the role whose statements it walks through; 0 outside of roles.
    first: i64,
    /// The values of sizes, named values and loop variables, the innermost last.
    known: Vec<(Var, Lanes)>,
    /// How variables without a known value are evaluated.
    unknown: UnboundVar,
    /// The lanes for which the enclosing conditions hold.
    active: LaneMask,
}

/// How a variable is evaluated about which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnboundVar {
    /// Evaluation fails.
    Error,
    /// As the least of its values: enclosing loops are at their first iteration.
    LowerBound,
}

/// The greatest value of a size: the default where no value is given, so that nothing is masked.
pub fn largest(size: &Var) -> i64 {
    let (most, multiple) = (size.range().hi, size.multiple());
    most - most % multiple
}

impl WarpState {
    /// Warp 0 of CTA (0, 0, 0). Only its hardware indices are known, and all of its lanes are active.
    pub fn first() -> WarpState {
        WarpState {
            cta: [0; 3],
            position: 0,
            first: 0,
            known: Vec::new(),
            unknown: UnboundVar::Error,
            active: [true; LANES],
        }
    }

    /// A warp of CTA (0, 0, 0) of a program. Lanes beyond the program's threads are inactive. Sizes and ends of tensors have their greatest
    /// value, and all other variables that are not defined yet their least.
    pub fn of(program: &Program, position: i64) -> WarpState {
        let sizes = program.sizes.iter().chain(&program.ends).map(|size| (size.clone(), [largest(size); LANES]));
        let cursors = program.cursors.iter().flat_map(|(_, cursor)| cursor.vars());
        let known = sizes.chain(cursors.map(|var| (var.clone(), [0; LANES]))).collect();
        let mut warp = WarpState { position, known, unknown: UnboundVar::LowerBound, ..WarpState::first() };
        warp.active = std::array::from_fn(|lane| warp.thread(lane) < program.threads);
        warp
    }

    /// Makes it another warp of the launch; the known values of all variables except hardware indices stay.
    pub fn place(&mut self, cta: [i64; 3], position: i64) {
        self.cta = cta;
        self.position = position;
    }

    /// Enters the statements of a role, in which warps and threads are counted from the first of the role. Returns what
    /// [`WarpState::leave_role`] takes; `None` if the warp does not belong to the role.
    pub fn enter_role(&mut self, role: &Role) -> Option<i64> {
        role.has_warp(self.position).then(|| std::mem::replace(&mut self.first, role.first))
    }

    /// Leaves the statements of a role.
    pub fn leave_role(&mut self, outer: i64) {
        self.first = outer;
    }

    /// The index in the CTA of a lane's thread.
    pub fn thread(&self, lane: usize) -> i64 {
        self.position * LANES as i64 + lane as i64
    }

    /// The lanes for which the enclosing conditions hold.
    pub fn active(&self) -> &LaneMask {
        &self.active
    }

    /// Goes on by so many stages of a ring, if it is known where the warp is in it.
    pub fn advance(&mut self, cursor: &Cursor, by: i64) {
        let of = |var: &Var| self.known.iter().position(|(known, _)| known == var);
        let (stage, phase) = (of(&cursor.stage), of(&cursor.phase));
        let next = stage.map_or(0, |at| self.known[at].1[0]) + by;
        if let Some(at) = stage {
            self.known[at].1 = [next % cursor.stages; LANES];
        }
        if let Some(at) = phase.filter(|_| next / cursor.stages % 2 == 1) {
            self.known[at].1 = self.known[at].1.map(|phase| 1 - phase);
        }
    }

    /// Defines a variable with one value per lane.
    pub fn define(&mut self, var: &Var, values: Lanes) {
        self.known.push((var.clone(), values));
    }

    /// Defines a variable with the same value in all lanes. An index of the CTA moves the warp to that CTA.
    pub fn fix(&mut self, var: &Var, value: i64) {
        match HwIndex::of(var) {
            Some(HwIndex::Block(dim)) => self.cta[dim.index()] = value,
            Some(HwIndex::Tid | HwIndex::Lane | HwIndex::Warp) | None => self.define(var, [value; LANES]),
        }
    }

    /// The number of definitions, to return to with [`WarpState::rewind`].
    pub fn mark(&self) -> usize {
        self.known.len()
    }

    /// Forgets the definitions made since `mark`.
    pub fn rewind(&mut self, mark: usize) {
        self.known.truncate(mark);
    }

    /// The values of an expression in all lanes, active or not.
    pub fn eval(&self, expr: &Expr) -> Result<Lanes, EvalError> {
        expr.eval_all(&|var| self.value(var))
    }

    /// The lanes for which a condition holds, active or not.
    pub fn holds(&self, cond: &Cond) -> Result<LaneMask, EvalError> {
        let [a, b] = cond.sides();
        let (a, b) = (self.eval(a)?, self.eval(b)?);
        Ok(match cond {
            Cond::Less(..) => std::array::from_fn(|lane| a[lane] < b[lane]),
            Cond::Equal(..) => std::array::from_fn(|lane| a[lane] == b[lane]),
        })
    }

    /// Deactivates the lanes for which the condition does not hold. Returns the lanes that were active before.
    pub(super) fn narrow(&mut self, cond: &Cond) -> Result<LaneMask, EvalError> {
        let (outer, holds) = (self.active, self.holds(cond)?);
        self.active = std::array::from_fn(|lane| outer[lane] && holds[lane]);
        Ok(outer)
    }

    /// Makes exactly these lanes active.
    pub(super) fn activate(&mut self, lanes: LaneMask) {
        self.active = lanes;
    }

    fn value(&self, var: &Var) -> Option<Lanes> {
        match HwIndex::of(var) {
            Some(HwIndex::Tid) => {
                let first = self.first * LANES as i64;
                Some(std::array::from_fn(|lane| self.thread(lane) - first))
            }
            Some(HwIndex::Lane) => Some(std::array::from_fn(|lane| lane as i64)),
            Some(HwIndex::Warp) => Some([self.position - self.first; LANES]),
            Some(HwIndex::Block(dim)) => Some([self.cta[dim.index()]; LANES]),
            None => self.defined(var),
        }
    }

    fn defined(&self, var: &Var) -> Option<Lanes> {
        if let Some((_, values)) = self.known.iter().rev().find(|(known, _)| known == var) {
            return Some(*values);
        }
        match self.unknown {
            UnboundVar::Error => None,
            UnboundVar::LowerBound => Some([var.range().lo; LANES]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardware(index: HwIndex) -> Expr {
        Expr::var(&index.var(64, &[8, 8, 8].map(Expr::constant)))
    }

    #[test]
    fn hardware_indices_are_those_of_the_place() {
        let mut warp = WarpState::first();
        warp.place([5, 6, 7], 1);
        let last = |index| warp.eval(&hardware(index)).map(|values| values[31]);
        assert_eq!(HwIndex::ALL.map(last), [Ok(31), Ok(1), Ok(63), Ok(5), Ok(6), Ok(7)]);
    }

    #[test]
    fn the_innermost_of_a_name_counts_until_it_is_forgotten() {
        let (mut warp, i) = (WarpState::first(), Var::new("i", 0, 9));
        warp.fix(&i, 3);
        let mark = warp.mark();
        warp.define(&i, std::array::from_fn(|lane| lane as i64));
        assert_eq!(warp.eval(&Expr::var(&i)).map(|values| values[7]), Ok(7));
        warp.rewind(mark);
        assert_eq!(warp.eval(&Expr::var(&i)), Ok([3; LANES]));
    }

    #[test]
    fn what_is_not_known_has_no_value() {
        let i = Var::new("i", 0, 9);
        assert_eq!(WarpState::first().eval(&Expr::var(&i)), Err(EvalError::Unbound("i".to_string())));
    }

    #[test]
    fn conditions_are_judged_lane_by_lane() {
        let cond = Cond::Less(hardware(HwIndex::Lane), Expr::constant(2));
        let holds = WarpState::first().holds(&cond);
        assert_eq!(holds, Ok(std::array::from_fn(|lane| lane < 2)));
    }
}
