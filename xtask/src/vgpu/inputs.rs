//! The files that `vgpu` and `vgpu-mutate` read.

use std::collections::BTreeSet;
use std::path::Path;

use tilewright::files;
use tilewright::vgpu::Module;
use tilewright::vgpu::launch_file::LaunchFile;

use crate::exit::Exit;
use crate::terminal::{fail, print_error};

/// A PTX file and its launch file.
pub(crate) struct Inputs {
    /// The text of the PTX file.
    pub(crate) ptx: String,
    pub(crate) module: Module,
    pub(crate) file: LaunchFile,
}

impl Inputs {
    /// Reads both files; the buffers may have `gibibytes` together. The instructions on lines of `traced` are traced.
    pub(crate) fn read(ptx: &Path, launch: &Path, gibibytes: u64, traced: &BTreeSet<u32>) -> Result<Inputs, Exit> {
        let bad = |text: String| {
            print_error(&text);
            Exit::BadInput
        };
        let text = files::read_text(ptx).map_err(|error| fail(Exit::BadInput, &error))?;
        let module = Module::parse_traced(&text, traced).map_err(|error| bad(format!("{}: {error}", ptx.display())))?;
        let json = files::read_text(launch).map_err(|error| fail(Exit::BadInput, &error))?;
        let folder = launch.parent().unwrap_or(Path::new(""));
        let file = LaunchFile::parse(&json, folder, &module, gibibytes.saturating_mul(1 << 30))
            .map_err(|error| bad(format!("{}: {error}", launch.display())))?;
        Ok(Inputs { ptx: text, module, file })
    }
}
