use std::path::PathBuf;

use tilewright::cuda::SearchOptions;

/// The error for a machine without one.
pub(crate) const NO_CACHE_DIR: &str = "there is no cache folder: set HOME or XDG_CACHE_HOME";

/// The folder where this project keeps what it fetched and compiled.
pub(crate) fn cache_dir() -> Result<PathBuf, String> {
    let folder = SearchOptions::from_env().cache_dir;
    folder.ok_or_else(|| NO_CACHE_DIR.to_string())
}
