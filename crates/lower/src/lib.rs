//! Lowering: tile ops become thread statements.
//!
//! A tile op has *variants* in one list. Each either makes a schedule or says all its reasons against; what a
//! schedule costs is measured on the statements it would produce; the cheapest is taken (ties go to the earlier), or
//! the one that the user forces. Barriers between dependent ops are derived from what their statements touch
//! ([`sync`]), never written by the user.

mod builder;
mod conditions;
mod copy;
mod count;
mod elements;
mod fill;
mod fragment;
mod gemm;
mod measure;
mod operand;
mod ops;
pub mod permute_layout;
mod reduce;
mod refusal;
mod sync;
mod threads;
mod trace;
mod traversal;
mod unwritten;
mod variant;

pub use ops::{Options, lower};
