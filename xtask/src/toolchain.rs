//! NVRTC for a command: found, or fetched, or replaced by committed PTX.

use tilewright::cuda::{CudaError, Origin, Verdict, probe};
use tilewright::runtime::{FixtureFolder, Toolchain};

use crate::setup;
use crate::terminal::workspace;

/// The PTX committed with the tests.
pub(crate) fn fixtures() -> FixtureFolder {
    FixtureFolder::new(workspace().join("tests/fixtures/ptx"))
}

/// A toolchain that has an NVRTC for `target`, fetching it if there is none. If that fails, the reason is printed, and
/// the toolchain can still use committed PTX.
pub(crate) fn provisioned(target: &str) -> Toolchain {
    let toolchain = Toolchain::from_env(Some(fixtures()));
    note_rejected_variable(&toolchain, target);
    if let Err(CudaError::NvrtcNotFound { .. }) = toolchain.nvrtc(target) {
        eprintln!("there is no NVRTC for {target} on this machine; fetching the pinned one");
        match setup::provision_nvrtc(None) {
            Ok(place) => eprintln!("NVRTC is now in {}", place.display()),
            Err(why) => eprintln!("it could not be fetched: {why}"),
        }
    }
    toolchain
}

/// Prints a note if the folder that the user named has no usable NVRTC.
fn note_rejected_variable(toolchain: &Toolchain, target: &str) {
    if toolchain.search().nvrtc_dir.is_none() || toolchain.search().disabled {
        return;
    }
    for candidate in probe(toolchain.search(), target) {
        if let (Origin::Variable, Verdict::Rejected(why)) = (candidate.origin, candidate.verdict) {
            eprintln!("note: TILEWRIGHT_NVRTC_DIR is ignored: {}: {why}", candidate.path.display());
        }
    }
}
