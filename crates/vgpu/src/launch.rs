//! Launches: the kernel, its grid and arguments, and the options of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use crate::memory::BufferId;
use crate::tensor_map::TensorMap;

/// Default of [`Options::max_instructions_per_thread`]: more than a hundred times what the kernels of the library need,
/// and reached within seconds.
pub const MAX_INSTRUCTIONS_PER_THREAD: u64 = 1_000_000;

/// A kernel argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// The address of a byte in a buffer.
    Buffer {
        /// The buffer.
        buffer: BufferId,
        /// Offset from its start in bytes.
        byte_offset: u64,
    },
    /// A value, little-endian.
    Bytes(Vec<u8>),
    /// A tensor map, by value.
    TensorMap(TensorMap),
}

/// One kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// Number of CTAs in each dimension.
    pub grid: [u32; 3],
    /// Number of threads of a CTA in each dimension.
    pub block: [u32; 3],
    /// Number of CTAs of a cluster in each dimension; a kernel may require it by `.reqnctapercluster`.
    pub cluster: [u32; 3],
    /// A programmatic dependent launch: a thread knows what the launch before has done only after `griddepcontrol.wait`.
    /// Here it begins when that one has ended, as it may; what would be a race on a device is one here.
    pub overlaps_previous: bool,
    /// Size of the `.extern .shared` memory in bytes.
    pub dynamic_shared_bytes: u32,
    /// One argument for each parameter.
    pub args: Vec<Arg>,
}

impl Launch {
    /// Number of CTAs of a cluster.
    pub(crate) fn cluster_size(&self) -> u32 {
        self.cluster.iter().product()
    }
}

/// What is noted only if it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lint {
    /// Bytes that threads have read are overwritten by the asynchronous proxy, ordered but without a proxy fence.
    WarProxy,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of instructions that a CTA may execute per thread before the run stops with a fault. The limit applies to
    /// the CTA as a whole, so one thread may execute more if others execute fewer.
    pub max_instructions_per_thread: u64,
    /// Whether to check for races; if not, `Memory::last_writer` returns `None`.
    pub check_races: bool,
    /// Lines of the kernel's CUDA file whose stores are declared disjoint, each with the number of its group: if a
    /// thread writes a byte twice by lines of the same group, with different values and no barrier in between, the run
    /// stops with a fault. Checked only if `check_races` is set.
    pub apart: BTreeMap<u32, u32>,
    /// Lines of the kernel's CUDA file with stores any of whose values may stay: two unordered writes by such lines are
    /// not a race.
    pub any_wins: BTreeSet<u32>,
    /// Selects the order in which CTAs start, and how they and their warps interleave. 0 starts the CTAs in the order of
    /// their indices, each when the one before has ended or waits.
    pub seed: u64,
    /// Most threads of the host that run the launch: by default as many as it has cores. Their number has no influence on
    /// the result.
    pub host_threads: Option<NonZero<usize>>,
    /// Number of streaming multiprocessors: by default 132 for sm_90a, otherwise 148.
    pub sms: Option<u32>,
    /// Number of CTAs that are resident on one of them at once: by default as many as its threads and its shared memory
    /// allow.
    pub ctas_per_sm: Option<u32>,
    /// Whether accesses to tensor memory by different threads need `tcgen05.fence::before_thread_sync` and
    /// `tcgen05.fence::after_thread_sync` around the barrier between them, as the PTX ISA says. Without it a barrier is
    /// enough, which the code of some compilers relies on.
    pub needs_tensor_fences: bool,
    /// Whether the address of a `tcgen05.ld` or `tcgen05.st` has a lane of its warp, as the PTX ISA says. Without it, lane 0
    /// stands for the first lane of the warp, which the code of some compilers relies on.
    pub needs_tensor_lanes: bool,
    /// What is noted besides what always is.
    pub lints: BTreeSet<Lint>,
    /// Whether a `mul` and an `add` or `sub` without rounding modifiers are fused, as an assembler may do.
    pub contract: bool,
    /// Buffers that are compared after the launch: an undefined bit that reaches one of them is a fault. With `None`, all
    /// are. Undefined bits may be stored to the others; the bytes then count as never written by later launches.
    pub observed: Option<BTreeSet<BufferId>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_instructions_per_thread: MAX_INSTRUCTIONS_PER_THREAD,
            check_races: true,
            apart: BTreeMap::new(),
            any_wins: BTreeSet::new(),
            seed: 0,
            host_threads: None,
            sms: None,
            ctas_per_sm: None,
            needs_tensor_fences: true,
            needs_tensor_lanes: true,
            lints: BTreeSet::new(),
            contract: false,
            observed: None,
        }
    }
}

/// Progress of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of CTAs in the launch.
    pub ctas: u32,
    /// Number of CTAs that have ended.
    pub ended: u32,
    /// Thread instructions (instructions times active lanes) executed so far.
    pub thread_instructions: u64,
}
