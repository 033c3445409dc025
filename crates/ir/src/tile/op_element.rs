//! What an elementwise op does to one element.

use tilewright_expr::Var;

use crate::tile::element::{Claim, Element};
use crate::tile::kernel::Kernel;
use crate::tile::op::{Op, OpKind};
use crate::tile::tiles::Tile;
use crate::tile::value::Value;

impl Kernel {
    /// What an elementwise op does to the elements at these variables; `None` for ops of the other classes. A method of the
    /// kernel, since an op may depend on the dtypes of its buffers.
    pub fn op_element(&self, op: &Op, vars: &[Var]) -> Option<Element> {
        let access = |tile: &Tile| tile.access(vars, op.span);
        let store = |to: &Tile, value: Value| Element::Store { to: access(to), value, claim: Claim::None };
        match (op.kind, &op.operands[..]) {
            (OpKind::Copy, [dst, src]) => Some(store(dst, Value::Load(access(src)))),
            (OpKind::Fill(value), [dst]) => Some(store(dst, Value::Const(value))),
            (OpKind::AtomicAdd, [dst, src]) => {
                Some(Element::AtomicAdd { to: access(dst), value: Value::Load(access(src)) })
            }
            (OpKind::Reduce(_) | OpKind::Gemm(_) | OpKind::PermuteLayout | OpKind::ConvertLayout, _) => None,
            // The verifier rejects other numbers of operands.
            (OpKind::Copy | OpKind::Fill(_) | OpKind::AtomicAdd, _) => None,
        }
    }
}
