//! `ldmatrix` and `stmatrix`: lanes 0 to 7 give the addresses of the rows of the first matrix, and so on. A row is
//! read or written by the lane that gives its address, which is what the ISA leaves open; the other lanes get or give
//! their elements through registers.

use crate::exec::Machine;
use crate::exec::matrix::{Matrix, collect, spread};
use crate::exec::place::{Access, split};
use crate::exec::warp::{Lanes, Warp, lanes};
use crate::fault::{Exec, FaultKind, Stop};
use crate::isa::{Space, mask};
use crate::op::MatrixAccess;
use crate::report::AccessKind;

/// Bytes of a row.
const ROW_BYTES: usize = 16;

impl Machine<'_> {
    pub(crate) fn load_matrices(&mut self, warp: &mut Warp, op: &MatrixAccess) -> Exec<()> {
        let (addresses, givers) = row_addresses(warp, op)?;
        self.tally(warp.pc, Space::Shared, AccessKind::Load, &addresses, givers, ROW_BYTES as u32);
        let mut matrices = [[[0u16; 8]; 8]; 4];
        for lane in lanes(givers) {
            let access = row_access(warp, lane, &addresses, true);
            let slot = self.locate(Space::Shared, &access)?;
            let mut bytes = [0u8; ROW_BYTES];
            self.fetch(&slot, &access, &mut bytes)?;
            for (element, pair) in matrices[lane / 8][lane % 8].iter_mut().zip(bytes.chunks_exact(2)) {
                *element = u16::from_le_bytes([pair[0], pair[1]]);
            }
        }
        for (d, matrix) in op.regs.iter().zip(&matrices) {
            warp.regs[*d as usize] = spread(matrix, op.transposed);
        }
        Ok(())
    }

    pub(crate) fn store_matrices(&mut self, warp: &Warp, op: &MatrixAccess) -> Exec<()> {
        let (addresses, givers) = row_addresses(warp, op)?;
        self.tally(warp.pc, Space::Shared, AccessKind::Store, &addresses, givers, ROW_BYTES as u32);
        let read = |reg: &u32| collect(&warp.regs[*reg as usize], op.transposed);
        let matrices: Vec<Matrix> = op.regs.iter().map(read).collect();
        for lane in lanes(givers) {
            let access = row_access(warp, lane, &addresses, false);
            let slot = self.locate(Space::Shared, &access)?;
            let mut bytes = [0u8; ROW_BYTES];
            for (pair, element) in bytes.chunks_exact_mut(2).zip(&matrices[lane / 8][lane % 8]) {
                pair.copy_from_slice(&element.to_le_bytes());
            }
            self.put(&slot, &access, &bytes)?;
        }
        Ok(())
    }
}

/// The address that each lane gives, and which lanes give one.
fn row_addresses(warp: &Warp, op: &MatrixAccess) -> Exec<(Lanes, u32)> {
    let givers = mask(8 * op.regs.len() as u32) as u32;
    let (addresses, parts) = split(&warp.regs, &op.at, givers);
    let outside = parts.iter().filter(|(space, _)| *space != Space::Shared);
    let outside = outside.fold(0, |all, (_, lanes)| all | lanes);
    if outside != 0 {
        let message = "the row of a matrix outside shared memory";
        return Err(Stop::new(FaultKind::IllegalInstruction, outside, message));
    }
    Ok((addresses, givers))
}

fn row_access(warp: &Warp, lane: usize, addresses: &Lanes, is_read: bool) -> Access {
    let (thread, address, pc) = (warp.thread(lane), addresses[lane], warp.pc);
    Access { lane, thread, address, len: ROW_BYTES, pc, strong: false, is_read }
}
