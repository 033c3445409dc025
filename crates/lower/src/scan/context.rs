//! What a scan is: its operands, and which thread holds which elements.

use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Scalar;
use tilewright_ir::thread::Value;
use tilewright_ir::tile::{Kernel, Op, OpKind, ReduceKind, ScanOrder, Tile, combined_in};
use tilewright_layout::DType;

use super::runs::{Place, Run, runs};
use crate::builder::Builder;
use crate::combine::{cast, contribution, neutral};
use crate::fragment_registers::{FragmentRegisters, Slot};
use crate::operand::{other_operands, whole_fragments};
use crate::refusal::Refusal;
use crate::tuples::Function;

/// How two parts of a row become one.
pub(crate) enum Operator {
    /// Elements are combined in the type of such a reduction.
    Kind(ReduceKind),
    Function(Box<Function>),
}

/// One value of the tuples; a scan of elements has one.
pub(crate) struct ScanValue {
    /// The name of the fragment of its results.
    pub(super) name: String,
    pub(super) source: Arc<FragmentRegisters>,
    pub(super) result: Arc<FragmentRegisters>,
    /// What the scan goes on from, with its dtype.
    pub(super) carry: Option<(Arc<FragmentRegisters>, DType)>,
    /// Type in which it is combined, and that of the elements.
    pub(super) dtype: DType,
    pub(super) of: DType,
    /// What changes no other when it is combined with it.
    pub(super) neutral: Scalar,
    /// The first result of an exclusive scan.
    pub(super) start: Scalar,
}

/// Where a thread has a tuple of the results, and of the sources: a slot for each value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slots {
    results: Vec<Slot>,
    sources: Vec<Slot>,
}

/// What the variants of a scan decide on.
pub(crate) struct Context {
    pub(super) order: ScanOrder,
    pub(super) operator: Operator,
    pub(super) values: Vec<ScanValue>,
    /// What the places of the runs are.
    slots: Vec<Slots>,
    /// By thread, the parts of rows that it holds.
    pub(super) runs: Vec<Vec<Run>>,
    /// Number of rows, and of elements in each.
    pub(super) rows: usize,
    pub(super) extent: usize,
    /// The index of a thread in its CTA, and of its lane.
    pub(super) thread: Expr,
    pub(super) lane: Expr,
    pub(super) op: Op,
}

impl Context {
    /// Resolves the operands of a scan. Error: one of them is not a whole fragment, or has no layout.
    pub(super) fn new(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Context, Diagnostic> {
        let count = op.kind.tuples().map_or(1, |tuples| tuples.values);
        let (Some(order), Some(Tile { extents, .. })) = (op.kind.scan_order(), op.source()) else {
            return Err(other_operands(kernel, op));
        };
        let refused = |why: Refusal| why.diagnostic(&kernel.op_title(op), op.span);
        let operator = operator(builder, kernel, op)?;
        let values = values(builder, kernel, op, count)?;
        let elements = extents.iter().product::<i64>() as usize;
        let mut of_thread: Vec<Vec<(usize, usize, Slots)>> = vec![Vec::new(); values[0].result.map(elements).threads()];
        for (thread, _, element) in values[0].result.map(elements).entries() {
            let slots = slots(&values, thread, element);
            let missing = || Refusal::from(format!("thread {thread} does not hold element {element} of all operands"));
            let (row, at) = order.place_of(extents, element);
            of_thread[thread].push((row, at, slots.ok_or_else(missing).map_err(refused)?));
        }
        let mut slots: Vec<Slots> = of_thread.iter().flatten().map(|(_, _, slots)| slots.clone()).collect();
        slots.sort_unstable();
        slots.dedup();
        let place = |of: &Slots| Place(slots.partition_point(|known| known < of));
        let runs_of = |all: Vec<(usize, usize, Slots)>| {
            runs(all.into_iter().map(|(row, at, slots)| (row, at, place(&slots))).collect())
        };
        let extent = extents[order.dimension] as usize;
        let context = Context {
            order,
            operator,
            values,
            runs: of_thread.into_iter().map(runs_of).collect(),
            slots,
            rows: elements / extent,
            extent,
            thread: Expr::var(&kernel.thread()),
            lane: Expr::var(&kernel.lane()),
            op: op.clone(),
        };
        context.check_carries().map_err(refused)?;
        Ok(context)
    }

    /// Error: a thread has part of a row without its carry, or a carry of which it learns nothing.
    fn check_carries(&self) -> Result<(), Refusal> {
        let carries = || self.values.iter().filter_map(|value| value.carry.as_ref());
        for (thread, runs) in self.runs.iter().enumerate() {
            let of_row = |row: usize| carries().all(|(carry, _)| carry.slot(thread, row as i64).is_some());
            if let Some(run) = runs.iter().find(|run| !of_row(run.row)) {
                return Err(format!("thread {thread} has part of row {}, but not its carry", run.row).into());
            }
        }
        for (carry, _) in carries() {
            let has_part = |thread: usize, row: usize| self.runs[thread].iter().any(|run| run.row == row);
            let map = carry.map(self.rows);
            if let Some((thread, _, row)) = map.entries().find(|(thread, _, row)| !has_part(*thread, *row)) {
                return Err(format!("thread {thread} has the carry of row {row}, but no part of the row").into());
            }
        }
        Ok(())
    }

    /// The slots in which a thread has the carries of a row; `None` if it has none of it.
    pub(super) fn carry_slots(&self, thread: usize, row: usize) -> Option<Vec<Slot>> {
        let slot = |value: &ScanValue| value.carry.as_ref()?.0.slot(thread, row as i64);
        self.values.iter().map(slot).collect()
    }

    /// The tuple of the sources at a place, in the types in which values are combined.
    pub(super) fn tuple(&self, place: Place) -> Vec<Value> {
        let read = |(value, slot): (&ScanValue, &Slot)| {
            let element = value.source.read(*slot);
            match self.operator {
                Operator::Kind(kind) => contribution(kind, value.dtype, value.of, element),
                Operator::Function(_) => element,
            }
        };
        self.values.iter().zip(&self.slots[place.0].sources).map(read).collect()
    }

    /// The slots of the results at a place.
    pub(super) fn results(&self, place: Place) -> &[Slot] {
        &self.slots[place.0].results
    }
}

impl ScanValue {
    /// The result in the register of a slot, from one in the type in which values are combined.
    pub(super) fn written(&self, slot: Slot, value: Value) -> Value {
        self.result.written(slot, cast(self.of, self.dtype, value))
    }
}

fn operator(builder: &Builder, kernel: &Kernel, op: &Op) -> Result<Operator, Diagnostic> {
    match op.kind {
        OpKind::Scan(scan) => Ok(Operator::Kind(scan.kind)),
        _ => {
            let tuples = op.kind.tuples().ok_or_else(|| other_operands(kernel, op))?;
            Ok(Operator::Function(Function::of(&kernel.combiners[tuples.combiner], kernel, builder).into()))
        }
    }
}

fn values(builder: &Builder, kernel: &Kernel, op: &Op, count: usize) -> Result<Vec<ScanValue>, Diagnostic> {
    let (destinations, sources) = op.operands[..op.operands.len().min(2 * count)].split_at(count);
    let mut values = Vec::with_capacity(count);
    for (at, (dst, src)) in destinations.iter().zip(sources).enumerate() {
        let [result, source] = whole_fragments(builder, kernel, op, [dst, src])?;
        let of = kernel.buffers[src.buffer].dtype;
        let refused = |why: Refusal| why.diagnostic(&kernel.op_title(op), op.span);
        let (dtype, neutral, start) = match op.kind {
            OpKind::Scan(scan) => {
                let dtype = combined_in(of);
                let start = scan.kind.start(of).ok_or_else(|| refused(format!("no first result of {of}").into()))?;
                (dtype, neutral(scan.kind, dtype).map_err(refused)?, start)
            }
            _ => {
                let tuples = op.kind.tuples().ok_or_else(|| other_operands(kernel, op))?;
                let identity = kernel.combiners[tuples.combiner].identity[at];
                (of, identity, identity)
            }
        };
        let carry = match op.carries().get(at) {
            Some(tile) => {
                let [carry] = whole_fragments(builder, kernel, op, [tile])?;
                Some((carry, kernel.buffers[tile.buffer].dtype))
            }
            None => None,
        };
        let name = kernel.buffers[dst.buffer].name.clone();
        values.push(ScanValue { name, source, result, carry, dtype, of, neutral, start });
    }
    Ok(values)
}

/// Where a thread has an element of all results and sources.
fn slots(values: &[ScanValue], thread: usize, element: usize) -> Option<Slots> {
    let of = |held: &FragmentRegisters| held.slot(thread, element as i64);
    let results: Option<Vec<Slot>> = values.iter().map(|value| of(&value.result)).collect();
    let sources: Option<Vec<Slot>> = values.iter().map(|value| of(&value.source)).collect();
    Some(Slots { results: results?, sources: sources? })
}
