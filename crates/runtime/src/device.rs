use std::fmt;
use std::str::FromStr;

use tilewright_cuda::{Gpu, gpus};
use tilewright_diag::Diagnostic;

use crate::failure::{Failure, FailureKind};

/// Which device the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU that can run the target, else the virtual GPU.
    Auto,
    /// A GPU, or an error.
    Gpu,
    /// The virtual GPU.
    Virtual,
}

impl DeviceChoice {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DeviceChoice::Auto => "auto",
            DeviceChoice::Gpu => "gpu",
            DeviceChoice::Virtual => "virtual",
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "gpu" => Ok(DeviceChoice::Gpu),
            "virtual" => Ok(DeviceChoice::Virtual),
            _ => Err(format!("`{text}` is not a device; the devices are auto, gpu and virtual")),
        }
    }
}

/// What a kernel runs on.
#[derive(Debug)]
pub enum Device {
    /// The virtual GPU: functional, not timed.
    Virtual,
    /// A GPU.
    Gpu(Box<Gpu>),
}

impl Device {
    /// The best device for a target.
    pub fn choose(choice: DeviceChoice, target: &str) -> Result<Device, Failure> {
        match choice {
            DeviceChoice::Virtual => Ok(Device::Virtual),
            DeviceChoice::Auto => Ok(find(target).unwrap_or(Device::Virtual)),
            DeviceChoice::Gpu => find(target).map_err(|finding| Failure::new(FailureKind::Unsupported, finding)),
        }
    }
}

fn find(target: &str) -> Result<Device, Diagnostic> {
    let none = |why: String| no_gpu(target, why);
    let found = gpus().map_err(|error| none(error.to_string()))?;
    for ordinal in 0..found.len() {
        let gpu = Gpu::open(ordinal).map_err(|error| none(error.to_string()))?;
        if gpu.can_run(target) {
            return Ok(Device::Gpu(Box::new(gpu)));
        }
    }
    let names: Vec<String> = found
        .iter()
        .map(|info| {
            let (major, minor) = info.compute_capability;
            format!("{} has compute capability {major}.{minor}", info.name)
        })
        .collect();
    Err(none(if names.is_empty() { "there is no GPU".to_string() } else { names.join("; ") }))
}

fn no_gpu(target: &str, why: String) -> Diagnostic {
    Diagnostic::error("R0607", format!("no GPU here can run {target}"))
        .note(why)
        .help("use --device virtual, or let --device auto choose it")
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Virtual => write!(f, "virtual GPU (functional, not timed)"),
            Device::Gpu(gpu) => write!(f, "{}", gpu.info().name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_gpu_is_an_ordinary_answer() {
        let finding = no_gpu("sm_100a", "X has compute capability 9.0".to_string());
        assert_eq!(finding.to_string(), "error[R0607]: no GPU here can run sm_100a");
        assert_eq!(finding.notes, ["X has compute capability 9.0"]);
    }
}
