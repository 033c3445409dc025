//! NVRTC in tests: used where it is found; committed PTX where it is not; else the case is skipped, which fails under
//! `TILEWRIGHT_REQUIRE_NVRTC=1`.

use std::io::Write;
use std::path::{Path, PathBuf};

use tilewright::compile::Artifact;
use tilewright::runtime::{Built, FixtureFolder, Origin, Toolchain};

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
