//! What `y = (x - mean)*rstd*gamma + beta` passes back: to `x`, row by row, and to `gamma` and `beta`, column by
//! column.

use tilewright::prelude::*;

/// Rows of a CTA, or of a part that it goes through.
const ROWS: i64 = 8;
/// Columns of a CTA of the second kernel.
const COLS: i64 = 32;

/// `dx` from `dy`; `mean` and `rstd` of each row are those of the forward kernel. `x`, `dy` and `dx` are `rows` x
/// `cols`.
pub fn of_x(rows: i64, cols: i64) -> Kernel {
    kernel("layer_norm_backward", |k| {
        let x = k.input("x", F32, [rows, cols]);
        let dy = k.input("dy", F32, [rows, cols]);
        let gamma = k.input("gamma", F32, [cols]);
        let mean = k.input("mean", F32, [rows]);
        let rstd = k.input("rstd", F32, [rows]);
        let dx = k.output("dx", F32, [rows, cols]);
        let [cta] = k.grid([(rows + ROWS - 1) / ROWS]);
        k.threads(128);
        let first = cta * ROWS;
        let normals = k.fragment("normals", F32, [ROWS, cols]);
        let slopes = k.fragment("slopes", F32, [ROWS, cols]);
        let products = k.fragment("products", F32, [ROWS, cols]);
        let slope_sum = k.fragment("slope_sum", F32, [ROWS]);
        let product_sum = k.fragment("product_sum", F32, [ROWS]);
        k.parallel([ROWS, cols], |k, [i, j]| {
            let row = first + i;
            let normal = k.named("normal", (x.at((row, j)) - mean.at((row,))) * rstd.at((row,)));
            let slope = k.named("slope", dy.at((row, j)) * gamma.at((j,)));
            k.store(normals, (i, j), normal);
            k.store(slopes, (i, j), slope);
            k.store(products, (i, j), slope * normal);
        });
        k.reduce(Sum, slope_sum, slopes, 1);
        k.reduce(Sum, product_sum, products, 1);
        k.parallel([ROWS, cols], |k, [i, j]| {
            let row = first + i;
            let along = normals.at((i, j)) * (product_sum.at((i,)) / cols as f64);
            let rest = slopes.at((i, j)) - slope_sum.at((i,)) / cols as f64 - along;
            k.store(dx, (row, j), rest * rstd.at((row,)));
        });
    })
}

/// `dgamma` and `dbeta`: each CTA has some columns, and goes through all rows in parts.
pub fn of_parameters(rows: i64, cols: i64) -> Kernel {
    kernel("layer_norm_backward_parameters", |k| {
        let x = k.input("x", F32, [rows, cols]);
        let dy = k.input("dy", F32, [rows, cols]);
        let mean = k.input("mean", F32, [rows]);
        let rstd = k.input("rstd", F32, [rows]);
        let dgamma = k.output("dgamma", F32, [cols]);
        let dbeta = k.output("dbeta", F32, [cols]);
        let [cta] = k.grid([(cols + COLS - 1) / COLS]);
        k.threads(128);
        let side = cta * COLS;
        let gammas = k.fragment("gammas", F32, [ROWS, COLS]);
        let betas = k.fragment("betas", F32, [ROWS, COLS]);
        let gamma = k.fragment("gamma", F32, [COLS]);
        let beta = k.fragment("beta", F32, [COLS]);
        k.fill(gammas, 0.0);
        k.fill(betas, 0.0);
        k.serial("t", 0..(rows + ROWS - 1) / ROWS, |k, t| {
            let top = t * ROWS;
            k.parallel([ROWS, COLS], |k, [i, j]| {
                let (row, column) = (top + i, side + j);
                // Both are 0 below the last row.
                let slope = k.named("slope", dy.at((row, &column)));
                let normal = k.named("normal", (x.at((row, &column)) - mean.at((row,))) * rstd.at((row,)));
                k.store(gammas, (i, j), gammas.at((i, j)) + slope * normal);
                k.store(betas, (i, j), betas.at((i, j)) + slope);
            });
        });
        k.reduce(Sum, gamma, gammas, 0);
        k.reduce(Sum, beta, betas, 0);
        k.parallel([COLS], |k, [j]| {
            k.store(dgamma, (side + j,), gamma.at((j,)));
            k.store(dbeta, (side + j,), beta.at((j,)));
        });
    })
}

/// What the forward kernel keeps of each row: `mean` and `rstd`.
pub fn statistics(x: &[f32], cols: usize) -> (Vec<f32>, Vec<f32>) {
    let of_row = |row: &[f32]| {
        let mean = row.iter().sum::<f32>() / cols as f32;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / cols as f32;
        (mean, 1.0 / (variance + 1e-5).sqrt())
    };
    x.chunks(cols).map(of_row).unzip()
}

/// The same in plain Rust: `dx`, `dgamma` and `dbeta`.
pub fn reference(x: &[f32], dy: &[f32], gamma: &[f32]) -> [Vec<f32>; 3] {
    let cols = gamma.len();
    let (mean, rstd) = statistics(x, cols);
    let (mut dx, mut dgamma, mut dbeta) = (Vec::new(), vec![0.0; cols], vec![0.0; cols]);
    for (row, (x, dy)) in x.chunks(cols).zip(dy.chunks(cols)).enumerate() {
        let normals: Vec<f32> = x.iter().map(|x| (x - mean[row]) * rstd[row]).collect();
        let slopes: Vec<f32> = dy.iter().zip(gamma).map(|(dy, gamma)| dy * gamma).collect();
        let slope = slopes.iter().sum::<f32>() / cols as f32;
        let product = slopes.iter().zip(&normals).map(|(slope, normal)| slope * normal).sum::<f32>() / cols as f32;
        for (j, normal) in normals.iter().enumerate() {
            dx.push((slopes[j] - slope - normal * product) * rstd[row]);
            dgamma[j] += dy[j] * normal;
            dbeta[j] += dy[j];
        }
    }
    [dx, dgamma, dbeta]
}
