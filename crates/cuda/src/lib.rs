//! NVRTC and the CUDA driver behind plain strings, integers and byte vectors.
//!
//! This is the only crate of the workspace with `unsafe` code, and the only one that knows cudarc and libloading; none
//! of their types appear in its interface. Both libraries are opened at run time, so everything here builds and runs on
//! a machine without CUDA: "no NVRTC" ([`CudaError::NvrtcNotFound`]) and "no driver" ([`CudaError::NoDriver`]) are
//! ordinary answers, not panics.
//!
//! * [`SearchOptions`] and [`probe`] say where NVRTC may be, and which places were looked at with what verdict.
//! * [`Nvrtc`] compiles CUDA text to PTX and cubin, with the log as lines of the CUDA text and the registers, spills
//!   and shared bytes of each kernel.
//! * [`CompileCache`] and [`compile_cached`] keep results on disk.
//! * [`gpus`] and [`Gpu`] list GPUs, hold device memory, launch and time kernels.
//!
//! No library is opened unseen: the loader would end the process over one that is cut short, so that is an answer too.
//!
//! The environment is read in one place only, [`SearchOptions::from_env`], but for `LD_LIBRARY_PATH`, which belongs to
//! the loader.

mod cache;
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
mod resources;
mod search_path;
mod target;

pub use cache::{CacheKey, CacheLookup, CompileCache, DEFAULT_CACHE_MIB, compile_cached};
pub use driver::{Gpu, GpuInfo, GpuModule, gpus};
pub use error::CudaError;
pub use find::{
    Candidate, MINIMUM_VERSION, Origin, PINNED_VERSION, SearchOptions, Verdict, cache_dir, nvrtc_cache_dir, probe,
};
pub use launch::{GpuArg, Launch};
pub use log::{LogLine, Severity};
pub use memory::GpuBuffer;
pub use nvrtc::{Compiled, Nvrtc, Request};
pub use resources::Resources;
pub use target::can_run;
