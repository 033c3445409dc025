//! The tile level: a kernel as the user wrote it.

mod atomic;
mod attributes;
mod bounds;
mod buffer;
mod claims;
mod cluster;
mod combiner;
mod common_values;
mod contract;
mod dimensions;
mod edge_masks;
mod edges;
mod element;
mod engine_moves;
mod fills;
mod function;
mod held_operands;
mod integers;
mod iteration;
mod kernel;
mod loaded;
mod names;
mod op;
mod op_element;
mod open;
mod own_blocks;
mod prepare;
mod print;
mod producer;
mod ring;
mod role;
mod shared_storage;
mod spread;
mod tensor_memory;
mod tiles;
mod touched;
mod unread;
mod unused_names;
mod updates;
mod valid_extents;
mod value;
pub mod vectors;
mod verify;

pub use atomic::{Atomic, AtomicChange, AtomicOp, MemoryOrder, MemoryOrdering, MemoryScope, OldElement};
pub use attributes::{Gemm, Reduce, ReduceBy, ReduceKind, Scan, ScanBy, ScanOrder, WarpPolicy, combined_in};
pub use buffer::{Buffer, Direction, DynamicShape, Space};
pub use cluster::{CLUSTERS, Cluster, Group, PAIR};
pub use combiner::{Combiner, Parameter};
pub use common_values::name_common_values;
pub use dimensions::Dimensions;
pub use edges::Bound;
pub use element::{Claim, ElementStmt, Parallel};
pub use engine_moves::{EngineMove, EngineOffers, MovedPart, coordinates_of};
pub use fills::Fills;
pub use function::Function;
pub use integers::{Comparison, IndexOp, IntegerRange};
pub use iteration::iteration_exists;
pub use kernel::{If, Kernel, Loop, Overlap, Part, ScalarParameter, Size, Stmt, Unroll};
pub use loaded::LoadedIndex;
pub use op::{Effect, Op, OpClass, OpInfo, OpKind, Operand, Reduction, Tuples};
pub use open::with_open_placed;
pub use own_blocks::Blocks;
pub use prepare::prepare;
pub use print::{access_title, element_index, index_title, tile_title, value_title};
pub use producer::{BULK, TMA, TMA_WARP_SPECIALISED, with_producer};
pub use ring::{CLAIMED_TILES, Hold, Ring, RingKind, Side};
pub use role::{KernelsByRole, Role, RoleOfUse, WARPS_OF_A_WARPGROUP};
pub use shared_storage::SharedStorage;
pub use tensor_memory::TensorColumns;
pub use tiles::{Tile, non_unit_extents};
pub use unread::CopiedTiles;
pub use value::{Access, Coord, ElementClass, ElementOp, Narrowing, Value, flat};
pub use verify::{VerifiedKernel, verify, warnings};

use tilewright_expr::Var;

use crate::hw_index::{Dim, HwIndex};

impl Kernel {
    /// A hardware index, as a variable.
    pub fn hw_index(&self, index: HwIndex) -> Var {
        index.var(self.threads, &self.grid)
    }

    /// The lane of the thread in its warp.
    pub fn lane(&self) -> Var {
        self.hw_index(HwIndex::Lane)
    }

    /// The warp in its CTA.
    pub fn warp(&self) -> Var {
        self.hw_index(HwIndex::Warp)
    }

    /// The thread in its CTA.
    pub fn tid(&self) -> Var {
        self.hw_index(HwIndex::Tid)
    }

    /// The index that distinguishes the threads of a CTA: the lane if there is one warp, else `tid`.
    pub fn thread(&self) -> Var {
        if self.threads <= 32 { self.lane() } else { self.tid() }
    }

    /// The CTA in the grid, along a dimension: `bx`, `by` or `bz`.
    pub fn block(&self, dimension: Dim) -> Var {
        self.hw_index(HwIndex::Block(dimension))
    }

    /// Number of warps of a CTA.
    pub fn warps(&self) -> i64 {
        (self.threads + 31) / 32
    }
}
