//! The kernel for products that the matrix unit does not read from shared memory by itself: warps multiply, by `mma.sync`.

use tilewright::prelude::*;

use super::config::{MatmulConfig, MatmulShape};
use super::operands::Operands;
use crate::products::{Product, turned};

/// Bytes of K that are multiplied at once, and steps of it in shared memory.
const STEP_BYTES: i64 = 64;
const STAGES: i64 = 3;
/// Rows and columns of a tile, and of one for few rows or columns.
const TILE: i64 = 64;
const SMALL_TILE: i64 = 32;

/// The kernel for sizes like these, which may be any that have the same powers of two up to 16 as divisors. Tiles, stages and clusters
/// of the configuration do not matter.
pub(super) fn fallback(config: &MatmulConfig, like: MatmulShape) -> Kernel {
    let [transpose_a, transpose_b] = config.transposed;
    let tile = if like.m.min(like.n) <= SMALL_TILE { SMALL_TILE } else { TILE };
    let step = STEP_BYTES / config.factor.bytes();
    let product = Product { dtype: config.factor, tile, step, stages: STAGES, transpose_a, transpose_b };
    kernel("matmul_fallback", |k| {
        let operands = Operands::declare(k, config, like, [65_535, 1 << 20, 1 << 20]);
        let Operands { batch, extents: [m, n, depth], a, b, residual, bias, c, .. } = operands;
        let matrices = batch.map_or(Expr::from(1), Expr::from);
        let [column, row, matrix] = k.grid([n.ceil_div(tile), m.ceil_div(tile), matrices]);
        k.threads(128);
        let (rows, columns) = (at(row * tile, tile), at(column * tile, tile));
        let sums = product.sums(
            k,
            (Expr::from(0), depth.into()),
            |part| a.sub(matrix, turned(transpose_a, [rows, part])),
            |part| b.sub(matrix, turned(transpose_b, [part, columns])),
        );
        let bias = bias.map(|bias| {
            let held = k.fragment("held_bias", config.sum(), [tile]);
            k.copy(held, bias.sub((columns,)));
            held
        });
        let residual = residual.map(|residual| {
            let held = k.fragment("held_residual", config.result, [tile, tile]);
            k.copy(held, residual.sub(matrix, [rows, columns]));
            held
        });
        let result = k.fragment("result", config.result, [tile, tile]);
        k.parallel([tile, tile], |k, [i, j]| {
            let added = [bias.map(|bias| bias.at((j,))), residual.map(|residual| residual.at((i, j)))];
            let element = operands.finished(k, sums.at((i, j)), added);
            k.store(result, (i, j), element);
        });
        k.copy(c.sub(matrix, [rows, columns]), result);
    })
}
