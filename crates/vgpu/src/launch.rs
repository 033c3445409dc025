//! Launching a kernel: the checks before it runs, and its parameter block.

use std::collections::{BTreeMap, BTreeSet};

use crate::exec;
use crate::fault::RunError;
use crate::memory::{BufferId, Memory, Region};
use crate::module::{Kernel, KernelInfo, Module, ParamInfo};
use crate::report::Report;

/// Most shared memory of a CTA in bytes: 227 KiB on sm_90 and sm_100.
const MAX_SHARED_BYTES: u64 = 227 * 1024;
/// Most local memory of a thread in bytes.
const MAX_LOCAL_BYTES: u32 = 512 * 1024;
/// Most bytes of parameters (PTX ISA 8.1).
const MAX_PARAM_BYTES: u64 = 32764;
/// Most threads of a CTA.
const MAX_THREADS: u64 = 1024;
/// Instructions that a CTA may execute for each of its threads, unless [`Options`] say otherwise: more than a hundred
/// times what the kernels of the library need, and seconds of time.
pub const MAX_INSTRUCTIONS_PER_THREAD: u64 = 1_000_000;

/// A kernel argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// The address of a byte of a buffer.
    Buffer {
        /// The buffer.
        buffer: BufferId,
        /// Bytes from its start.
        byte_offset: u64,
    },
    /// A value, little-endian.
    Bytes(Vec<u8>),
}

/// One kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// CTAs in each dimension.
    pub grid: [u32; 3],
    /// Threads of a CTA in each dimension.
    pub block: [u32; 3],
    /// Bytes of `.extern .shared` memory.
    pub dynamic_shared_bytes: u32,
    /// One argument for each parameter.
    pub args: Vec<Arg>,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Instructions that a CTA may execute for each of its threads before the run stops with a fault. Its threads share
    /// them, so one may execute more where others execute less.
    pub max_instructions_per_thread: u64,
    /// Whether to look for races; without it `Memory::last_writer` knows nothing.
    pub check_races: bool,
    /// CUDA lines whose stores are said to be apart, each with the number of its group: where a thread writes a byte twice
    /// by lines of one group, another value and without a barrier between, the run stops with a fault. They are looked for
    /// as races are.
    pub apart: BTreeMap<u32, u32>,
    /// CUDA lines of stores any of whose values may stay: two unordered writes by such lines are not a race.
    pub any_wins: BTreeSet<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_instructions_per_thread: MAX_INSTRUCTIONS_PER_THREAD,
            check_races: true,
            apart: BTreeMap::new(),
            any_wins: BTreeSet::new(),
        }
    }
}

/// How far a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// CTAs of the launch.
    pub ctas: u32,
    /// Those that have ended.
    pub ended: u32,
    /// Instructions times active lanes, so far.
    pub thread_instructions: u64,
}

/// Runs one launch to its end or to its first fault. Global variables of the module start from their initialisers.
///
/// # Errors
/// Instructions that are not supported first, then a launch that does not fit, then the first fault.
pub fn run(module: &Module, launch: &Launch, memory: &mut Memory, options: &Options) -> Result<Report, RunError> {
    run_watched(module, launch, memory, options, &mut |_| ())
}

/// Runs as [`run`] does, and tells `watch` how far the launch is, about every 10 million instructions of threads. The
/// result is that of [`run`], and what is told is the same every time.
///
/// # Errors
/// Those of [`run`].
pub fn run_watched(
    module: &Module,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
    watch: &mut dyn FnMut(Progress),
) -> Result<Report, RunError> {
    let found = module.kernels.iter().find(|kernel| kernel.info.name == launch.kernel);
    let Some(kernel) = found else {
        return bad(format!("there is no kernel `{}`", launch.kernel));
    };
    if !kernel.program.unsupported.is_empty() {
        return Err(RunError::Unsupported(kernel.program.unsupported.clone()));
    }
    check_shape(&kernel.info, launch)?;
    check_shared(kernel, launch)?;
    let params = parameter_block(&kernel.info, launch, memory)?;
    let own_buffers = memory.buffers.len();
    for variable in &module.layout.globals {
        let region = Region::filled(variable.bytes.clone());
        memory.push_module_variable(&variable.name, variable.base, region);
    }
    let (program, constants) = (&kernel.program, &module.layout.constants);
    let ready = exec::Ready { program, launch, params: &params, constants, options };
    let result = exec::run_grid(&ready, memory, watch);
    memory.buffers.truncate(own_buffers);
    result.map_err(RunError::Fault)
}

fn bad<T>(message: String) -> Result<T, RunError> {
    Err(RunError::BadLaunch(message))
}

fn product(extent: [u32; 3]) -> u64 {
    extent.iter().fold(1u64, |product, size| product.saturating_mul(u64::from(*size)))
}

fn check_shape(info: &KernelInfo, launch: &Launch) -> Result<(), RunError> {
    let threads = product(launch.block);
    if threads == 0 || product(launch.grid) == 0 {
        return bad("a grid or block dimension is 0".to_string());
    }
    if threads > MAX_THREADS {
        return bad(format!("{threads} threads in a CTA, at most {MAX_THREADS}"));
    }
    if product(launch.grid) >= u64::from(u32::MAX) / 2 {
        return bad("more CTAs than this machine counts".to_string());
    }
    if info.local_bytes > MAX_LOCAL_BYTES {
        return bad(format!("{} bytes of local memory in a thread, at most {MAX_LOCAL_BYTES}", info.local_bytes));
    }
    if let Some(required) = info.required_threads.filter(|required| *required != launch.block) {
        return bad(format!("block {:?}, but the kernel has .reqntid {required:?}", launch.block));
    }
    if let Some(most) = info.max_threads.filter(|most| product(*most) < threads) {
        return bad(format!("{threads} threads, but the kernel has .maxntid {most:?}"));
    }
    Ok(())
}

fn check_shared(kernel: &Kernel, launch: &Launch) -> Result<(), RunError> {
    let total = kernel.program.dynamic_shared_offset() + u64::from(launch.dynamic_shared_bytes);
    if total > MAX_SHARED_BYTES {
        return bad(format!("{total} bytes of shared memory, at most {MAX_SHARED_BYTES}"));
    }
    Ok(())
}

fn parameter_block(info: &KernelInfo, launch: &Launch, memory: &Memory) -> Result<Vec<u8>, RunError> {
    if info.params.len() != launch.args.len() {
        let (have, want) = (launch.args.len(), info.params.len());
        return bad(format!("{have} arguments for {want} parameters of `{}`", info.name));
    }
    let end = |param: &ParamInfo| u64::from(param.offset) + u64::from(param.size);
    let size = info.params.iter().map(end).max().unwrap_or(0);
    if size > MAX_PARAM_BYTES {
        return bad(format!("{size} bytes of parameters, at most {MAX_PARAM_BYTES}"));
    }
    let mut block = vec![0u8; size as usize];
    for (param, arg) in info.params.iter().zip(&launch.args) {
        let bytes = match arg {
            Arg::Bytes(bytes) => bytes.clone(),
            Arg::Buffer { buffer, byte_offset } => match memory.address(*buffer) {
                Some(base) => base.wrapping_add(*byte_offset).to_le_bytes().to_vec(),
                None => return bad(format!("`{}` is a buffer of another memory", param.name)),
            },
        };
        if bytes.len() != param.size as usize {
            return bad(format!("`{}` takes {} bytes, not {}", param.name, param.size, bytes.len()));
        }
        let start = param.offset as usize;
        block[start..start + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}
