//! Runs an artifact: compiles its CUDA text to PTX and machine code, launches it with host tensors on a GPU or on the
//! virtual GPU, compares results with a reference, and reports every failure at the user's lines.

mod build;
mod built;
mod compare;
mod counts;
mod device;
mod explain;
mod failure;
mod fixture;
mod launch_numbers;
mod lines;
mod on_gpu;
mod run;
mod spills;
mod tensor;
mod tensor_maps;

pub use build::Toolchain;
pub use built::{Built, CudaText, Origin};
pub use compare::{Comparison, Mismatch, Tolerance, compare, compare_all};
pub use counts::{OpTraffic, counted_instructions, op_traffic};
pub use device::{Device, DeviceChoice};
pub use failure::{Failure, FailureKind};
pub use fixture::{FixtureFolder, fixture_text};
pub use on_gpu::{BufferDifference, GpuMemory, run_launches_on_gpu};
pub use run::{GpuTiming, Run, run, run_watched};
pub use spills::spill_error;
pub use tensor::{HostTensor, TensorError};
pub use tensor_maps::tensor_map;

/// What NVRTC reports about a kernel's registers, spills and shared memory.
pub use tilewright_cuda::Resources;
/// What the virtual GPU counted, and its progress.
pub use tilewright_vgpu::{AccessCount, AccessKind, Progress, Report, Space};
