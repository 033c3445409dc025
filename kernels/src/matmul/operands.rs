//! The parameters of products, and what becomes of their sums: the same in every kernel of a product.

use tilewright::dsl::IntoLayout;
use tilewright::prelude::*;

use super::config::{Activation, Epilogue, MatmulConfig, MatmulShape};
use crate::blocks::divisible_like;
use crate::numbers::{CUBE, ROOT};
use crate::products::turned;

/// A matrix, or a batch of them.
#[derive(Clone, Copy)]
pub(super) struct Matrices {
    pub(super) tensor: Buffer,
    is_batch: bool,
}

impl Matrices {
    /// Some rows and columns of a matrix.
    pub(super) fn sub(self, matrix: Expr, [rows, columns]: [Index; 2]) -> Region {
        if self.is_batch { self.tensor.sub((matrix, rows, columns)) } else { self.tensor.sub((rows, columns)) }
    }
}

/// The parameters of a product `c = epilogue(a b)`.
pub(super) struct Operands {
    /// Products, if there may be several.
    pub(super) batch: Option<Size>,
    /// Rows and columns of the result, and the extent that is summed over.
    pub(super) extents: [Size; 3],
    /// The left factor, as it is stored.
    pub(super) a: Matrices,
    /// The right factor, as it is stored.
    pub(super) b: Matrices,
    /// What is added to the result.
    pub(super) residual: Option<Matrices>,
    /// What is added to the columns of the result.
    pub(super) bias: Option<Buffer>,
    /// The result.
    pub(super) c: Matrices,
    scale: Option<Value>,
    epilogue: Epilogue,
    /// The dtypes of what the epilogue computes, and of its result.
    dtypes: [DType; 2],
}

impl Operands {
    /// Declares them for sizes like these, with at most so many products, rows and columns.
    #[track_caller]
    pub(super) fn declare(k: &mut KernelBuilder, config: &MatmulConfig, like: MatmulShape, most: [i64; 3]) -> Operands {
        let MatmulConfig { factor, result, epilogue, transposed: [transpose_a, transpose_b], .. } = *config;
        let [m, n, depth] =
            [("m", like.m), ("n", like.n), ("k", like.k)].map(|(name, size)| divisible_like(k, name, size));
        let batch = (like.batch > 1).then(|| k.size("batch").max(most[0]));
        let [m, n] = [m.max(most[1]), n.max(most[2])];
        let stored = [turned(transpose_a, [m, depth]), turned(transpose_b, [depth, n]), [m, n]];
        let rows = match like.leading {
            Some(leading) => {
                like.refuse_overlaps(k, config.transposed);
                let [a, b, c] = leading;
                [("lda", a), ("ldb", b), ("ldc", c)].map(|(name, size)| divisible_like(k, name, size))
            }
            None => stored.map(|[_, columns]| columns),
        };
        let [of_a, of_b, of_c] = [0, 1, 2].map(|which| Place { batch, extents: stored[which], row: rows[which] });
        let a = of_a.declare(k, Access::Read, "a", factor);
        let b = of_b.declare(k, Access::Read, "b", factor);
        let residual = epilogue.residual.then(|| of_c.declare(k, Access::Read, "residual", result));
        let bias = epilogue.bias.then(|| k.input("bias", config.sum(), (n,)));
        let scale = epilogue.scale.then(|| k.scalar("scale", F32));
        let access = if config.splits > 1 { Access::Add } else { Access::Write };
        let c = of_c.declare(k, access, "c", result);
        let dtypes = [config.value(), result];
        Operands { batch, extents: [m, n, depth], a, b, residual, bias, c, scale, epilogue, dtypes }
    }

    /// The element of the result with this sum, and what is added to it.
    pub(super) fn finished(&self, k: &mut Elements, sum: Value, [bias, residual]: [Option<Value>; 2]) -> Value {
        let [dtype, result] = self.dtypes;
        let sum = sum.cast(dtype);
        let scaled = self.scale.map_or(sum, |scale| sum * scale);
        let biased = bias.map_or(scaled, |bias| scaled + bias.cast(dtype));
        let active = match self.epilogue.activation {
            Activation::None => biased,
            Activation::Relu => biased.max(0),
            Activation::Gelu => {
                // Results of 32 bits keep more digits than `fast_tanh` has.
                let v = k.named("v", biased);
                v * (v * (v * v * (2.0 * ROOT * CUBE) + 2.0 * ROOT)).fast_sigmoid()
            }
            Activation::Silu => biased.fast_silu(),
        };
        residual.map_or(active, |residual| active + residual.cast(dtype)).cast(result)
    }
}

/// Where the elements of a matrix are, or those of a batch of them.
#[derive(Clone, Copy)]
struct Place {
    batch: Option<Size>,
    /// Rows and columns.
    extents: [Size; 2],
    /// Elements from the beginning of a row to that of the next one.
    row: Size,
}

impl Place {
    #[track_caller]
    fn declare(self, k: &mut KernelBuilder, access: Access, name: &str, dtype: DType) -> Matrices {
        let ([rows, columns], row, one) = (self.extents.map(Expr::from), Expr::from(self.row), Expr::from(1));
        let tensor = match self.batch {
            Some(batch) => access.declare(k, name, dtype, ([batch.into(), rows, columns], [rows * row, row, one])),
            None => access.declare(k, name, dtype, ([rows, columns], [row, one])),
        };
        Matrices { tensor, is_batch: self.batch.is_some() }
    }
}

/// What a kernel does to a tensor.
#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
    Add,
}

impl Access {
    #[track_caller]
    fn declare(self, k: &mut KernelBuilder, name: &str, dtype: DType, layout: impl IntoLayout) -> Buffer {
        match self {
            Access::Read => k.input(name, dtype, layout),
            Access::Write => k.output(name, dtype, layout),
            Access::Add => k.accumulator(name, dtype, layout),
        }
    }
}
