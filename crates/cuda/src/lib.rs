//! NVRTC and the CUDA driver behind plain strings, integers and byte vectors.
//!
//! This is the only crate of the workspace with `unsafe` code, and the only one that knows cudarc and libloading; none
//! of their types appear in its interface. Both libraries are opened at run time, so everything here builds and runs on
//! a machine without CUDA: "no NVRTC" ([`CudaError::NvrtcNotFound`]) and "no driver" ([`CudaError::NoDriver`]) are
//! ordinary errors, not panics.
//!
//! * [`SearchOptions`] says where to look for NVRTC; [`probe`] lists the places searched, each with a verdict.
//! * [`Nvrtc`] compiles CUDA text to PTX and cubin, and returns the log, mapped to lines of the CUDA text, and the
//!   registers, spills and shared memory of each kernel.
//! * [`CompileCache`] and [`compile_cached`] cache results on disk.
//! * [`gpus`] and [`Gpu`] list GPUs, hold device memory, encode tensor maps, launch and time kernels.
//!
//! Every library file is checked before it is opened: loading one that is cut short could kill the process, so that is
//! reported as an error.
//!
//! The environment is read only by [`SearchOptions::from_env`], except for `LD_LIBRARY_PATH`, which belongs to the
//! loader.

mod cache;
mod candidate;
mod driver;
mod elf;
mod entry;
mod error;
mod find;
mod launch;
mod library;
mod log;
mod memory;
mod nvrtc;
mod open;
mod program;
mod ptx_lines;
mod ptx_version;
mod request;
mod resources;
mod search_path;
mod target;
mod tensor_map;

pub use cache::{CacheKey, CacheLookup, CompileCache, DEFAULT_CACHE_MIB, compile_cached};
pub use candidate::{Candidate, Origin, Verdict};
pub use driver::{Gpu, GpuInfo, GpuModule, gpus};
pub use error::CudaError;
pub use find::{MINIMUM_VERSION, PINNED_VERSION, SearchOptions, cache_dir, nvrtc_cache_dir, probe};
pub use launch::{GpuArg, Launch};
pub use log::{LogLine, Severity};
pub use memory::GpuBuffer;
pub use nvrtc::Nvrtc;
pub use request::{Compiled, Request};
pub use resources::Resources;
pub use target::{can_compile, can_run};
pub use tensor_map::{TensorAccess, TensorElement, TensorMapRequest, TensorSwizzle};
