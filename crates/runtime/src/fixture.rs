//! PTX committed with the tests, for machines without NVRTC: used only if compiled from exactly this text.

use std::path::{Path, PathBuf};

use tilewright_compile::Artifact;
use tilewright_cuda::{CacheKey, Request, Resources};
use tilewright_files::read_text;

/// Committed PTX.
pub(crate) struct Fixture {
    pub(crate) ptx: String,
    /// The resource usage, if it was known when the PTX was committed.
    pub(crate) resources: Option<Resources>,
    pub(crate) path: PathBuf,
}

/// A folder of committed PTX.
#[derive(Clone, Debug)]
pub struct FixtureFolder(PathBuf);

/// How the first line of a fixture begins; the key of its request follows.
const FIRST: &str = "// tilewright fixture ";
/// How the second line of a fixture begins; the resource usage follows.
const SECOND: &str = "// resources ";
/// What stands for a resource usage that was not known.
const UNKNOWN: &str = "unknown";

impl FixtureFolder {
    /// The fixtures in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> FixtureFolder {
        FixtureFolder(folder.into())
    }

    /// The path of the fixture for this request, existing or not.
    pub fn path(&self, kernel: &str, request: &Request<'_>) -> PathBuf {
        self.0.join(format!("{kernel}.{}.{}.ptx", request.target, &key(request)[..12]))
    }

    /// The fixture for exactly this CUDA text, target and options, if there is one. Error: it cannot be read.
    pub(crate) fn find(&self, artifact: &Artifact, request: &Request<'_>) -> Result<Option<Fixture>, String> {
        let path = self.path(artifact.name(), request);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path).map_err(|error| error.to_string())?;
        let read = read(&text, artifact.entry(), &key(request));
        let read = read.map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(read.map(|(ptx, resources)| Fixture { ptx, resources, path }))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }
}

/// SHA-256 over text, name, target and options; the NVRTC version is left out, since any version's PTX will do.
fn key(request: &Request<'_>) -> String {
    CacheKey::new(request, (0, 0)).to_string()
}

/// The text of a fixture file.
pub fn fixture_text(request: &Request<'_>, ptx: &str, resources: Option<&Resources>) -> String {
    let facts = resources.map_or_else(
        || UNKNOWN.to_string(),
        |r| {
            format!(
                "registers={} spill_stores={} spill_loads={} stack={} shared={} barriers={}",
                r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes, r.shared_bytes, r.barriers
            )
        },
    );
    format!("{FIRST}{}\n{SECOND}{facts}\n{ptx}", key(request))
}

/// PTX and resources of a fixture for the kernel `entry`; `None` if it was made from another text.
fn read(text: &str, entry: &str, key: &str) -> Result<Option<(String, Option<Resources>)>, String> {
    let mut lines = text.splitn(3, '\n');
    let mut header = |start: &str| {
        let line = lines.next().and_then(|line| line.strip_prefix(start));
        line.map(str::trim).ok_or_else(|| format!("no line that begins with `{start}`"))
    };
    if header(FIRST)? != key {
        return Ok(None);
    }
    let resources = match header(SECOND)? {
        UNKNOWN => None,
        line => Some(parse(entry, line).ok_or_else(|| format!("`{line}` does not give resource usage"))?),
    };
    Ok(Some((lines.next().unwrap_or("").to_string(), resources)))
}

fn parse(kernel: &str, line: &str) -> Option<Resources> {
    let value = |name: &str| {
        line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse::<u32>().ok())
    };
    Some(Resources {
        kernel: kernel.to_string(),
        registers: value("registers")?,
        spill_store_bytes: value("spill_stores")?,
        spill_load_bytes: value("spill_loads")?,
        stack_bytes: value("stack")?,
        shared_bytes: value("shared")?,
        barriers: value("barriers")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: &str = "registers=30 spill_stores=4 spill_loads=8 stack=16 shared=512 barriers=1";

    #[test]
    fn a_fixture_is_of_the_entry_point() {
        let found = read(&format!("{FIRST}1234\n{SECOND}{USAGE}\nptx\n"), "k_", "1234");
        let resources = Resources {
            kernel: "k_".to_string(),
            registers: 30,
            spill_store_bytes: 4,
            spill_load_bytes: 8,
            stack_bytes: 16,
            shared_bytes: 512,
            barriers: 1,
        };
        assert_eq!(found, Ok(Some(("ptx\n".to_string(), Some(resources)))));
    }

    #[test]
    fn only_unknown_stands_for_a_usage_that_is_not_known() {
        let of = |usage: &str| read(&format!("{FIRST}1234\n{SECOND}{usage}\nptx\n"), "k", "1234");
        assert_eq!(of(UNKNOWN), Ok(Some(("ptx\n".to_string(), None))));
        assert_eq!(of("registers=30"), Err("`registers=30` does not give resource usage".to_string()));
        assert!(read(&format!("{FIRST}1234\nptx\n"), "k", "1234").is_err());
        assert_eq!(read(&format!("{FIRST}5678\nptx\n"), "k", "1234"), Ok(None));
    }
}
