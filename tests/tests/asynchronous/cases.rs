//! Kernels with copies, barriers and flags, and products by TMA and a matrix engine.

use tilewright::vgpu::{Arg, BufferId, MapElement, Memory};

use super::case::{Case, floats, number, pointer, rows_map};

/// A product of small integers, so that sums are exact.
pub(crate) fn gemm() -> Case {
    let (m, n, k) = (128usize, 64usize, 160usize);
    let a: Vec<i32> = (0..m * k).map(|at| (at * 7 % 11) as i32 - 5).collect();
    let b: Vec<i32> = (0..k * n).map(|at| (at * 5 % 13) as i32 - 6).collect();
    let halves = |values: &[i32]| values.iter().flat_map(|v| half::f16::from_f32(*v as f32).to_le_bytes()).collect();
    let mut memory = Memory::new();
    let (left, right) = (memory.allocate("a", halves(&a)), memory.allocate("b", halves(&b)));
    let c = memory.allocate_poison("c", m * n * 4);
    let product = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum::<i32>() as f32;
    Case {
        file: "cp_async_gemm.cu",
        entry: "cp_async_gemm",
        grid: [1, 2, 1],
        threads: 128,
        cluster: 1,
        resident: None,
        kind: "",
        memory,
        args: vec![pointer(left), pointer(right), pointer(c), number(n as i32), number(k as i32)],
        results: (c, (0..m * n).map(product).collect()),
    }
}

/// 19 tiles by 2 CTAs, so that every stage is used three times.
pub(crate) fn roles() -> Case {
    let rows = 19 * 16;
    let x = |at: usize| (at % 1000) as f32;
    let mut memory = Memory::new();
    let from = memory.allocate("x", floats((0..rows * 32).map(x)));
    let to = memory.allocate_poison("y", rows * 128);
    let map = |memory: &Memory, buffer| rows_map(memory, buffer, MapElement::F32, [32, rows], (128, [32, 16]));
    let args = vec![map(&memory, from), map(&memory, to), number(19)];
    let results = (to, (0..rows * 32).map(|at| 2.0 * x(at) + 1.0).collect());
    Case {
        file: "tma_roles.cu",
        entry: "tma_roles",
        grid: [2, 1, 1],
        threads: 96,
        cluster: 1,
        resident: None,
        kind: "",
        memory,
        args,
        results,
    }
}

pub(crate) fn split_sum() -> Case {
    let n = 3000;
    let mut memory = Memory::new();
    let x = memory.allocate("x", floats((0..n).map(|at| (at % 17) as f32)));
    let parts = memory.allocate_poison("parts", 5 * 4);
    let arrived = memory.allocate("arrived", vec![0; 4]);
    let sum = memory.allocate_poison("sum", 4);
    let want = (0..n).map(|at| (at % 17) as f32).sum();
    let args = vec![pointer(x), pointer(parts), pointer(arrived), pointer(sum), number(n)];
    Case {
        file: "split_sum.cu",
        entry: "split_sum",
        grid: [5, 1, 1],
        threads: 128,
        cluster: 1,
        resident: None,
        kind: "",
        memory,
        args,
        results: (sum, vec![want]),
    }
}

/// Integers between plus and minus half of a modulus.
pub(crate) fn small_integers(count: usize, step: usize, modulus: usize) -> Vec<i32> {
    (0..count).map(|at| (at * step % modulus) as i32 - modulus as i32 / 2).collect()
}

pub(crate) fn bf16_bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| half::bf16::from_f32(*value as f32).to_le_bytes()).collect()
}

/// A product of bf16 by TMA and a matrix engine: A is (m, k) and B is (n, k), in boxes of `rows` and `columns` times 64.
pub(crate) fn bf16_product(
    memory: &mut Memory,
    [m, n, k]: [usize; 3],
    [rows, columns]: [u64; 2],
) -> (Vec<Arg>, (BufferId, Vec<f32>)) {
    let (a, b) = (small_integers(m * k, 7, 11), small_integers(n * k, 5, 13));
    let (left, right) = (memory.allocate("a", bf16_bytes(&a)), memory.allocate("b", bf16_bytes(&b)));
    let c = memory.allocate_poison("c", m * n * 4);
    let map = |buffer: BufferId, lines: usize, height: u64| {
        rows_map(memory, buffer, MapElement::Bf16, [k, lines], (2 * k, [64, height]))
    };
    let args = vec![map(left, m, rows), map(right, n, columns), pointer(c), number(n as i32), number(k as i32)];
    let product = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum::<i32>() as f32;
    (args, (c, (0..m * n).map(product).collect()))
}

/// Five tiles by one CTA, with seven steps of k: stages and accumulators are used several times.
pub(crate) fn tcgen05_gemm() -> Case {
    let mut memory = Memory::new();
    let (mut args, results) = bf16_product(&mut memory, [128, 320, 448], [128, 64]);
    args.push(number(5));
    Case {
        file: "tcgen05_gemm.cu",
        entry: "tcgen05_gemm",
        grid: [1, 1, 1],
        threads: 224,
        cluster: 1,
        resident: None,
        kind: "",
        memory,
        args,
        results,
    }
}

pub(crate) fn wgmma_gemm() -> Case {
    let mut memory = Memory::new();
    let (args, results) = bf16_product(&mut memory, [64, 128, 448], [64, 64]);
    Case {
        file: "wgmma_gemm.cu",
        entry: "wgmma_gemm",
        grid: [2, 1, 1],
        threads: 160,
        cluster: 1,
        resident: None,
        kind: "",
        memory,
        args,
        results,
    }
}
