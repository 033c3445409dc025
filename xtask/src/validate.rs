//! `validate`: compiles every committed CUDA snapshot with NVRTC for its target, with warnings and spills as errors,
//! and checks the list of reserved names.

mod names;

use std::path::{Path, PathBuf};

use clap::Args;
use tilewright::cuda::{CudaError, Nvrtc, Request, Severity};
use tilewright::prelude::Target;

use crate::exit::Exit;
use crate::terminal::{complain, workspace};
use crate::toolchain::provisioned;

/// Arguments of `validate`.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Exit {
    let snapshots = match cuda_snapshots(&workspace().join("tests/snapshots")) {
        Ok(snapshots) if !snapshots.is_empty() => snapshots,
        Ok(_) => {
            complain("there are no CUDA snapshots");
            return Exit::BadInput;
        }
        Err(why) => {
            complain(&why);
            return Exit::BadInput;
        }
    };
    let mut bad = 0;
    for target in Target::ALL {
        let nvrtc = match provisioned(target.name()).nvrtc(target.name()) {
            Ok(nvrtc) => nvrtc,
            Err(error) => {
                complain(&error.to_string());
                return Exit::Unsupported;
            }
        };
        let suffix = format!(".{target}.cu.snap");
        let of_target = snapshots.iter().filter(|path| path.to_string_lossy().ends_with(&suffix));
        for path in of_target {
            if let Err(why) = check(&nvrtc, path, target.name()) {
                bad += 1;
                complain(&format!("{}: {why}", path.display()));
            }
        }
    }
    say!("{} CUDA snapshots, {bad} with warnings, spills or errors", snapshots.len());
    let are_names_right = reserved_names(Target::Sm100a);
    if bad == 0 && are_names_right { Exit::Done } else { Exit::Differs }
}

/// Checks the list of reserved names and prints the result; true if the list is right. NVRTC treats names the same for
/// every target.
fn reserved_names(target: Target) -> bool {
    let nvrtc = provisioned(target.name()).nvrtc(target.name()).map_err(|error| error.to_string());
    let (count, wrong) = match nvrtc.and_then(|nvrtc| names::check(&nvrtc, target.name())) {
        Ok(tried) => tried,
        Err(why) => {
            complain(&why);
            return false;
        }
    };
    wrong.iter().for_each(|text| complain(text));
    say!("{count} names that C++ and CUDA reserve, {} wrong", wrong.len());
    wrong.is_empty()
}

fn cuda_snapshots(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".cu.snap"));
    paths.sort();
    Ok(paths)
}

fn check(nvrtc: &Nvrtc, path: &Path, target: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    // The header of a snapshot ends with its second line of dashes.
    let source = text.splitn(3, "---\n").nth(2).ok_or("no snapshot header")?;
    let options =
        ["--ptxas-options=--warn-on-spills".to_string(), "--ptxas-options=--warn-on-local-memory-usage".to_string()];
    let request = Request { source, name: "/tilewright/snapshot.cu", target, options: &options };
    let compiled = nvrtc.compile(&request).map_err(|error: CudaError| error.to_string())?;
    if let Some(line) = compiled.log.iter().find(|line| line.severity == Severity::Warning) {
        return Err(format!("warning at line {:?}: {}", line.line, line.text));
    }
    match compiled.resources.iter().find(|r| r.spill_store_bytes + r.spill_load_bytes + r.stack_bytes > 0) {
        Some(r) => Err(format!(
            "{}: {} bytes spilled, {} bytes stack",
            r.kernel,
            r.spill_store_bytes + r.spill_load_bytes,
            r.stack_bytes
        )),
        None => Ok(()),
    }
}
