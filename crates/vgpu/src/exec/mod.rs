//! Executes a decoded kernel: resident CTAs in turn, the warps of a CTA in turn, converged lanes together.

mod access;
mod address;
mod aligned;
mod arrival;
mod atomic;
mod barrier;
mod bulk;
mod carry;
mod collective;
mod compare;
mod control;
mod convert;
mod copy;
mod cta;
mod double_mma;
mod float;
mod grid;
mod int;
mod ldmatrix;
mod machine;
mod matrix;
mod mbarrier;
mod memory;
mod mma;
mod order;
mod post_dominators;
mod random;
mod resident;
mod scalar;
mod schedule;
mod shared_matrix;
mod step;
mod tensor;
mod undefined;
mod warp;

pub(crate) use grid::{PreparedLaunch, run_grid};
