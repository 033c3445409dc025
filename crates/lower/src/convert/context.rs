//! What the variants of `convert_layout` decide on.

use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::tile::{Kernel, Op};
use tilewright_layout::conversion::{Conversion, FragmentTable, convert_tables};
use tilewright_layout::map::Map;
use tilewright_layout::{DType, LayoutError};

use crate::builder::Builder;
use crate::fragment_registers::FragmentRegisters;
use crate::operand::{other_operands, unplaced};
use crate::refusal::Refusal;

/// What the variants look at.
pub(crate) struct Context {
    pub(super) source: Arc<FragmentRegisters>,
    pub(super) result: Arc<FragmentRegisters>,
    /// Which element each slot of the destination holds.
    pub(super) wanted: Map,
    pub(super) threads: usize,
    /// The index of a thread in its CTA.
    pub(super) thread: Expr,
    pub(super) dtype: DType,
    /// Plans in which each element takes one register or more.
    pub(super) in_registers: Result<Vec<Conversion>, LayoutError>,
    /// Plans in which narrow elements are packed, as in shared memory.
    pub(super) packed: Result<Vec<Conversion>, LayoutError>,
    pub(super) op: Op,
}

impl Context {
    /// The operands of a `convert_layout`. Error: one whose layout cannot be used.
    pub(super) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let [dst, src] = &op.operands[..] else { return Err(other_operands(kernel, op)) };
        let refused = |why: String| Refusal::from(why).diagnostic(&kernel.op_title(op), op.span);
        let held = |handle| {
            let owner = &kernel.buffers[kernel.storage(handle)];
            if owner.layout.is_none() {
                return Err(unplaced(op, owner));
            }
            builder.fragment_registers(kernel, handle).map_err(refused)
        };
        let (result, source) = (held(dst.buffer)?, held(src.buffer)?);
        let elements = src.elements() as usize;
        let (dtype, wanted) = (kernel.buffers[src.buffer].dtype, result.map(elements));
        let bits = 8 * dtype.bytes() as usize;
        let tables = || [&source.map(elements), &wanted].map(FragmentTable::of_map);
        let plans = |bits: usize| {
            let [from, to] = tables();
            convert_tables(from?, to?, elements, bits)
        };
        let packed = plans(bits);
        Ok(Context {
            in_registers: if bits < 32 { plans(32) } else { packed.clone() },
            packed,
            threads: kernel.threads as usize,
            thread: Expr::var(&kernel.thread()),
            source,
            result,
            wanted,
            dtype,
            op: op.clone(),
        })
    }

    /// Whether a thread holds nothing in a slot of the destination, so that anything may be written there.
    pub(super) fn may_write(&self, thread: usize, slot: usize) -> bool {
        self.wanted.at(thread, slot).is_none()
    }
}
