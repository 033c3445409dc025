//! The kernel library: kernels in the DSL, each with a plain Rust reference and inputs to check it with.
//!
//! Those with a size `threads` declare no layouts of registers: these are inferred, for any of their sizes.

mod adamw;
mod argmax;
mod attention;
mod attention_decode;
mod attention_roles;
mod batched_gemm;
mod bias_gelu;
mod blocks;
mod column_reduce;
mod config;
mod copy;
mod cross_entropy;
mod cumsum;
mod dequantize;
mod dropout;
mod elementwise;
mod embedding;
mod gemm;
mod gemv;
mod histogram;
pub mod ladder;
mod layer_norm;
mod matmul;
mod moments;
mod norm_grad;
mod numbers;
mod online;
mod plan_then_buffer_layout;
mod products;
mod quantize;
mod rms_norm;
mod rope;
mod row_reduce;
mod running_softmax;
mod sf_transpose;
mod sf_transpose_global;
mod short_attention;
mod softmax;
mod split_k_gemm;
mod ssm_scan;
mod swiglu;
mod topk;
mod transpose_2d;
mod transpose_nd;
mod warp_transpose;

pub use config::{Config, ConfigError, KernelEntry, ShapeKey};
pub use matmul::{
    Activation, Bound, Cost, Epilogue, Limit, MOST_RANKED, Machine, MatmulConfig, MatmulShape, Scheduler,
};

/// Every kernel.
pub const KERNELS: &[KernelEntry] = &[
    adamw::ENTRY,
    argmax::ENTRY,
    attention::ENTRY,
    attention_decode::DECODE,
    attention_decode::COMBINE,
    attention_roles::ENTRY,
    batched_gemm::ENTRY,
    bias_gelu::ENTRY,
    column_reduce::MAX,
    column_reduce::SUM,
    copy::ENTRY,
    cross_entropy::FORWARD,
    cross_entropy::BACKWARD,
    cumsum::ENTRY,
    dequantize::ENTRY,
    dropout::ENTRY,
    elementwise::ENTRY,
    embedding::FORWARD,
    embedding::BACKWARD,
    gemm::ENTRY,
    gemv::ENTRY,
    histogram::ENTRY,
    layer_norm::ENTRY,
    norm_grad::LAYER,
    matmul::ENTRY,
    matmul::FALLBACK,
    moments::ENTRY,
    plan_then_buffer_layout::ENTRY,
    quantize::FP8,
    quantize::FP8_BLOCKS,
    quantize::INT8,
    quantize::INT8_BLOCKS,
    rms_norm::ENTRY,
    norm_grad::RMS,
    rope::HALVES,
    rope::PAIRS,
    row_reduce::MAX,
    row_reduce::SUM,
    sf_transpose::ENTRY,
    sf_transpose_global::ENTRY,
    short_attention::ENTRY,
    softmax::ENTRY,
    split_k_gemm::ENTRY,
    ssm_scan::ENTRY,
    swiglu::ENTRY,
    topk::ENTRY,
    transpose_2d::ENTRY,
    transpose_nd::ENTRY,
    warp_transpose::ENTRY,
];

/// The kernel with this name.
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    KERNELS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::runtime::HostTensor;

    #[test]
    fn every_kernel_is_in_the_book() {
        let page = include_str!("../../docs/kernels.md");
        for entry in KERNELS {
            assert!(page.contains(&format!("| `{}` |", entry.name)), "{} is not in docs/kernels.md", entry.name);
        }
    }

    #[test]
    fn every_tested_configuration_is_one() {
        for entry in KERNELS {
            let configs = entry.tested_configs().map(|configs| configs.len());
            assert_eq!(configs, Ok(entry.tested.len() + 1), "{}", entry.name);
        }
    }

    #[test]
    fn references_fit_their_inputs() {
        for entry in KERNELS {
            for config in entry.tested_configs().expect("configurations of the kernel") {
                let inputs = (entry.inputs)(&config);
                assert!(!(entry.reference)(&config, &inputs).is_empty(), "{} {config}", entry.name);
            }
        }
    }

    #[test]
    #[should_panic(expected = "element 256 of a tensor of 128 elements")]
    fn a_reference_does_not_make_up_what_its_input_lacks() {
        let entry = find("transpose_2d").expect("a kernel of the library");
        let config = entry.config(None, &[]).expect("its defaults");
        (entry.reference)(&config, &[HostTensor::pattern(config.dtype, &[128])]);
    }

    #[test]
    #[should_panic(expected = "no entry found for key")]
    fn a_size_that_a_kernel_does_not_have_is_not_1() {
        let entry = find("transpose_2d").expect("a kernel of the library");
        entry.config(None, &[]).expect("its defaults").size("rows");
    }
}
