use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "sf_transpose_global",
    about: "the seed program: two stages of a 4 x 32 transpose, global to global",
    shape: &[],
    dtypes: &[F32],
    build: |_, _| sf_transpose_global(),
    run_time: |_| &[],
    inputs: |_| vec![HostTensor::pattern(F32, &SHAPE)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[],
};

const SHAPE: [i64; 4] = [2, 1, 4, 32];

/// Two stages of a 4 x 32 transpose, global to global.
fn sf_transpose_global() -> Kernel {
    kernel("sf_transpose_global", |k| {
        let a = k.input("a", F32, S(SHAPE, [128, 128, 32, 1]));
        let b = k.output("b", F32, S(SHAPE, [128, 128, 1, 4]));
        k.threads(32);
        k.serial("s", 0..2, |k, s| {
            k.warp().permute_layout(b.sub((s, .., .., ..)), a.sub((s, .., .., ..))).variant("warp_xor_swizzle");
        });
    })
}

/// Logically nothing changes: the same elements in another layout.
fn reference(_: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    inputs.to_vec()
}
