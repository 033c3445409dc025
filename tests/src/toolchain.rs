//! NVRTC in tests: used where it is found; committed PTX where it is not; else the case is skipped, which fails under
//! `TILEWRIGHT_REQUIRE_NVRTC=1`.

use std::io::Write;
use std::path::{Path, PathBuf};

use tilewright::compile::Artifact;
use tilewright::cuda::SearchOptions;
use tilewright::runtime::{Built, CudaText, Failure, FixtureFolder, Origin, Toolchain};

/// The folder of this package.
pub fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let here = package();
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// The committed PTX.
pub fn fixtures() -> FixtureFolder {
    FixtureFolder::new(package().join("fixtures/ptx"))
}

/// The toolchain of the environment, with the committed PTX behind it.
pub fn toolchain() -> Toolchain {
    Toolchain::from_env(Some(fixtures()))
}

/// A toolchain that looks for NVRTC nowhere and has the committed PTX: that of a machine without NVRTC.
pub fn offline() -> Toolchain {
    let search = SearchOptions { disabled: true, ..SearchOptions::default() };
    Toolchain::new(search, None, Some(fixtures()))
}

/// Builds an artifact from the text that was generated. `None` where there is neither NVRTC nor committed PTX for it:
/// then the test of this name is skipped.
///
/// # Panics
///
/// Where the build fails for any other reason, and where a test must not be skipped.
pub fn built_or_skipped(artifact: &Artifact, test: &str) -> Option<Built> {
    match toolchain().build(artifact, &CudaText::Generated) {
        Ok(built) => Some(built),
        Err(failure) if has_no_nvrtc(&failure) => {
            skip(test);
            None
        }
        Err(failure) => panic!("{} for {}: {failure}\n{}", artifact.name(), artifact.target(), artifact.cuda()),
    }
}

/// Whether a build failed because there is neither NVRTC nor committed PTX, and not because of the kernel.
pub fn has_no_nvrtc(failure: &Failure) -> bool {
    failure.diagnostics.iter().any(|finding| finding.code == "R0601")
}

/// True where a missing NVRTC is a failure.
pub fn nvrtc_is_required() -> bool {
    std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|value| value == "1")
}

/// True where tests write what they produce: `cargo xtask test --bless`.
pub fn is_blessing() -> bool {
    std::env::var_os("TILEWRIGHT_BLESS").is_some_and(|value| value == "1")
}

/// With NVRTC at hand, the committed PTX for this text is written anew when blessing, and must be there otherwise.
pub fn keep_fixture(artifact: &Artifact, built: &Built) -> Result<(), String> {
    if matches!(built.origin, Origin::Fixture(_)) {
        return Ok(());
    }
    let (path, text) = fixtures().file_for(artifact, built);
    if is_blessing() {
        return std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
    }
    if path.exists() { Ok(()) } else { Err(format!("{} is missing; run `cargo xtask test --bless`", path.display())) }
}

/// Says that a test was skipped for want of NVRTC; fails where NVRTC is required. `cargo xtask test` lists the names
/// from the file that `TILEWRIGHT_SKIPPED` names.
pub fn skip(name: &str) {
    assert!(!nvrtc_is_required(), "{name}: NVRTC is required");
    let Some(path) = std::env::var_os("TILEWRIGHT_SKIPPED") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
        // One write, so that tests side by side do not mix their lines.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

/// True where a GPU can run this target.
pub fn has_gpu_for(target: &str) -> bool {
    let gpus = tilewright::cuda::gpus().unwrap_or_default();
    gpus.iter().any(|gpu| tilewright::cuda::can_run(target, gpu.compute_capability))
}
