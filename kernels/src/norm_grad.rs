use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{COLS, ROWS, THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const LAYER: KernelEntry = KernelEntry {
    name: "layer_norm_grad",
    about: "the gradients of layer_norm: of its input, and of weights and biases, summed over all rows by atomics",
    shape: &[ROWS, COLS, CTAS, THREADS],
    dtypes: &[F32, F16, BF16],
    build: |c, _| norm_grad("layer_norm_grad", c, true),
    run_time: |_| &["rows", "cols"],
    inputs,
    reference: |c, inputs| reference(c, inputs, true),
    // The input's gradient is rounded to 16 bits: bf16 has 8.
    tolerance: |_| Tolerance { absolute: 2e-3, relative: 8e-3 },
    tested: &[
        (F32, &[("rows", 1), ("cols", 1)]),
        (BF16, &[("rows", 9), ("cols", 1000), ("ctas", 2), ("threads", 96)]),
        (F32, &[("rows", 7), ("cols", 13), ("threads", 32)]),
    ],
};

pub(crate) const RMS: KernelEntry = KernelEntry {
    name: "rms_norm_grad",
    about: "the gradients of rms_norm: of its input, and of weights, summed over all rows by atomics",
    build: |c, _| norm_grad("rms_norm_grad", c, false),
    reference: |c, inputs| reference(c, inputs, false),
    ..LAYER
};

/// The CTAs that take a part of the rows each: their sums over rows are added by atomics, so there should not be more of them
/// than run at once.
const CTAS: ShapeKey = ShapeKey { name: "ctas", default: 528, about: "the most CTAs that share the rows" };
/// Added to the variance.
const EPSILON: f64 = 1e-5;

fn inputs(config: &Config) -> Vec<HostTensor> {
    let (dtype, rows, cols) = (config.dtype, config.size("rows"), config.size("cols"));
    vec![scattered(dtype, &[rows, cols], 1), scattered(dtype, &[rows, cols], 2), scattered(F32, &[cols], 3)]
}

/// With `g` the gradient of the normalised row `n`, that of the row is `(g - mean(g) - n*mean(g*n))*scale`; of a norm without a
/// mean, `(g - n*mean(g*n))*scale`. A CTA keeps its part of the sums over rows in registers.
fn norm_grad(name: &str, config: &Config, has_mean: bool) -> Kernel {
    let (dtype, tile) = (config.dtype, (config.size("cols") as u64).next_power_of_two() as i64);
    let ctas = config.size("ctas");
    kernel(name, |k| {
        let (rows, cols) = (k.size("rows"), divisible(k, config, "cols").max(tile));
        let gradient = k.input("gradient", dtype, (rows, cols));
        let x = k.input("x", dtype, (rows, cols));
        let weight = k.input("weight", F32, (cols,));
        let x_gradient = k.output("x_gradient", dtype, (rows, cols));
        let weight_gradient = k.accumulator("weight_gradient", F32, (cols,));
        let bias_gradient = has_mean.then(|| k.accumulator("bias_gradient", F32, (cols,)));
        let [cta] = k.grid([Expr::from(rows).at_most(ctas)]);
        let share = rows.ceil_div(ctas);
        let first = cta * share;
        k.threads(config.size("threads"));
        let [v, g, product, weights] = ["v", "g", "product", "weights"].map(|name| k.fragment(name, F32, [tile]));
        let [of_weight, of_bias] = ["of_weight", "of_bias"].map(|name| k.fragment(name, F32, [tile]));
        let [mean, scale, of_g, of_product] =
            ["mean", "scale", "of_g", "of_product"].map(|name| k.fragment(name, F32, [1]));
        let inverse = k.fragment("inverse", F32, [1]);
        k.copy(weights, weight.sub((at(0, tile),)));
        k.fill(of_weight, 0.0);
        k.fill(of_bias, 0.0);
        k.map(inverse, |_: [Expr; 1]| Value::from(1.0).cast(F32) / Value::from(cols).cast(F32));
        k.serial("row", (first, (first + share).at_most(rows)), |k, row| {
            let average = |k: &mut KernelBuilder, kind, of: Buffer, src| {
                k.reduce(kind, of, src, 0);
                k.map(of, |[i]| of.at((i,)) * inverse.at((0,)));
            };
            k.map(v, |[j]| x.at((row, j)).cast(F32));
            k.map(g, |[j]| gradient.at((row, j)).cast(F32));
            if has_mean {
                average(k, Sum, mean, v);
                k.map(v, |[j]| v.at((j,)) - mean.at((0,)));
            }
            average(k, SquareSum, scale, v);
            k.map(scale, |[i]| (scale.at((i,)) + EPSILON).rsqrt());
            k.map(v, |[j]| v.at((j,)) * scale.at((0,)));
            k.map(of_weight, |[j]| of_weight.at((j,)) + g.at((j,)) * v.at((j,)));
            k.map(of_bias, |[j]| of_bias.at((j,)) + g.at((j,)));
            k.map(g, |[j]| g.at((j,)) * weights.at((j,)));
            k.map(product, |[j]| g.at((j,)) * v.at((j,)));
            average(k, Sum, of_product, product);
            k.fill(of_g, 0.0);
            if has_mean {
                average(k, Sum, of_g, g);
            }
            k.parallel([tile], |k, [j]| {
                let own = (g.at((j,)) - of_g.at((0,)) - v.at((j,)) * of_product.at((0,))) * scale.at((0,));
                k.store(x_gradient, (row, j), own.cast(dtype));
            });
        });
        k.atomic_add(weight_gradient.sub((at(0, tile),)), of_weight);
        if let Some(bias_gradient) = bias_gradient {
            k.atomic_add(bias_gradient.sub((at(0, tile),)), of_bias);
        }
    })
}

fn reference(config: &Config, inputs: &[HostTensor], has_mean: bool) -> Vec<HostTensor> {
    let [gradient, x, weight] = [0, 1, 2].map(|at| elements(&inputs[at]));
    let cols = config.size("cols") as usize;
    let mean = |row: &[f64]| row.iter().sum::<f64>() / cols as f64;
    let (mut of_x, mut of_weight, mut of_bias) = (Vec::new(), vec![0.0; cols], vec![0.0; cols]);
    for (gradient, x) in gradient.chunks(cols).zip(x.chunks(cols)) {
        let center = if has_mean { mean(x) } else { 0.0 };
        let squares: Vec<f64> = x.iter().map(|x| (x - center).powi(2)).collect();
        let scale = 1.0 / (mean(&squares) + EPSILON).sqrt();
        let normal: Vec<f64> = x.iter().map(|x| (x - center) * scale).collect();
        let g: Vec<f64> = gradient.iter().zip(&weight).map(|(gradient, weight)| gradient * weight).collect();
        let along = mean(&g.iter().zip(&normal).map(|(g, normal)| g * normal).collect::<Vec<f64>>());
        let of_g = if has_mean { mean(&g) } else { 0.0 };
        of_x.extend(g.iter().zip(&normal).map(|(g, normal)| (g - of_g - normal * along) * scale));
        of_weight.iter_mut().zip(gradient.iter().zip(&normal)).for_each(|(sum, (g, normal))| *sum += g * normal);
        of_bias.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
    }
    let of_cols = [Some(of_weight), has_mean.then_some(of_bias)].into_iter().flatten();
    let of_cols = of_cols.map(|sums| listed(F32, &[cols as i64], &sums));
    std::iter::once(listed(config.dtype, inputs[0].shape(), &of_x)).chain(of_cols).collect()
}
