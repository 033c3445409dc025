//! Undefined bits: what a load returns for bytes that were never written, that race with a write, or that are past the
//! end of a buffer.
//!
//! Compilers load more than a program requests: they hoist loads above branches, and combine adjacent loads into a
//! vector. The program does not use the extra bits, so that loading them is not a fault. They are marked instead, and
//! the marks propagate through registers, shuffles and memory ([`flow`]). A fault is raised if a marked bit decides
//! what is executed, with an observable effect ([`branch`]), if it decides where memory is accessed, or if it reaches
//! global memory. The kind and location of the fault are those of the load.
//!
//! A warp without marks costs one comparison per instruction.

mod branch;
mod effect;
mod flow;
mod known_races;
mod marks;
mod origins;
mod races;
mod registers;

pub(crate) use flow::{matrix_lanes, undefined_double_mma, undefined_mma, undefined_results, upwards, whole};
pub(crate) use known_races::KnownRaces;
pub(crate) use marks::{Marks, UndefinedLanes, Update};
pub(crate) use origins::Origins;
