//! Launching kernels and timing them.

use crate::driver::{Gpu, GpuModule, failed};
use crate::error::CudaError;
use crate::memory::GpuBuffer;
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUresult};
use std::ffi::{c_int, c_void};

/// The dynamic shared memory that a kernel may use without raising its limit, in bytes (CUDA programming guide, "Shared
/// Memory" of each compute capability).
const FREE_SHARED_BYTES: u32 = 48 * 1024;

/// The largest cluster that every GPU with clusters can run, in CTAs (CUDA programming guide, "Thread Block Clusters").
const PORTABLE_CLUSTER: u64 = 8;

/// Which kernel to launch, and its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch<'a> {
    /// The kernel's name in the cubin.
    pub kernel: &'a str,
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y and z. None if there are no clusters, or the kernel declares their size itself.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory per CTA.
    pub dynamic_shared_bytes: u32,
    /// Whether it may begin before the launch before it has ended (CUDA programming guide, "Programmatic Dependent
    /// Launch").
    pub overlaps_previous: bool,
}

/// One argument of a kernel.
#[derive(Debug, Clone)]
pub enum GpuArg<'a> {
    /// The address of a byte inside a buffer.
    Buffer(&'a GpuBuffer, u64),
    /// A value of any other type, as the bytes that it has in memory.
    Bytes(Vec<u8>),
}

impl Gpu {
    /// Launches a kernel after all work launched before, without waiting for it. Faults inside the kernel are reported
    /// by a later call, at the latest [`Gpu::synchronize`].
    ///
    /// The number and sizes of the arguments are checked against the kernel's parameters, but the kernel itself is
    /// trusted: it can write to any memory that the GPU can write.
    ///
    /// # Errors
    ///
    /// [`CudaError::BadLaunch`] if the module has no such kernel or the arguments do not fit it, [`CudaError::Driver`].
    pub fn launch(&self, module: &GpuModule, launch: &Launch<'_>, args: &[GpuArg<'_>]) -> Result<(), CudaError> {
        let function = module.function(launch.kernel)?;
        let values = args.iter().map(argument_bytes).collect::<Result<Vec<_>, _>>();
        let values = values.map_err(|why| bad(launch, why))?;
        let sizes: Vec<usize> = values.iter().map(Vec::len).collect();
        compare_sizes(&parameter_sizes(function)?, &sizes).map_err(|why| bad(launch, why))?;
        raise_limits(function, launch)?;

        let mut storage: Vec<Vec<Aligned>> = values.iter().map(|value| aligned(value)).collect();
        let mut pointers: Vec<*mut c_void> =
            storage.iter_mut().map(|value| value.as_mut_ptr().cast::<c_void>()).collect();
        let mut attributes: Vec<sys::CUlaunchAttribute> = launch.cluster.into_iter().map(cluster_attribute).collect();
        if launch.overlaps_previous {
            attributes.push(overlap_attribute());
        }
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid[0],
            gridDimY: launch.grid[1],
            gridDimZ: launch.grid[2],
            blockDimX: launch.block[0],
            blockDimY: launch.block[1],
            blockDimZ: launch.block[2],
            sharedMemBytes: launch.dynamic_shared_bytes,
            hStream: result::stream::null(),
            attrs: attributes.as_mut_ptr(),
            // At most two.
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: The function belongs to a loaded module, whose context was made current when it was looked up. There
        // are as many pointers as the kernel has parameters, each to as many bytes as that parameter has; the driver
        // copies them, and the attributes, before it returns.
        unsafe { sys::cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), std::ptr::null_mut()) }
            .result()
            .map_err(failed("cuLaunchKernelEx"))
    }

    /// Runs `work` `repeats` times (at least once), and returns the mean time of one run on the GPU in milliseconds.
    /// `work` must launch without waiting. A warm-up run is left to the caller.
    ///
    /// # Errors
    ///
    /// Those of `work`, and [`CudaError::Driver`].
    pub fn time(&self, repeats: u32, mut work: impl FnMut() -> Result<(), CudaError>) -> Result<f64, CudaError> {
        self.context().bind()?;
        let repeats = repeats.max(1);
        let start = Event::new()?;
        let end = Event::new()?;
        start.record()?;
        for _ in 0..repeats {
            work()?;
        }
        self.context().bind()?;
        end.record()?;
        let total = end.milliseconds_since(&start)?;
        Ok(f64::from(total) / f64::from(repeats))
    }
}

fn bad(launch: &Launch<'_>, why: String) -> CudaError {
    CudaError::BadLaunch { kernel: launch.kernel.to_string(), why }
}

fn argument_bytes(arg: &GpuArg<'_>) -> Result<Vec<u8>, String> {
    match arg {
        GpuArg::Buffer(buffer, offset) if *offset <= buffer.size() => {
            Ok((buffer.address() + offset).to_ne_bytes().to_vec())
        }
        GpuArg::Buffer(buffer, offset) => {
            Err(format!("byte {offset} lies past the end of a buffer of {} bytes", buffer.size()))
        }
        GpuArg::Bytes(bytes) => Ok(bytes.clone()),
    }
}

/// The size in bytes of each parameter of a kernel.
fn parameter_sizes(function: sys::CUfunction) -> Result<Vec<usize>, CudaError> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: The function belongs to a loaded module, and both pointers are to integers on the stack.
        let status = unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut size) };
        match status {
            // What the driver returns for an index past the last parameter.
            CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(sizes),
            other => other.result().map_err(failed("cuFuncGetParamInfo"))?,
        }
        sizes.push(size);
    }
}

fn compare_sizes(expected: &[usize], given: &[usize]) -> Result<(), String> {
    if expected.len() != given.len() {
        return Err(format!("parameter count {}, but argument count {}", expected.len(), given.len()));
    }
    for (at, (expected, given)) in expected.iter().zip(given).enumerate() {
        if expected != given {
            return Err(format!("parameter {at} is {expected} B, but the argument is {given} B"));
        }
    }
    Ok(())
}

/// Raises the kernel's limits if the launch needs more dynamic shared memory or larger clusters than the defaults.
fn raise_limits(function: sys::CUfunction, launch: &Launch<'_>) -> Result<(), CudaError> {
    if launch.dynamic_shared_bytes > FREE_SHARED_BYTES {
        let bytes = c_int::try_from(launch.dynamic_shared_bytes)
            .map_err(|_| bad(launch, "it requests more than 2 GiB of shared memory".to_string()))?;
        set_attribute(function, Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)?;
    }
    let cluster = launch.cluster.unwrap_or([1; 3]);
    let ctas = cluster.iter().fold(1, |ctas: u64, &n| ctas.saturating_mul(u64::from(n)));
    if ctas > PORTABLE_CLUSTER {
        set_attribute(function, Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
    }
    Ok(())
}

fn set_attribute(function: sys::CUfunction, name: Attribute, value: c_int) -> Result<(), CudaError> {
    // SAFETY: The function belongs to a loaded module.
    unsafe { result::function::set_function_attribute(function, name, value) }.map_err(failed("cuFuncSetAttribute"))
}

fn cluster_attribute([x, y, z]: [u32; 3]) -> sys::CUlaunchAttribute {
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
    sys::CUlaunchAttribute { id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, pad: [0; 4], value }
}

fn overlap_attribute() -> sys::CUlaunchAttribute {
    let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    value.programmaticStreamSerializationAllowed = 1;
    sys::CUlaunchAttribute { id, pad: [0; 4], value }
}

/// Storage for arguments. A tensor map needs 64-byte alignment (CUDA driver API, `cuTensorMapEncodeTiled`), and
/// nothing needs more.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u8; 64]);

fn aligned(bytes: &[u8]) -> Vec<Aligned> {
    let block = |part: &[u8]| {
        let mut block = Aligned([0; 64]);
        block.0[..part.len()].copy_from_slice(part);
        block
    };
    bytes.chunks(64).map(block).collect()
}

/// A CUDA event, recorded on the default stream; destroyed on drop.
struct Event(sys::CUevent);

impl Event {
    fn new() -> Result<Event, CudaError> {
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(failed("cuEventCreate"))?;
        Ok(Event(raw))
    }

    fn record(&self) -> Result<(), CudaError> {
        // SAFETY: The event is alive until `self` is dropped, and the default stream always is.
        unsafe { result::event::record(self.0, result::stream::null()) }.map_err(failed("cuEventRecord"))
    }

    /// Waits for this event, and returns the time since `start`; both must have been recorded.
    fn milliseconds_since(&self, start: &Event) -> Result<f32, CudaError> {
        // SAFETY: The event is alive until `self` is dropped.
        unsafe { result::event::synchronize(self.0) }.map_err(failed("cuEventSynchronize"))?;
        // SAFETY: Both events are alive through the call.
        unsafe { result::event::elapsed(start.0, self.0) }.map_err(failed("cuEventElapsedTime"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: The event comes from `cuEventCreate`, and only this drop destroys it. There is nothing to do about a
        // failure here.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_to_match_the_parameters() {
        assert_eq!(compare_sizes(&[8, 4], &[8, 4]), Ok(()));
        assert_eq!(compare_sizes(&[8, 4], &[8]), Err("parameter count 2, but argument count 1".to_string()));
        assert_eq!(compare_sizes(&[8, 4], &[8, 8]), Err("parameter 1 is 4 B, but the argument is 8 B".to_string()));
    }

    #[test]
    fn argument_storage_keeps_the_bytes_and_is_aligned() {
        let bytes: Vec<u8> = (0..100).collect();
        let storage = aligned(&bytes);
        assert_eq!(storage.len(), 2);
        assert_eq!(storage.as_ptr().addr() % 64, 0);
        let flat: Vec<u8> = storage.iter().flat_map(|block| block.0).collect();
        assert_eq!(flat[..100], bytes);
        assert!(aligned(&[]).is_empty());
    }
}
