//! What random kernels about tiles of a tensor have in common: threads in roles, tiles, and where they begin in the tensor.

use tilewright::prelude::*;

use super::layouts::memory_layout;
use super::maker::{DTYPES, role_name};
use crate::rng::Rng;

/// The warps of two roles, if there are roles.
pub(super) type Roles = Option<[i64; 2]>;

/// Where a tile begins in each dimension: so many elements, so many more in each iteration, and in each of the loop around.
pub(super) type Starts<const N: usize> = [[i64; 3]; N];

/// The threads of a kernel and its tiles.
pub(super) struct Setting<const N: usize> {
    pub(super) roles: Roles,
    pub(super) dtype: DType,
    /// Elements of 16 bytes, which rows of boxes are multiples of.
    pub(super) unit: i64,
    pub(super) extents: [i64; N],
}

impl<const N: usize> Setting<N> {
    /// A random one, with roles in so many percent of those that have several warps.
    pub(super) fn random(k: &mut KernelBuilder, rng: &mut Rng, percent_of_roles: u64) -> Setting<N> {
        let threads = *rng.pick(&[32, 32, 48, 64, 96, 128, 16]);
        k.threads(threads);
        let warps = threads / 32;
        let has_roles = warps > 1 && rng.percent(percent_of_roles);
        let roles = has_roles.then(|| rng.within(1..=warps - 1)).map(|first| [first, warps - first]);
        let dtype = *rng.pick(&DTYPES);
        let unit = 16 / dtype.bytes();
        let mut extents = [0; N].map(|_| *rng.pick(&[1, 1, 2, 3, 4, 8]));
        extents[N - 1] = unit * *rng.pick(&[1, 2, 4, 4, 8]);
        Setting { roles, dtype, unit, extents }
    }

    /// A tile in shared memory, with a layout or without.
    pub(super) fn tile(&self, k: &mut KernelBuilder, rng: &mut Rng, number: i64) -> Buffer {
        let (name, of_tile) = (format!("tile{number}"), self.extents.to_vec());
        let laid_out = if N == 2 { memory_layout(rng, of_tile.clone()) } else { None };
        match laid_out {
            Some(layout) => k.shared(&name, self.dtype, layout),
            None => k.shared(&name, self.dtype, of_tile),
        }
    }

    /// Where a tile begins; in the last dimension `factors` times as many elements at first.
    pub(super) fn starts(&self, rng: &mut Rng, factors: &[i64]) -> Starts<N> {
        let mut starts = self.extents.map(|extent| {
            let step = *rng.pick(&[0, 1, extent, extent]);
            [rng.within(0..=3), step, rng.within(0..=2) * extent]
        });
        starts[N - 1][0] *= *rng.pick(factors);
        starts
    }
}

/// Statements of one of two roles, if there are roles.
pub(super) fn in_role(k: &mut KernelBuilder, roles: Roles, role: usize, add: impl FnOnce(&mut KernelBuilder)) {
    match roles {
        None => add(k),
        Some(warps) => k.role(&role_name(role), warps[role], add),
    }
}
