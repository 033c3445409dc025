//! NVRTC in tests: it is used if it is found. Otherwise committed PTX is used, and without that the case is skipped,
//! which is a failure under `TILEWRIGHT_REQUIRE_NVRTC=1`.

use std::io::Write;
use std::path::{Path, PathBuf};

use tilewright::compile::Artifact;
use tilewright::cuda::SearchOptions;
use tilewright::runtime::{Built, CudaText, Failure, FixtureFolder, Origin, Toolchain};

/// The directory of this package.
pub fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let here = package();
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// The path of the committed PTX.
pub fn fixtures() -> FixtureFolder {
    FixtureFolder::new(package().join("fixtures/ptx"))
}

/// The toolchain of the environment, with the committed PTX as a fallback.
pub fn toolchain() -> Toolchain {
    Toolchain::from_env(Some(fixtures()))
}

/// A toolchain with the committed PTX but without NVRTC, as on a machine where NVRTC is not installed.
pub fn offline() -> Toolchain {
    let search = SearchOptions { disabled: true, ..SearchOptions::default() };
    Toolchain::new(search, None, Some(fixtures()))
}

/// Builds an artifact from its generated text. `None` if there is neither NVRTC nor committed PTX for it: the test of
/// this name is then skipped.
///
/// # Panics
///
/// If the build fails for any other reason, or if the test must not be skipped.
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

/// Whether a build failed because there is neither NVRTC nor committed PTX, rather than because of the kernel.
pub fn has_no_nvrtc(failure: &Failure) -> bool {
    failure.diagnostics.iter().any(|finding| finding.code == "R0601")
}

/// True if a missing NVRTC is a failure.
pub fn nvrtc_is_required() -> bool {
    std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|value| value == "1")
}

/// True if tests write their results to the committed files: `cargo xtask test --bless`.
pub fn is_blessing() -> bool {
    std::env::var_os("TILEWRIGHT_BLESS").is_some_and(|value| value == "1")
}

/// If NVRTC is available, rewrites the committed PTX for this text when blessing, and otherwise requires it to exist.
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

/// Records that a test was skipped because NVRTC is missing; fails if NVRTC is required. `cargo xtask test` lists the
/// names from the file given by `TILEWRIGHT_SKIPPED`.
pub fn skip(name: &str) {
    assert!(!nvrtc_is_required(), "{name}: NVRTC is required");
    let Some(path) = std::env::var_os("TILEWRIGHT_SKIPPED") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
        // One write, so that lines of tests that run in parallel do not interleave.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

/// True if a GPU is available that can run this target.
pub fn has_gpu_for(target: &str) -> bool {
    let gpus = tilewright::cuda::gpus().unwrap_or_default();
    gpus.iter().any(|gpu| tilewright::cuda::can_run(target, gpu.compute_capability))
}
