//! `validate`: compiles every committed CUDA snapshot with NVRTC for its target, with warnings and spills as errors,
//! and checks the list of reserved names.

mod names;

use std::path::{Path, PathBuf};

use clap::Args;
use tilewright::cuda::{CudaError, Nvrtc, Request, Severity};
use tilewright::prelude::Target;

use crate::exit::Exit;
use crate::terminal::{fail, print_error, workspace};
use crate::toolchain::provisioned;

/// Arguments of `validate`.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Exit {
    let snapshots = match cuda_snapshots(&workspace().join("tests/snapshots")) {
        Ok(snapshots) if !snapshots.is_empty() => snapshots,
        Ok(_) => {
            print_error("there are no CUDA snapshots");
            return Exit::BadInput;
        }
        Err(why) => {
            print_error(&why);
            return Exit::BadInput;
        }
    };
    let mut bad = 0;
    for path in snapshots.iter().filter(|path| target_of(path).is_none()) {
        bad += 1;
        print_error(&format!("{}: its name ends with no target, as in `k.sm_100a.cu.snap`", path.display()));
    }
    for target in Target::ALL {
        let nvrtc = match provisioned(target.name()).nvrtc(target.name()) {
            Ok(nvrtc) => nvrtc,
            Err(error) => return fail(Exit::Unsupported, &error),
        };
        for path in snapshots.iter().filter(|path| target_of(path) == Some(*target)) {
            if let Err(why) = check(&nvrtc, path, target.name()) {
                bad += 1;
                print_error(&format!("{}: {why}", path.display()));
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
            print_error(&why);
            return false;
        }
    };
    wrong.iter().for_each(|text| print_error(text));
    say!("{count} names that C++ and CUDA reserve, {} wrong", wrong.len());
    wrong.is_empty()
}

/// The target of a snapshot, by its name: `k.sm_100a.cu.snap`.
fn target_of(path: &Path) -> Option<Target> {
    let name = path.file_name()?.to_string_lossy();
    Target::ALL.iter().copied().find(|target| name.ends_with(&format!(".{target}.cu.snap")))
}

fn cuda_snapshots(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|e| format!("{}: {e}", folder.display()))?;
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
    if let Some(line) = compiled.log.iter().find(|line| is_unwanted(line.severity)) {
        return Err(line.to_string());
    }
    let [resources] = &compiled.resources[..] else {
        return Err(format!("NVRTC reports the registers of {} kernels, not of 1", compiled.resources.len()));
    };
    let spilled = resources.spill_store_bytes + resources.spill_load_bytes;
    if spilled + resources.stack_bytes > 0 {
        return Err(format!("{}: {spilled} bytes spilled, {} bytes stack", resources.kernel, resources.stack_bytes));
    }
    Ok(())
}

/// Warnings, and what NVRTC says without calling it one: performance losses, and lines of unknown form.
fn is_unwanted(severity: Severity) -> bool {
    match severity {
        Severity::Error | Severity::Warning | Severity::Info => true,
        Severity::Remark => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_of_the_target_in_its_name() {
        let of = |name: &str| target_of(&Path::new("tests/snapshots").join(name));
        assert_eq!(of("k.sm_100a.cu.snap"), Some(Target::Sm100a));
        assert_eq!(of("k.sm_90a.cu.snap"), Some(Target::Sm90a));
        assert_eq!([of("k.cu.snap"), of("k.sm_80.cu.snap"), of("k-sm_90a.cu.snap")], [None; 3]);
    }
}
