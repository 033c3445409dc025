//! What products of matrices share: tiles of both factors stream through shared memory, copied ahead.

use tilewright::prelude::*;
use tilewright::runtime::HostTensor;

use crate::Config;
use crate::config::ShapeKey;
use crate::numbers::{elements, scattered, small};

/// Rows of the result.
pub(crate) const M: ShapeKey = ShapeKey { name: "m", default: 64, about: "rows of the result" };
/// Columns of the result.
pub(crate) const N: ShapeKey = ShapeKey { name: "n", default: 64, about: "columns of the result" };
/// The extent that is summed over.
pub(crate) const K: ShapeKey =
    ShapeKey { name: "k", default: 128, about: "columns of the left factor, rows of the right one" };
/// How the factors are stored.
pub(crate) const LAYOUT: ShapeKey =
    ShapeKey { name: "layout", default: 11, about: "two digits: 2 if the left (right) factor is transposed, else 1" };
/// The tile of a CTA.
pub(crate) const TILE: ShapeKey =
    ShapeKey { name: "tile", default: 64, about: "rows and columns of a CTA's tile, a multiple of 16" };
/// Columns of the left factor in shared memory.
pub(crate) const STEP: ShapeKey =
    ShapeKey { name: "step", default: 32, about: "the part of k that is multiplied at once" };
/// Steps in shared memory.
pub(crate) const STAGES: ShapeKey =
    ShapeKey { name: "stages", default: 3, about: "steps of which the factors are in shared memory" };

/// How a CTA computes its tile of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// The dtype of the factors.
    pub(crate) dtype: DType,
    /// Rows and columns of the tile.
    pub(crate) tile: i64,
    /// The part of the summed extent that is multiplied at once.
    pub(crate) step: i64,
    /// Steps in shared memory.
    pub(crate) stages: i64,
    /// Whether the left factor is stored as K x M.
    pub(crate) transpose_a: bool,
    /// Whether the right factor is stored as N x K.
    pub(crate) transpose_b: bool,
}

impl Product {
    /// The product of a configuration; it is not transposed.
    pub(crate) fn of(config: &Config) -> Product {
        let [tile, step, stages] = ["tile", "step", "stages"].map(|name| config.size(name));
        Product { dtype: config.dtype, tile, step, stages, transpose_a: false, transpose_b: false }
    }

    /// The dtype of the sums.
    pub(crate) fn sum_dtype(self) -> DType {
        if self.dtype == I8 { I32 } else { F32 }
    }

    /// The tile of the product in a fragment, summed from `first` to before `end` along K. `a` gives the region of the left
    /// factor for some of its rows and some of K, `b` that of the right factor for some of K and some of its columns.
    #[track_caller]
    pub(crate) fn sums(
        self,
        k: &mut KernelBuilder,
        (first, end): (Expr, Expr),
        a: impl Fn(Index) -> Region,
        b: impl Fn(Index) -> Region,
    ) -> Buffer {
        let Product { dtype, tile, step, stages, transpose_a, transpose_b } = self;
        let left = k.shared("left", dtype, turned(transpose_a, [tile, step]));
        let right = k.shared("right", dtype, turned(transpose_b, [step, tile]));
        let sums = k.fragment("sums", self.sum_dtype(), [tile, tile]);
        let policy = WarpPolicy::Square;
        k.fill(sums, 0);
        k.pipelined("t", (first, end).step(step), stages, |k, t| {
            k.copy(left, a(at(t, step)));
            k.copy(right, b(at(t, step)));
            k.gemm(sums, left, right).with(Gemm {
                transpose_a,
                transpose_b,
                policy,
                tf32: dtype == F32,
                ..Gemm::PLAIN
            });
        });
        sums
    }
}

/// A pair in the other order, if it is that of a transposed matrix.
pub(crate) fn turned<T>(is_transposed: bool, [rows, cols]: [T; 2]) -> [T; 2] {
    if is_transposed { [cols, rows] } else { [rows, cols] }
}

/// Two factors with as many numbers: `a` of `rows` rows and `b` of `cols` columns for each of `batch`.
pub(crate) fn factors(config: &Config, a: &[i64], b: &[i64]) -> Vec<HostTensor> {
    // Tensor cores keep fewer bits of sums of 8-bit floats than f32 has.
    let numbers = if config.dtype.saturation().is_some() { small } else { scattered };
    vec![numbers(config.dtype, a, 1), numbers(config.dtype, b, 2)]
}

/// Whether the factors of a configuration with [`LAYOUT`] are transposed.
pub(crate) fn transposed(config: &Config) -> [bool; 2] {
    let layout = config.size("layout");
    [layout / 10 == 2, layout % 10 == 2]
}

/// The factors of a configuration with [`LAYOUT`].
pub(crate) fn stored_factors(config: &Config) -> Vec<HostTensor> {
    let [m, n, depth] = ["m", "n", "k"].map(|name| config.size(name));
    let [transpose_a, transpose_b] = transposed(config);
    factors(config, &turned(transpose_a, [m, depth]), &turned(transpose_b, [depth, n]))
}

/// The product of these, as numbers in row-major order.
pub(crate) fn product_of(config: &Config, inputs: &[HostTensor]) -> Vec<f64> {
    multiplied(["m", "n", "k"].map(|name| config.size(name)), transposed(config), inputs)
}

/// The product of matrices one after the other, as numbers in row-major order. Factors are M x K and K x N unless they are
/// transposed.
pub(crate) fn multiplied(
    [m, n, depth]: [i64; 3],
    [transpose_a, transpose_b]: [bool; 2],
    inputs: &[HostTensor],
) -> Vec<f64> {
    let [m, n, depth] = [m, n, depth].map(|extent| extent as usize);
    let (a, b) = (elements(&inputs[0]), elements(&inputs[1]));
    let left = |a: &[f64], i: usize, d: usize| if transpose_a { a[d * m + i] } else { a[i * depth + d] };
    let right = |b: &[f64], d: usize, j: usize| if transpose_b { b[j * depth + d] } else { b[d * n + j] };
    let product = |(a, b): (&[f64], &[f64])| -> Vec<f64> {
        (0..m * n).map(|at| (0..depth).map(|d| left(a, at / n, d) * right(b, d, at % n)).sum()).collect()
    };
    a.chunks(m * depth).zip(b.chunks(depth * n)).flat_map(product).collect()
}
