use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "embedding",
    about: "rows of a table, chosen by numbers",
    shape: &[
        ShapeKey { name: "tokens", default: 64, about: "number of rows that are chosen" },
        ShapeKey { name: "vocabulary", default: 1000, about: "rows of the table" },
        ShapeKey { name: "dim", default: 256, about: "elements of a row" },
        ShapeKey { name: "threads", default: 128, about: "threads of a CTA, which takes 4 tokens" },
    ],
    dtypes: &[F16, BF16, F32],
    build: embedding,
    run_time: &["tokens", "vocabulary"],
    inputs: |c| {
        let ids = |at: i64| (at * 37 + 11) % c.size("vocabulary");
        let ids = HostTensor::from_f64(I32, &[c.size("tokens")], |at| ids(at) as f64);
        vec![scattered(c.dtype, &[c.size("vocabulary"), c.size("dim")], 7), ids]
    },
    reference,
    tolerance: Tolerance::EXACT,
    tested: &[
        (F32, &[("tokens", 1), ("vocabulary", 1), ("dim", 8)]),
        (F16, &[("tokens", 101), ("vocabulary", 33), ("dim", 100), ("threads", 96)]),
    ],
};

/// Tokens of a CTA.
const EACH: i64 = 4;

fn embedding(config: &Config) -> Kernel {
    let [dim, threads] = ["dim", "threads"].map(|name| config.size(name));
    kernel("embedding", |k| {
        let (tokens, vocabulary) = (k.size("tokens"), k.size("vocabulary"));
        let table = k.input("table", config.dtype, (vocabulary, dim));
        let ids = k.input("ids", I32, (tokens,));
        let y = k.output("y", config.dtype, (tokens, dim));
        let [block] = k.grid([tokens.ceil_div(EACH)]);
        k.threads(threads);
        k.parallel([EACH, dim], |k, [i, j]| {
            let token = block * EACH + i;
            k.store(y, (token, j), table.at((ids.at((token,)), j)));
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let (dim, table) = (config.size("dim") as usize, elements(&inputs[0]));
    let rows: Vec<f64> =
        elements(&inputs[1]).iter().flat_map(|id| table[*id as usize * dim..][..dim].to_vec()).collect();
    vec![listed(config.dtype, &[config.size("tokens"), config.size("dim")], &rows)]
}
