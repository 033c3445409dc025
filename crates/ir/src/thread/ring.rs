//! Rings, and the copies by the copy engine (TMA) that fill them.

use tilewright_expr::Expr;
use tilewright_layout::descriptor::Boxes;

use crate::arena::Handle;
use crate::thread::program::{Memory, Stmt};

/// Stages of shared memory that an engine fills and threads read, one after the other, ordered by barriers in shared memory
/// alone (PTX ISA, "mbarrier"): iteration `i` uses stage `i % stages`, in phase `i / stages` of its barriers.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Its name: that of its loop.
    pub name: String,
    /// What a stage carries.
    pub payload: Vec<Handle<Memory>>,
    /// The number of stages.
    pub stages: i64,
    /// A barrier for each stage. A phase ends when all bytes of the stage have arrived; one thread announces them.
    pub full: Handle<Memory>,
    /// A barrier for each stage. A phase ends when all warps have read the stage; `None` if no stage is filled twice.
    pub empty: Option<Handle<Memory>>,
    /// The warps that read a stage, each of which arrives at its barrier once.
    pub consumers: i64,
}

impl Ring {
    /// The memory whose accesses its barriers order: the stages, and the barriers themselves.
    pub fn memories(&self) -> impl Iterator<Item = Handle<Memory>> {
        self.payload.iter().copied().chain([self.full]).chain(self.empty)
    }
}

/// How to make the tensor map of a tensor: a parameter of the kernel, which a launch encodes from the sizes (CUDA driver
/// API, `cuTensorMapEncodeTiled`).
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMapRecipe {
    /// The name of the parameter.
    pub name: String,
    /// The tensor.
    pub tensor: Handle<Memory>,
    /// Elements of the boxes from the beginning of the memory to the first of the tensor.
    pub start: i64,
    /// Extents of the tensor.
    pub extents: Vec<Expr>,
    /// Distance of neighbours of each dimension, in elements.
    pub strides: Vec<Expr>,
    /// What a copy moves.
    pub boxes: Boxes,
}

/// One thread starts to copy a box of a tensor to shared memory. Elements outside of the tensor are 0. When all bytes have
/// arrived, they count at a barrier (PTX ISA, "cp.async.bulk.tensor").
#[derive(Clone, Debug, PartialEq)]
pub struct TensorCopy {
    /// The map of the tensor.
    pub map: Handle<TensorMapRecipe>,
    /// The first element of the box in shared memory.
    pub to: (Handle<Memory>, Expr),
    /// Bytes of the box.
    pub bytes: i64,
    /// The barrier at which its bytes count.
    pub barrier: (Handle<Memory>, Expr),
    /// The first index of the box in each dimension of the map, fastest first.
    pub coordinates: Vec<Expr>,
}

impl From<TensorCopy> for Stmt {
    fn from(copy: TensorCopy) -> Stmt {
        Stmt::TensorCopy(Box::new(copy))
    }
}
