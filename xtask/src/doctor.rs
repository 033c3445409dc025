//! `doctor`: reports what this machine has, and how to fix what is missing. Nothing is built or fetched.

use clap::Args;
use tilewright::cuda::{CudaError, SearchOptions, Verdict, gpus, probe};
use tilewright::prelude::Target;
use tilewright_tests::machine_code;

use crate::cache_dir::cache_dir;
use crate::exit::Exit;
use crate::setup;
use crate::terminal::paint;

/// Arguments of `doctor`.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Exit {
    graphics();
    for target in Target::ALL {
        nvrtc(*target);
    }
    disassembler();
    cache();
    clients();
    Exit::Done
}

fn found(what: &str, text: &str) {
    say!("{} {what}: {text}", paint("1;32", "found  "));
}

fn missing(what: &str, text: &str, mend: &str) {
    say!("{} {what}: {text}", paint("1;33", "missing"));
    say!("        to fix: {mend}");
}

fn graphics() {
    match gpus() {
        Ok(list) if !list.is_empty() => {
            for info in list {
                let (major, minor) = info.compute_capability;
                let runs: Vec<&str> = Target::ALL
                    .iter()
                    .map(|t| t.name())
                    .filter(|name| tilewright::cuda::can_run(name, info.compute_capability))
                    .collect();
                let runs = if runs.is_empty() { "none of the targets".to_string() } else { runs.join(", ") };
                found("GPU", &format!("{} (compute capability {major}.{minor}), runs {runs}", info.name));
            }
        }
        Ok(_) => missing("GPU", "the driver reports none", "nothing needed: kernels run on the virtual GPU"),
        Err(CudaError::NoDriver { why }) => {
            missing(
                "GPU driver",
                &why,
                "nothing needed: kernels run on the virtual GPU; for a GPU, install NVIDIA's driver (12.8 or newer)",
            );
        }
        Err(error) => missing("GPU", &error.to_string(), "see NVIDIA's driver documentation"),
    }
}

fn nvrtc(target: Target) {
    let options = SearchOptions::from_env();
    let what = format!("NVRTC for {target}");
    if options.disabled {
        missing(&what, "switched off by TILEWRIGHT_NVRTC=off", "unset TILEWRIGHT_NVRTC");
        return;
    }
    let candidates = probe(&options, target.name());
    match candidates.iter().find(|candidate| candidate.verdict == Verdict::Accepted) {
        Some(candidate) => {
            let version = candidate.version.map_or("?".to_string(), |(major, minor)| format!("{major}.{minor}"));
            let list: Vec<String> = candidate.architectures.iter().map(u32::to_string).collect();
            found(&what, &format!("{version} at {} (architectures {})", candidate.path.display(), list.join(", ")));
        }
        None => missing(&what, "none", "run `cargo xtask setup`, or set TILEWRIGHT_NVRTC_DIR or CUDA_HOME"),
    }
    for candidate in candidates {
        if let Verdict::Rejected(why) = candidate.verdict {
            say!("        rejected {}: {why}", candidate.path.display());
        }
    }
}

fn disassembler() {
    match machine_code::find() {
        Some(path) => found("nvdisasm", &path.display().to_string()),
        None => missing("nvdisasm", "needed only for `emit --stage sass`", "run `cargo xtask setup --sass`"),
    }
}

fn cache() {
    match cache_dir() {
        Ok(dir) => found("cache folder", &dir.display().to_string()),
        Err(why) => missing("cache folder", &why, "set HOME or XDG_CACHE_HOME"),
    }
}

fn clients() {
    match setup::client() {
        Some(name) => found("Python package client", &name),
        None => missing(
            "Python package client",
            "needed only for `cargo xtask setup`",
            "install Python with pip, or use `setup --wheel FILE`",
        ),
    }
}
