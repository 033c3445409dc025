//! Tilewright: kernels for NVIDIA GPUs, written in Rust over tiles whose layouts are values.
//!
//! This is the crate to name in a user's `Cargo.toml`. [`prelude`] exports what kernels are written with; the other
//! modules are the crates of the workspace.

pub use tilewright_compile as compile;
pub use tilewright_cuda as cuda;
pub use tilewright_diag as diag;
pub use tilewright_dsl as dsl;
pub use tilewright_emit as emit;
pub use tilewright_expr as expr;
pub use tilewright_files as files;
pub use tilewright_infer as infer;
pub use tilewright_ir as ir;
pub use tilewright_layout as layout;
pub use tilewright_lower as lower;
pub use tilewright_runtime as runtime;
pub use tilewright_vgpu as vgpu;
pub use tilewright_viz as viz;

/// The items that kernels are written with.
pub mod prelude {
    pub use tilewright_dsl::{
        Buffer, Elements, Expr, Index, KernelBuilder, LoopRange, Region, Ring, Shape, Size, Stages, Tiles, Value, at,
        kernel,
    };
    pub use tilewright_ir::tile::ReduceKind::{self, AbsMax, AbsSum, And, Max, Min, Or, Product, SquareSum, Sum, Xor};
    pub use tilewright_ir::tile::{Dimensions, Gemm, MemoryOrder, MemoryScope, WarpPolicy};
    pub use tilewright_ir::{Kernel, Scalar, Target};
    pub use tilewright_layout::DType::{
        self, B8, B16, B32, B64, B128, BF16, E4M3, E5M2, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64,
    };
    pub use tilewright_layout::axis::{LANEID, M, REG, TX, WARPID};
    pub use tilewright_layout::{Layout, R, S, SwizzleLayout, TileLayout};
}
