use std::fmt;
use std::str::FromStr;

/// Alignment in bytes that is assumed of pointer arguments. CUDA and the virtual GPU align allocations to 256.
pub const GLOBAL_ALIGNMENT: i64 = 32;

/// Alignment of every shared buffer in bytes: the width of all banks.
pub const SHARED_ALIGNMENT: i64 = 128;

/// Bytes of shared memory that a buffer of `bytes` occupies, with the padding to the next buffer.
pub fn padded_shared_bytes(bytes: i64) -> i64 {
    bytes.saturating_add(SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT
}

/// The GPU architecture that code is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// NVIDIA Blackwell, `sm_100a`.
    Sm100a,
    /// NVIDIA Hopper, `sm_90a`.
    Sm90a,
}

impl Target {
    /// Every target, the primary one first.
    pub const ALL: &'static [Target] = &[Target::Sm100a, Target::Sm90a];

    /// Its name, as passed to NVRTC.
    pub fn name(self) -> &'static str {
        match self {
            Target::Sm100a => "sm_100a",
            Target::Sm90a => "sm_90a",
        }
    }

    /// Bytes of shared memory one CTA may use: 227 KiB on both (CUDA C++ Programming Guide, table of technical
    /// specifications per compute capability; ptxas refuses more with "0x38c00 max").
    pub fn shared_bytes(self) -> i64 {
        match self {
            Target::Sm100a | Target::Sm90a => 227 * 1024,
        }
    }

    /// The most 32-bit registers that one thread can have in a CTA of `threads` threads. Each of the four parts of an SM has 16384,
    /// which the threads of its warps get in multiples of eight, and a thread has at most 255 (CUDA C++ Programming Guide,
    /// table of technical specifications per compute capability; ptxas gives 168 in a CTA of 9 to 12 warps).
    pub fn registers_of_a_thread(self, threads: i64) -> i64 {
        match self {
            Target::Sm100a | Target::Sm90a => {
                let warps_of_a_part = (threads.max(1) + 127) / 128;
                (16_384 / 32 / warps_of_a_part / 8 * 8).min(255)
            }
        }
    }

    /// The most bytes that a thread moves at once from or to global memory (PTX ISA, `ld` and `st` with `.v4.b64`: sm_100
    /// and later).
    pub fn widest_global(self) -> i64 {
        match self {
            Target::Sm100a => 32,
            Target::Sm90a => 16,
        }
    }

    /// Whether one instruction computes the sum or the product of two pairs of f32 (PTX ISA, `add`, `mul` and `fma`
    /// with `.f32x2`: sm_100 and later).
    pub fn has_pairs_of_f32(self) -> bool {
        match self {
            Target::Sm100a => true,
            Target::Sm90a => false,
        }
    }

    /// Whether a CTA can take over the work of one that has not started (PTX ISA, "clusterlaunchcontrol": sm_100 and later).
    pub fn has_claims(self) -> bool {
        match self {
            Target::Sm100a => true,
            Target::Sm90a => false,
        }
    }

    /// Whether one instruction computes the maximum or minimum of three f32 (PTX ISA, `max` and `min`: sm_100 and later).
    pub fn has_max_of_three(self) -> bool {
        match self {
            Target::Sm100a => true,
            Target::Sm90a => false,
        }
    }

    /// Bytes that have to be on their way from global memory to an SM to use its share of the bandwidth: bandwidth times
    /// latency, and half of it more. Computed for an HBM3 H100 (3.35 TB/s, 132 SMs) and a B200 (8 TB/s, 148 SMs) with a
    /// latency of 800 ns, which is an estimate.
    pub fn bytes_in_flight(self) -> i64 {
        match self {
            Target::Sm100a => 64 * 1024,
            Target::Sm90a => 32 * 1024,
        }
    }

    /// How many CTAs of so many threads and bytes of shared memory can run on an SM at a time, as far as these two limit it.
    /// An SM has 2048 threads, 32 CTAs and 228 KiB of shared memory, of which each CTA takes 1 KiB for itself (CUDA C++
    /// Programming Guide, table of technical specifications per compute capability; Hopper Tuning Guide, "Occupancy").
    pub fn ctas_of_an_sm(self, threads: i64, shared_bytes: i64) -> i64 {
        match self {
            Target::Sm100a | Target::Sm90a => {
                let lanes = (threads.max(1) + 31) / 32 * 32;
                let by_memory = if shared_bytes > self.shared_bytes() { 0 } else { 228 * 1024 / (shared_bytes + 1024) };
                by_memory.min(2048 / lanes).min(32)
            }
        }
    }

    /// The most threads that a CTA can have.
    pub fn max_threads(self) -> i64 {
        match self {
            Target::Sm100a | Target::Sm90a => 1024,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        Target::ALL.iter().copied().find(|target| target.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Target::ALL.iter().map(|target| target.name()).collect();
            format!("`{text}` is not a target; the targets are {}", names.join(" and "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_shared_memory_limit_the_ctas_of_an_sm() {
        let of = |(threads, kib): (i64, i64)| Target::Sm100a.ctas_of_an_sm(threads, kib * 1024);
        assert_eq!([(32, 0), (128, 0), (1024, 8), (128, 48), (128, 227), (128, 228)].map(of), [32, 16, 2, 4, 1, 0]);
    }

    #[test]
    fn threads_share_the_registers_of_an_sm() {
        let of = |threads| Target::Sm100a.registers_of_a_thread(threads);
        assert_eq!([1, 32, 256, 288, 512, 768, 1024].map(of), [255, 255, 255, 168, 128, 80, 64]);
    }
}
