//! GPUs, and machine code loaded on them, through the CUDA driver.
//!
//! cudarc panics if `libcuda` is missing, so everything here starts with [`start_driver`], which checks first.

use crate::elf;
use crate::error::CudaError;
use crate::open::is_present;
use crate::ptx_version;
use crate::target::can_run;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use std::ffi::{CString, c_int, c_void};
use std::rc::Rc;

/// The oldest driver that has every call used here, as the CUDA version it supports.
const MINIMUM_DRIVER: (u32, u32) = (12, 8);

/// The properties of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuInfo {
    /// The product name.
    pub name: String,
    /// (major, minor): (9, 0) is Hopper, (10, 0) is Blackwell B200.
    pub compute_capability: (u32, u32),
    /// The CUDA version that the driver supports, (major, minor).
    pub driver_version: (u32, u32),
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// The most shared memory that one CTA can have, in bytes.
    pub shared_bytes_per_cta: Option<u32>,
    /// The peak clock of the multiprocessors, in kHz.
    pub clock_khz: Option<u32>,
    /// The peak clock of the memory, in kHz.
    pub memory_clock_khz: Option<u32>,
    /// The width of the memory bus, in bits.
    pub memory_bus_bits: Option<u32>,
}

/// Lists the GPUs of this machine, in the order of their ordinals.
///
/// # Errors
///
/// [`CudaError::NoDriver`] if there is no driver, or the driver finds no GPU.
pub fn gpus() -> Result<Vec<GpuInfo>, CudaError> {
    let driver_version = start_driver()?;
    (0..device_count()?).map(|ordinal| describe(device(ordinal)?, driver_version)).collect()
}

/// A GPU that is open for use by this thread.
///
/// All work goes to the default stream, in the order of the calls.
#[derive(Debug)]
pub struct Gpu {
    context: Rc<Context>,
    info: GpuInfo,
}

impl Gpu {
    /// Opens the GPU with this number, counted from 0.
    ///
    /// # Errors
    ///
    /// [`CudaError::NoDriver`] if there is no driver or it is too old, [`CudaError::NoSuchGpu`], [`CudaError::Driver`].
    pub fn open(ordinal: usize) -> Result<Gpu, CudaError> {
        let version = start_driver()?;
        if version < MINIMUM_DRIVER {
            let (major, minor) = MINIMUM_DRIVER;
            return Err(CudaError::NoDriver {
                why: format!(
                    "the driver supports CUDA {}.{}, and {major}.{minor} or newer is needed",
                    version.0, version.1
                ),
            });
        }
        let count = device_count()?;
        let number = c_int::try_from(ordinal).ok().filter(|number| *number < count);
        let number = number.ok_or(CudaError::NoSuchGpu { ordinal, count: usize::try_from(count).unwrap_or(0) })?;
        let device = device(number)?;
        Ok(Gpu { info: describe(device, version)?, context: Rc::new(Context::open(device)?) })
    }

    /// The properties of this GPU.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Whether this GPU runs a cubin compiled for `target` (see [`crate::can_run`]).
    pub fn can_run(&self, target: &str) -> bool {
        can_run(target, self.info.compute_capability)
    }

    /// Loads a cubin.
    ///
    /// # Errors
    ///
    /// [`CudaError::Driver`] if the bytes are not a whole cubin, or one that this GPU cannot run.
    pub fn load(&self, cubin: &[u8]) -> Result<GpuModule, CudaError> {
        if !elf::is_whole(cubin) {
            return Err(CudaError::Driver {
                call: "cuModuleLoadData",
                reason: "the bytes are not a whole cubin".to_string(),
            });
        }
        self.context.bind()?;
        // SAFETY: A context is current, and the pointer is to a whole ELF image, by whose tables the driver finds its
        // end. The driver copies what it keeps.
        let raw = unsafe { result::module::load_data(cubin.as_ptr().cast::<c_void>()) }
            .map_err(failed("cuModuleLoadData"))?;
        Ok(GpuModule { context: Rc::clone(&self.context), raw, ptx_version: None })
    }

    /// Compiles PTX by the driver's own compiler and loads it. If that compiler does not know the version in the text,
    /// the text is compiled as the newest that it knows ([`GpuModule::ptx_version`]).
    ///
    /// # Errors
    ///
    /// [`CudaError::ZeroByte`]; [`CudaError::Driver`] with the compiler's log.
    pub fn load_ptx(&self, ptx: &str) -> Result<GpuModule, CudaError> {
        self.context.bind()?;
        let mut version = None;
        loop {
            let text = version.map_or_else(|| ptx.to_string(), |version| ptx_version::replaced(ptx, version));
            match compile(&text)? {
                Ok(raw) => return Ok(GpuModule { context: Rc::clone(&self.context), raw, ptx_version: version }),
                Err((CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, log)) => {
                    let older = version.or_else(|| ptx_version::of(ptx)).and_then(ptx_version::before);
                    version =
                        Some(older.ok_or_else(|| not_compiled(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, &log))?);
                }
                Err((status, log)) => return Err(not_compiled(status, &log)),
            }
        }
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    ///
    /// [`CudaError::Driver`], also for a fault inside a kernel that was launched before; after such a fault the
    /// process can no longer use this GPU.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.bind()?;
        result::ctx::synchronize().map_err(failed("cuCtxSynchronize"))
    }

    pub(crate) fn context(&self) -> &Rc<Context> {
        &self.context
    }
}

/// Machine code loaded on a GPU; unloaded on drop.
#[derive(Debug)]
pub struct GpuModule {
    context: Rc<Context>,
    /// The module, loaded in `context` until drop.
    raw: sys::CUmodule,
    ptx_version: Option<(u32, u32)>,
}

/// Bytes of the log of the driver's PTX compiler.
const LOG_BYTES: usize = 4096;

/// Compiles PTX in the current context: the module, or the status and the log.
fn compile(ptx: &str) -> Result<Result<sys::CUmodule, (CUresult, String)>, CudaError> {
    let text = CString::new(ptx).map_err(|_| CudaError::ZeroByte { text: "PTX" })?;
    let mut log = vec![0u8; LOG_BYTES];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
    let mut raw: sys::CUmodule = std::ptr::null_mut();
    // SAFETY: A context is current. The text ends with a zero byte, there are two options with their values, and the log
    // has as many bytes as the second says; all of them outlive the call.
    let status = unsafe {
        sys::cuModuleLoadDataEx(&mut raw, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
    };
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES);
    Ok(status.result().map(|()| raw).map_err(|_| (status, String::from_utf8_lossy(&log[..end]).trim().to_string())))
}

fn not_compiled(status: CUresult, log: &str) -> CudaError {
    let reason = reason(DriverError(status));
    let reason = if log.is_empty() { reason } else { format!("{reason}\n{log}") };
    CudaError::Driver { call: "cuModuleLoadDataEx", reason }
}

impl GpuModule {
    /// The PTX version as which the driver has compiled it, if it does not know the one in the text.
    pub fn ptx_version(&self) -> Option<(u32, u32)> {
        self.ptx_version
    }

    /// The kernel of this name. The handle is valid as long as the module.
    pub(crate) fn function(&self, kernel: &str) -> Result<sys::CUfunction, CudaError> {
        let name = CString::new(kernel).map_err(|_| CudaError::ZeroByte { text: "kernel name" })?;
        self.context.bind()?;
        // SAFETY: The module is loaded until `self` is dropped, and its context is current.
        match unsafe { result::module::get_function(self.raw, name) } {
            Ok(function) => Ok(function),
            Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)) => Err(CudaError::BadLaunch {
                kernel: kernel.to_string(),
                why: "the cubin has no kernel of this name".to_string(),
            }),
            Err(error) => Err(failed("cuModuleGetFunction")(error)),
        }
    }
}

impl Drop for GpuModule {
    fn drop(&mut self) {
        // A kernel of the module may still be running. There is nothing to do about failures here.
        if self.context.bind().is_ok() {
            let _ = result::ctx::synchronize();
            // SAFETY: The module was loaded in the current context, and only this drop unloads it.
            let _ = unsafe { result::module::unload(self.raw) };
        }
    }
}

/// The primary context of a device, kept alive by everything that lives in it.
#[derive(Debug)]
pub(crate) struct Context {
    device: sys::CUdevice,
    /// The primary context of `device`, retained until drop.
    raw: sys::CUcontext,
}

impl Context {
    fn open(device: sys::CUdevice) -> Result<Context, CudaError> {
        // SAFETY: The device comes from `cuDeviceGet`.
        let raw = unsafe { result::primary_ctx::retain(device) }.map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Ok(Context { device, raw })
    }

    /// Makes it the current context of this thread's driver calls.
    pub(crate) fn bind(&self) -> Result<(), CudaError> {
        // SAFETY: The context is retained until `self` is dropped.
        unsafe { result::ctx::set_current(self.raw) }.map_err(failed("cuCtxSetCurrent"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: The device comes from `cuDeviceGet`, and this undoes the one retain of `open`. There is nothing to do
        // about a failure here.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Starts the driver, if there is one, and returns the CUDA version that it supports.
fn start_driver() -> Result<(u32, u32), CudaError> {
    let names: Vec<String> = ["cuda", "nvcuda"].into_iter().flat_map(cudarc::get_lib_name_candidates).collect();
    match is_present(&names, None) {
        Ok(true) => {}
        Ok(false) => return Err(CudaError::NoDriver { why: "libcuda is not on the loader path".to_string() }),
        Err(why) => return Err(CudaError::NoDriver { why }),
    }
    result::init().map_err(|error| CudaError::NoDriver { why: reason(error) })?;
    let mut version: c_int = 0;
    // SAFETY: The pointer is to an integer that lives through the call.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(failed("cuDriverGetVersion"))?;
    let version = u32::try_from(version).unwrap_or(0);
    Ok((version / 1000, version % 1000 / 10))
}

fn device_count() -> Result<c_int, CudaError> {
    result::device::get_count().map_err(failed("cuDeviceGetCount"))
}

fn device(ordinal: c_int) -> Result<sys::CUdevice, CudaError> {
    result::device::get(ordinal).map_err(failed("cuDeviceGet"))
}

fn describe(device: sys::CUdevice, driver_version: (u32, u32)) -> Result<GpuInfo, CudaError> {
    let major = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    let minor = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    // SAFETY: The device comes from `cuDeviceGet`.
    let memory = unsafe { result::device::total_mem(device) }.map_err(failed("cuDeviceTotalMem"))?;
    let positive = |name| attribute(device, name).ok().filter(|value| *value > 0);
    Ok(GpuInfo {
        name: result::device::get_name(device).map_err(failed("cuDeviceGetName"))?,
        compute_capability: (major?, minor?),
        driver_version,
        memory_bytes: memory as u64,
        multiprocessors: positive(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        shared_bytes_per_cta: positive(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        clock_khz: positive(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        memory_clock_khz: positive(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        memory_bus_bits: positive(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    })
}

fn attribute(device: sys::CUdevice, name: Attribute) -> Result<u32, CudaError> {
    // SAFETY: The device comes from `cuDeviceGet`.
    let value = unsafe { result::device::get_attribute(device, name) }.map_err(failed("cuDeviceGetAttribute"))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Turns a failure of this driver call into an error.
pub(crate) fn failed(call: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| CudaError::Driver { call, reason: reason(error) }
}

/// The status name and the driver's description of it.
fn reason(error: DriverError) -> String {
    match error.error_string() {
        Ok(text) => format!("{:?}: {}", error.0, text.to_string_lossy()),
        Err(_) => format!("{:?}", error.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a driver, every GPU in the list has a compute capability; without one, the error says why. Neither panics.
    #[test]
    fn listing_gpus_never_panics() {
        match gpus() {
            Ok(list) => assert!(list.iter().all(|gpu| gpu.compute_capability.0 > 0)),
            Err(CudaError::NoDriver { why }) => assert!(!why.is_empty()),
            Err(other) => panic!("unexpected error: {other}"),
        }
    }

    #[test]
    fn opening_a_gpu_that_is_not_there_is_an_error() {
        let error = Gpu::open(usize::MAX).expect_err("no machine has that many GPUs");
        assert!(matches!(error, CudaError::NoDriver { .. } | CudaError::NoSuchGpu { .. }), "{error}");
    }
}
