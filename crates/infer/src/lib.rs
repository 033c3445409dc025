//! Layout inference: which thread has each element of every fragment, and which does each iteration of every loop.
//!
//! Fragments that are used outside of ops are whole on every thread. A strict pass takes the layouts that the user
//! wrote and those that instructions dictate; a common pass derives what follows, breadth first, to a fixpoint; a free
//! pass tries plans for each connected component of ops and fragments, and keeps the cheapest. All of this is decided
//! on [`Map`](tilewright_layout::map::Map)s, which list the elements that each thread has.

mod alternatives;
mod answers;
mod asked;
mod convert;
mod cost;
mod dictation;
mod dot;
mod effect;
mod explain;
mod families;
mod follows;
mod gather;
mod granules;
mod graph;
mod ids;
mod inference;
mod inferred;
mod issue;
mod known;
mod nest;
mod node;
mod pattern;
mod place;
mod plans;
mod price;
mod refusal;
mod resolve;
mod scene;
mod search;
mod settle;
#[cfg(test)]
mod small_kernels;
mod state;
mod steps;
mod storage;
mod strict;
mod tables;
mod text;
mod uses;
mod vectors;
mod walk;
mod why;
mod words;
mod write;

pub use alternatives::Alternative;
pub use cost::Cost;
pub use inference::infer;
pub use inferred::{Component, Inferred, MemoryAccess, Placed};
pub use known::{Pass, Reason};
pub use node::Origin;
pub use steps::{Clash, Violation};
pub use why::Link;
pub use write::{is_laid_out, lay_out};
