//! `ldmatrix` and `stmatrix`: lanes 0 to 7 provide the row addresses of the first matrix, and so on. Here a row is read
//! or written by the lane that provides its address, since the ISA does not specify which lane does it; the other lanes
//! exchange their elements with it through registers.

use crate::exec::access::{Access, WarpAccess, resolve_spaces};
use crate::exec::machine::Machine;
use crate::exec::matrix::{Matrix, collect, spread};
use crate::exec::undefined::{Update, matrix_lanes};
use crate::exec::warp::Warp;
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::{Space, mask};
use crate::lanes::{FULL, Lanes, lanes};
use crate::op::MatrixAccess;
use crate::report::AccessKind;
use crate::undefined::Undefined;

/// Size of a row in bytes.
const ROW_BYTES: usize = 16;

impl Machine<'_> {
    pub(crate) fn load_matrices(&mut self, warp: &mut Warp, op: &MatrixAccess) -> ExecResult<()> {
        let (addresses, row_lanes) = row_addresses(warp, op)?;
        self.must_be_defined(warp, op.at.base, row_lanes, "decide which rows are loaded")?;
        let all = rows(AccessKind::Load, &addresses, row_lanes);
        self.tally(warp.pc, &all);
        let mut matrices = [[[0u16; 8]; 8]; 4];
        let plain = self.read_plain(warp, &all, |lane, bytes| matrices[lane / 8][lane % 8] = elements(bytes));
        let (mut undefined, mut origin) = ([[[0u16; 8]; 8]; 4], None);
        for lane in lanes(row_lanes & !plain) {
            let access = row_access(warp, lane, &addresses, true);
            let slot = self.locate(Space::Shared, &access)?;
            let mut bytes = [0u8; ROW_BYTES];
            let marks = self.fetch(&slot, &access, &mut bytes)?;
            matrices[lane / 8][lane % 8] = elements(&bytes);
            let Some(marks) = marks else { continue };
            origin = origin.or(marks.iter().find(|byte| byte.is_some()).map(|byte| byte.origin));
            for (at, element) in undefined[lane / 8][lane % 8].iter_mut().enumerate() {
                *element = u16::from_le_bytes([marks[2 * at].bits as u8, marks[2 * at + 1].bits as u8]);
            }
        }
        for (d, matrix) in op.regs.iter().zip(&matrices) {
            warp.regs[*d as usize] = spread(matrix, op.transposed);
        }
        if warp.marks.is_some() || origin.is_some() {
            let marks = |matrix: &Matrix| matrix_lanes(&spread(matrix, op.transposed), origin.unwrap_or(0));
            let each = op.regs.iter().zip(&undefined).map(|(d, matrix)| Update::Reg(*d, marks(matrix)));
            warp.update_marks(FULL, each.collect());
        }
        Ok(())
    }

    pub(crate) fn store_matrices(&mut self, warp: &Warp, op: &MatrixAccess) -> ExecResult<()> {
        let (addresses, row_lanes) = row_addresses(warp, op)?;
        self.must_be_defined(warp, op.at.base, row_lanes, "decide where rows are stored")?;
        self.tally(warp.pc, &rows(AccessKind::Store, &addresses, row_lanes));
        let read = |reg: &u32| collect(&warp.regs[*reg as usize], op.transposed);
        let matrices: Vec<Matrix> = op.regs.iter().map(read).collect();
        let marks = |reg: &u32| std::array::from_fn(|lane| warp.undefined(*reg, lane).bits);
        let undefined: Vec<Matrix> = op.regs.iter().map(|reg| collect(&marks(reg), op.transposed)).collect();
        let origin = op.regs.iter().find_map(|reg| warp.undefined_in(*reg, FULL));
        for lane in lanes(row_lanes) {
            let access = row_access(warp, lane, &addresses, false);
            let slot = self.locate(Space::Shared, &access)?;
            let mut bytes = [0u8; ROW_BYTES];
            for (pair, element) in bytes.chunks_exact_mut(2).zip(&matrices[lane / 8][lane % 8]) {
                pair.copy_from_slice(&element.to_le_bytes());
            }
            let byte = |bits: u8| Undefined::new(bits.into(), origin.unwrap_or(0));
            let row: Vec<Undefined> = match origin {
                Some(_) => undefined[lane / 8][lane % 8].iter().flat_map(|bits| bits.to_le_bytes().map(byte)).collect(),
                None => Vec::new(),
            };
            self.put(&slot, &access, &bytes, &row)?;
        }
        Ok(())
    }
}

/// The elements of a row.
fn elements(bytes: &[u8]) -> [u16; 8] {
    std::array::from_fn(|at| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]))
}

/// The row address of each lane, and the mask of lanes that provide one.
fn row_addresses(warp: &Warp, op: &MatrixAccess) -> ExecResult<(Lanes, u32)> {
    let row_lanes = mask(8 * op.regs.len() as u32) as u32;
    let (addresses, parts) = resolve_spaces(&warp.regs, &op.at, row_lanes);
    let outside = parts.iter().filter(|(space, _)| *space != Space::Shared);
    let outside = outside.fold(0, |all, (_, lanes)| all | lanes);
    if outside != 0 {
        let message = "the address of a matrix row is outside shared memory";
        return Err(RaisedFault::new(FaultKind::IllegalInstruction, outside, message));
    }
    Ok((addresses, row_lanes))
}

/// The access to all rows.
fn rows(kind: AccessKind, addresses: &Lanes, exec: u32) -> WarpAccess<'_> {
    WarpAccess::new(Space::Shared, kind, (addresses, exec), ROW_BYTES as u32)
}

fn row_access(warp: &Warp, lane: usize, addresses: &Lanes, is_read: bool) -> Access {
    Access::new(warp, lane, addresses[lane], ROW_BYTES, is_read)
}
