//! CUDA text and what it was compiled to.

use std::path::PathBuf;

use tilewright_compile::Artifact;
use tilewright_cuda::Resources;
use tilewright_diag::{Diagnostic, Span};

use crate::lines::{LineMap, op_of_line};

/// CUDA text: as generated, or edited by hand.
#[derive(Clone, Debug)]
pub enum CudaText {
    /// As the compiler printed it.
    Generated,
    /// As the user edited it.
    Edited {
        /// Where it was read from.
        path: PathBuf,
        /// The text.
        text: String,
    },
}

/// Where PTX came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// NVRTC of this version, at this path.
    Nvrtc {
        /// (major, minor).
        version: (u32, u32),
        /// The library.
        path: PathBuf,
    },
    /// A committed file.
    Fixture(PathBuf),
}

/// A kernel ready to run.
#[derive(Clone, Debug)]
pub struct Built {
    /// PTX text.
    pub ptx: String,
    /// Machine code; empty for committed PTX.
    pub cubin: Vec<u8>,
    /// Registers, spills and shared memory, if known.
    pub resources: Option<Resources>,
    /// NVRTC's warnings.
    pub warnings: Vec<Diagnostic>,
    /// Remarks about the cache, or about the use of committed PTX.
    pub notes: Vec<String>,
    /// Where the PTX came from.
    pub origin: Origin,
    /// The CUDA text that was compiled.
    pub cuda: String,
    /// How lines of edited text map to generated ones.
    pub(crate) edited: Option<LineMap>,
}

impl Built {
    /// The tile op that a line of the CUDA text (from 1) came from, and the user's line. Edited lines
    /// count as the lines that they replace, new ones as the line before them.
    pub fn op(&self, artifact: &Artifact, line: u32) -> Option<(String, Span)> {
        op_of_line(artifact, self.edited.as_ref(), line)
    }
}
