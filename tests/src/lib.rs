//! Code shared by the tests: readers of golden data, brute-force checkers, kernels that only tests need, and the
//! toolchain that tests use.

pub mod browser;
pub mod by_hand;
pub mod cases;
mod docs;
pub mod edits;
pub mod forms;
pub mod fuzz;
pub mod gallery;
pub mod golden;
pub mod gpu;
pub mod levels;
pub mod machine_code;
pub mod meaning;
pub mod moving_tiles;
pub mod mutants;
pub mod pages;
pub mod permute;
pub mod quality;
pub mod rng;
pub mod sources;
pub mod thread_machine;
pub mod tilelang;
pub mod toolchain;
