//! Machine code as text, by NVIDIA's disassembler.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::nvdisasm_dir;

/// The disassembler: in the project's cache, in a CUDA toolkit, or on the path.
pub(crate) fn find() -> Option<PathBuf> {
    let cached = nvdisasm_dir().ok().map(|dir| dir.join("nvdisasm"));
    let toolkits = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(std::env::var_os)
        .map(|home| Path::new(&home).join("bin/nvdisasm"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join("nvdisasm")).collect();
    let usual = std::iter::once(PathBuf::from("/usr/local/cuda/bin/nvdisasm"));
    cached.into_iter().chain(toolkits).chain(on_path).chain(usual).find(|file| file.is_file())
}

/// The machine code of a cubin as text.
pub(crate) fn disassemble(cubin: &[u8]) -> Result<String, String> {
    if cubin.is_empty() {
        return Err("there is no machine code, only committed PTX; machine code needs NVRTC (`cargo xtask doctor` says what is missing)".to_string());
    }
    let tool = find().ok_or("there is no disassembler; run `cargo xtask setup --sass`")?;
    let file = tempfile::Builder::new()
        .suffix(".cubin")
        .tempfile()
        .map_err(|e| format!("cannot write a temporary file: {e}"))?;
    std::fs::write(file.path(), cubin).map_err(|e| format!("cannot write {}: {e}", file.path().display()))?;
    let output =
        Command::new(&tool).arg("-c").arg(file.path()).output().map_err(|e| format!("{}: {e}", tool.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{} failed: {}", tool.display(), String::from_utf8_lossy(&output.stderr).trim()))
}

/// The number of instructions of the kernel `entry` in the text of a cubin, without padding: `NOP` behind its end, and
/// instructions whose predicate is false that ptxas puts between others.
pub(crate) fn instructions(text: &str, entry: &str) -> usize {
    let begin = format!(".text.{entry}:");
    let section = text.lines().skip_while(|line| line.trim() != begin).skip(1);
    let own = section.take_while(|line| !line.trim_start().starts_with(".section"));
    let is_padding = |line: &str| [" NOP ", " @!PT ", " @!UPT "].iter().any(|part| line.contains(part));
    own.filter(|line| line.trim_start().starts_with("/*") && !is_padding(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_one_kernel_are_counted_without_padding() {
        let text = "\t.section .text.a\n.text.a:\n  /*0000*/  EXIT ;\n\t.section .text.b\nb:\n.text.b:\n\
                    .L_x_0:\n  /*0000*/  S2R R0, SR_TID.X ;\n  /*0010*/  EXIT ;\n  /*0020*/  NOP ;\n\
                    \x20 /*0030*/  @!UPT UIADD3 URZ, UPT, UPT, URZ, URZ, URZ ;\n\t.section .x\n";
        assert_eq!(["a", "b", "c"].map(|entry| instructions(text, entry)), [1, 2, 0]);
    }
}
