//! What a reduction is: its operands, which threads hold which parts, and in which type they are combined.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::thread::Value;
use tilewright_ir::tile::{Kernel, Op, OpKind, Reduce};
use tilewright_layout::DType;

use super::rows::{Order, Rows};
use crate::builder::Builder;
use crate::combine::{combined, contribution, is_idempotent, made_in};
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
    /// By thread, the rows whose result it must hold, and the slot of each.
    pub(super) owned: Vec<BTreeMap<usize, Slot>>,
    /// The parts of all rows.
    pub(super) rows: Arc<Rows>,
    /// The same, with every element counted on only one of its threads.
    pub(super) single: Arc<Rows>,
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
        let refused = |why: String| Refusal::from(why).diagnostic(&kernel.op_title(op), op.span);
        let [result, source] = whole_fragments(builder, kernel, op, [dst, src])?;
        let row_of = |element: usize| attributes.dimensions.row_of(&src.extents, element);
        let map = source.map(src.elements() as usize);
        let is_idempotent = is_idempotent(attributes.kind);
        let in_order = |order| Rows::of(&map, dst.elements() as usize, row_of, is_idempotent, order);
        let single = Rows::of(&map.once_in_place(), dst.elements() as usize, row_of, is_idempotent, Order::Rows);
        let (by_slot, by_row) = (in_order(Order::Slots), in_order(Order::Rows));
        let rows = if by_slot.complete().is_none() && by_row.complete().is_some() { by_row } else { by_slot };
        let (rows, single) = (Arc::new(rows), Arc::new(single));
        let mut owned = vec![BTreeMap::new(); map.threads()];
        for (thread, _, row) in result.map(dst.elements() as usize).entries() {
            let slot = result.slot(thread, row as i64);
            owned[thread]
                .insert(row, slot.ok_or_else(|| refused(format!("thread {thread} has no slot for row {row}")))?);
        }
        let dtypes = [dst, src].map(|tile| kernel.buffers[tile.buffer].dtype);
        let thread = Expr::var(&kernel.thread());
        Ok(Context {
            attributes,
            source,
            result,
            owned,
            rows,
            single,
            thread,
            dtype: made_in(dtypes[1]),
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

    /// The slots of a thread's results, and their rows.
    pub(super) fn slots(&self, thread: usize) -> impl Iterator<Item = (Slot, usize)> + '_ {
        self.owned[thread].iter().map(|(row, slot)| (*slot, *row))
    }
}
