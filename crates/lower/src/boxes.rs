//! Copies of boxes by the copy engine (TMA) and the barriers at which they arrive, for stages of pipelined loops and for tiles.

use tilewright_diag::{Span, counted};
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{PlanFacts, Reason};
use tilewright_ir::thread::{BoxWay, Call, Inst, Memory, MemorySpace, Program, Stmt, TensorCopy, TensorMapRecipe};
use tilewright_ir::tile::{AtomicOp, BoxMove};
use tilewright_ir::{Handle, SHARED_ALIGNMENT};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;
use tilewright_layout::descriptor::BoxCopy;

use crate::builder::Builder;

/// Instructions that start the copy of a box.
pub(crate) const OF_A_BOX: i64 = 3;
/// Instructions with which a thread starts copies to shared memory: a condition, a wait, an election, the announcement.
pub(crate) const OF_AN_ISSUE: i64 = 8;

/// Why a CTA of so many threads does not use the copy engine, if it does not.
pub(crate) fn no_whole_warp(threads: i64) -> Option<Reason> {
    let text =
        || format!("a CTA of {} has no whole warp to elect the one that issues copies", counted(threads, "thread"));
    (threads < LANES as i64).then(|| Reason::new(text(), "32 threads or more"))
}

/// The plan of a statement that the copy engine executes: `2 boxes of 64 x 32 elements, the 128-byte swizzle`.
pub(crate) fn facts(moved: &BoxMove) -> PlanFacts {
    let sides: Vec<String> = moved.boxes.box_dims.iter().map(i64::to_string).collect();
    let copies = moved.boxes.copies.len();
    let of = if copies == 1 { "a box".to_string() } else { format!("{copies} boxes") };
    let summary = format!("{of} of {} elements, {}", sides.join(" x "), moved.boxes.swizzle.name());
    PlanFacts::without_accesses(summary, copies as i64 * OF_A_BOX)
}

/// Bytes that all boxes of a statement bring.
pub(crate) fn bytes(moved: &BoxMove) -> i64 {
    moved.boxes.copies.len() as i64 * moved.boxes.box_bytes()
}

/// Starts the copies of all boxes, between `shared` from element `first` on and the tensor of `map`.
pub(crate) fn copies(
    program: &Program,
    moved: &BoxMove,
    map: Handle<TensorMapRecipe>,
    (shared, first): (Handle<Memory>, &Expr),
    way: &BoxWay,
) -> Vec<Stmt> {
    let element = program.memories[shared].dtype.bytes();
    let bytes = moved.boxes.box_bytes();
    let copy = |one: &BoxCopy| {
        let shared = (shared, normalize(&(first + one.shared / element)));
        Stmt::from(TensorCopy { map, shared, bytes, coordinates: moved.coordinates_of(one), way: way.clone() })
    };
    moved.boxes.copies.iter().map(copy).collect()
}

/// An instruction on a barrier.
pub(crate) fn barrier_call(inst: Inst, barrier: (Handle<Memory>, Expr), argument: Option<Expr>) -> Stmt {
    Stmt::from(Call { memory: vec![barrier], arguments: argument.into_iter().collect(), ..Call::plain(inst) })
}

impl Builder {
    /// Shared memory for so many barriers.
    pub(crate) fn barriers(&mut self, name: &str, count: i64, span: Span) -> Handle<Memory> {
        let memory = Memory {
            name: self.fresh(name),
            dtype: DType::U64,
            elements: count,
            stages: 1,
            space: MemorySpace::Shared,
            values: Vec::new(),
            alignment: SHARED_ALIGNMENT,
            span,
        };
        self.program.memories.push(memory)
    }

    /// The tensor map of a statement; equal ones are one.
    pub(crate) fn tensor_map(&mut self, moved: &BoxMove) -> Handle<TensorMapRecipe> {
        let tensor = self.memory(moved.tensor);
        let BoxMove { start, extents, strides, boxes, .. } = moved;
        let elements = match (self.program.memories[tensor].dtype, moved.combined) {
            (DType::I64, None | Some(AtomicOp::Add)) => DType::U64,
            (dtype, _) => dtype,
        };
        let is_same = |map: &TensorMapRecipe| {
            map.tensor == tensor
                && (map.start, &map.extents, &map.strides, &map.boxes) == (*start, extents, strides, boxes)
                && map.elements == elements
        };
        if let Some((known, _)) = self.program.maps.iter().find(|(_, map)| is_same(map)) {
            return known;
        }
        let name = self.fresh(&format!("{}_map", self.program.memories[tensor].name));
        let (extents, strides, boxes) = (extents.clone(), strides.clone(), boxes.clone());
        self.program.maps.push(TensorMapRecipe { name, tensor, start: *start, extents, strides, boxes, elements })
    }
}
