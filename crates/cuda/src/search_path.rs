//! Where the dynamic loader looks for a bare name, so that the file can be checked before the loader opens it.
//!
//! The order is that of glibc: `LD_LIBRARY_PATH`, the loader's cache, the standard folders. Run paths that
//! a program was linked with (`DT_RPATH`, `DT_RUNPATH`) are not considered.

use crate::elf::number;
use crate::library::{self, Flaw};
use std::path::{Path, PathBuf};

/// The loader's cache.
const CACHE: &str = "/etc/ld.so.cache";
/// The magic of its format since glibc 2.2. An older format may precede it.
const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Byte offsets inside the cache, and inside an entry.
const CACHE_COUNT: usize = 20;
const CACHE_ENTRIES: usize = 48;
const CACHE_ENTRY_BYTES: usize = 24;
const ENTRY_NAME: usize = 4;
const ENTRY_FILE: usize = 8;

/// The places where the loader looks, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchPath {
    /// The folders searched before the cache.
    first: Vec<PathBuf>,
    /// The bytes of the cache.
    cache: Vec<u8>,
    /// The folders searched after the cache.
    last: Vec<PathBuf>,
}

impl SearchPath {
    /// Where the loader of this process looks. `LD_LIBRARY_PATH` is read here since the loader reads it.
    pub(crate) fn of_process() -> SearchPath {
        // An empty value counts as unset.
        let given = std::env::var_os("LD_LIBRARY_PATH").filter(|folders| !folders.is_empty());
        SearchPath {
            first: given.iter().flat_map(std::env::split_paths).collect(),
            cache: tilewright_files::read(Path::new(CACHE), tilewright_files::MOST_BYTES).unwrap_or_default(),
            last: standard_folders(),
        }
    }

    /// An error message if the loader would open a damaged file when it looks for this name.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        for file in self.files(name) {
            match library::check(&file) {
                Ok(()) => return Ok(()),
                Err(Flaw::Damaged(why)) => {
                    return Err(format!("the loader would open {} as {name}: {why}", file.display()));
                }
                // The loader skips it, or stops here.
                Err(Flaw::Unfit(_)) => {}
            }
        }
        Ok(())
    }

    /// The candidate files for a name, in the order in which the loader tries them.
    fn files(&self, name: &str) -> Vec<PathBuf> {
        let in_folders = |folders: &[PathBuf]| -> Vec<PathBuf> { folders.iter().map(|at| at.join(name)).collect() };
        [in_folders(&self.first), cached(&self.cache, name), in_folders(&self.last)].concat()
    }
}

fn standard_folders() -> Vec<PathBuf> {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = |root: &str| [format!("{root}/{machine}"), format!("{root}64"), root.to_string()];
    ["/lib", "/usr/lib"].into_iter().flat_map(folders).map(PathBuf::from).collect()
}

/// The files that the loader's cache lists for a name; none if the cache is not in the known format.
fn cached(cache: &[u8], name: &str) -> Vec<PathBuf> {
    let start = cache.windows(CACHE_MAGIC.len()).position(|bytes| bytes == CACHE_MAGIC);
    let Some(cache) = start.map(|start| &cache[start..]) else { return Vec::new() };
    let count = number(cache, CACHE_COUNT, 4).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let entries = cache.get(CACHE_ENTRIES..).unwrap_or_default().chunks_exact(CACHE_ENTRY_BYTES).take(count);
    let named = entries.filter(|entry| text_at(cache, entry, ENTRY_NAME) == Some(name.as_bytes()));
    let files = named.filter_map(|entry| std::str::from_utf8(text_at(cache, entry, ENTRY_FILE)?).ok());
    files.map(PathBuf::from).collect()
}

/// The zero-terminated text in the cache whose offset is stored at `at` in an entry.
fn text_at<'a>(cache: &'a [u8], entry: &[u8], at: usize) -> Option<&'a [u8]> {
    let place = usize::try_from(number(entry, at, 4)?).ok()?;
    cache.get(place..)?.split(|byte| *byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use crate::library::tests::{cut_image, image};

    /// A cache of the loader with these names and files.
    fn cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = vec![0; CACHE_ENTRIES];
        bytes[..CACHE_MAGIC.len()].copy_from_slice(CACHE_MAGIC);
        bytes[CACHE_COUNT] = entries.len() as u8;
        let mut texts = Vec::new();
        for (name, file) in entries {
            let mut entry = [0; CACHE_ENTRY_BYTES];
            for (at, text) in [(ENTRY_NAME, name), (ENTRY_FILE, file)] {
                let offset = (CACHE_ENTRIES + entries.len() * CACHE_ENTRY_BYTES + texts.len()) as u32;
                entry[at..at + 4].copy_from_slice(&offset.to_le_bytes());
                texts.extend_from_slice(text.as_bytes());
                texts.push(0);
            }
            bytes.extend_from_slice(&entry);
        }
        bytes.extend_from_slice(&texts);
        bytes
    }

    fn paths(texts: &[&str]) -> Vec<PathBuf> {
        texts.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_loaders_cache_is_read() {
        let entries = [("libcuda.so.1", "/a/libcuda.so.1"), ("libcuda.so", "/b/libcuda.so"), ("libcuda.so", "/c/x")];
        let bytes = cache(&entries);
        assert_eq!(cached(&bytes, "libcuda.so"), paths(&["/b/libcuda.so", "/c/x"]));
        assert_eq!(cached(&bytes, "libcuda.so.1"), paths(&["/a/libcuda.so.1"]));
        assert_eq!(cached(&bytes, "libcud"), paths(&[]));
        let behind_an_older_format = [&b"ld.so-1.7.0\0 and what it has"[..], &bytes].concat();
        assert_eq!(cached(&behind_an_older_format, "libcuda.so.1"), paths(&["/a/libcuda.so.1"]));
    }

    #[test]
    fn a_cache_cut_anywhere_is_no_panic() {
        let bytes = cache(&[("libcuda.so", "/b/libcuda.so")]);
        for length in 0..bytes.len() {
            assert!(cached(&bytes[..length], "libcuda.so").len() <= 1);
        }
        let mut beyond = bytes.clone();
        beyond[CACHE_ENTRIES + ENTRY_FILE..CACHE_ENTRIES + ENTRY_FILE + 4].fill(0xff);
        assert_eq!(cached(&beyond, "libcuda.so"), paths(&[]));
    }

    #[test]
    fn files_come_in_the_order_of_the_loader() {
        let path = SearchPath {
            first: paths(&["/first"]),
            cache: cache(&[("libcuda.so", "/cached/libcuda.so")]),
            last: paths(&["/last"]),
        };
        let files = paths(&["/first/libcuda.so", "/cached/libcuda.so", "/last/libcuda.so"]);
        assert_eq!(path.files("libcuda.so"), files);
        let standard = standard_folders();
        assert!(standard.contains(&PathBuf::from("/usr/lib")) && standard.contains(&PathBuf::from("/lib64")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_damaged_file_is_an_error_unless_a_whole_one_stands_before_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| root.path().join(name);
        for (name, bytes) in [("text", b"no library".to_vec()), ("whole", image()), ("cut", cut_image())] {
            std::fs::create_dir(folder(name)).unwrap();
            std::fs::write(folder(name).join("libcuda.so"), bytes).unwrap();
        }
        let check = |names: &[&str]| {
            let first = names.iter().map(|name| folder(name)).collect();
            SearchPath { first, ..SearchPath::default() }.check("libcuda.so")
        };
        assert_eq!((check(&[]), check(&["text", "absent", "whole", "cut"])), (Ok(()), Ok(())));
        let why = check(&["absent", "text", "cut", "whole"]).unwrap_err();
        let file = folder("cut").join("libcuda.so");
        assert!(why.starts_with(&format!("the loader would open {} as libcuda.so: ", file.display())), "{why}");
        assert!(why.contains("it is cut short or damaged, so install it again: the table of sections"), "{why}");
    }
}
