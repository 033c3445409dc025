//! Compiling CUDA text with NVRTC.

use crate::error::CudaError;
use crate::find::{SearchOptions, choose};
use crate::log::{LogLine, Severity, parse_log};
use crate::program::{Program, version_through_cudarc};
use crate::request::{Compiled, Request};
use crate::resources::parse_resources;
use crate::target::Target;
use cudarc::nvrtc::sys::nvrtcResult;
use std::path::{Path, PathBuf};

/// The oldest version that is known to take lambdas in functions of the device for such functions.
const LAMBDAS_ARE_DEVICE: (u32, u32) = (13, 5);

/// The oldest version that keeps results in the cache of the CUDA driver, where there is one. What comes from there has
/// no log, so registers and spills would not be known.
const KEEPS_RESULTS: (u32, u32) = (12, 9);

/// The NVRTC of this process.
///
/// A process has only one: the first one loaded is never unloaded, and cudarc's calls go to it. It can be used from any
/// thread.
#[derive(Debug, Clone)]
pub struct Nvrtc {
    path: PathBuf,
    /// (major, minor).
    version: (u32, u32),
    /// Ascending: 100 stands for `sm_100`, `sm_100a` and `sm_100f`.
    architectures: Vec<u32>,
}

impl Nvrtc {
    /// Finds an NVRTC that can compile for `target` and loads it.
    ///
    /// # Errors
    ///
    /// [`CudaError::NvrtcDisabled`], [`CudaError::NvrtcNotFound`] and [`CudaError::UnsupportedTarget`] if there is
    /// none; [`CudaError::NvrtcMismatch`] if another library on the loader path takes precedence.
    pub fn load(options: &SearchOptions, target: &str) -> Result<Nvrtc, CudaError> {
        if options.disabled {
            return Err(CudaError::NvrtcDisabled);
        }
        let opened = choose(options, target)?;
        let nvrtc =
            Nvrtc { path: opened.path.clone(), version: opened.version, architectures: opened.architectures.clone() };
        opened.keep();
        let answered = version_through_cudarc(nvrtc.version)?;
        if answered != nvrtc.version {
            return Err(CudaError::NvrtcMismatch { chosen: nvrtc.path, version: nvrtc.version, answered });
        }
        Ok(nvrtc)
    }

    /// (major, minor).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The library's file, or its bare name if the loader found it and the system does not report where.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The architectures that it lists, ascending: 100 stands for `sm_100`, `sm_100a` and `sm_100f`.
    pub fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// Compiles one CUDA text to PTX and cubin.
    ///
    /// # Errors
    ///
    /// [`CudaError::Compile`] with the log if the text is rejected, [`CudaError::UnsupportedTarget`] and
    /// [`CudaError::BadOption`] if the target or an option is.
    pub fn compile(&self, request: &Request<'_>) -> Result<Compiled, CudaError> {
        self.check_target(request.target)?;
        let program = Program::new(request)?;
        let mut options = request.all_options();
        if self.version < LAMBDAS_ARE_DEVICE {
            // NVRTC 13.0 takes them for functions of the host.
            options.push("--device-as-default-execution-space".to_string());
        }
        if self.version >= KEEPS_RESULTS {
            options.push("--no-cache".to_string());
        }
        let status = program.compile(&options)?;
        let log = program.log()?;
        if status != nvrtcResult::NVRTC_SUCCESS {
            return Err(self.failure(status, request, &log, &program));
        }
        let ptx = program.ptx()?;
        Ok(Compiled {
            cubin: program.cubin()?,
            log: parse_log(&log, request.name, Some(&ptx)),
            resources: parse_resources(&log),
            ptx,
        })
    }

    /// Two kinds of failure are about the target: an unknown number makes NVRTC blame the option, and a known number
    /// with an unknown suffix (`sm_80a`) makes its front end blame `--nv_arch`, before it reads a line of the text.
    fn failure(&self, status: nvrtcResult, request: &Request<'_>, log: &str, program: &Program) -> CudaError {
        let blames = |option: &str| log.lines().next().is_some_and(|line| line.contains(option));
        match status {
            nvrtcResult::NVRTC_ERROR_INVALID_OPTION if blames("--gpu-architecture") => self.unsupported(request.target),
            nvrtcResult::NVRTC_ERROR_COMPILATION if blames("with --nv_arch flag") => self.unsupported(request.target),
            nvrtcResult::NVRTC_ERROR_COMPILATION => rejected(request, log, program.ptx().ok()),
            nvrtcResult::NVRTC_ERROR_INVALID_OPTION => bad_option(request, log),
            other => CudaError::Nvrtc { call: "nvrtcCompileProgram", reason: format!("{other:?}: {}", log.trim()) },
        }
    }

    fn check_target(&self, target: &str) -> Result<(), CudaError> {
        let known = Target::parse(target).is_some_and(|t| self.architectures.contains(&t.architecture));
        if known { Ok(()) } else { Err(self.unsupported(target)) }
    }

    fn unsupported(&self, target: &str) -> CudaError {
        CudaError::UnsupportedTarget {
            target: target.to_string(),
            nvrtc: self.path.clone(),
            version: self.version,
            architectures: self.architectures.clone(),
        }
    }
}

fn bad_option(request: &Request<'_>, log: &str) -> CudaError {
    let messages = parse_log(log, request.name, None);
    let texts: Vec<String> = messages.into_iter().map(|line| line.text).collect();
    CudaError::BadOption { message: texts.join("; ") }
}

/// The error for a rejected text. If the ptxas stage failed, there is PTX, which maps its lines; otherwise none.
fn rejected(request: &Request<'_>, log: &str, ptx: Option<String>) -> CudaError {
    let ptx = ptx.filter(|text| !text.is_empty());
    let mut lines = parse_log(log, request.name, ptx.as_deref());
    if !lines.iter().any(|line| line.severity == Severity::Error) {
        lines.push(LogLine {
            severity: Severity::Error,
            line: None,
            text: format!("NVRTC gives no reason; its whole log is: {}", log.trim()),
        });
    }
    CudaError::Compile { log: lines, ptx }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: &[String]) -> Request<'_> {
        Request { source: "", name: "/tilewright/k.cu", target: "sm_100a", options }
    }

    #[test]
    fn the_callers_options_come_after_the_fixed_ones() {
        let extra = ["--fmad=true".to_string()];
        assert_eq!(
            request(&extra).all_options(),
            [
                "--gpu-architecture=sm_100a",
                "-lineinfo",
                "--ptxas-options=-v",
                "--std=c++17",
                "--fmad=false",
                "--fmad=true"
            ]
        );
    }

    #[test]
    fn a_rejection_always_has_an_error_line() {
        let CudaError::Compile { log, ptx } = rejected(&request(&[]), "odd\n", Some(String::new())) else {
            panic!("a rejection is a compile error");
        };
        assert_eq!(ptx, None);
        assert_eq!(log[1].severity, Severity::Error);
        assert_eq!(log[1].text, "NVRTC gives no reason; its whole log is: odd");
    }

    #[test]
    fn a_switched_off_nvrtc_is_an_ordinary_answer() {
        let options = SearchOptions { disabled: true, ..SearchOptions::default() };
        assert_eq!(Nvrtc::load(&options, "sm_100a").err(), Some(CudaError::NvrtcDisabled));
    }
}
