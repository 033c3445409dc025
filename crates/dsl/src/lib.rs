//! The kernel builder: plain Rust functions and closures that describe a kernel over tiles.
//!
//! ```
//! use tilewright_dsl::kernel;
//! use tilewright_layout::{DType::F32, S};
//!
//! // Two stages of a 4 x 32 transpose, global to global.
//! let shape = [2, 1, 4, 32];
//! let seed = kernel("sf_transpose_global", |k| {
//!     let a = k.input("a", F32, S(shape, [128, 128, 32, 1]));
//!     let b = k.output("b", F32, S(shape, [128, 128, 1, 4]));
//!     k.threads(32);
//!     k.serial("s", 0..2, |k, s| {
//!         k.warp().permute_layout(b.sub((s, .., .., ..)), a.sub((s, .., .., ..)));
//!     });
//! });
//! assert!(seed.build_findings.is_empty());
//! ```
//!
//! Every method is `#[track_caller]`, so what is wrong with a kernel is reported at the user's line; mistakes are
//! collected and reported together when the kernel is compiled.

mod buffer;
mod builder;
mod elements;
mod expr;
mod extremes;
mod known_size;
mod later;
mod loop_range;
mod nodes;
mod op_ref;
mod operators;
mod ops;
mod philox;
mod reads;
mod region;
mod ring;
mod shape;
mod size;
mod stages;
mod tiles;
mod value;
mod views;

pub use buffer::Buffer;
pub use builder::{KernelBuilder, ParallelRef, ScopeRef, kernel};
pub use elements::{AtomicRef, Elements, IntoCoords, StoreRef};
pub use expr::Expr;
pub use loop_range::{Bounds, LoopRange};
pub use op_ref::OpRef;
pub use region::{Index, IntoCarries, IntoRegion, Region, at};
pub use ring::{Consumed, Produced, Ring, RingBuffers};
pub use shape::{Extent, IntoLayout, RowMajor, Shape};
pub use size::Size;
pub use stages::Stages;
pub use tiles::Tiles;
pub use value::Value;
