//! Machine code as text, by NVIDIA's disassembler.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright::cuda::{PINNED_VERSION, SearchOptions};

/// Where the project keeps the pinned disassembler; `None` on a machine without a cache folder.
pub fn pinned() -> Option<PathBuf> {
    Some(SearchOptions::from_env().cache_dir?.join("nvdisasm").join(PINNED_VERSION))
}

/// The disassembler: in the project's cache, in a CUDA toolkit, or on the path.
pub fn find() -> Option<PathBuf> {
    let cached = pinned().map(|dir| dir.join("nvdisasm"));
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
pub fn disassemble(cubin: &[u8]) -> Result<String, String> {
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
pub fn instructions(text: &str, entry: &str) -> usize {
    lines_of(text, entry).filter(|line| is_instruction(line)).count()
}

/// The number of instructions of the longest loop of the kernel that has no other loop inside, without padding; `None` if the
/// kernel has no loop. A loop lasts from a label to the last branch back to it.
pub fn main_loop(text: &str, entry: &str) -> Option<usize> {
    let lines: Vec<&str> = lines_of(text, entry).collect();
    let labels: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, label(line)?))).collect();
    let loops: Vec<Range<usize>> = labels
        .into_iter()
        .filter_map(|(begin, label)| {
            let target = format!("({label})");
            let last = lines.iter().rposition(|line| line.contains(" BRA") && line.contains(&target))?;
            // A branch to itself stands behind the end of a kernel.
            (last > begin + 1).then_some(begin..last + 1)
        })
        .collect();
    let is_innermost = |of: &&Range<usize>| {
        let has_inside = |other: &Range<usize>| *other != **of && of.start <= other.start && other.end <= of.end;
        !loops.iter().any(has_inside)
    };
    let count = |of: &Range<usize>| lines[of.clone()].iter().filter(|line| is_instruction(line)).count();
    loops.iter().filter(is_innermost).map(count).max()
}

/// How many instructions stand between two that contain one of these opcodes, for all that follow each other without a label or a
/// branch between them.
pub fn gaps(text: &str, entry: &str, opcodes: &[&str]) -> Vec<usize> {
    let (mut all, mut since) = (Vec::new(), None);
    for line in lines_of(text, entry) {
        let is_instruction = is_instruction(line);
        since = match since {
            _ if is_instruction && opcodes.iter().any(|opcode| line.contains(opcode)) => {
                all.extend(since);
                Some(0)
            }
            Some(_) if label(line).is_some() || line.contains(" BRA") => None,
            Some(count) if is_instruction => Some(count + 1),
            other => other,
        };
    }
    all
}

/// How many instructions of a kernel contain an opcode.
pub fn count(text: &str, entry: &str, opcode: &str) -> usize {
    lines_of(text, entry).filter(|line| is_instruction(line) && line.contains(opcode)).count()
}

/// The lines of the code of a kernel.
fn lines_of<'a>(text: &'a str, entry: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(".text.{entry}:");
    let section = text.lines().skip_while(move |line| line.trim() != begin).skip(1);
    section.take_while(|line| !line.trim_start().starts_with(".section"))
}

fn is_instruction(line: &str) -> bool {
    let is_padding = [" NOP ", " @!PT ", " @!UPT "].iter().any(|part| line.contains(part));
    line.trim_start().starts_with("/*") && !is_padding
}

/// The label that stands alone in a line: `.L_x_1:`.
fn label(line: &str) -> Option<&str> {
    line.trim().strip_suffix(':').filter(|label| label.starts_with(".L"))
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
        assert_eq!(main_loop(text, "b"), None);
    }

    #[test]
    fn gaps_end_at_labels_and_branches() {
        let text = "\t.section .text.k\n.text.k:\n  /*0000*/  HGMMA R0 ;\n  /*0010*/  R2UR UR4, R0 ;\n\
                    \x20 /*0020*/  HGMMA R0 ;\n  /*0030*/  HGMMA R0 ;\n.L_x_0:\n  /*0040*/  HGMMA R0 ;\n\
                    \x20 /*0050*/  @P0 BRA `(.L_x_0) ;\n  /*0060*/  HGMMA R0 ;\n";
        assert_eq!(gaps(text, "k", &["HGMMA"]), [1, 0]);
        assert_eq!((count(text, "k", "HGMMA"), count(text, "k", "R2UR")), (5, 1));
    }

    #[test]
    fn the_longest_innermost_loop_counts() {
        let text = "\t.section .text.k\n.text.k:\n  /*0000*/  S2R R0, SR_TID.X ;\n.L_x_0:\n  /*0010*/  IADD3 R1 ;\n\
                    .L_x_1:\n  /*0020*/  FADD R2 ;\n  /*0030*/  FADD R3 ;\n  /*0040*/  @P0 BRA `(.L_x_1) ;\n\
                    .L_x_2:\n  /*0050*/  FMUL R2 ;\n  /*0060*/  BRA.U UP0, `(.L_x_2) ;\n\
                    \x20 /*0070*/  @P1 BRA `(.L_x_0) ;\n  /*0080*/  EXIT ;\n\
                    .L_x_3:\n  /*0090*/  BRA `(.L_x_3);\n  /*00a0*/  NOP ;\n";
        assert_eq!(main_loop(text, "k"), Some(3));
    }
}
