//! Running an artifact: CUDA text to PTX and machine code, host tensors in and out, on a GPU or on the virtual GPU,
//! results compared with a reference, and every failure told at the user's lines.

mod build;
mod compare;
mod counts;
mod device;
mod explain;
mod failure;
mod fixture;
mod lines;
mod run;
mod spills;
mod tensor;

pub use build::{Built, CudaText, Origin, Toolchain};
pub use compare::{Comparison, Mismatch, Tolerance, compare};
pub use counts::{OpPasses, counted_instructions, passes};
pub use device::{Device, DeviceChoice};
pub use failure::{Failure, FailureKind};
pub use fixture::{FixtureFolder, fixture_text};
pub use run::{GpuTiming, Run, run, run_watched};
pub use spills::spills;
pub use tensor::{HostTensor, TensorError};

/// What NVRTC reports of a kernel's registers, spills and shared memory.
pub use tilewright_cuda::Resources;
/// What the virtual GPU counted, and how far it is.
pub use tilewright_vgpu::{AccessCount, AccessKind, Progress, Report, Space};
