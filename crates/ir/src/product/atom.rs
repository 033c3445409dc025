//! Which elements of an instruction's matrices each lane of a warp holds, derived from the layouts of
//! `layout::hardware`.

use num_integer::Integer;
use tilewright_expr::Expr;
use tilewright_layout::axis::{Axis, LANEID, REG};
use tilewright_layout::hardware::{MmaOperand, MmaType, mma_fragment};
use tilewright_layout::{Digit, Iter, LayoutError, TileLayout};

use super::matrix::Matrix;
use crate::thread::MmaInst;

/// A matrix of one instruction, distributed over the lanes of a warp. A position is a line and an index along that
/// line.
///
/// Every digit of a position comes from either the lane or the register, so the position of a lane's register is the
/// sum of two positions: that of the same register in lane 0, and that of the lane's register 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// Number of lines, and of elements per line.
    extents: [i64; 2],
    /// Elements that a lane holds.
    elements_per_lane: i64,
    /// The digits of the line, and those of the index along it.
    digits: [Vec<Digit>; 2],
}

impl Atom {
    /// A matrix of an instruction. Fails if the instruction has no known fragments, or if their digits cannot be
    /// separated.
    pub(super) fn of(inst: MmaInst, matrix: Matrix) -> Result<Atom, LayoutError> {
        let info = inst.info();
        let (m, n, k) = info.shape.mnk();
        // The last entry is the operand's dimension that counts the lines.
        let (operand, element, shape, lines) = match matrix {
            Matrix::C => (MmaOperand::C, MmaType::of_dtype(info.sum)?, [m, n], 0),
            Matrix::A => (MmaOperand::A, info.element, [m, k], 0),
            Matrix::B => (MmaOperand::B, info.element, [k, n], 1),
        };
        let fragment = mma_fragment(info.shape, operand, element, None)?;
        let grouped = fragment.group(&shape)?;
        let (across, along) = (grouped.dimension(lines), grouped.dimension(1 - lines));
        let digits = [inverted(across, along)?, inverted(along, across)?];
        Ok(Atom { extents: [shape[lines], shape[1 - lines]], elements_per_lane: fragment.span_on(&REG), digits })
    }

    /// Number of lines, and of elements per line.
    pub fn extents(&self) -> [i64; 2] {
        self.extents
    }

    /// Elements that a lane holds.
    pub fn elements_per_lane(&self) -> i64 {
        self.elements_per_lane
    }

    /// The position of the element that a lane holds in a register.
    pub fn position(&self, lane: i64, register: i64) -> [i64; 2] {
        let on = |axis: &Axis, at: i64, side: usize| {
            let here = self.digits[side].iter().filter(|digit| digit.axis == *axis);
            here.map(|digit| digit.at(at) * digit.weight).sum::<i64>()
        };
        [0, 1].map(|side| on(&LANEID, lane, side) + on(&REG, register, side))
    }

    /// The position of the element that a lane holds in register 0, as expressions of the lane.
    pub fn lane_position(&self, lane: &Expr) -> [Expr; 2] {
        [0, 1].map(|side| {
            let here = self.digits[side].iter().filter(|digit| digit.axis == LANEID);
            here.fold(Expr::constant(0), |sum, digit| sum + digit.expr(lane) * digit.weight)
        })
    }

    /// How many adjacent elements a lane holds: its registers, in groups of this size, hold consecutive elements of a
    /// line.
    pub fn run(&self) -> i64 {
        let is_run = |run: &i64| {
            let is_next = |register: i64| {
                let [line, index] = self.position(0, register - register % run);
                self.position(0, register) == [line, index + register % run]
            };
            self.elements_per_lane % run == 0 && (0..self.elements_per_lane).all(is_next)
        };
        (2..=self.elements_per_lane).rev().find(is_run).unwrap_or(1)
    }

    /// The greatest common divisor of the lines, and that of the indices along them, at which the runs of lane 0 begin
    /// in every atom.
    pub fn alignment(&self) -> [i64; 2] {
        let runs = (0..self.elements_per_lane).step_by(self.run() as usize).map(|register| self.position(0, register));
        runs.fold(self.extents, |common, first| [0, 1].map(|side| common[side].gcd(&first[side])))
    }
}

/// The digits of the index on one side of a matrix; for these, the iters of the other side are replicas.
fn inverted(side: &[Iter], other: &[Iter]) -> Result<Vec<Digit>, LayoutError> {
    let layout = TileLayout::new(side.to_vec(), other.to_vec(), [])?;
    let mut digits = Vec::new();
    for axis in [LANEID, REG] {
        let inverse = layout.inverse_on(&axis).ok_or_else(|| {
            let problem = format!("the strides of {layout} on `{axis}` do not nest");
            LayoutError::Algebra { operation: "inverse by division", problem }
        })?;
        digits.extend(inverse.digits.into_iter().map(|(_, digit)| digit).filter(|digit| digit.weight != 0));
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;

    use super::*;

    fn halves(matrix: Matrix) -> Atom {
        Atom::of(MmaInst::F16K16F32, matrix).unwrap()
    }

    #[test]
    fn lanes_and_registers_say_where_an_element_is() {
        // PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
        assert_eq!(halves(Matrix::A).position(31, 6), [15, 14]);
        assert_eq!(halves(Matrix::B).position(31, 3), [7, 15]);
        assert_eq!(halves(Matrix::C).position(31, 3), [15, 7]);
    }

    #[test]
    fn a_lane_is_one_part_of_the_position() {
        let lane = Expr::var(&Var::new("lane", 0, 31));
        let [line, index] = halves(Matrix::A).lane_position(&lane);
        assert_eq!((line.to_string(), index.to_string()), ("lane/4".to_string(), "lane%4*2".to_string()));
    }

    #[test]
    fn runs_fill_a_register() {
        let of = |inst| {
            let atom = |matrix| Atom::of(inst, matrix).unwrap();
            Matrix::ALL.map(|matrix| (atom(matrix).run(), atom(matrix).alignment()))
        };
        assert_eq!(of(MmaInst::F16K16F32), [(2, [8, 8]), (2, [8, 8]), (2, [8, 8])]);
        assert_eq!(of(MmaInst::Tf32K8F32), [(2, [8, 8]), (1, [8, 4]), (1, [8, 4])]);
        assert_eq!(of(MmaInst::S8K32S32), [(2, [8, 8]), (4, [8, 16]), (4, [8, 16])]);
        assert_eq!(of(MmaInst::F64K4F64), [(2, [8, 8]), (1, [8, 4]), (1, [8, 4])]);
    }
}
