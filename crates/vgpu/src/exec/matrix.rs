//! Instructions on matrices that are distributed over a warp, and the layout of 8 x 8 16-bit elements in one register
//! per lane.

use crate::exec::machine::Machine;
use crate::exec::undefined::{self, Update, matrix_lanes};
use crate::exec::warp::Warp;
use crate::exec::{double_mma, mma};
use crate::fault::ExecResult;
use crate::lanes::{FULL, Lanes};
use crate::op::MatrixOp;

/// Rows of 16-bit elements.
pub(crate) type Matrix = [[u16; 8]; 8];

impl Machine<'_> {
    pub(crate) fn matrix(&mut self, warp: &mut Warp, exec: u32, op: &MatrixOp) -> ExecResult<()> {
        if !self.gather_all(warp, exec)? {
            return Ok(());
        }
        match op {
            MatrixOp::Mma(product) => {
                let updates = warp.marks.is_some().then(|| undefined::undefined_mma(warp, product));
                mma::execute(&mut warp.regs, product);
                updates.into_iter().for_each(|updates| warp.update_marks(FULL, updates));
            }
            MatrixOp::DoubleMma(product) => {
                let updates = warp.marks.is_some().then(|| undefined::undefined_double_mma(warp, product));
                double_mma::execute(&mut warp.regs, product);
                updates.into_iter().for_each(|updates| warp.update_marks(FULL, updates));
            }
            MatrixOp::Load(access) => self.load_matrices(warp, access)?,
            MatrixOp::Store(access) => self.store_matrices(warp, access)?,
            MatrixOp::Transpose { d, a } => {
                let matrix = collect(&warp.regs[*a as usize], false);
                warp.regs[*d as usize] = spread(&matrix, true);
                if warp.marks.is_some() {
                    let marks = std::array::from_fn(|lane| warp.undefined(*a, lane).bits);
                    let origin = warp.undefined_in(*a, FULL).unwrap_or(0);
                    let turned = matrix_lanes(&spread(&collect(&marks, false), true), origin);
                    warp.update_marks(FULL, vec![Update::Reg(*d, turned)]);
                }
            }
        }
        warp.pc += 1;
        Ok(())
    }
}

/// The register of each lane: lane `l` holds elements `2 * (l % 4)` (lower half) and `2 * (l % 4) + 1` (upper half) of
/// row `l / 4`, or of column `l / 4` if `transposed` is set (PTX ISA, section "Warp-level matrix load instruction:
/// ldmatrix").
pub(crate) fn spread(matrix: &Matrix, transposed: bool) -> Lanes {
    let mut out = [0u64; 32];
    for (lane, word) in out.iter_mut().enumerate() {
        let element = |half: usize| {
            let (line, at) = (lane / 4, lane % 4 * 2 + half);
            u64::from(if transposed { matrix[at][line] } else { matrix[line][at] })
        };
        *word = element(1) << 16 | element(0);
    }
    out
}

/// The matrix held in a register: the inverse of [`spread`].
pub(crate) fn collect(register: &Lanes, transposed: bool) -> Matrix {
    let mut matrix = [[0u16; 8]; 8];
    for (lane, word) in register.iter().enumerate() {
        for half in 0..2 {
            let (line, at) = (lane / 4, lane % 4 * 2 + half);
            let slot = if transposed { &mut matrix[at][line] } else { &mut matrix[line][at] };
            *slot = (word >> (16 * half)) as u16;
        }
    }
    matrix
}
