//! Device memory.

use crate::driver::{Context, Gpu, failed};
use crate::error::CudaError;
use cudarc::driver::{result, sys};
use std::rc::Rc;

/// A block of device memory, freed on drop.
#[derive(Debug)]
pub struct GpuBuffer {
    context: Rc<Context>,
    /// The device address; an allocation of at least one byte.
    address: sys::CUdeviceptr,
    /// The requested size in bytes.
    size: u64,
}

impl GpuBuffer {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its address on the device, aligned to at least 256 bytes.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        // The driver waits for work that may still use the memory. There is nothing to do about failures here.
        if self.context.bind().is_ok() {
            // SAFETY: The address comes from `cuMemAlloc` in the current context, and only this drop frees it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

impl Gpu {
    /// Allocates `bytes` of device memory; its contents are undefined.
    ///
    /// # Errors
    ///
    /// [`CudaError::Driver`], for example if there is not enough memory.
    pub fn alloc(&self, bytes: u64) -> Result<GpuBuffer, CudaError> {
        self.context().bind()?;
        // The driver rejects allocations of zero bytes.
        let size = host_size(bytes.max(1))?;
        // SAFETY: A context is current. The memory is given to the one buffer that frees it.
        let address = unsafe { result::malloc_sync(size) }.map_err(failed("cuMemAlloc"))?;
        Ok(GpuBuffer { context: Rc::clone(self.context()), address, size: bytes })
    }

    /// Sets every byte of a buffer to `value`.
    ///
    /// # Errors
    ///
    /// [`CudaError::Driver`].
    pub fn fill(&self, buffer: &GpuBuffer, value: u8) -> Result<(), CudaError> {
        self.context().bind()?;
        let size = host_size(buffer.size)?;
        // SAFETY: The range is the whole buffer, which is alive.
        unsafe { result::memset_d8_sync(buffer.address, value, size) }.map_err(failed("cuMemsetD8"))
    }

    /// Copies `data` to a buffer, starting at byte `offset`, after all work launched before.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfBounds`], [`CudaError::Driver`].
    pub fn upload(&self, buffer: &GpuBuffer, offset: u64, data: &[u8]) -> Result<(), CudaError> {
        let address = range(buffer, offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.context().bind()?;
        // SAFETY: The range lies inside the buffer, which is alive.
        unsafe { result::memcpy_htod_sync(address, data) }.map_err(failed("cuMemcpyHtoD"))
    }

    /// Copies `length` bytes from a buffer, starting at byte `offset`, after all work launched before.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfBounds`], [`CudaError::Driver`], also for a fault inside a kernel that was launched before.
    pub fn download(&self, buffer: &GpuBuffer, offset: u64, length: u64) -> Result<Vec<u8>, CudaError> {
        let address = range(buffer, offset, length)?;
        let mut data = vec![0u8; host_size(length)?];
        if data.is_empty() {
            return Ok(data);
        }
        self.context().bind()?;
        // SAFETY: The range lies inside the buffer, which is alive, and the vector has the same length.
        unsafe { result::memcpy_dtoh_sync(&mut data, address) }.map_err(failed("cuMemcpyDtoH"))?;
        Ok(data)
    }
}

/// The address of a range, which must lie inside the buffer.
fn range(buffer: &GpuBuffer, offset: u64, length: u64) -> Result<sys::CUdeviceptr, CudaError> {
    if is_inside(offset, length, buffer.size) {
        Ok(buffer.address + offset)
    } else {
        Err(CudaError::OutOfBounds { offset, length, size: buffer.size })
    }
}

fn is_inside(offset: u64, length: u64, size: u64) -> bool {
    offset.checked_add(length).is_some_and(|end| end <= size)
}

fn host_size(bytes: u64) -> Result<usize, CudaError> {
    usize::try_from(bytes)
        .map_err(|_| CudaError::Driver { call: "cuMemAlloc", reason: format!("{bytes} bytes cannot be addressed") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_inside_the_buffer() {
        assert!(is_inside(0, 8, 8));
        assert!(is_inside(8, 0, 8));
        assert!(!is_inside(1, 8, 8));
        assert!(!is_inside(u64::MAX, 1, 8));
    }
}
