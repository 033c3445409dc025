//! Places where an NVRTC may be, and what is found there.

use std::fmt;
use std::path::PathBuf;

/// The folder in which a system installs its CUDA toolkit.
pub(crate) const SYSTEM_TOOLKIT: &str = "/usr/local/cuda";

/// Why a place was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `TILEWRIGHT_NVRTC_DIR`.
    Variable,
    /// `CUDA_HOME` or `CUDA_PATH`.
    CudaHome,
    /// The dynamic loader's own search.
    LoaderPath,
    /// `/usr/local/cuda`.
    UsrLocalCuda,
    /// The cache that `cargo xtask setup` fills.
    Cache,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Variable => "TILEWRIGHT_NVRTC_DIR",
            Origin::CudaHome => "CUDA_HOME or CUDA_PATH",
            Origin::LoaderPath => "loader path",
            Origin::UsrLocalCuda => SYSTEM_TOOLKIT,
            Origin::Cache => "tilewright cache",
        })
    }
}

/// Whether a place has an NVRTC that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It has one.
    Accepted,
    /// It does not, for this reason.
    Rejected(String),
}

/// A place that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Why it was searched.
    pub origin: Origin,
    /// The library, or the folder if there is none.
    pub path: PathBuf,
    /// (major, minor), if a library was opened.
    pub version: Option<(u32, u32)>,
    /// The architectures that the library lists, ascending: 100 stands for `sm_100`, `sm_100a` and `sm_100f`.
    pub architectures: Vec<u32>,
    /// Whether it can be used for the target.
    pub verdict: Verdict,
}
