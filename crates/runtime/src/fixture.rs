//! PTX committed with the tests, for machines without NVRTC: used only if compiled from exactly this text.

use std::path::{Path, PathBuf};

use tilewright_cuda::{CacheKey, Request, Resources};
use tilewright_files::read_text;

/// A folder of committed PTX.
#[derive(Clone, Debug)]
pub struct FixtureFolder(PathBuf);

/// How the first line of a fixture begins; the key of its request follows.
const FIRST: &str = "// tilewright fixture ";
/// How the second line of a fixture begins; the resource usage follows.
const SECOND: &str = "// resources ";

impl FixtureFolder {
    /// The fixtures in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> FixtureFolder {
        FixtureFolder(folder.into())
    }

    /// The path of the fixture for this request, existing or not.
    pub fn path(&self, kernel: &str, request: &Request<'_>) -> PathBuf {
        self.0.join(format!("{kernel}.{}.{}.ptx", request.target, &key(request)[..12]))
    }

    /// PTX and resources, if there is a fixture for exactly this CUDA text, target and options.
    pub(crate) fn find(&self, kernel: &str, request: &Request<'_>) -> Option<(String, Option<Resources>, PathBuf)> {
        let path = self.path(kernel, request);
        let text = read_text(&path).ok()?;
        let mut lines = text.splitn(3, '\n');
        let made_from = lines.next()?.strip_prefix(FIRST)?.trim();
        let resources = lines.next()?.strip_prefix(SECOND).and_then(|line| parse(kernel, line));
        (made_from == key(request)).then(|| (lines.next().unwrap_or("").to_string(), resources, path))
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
        || "unknown".to_string(),
        |r| {
            format!(
                "registers={} spill_stores={} spill_loads={} stack={} shared={} barriers={}",
                r.registers, r.spill_store_bytes, r.spill_load_bytes, r.stack_bytes, r.shared_bytes, r.barriers
            )
        },
    );
    format!("{FIRST}{}\n{SECOND}{facts}\n{ptx}", key(request))
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
