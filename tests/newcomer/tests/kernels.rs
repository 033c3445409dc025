//! Every kernel is compiled for every target and run on the virtual GPU, at sizes that divide nothing, of 1, and below
//! one tile, and compared with its reference. Where there is no NVRTC, kernels are compiled only.

use newcomer::{bias_gelu, flash_attention, gemm, histogram, layer_norm_backward, quantise, rope, scan, top_two};
use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, Device, HostTensor, Tolerance, Toolchain, compare, run};

fn check(kernel: &Kernel, sizes: &[(&str, i64)], inputs: &[HostTensor], expected: &[HostTensor], tolerance: Tolerance) {
    let toolchain = Toolchain::from_env(None);
    for target in [Target::Sm100a, Target::Sm90a] {
        let artifact = compile(kernel.clone(), &Options::new(target)).expect("the kernel is right");
        let artifact = artifact.for_sizes(sizes).expect("sizes that fit");
        if let Err(why) = toolchain.nvrtc(target.name()) {
            eprintln!("skipped: {why}");
            continue;
        }
        let built = toolchain.build(&artifact, &CudaText::Generated).expect("NVRTC compiles it");
        let launched = run(&artifact, &built, inputs, &Device::Virtual).expect("it runs without a fault");
        assert_eq!(launched.outputs.len(), expected.len());
        for (got, expected) in launched.outputs.iter().zip(expected) {
            let comparison = compare(got, expected, tolerance);
            assert_eq!(comparison.mismatch, None, "{} for {}", artifact.name(), target.name());
        }
    }
}

/// Multiples of 1/16 from -2 to 2, which every float type holds.
fn numbers(seed: i64, count: i64) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + seed * 11) % 65 - 32) as f32 / 16.0).collect()
}

/// Numbers as a tensor of floats, rounded to the nearest.
fn tensor(dtype: DType, shape: &[i64], numbers: &[f32]) -> HostTensor {
    assert_eq!(shape.iter().product::<i64>(), numbers.len() as i64);
    HostTensor::from_f64(dtype, shape, |i| f64::from(numbers[i as usize]))
}

/// Integers as a tensor: the low bytes count.
fn integers(dtype: DType, shape: &[i64], numbers: &[i32]) -> HostTensor {
    assert_eq!(shape.iter().product::<i64>(), numbers.len() as i64);
    HostTensor::from_fn(dtype, shape, |i| numbers[i as usize] as u128)
}

#[test]
fn bias_gelu_for_any_matrix() {
    // Two units in the last place of f16 below 4, and the error of tanh.
    let tolerance = Tolerance { absolute: 2e-3, relative: 1e-3 };
    let kernel = bias_gelu::bias_gelu();
    for (rows, cols) in [(1, 1), (3, 5), (8, 64), (9, 129), (17, 70)] {
        let (x, bias, residual) = (numbers(1, rows * cols), numbers(2, cols), numbers(3, rows * cols));
        let inputs =
            [tensor(F16, &[rows, cols], &x), tensor(F16, &[cols], &bias), tensor(F16, &[rows, cols], &residual)];
        let y = tensor(F16, &[rows, cols], &bias_gelu::reference(&x, &bias, &residual));
        check(&kernel, &[("rows", rows), ("cols", cols)], &inputs, &[y], tolerance);
    }
}

#[test]
fn gemm_of_ragged_matrices() {
    for (m, n, depth) in [(1, 1, 1), (5, 7, 3), (64, 64, 32), (33, 100, 17), (65, 70, 40)] {
        let (a, b) = (numbers(1, m * depth), numbers(2, depth * n));
        let inputs = [tensor(BF16, &[m, depth], &a), tensor(BF16, &[depth, n], &b)];
        // Sums of multiples of 1/256 are exact, so that only the last rounding rounds.
        let c = tensor(BF16, &[m, n], &gemm::reference(&a, &b, n as usize, depth as usize));
        check(&gemm::gemm(m, n, depth), &[], &inputs, &[c], Tolerance::EXACT);
    }
}

#[test]
fn the_two_greatest_of_each_row() {
    for (rows, cols) in [(1, 1), (3, 1), (5, 2), (6, 37), (4, 64), (7, 100)] {
        let x = numbers(1, rows * cols);
        let (values, indices) = top_two::reference(&x, cols as usize);
        let expected = [tensor(F32, &[rows, 2], &values), integers(I32, &[rows, 2], &indices)];
        check(&top_two::top_two(rows, cols), &[], &[tensor(F32, &[rows, cols], &x)], &expected, Tolerance::EXACT);
    }
}

#[test]
fn rope_both_ways() {
    // One unit in the last place of f16 below 4.
    let tolerance = Tolerance { absolute: 2e-3, relative: 0.0 };
    for pairing in [rope::Pairing::Halves, rope::Pairing::Neighbours] {
        for (tokens, heads, depth) in [(1, 1, 2), (5, 3, 10), (3, 2, 64), (7, 5, 36)] {
            let half = depth / 2;
            let x = numbers(1, tokens * heads * depth);
            let angle = |at: i64| (at / half) as f32 * 10_000_f32.powf(-((at % half) as f32) / half as f32);
            let angles: Vec<f32> = (0..tokens * half).map(angle).collect();
            let cosines: Vec<f32> = angles.iter().map(|angle| angle.cos()).collect();
            let sines: Vec<f32> = angles.iter().map(|angle| angle.sin()).collect();
            let inputs = [
                tensor(F16, &[tokens, heads, depth], &x),
                tensor(F32, &[tokens, half], &cosines),
                tensor(F32, &[tokens, half], &sines),
            ];
            let y = rope::reference(&x, &cosines, &sines, heads as usize, depth as usize, pairing);
            let y = tensor(F16, &[tokens, heads, depth], &y);
            check(&rope::rope(tokens, heads, depth, pairing), &[], &inputs, &[y], tolerance);
        }
    }
}

#[test]
fn scan_of_rows() {
    for (rows, cols) in [(1, 1), (3, 5), (2, 256), (2, 300), (1, 1000)] {
        // Sums of these wrap.
        let x: Vec<i32> = (0..rows * cols).map(|i| (i as i32).wrapping_mul(123_456_789)).collect();
        let y = integers(I32, &[rows, cols], &scan::reference(&x, cols as usize));
        check(&scan::scan(rows, cols), &[], &[integers(I32, &[rows, cols], &x)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn quantise_rows() {
    for (rows, cols) in [(1, 1), (3, 5), (4, 64), (9, 70)] {
        let mut x = numbers(1, rows * cols);
        // The scale of this row is 1, so that some quotients are ties.
        x[0] = -127.0;
        if rows > 1 {
            x[cols as usize..2 * cols as usize].fill(0.0);
        }
        let (q, scales) = quantise::reference(&x, cols as usize);
        let expected = [integers(I8, &[rows, cols], &q), tensor(F32, &[rows], &scales)];
        check(&quantise::quantise(rows, cols), &[], &[tensor(F32, &[rows, cols], &x)], &expected, Tolerance::EXACT);
    }
}

#[test]
fn histogram_of_bytes() {
    let bins = histogram::BINS;
    for (count, ctas) in [(1, 1), (5, 3), (2, 5), (700, 4), (1000, 3)] {
        let x: Vec<u8> = (0..count).map(|i| (i * i * 3 + i * 7 + 255) as u8).collect();
        let bytes: Vec<i32> = x.iter().map(|byte| i32::from(*byte)).collect();
        let counts = histogram::reference(&x, ctas as usize);
        let counts = integers(I32, &[ctas, bins], &counts);
        let inputs = [integers(U8, &[count], &bytes)];
        check(&histogram::histogram(count, ctas), &[], &inputs, std::slice::from_ref(&counts), Tolerance::EXACT);
        let totals = integers(I32, &[bins], &histogram::reference(&x, 1));
        check(&histogram::totals(ctas), &[], &[counts], &[totals], Tolerance::EXACT);
    }
}

#[test]
fn flash_attention_of_ragged_sequences() {
    // Weights and results are rounded to f16.
    let tolerance = Tolerance { absolute: 4e-3, relative: 0.0 };
    for (heads, length, depth) in [(1, 1, 8), (2, 7, 16), (1, 33, 24), (3, 70, 16)] {
        let shape = [heads, length, depth];
        let [q, key, value] = [1, 2, 3].map(|seed| numbers(seed, heads * length * depth));
        let inputs = [&q, &key, &value].map(|numbers| tensor(F16, &shape, numbers));
        let out = flash_attention::reference(&q, &key, &value, length as usize, depth as usize);
        let kernel = flash_attention::flash_attention(heads, length, depth);
        check(&kernel, &[], &inputs, &[tensor(F16, &shape, &out)], tolerance);
    }
}

#[test]
fn layer_norm_backward_of_ragged_rows() {
    // Sums of f32 in another order.
    let tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };
    for (rows, cols) in [(1, 1), (3, 5), (8, 32), (17, 70)] {
        let (x, dy, gamma) = (numbers(1, rows * cols), numbers(2, rows * cols), numbers(3, cols));
        let (mean, rstd) = layer_norm_backward::statistics(&x, cols as usize);
        let [dx, dgamma, dbeta] = layer_norm_backward::reference(&x, &dy, &gamma);
        let [x, dy, dx] = [x, dy, dx].map(|numbers| tensor(F32, &[rows, cols], &numbers));
        let [gamma, dgamma, dbeta] = [gamma, dgamma, dbeta].map(|numbers| tensor(F32, &[cols], &numbers));
        let [mean, rstd] = [mean, rstd].map(|numbers| tensor(F32, &[rows], &numbers));
        let inputs = [x.clone(), dy.clone(), mean.clone(), rstd.clone()];
        check(&layer_norm_backward::of_parameters(rows, cols), &[], &inputs, &[dgamma, dbeta], tolerance);
        check(&layer_norm_backward::of_x(rows, cols), &[], &[x, dy, gamma, mean, rstd], &[dx], tolerance);
    }
}
