//! What a scan is: its operands, and which thread holds which elements.

use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::thread::Value;
use tilewright_ir::tile::{Kernel, Op, OpKind, Scan};
use tilewright_layout::DType;

use super::runs::{Place, Run, runs};
use crate::builder::Builder;
use crate::combine::{cast, combined, contribution, made_in};
use crate::fragment_registers::FragmentRegisters;
use crate::operand::{other_operands, whole_fragments};
use crate::refusal::Refusal;

/// What the variants of `scan` decide on.
pub(crate) struct Context {
    pub(super) attributes: Scan,
    pub(super) source: Arc<FragmentRegisters>,
    pub(super) result: Arc<FragmentRegisters>,
    /// By thread, the parts of rows that it holds.
    pub(super) runs: Vec<Vec<Run>>,
    /// Number of rows, and of elements in each.
    pub(super) rows: usize,
    pub(super) extent: usize,
    /// The index of a thread in its CTA.
    pub(super) thread: Expr,
    /// Type in which elements are combined, and that of the elements.
    pub(super) dtype: DType,
    pub(super) of: DType,
    pub(super) op: Op,
}

impl Context {
    /// Resolves the operands of a `scan`. Error: one of them is not a whole fragment, or has no layout.
    pub(super) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let (OpKind::Scan(attributes), [dst, src]) = (op.kind, &op.operands[..]) else {
            return Err(other_operands(kernel, op));
        };
        let refused = |why: String| Refusal::from(why).diagnostic(&kernel.op_title(op), op.span);
        let [result, source] = whole_fragments(builder, kernel, op, [dst, src])?;
        let extent = src.extents[attributes.dimension] as usize;
        let elements = src.elements() as usize;
        let mut of_thread = vec![Vec::new(); result.map(elements).threads()];
        for (thread, _, element) in result.map(elements).entries() {
            let [to, from] = [&result, &source].map(|held| held.slot(thread, element as i64));
            let missing = || refused(format!("thread {thread} does not hold element {element} of both"));
            let place = Place { result: to.ok_or_else(missing)?, source: from.ok_or_else(missing)? };
            let (row, at) = attributes.place_of(&src.extents, element);
            of_thread[thread].push((row, at, place));
        }
        let of = kernel.buffers[src.buffer].dtype;
        Ok(Context {
            attributes,
            source,
            result,
            runs: of_thread.into_iter().map(runs).collect(),
            rows: elements / extent,
            extent,
            thread: Expr::var(&kernel.thread()),
            dtype: made_in(of),
            of,
            op: op.clone(),
        })
    }

    /// The element of the source at a place, in the type in which elements are combined.
    pub(super) fn element(&self, place: Place) -> Value {
        contribution(self.attributes.kind, self.dtype, self.of, self.source.read(place.source))
    }

    /// Two parts as one.
    pub(super) fn combined(&self, part: Value, next: Value) -> Value {
        combined(self.attributes.kind, self.dtype, part, next)
    }

    /// A value in the type in which elements are combined, as one of their own dtype.
    pub(super) fn rounded(&self, value: Value) -> Value {
        cast(self.of, self.dtype, value)
    }
}
