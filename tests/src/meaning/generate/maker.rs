//! What a random kernel has so far: buffers, variables, names.

use tilewright::prelude::*;

use crate::rng::Rng;

/// Dtypes that elements have.
pub(super) const DTYPES: [DType; 14] = [F32, F32, F32, F16, BF16, F64, I32, I32, I8, U8, I16, U16, I64, U32];

/// A buffer that statements are about.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) buffer: Buffer,
    pub(super) dtype: DType,
    pub(super) extents: [i64; 2],
    pub(super) is_flat: bool,
    /// Tiles of these extents behind each other, of which accesses take one; 0 for one without a number.
    pub(super) stages: i64,
    /// What tells storages apart: views have that of their buffer.
    pub(super) storage: usize,
}

/// Variables of loops around, of the nest, and of loops inside.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) vars: Vec<(Expr, i64)>,
    pub(super) names: Vec<(Value, DType)>,
}

pub(super) struct Maker<'r> {
    pub(super) rng: &'r mut Rng,
    pub(super) threads: i64,
    pub(super) dtype: DType,
    pub(super) inputs: Vec<Held>,
    /// Integers that are indices.
    pub(super) indices: Held,
    pub(super) fragments: Vec<Held>,
    pub(super) shared: Vec<Held>,
    pub(super) outputs: Vec<Held>,
    /// Fragments of each warp's own, and parameters of the same extents.
    pub(super) own: Vec<Held>,
    pub(super) rows: Vec<Held>,
    pub(super) scope: Scope,
    pub(super) names: usize,
    /// The storage that the statement at hand writes.
    pub(super) target: usize,
    /// A size that is known only at launch.
    pub(super) size: Option<Size>,
}

impl Held {
    pub(super) fn at_zero(&self) -> Value {
        if self.is_flat { self.buffer.at((0,)) } else { self.buffer.at((0, 0)) }
    }
}
