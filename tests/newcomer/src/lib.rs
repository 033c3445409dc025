//! Kernels as a newcomer writes them who has read the docs: each with a plain Rust reference beside it.

pub mod bias_gelu;
pub mod flash_attention;
pub mod gemm;
pub mod histogram;
pub mod layer_norm_backward;
pub mod quantise;
pub mod rope;
pub mod scan;
pub mod top_two;
