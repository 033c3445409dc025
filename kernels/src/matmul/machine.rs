//! What the machines can do, as far as costs of products follow from it.

use tilewright::prelude::{DType, Target};

/// The numbers of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// Streaming multiprocessors.
    pub sms: i64,
    /// Multiplications with additions of 16-bit numbers that the tensor core of an SM does in a cycle.
    pub products: i64,
    /// Cycles in a second, of which the products in the datasheet follow.
    pub clock: f64,
    /// Cycles in a second while all tensor cores are busy, which the power of the GPU limits.
    pub busy_clock: f64,
    /// Bytes that an SM reads from shared memory in a cycle.
    pub shared: i64,
    /// Bytes that arrive at an SM in a cycle.
    pub arriving: i64,
    /// Bytes that memory moves in a second.
    pub memory: f64,
    /// Bytes of the second-level cache.
    pub cache: f64,
    /// Seconds from the request of the copy engine to the arrival of its data.
    pub latency: f64,
    /// Seconds that a launch takes until its first CTAs run, and until its end is known.
    pub launch: f64,
    /// Where the numbers are from.
    pub source: &'static str,
}

/// The machine of `sm_100a`.
const B200: Machine = Machine {
    name: "B200",
    sms: 148,
    products: 4096,
    clock: 1.856e9,
    busy_clock: 1.7e9,
    shared: 128,
    arriving: 48,
    memory: 7.7e12,
    cache: 126e6,
    latency: 700e-9,
    launch: 3e-6,
    source: "datasheet: 2.25 PFLOP/s of dense bf16, 7.7 TB/s, 126 MB; estimates: the clock under load, 48 of 64 bytes a cycle, latencies",
};

/// The machine of `sm_90a`.
const H100: Machine = Machine {
    name: "H100 SXM",
    sms: 132,
    products: 2048,
    clock: 1.83e9,
    busy_clock: 1.5e9,
    shared: 128,
    arriving: 48,
    memory: 3.35e12,
    cache: 50e6,
    latency: 700e-9,
    launch: 3e-6,
    source: "datasheet: 989 TFLOP/s of dense bf16, 3.35 TB/s, 50 MB; estimates: the clock under load, 48 of 64 bytes a cycle, latencies",
};

impl Machine {
    /// The machine that costs are of.
    pub fn of(target: Target) -> Machine {
        match target {
            Target::Sm100a => B200,
            Target::Sm90a => H100,
        }
    }

    /// Multiplications with additions that the tensor core of an SM does in a cycle: twice as many if elements have half of the
    /// bits.
    pub(super) fn products_of(&self, factor: DType) -> f64 {
        (self.products * 2 / factor.bytes().max(1)) as f64
    }

    /// The most multiplications and additions in a second, by the datasheet.
    pub fn peak(&self, factor: DType) -> f64 {
        2.0 * self.products_of(factor) * self.sms as f64 * self.clock
    }
}
