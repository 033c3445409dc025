//! What is compiled, and what comes of it.

use crate::log::LogLine;
use crate::resources::Resources;

/// What to compile.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The CUDA text.
    pub source: &'a str,
    /// A made-up absolute name for it, such as `/tilewright/k.cu`. It appears in the line information of the PTX and
    /// the cubin; with a relative name NVRTC would add the working directory, and the bytes would depend on it.
    pub name: &'a str,
    /// The target, such as `sm_100a`.
    pub target: &'a str,
    /// Options beyond those that are always given (target, line information, C++17, no fusion of products with sums that the text does
    /// not ask for, the report of ptxas).
    pub options: &'a [String],
}

impl Request<'_> {
    /// All options that are passed to NVRTC.
    pub(crate) fn all_options(&self) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture={}", self.target),
            "-lineinfo".to_string(),
            "--ptxas-options=-v".to_string(),
            "--std=c++17".to_string(),
            "--fmad=false".to_string(),
        ];
        options.extend_from_slice(self.options);
        options
    }
}

/// The result of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The PTX text.
    pub ptx: String,
    /// Machine code for the target, an ELF image.
    pub cubin: Vec<u8>,
    /// Warnings and other messages, in the order of the log.
    pub log: Vec<LogLine>,
    /// The resource usage of each kernel, in the order of the log.
    pub resources: Vec<Resources>,
}
