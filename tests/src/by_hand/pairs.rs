//! Which kernels are compared, at which sizes.

use tilewright::prelude::DType;
use tilewright::vgpu::MapSwizzle;

use super::{HandWritten, MapByHand, Pair};

/// A transpose of the fixture: its dtype, its name, and the rows and columns of a CTA's tile. All have 64 threads.
const TRANSPOSES: [(DType, &str, &str, i64, i64); 5] = [
    (DType::B8, "transpose_b8", "transpose_any_b8", 128, 128),
    (DType::B16, "transpose_b16", "transpose_any_b16", 128, 64),
    (DType::B32, "transpose_b32", "transpose_any_b32", 64, 64),
    (DType::B64, "transpose_b64", "transpose_any_b64", 64, 32),
    (DType::B128, "transpose_b128", "transpose_any_b128", 32, 32),
];

/// The dtypes of transposes.
pub const WIDTHS: [DType; 5] = [DType::B8, DType::B16, DType::B32, DType::B64, DType::B128];

/// `transpose_2d` beside the hand-written transpose of an `m` x `n` matrix: the one in vectors of 16 bytes if rows and
/// columns are whole vectors, otherwise the one in elements.
pub fn transpose(dtype: DType, m: i64, n: i64) -> Option<Pair> {
    let (_, vectors, elements, rows, cols) = TRANSPOSES.into_iter().find(|(of, ..)| *of == dtype)?;
    let vector = 16 / dtype.bytes();
    let is_whole = m % vector == 0 && n % vector == 0;
    let (entry, rows, cols) = if is_whole { (vectors, rows, cols) } else { (elements, 32, 32) };
    let by_hand = HandWritten {
        file: "transpose_2d.cu",
        entry,
        grid: [tiles(n, cols), tiles(m, rows), 1],
        threads: 64,
        sizes: vec![m as i32, n as i32],
        maps: Vec::new(),
    };
    Some(Pair { kernel: "transpose_2d", dtype, sizes: vec![("m", m), ("n", n)], variant: None, by_hand })
}

/// How many tiles of `extent` cover `size`.
fn tiles(size: i64, extent: i64) -> u32 {
    ((size + extent - 1) / extent) as u32
}

/// The pairs that `bench` compares, beside transposes.
pub fn pairs() -> Vec<Pair> {
    let f32 = |kernel, sizes, file, entry, ctas, threads| pair((kernel, DType::F32), sizes, file, entry, ctas, threads);
    let f16 = |kernel, sizes, file, entry, ctas, threads| pair((kernel, DType::F16), sizes, file, entry, ctas, threads);
    let row = |rows, cols, threads| vec![("rows", rows), ("cols", cols), ("threads", threads)];
    let matrix = |rows, cols| vec![("rows", rows), ("cols", cols)];
    let map = |input, dims, sides, swizzle| MapByHand { input, dims, sides, swizzle };
    let gemm = |variant, file, entry, depth: i64| {
        let dims = [depth as u64, 128];
        let maps =
            vec![map(0, dims, [32, 64], MapSwizzle::B64), map(1, [128, depth as u64], [64, 32], MapSwizzle::B128)];
        let maps = if variant == "tma" { maps } else { Vec::new() };
        let by_hand = HandWritten { file, entry, grid: [2, 2, 1], threads: 128, sizes: vec![128, depth as i32], maps };
        let sizes = vec![("m", 128), ("n", 128), ("k", depth)];
        Pair { kernel: "gemm", dtype: DType::F16, sizes, variant: Some(variant), by_hand }
    };
    let column_sum = |rows: i64, cols: i64| {
        let (grid, sizes) = ([tiles(cols, 8), 1, 1], vec![rows as i32, cols as i32]);
        let by_hand =
            HandWritten { file: "column_sum.cu", entry: "column_sum", grid, threads: 128, sizes, maps: Vec::new() };
        Pair { kernel: "column_sum", dtype: DType::F32, sizes: matrix(rows, cols), variant: None, by_hand }
    };
    vec![
        f32("softmax", row(64, 2048, 32), "softmax.cu", "softmax_2048", 64, 32),
        f32("softmax", row(32, 1024, 32), "softmax.cu", "softmax_1024", 32, 32),
        f32("softmax", row(64, 128, 32), "softmax.cu", "softmax_128", 8, 32),
        f32("layer_norm", row(64, 2048, 32), "layer_norm.cu", "layer_norm_2048", 64, 32),
        f32("rms_norm", row(64, 2048, 32), "rms_norm.cu", "rms_norm_2048", 64, 32),
        column_sum(4096, 1024),
        column_sum(1000, 328),
        f16("elementwise", row(128, 128, 32), "elementwise.cu", "elementwise_128", 8, 32),
        f16("elementwise", matrix(1024, 1024), "elementwise.cu", "elementwise_1024", 128, 128),
        gemm("cp_async", "cp_async_gemm.cu", "cp_async_gemm", 256),
        gemm("cp_async", "cp_async_gemm.cu", "cp_async_gemm", 1024),
        gemm("tma", "tma_gemm.cu", "tma_gemm", 256),
        gemm("tma", "tma_gemm.cu", "tma_gemm", 1024),
        f16("short_attention", matrix(64, 64), "attention.cu", "attention_64_64", 1, 128),
        f16("short_attention", matrix(1024, 128), "attention.cu", "attention_128_64", 8, 128),
        f16("rope_halves", vec![("tokens", 256)], "rope.cu", "rope_halves", 16, 128),
        f16("rope_pairs", vec![("tokens", 256)], "rope.cu", "rope_pairs", 16, 128),
        f16("bias_gelu", matrix(1024, 100), "bias_gelu.cu", "bias_gelu_100", 64, 128),
        f16("bias_gelu", matrix(1024, 768), "bias_gelu.cu", "bias_gelu_768", 256, 128),
    ]
}

fn pair(
    (kernel, dtype): (&'static str, DType),
    sizes: Vec<(&'static str, i64)>,
    file: &'static str,
    entry: &'static str,
    ctas: u32,
    threads: u32,
) -> Pair {
    let by_hand = HandWritten { file, entry, grid: [ctas, 1, 1], threads, sizes: Vec::new(), maps: Vec::new() };
    Pair { kernel, dtype, sizes, variant: None, by_hand }
}
