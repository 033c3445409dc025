use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "sf_transpose",
    about: "scale factors: per stage, a 4 x 32 tile into shared memory, permuted there in place, and out",
    shape: &[],
    dtypes: &[F32],
    build: |_, _| sf_transpose(),
    run_time: |_| &[],
    inputs: |_| vec![HostTensor::pattern(F32, &SHAPE)],
    reference,
    tolerance: |_| Tolerance::EXACT,
    tested: &[],
};

const STAGES: i64 = 2;
const SHAPE: [i64; 3] = [STAGES, 4, 32];

/// Per stage: copy a 4 x 32 tile of scale factors into shared memory, transpose it there in place, copy it out.
fn sf_transpose() -> Kernel {
    kernel("sf_transpose", |k| {
        let a = k.input("a", F32, S(SHAPE, [128, 32, 1]));
        let b = k.output("b", F32, S(SHAPE, [128, 1, 4]));
        k.threads(32);
        let tile = k.shared("tile", F32, S([4, 32], [32, 1]));
        let transposed = k.view("transposed", tile, S([4, 32], [1, 4]));
        k.serial("s", 0..STAGES, |k, s| {
            k.warp().copy(tile, a.sub((s, .., ..)));
            k.warp().permute_layout(transposed, tile);
            k.warp().copy(b.sub((s, .., ..)), transposed);
        });
    })
}

/// Logically nothing changes: the same elements in another layout.
fn reference(_: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    inputs.to_vec()
}
