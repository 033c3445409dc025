//! What the tests share: readers of golden data, brute-force judges, and the toolchain that tests run with.

pub mod golden;
pub mod toolchain;
