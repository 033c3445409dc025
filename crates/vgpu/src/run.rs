//! Runs a launch: checks it, builds the parameter block, and executes the kernel.

use crate::exec::{self, Observer};
use crate::fault::RunError;
use crate::launch::{Arg, Launch, Options, Progress};
use crate::layout::ParamInfo;
use crate::memory::Memory;
use crate::module::{Kernel, KernelInfo, Module};
use crate::report::Report;
use crate::timeline::Timeline;
use crate::trace::Trace;

/// Maximum shared memory of a CTA in bytes: 227 KiB on sm_90 and sm_100.
const MAX_SHARED_BYTES: u64 = 227 * 1024;
/// Maximum local memory of a thread in bytes.
const MAX_LOCAL_BYTES: u32 = 512 * 1024;
/// Maximum size of the parameters in bytes (PTX ISA 8.1).
const MAX_PARAM_BYTES: u64 = 32764;
/// Maximum number of CTAs in y and in z (CUDA C++ Programming Guide, technical specifications).
const MAX_GRID_YZ: u32 = 65535;
/// Maximum number of threads of a CTA in z.
const MAX_BLOCK_Z: u32 = 64;
/// Maximum number of CTAs in a cluster, of a size that is not portable.
const MAX_CLUSTER_CTAS: u64 = 16;
/// Maximum number of threads in a CTA.
const MAX_THREADS: u64 = 1024;

/// Runs one launch to completion or to its first fault. In the first launch of a module on a memory, its global variables have
/// their initial values; after that, what the last launch has left.
///
/// # Errors
/// Unsupported instructions, a launch that does not match the kernel, or the first fault, in this order of precedence.
pub fn run(module: &Module, launch: &Launch, memory: &mut Memory, options: &Options) -> Result<Report, RunError> {
    run_watched(module, launch, memory, options, &mut |_| ())
}

/// Like [`run`], but reports the progress of the launch to `watch` about every 10 million thread instructions. The
/// result is that of [`run`]. With one host thread the reports are deterministic; a launch that starts again, because its
/// CTAs cannot run apart from each other, starts from zero.
///
/// # Errors
/// The same as for [`run`].
pub fn run_watched(
    module: &Module,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
    watch: &mut dyn FnMut(Progress),
) -> Result<Report, RunError> {
    run_with(module, launch, memory, options, watch, Observer::Nobody)
}

/// Like [`run`], in the schedule of a recorded run (see [`Timeline`]); `options.seed` has no effect. The timeline shows what
/// happened up to the end or the fault.
///
/// # Errors
/// The same as for [`run`].
pub fn run_recorded(
    module: &Module,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
    timeline: &mut Timeline,
) -> Result<Report, RunError> {
    let options = Options { seed: 0, ..options.clone() };
    run_with(module, launch, memory, &options, &mut |_| (), Observer::Timeline(timeline))
}

/// Like [`run`], on one core, and records the executions of the instructions on the lines that
/// [`Module::parse_traced`] was given. The trace shows those up to the end or the fault.
///
/// # Errors
/// The same as for [`run`].
pub fn run_traced(
    module: &Module,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
    trace: &mut Trace,
) -> Result<Report, RunError> {
    run_with(module, launch, memory, options, &mut |_| (), Observer::Trace(trace))
}

fn run_with(
    module: &Module,
    launch: &Launch,
    memory: &mut Memory,
    options: &Options,
    watch: &mut dyn FnMut(Progress),
    observer: Observer<'_>,
) -> Result<Report, RunError> {
    let found = module.kernels.iter().find(|kernel| kernel.info.name == launch.kernel);
    let Some(kernel) = found else {
        return bad(format!("there is no kernel `{}`", launch.kernel));
    };
    if !kernel.program.unsupported.is_empty() {
        return Err(RunError::Unsupported(kernel.program.unsupported.clone()));
    }
    if options.sms == Some(0) || options.ctas_per_sm == Some(0) {
        return bad("`sms` and `ctas_per_sm` are at least 1".to_string());
    }
    check_shape(&kernel.info, launch)?;
    check_shared(kernel, launch)?;
    let params = parameter_block(&kernel.info, launch, memory)?;
    let most_resident = most_resident(module.target(), kernel, launch, options);
    let (program, constants) = (&kernel.program, &module.layout.constants);
    let threads = launch.block.iter().product();
    let lines = program.info.iter().map(|info| info.line).collect();
    let Some(record) = memory.begin_launch((launch.grid, threads), lines, launch.overlaps_previous) else {
        return bad("all launches on a memory together have more CTAs than the virtual GPU can number".to_string());
    };
    let (first_cta, known_from) = (record.first_cta, record.known_from);
    let own_buffers = memory.buffers.len();
    memory.load_variables(&module.layout);
    let prepared = exec::PreparedLaunch {
        program,
        launch,
        first_cta,
        known_from,
        params: &params,
        constants,
        options,
        most_resident,
    };
    let result = exec::run_grid(&prepared, memory, watch, observer);
    memory.keep_variables(&module.layout, own_buffers);
    result.map_err(RunError::Fault)
}

/// Number of CTAs that are resident at once, at least 1. An SM of compute capability 9.0 or 10.0 has 2048 threads, 32 CTAs
/// and 228 KiB of shared memory, of which each CTA uses one more than it asks for (CUDA C++ Programming Guide, technical
/// specifications). The registers of a thread are not known from PTX.
fn most_resident(target: &str, kernel: &Kernel, launch: &Launch, options: &Options) -> u32 {
    let threads = product(launch.block).div_ceil(32).max(1) * 32;
    let shared = kernel.program.dynamic_shared_offset() + u64::from(launch.dynamic_shared_bytes) + 1024;
    let fitting = (2048 / threads).min(228 * 1024 / shared).clamp(1, 32) as u32;
    let sms = options.sms.unwrap_or(if target.starts_with("sm_90") { 132 } else { 148 });
    sms.saturating_mul(options.ctas_per_sm.unwrap_or(fitting)).max(1)
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
    if launch.grid[1] > MAX_GRID_YZ || launch.grid[2] > MAX_GRID_YZ {
        return bad(format!("the grid has at most {MAX_GRID_YZ} CTAs in y and z; this one is {:?}", launch.grid));
    }
    if launch.block[2] > MAX_BLOCK_Z {
        return bad(format!("a CTA has at most {MAX_BLOCK_Z} threads in z; this one is {:?}", launch.block));
    }
    if threads > MAX_THREADS {
        return bad(format!("a CTA has at most {MAX_THREADS} threads; this one has {threads}"));
    }
    if product(launch.grid) >= u64::from(u32::MAX) / 2 {
        return bad("the grid has more CTAs than the virtual GPU supports".to_string());
    }
    let (cluster, most) = (launch.cluster, product(launch.cluster));
    if !(1..=MAX_CLUSTER_CTAS).contains(&most) {
        return bad(format!("a cluster has 1 to {MAX_CLUSTER_CTAS} CTAs; this one has {most}"));
    }
    if (0..3).any(|axis| !launch.grid[axis].is_multiple_of(cluster[axis])) {
        return bad(format!("the grid {:?} does not consist of clusters of {cluster:?} CTAs", launch.grid));
    }
    if let Some(required) = info.required_cluster.filter(|required| *required != cluster) {
        return bad(format!("the cluster is {cluster:?}, but the kernel has .reqnctapercluster {required:?}"));
    }
    if info.local_bytes > MAX_LOCAL_BYTES {
        return bad(format!("a thread uses {} bytes of local memory; at most {MAX_LOCAL_BYTES}", info.local_bytes));
    }
    if let Some(required) = info.required_threads.filter(|required| *required != launch.block) {
        return bad(format!("the block is {:?}, but the kernel has .reqntid {required:?}", launch.block));
    }
    if let Some(most) = info.max_threads.filter(|most| product(*most) < threads) {
        return bad(format!("the CTA has {threads} threads, but the kernel has .maxntid {most:?}"));
    }
    Ok(())
}

fn check_shared(kernel: &Kernel, launch: &Launch) -> Result<(), RunError> {
    let total = kernel.program.dynamic_shared_offset() + u64::from(launch.dynamic_shared_bytes);
    if total > MAX_SHARED_BYTES {
        return bad(format!("a CTA needs {total} bytes of shared memory; the limit is {MAX_SHARED_BYTES}"));
    }
    Ok(())
}

fn parameter_block(info: &KernelInfo, launch: &Launch, memory: &Memory) -> Result<Vec<u8>, RunError> {
    if info.params.len() != launch.args.len() {
        let (have, want) = (launch.args.len(), info.params.len());
        return bad(format!("wrong number of arguments ({have} instead of {want}) for `{}`", info.name));
    }
    let end = |param: &ParamInfo| u64::from(param.offset) + u64::from(param.size);
    let size = info.params.iter().map(end).max().unwrap_or(0);
    if size > MAX_PARAM_BYTES {
        return bad(format!("the parameters need {size} bytes; the limit is {MAX_PARAM_BYTES}"));
    }
    let mut block = vec![0u8; size as usize];
    for (param, arg) in info.params.iter().zip(&launch.args) {
        let bytes = match arg {
            Arg::Bytes(bytes) => bytes.clone(),
            Arg::TensorMap(map) => map.encode().to_vec(),
            Arg::Buffer { buffer, byte_offset } => match memory.address(*buffer) {
                Some(base) => base.wrapping_add(*byte_offset).to_le_bytes().to_vec(),
                None => return bad(format!("the buffer for `{}` is not in this memory", param.name)),
            },
        };
        if bytes.len() != param.size as usize {
            return bad(format!("argument `{}`: expected {} B, got {} B", param.name, param.size, bytes.len()));
        }
        let start = param.offset as usize;
        block[start..start + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}
