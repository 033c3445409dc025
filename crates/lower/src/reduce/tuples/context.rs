//! What a reduction of tuples is: its operands, its function, and which threads hold which parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Scalar;
use tilewright_ir::tile::{Kernel, Op, OpKind, ReduceBy, Tile};
use tilewright_layout::DType;
use tilewright_layout::map::Map;

use crate::builder::Builder;
use crate::fragment_registers::{FragmentRegisters, Slot};
use crate::operand::{other_operands, whole_fragments};
use crate::reduce::holders::{Holders, owned};
use crate::refusal::Refusal;
use crate::tuples::Function;

/// One value of the tuples.
pub(crate) struct TupleValue {
    /// The name of the fragment of its results.
    pub(super) name: String,
    pub(super) source: Arc<FragmentRegisters>,
    pub(super) result: Arc<FragmentRegisters>,
    pub(super) dtype: DType,
    pub(super) identity: Scalar,
}

/// What the variants of `reduce_by` decide on.
pub(crate) struct TupleContext {
    pub(in crate::reduce) by: ReduceBy,
    pub(in crate::reduce) values: Vec<TupleValue>,
    pub(super) function: Function,
    /// The elements of the sources that each thread has of all values; slots are those of the first source.
    pub(super) held: Map,
    /// Which threads have parts of rows, and which must hold results.
    pub(in crate::reduce) holders: Holders,
    /// The index of a thread in its CTA, and of its lane.
    pub(super) thread: Expr,
    pub(super) lane: Expr,
    pub(super) op: Op,
}

impl TupleContext {
    /// Resolves the operands of a `reduce_by`. Error: one of them is not a whole fragment, or has no layout.
    pub(in crate::reduce) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<TupleContext, Diagnostic> {
        let OpKind::ReduceBy(by) = op.kind else { return Err(other_operands(kernel, op)) };
        let Some((destinations, sources)) = op.operands.split_at_checked(by.values) else {
            return Err(other_operands(kernel, op));
        };
        let combiner = &kernel.combiners[by.combiner];
        let mut values = Vec::with_capacity(by.values);
        for ((dst, src), identity) in destinations.iter().zip(sources).zip(&combiner.identity) {
            let [result, source] = whole_fragments(builder, kernel, op, [dst, src])?;
            let buffer = &kernel.buffers[dst.buffer];
            let (name, dtype) = (buffer.name.clone(), buffer.dtype);
            values.push(TupleValue { name, source, result, dtype, identity: *identity });
        }
        let [Tile { extents, .. }, ..] = sources else { return Err(other_operands(kernel, op)) };
        let refused = |why: Refusal| why.diagnostic(&kernel.op_title(op), op.span);
        let row_of = |element: usize| by.dimensions.row_of(extents, element);
        let (held, rows) = (held_by_all(&values, sources[0].elements()), destinations[0].elements() as usize);
        let of_results = values.iter().map(|value| owned(&value.result, rows)).collect::<Result<_, _>>();
        let holders = Holders::of(&held, rows, row_of, false, of_results.map_err(refused)?);
        let (thread, lane) = (Expr::var(&kernel.thread()), Expr::var(&kernel.lane()));
        let function = Function::of(combiner, kernel, builder);
        Ok(TupleContext { by, values, function, held, holders, thread, lane, op: op.clone() })
    }

    /// How many values are shuffled in an exchange of so many steps after which every lane has the whole, or only the first
    /// of its group: if exchanging tuples may change a result, the first lane passes it on.
    pub(in crate::reduce) fn shuffles(&self, steps: usize, everyone: bool) -> usize {
        let is_passed_on = steps > 0 && everyone && !self.function.is_symmetric;
        self.values.len() * (steps + usize::from(is_passed_on))
    }

    /// The slots of the tuple that a thread has in a slot of [`TupleContext::held`].
    pub(super) fn slots(&self, thread: usize, slot: usize) -> Option<Vec<Slot>> {
        let element = self.held.at(thread, slot)? as i64;
        self.values.iter().map(|value| value.source.slot(thread, element)).collect()
    }

    /// The slots of the results of a row that a thread must hold, for each value.
    pub(super) fn results(&self, thread: usize, row: usize) -> Vec<Option<Slot>> {
        self.holders.owned.iter().map(|owned| owned[thread].get(&row).copied()).collect()
    }

    /// By thread, the rows of which it must hold results, in order.
    pub(super) fn wanted(&self) -> Vec<Vec<usize>> {
        let rows_of = |thread: usize| {
            let rows: BTreeSet<usize> =
                self.holders.owned.iter().flat_map(|owned| owned[thread].keys().copied()).collect();
            rows.into_iter().collect()
        };
        (0..self.held.threads()).map(rows_of).collect()
    }

    /// Whether a thread may write any value to these registers: it has no results there, and old values are not read.
    pub(super) fn may_write(&self, thread: usize, slots: &[Option<Slot>]) -> bool {
        let is_free = |(owned, slot): (&Vec<BTreeMap<usize, Slot>>, &Option<Slot>)| {
            slot.is_none_or(|slot| owned[thread].values().all(|known| known.register != slot.register))
        };
        self.by.clear && self.holders.owned.iter().zip(slots).all(is_free)
    }
}

/// The elements that each thread has of all sources, in the slots of the first.
fn held_by_all(values: &[TupleValue], elements: i64) -> Map {
    let all = values[0].source.map(elements as usize);
    let mut held = Map::empty(all.threads(), all.elements());
    for (thread, slot, element) in all.entries() {
        if values.iter().all(|value| value.source.slot(thread, element as i64).is_some()) {
            held.put(thread, slot, element);
        }
    }
    held
}
