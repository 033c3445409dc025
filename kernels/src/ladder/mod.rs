//! A ladder of kernels, from a naive product to `matmul`: each has one idea more than the one before. The book explains them, in
//! `docs/ladder.md`.
//!
//! All of them compute `c = a b`, with `a` stored as M x K, `b` as N x K, and `c` as M x N, of bf16 and for `sm_100a`. The sizes are given at
//! launch, and are multiples of 8; those of the last step are multiples of 16.

mod ahead;
mod engine_stores;
mod naive;
mod pair;
mod persistent;
mod roles;
mod tensor_memory;
mod tiles;

use tilewright::prelude::*;

use crate::{MatmulConfig, MatmulShape};

/// A step of the ladder.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its name, which is that of its kernel.
    pub name: &'static str,
    /// What is new in it.
    pub idea: &'static str,
    /// The kernel.
    pub kernel: fn() -> Kernel,
}

/// The steps, the lowest one first.
pub const STEPS: [Step; 9] = [
    Step { name: "naive", idea: "a thread computes an element", kernel: naive::naive },
    Step { name: "tiles", idea: "tiles in shared memory, multiplied by tensor cores", kernel: tiles::tiles },
    Step { name: "ahead", idea: "tiles are loaded ahead", kernel: ahead::ahead },
    Step { name: "roles", idea: "one warp loads, by the copy engine; others multiply", kernel: roles::roles },
    Step {
        name: "tensor_memory",
        idea: "one thread multiplies, with sums in tensor memory",
        kernel: tensor_memory::tensor_memory,
    },
    Step { name: "engine_stores", idea: "the copy engine stores", kernel: engine_stores::engine_stores },
    Step { name: "persistent", idea: "CTAs multiply a tile while they store another", kernel: persistent::persistent },
    Step { name: "pair", idea: "two CTAs multiply a tile of twice the size", kernel: pair::pair },
    Step { name: "matmul", idea: "all that a configuration chooses", kernel: matmul },
];

/// The kernel of the library, in the configuration with the least predicted cost for a large product.
fn matmul() -> Kernel {
    let shape = MatmulShape::new([4096; 3]);
    let product = MatmulConfig::new(Target::Sm100a, BF16);
    product.choose(shape).map_or_else(|| product.fallback(shape), |config| config.kernel(shape))
}
