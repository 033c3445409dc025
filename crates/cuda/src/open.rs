//! Opens NVRTC libraries by path, queries what they are, and keeps the chosen one in the process. Every file is checked
//! first, since opening one that is cut short may kill the process.

use crate::library::{self, Flaw};
use crate::search_path::SearchPath;
use libloading::Library;
use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while libraries are opened for inspection: a library that is open in the process is also found on the loader
/// path, so two concurrent searches would see each other's libraries.
static LOADER: Mutex<()> = Mutex::new(());

/// Waits until no other thread in this crate is inspecting libraries.
pub(crate) fn lock_loader() -> MutexGuard<'static, ()> {
    LOADER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An opened NVRTC, with what it reports about itself. It is closed on drop, unless kept.
pub(crate) struct Opened {
    /// The loaded library; `keep` leaks it on purpose.
    library: Library,
    /// The file, or the bare name by which the loader found it if the file is not known.
    pub(crate) path: PathBuf,
    /// (major, minor) as reported by `nvrtcVersion`.
    pub(crate) version: (u32, u32),
    /// As reported by `nvrtcGetSupportedArchs`, ascending.
    pub(crate) architectures: Vec<u32>,
}

/// A return code: 0 is success. A plain number, since a library of another version may return codes that the
/// bindings do not have.
type Status = u32;
type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status;
type GetCount = unsafe extern "C" fn(*mut c_int) -> Status;
type GetList = unsafe extern "C" fn(*mut c_int) -> Status;

impl Opened {
    /// Opens the library in this file. The error says why it cannot be used.
    pub(crate) fn file(path: &Path) -> Result<Opened, String> {
        library::check(path).map_err(|flaw| flaw.to_string())?;
        Opened::from_library(open(path)?, path.to_path_buf())
    }

    /// Opens the library that cudarc would find on the loader path: same names, same order.
    ///
    /// Once this process keeps an NVRTC, that one is found here.
    pub(crate) fn loader() -> Result<Opened, String> {
        let found = open_by_name(&cudarc::get_lib_name_candidates("nvrtc"), None)?;
        let (library, name) = found.ok_or("no libnvrtc.so on the loader path")?;
        let path = mapped_file().unwrap_or_else(|| PathBuf::from(name));
        Opened::from_library(library, path)
    }

    fn from_library(library: Library, path: PathBuf) -> Result<Opened, String> {
        let version = version(&library)?;
        check_builtins(&path, version)?;
        Ok(Opened { version, architectures: architectures(&library)?, library, path })
    }

    /// Keeps the library in the process until its end, so that cudarc's later search by name finds it, and first opens
    /// the built-in headers library next to it (NVRTC 13.0 does not find that by itself).
    pub(crate) fn keep(self) {
        for builtins in self.path.parent().map(builtins_in).unwrap_or_default() {
            // One that cannot be opened may not be needed; if it is, the first compilation reports it.
            if let Ok(library) = open(&builtins) {
                std::mem::forget(library);
            }
        }
        std::mem::forget(self.library);
    }
}

/// Opens a library file that was checked, or a bare name.
fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: Opening a library runs its initialisers. Only files that are named like NVRTC's libraries or the CUDA
    // driver are opened here, and their initialisers place no requirements on the caller.
    unsafe { Library::new(path) }.map_err(|error| describe(&error))
}

/// Opens the first of these names that the loader can open, in the same order as cudarc. The name `kept` refers to a
/// library already in the process, so no file is checked for it. Error: the loader would find a damaged file.
fn open_by_name(names: &[String], kept: Option<&str>) -> Result<Option<(Library, String)>, String> {
    let search = SearchPath::of_process();
    for name in names {
        if kept != Some(name.as_str()) {
            search.check(name)?;
        }
        if let Ok(library) = open(Path::new(name)) {
            return Ok(Some((library, name.clone())));
        }
    }
    Ok(None)
}

/// Whether cudarc finds a library under one of these names. It panics if it finds none, and opens what it finds, so
/// this is checked first. Error: the loader would find a damaged file.
pub(crate) fn is_present(names: &[String], kept: Option<&str>) -> Result<bool, String> {
    open_by_name(names, kept).map(|found| found.is_some())
}

/// An error if the library of built-in headers, which NVRTC opens itself when it first compiles, is damaged: the one
/// next to it, or the one that the loader finds by the name that this version uses.
fn check_builtins(nvrtc: &Path, (major, minor): (u32, u32)) -> Result<(), String> {
    let beside = nvrtc.parent().map(builtins_in).unwrap_or_default();
    for file in &beside {
        if let Err(Flaw::Damaged(why)) = library::check(file) {
            return Err(format!("its built-in headers {} cannot be used: {why}", file.display()));
        }
    }
    if beside.is_empty() {
        SearchPath::of_process().check(&format!("libnvrtc-builtins.so.{major}.{minor}"))?;
    }
    Ok(())
}

/// The loader's own message: libloading's is just "dlopen failed".
fn describe(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| source.to_string())
}

fn version(library: &Library) -> Result<(u32, u32), String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: The type is that of `nvrtcVersion` in nvrtc.h.
    let call = unsafe { library.get::<GetVersion>("nvrtcVersion") }.map_err(|e| describe(&e))?;
    // SAFETY: Both pointers are to integers that live through the call.
    let status = unsafe { call(&mut major, &mut minor) };
    match (status, u32::try_from(major), u32::try_from(minor)) {
        (0, Ok(major), Ok(minor)) => Ok((major, minor)),
        _ => Err(format!("nvrtcVersion failed (status {status})")),
    }
}

fn architectures(library: &Library) -> Result<Vec<u32>, String> {
    let mut count = 0;
    // SAFETY: The type is that of `nvrtcGetNumSupportedArchs` in nvrtc.h.
    let call = unsafe { library.get::<GetCount>("nvrtcGetNumSupportedArchs") }.map_err(|e| describe(&e))?;
    // SAFETY: The pointer is to an integer that lives through the call.
    let status = unsafe { call(&mut count) };
    let length = match usize::try_from(count) {
        Ok(length) if status == 0 => length,
        _ => return Err(format!("nvrtcGetNumSupportedArchs failed (status {status})")),
    };
    let mut numbers: Vec<c_int> = vec![0; length];
    // SAFETY: The type is that of `nvrtcGetSupportedArchs` in nvrtc.h.
    let call = unsafe { library.get::<GetList>("nvrtcGetSupportedArchs") }.map_err(|e| describe(&e))?;
    // SAFETY: The pointer is to as many integers as the library reported that it writes.
    let status = unsafe { call(numbers.as_mut_ptr()) };
    if status != 0 {
        return Err(format!("nvrtcGetSupportedArchs failed (status {status})"));
    }
    let distinct: BTreeSet<u32> = numbers.into_iter().filter_map(|n| u32::try_from(n).ok()).collect();
    Ok(distinct.into_iter().collect())
}

/// The libraries of built-in headers in a folder, in order of their names.
fn builtins_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so"))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// The one NVRTC file that is mapped into this process, if the system reports it (Linux).
fn mapped_file() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    only_nvrtc_file(&maps)
}

fn only_nvrtc_file(maps: &str) -> Option<PathBuf> {
    let files: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("libnvrtc.so")))
        .collect();
    let mut files = files.into_iter();
    match (files.next(), files.next()) {
        (Some(only), None) => Some(PathBuf::from(only)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use crate::library::tests::{cut_image, image};

    /// The error for a file with these bytes.
    #[cfg(target_os = "linux")]
    fn said_of(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libnvrtc.so.13");
        std::fs::write(&file, bytes).unwrap();
        match Opened::file(&file) {
            Ok(_) => panic!("it was opened as a library"),
            Err(why) => why,
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_no_library_says_why() {
        let needed = format!("a 64-bit ELF library for {} is needed", std::env::consts::ARCH);
        assert_eq!(said_of(b"not a library"), format!("it is not an ELF file; {needed}"));
        assert_eq!(said_of(b""), format!("it is not an ELF file; {needed}"));
    }

    /// Opening it would kill the process.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_that_is_cut_short_is_not_opened() {
        let cut = "it is cut short or damaged, so install it again: the table of sections ends at byte 184, \
                   and the file has 150 bytes";
        assert_eq!(said_of(&cut_image()), cut);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn built_in_headers_that_are_cut_short_are_told_of_nvrtc() {
        let folder = tempfile::tempdir().unwrap();
        let nvrtc = folder.path().join("libnvrtc.so.13");
        assert_eq!(check_builtins(&nvrtc, (0, 0)), Ok(()));
        let builtins = folder.path().join("libnvrtc-builtins.so.13.5");
        for (bytes, is_fit) in [(image(), true), (cut_image(), false), (b"INPUT(other)".to_vec(), true)] {
            std::fs::write(&builtins, bytes).unwrap();
            let checked = check_builtins(&nvrtc, (13, 5));
            assert_eq!(checked.is_ok(), is_fit, "{checked:?}");
            assert!(is_fit || checked.is_err_and(|why| why.contains("libnvrtc-builtins.so.13.5")));
        }
    }

    #[test]
    fn names_that_no_library_has_are_not_present() {
        assert_eq!(is_present(&["libtilewright-absent.so".to_string()], None), Ok(false));
    }

    #[test]
    fn builtins_are_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.5", "libnvrtc-builtins.so"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names = ["libnvrtc-builtins.so", "libnvrtc-builtins.so.13.5"];
        assert_eq!(builtins_in(folder.path()), names.map(|name| folder.path().join(name)));
        assert!(builtins_in(&folder.path().join("absent")).is_empty());
    }

    #[test]
    fn the_mapped_file_is_known_only_where_there_is_one() {
        let line = |path: &str| format!("7f00-7f01 r-xp 00000000 08:01 42    {path}\n");
        let one = line("/lib/libc.so.6") + &line("/a/libnvrtc.so.13") + &line("/a/libnvrtc.so.13");
        assert_eq!(only_nvrtc_file(&one), Some(PathBuf::from("/a/libnvrtc.so.13")));
        assert_eq!(only_nvrtc_file(&(one + &line("/b/libnvrtc.so.12"))), None);
        assert_eq!(only_nvrtc_file(""), None);
    }
}
