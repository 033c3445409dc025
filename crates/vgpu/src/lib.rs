//! A virtual GPU: it parses PTX text, executes it, and checks for races and other faults while it runs.
//!
//! ```text
//! text -> ptx (tokens, statements) -> decode (registers, labels, units) -> exec (lanes, memory, barriers) -> report
//! ```
//!
//! The model is functional: it has no notion of time, and it is only as accurate as its interpretation of the PTX ISA.
//!
//! What it models:
//! - Each lane has its own program counter and makes progress; converged lanes execute together.
//! - Global memory as named buffers with gaps between them; shared, local, parameter and constant memory, each with its
//!   window of generic addresses. The shared window starts at a multiple of 1024.
//! - CTAs that are resident at once, in an order and an interleaving that a seed selects, and their clusters.
//! - The barriers of a CTA and of a warp, and flags in memory (release and acquire at their scopes), as vector clocks:
//!   unordered accesses are races, tracked for each byte.
//! - Asynchronous copies (`cp.async`, bulk and tensor copies), mbarriers, and proxy fences.
//! - The matrix instructions of a warp: `mma.sync`, `ldmatrix`, `stmatrix`, `movmatrix`; of a warpgroup: `wgmma`; and of a
//!   CTA: `tcgen05`, with tensor memory. Products are summed in the order of k.
//! - Shared-memory wavefronts and global sectors of every memory instruction.
//!
//! The faults that it detects are listed in [`FaultKind`].
//!
//! What it does not model yet:
//! - Some instructions; all of them that a kernel can reach are reported before it starts.
//! - Weak memory: accesses take effect in the order in which they are executed, so no read returns a stale value.
//! - Textures, surfaces, recursion, indirect calls.
//! - Uninitialized registers: they read as zero, and no fault is reported.
//!
//! ```
//! use tilewright_vgpu::{Arg, Launch, Memory, Module, Options, run};
//!
//! let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry set(.param .u64 p) {\n.reg .b64 %rd<2>;\n\
//!             ld.param.b64 %rd1, [p];\nst.global.b32 [%rd1], 7;\nret;\n}\n";
//! let module = Module::parse(text)?;
//! let mut memory = Memory::new();
//! let buffer = memory.allocate_poison("out", 4);
//! let launch = Launch {
//!     kernel: "set".to_string(),
//!     grid: [1, 1, 1],
//!     block: [1, 1, 1],
//!     cluster: [1, 1, 1],
//!     overlaps_previous: false,
//!     dynamic_shared_bytes: 0,
//!     args: vec![Arg::Buffer { buffer, byte_offset: 0 }],
//! };
//! run(&module, &launch, &mut memory, &Options::default())?;
//! assert_eq!(*memory.bytes(buffer), [7, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod banks;
mod clock;
mod contract;
mod decode;
mod exec;
mod fault;
mod float;
mod isa;
mod lanes;
mod launch;
pub mod launch_file;
mod layout;
mod memory;
mod module;
mod names;
mod op;
mod program;
mod ptx;
mod report;
mod run;
mod shadow;
mod tensor_map;
pub mod timeline;
pub mod trace;
mod undefined;
mod vectorized;

pub use decode::{Instruction, Unit, instructions};
pub use fault::{CudaLine, Fault, FaultKind, Location, Place, PtxError, RunError, Unsupported, Waiting};
pub use isa::Space;
pub use launch::{Arg, Launch, Lint, MAX_INSTRUCTIONS_PER_THREAD, Options, Progress};
pub use layout::ParamInfo;
pub use memory::{BufferId, Memory, Writer};
pub use module::{KernelInfo, Module};
pub use report::{AccessCount, AccessKind, BarrierCount, BulkCount, Note, Report};
pub use run::{run, run_recorded, run_traced, run_watched};
pub use tensor_map::{Im2col, MapAccess, MapElement, MapError, MapSwizzle, TENSOR_MAP_BYTES, TensorMap};

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
