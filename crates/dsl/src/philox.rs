//! Random numbers from a counter: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011).

use tilewright_layout::DType::{F32, U32, U64};

use crate::elements::Elements;
use crate::value::Value;

const ROUNDS: i64 = 10;
/// The factors of the first and the third word of the counter.
const FACTORS: [i64; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What the words of the key grow by in every round.
const WEYL: [i64; 2] = [0x9e37_79b9, 0xbb67_ae85];

impl Elements<'_> {
    /// Four random words of 32 bits that depend on nothing but a counter and a key, which are `U32`: every element of a kernel
    /// has a counter of its own, every launch a key. The same arguments give the same words on every GPU. The products of
    /// each round are named after `name`.
    ///
    /// Philox 4x32-10: Salmon et al., SC 2011.
    #[track_caller]
    pub fn philox(&mut self, name: &str, counter: [Value; 4], key: [Value; 2]) -> [Value; 4] {
        let low = |product: Value| product.wrapping_cast(U32);
        let high = |product: Value| (product >> 32).wrapping_cast(U32);
        (0..ROUNDS).fold(counter, |[a, b, c, d], round| {
            let [first, second] = [(0, a), (1, c)].map(|(at, word): (usize, Value)| {
                let letter = ["a", "b"][at];
                self.named(&format!("{name}_{letter}{round}"), word.cast(U64) * FACTORS[at])
            });
            // Keys wrap as words do.
            let [key0, key1] = [0, 1].map(|at| key[at] + ((WEYL[at] * round) & 0xffff_ffff));
            [high(second) ^ b ^ key0, low(second), high(first) ^ d ^ key1, low(first)]
        })
    }
}

impl Value {
    /// A random word of 32 bits as a number of `F32` from 0 to below 1: its 24 high bits, which are equally likely.
    #[track_caller]
    pub fn uniform(self) -> Value {
        (self >> 8).cast(F32) * (1.0 / 16_777_216.0)
    }
}
