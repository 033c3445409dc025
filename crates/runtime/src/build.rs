//! Compiles CUDA text to PTX and machine code with NVRTC and a disk cache, or finds PTX committed for this text.

use std::path::PathBuf;

use tilewright_compile::Artifact;
use tilewright_cuda::{CompileCache, CudaError, Nvrtc, Request, SearchOptions, Severity, compile_cached};
use tilewright_diag::Diagnostic;

use crate::built::{Built, CudaText, Origin};
use crate::explain;
use crate::failure::{Failure, FailureKind};
use crate::fixture::{Fixture, FixtureFolder};
use crate::lines::LineMap;

/// Compiles CUDA text to something that runs.
#[derive(Debug)]
pub struct Toolchain {
    search: SearchOptions,
    /// Where compiled kernels are cached; `None` to compile every time.
    cache: Option<CompileCache>,
    /// Committed PTX, used if there is no NVRTC.
    fixtures: Option<FixtureFolder>,
}

impl Toolchain {
    /// A toolchain that looks for NVRTC as `search` says, keeps results in `cache`, and falls back to `fixtures`.
    pub fn new(search: SearchOptions, cache: Option<CompileCache>, fixtures: Option<FixtureFolder>) -> Toolchain {
        Toolchain { search, cache, fixtures }
    }

    /// A toolchain with the search options and the cache folder of the environment.
    pub fn from_env(fixtures: Option<FixtureFolder>) -> Toolchain {
        let search = SearchOptions::from_env();
        let cache = CompileCache::from_options(&search);
        Toolchain::new(search, cache, fixtures)
    }

    /// Where to look for NVRTC.
    pub fn search(&self) -> &SearchOptions {
        &self.search
    }

    /// The NVRTC for a target, if there is one.
    pub fn nvrtc(&self, target: &str) -> Result<Nvrtc, CudaError> {
        Nvrtc::load(&self.search, target)
    }

    /// Compiles an artifact's CUDA text, or an edited text in its place.
    pub fn build(&self, artifact: &Artifact, text: &CudaText) -> Result<Built, Failure> {
        let name = format!("/tilewright/{}.cu", artifact.name());
        let (source, edited) = match text {
            CudaText::Generated => (artifact.cuda(), None),
            CudaText::Edited { text, .. } => (text.as_str(), Some(LineMap::between(artifact.cuda(), text))),
        };
        let request = request(&name, source, artifact);
        match self.nvrtc(request.target) {
            Ok(nvrtc) => self.build_with(&nvrtc, artifact, text, &request, edited),
            Err(error) => self.build_from_fixture(artifact, &request, edited, error),
        }
    }

    fn build_with(
        &self,
        nvrtc: &Nvrtc,
        artifact: &Artifact,
        text: &CudaText,
        request: &Request<'_>,
        edited: Option<LineMap>,
    ) -> Result<Built, Failure> {
        // Included files are not part of the key, so a text that includes any is compiled every time.
        let cache = self.cache.as_ref().filter(|_| !request.source.contains("#include"));
        let (compiled, notes) = compile_cached(nvrtc, cache, request)
            .map_err(|error| explain::compile_error(&error, artifact, text, edited.as_ref()))?;
        let of_severity = |severity| compiled.log.iter().filter(move |line| line.severity == severity);
        let warnings = of_severity(Severity::Warning);
        let warnings = warnings.map(|line| explain::log_line(line, artifact, text, edited.as_ref())).collect();
        let remarks = of_severity(Severity::Info).map(|line| format!("NVRTC: {}", line.text));
        let notes = notes.into_iter().chain(remarks).collect();
        let resources = compiled.resources.into_iter().find(|of| of.kernel == artifact.entry());
        // Edited text may lack the entry point; the launch says so.
        if resources.is_none() && matches!(text, CudaText::Generated) {
            return Err(unreported_resources(nvrtc, artifact));
        }
        Ok(Built {
            resources,
            ptx: compiled.ptx,
            cubin: compiled.cubin,
            warnings,
            notes,
            origin: Origin::Nvrtc { version: nvrtc.version(), path: nvrtc.path().to_path_buf() },
            cuda: request.source.to_string(),
            edited,
        })
    }

    fn build_from_fixture(
        &self,
        artifact: &Artifact,
        request: &Request<'_>,
        edited: Option<LineMap>,
        error: CudaError,
    ) -> Result<Built, Failure> {
        let fixtures = self.fixtures.as_ref();
        let found = fixtures.map_or(Ok(None), |fixtures| fixtures.find(artifact, request)).map_err(|why| {
            let finding = Diagnostic::error("R0601", "the committed PTX for this kernel cannot be read").note(why);
            Failure::new(FailureKind::Unsupported, finding)
        })?;
        let Some(Fixture { ptx, resources, path }) = found else {
            let help = match error {
                CudaError::NvrtcDisabled => "unset TILEWRIGHT_NVRTC",
                _ => "run `cargo xtask setup`, or set TILEWRIGHT_NVRTC_DIR or CUDA_HOME",
            };
            let finding = Diagnostic::error("R0601", "there is no NVRTC to compile this kernel")
                .note(error.to_string())
                .help(help);
            return Err(Failure::new(FailureKind::Unsupported, finding));
        };
        Ok(Built {
            ptx,
            cubin: Vec::new(),
            resources,
            warnings: Vec::new(),
            notes: vec![format!(
                "no NVRTC; using committed PTX {}",
                path.file_name().unwrap_or_default().to_string_lossy()
            )],
            origin: Origin::Fixture(path),
            cuda: request.source.to_string(),
            edited,
        })
    }
}

/// The error for an NVRTC whose report about the kernel cannot be read: spills would go unnoticed.
fn unreported_resources(nvrtc: &Nvrtc, artifact: &Artifact) -> Failure {
    let (major, minor) = nvrtc.version();
    let message = format!("NVRTC {major}.{minor} does not say how many registers `{}` takes", artifact.entry());
    let finding = Diagnostic::error("R0601", message)
        .note(format!("it is {}", nvrtc.path().display()))
        .help("use the version that `cargo xtask setup` fetches");
    Failure::new(FailureKind::Unsupported, finding)
}

/// The request for an artifact's own text; fixtures are keyed by it.
pub(crate) fn request<'a>(name: &'a str, source: &'a str, artifact: &Artifact) -> Request<'a> {
    Request { source, name, target: artifact.target().name(), options: &[] }
}

impl FixtureFolder {
    /// The path of the fixture for the text that `built` was compiled from, existing or not, and its expected contents.
    pub fn file_for(&self, artifact: &Artifact, built: &Built) -> (PathBuf, String) {
        let name = format!("/tilewright/{}.cu", artifact.name());
        let request = request(&name, &built.cuda, artifact);
        (self.path(artifact.name(), &request), crate::fixture_text(&request, &built.ptx, built.resources.as_ref()))
    }
}
