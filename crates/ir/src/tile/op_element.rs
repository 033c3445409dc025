//! What an elementwise op does to one element.

use tilewright_expr::Var;

use crate::tile::atomic::{Atomic, AtomicChange};
use crate::tile::element::{Claim, ElementStmt};
use crate::tile::kernel::Kernel;
use crate::tile::op::{Op, OpKind};
use crate::tile::tiles::Tile;
use crate::tile::value::Value;

impl Kernel {
    /// What an elementwise op does to the elements at these variables; `None` for ops of the other classes. A method of the
    /// kernel, since an op may depend on the dtypes of its buffers.
    pub fn op_element(&self, op: &Op, vars: &[Var]) -> Option<ElementStmt> {
        let access = |tile: &Tile| tile.access(vars, op.span);
        let store = |to: &Tile, value: Value| ElementStmt::Store { to: access(to), value, claim: Claim::None };
        // The verifier has checked that the op has the operands of its row.
        let operand = |at: usize| &op.operands[at];
        match op.kind {
            OpKind::Copy | OpKind::CopyAsync => Some(store(operand(0), Value::Load(access(operand(1))))),
            OpKind::Fill(value) => Some(store(operand(0), Value::Const(value))),
            OpKind::Atomic(by) => {
                let (change, value) = (AtomicChange::Combine(by), Value::Load(access(operand(1))));
                Some(ElementStmt::Atomic(Atomic::new(change, access(operand(0)), value)))
            }
            OpKind::Reduce(_) | OpKind::ReduceBy(_) | OpKind::Scan(_) | OpKind::ScanBy(_) => None,
            OpKind::Gemm(_) | OpKind::GemmAsync(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
        }
    }
}
