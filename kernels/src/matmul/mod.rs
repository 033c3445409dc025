//! Products of matrices by roles: one loads, one multiplies, one stores. All follows from a [`MatmulConfig`].

mod config;
mod fallback;
mod kernel;
mod machine;
mod model;
mod operands;

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

pub use self::config::{Activation, Epilogue, Limit, MatmulConfig, MatmulShape, Scheduler};
pub use self::machine::Machine;
pub use self::model::{Bound, Cost, MOST_RANKED};
use crate::config::ShapeKey;
use crate::numbers::{elements, gelu_tanh, listed, small, tensor};
use crate::products::{K, LAYOUT, M, N, factors, multiplied, transposed, turned};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "matmul",
    about: "a matrix product by roles: one loads, one multiplies, one stores; clusters compute tile after tile",
    shape: &[
        BATCH,
        M,
        N,
        K,
        LAYOUT_OF_ROWS,
        ShapeKey { name: "columns", default: 128, about: "columns of a tile of 128 rows" },
        ShapeKey { name: "stages", default: 4, about: "stages of 128 bytes of each row of the factors" },
        ShapeKey { name: "sums", default: 2, about: "stages of sums in tensor memory" },
        ShapeKey { name: "turns", default: 1, about: "2: the warpgroups of sm_90a compute tiles in turns" },
        EPILOGUE,
        RESULT,
        ShapeKey { name: "cluster", default: 1, about: "CTAs of a cluster, one below the other: 1, 2, 4 or 8" },
        SCHEDULER,
        ShapeKey { name: "clusters", default: 4, about: "persistent clusters" },
        ShapeKey { name: "group", default: 8, about: "rows of tiles that are computed at the same time" },
        ShapeKey { name: "swapped", default: 1, about: "2: the factors are exchanged, for products of few rows" },
        ShapeKey { name: "splits", default: 1, about: "parts of k that are added in memory" },
        ShapeKey {
            name: "overlaps",
            default: 1,
            about: "2: it begins before the launch before it has ended, and loads b at once",
        },
        LDA,
        LDB,
        LDC,
    ],
    dtypes: &[BF16, F16, F32, E4M3, E5M2, I8],
    build: |config, target| MatmulConfig::of(config, target).kernel(MatmulShape::of(config)),
    run_time,
    inputs: |config| inputs(config, &of_sizes(config)),
    reference: |config, inputs| reference(config, &of_sizes(config), inputs),
    tolerance: |config| tolerance(&of_sizes(config)),
    tested: &[
        (F16, &[("m", 300), ("n", 144), ("k", 200), ("layout", 21), ("columns", 64)]),
        (BF16, &[("m", 1), ("n", 1), ("k", 1)]),
        (BF16, &[("m", 257), ("n", 67), ("k", 129), ("columns", 64), ("epilogue", 2), ("clusters", 2)]),
        (E4M3, &[("m", 130), ("n", 260), ("k", 96), ("columns", 256), ("stages", 2), ("epilogue", 3), ("cluster", 2)]),
        (F32, &[("m", 257), ("n", 72), ("k", 68), ("layout", 21), ("columns", 64), ("epilogue", 2)]),
        (BF16, &[("m", 520), ("n", 200), ("k", 136), ("columns", 64), ("scheduler", 3), ("group", 2)]),
        (F16, &[("m", 515), ("n", 200), ("k", 200), ("columns", 64), ("cluster", 2), ("scheduler", 3)]),
        (BF16, &[("m", 300), ("n", 200), ("k", 136), ("columns", 64), ("cluster", 2), ("scheduler", 2)]),
        (F16, &[("m", 520), ("n", 200), ("k", 136), ("columns", 64), ("turns", 2), ("epilogue", 6)]),
        (I8, &[("m", 512), ("n", 96), ("k", 272), ("columns", 48), ("epilogue", 3), ("clusters", 3)]),
        (BF16, &[("m", 520), ("n", 272), ("k", 192), ("cluster", 2), ("clusters", 2)]),
        (F16, &[("m", 640), ("n", 144), ("k", 128), ("columns", 64), ("cluster", 4), ("clusters", 1)]),
        (BF16, &[("batch", 3), ("m", 144), ("n", 80), ("k", 72), ("columns", 64), ("stages", 2), ("epilogue", 6)]),
        (I8, &[("m", 160), ("n", 64), ("k", 64), ("columns", 64), ("epilogue", 4), ("result", 3), ("sums", 1)]),
        (BF16, &[("m", 9), ("n", 300), ("k", 320), ("columns", 16), ("epilogue", 5), ("swapped", 2)]),
        (
            BF16,
            &[("m", 300), ("n", 200), ("k", 264), ("columns", 64), ("cluster", 2), ("epilogue", 2), ("overlaps", 2)],
        ),
        (F16, &[("m", 20), ("n", 200), ("k", 1000), ("columns", 32), ("splits", 4), ("swapped", 2)]),
        (
            F16,
            &[
                ("m", 130),
                ("n", 70),
                ("k", 80),
                ("columns", 64),
                ("epilogue", 6),
                ("lda", 96),
                ("ldb", 88),
                ("ldc", 72),
            ],
        ),
    ],
};

pub(crate) const FALLBACK: KernelEntry = KernelEntry {
    name: "matmul_fallback",
    about: "a matrix product of what `matmul` does not take: warps multiply, by mma.sync",
    shape: &[BATCH, M, N, K, LAYOUT_OF_ROWS, EPILOGUE, RESULT, LDA, LDB, LDC],
    dtypes: &[BF16, F16, F32, E4M3, E5M2, I8],
    build: |config, target| MatmulConfig::asked(config, target).fallback(MatmulShape::of(config)),
    run_time,
    inputs: |config| inputs(config, &asked_of_sizes(config)),
    reference: |config, inputs| reference(config, &asked_of_sizes(config), inputs),
    tolerance: |config| tolerance(&asked_of_sizes(config)),
    tested: &[
        (BF16, &[("m", 1), ("n", 1), ("k", 1)]),
        (F32, &[("m", 70), ("n", 50), ("k", 37), ("layout", 21), ("epilogue", 2)]),
        (F16, &[("m", 33), ("n", 129), ("k", 75), ("epilogue", 6), ("lda", 77), ("ldb", 75), ("ldc", 131)]),
        (E4M3, &[("batch", 2), ("m", 65), ("n", 30), ("k", 100), ("layout", 11), ("epilogue", 5), ("result", 3)]),
        (I8, &[("m", 80), ("n", 96), ("k", 70), ("layout", 22), ("epilogue", 3)]),
    ],
};

const BATCH: ShapeKey = ShapeKey { name: "batch", default: 1, about: "products" };
const LAYOUT_OF_ROWS: ShapeKey = ShapeKey { default: 12, ..LAYOUT };
const EPILOGUE: ShapeKey = ShapeKey {
    name: "epilogue",
    default: 1,
    about: "1: none; 2: bias; 3: bias, relu; 4: bias, gelu; 5: bias, silu; 6: scale, residual",
};
const SCHEDULER: ShapeKey = ShapeKey {
    name: "scheduler",
    default: 1,
    about: "1: persistent clusters; 2: a cluster for each tile; 3: clusters claim tiles from each other",
};
const RESULT: ShapeKey = ShapeKey {
    name: "result",
    default: 1,
    about: "1: the dtype of 16-bit factors, or of sums; 2: that of sums; 3: bf16; 4: e4m3",
};
const LDA: ShapeKey = ShapeKey {
    name: "lda",
    default: 0,
    about: "elements from a row of a to the next one; with ldb and ldc; 0: without gaps",
};
const LDB: ShapeKey = ShapeKey { name: "ldb", default: 0, about: "the same of b" };
const LDC: ShapeKey = ShapeKey { name: "ldc", default: 0, about: "the same of c and what is added to it" };

fn run_time(config: &Config) -> &'static [&'static str] {
    match (config.size("batch") > 1, MatmulShape::of(config).leading.is_some()) {
        (false, false) => &["m", "n", "k"],
        (false, true) => &["m", "n", "k", "lda", "ldb", "ldc"],
        (true, false) => &["batch", "m", "n", "k"],
        (true, true) => &["batch", "m", "n", "k", "lda", "ldb", "ldc"],
    }
}

impl MatmulConfig {
    /// The configuration that sizes of the library's kernel describe.
    pub fn of(config: &Config, target: Target) -> MatmulConfig {
        let [columns, stages, sums, cluster, clusters, group, splits] =
            ["columns", "stages", "sums", "cluster", "clusters", "group", "splits"].map(|name| config.size(name));
        let [swapped, turns, overlaps] = ["swapped", "turns", "overlaps"].map(|name| config.size(name) == 2);
        let scheduler = match config.size("scheduler") {
            2 => Scheduler::OneEach,
            3 => Scheduler::Claimed,
            _ => Scheduler::Persistent,
        };
        let asked = MatmulConfig::asked(config, target);
        let product = MatmulConfig {
            columns,
            stages,
            sums,
            turns,
            cluster,
            scheduler,
            clusters,
            group,
            swapped,
            splits,
            overlaps,
            ..asked
        };
        MatmulConfig { result: result(config, &product), ..product }
    }

    /// What is multiplied, and what becomes of the sums.
    fn asked(config: &Config, target: Target) -> MatmulConfig {
        let (transposed, epilogue) = (transposed(config), epilogue(config));
        let product = MatmulConfig { transposed, epilogue, ..MatmulConfig::new(target, config.dtype) };
        let has_whole_rows = MatmulShape::of(config).has_whole_rows(&product);
        MatmulConfig { has_whole_rows, result: result(config, &product), ..product }
    }
}

impl MatmulShape {
    /// The extents among sizes of the library's kernels.
    pub fn of(config: &Config) -> MatmulShape {
        let [batch, m, n, k] = ["batch", "m", "n", "k"].map(|name| config.size(name));
        let leading = ["lda", "ldb", "ldc"].map(|name| config.size(name));
        let leading = (leading != [0; 3]).then_some(leading);
        MatmulShape { batch, leading, ..MatmulShape::new([m, n, k]) }
    }
}

/// The product of sizes of `matmul`, whose numbers are the same on all targets.
fn of_sizes(config: &Config) -> MatmulConfig {
    MatmulConfig::of(config, Target::Sm100a)
}

/// The same of `matmul_fallback`.
fn asked_of_sizes(config: &Config) -> MatmulConfig {
    MatmulConfig::asked(config, Target::Sm100a)
}

/// The dtype of the result that sizes ask for.
fn result(config: &Config, product: &MatmulConfig) -> DType {
    match config.size("result") {
        2 => product.value(),
        3 => BF16,
        4 => E4M3,
        _ => product.usual_result(),
    }
}

fn epilogue(config: &Config) -> Epilogue {
    let with_bias = |activation| Epilogue { bias: true, activation, ..Epilogue::NONE };
    match config.size("epilogue") {
        2 => with_bias(Activation::None),
        3 => with_bias(Activation::Relu),
        4 => with_bias(Activation::Gelu),
        5 => with_bias(Activation::Silu),
        6 => Epilogue { scale: true, residual: true, ..Epilogue::NONE },
        _ => Epilogue::NONE,
    }
}

/// The extents of a matrix, or of a batch of them.
fn extents(config: &Config, [rows, columns]: [i64; 2]) -> Vec<i64> {
    let batch = Some(config.size("batch")).filter(|batch| *batch > 1);
    batch.into_iter().chain([rows, columns]).collect()
}

/// The number that sums are multiplied by, if they are.
const SCALE: f64 = 0.5;

/// The factors, and what the epilogue reads.
fn inputs(config: &Config, product: &MatmulConfig) -> Vec<HostTensor> {
    let MatmulShape { m, n, k, .. } = MatmulShape::of(config);
    let [left, right] = product.transposed;
    let mut all = factors(config, &extents(config, turned(left, [m, k])), &extents(config, turned(right, [k, n])));
    let Epilogue { scale, bias, residual, .. } = product.epilogue;
    all.extend(residual.then(|| small(product.result, &extents(config, [m, n]), 4)));
    all.extend(bias.then(|| small(product.sum(), &[n], 3)));
    all.extend(scale.then(|| tensor(F32, &[1], |_| SCALE)));
    all
}

fn reference(config: &Config, product: &MatmulConfig, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (MatmulShape { m, n, k, .. }, Epilogue { scale, bias, activation, residual }) =
        (MatmulShape::of(config), product.epilogue);
    let mut more = inputs[2..].iter().map(elements);
    let residual = residual.then(|| more.next()).flatten();
    let bias = bias.then(|| more.next()).flatten();
    let scale = if scale { SCALE } else { 1.0 };
    let mut c = multiplied([m, n, k], product.transposed, &inputs[..2]);
    for (at, element) in c.iter_mut().enumerate() {
        let value = *element * scale + bias.as_ref().map_or(0.0, |bias| bias[at % n as usize]);
        let active = match activation {
            Activation::None => value,
            Activation::Relu => value.max(0.0),
            Activation::Gelu => gelu_tanh(value),
            Activation::Silu => value / (1.0 + (-value).exp()),
        };
        *element = active + residual.as_ref().map_or(0.0, |residual| residual[at]);
    }
    vec![listed(product.result, &extents(config, [m, n]), &c)]
}

/// Sums of products of such inputs are exact, and rounded once; exponentials are not, and may be rounded to the next number.
fn tolerance(product: &MatmulConfig) -> Tolerance {
    if !matches!(product.epilogue.activation, Activation::Gelu | Activation::Silu) {
        return Tolerance::EXACT;
    }
    let bits = match product.result {
        E4M3 => 3,
        BF16 => 7,
        F16 => 10,
        _ => 16,
    };
    let relative = 0.5f64.powi(bits);
    Tolerance { absolute: relative / 16.0, relative }
}
