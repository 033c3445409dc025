//! Copies by the copy engine (TMA) and the barriers at which they arrive, for stages of pipelined loops and for tiles.

use tilewright_diag::{Span, counted};
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{PlanFacts, Reason};
use tilewright_ir::thread::{
    Call, EngineWay, Inst, Memory, MemorySpace, Stmt, TensorCopy, TensorMapRecipe, TensorPart,
};
use tilewright_ir::tile::{AtomicOp, EngineMove, MovedPart, coordinates_of};
use tilewright_ir::{Handle, SHARED_ALIGNMENT};
use tilewright_layout::DType;
use tilewright_layout::access::LANES;
use tilewright_layout::descriptor::{BoxCopy, Boxes};

use crate::builder::Builder;

/// Instructions that start a copy.
pub(crate) const OF_A_COPY: i64 = 3;
/// Instructions with which a thread starts copies to shared memory: a condition, a wait, an election, the announcement.
pub(crate) const OF_AN_ISSUE: i64 = 8;

/// Why a CTA of so many threads does not use the copy engine, if it does not.
pub(crate) fn no_whole_warp(threads: i64) -> Option<Reason> {
    let text =
        || format!("a CTA of {} has no whole warp to elect the one that issues copies", counted(threads, "thread"));
    (threads < LANES as i64).then(|| Reason::new(text(), "32 threads or more"))
}

/// The plan of a statement that the copy engine executes: `2 boxes of 64 x 32 elements, the 128-byte swizzle`, or `a run of
/// 4096 B`.
pub(crate) fn facts(moved: &EngineMove) -> PlanFacts {
    let summary = match &moved.part {
        MovedPart::Boxes { boxes, .. } => {
            let sides: Vec<String> = boxes.box_dims.iter().map(i64::to_string).collect();
            let of =
                if boxes.copies.len() == 1 { "a box".to_string() } else { format!("{} boxes", boxes.copies.len()) };
            format!("{of} of {} elements, {}", sides.join(" x "), boxes.swizzle.name())
        }
        MovedPart::Run { bytes, .. } => format!("a run of {bytes} B"),
    };
    PlanFacts::without_accesses(summary, moved.copy_count() as i64 * OF_A_COPY)
}

/// An instruction on a barrier.
pub(crate) fn barrier_call(
    inst: Inst,
    barrier: (Handle<Memory>, Expr),
    arguments: impl IntoIterator<Item = Expr>,
) -> Stmt {
    Stmt::from(Call { memory: vec![barrier], arguments: arguments.into_iter().collect(), ..Call::plain(inst) })
}

impl Builder {
    /// Shared memory for so many barriers.
    pub(crate) fn barriers(&mut self, name: &str, count: i64, span: Span) -> Handle<Memory> {
        let place = (MemorySpace::Shared, SHARED_ALIGNMENT);
        let memory = Memory::new(self.fresh(name), DType::U64, count, place, span);
        self.program.memories.push(memory)
    }

    /// Shared memory for the address of tensor memory.
    pub(crate) fn tensor_slot(&mut self, span: Span) -> Handle<Memory> {
        let place = (MemorySpace::Shared, SHARED_ALIGNMENT);
        let memory = Memory::new(self.fresh("tensor_address"), DType::U32, 1, place, span);
        self.program.memories.push(memory)
    }

    /// Starts the copies of a tile, between `shared` from element `first` on and its tensor.
    pub(crate) fn copies(
        &mut self,
        moved: &EngineMove,
        (shared, first): (Handle<Memory>, &Expr),
        way: &EngineWay,
    ) -> Vec<Stmt> {
        let element = self.program.memories[shared].dtype.bytes();
        let copy = |part: TensorPart, place: Expr, bytes: i64| {
            Stmt::from(TensorCopy { part, shared: (shared, normalize(&place)), bytes, way: way.clone() })
        };
        match &moved.part {
            MovedPart::Run { first: from, bytes } => {
                let part = TensorPart::Run { first: (self.memory(moved.tensor), normalize(from)) };
                vec![copy(part, first.clone(), *bytes)]
            }
            MovedPart::Boxes { boxes, coordinates } => {
                let map = self.tensor_map(moved, boxes);
                let of_box = |one: &BoxCopy| {
                    let part = TensorPart::Box { map, coordinates: coordinates_of(coordinates, one) };
                    copy(part, first + one.shared / element, boxes.box_bytes())
                };
                boxes.copies.iter().map(of_box).collect()
            }
        }
    }

    /// The tensor map of a statement; equal ones are one.
    fn tensor_map(&mut self, moved: &EngineMove, boxes: &Boxes) -> Handle<TensorMapRecipe> {
        let tensor = self.memory(moved.tensor);
        let EngineMove { start, extents, strides, .. } = moved;
        let elements = match (self.program.memories[tensor].dtype, moved.combined) {
            (dtype, Some(AtomicOp::Min | AtomicOp::Max)) => dtype,
            (DType::I64, _) => DType::U64,
            (DType::I32, Some(AtomicOp::And | AtomicOp::Or | AtomicOp::Xor)) => DType::U32,
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
