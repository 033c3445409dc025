//! Calls NVRTC through cudarc, and returns every failure as an error.

use crate::error::CudaError;
use crate::open::is_present;
use crate::request::Request;
use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys::{self, nvrtcResult};
use std::ffi::{CString, c_char, c_int};

/// The version of the library that cudarc's calls go to, after one of version `chosen` was loaded. cudarc panics if it
/// finds none, so that is checked first.
pub(crate) fn version_through_cudarc(chosen: (u32, u32)) -> Result<(u32, u32), CudaError> {
    let failed = |reason: &str| CudaError::Nvrtc { call: "nvrtcVersion", reason: reason.to_string() };
    let loaded = format!("libnvrtc.so.{}", chosen.0);
    match is_present(&cudarc::get_lib_name_candidates("nvrtc"), Some(&loaded)) {
        Ok(true) => {}
        Ok(false) => return Err(failed("the chosen library is loaded, but the loader does not find it by name")),
        Err(why) => return Err(failed(&why)),
    }
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: Both pointers are to integers that live through the call.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().map_err(|error| failed(&error.to_string()))?;
    match (u32::try_from(major), u32::try_from(minor)) {
        (Ok(major), Ok(minor)) => Ok((major, minor)),
        _ => Err(failed("the version is negative")),
    }
}

/// An NVRTC program, destroyed on drop.
pub(crate) struct Program {
    raw: sys::nvrtcProgram,
    /// NVRTC may refer to the text and the name as long as the program lives.
    _texts: [CString; 2],
}

impl Program {
    pub(crate) fn new(request: &Request<'_>) -> Result<Program, CudaError> {
        let source = c_text(request.source, "CUDA text")?;
        let name = c_text(request.name, "name of the CUDA text")?;
        let raw = result::create_program(&source, Some(name.as_c_str())).map_err(failed("nvrtcCreateProgram"))?;
        Ok(Program { raw, _texts: [source, name] })
    }

    /// Compiles it, and returns the status: most failures are explained in the log.
    pub(crate) fn compile(&self, options: &[String]) -> Result<nvrtcResult, CudaError> {
        // cudarc panics at a zero byte in an option.
        for option in options {
            c_text(option, "option for NVRTC")?;
        }
        // SAFETY: The program is alive until `self` is dropped.
        match unsafe { result::compile_program(self.raw, options) } {
            Ok(()) => Ok(nvrtcResult::NVRTC_SUCCESS),
            Err(NvrtcError(status)) => Ok(status),
        }
    }

    pub(crate) fn log(&self) -> Result<String, CudaError> {
        // SAFETY: The program is alive until `self` is dropped.
        let log = unsafe { result::get_program_log(self.raw) };
        log.map(|text| rust_text(&text)).map_err(failed("nvrtcGetProgramLog"))
    }

    pub(crate) fn ptx(&self) -> Result<String, CudaError> {
        // SAFETY: The program is alive until `self` is dropped.
        let ptx = unsafe { result::get_ptx(self.raw) };
        ptx.map(|text| rust_text(&text)).map_err(failed("nvrtcGetPTX"))
    }

    pub(crate) fn cubin(&self) -> Result<Vec<u8>, CudaError> {
        let mut size = 0;
        // SAFETY: The program is alive until `self` is dropped, and the pointer is to an integer on the stack.
        unsafe { sys::nvrtcGetCUBINSize(self.raw, &mut size) }.result().map_err(failed("nvrtcGetCUBINSize"))?;
        let mut cubin = vec![0u8; size];
        // SAFETY: The program is alive until `self` is dropped, and the vector has the size that NVRTC reported.
        unsafe { sys::nvrtcGetCUBIN(self.raw, cubin.as_mut_ptr().cast::<c_char>()) }
            .result()
            .map_err(failed("nvrtcGetCUBIN"))?;
        Ok(cubin)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: The program was created by `nvrtcCreateProgram`, and only this drop destroys it. There is nothing to
        // do about a failure here.
        let _ = unsafe { result::destroy_program(self.raw) };
    }
}

fn failed(call: &'static str) -> impl Fn(NvrtcError) -> CudaError {
    move |error| CudaError::Nvrtc { call, reason: error.to_string() }
}

fn c_text(text: &str, what: &'static str) -> Result<CString, CudaError> {
    CString::new(text).map_err(|_| CudaError::ZeroByte { text: what })
}

/// The text up to the terminating zero byte.
fn rust_text(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_the_zero_byte() {
        let bytes: Vec<c_char> = b"log\0rest".iter().map(|&byte| byte as c_char).collect();
        assert_eq!(rust_text(&bytes), "log");
        assert_eq!(c_text("a\0b", "CUDA text"), Err(CudaError::ZeroByte { text: "CUDA text" }));
    }
}
