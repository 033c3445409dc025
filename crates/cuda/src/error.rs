//! What can go wrong, with enough structure for a message that names the cause and the remedy.

use crate::candidate::{Candidate, Verdict};
use crate::log::{LogLine, Severity};
use std::fmt;
use std::path::PathBuf;

/// Every error of this crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CudaError {
    /// NVRTC was switched off ([`crate::SearchOptions::disabled`]).
    NvrtcDisabled,
    /// No usable NVRTC was found in any of the places searched.
    NvrtcNotFound {
        /// Every place searched, in order, with the reason why it was rejected.
        candidates: Vec<Candidate>,
    },
    /// cudarc opened a different NVRTC from the chosen one: a `libnvrtc.so` on the loader path takes precedence.
    NvrtcMismatch {
        /// The chosen library.
        chosen: PathBuf,
        /// Its version.
        version: (u32, u32),
        /// The version of the library that was opened instead.
        answered: (u32, u32),
    },
    /// The NVRTC that was found does not support the target.
    UnsupportedTarget {
        /// The requested target, such as `sm_100a`.
        target: String,
        /// The library that was found.
        nvrtc: PathBuf,
        /// Its version.
        version: (u32, u32),
        /// The architectures it lists: 100 stands for `sm_100`, `sm_100a` and `sm_100f`.
        architectures: Vec<u32>,
    },
    /// NVRTC or its ptxas stage rejected the CUDA text.
    Compile {
        /// Errors and other messages, in the order of the log.
        log: Vec<LogLine>,
        /// The PTX, if the front end succeeded and the ptxas stage failed.
        ptx: Option<String>,
    },
    /// NVRTC rejected a compile option.
    BadOption {
        /// What NVRTC says about it.
        message: String,
    },
    /// An NVRTC call failed for a reason other than the CUDA text.
    Nvrtc {
        /// The call, such as `nvrtcCreateProgram`.
        call: &'static str,
        /// The status name and the log.
        reason: String,
    },
    /// A text contains a zero byte, which CUDA's C interfaces do not accept.
    ZeroByte {
        /// Which text.
        text: &'static str,
    },
    /// There is no usable CUDA driver on this machine.
    NoDriver {
        /// Why.
        why: String,
    },
    /// There is a driver, but no GPU with this number.
    NoSuchGpu {
        /// The requested number, from 0.
        ordinal: usize,
        /// How many GPUs there are.
        count: usize,
    },
    /// A call of the CUDA driver failed.
    Driver {
        /// The call, such as `cuModuleLoadData`.
        call: &'static str,
        /// The status name and its description.
        reason: String,
    },
    /// A copy would run past the end of a device buffer. All numbers are bytes.
    OutOfBounds {
        /// Where the copy starts in the buffer.
        offset: u64,
        /// The size of the copy.
        length: u64,
        /// The size of the buffer.
        size: u64,
    },
    /// The arguments or the shape of a launch do not fit the kernel.
    BadLaunch {
        /// The kernel's name.
        kernel: String,
        /// What does not fit.
        why: String,
    },
    /// The compile cache could not be written.
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
}

impl std::error::Error for CudaError {}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CudaError::NvrtcDisabled => write!(f, "NVRTC is switched off (TILEWRIGHT_NVRTC=off)"),
            CudaError::NvrtcNotFound { candidates } => write_not_found(f, candidates),
            CudaError::NvrtcMismatch { chosen, version, answered } => write!(
                f,
                "NVRTC {}.{} was chosen ({}), but a libnvrtc.so on the loader path is opened first and is {}.{}; \
                 remove that one from LD_LIBRARY_PATH, or start the program with LD_LIBRARY_PATH set to the folder of \
                 the chosen one",
                version.0,
                version.1,
                chosen.display(),
                answered.0,
                answered.1
            ),
            CudaError::UnsupportedTarget { target, nvrtc, version, architectures } => write!(
                f,
                "NVRTC {}.{} ({}) does not support the target `{target}`; it supports {}",
                version.0,
                version.1,
                nvrtc.display(),
                architecture_list(architectures)
            ),
            CudaError::Compile { log, .. } => write_compile(f, log),
            CudaError::BadOption { message } => write!(f, "NVRTC rejects a compile option: {message}"),
            CudaError::Nvrtc { call, reason } => write!(f, "{call} failed: {reason}"),
            CudaError::ZeroByte { text } => write!(f, "the {text} contains a zero byte"),
            CudaError::NoDriver { why } => write!(f, "no CUDA driver: {why}"),
            CudaError::NoSuchGpu { ordinal, count } => {
                write!(f, "there is no GPU {ordinal}: this machine has {count}, numbered from 0")
            }
            CudaError::Driver { call, reason } => write!(f, "{call} failed: {reason}"),
            CudaError::OutOfBounds { offset, length, size } => write!(
                f,
                "a copy of {length} bytes at byte {offset} runs past the end of a device buffer of {size} bytes"
            ),
            CudaError::BadLaunch { kernel, why } => write!(f, "kernel `{kernel}` cannot be launched: {why}"),
            CudaError::Cache { path, reason } => {
                write!(f, "the compile cache could not be written ({}): {reason}", path.display())
            }
        }
    }
}

/// "sm_75, sm_80, ...", for messages.
pub(crate) fn architecture_list(architectures: &[u32]) -> String {
    let names: Vec<String> = architectures.iter().map(|number| format!("sm_{number}")).collect();
    names.join(", ")
}

fn write_not_found(f: &mut fmt::Formatter<'_>, candidates: &[Candidate]) -> fmt::Result {
    write!(f, "no usable NVRTC was found")?;
    for candidate in candidates {
        if let Verdict::Rejected(why) = &candidate.verdict {
            write!(f, "\n  {}: {}: {why}", candidate.origin, candidate.path.display())?;
        }
    }
    write!(f, "\nset TILEWRIGHT_NVRTC_DIR or CUDA_HOME, or run `cargo xtask setup`")
}

fn write_compile(f: &mut fmt::Formatter<'_>, log: &[LogLine]) -> fmt::Result {
    write!(f, "NVRTC rejects the CUDA text")?;
    for line in log.iter().filter(|line| line.severity == Severity::Error) {
        write!(f, "\n  {line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Origin;

    #[test]
    fn not_found_names_every_place_and_the_way_out() {
        let error = CudaError::NvrtcNotFound {
            candidates: vec![Candidate {
                origin: Origin::Variable,
                path: PathBuf::from("/opt/nvrtc"),
                version: None,
                architectures: Vec::new(),
                verdict: Verdict::Rejected("no libnvrtc.so here".to_string()),
            }],
        };
        assert_eq!(
            error.to_string(),
            "no usable NVRTC was found\n  TILEWRIGHT_NVRTC_DIR: /opt/nvrtc: no libnvrtc.so here\n\
             set TILEWRIGHT_NVRTC_DIR or CUDA_HOME, or run `cargo xtask setup`"
        );
    }

    #[test]
    fn a_compile_error_shows_the_errors_only() {
        let line = |severity, text: &str| LogLine { severity, line: Some(3), text: text.to_string() };
        let error = CudaError::Compile {
            log: vec![line(Severity::Warning, "unused"), line(Severity::Error, "undefined")],
            ptx: None,
        };
        assert_eq!(error.to_string(), "NVRTC rejects the CUDA text\n  CUDA line 3: error: undefined");
    }
}
