//! What a reduction is: its operands, which threads hold which parts, and in which type they are combined.

use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::thread::Value;
use tilewright_ir::tile::{Kernel, Op, OpKind, Reduce, combined_in};
use tilewright_layout::DType;

use super::holders::{Holders, Owned, owned};
use crate::builder::Builder;
use crate::combine::{combined, contribution, is_idempotent};
use crate::fragment_registers::{FragmentRegisters, Slot};
use crate::operand::{other_operands, whole_fragments};
use crate::refusal::Refusal;

/// What the variants of `reduce` decide on.
pub(crate) struct Context {
    /// What to reduce: the kind, the dimension, and whether the old result is cleared.
    pub(super) attributes: Reduce,
    /// The fragment that is reduced.
    pub(super) source: Arc<FragmentRegisters>,
    /// The fragment of the results.
    pub(super) result: Arc<FragmentRegisters>,
    /// Which threads have parts of rows, and which must hold results.
    pub(super) holders: Holders,
    /// The index of a thread in its CTA.
    pub(super) thread: Expr,
    /// Type in which parts are combined.
    pub(super) dtype: DType,
    /// Types of the result's and of the source's elements.
    pub(super) dtypes: [DType; 2],
    pub(super) op: Op,
}

impl Context {
    /// Resolves the operands of a `reduce`. Error: one of them is not a whole fragment, or has no layout.
    pub(super) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let (OpKind::Reduce(attributes), [dst, src]) = (op.kind, &op.operands[..]) else {
            return Err(other_operands(kernel, op));
        };
        let refused = |why: Refusal| why.diagnostic(&kernel.op_title(op), op.span);
        let [result, source] = whole_fragments(builder, kernel, op, [dst, src])?;
        let row_of = |element: usize| attributes.dimensions.row_of(&src.extents, element);
        let (map, rows) = (source.map(src.elements() as usize), dst.elements() as usize);
        let owned = owned(&result, rows).map_err(refused)?;
        let holders = Holders::of(&map, rows, row_of, is_idempotent(attributes.kind), vec![owned]);
        let dtypes = [dst, src].map(|tile| kernel.buffers[tile.buffer].dtype);
        let thread = Expr::var(&kernel.thread());
        Ok(Context {
            attributes,
            source,
            result,
            holders,
            thread,
            dtype: combined_in(dtypes[1]),
            dtypes,
            op: op.clone(),
        })
    }

    /// The element of the source in a slot, in the type in which parts are combined.
    pub(super) fn element(&self, slot: usize) -> Value {
        contribution(self.attributes.kind, self.dtype, self.dtypes[1], self.source.in_slot(slot))
    }

    /// A part with the element of the source in a slot combined with it.
    pub(super) fn with_element(&self, part: Value, slot: usize) -> Value {
        combined(self.attributes.kind, self.dtype, part, self.element(slot))
    }

    /// Whether the results are in other registers than the source.
    pub(super) fn is_apart(&self) -> bool {
        self.source.array != self.result.array
    }

    /// Whether a thread may write any value to a register: it has no result there, and the old value is not read.
    pub(super) fn may_write(&self, thread: usize, slot: Slot) -> bool {
        self.attributes.clear && !self.slots(thread).any(|(known, _)| known.register == slot.register)
    }

    /// By thread, the rows whose result it must hold, and the slot of each.
    pub(super) fn owned(&self) -> &Owned {
        &self.holders.owned[0]
    }

    /// The slots of a thread's results, and their rows.
    pub(super) fn slots(&self, thread: usize) -> impl Iterator<Item = (Slot, usize)> + '_ {
        self.owned()[thread].iter().map(|(row, slot)| (*slot, *row))
    }
}
