//! Lowering: tile ops become thread statements.
//!
//! A tile op has a list of *variants*. Each variant either offers schedules or gives every reason why it does not
//! apply. The cost of a schedule is measured on the statements that it would produce. The cheapest schedule is taken
//! (ties go to the earlier variant), or the cheapest one of the variant that the user forces. Barriers between
//! dependent ops are derived from the memory that their statements access ([`sync`]); the user never writes them.

mod builder;
mod combine;
mod conditions;
mod convert;
mod copy;
mod count;
mod elements;
mod engine;
mod fill;
mod fragment;
mod fragment_registers;
mod gemm;
mod in_flight;
mod lagged;
mod measure;
mod operand;
mod ops;
mod pairs;
pub mod permute_layout;
mod pipeline;
mod reduce;
mod refusal;
mod reorder;
mod rings;
mod roll;
mod scan;
mod shared_layouts;
mod starts;
mod sync;
mod threads;
mod trace;
mod traversal;
mod tuples;
mod unwritten;
mod variant;

pub use ops::{Options, lower};
pub use pipeline::serial_loops;
pub use shared_layouts::{OpenAccesses, Placement, SharedLayout, cost, has_full_wavefronts};
