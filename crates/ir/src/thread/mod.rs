//! The thread level: what one thread does. The emitter prints only this level.

mod effects;
mod inst;
mod mma;
mod packed;
mod print;
mod program;
mod registers;
mod ring;
mod tensor;
mod value;
mod verify;
mod walk;
mod warp;
mod wgmma;

pub use effects::{MemoryAccess, Moved, Resource, for_each_expr, for_each_stmt, for_each_stmt_mut, widest_accesses};
pub use inst::{Inst, InstInfo, MemoryOperand, RESPONSE_BYTES, RegisterOperand};
pub use mma::{MmaInfo, MmaInst};
pub use packed::{Packed, are_rounded, halves, is_pair, is_word};
pub use program::{Call, Cond, Memory, MemorySpace, Mma, Note, Program, Stmt, TURN, Unroll, conjunction, has_turns};
pub use registers::{RegArray, Regs};
pub use ring::{Cursor, EngineWay, RUN_UNIT, Reach, Ring, TensorCopy, TensorMapRecipe, TensorPart};
pub use tensor::{
    Accumulates, COLUMN_BYTES, MOST_MOVED, TENSOR_COLUMNS, TENSOR_LANE, TENSOR_LANES, TENSOR_PRODUCT_COLUMNS,
    TensorLeft, TensorMemory, TensorMma, TensorMove,
};
pub use value::Value;
pub use verify::{VerifiedProgram, verify};
pub use walk::{Observer, walk};
pub use warp::{LaneMask, Lanes, WarpState, largest};
pub use wgmma::{LeftMatrix, SharedMatrix, WGMMA_COLUMNS, WGMMA_ROWS, WarpgroupMma, WgmmaInfo, WgmmaInst};
