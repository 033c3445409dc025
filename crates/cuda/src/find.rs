//! Searches for an NVRTC that can be used.
//!
//! The order is: `TILEWRIGHT_NVRTC_DIR`; the toolkits that `CUDA_HOME` and `CUDA_PATH` name; the loader path;
//! `/usr/local/cuda`; the cache that `cargo xtask setup` fills. The first library that is new enough and supports
//! the target is used; each rejected place has a reason.

use crate::candidate::{Candidate, Origin, SYSTEM_TOOLKIT, Verdict};
use crate::error::{CudaError, architecture_list};
use crate::open::{Opened, lock_loader};
use crate::target::Target;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The oldest NVRTC that is accepted: the first version with `sm_100a`.
pub const MINIMUM_VERSION: (u32, u32) = (12, 8);

/// The version that `cargo xtask setup` fetches into the cache.
pub const PINNED_VERSION: &str = "13.5.37";

/// The file names of NVRTC inside a folder, newest first.
const LIBRARY_NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// The file that marks a cache folder as complete.
const COMPLETE_MARKER: &str = ".ok";

/// Where to look for NVRTC. [`SearchOptions::from_env`] reads it from the environment; tests fill it in themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchOptions {
    /// The folder that holds the library itself (`TILEWRIGHT_NVRTC_DIR`).
    pub nvrtc_dir: Option<PathBuf>,
    /// CUDA toolkits (`CUDA_HOME`, `CUDA_PATH`): the library is in their `lib64`, `lib` or `targets/*/lib`.
    pub cuda_homes: Vec<PathBuf>,
    /// True to disable the search (`TILEWRIGHT_NVRTC=off`).
    pub disabled: bool,
    /// This project's cache folder ([`cache_dir`]).
    pub cache_dir: Option<PathBuf>,
    /// The limit on the size of cached kernels, in MiB, as unparsed text (`TILEWRIGHT_CACHE_MIB`).
    pub cache_mib: Option<String>,
}

impl SearchOptions {
    /// Reads the environment; nothing else in this crate does, except for the loader's own `LD_LIBRARY_PATH`. Empty
    /// variables count as unset.
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let given = |name: &str| lookup(name).filter(|text| !text.is_empty());
        let path = |name: &str| given(name).map(PathBuf::from);
        let mut cuda_homes: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(path).collect();
        cuda_homes.dedup();
        SearchOptions {
            nvrtc_dir: path("TILEWRIGHT_NVRTC_DIR"),
            cuda_homes,
            disabled: lookup("TILEWRIGHT_NVRTC").is_some_and(|text| text == "off"),
            cache_dir: cache_dir(path("XDG_CACHE_HOME"), path("HOME")),
            cache_mib: given("TILEWRIGHT_CACHE_MIB").map(|text| text.to_string_lossy().into_owned()),
        }
    }
}

/// This project's cache folder, `${XDG_CACHE_HOME:-~/.cache}/tilewright`, from the values of `XDG_CACHE_HOME` and
/// `HOME`. A relative `XDG_CACHE_HOME` is ignored, as the XDG specification requires.
pub fn cache_dir(xdg_cache_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let base = xdg_cache_home.filter(|path| path.is_absolute()).or_else(|| home.map(|home| home.join(".cache")))?;
    Some(base.join("tilewright"))
}

/// The folder inside the project's cache that holds the pinned NVRTC: its `.so` files, and an empty file `.ok` once it
/// is complete. Without `.ok` it is not used.
pub fn nvrtc_cache_dir(cache_dir: &Path) -> PathBuf {
    cache_dir.join("nvrtc").join(PINNED_VERSION)
}

/// Searches every place, in order, for an NVRTC that can compile for `target` (such as `sm_100a`).
/// [`crate::Nvrtc::load`] uses the first accepted one. Empty if the search is disabled.
///
/// Once this process has loaded an NVRTC, the loader path yields that one.
pub fn probe(options: &SearchOptions, target: &str) -> Vec<Candidate> {
    let _guard = lock_loader();
    places(options, Path::new(SYSTEM_TOOLKIT))
        .into_iter()
        .map(|place| match examine(place, target) {
            Ok((candidate, _)) | Err(candidate) => candidate,
        })
        .collect()
}

/// Opens the first library that can be used; the others are closed again.
pub(crate) fn choose(options: &SearchOptions, target: &str) -> Result<Opened, CudaError> {
    let _guard = lock_loader();
    let mut candidates = Vec::new();
    for place in places(options, Path::new(SYSTEM_TOOLKIT)) {
        match examine(place, target) {
            Ok((_, opened)) => return Ok(opened),
            Err(candidate) => candidates.push(candidate),
        }
    }
    Err(none_usable(target, candidates))
}

/// The error if no place is accepted. A library that is new enough but lacks the target is the one reported.
fn none_usable(target: &str, candidates: Vec<Candidate>) -> CudaError {
    let lacks_target =
        candidates.iter().find_map(|candidate| Some((candidate, candidate.version.filter(|v| *v >= MINIMUM_VERSION)?)));
    match lacks_target {
        Some((candidate, version)) => CudaError::UnsupportedTarget {
            target: target.to_string(),
            nvrtc: candidate.path.clone(),
            version,
            architectures: candidate.architectures.clone(),
        },
        None => CudaError::NvrtcNotFound { candidates },
    }
}

/// A place to search.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    origin: Origin,
    content: Content,
}

#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// The file of a library, not checked yet.
    Library(PathBuf),
    /// Whatever the dynamic loader finds.
    Loader,
    Nothing {
        /// The folder shown to the user.
        folder: PathBuf,
        why: String,
    },
}

fn places(options: &SearchOptions, system_toolkit: &Path) -> Vec<Place> {
    if options.disabled {
        return Vec::new();
    }
    let mut places = Vec::new();
    if let Some(folder) = &options.nvrtc_dir {
        add_folders(&mut places, Origin::Variable, folder, std::slice::from_ref(folder));
    }
    for home in &options.cuda_homes {
        add_folders(&mut places, Origin::CudaHome, home, &toolkit_folders(home));
    }
    places.push(Place { origin: Origin::LoaderPath, content: Content::Loader });
    add_folders(&mut places, Origin::UsrLocalCuda, system_toolkit, &toolkit_folders(system_toolkit));
    if let Some(cache) = &options.cache_dir {
        add_cache(&mut places, nvrtc_cache_dir(cache));
    }
    places
}

/// `lib64`, `lib` and `targets/*/lib` of a CUDA toolkit.
fn toolkit_folders(home: &Path) -> Vec<PathBuf> {
    let mut machines: Vec<PathBuf> = std::fs::read_dir(home.join("targets"))
        .map(|entries| entries.flatten().map(|entry| entry.path().join("lib")).collect())
        .unwrap_or_default();
    machines.sort();
    let mut folders = vec![home.join("lib64"), home.join("lib")];
    folders.append(&mut machines);
    folders
}

/// Adds a place for each library in these folders (the same file under several names counts once), or one that says
/// that there is none.
fn add_folders(places: &mut Vec<Place>, origin: Origin, shown: &Path, folders: &[PathBuf]) {
    let mut seen = BTreeSet::new();
    let before = places.len();
    for folder in folders {
        let mut files = LIBRARY_NAMES.iter().map(|name| folder.join(name));
        let Some(file) = files.find(|file| file.is_file()) else {
            continue;
        };
        if seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            places.push(Place { origin, content: Content::Library(file) });
        }
    }
    if places.len() == before {
        places.push(nothing(origin, shown.to_path_buf(), "no libnvrtc.so here"));
    }
}

fn add_cache(places: &mut Vec<Place>, folder: PathBuf) {
    if folder.join(COMPLETE_MARKER).is_file() {
        add_folders(places, Origin::Cache, &folder, std::slice::from_ref(&folder));
    } else {
        places.push(nothing(Origin::Cache, folder, "`cargo xtask setup` has not filled it"));
    }
}

fn nothing(origin: Origin, folder: PathBuf, why: &str) -> Place {
    Place { origin, content: Content::Nothing { folder, why: why.to_string() } }
}

/// Opens the library of a place and judges it: the candidate, and the library if it can be used.
fn examine(place: Place, target: &str) -> Result<(Candidate, Opened), Candidate> {
    let (path, opened) = match place.content {
        Content::Library(file) => {
            let opened = Opened::file(&file);
            (file, opened)
        }
        Content::Loader => (PathBuf::from("libnvrtc.so"), Opened::loader()),
        Content::Nothing { folder, why } => (folder, Err(why)),
    };
    let mut candidate =
        Candidate { origin: place.origin, path, version: None, architectures: Vec::new(), verdict: Verdict::Accepted };
    match opened {
        Ok(opened) => {
            candidate.path = opened.path.clone();
            candidate.version = Some(opened.version);
            candidate.architectures = opened.architectures.clone();
            candidate.verdict = judge(opened.version, &opened.architectures, target);
            match candidate.verdict {
                Verdict::Accepted => Ok((candidate, opened)),
                Verdict::Rejected(_) => Err(candidate),
            }
        }
        Err(why) => {
            candidate.verdict = Verdict::Rejected(why);
            Err(candidate)
        }
    }
}

fn judge(version: (u32, u32), architectures: &[u32], target: &str) -> Verdict {
    let (major, minor) = version;
    if version < MINIMUM_VERSION {
        let (wanted, needed) = MINIMUM_VERSION;
        return Verdict::Rejected(format!("version {major}.{minor} is older than {wanted}.{needed}"));
    }
    match Target::parse(target) {
        None => Verdict::Rejected(format!("`{target}` is not a target: write sm_ and a number, such as sm_100a")),
        Some(parsed) if architectures.contains(&parsed.architecture) => Verdict::Accepted,
        Some(_) => Verdict::Rejected(format!(
            "version {major}.{minor} does not support {target}, only {}",
            architecture_list(architectures)
        )),
    }
}

#[cfg(test)]
mod tests;
