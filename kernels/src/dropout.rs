use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use crate::blocks::{THREADS, divisible};
use crate::config::ShapeKey;
use crate::numbers::{elements, listed, scattered};
use crate::{Config, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "dropout",
    about: "elements that are dropped with a given probability, chosen by Philox; the others are scaled up",
    shape: &[ShapeKey { name: "n", default: 8192, about: "number of elements" }, THREADS],
    dtypes: &[F16, BF16, F32],
    build: |config, _| dropout(config),
    run_time: |_| &["n"],
    inputs: |c| {
        let scalars = [(F32, 0.1), (U32, 1234.0), (U32, 5.0)];
        let scalars = scalars.map(|(dtype, value)| HostTensor::from_f64(dtype, &[1], |_| value));
        [scattered(c.dtype, &[c.size("n")], 1)].into_iter().chain(scalars).collect()
    },
    reference,
    // A product is rounded to 16 bits: bf16 has 8.
    tolerance: |_| Tolerance { absolute: 0.0, relative: 4e-3 },
    tested: &[(F32, &[("n", 1)]), (BF16, &[("n", 5001), ("threads", 96)]), (F32, &[("n", 1000), ("threads", 32)])],
};

/// Elements of a thread, which share the four words of a counter in fours.
const EACH: i64 = 8;

/// The backward pass is the same kernel with the same seed: nothing is stored about what was dropped.
fn dropout(config: &Config) -> Kernel {
    let (dtype, threads) = (config.dtype, config.size("threads"));
    let tile = threads * EACH;
    kernel("dropout", |k| {
        let n = divisible(k, config, "n").max(1 << 30);
        let x = k.input("x", dtype, (n,));
        let y = k.output("y", dtype, (n,));
        let rate = k.scalar("rate", F32);
        let key = ["seed", "step"].map(|name| k.scalar(name, U32));
        let [block] = k.grid([n.ceil_div(tile)]);
        k.threads(threads);
        k.parallel([tile / 4], |k, [i]| {
            let four = block * (tile / 4) + i;
            let zero = Value::from(0).cast(U32);
            let words = k.philox("bits", [Value::from(four).cast(U32), zero, zero, zero], key);
            for (word, at) in words.into_iter().zip(0i64..) {
                let scaled = x.at((four * 4 + at,)).cast(F32) / (1.0 - rate);
                k.store(y, (four * 4 + at,), word.uniform().ge(rate).select(scaled, 0.0).cast(dtype));
            }
        });
    })
}

fn reference(config: &Config, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let rate = elements(&inputs[1])[0] as f32;
    let key = [2, 3].map(|at| elements(&inputs[at])[0] as u32);
    let kept = |at: usize| {
        let word = philox([(at / 4) as u32, 0, 0, 0], key)[at % 4];
        (word >> 8) as f32 / 16_777_216.0 >= rate
    };
    let y = elements(&inputs[0]).into_iter().enumerate();
    let y: Vec<f64> = y.map(|(at, x)| if kept(at) { x / f64::from(1.0 - rate) } else { 0.0 }).collect();
    vec![listed(config.dtype, inputs[0].shape(), &y)]
}

/// Philox 4x32-10 as in Salmon et al., SC 2011.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let products = [u64::from(counter[0]) * 0xd251_1f53, u64::from(counter[2]) * 0xcd9e_8d57];
        let [high, low] = [products.map(|product| (product >> 32) as u32), products.map(|product| product as u32)];
        counter = [high[1] ^ counter[1] ^ key[0], low[1], high[0] ^ counter[3] ^ key[1], low[0]];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors publish with their library.
    #[test]
    fn philox_has_the_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = u32::MAX;
        assert_eq!(philox([ones; 4], [ones; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let expected = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox(counter, [0xa409_3822, 0x299f_31d0]), expected);
    }
}
