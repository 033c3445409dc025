//! Defects of Tilewright: writes a report to a file, and names the file in the findings.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tilewright::compile::{Options, defect_report};
use tilewright::diag::Diagnostic;

use crate::cache_dir::cache_dir;
use crate::exit::Exit;
use crate::terminal::print_diagnostics;

/// Prints findings about a kernel, and says how the command ends: as `otherwise` says, unless a defect is among them.
/// Then a report is written to a file, with the kernel as `kernel` prints it.
pub(crate) fn fail_on_kernel(
    kernel: impl FnOnce() -> String,
    options: &Options,
    found: Vec<Diagnostic>,
    otherwise: Exit,
) -> Exit {
    let found = with_report(kernel, options, found);
    print_diagnostics(&found);
    Exit::of_findings(&found, otherwise)
}

/// The findings; if a defect is among them, a report is written to a file, with the kernel as `kernel` prints it.
pub(crate) fn with_report(
    kernel: impl FnOnce() -> String,
    options: &Options,
    found: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    with_report_in(&folders(), kernel, options, found)
}

fn with_report_in(
    folders: &[PathBuf],
    kernel: impl FnOnce() -> String,
    options: &Options,
    found: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    match defect_report(kernel, options, &found) {
        Some(text) => naming(found, keep(folders, &text)),
        None => found,
    }
}

/// Where reports are kept: in the cache or, if that cannot be written, in the temporary folder.
fn folders() -> Vec<PathBuf> {
    let temporary = std::env::temp_dir().join("tilewright");
    cache_dir().into_iter().chain([temporary]).map(|folder| folder.join("defects")).collect()
}

/// Writes a report to the first folder that can be written.
fn keep(folders: &[PathBuf], text: &str) -> io::Result<PathBuf> {
    let mut refused = io::Error::other("there is no folder for it");
    for folder in folders {
        match write_report(folder, text) {
            Ok(path) => return Ok(path),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Writes a report whole or not at all. Equal reports have one name.
fn write_report(folder: &Path, text: &str) -> io::Result<PathBuf> {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("{name}.txt"));
    std::fs::create_dir_all(folder)?;
    tilewright::files::write(&path, text.as_bytes())?;
    Ok(path)
}

/// The findings, with the file named in every defect.
fn naming(found: Vec<Diagnostic>, kept: io::Result<PathBuf>) -> Vec<Diagnostic> {
    let told = match kept {
        Ok(path) => format!("the report was written to {}", path.display()),
        Err(why) => format!("the report could not be written to a file: {why}"),
    };
    let named = |finding: Diagnostic| if finding.is_internal() { finding.help(told.clone()) } else { finding };
    found.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_kept_in_the_first_folder_that_takes_it() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("file");
        std::fs::write(&file, "").expect("a file");
        // A file is not a folder.
        let folders = [file.join("defects"), root.path().join("new/defects")];
        let path = keep(&folders, "a report").expect("it is kept");
        assert_eq!(path.parent(), Some(folders[1].as_path()));
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some("a report"));
        assert_eq!(keep(&folders, "a report").ok(), Some(path));
        assert_eq!(std::fs::read_dir(&folders[1]).expect("the folder").count(), 1, "nothing is left aside");
        assert!(keep(&folders[..1], "a report").is_err());
    }

    #[test]
    fn the_report_of_a_defect_has_the_kernel_and_asks_to_be_sent() {
        let root = tempfile::tempdir().expect("a folder");
        let folders = [root.path().join("defects")];
        let options = Options::new(tilewright::prelude::Target::Sm100a);
        let told = |finding| with_report_in(&folders, || "kernel k\n".to_string(), &options, vec![finding]);
        assert_eq!(told(Diagnostic::error("K0218", "wrong"))[0].help.len(), 0);
        assert!(!folders[0].exists());
        let found = told(Diagnostic::internal("V0305", "`x` is used before it is defined"));
        let [asked, named] = &found[0].help[..] else { panic!("{:?}", found[0].help) };
        assert!(asked.starts_with("please report it"), "{asked}");
        let file = named.strip_prefix("the report was written to ").expect("a file");
        let text = std::fs::read_to_string(file).expect("the report");
        assert!(text.contains("`x` is used before it is defined") && text.ends_with("\nkernel k\n"), "{text}");
    }

    #[test]
    fn a_defect_names_the_file_and_a_mistake_does_not() {
        let defect = Diagnostic::internal("V0305", "`x` is used before it is defined");
        let found = naming(vec![defect, Diagnostic::error("K0218", "the dtypes differ")], Ok(PathBuf::from("r.txt")));
        assert_eq!(found[0].help.last().map(String::as_str), Some("the report was written to r.txt"));
        assert_eq!(found[1].help.len(), 0);
    }
}
