//! The two levels of Tilewright's IR.
//!
//! *Tile level* ([`tile`]): what a kernel does with whole tiles, as the user wrote it. *Thread level* ([`thread`]):
//! what one thread does; the only level that is printed as CUDA. Both live in arenas with typed handles, print as text,
//! and must pass a verifier: lowering takes a [`VerifiedKernel`], and emission a [`VerifiedProgram`].

mod arena;
mod byte_floats;
mod caching;
mod counter;
pub mod ends;
mod halves;
mod hw_index;
pub mod plan;
pub mod product;
mod scalar;
mod target;
pub mod thread;
pub mod tile;

pub use arena::{Arena, Handle};
pub use byte_floats::ByteFloat;
pub use caching::Caching;
pub use counter::Counter;
pub use halves::{nearest_bf16, nearest_f16};
pub use hw_index::{Dim, HwIndex};
pub use scalar::Scalar;
pub use target::{GLOBAL_ALIGNMENT, SHARED_ALIGNMENT, Target, padded_shared_bytes};
pub use thread::{Program, VerifiedProgram};
pub use tile::{Kernel, VerifiedKernel};
