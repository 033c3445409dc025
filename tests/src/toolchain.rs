//! NVRTC in tests: used where it is found; committed PTX where it is not; else the case is skipped, which fails under
//! `TILEWRIGHT_REQUIRE_NVRTC=1`.

use std::path::{Path, PathBuf};

use tilewright::runtime::{FixtureFolder, Toolchain};

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
