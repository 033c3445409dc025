//! What a random kernel has so far: buffers, variables, names.

use tilewright::prelude::*;

use crate::rng::Rng;

/// Dtypes that elements have.
pub(super) const DTYPES: [DType; 16] =
    [F32, F32, F32, F16, BF16, E4M3, E5M2, F64, I32, I32, I8, U8, I16, U16, I64, U32];

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
    /// The role that a fragment belongs to.
    pub(super) role: Option<usize>,
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
    /// The warps of each role, and the role of the statements at hand.
    pub(super) roles: Vec<i64>,
    pub(super) role: Option<usize>,
}

impl Maker<'_> {
    /// The fragments that statements may use here.
    pub(super) fn held(&self) -> Vec<Held> {
        self.fragments.iter().copied().filter(|held| held.role == self.role).collect()
    }

    /// Adds statements of a role.
    pub(super) fn in_role(
        &mut self,
        k: &mut KernelBuilder,
        role: usize,
        add: impl FnOnce(&mut Self, &mut KernelBuilder),
    ) {
        k.role(&role_name(role), self.roles[role], |k| {
            self.role = Some(role);
            add(self, k);
            self.role = None;
        });
    }
}

/// The name of a role.
pub(super) fn role_name(role: usize) -> String {
    format!("role{role}")
}

/// Random roles of the warps of a CTA, which may leave some without a role; often none.
pub(super) fn random_roles(rng: &mut Rng, threads: i64) -> Vec<i64> {
    let (mut roles, mut left) = (Vec::new(), threads / 32);
    while left > 0 && (threads > 32 && rng.percent(if roles.is_empty() { 30 } else { 70 })) {
        roles.push(rng.within(1..=left));
        left -= roles[roles.len() - 1];
    }
    roles
}

impl Held {
    pub(super) fn at_zero(&self) -> Value {
        if self.is_flat { self.buffer.at((0,)) } else { self.buffer.at((0, 0)) }
    }
}
