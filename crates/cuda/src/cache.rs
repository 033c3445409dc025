//! Compiled kernels on disk.
//!
//! One file per entry, named by the SHA-256 of everything that determines the result. An entry that cannot be read
//! causes a note, never an error: the kernel is compiled again and the entry replaced. After an entry is written, the
//! least recently used ones are removed until the rest fit the limit.

mod trim;

use crate::entry::{self, FORMAT};
use crate::error::CudaError;
use crate::find::SearchOptions;
use crate::nvrtc::Nvrtc;
use crate::request::{Compiled, Request};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The default limit on the total size of a cache's entries, in MiB, if `TILEWRIGHT_CACHE_MIB` is not set.
pub const DEFAULT_CACHE_MIB: u64 = 512;

const BYTES_PER_MIB: u64 = 1 << 20;

/// A hash of everything that determines the result of a compilation, as 64 hexadecimal digits: the CUDA text, its name,
/// all options including the target, the NVRTC version and the format of the entries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheKey(String);

impl CacheKey {
    /// The key for this request to an NVRTC of this version, (major, minor).
    pub fn new(request: &Request<'_>, nvrtc_version: (u32, u32)) -> CacheKey {
        let mut hasher = Sha256::new();
        for number in [FORMAT, nvrtc_version.0, nvrtc_version.1] {
            hasher.update(number.to_le_bytes());
        }
        let options = request.all_options();
        let texts = [request.name, request.source];
        for text in texts.into_iter().chain(options.iter().map(String::as_str)) {
            // The length before each text keeps two different lists from yielding the same bytes.
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let digest: [u8; 32] = hasher.finalize().into();
        CacheKey(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the cache holds for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheLookup {
    /// The result.
    Hit(Compiled),
    /// There is no entry.
    Miss,
    /// An entry that cannot be read, and why, in a sentence for the user.
    Broken(String),
}

/// A folder of compiled kernels. Several processes may use it at the same time.
#[derive(Debug, Clone)]
pub struct CompileCache {
    /// The folder of the entries.
    dir: PathBuf,
    /// The limit on the total size of all entries, in bytes.
    most_bytes: u64,
    /// Why the requested limit was not accepted, if it was not.
    note: Option<String>,
}

impl CompileCache {
    /// The cache in this folder, which is created when the first entry is written. Its entries take at most
    /// [`DEFAULT_CACHE_MIB`].
    pub fn new(dir: PathBuf) -> Self {
        CompileCache { dir, most_bytes: DEFAULT_CACHE_MIB * BYTES_PER_MIB, note: None }
    }

    /// The cache in the folder `kernels` of [`SearchOptions::cache_dir`], with the limit of
    /// [`SearchOptions::cache_mib`]. [`compile_cached`] reports a limit that is not a number in a note.
    pub fn from_options(options: &SearchOptions) -> Option<Self> {
        let cache = CompileCache::new(options.cache_dir.as_ref()?.join("kernels"));
        Some(match options.cache_mib.as_deref().map(parse_mib) {
            None => cache,
            Some(Ok(bytes)) => cache.with_limit(bytes),
            Some(Err(note)) => CompileCache { note: Some(note), ..cache },
        })
    }

    /// The same cache with this limit on the total size of its entries. The entry that was written last stays, whatever
    /// its size.
    pub fn with_limit(self, bytes: u64) -> Self {
        CompileCache { most_bytes: bytes, ..self }
    }

    /// Looks up a result. A hit counts as a use of the entry.
    pub fn get(&self, key: &CacheKey) -> CacheLookup {
        let path = self.path(key);
        let broken =
            |why: &str| CacheLookup::Broken(format!("the cache entry {} cannot be used: {why}", path.display()));
        match tilewright_files::read(&path, tilewright_files::MOST_BYTES) {
            Ok(bytes) => match entry::decode(&bytes) {
                Ok(compiled) => {
                    trim::mark_used(&path, SystemTime::now());
                    CacheLookup::Hit(compiled)
                }
                Err(why) => broken(&why),
            },
            Err(error) if error.is_missing() => CacheLookup::Miss,
            Err(error) => broken(&error.problem.to_string()),
        }
    }

    /// Stores a result, replacing an older one, and removes the least recently used entries until the rest fit. It is
    /// written to a temporary file and renamed, so that a reader sees a whole entry or none, and a full disk leaves
    /// nothing behind.
    ///
    /// # Errors
    ///
    /// [`CudaError::Cache`] if the folder or the file cannot be written.
    pub fn put(&self, key: &CacheKey, compiled: &Compiled) -> Result<(), CudaError> {
        let path = self.path(key);
        match write_aside(&self.dir, &path, &entry::encode(compiled)) {
            Ok(()) => {
                trim::trim(&self.dir, self.most_bytes, &path, SystemTime::now());
                Ok(())
            }
            Err(error) => Err(CudaError::Cache { path, reason: error.to_string() }),
        }
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        self.dir.join(format!("{key}{}", trim::ENTRY))
    }
}

/// Converts a number of MiB to bytes. The error says which limit is used instead.
fn parse_mib(text: &str) -> Result<u64, String> {
    let bytes = text.trim().parse::<u64>().ok().and_then(|mib| mib.checked_mul(BYTES_PER_MIB));
    bytes.ok_or_else(|| {
        format!(
            "TILEWRIGHT_CACHE_MIB is `{text}`, which is not a number of MiB such as {DEFAULT_CACHE_MIB}; \
             using {DEFAULT_CACHE_MIB}"
        )
    })
}

fn write_aside(dir: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    // Dropping it without persisting removes the file.
    let mut file = tempfile::Builder::new().prefix(trim::ASIDE).tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.flush()?;
    file.persist(path)?;
    Ok(())
}

/// Compiles through the cache, if there is one. The second value holds notes about entries that could not be read or
/// written, and about a limit that is not a number; they do not affect the result.
///
/// # Errors
///
/// Those of [`Nvrtc::compile`]. A rejected text is not cached.
pub fn compile_cached(
    nvrtc: &Nvrtc,
    cache: Option<&CompileCache>,
    request: &Request<'_>,
) -> Result<(Compiled, Vec<String>), CudaError> {
    let Some(cache) = cache else {
        return Ok((nvrtc.compile(request)?, Vec::new()));
    };
    let key = CacheKey::new(request, nvrtc.version());
    let mut notes: Vec<String> = cache.note.iter().cloned().collect();
    match cache.get(&key) {
        CacheLookup::Hit(compiled) => return Ok((compiled, notes)),
        CacheLookup::Miss => {}
        CacheLookup::Broken(note) => notes.push(note),
    }
    let compiled = nvrtc.compile(request)?;
    if let Err(error) = cache.put(&key, &compiled) {
        notes.push(error.to_string());
    }
    Ok((compiled, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::tests::sample;
    use std::time::Duration;

    const REQUEST: Request<'static> =
        Request { source: "text", name: "/tilewright/k.cu", target: "sm_100a", options: &[] };

    fn file_names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_stored_result_is_found_again() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::new(root.path().join("new/folder"));
        let key = CacheKey::new(&REQUEST, (13, 5));
        assert_eq!(cache.get(&key), CacheLookup::Miss);
        cache.put(&key, &sample()).unwrap();
        cache.put(&key, &sample()).unwrap();
        assert_eq!(cache.get(&key), CacheLookup::Hit(sample()));
        assert_eq!(file_names(&root.path().join("new/folder")), [format!("{key}.kernel")]);
    }

    #[test]
    fn an_entry_cut_at_any_length_is_broken_and_can_be_replaced() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::new(root.path().to_path_buf());
        let key = CacheKey::new(&REQUEST, (13, 5));
        cache.put(&key, &sample()).unwrap();
        let whole = std::fs::read(cache.path(&key)).unwrap();
        for length in 0..whole.len() {
            std::fs::write(cache.path(&key), &whole[..length]).unwrap();
            assert!(matches!(cache.get(&key), CacheLookup::Broken(_)), "cut at {length}");
        }
        cache.put(&key, &sample()).unwrap();
        assert_eq!(cache.get(&key), CacheLookup::Hit(sample()));
    }

    #[test]
    fn a_broken_entry_is_named() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::new(root.path().to_path_buf());
        let key = CacheKey::new(&REQUEST, (13, 5));
        std::fs::write(cache.path(&key), "").unwrap();
        let expected = format!(
            "the cache entry {} cannot be used: it is not a cache entry, or it is cut short",
            cache.path(&key).display()
        );
        assert_eq!(cache.get(&key), CacheLookup::Broken(expected));
    }

    /// Reading a FIFO would wait for a writer.
    #[cfg(unix)]
    #[test]
    fn an_entry_that_is_a_fifo_is_broken_and_can_be_replaced() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::new(root.path().to_path_buf());
        let key = CacheKey::new(&REQUEST, (13, 5));
        let made = std::process::Command::new("mkfifo").arg(cache.path(&key)).status().unwrap();
        assert!(made.success());
        let expected = format!(
            "the cache entry {} cannot be used: it is a FIFO; a regular file of at most 64 MiB is expected",
            cache.path(&key).display()
        );
        assert_eq!(cache.get(&key), CacheLookup::Broken(expected));
        cache.put(&key, &sample()).unwrap();
        assert_eq!(cache.get(&key), CacheLookup::Hit(sample()));
    }

    /// Keys of three different texts.
    fn three_keys() -> [CacheKey; 3] {
        ["a", "b", "c"].map(|source| CacheKey::new(&Request { source, ..REQUEST }, (13, 5)))
    }

    #[test]
    fn what_is_found_counts_as_used_and_outlives_what_is_not() {
        let root = tempfile::tempdir().unwrap();
        let bytes = entry::encode(&sample()).len() as u64;
        let cache = CompileCache::new(root.path().to_path_buf()).with_limit(2 * bytes);
        let [a, b, c] = three_keys();
        for (key, seconds) in [(&a, 1), (&b, 2)] {
            cache.put(key, &sample()).unwrap();
            trim::mark_used(&cache.path(key), SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        }
        assert_eq!(cache.get(&a), CacheLookup::Hit(sample()));
        cache.put(&c, &sample()).unwrap();
        assert_eq!(cache.get(&b), CacheLookup::Miss);
        assert_eq!((cache.get(&a), cache.get(&c)), (CacheLookup::Hit(sample()), CacheLookup::Hit(sample())));
    }

    #[test]
    fn the_entry_written_last_stays_whatever_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::new(root.path().to_path_buf()).with_limit(0);
        for key in three_keys() {
            cache.put(&key, &sample()).unwrap();
            assert_eq!(file_names(root.path()), [format!("{key}.kernel")]);
        }
    }

    #[test]
    fn the_limit_is_taken_from_the_options() {
        let cache = |mib: Option<&str>| {
            let options = SearchOptions {
                cache_dir: Some(PathBuf::from("/cache")),
                cache_mib: mib.map(str::to_string),
                ..SearchOptions::default()
            };
            CompileCache::from_options(&options).unwrap()
        };
        assert_eq!((cache(None).most_bytes, cache(None).note), (512 << 20, None));
        assert_eq!((cache(Some("3")).most_bytes, cache(Some("0")).most_bytes), (3 << 20, 0));
        let wrong = cache(Some("1 GiB"));
        let note = "TILEWRIGHT_CACHE_MIB is `1 GiB`, which is not a number of MiB such as 512; using 512";
        assert_eq!((wrong.most_bytes, wrong.note.as_deref()), (512 << 20, Some(note)));
        assert_eq!(wrong.dir, PathBuf::from("/cache/kernels"));
        assert!(CompileCache::from_options(&SearchOptions::default()).is_none());
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let cache = CompileCache::new(root.path().to_path_buf());
        let key = CacheKey::new(&REQUEST, (13, 5));
        // A folder in the entry's place makes the rename fail.
        std::fs::create_dir_all(cache.path(&key).join("occupied")).unwrap();
        assert!(matches!(cache.put(&key, &sample()), Err(CudaError::Cache { .. })));
        assert_eq!(file_names(root.path()), [format!("{key}.kernel")]);
    }

    #[test]
    fn everything_that_decides_the_result_is_in_the_key() {
        let key = CacheKey::new(&REQUEST, (13, 5));
        assert_eq!(key, CacheKey::new(&REQUEST, (13, 5)));
        assert_eq!(key.to_string().len(), 64);
        let extra = ["--fmad=true".to_string()];
        let others = [
            CacheKey::new(&REQUEST, (13, 6)),
            CacheKey::new(&Request { source: "other", ..REQUEST }, (13, 5)),
            CacheKey::new(&Request { name: "/k.cu", ..REQUEST }, (13, 5)),
            CacheKey::new(&Request { target: "sm_90a", ..REQUEST }, (13, 5)),
            CacheKey::new(&Request { options: &extra, ..REQUEST }, (13, 5)),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(&key, other);
            assert!(!others[..at].contains(other));
        }
    }
}
