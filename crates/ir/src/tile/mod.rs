//! The tile level: a kernel as the user wrote it.

mod attributes;
mod contract;
mod edges;
mod element;
mod integers;
mod kernel;
mod names;
mod op;
mod print;
mod shared;
mod touched;
mod value;
pub mod vectors;
mod verify;

pub use attributes::{Gemm, Reduce, ReduceKind, WarpPolicy};
pub use contract::contract;
pub use edges::Bound;
pub use element::{Claim, Element, Parallel};
pub use integers::{Comparison, IndexOp, IntegerRange};
pub use kernel::{Buffer, Direction, If, Kernel, Loop, RunTimeShape, Size, Space, Stmt, Tile, Unroll};
pub use op::{Effect, Op, OpClass, OpInfo, OpKind, Operand};
pub use print::{access_title, element_index, index_title, tile_title, value_title};
pub use shared::name_shared;
pub use value::{Access, Coord, ElementClass, ElementOp, Narrowing, Value, flat};
pub use verify::{VerifiedKernel, verify, warnings};

use tilewright_expr::Var;

/// Names of the variables that hardware provides; no buffer or loop may take them.
pub const BUILTIN_NAMES: [&str; 6] = ["lane", "warp", "tid", "bx", "by", "bz"];

impl Kernel {
    /// The lane of the thread in its warp.
    pub fn lane(&self) -> Var {
        Var::new("lane", 0, self.threads.clamp(1, 32) - 1)
    }

    /// The warp in its CTA.
    pub fn warp(&self) -> Var {
        Var::new("warp", 0, (self.warps() - 1).max(0))
    }

    /// The thread in its CTA.
    pub fn tid(&self) -> Var {
        Var::new("tid", 0, (self.threads - 1).max(0))
    }

    /// The index that tells the threads of a CTA apart: the lane where there is one warp.
    pub fn thread(&self) -> Var {
        if self.threads <= 32 { self.lane() } else { self.tid() }
    }

    /// The CTA in the grid, along dimension 0 (`bx`), 1 (`by`) or 2 (`bz`).
    pub fn block(&self, dimension: usize) -> Var {
        let names = ["bx", "by", "bz"];
        Var::new(names[dimension.min(2)], 0, (self.grid[dimension.min(2)].range().hi - 1).max(0))
    }

    /// Warps of a CTA.
    pub fn warps(&self) -> i64 {
        (self.threads + 31) / 32
    }
}
