//! Asynchronous copies: a function around each instruction, in front of the kernel.

use std::collections::BTreeSet;

use tilewright_ir::thread::{Call, Inst, InstInfo, Stmt};

use crate::uses::Uses;

/// The lines that define the functions that the program calls.
pub(crate) fn functions(called: &BTreeSet<Inst>) -> Vec<String> {
    let of_kinds = used(called).flat_map(|(info, kind)| function(&info, kind));
    of_kinds
        .chain(written(called).flat_map(|info| info.function.iter().chain([&""]).map(|line| line.to_string())))
        .collect()
}

/// The names of those functions.
pub(crate) fn function_names(called: &BTreeSet<Inst>) -> impl Iterator<Item = &'static str> {
    used(called).map(|(info, _)| info).chain(written(called)).map(|info| info.name)
}

/// The called instructions whose rows have their functions.
fn written(called: &BTreeSet<Inst>) -> impl Iterator<Item = InstInfo> {
    called.iter().map(|inst| inst.info()).filter(|info| !info.function.is_empty())
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It starts to copy so many bytes.
    Copy(i64),
    /// It fills as many with zeros.
    Fill(i64),
    /// It closes a group of copies.
    Commit,
    /// It waits for groups.
    Wait,
}

fn used(called: &BTreeSet<Inst>) -> impl Iterator<Item = (InstInfo, Kind)> {
    called.iter().filter_map(|inst| Some((inst.info(), kind(*inst)?)))
}

/// What an instruction does, by the operands in its row; `None` for those that have no function of their own here.
fn kind(inst: Inst) -> Option<Kind> {
    let InstInfo { name, cuda, memory, arguments, function, .. } = inst.info();
    let bytes = memory.first().and_then(|operand| operand.bytes);
    match (memory.len(), bytes) {
        _ if !cuda.starts_with(name) || !function.is_empty() => None,
        (2, Some(bytes)) => Some(Kind::Copy(bytes)),
        (1, Some(bytes)) => Some(Kind::Fill(bytes)),
        _ if arguments == 0 => Some(Kind::Commit),
        _ => Some(Kind::Wait),
    }
}

/// The call, with the name of its function as it can be seen in the kernel.
pub(crate) fn visible(uses: &Uses, inst: Inst, call: String) -> String {
    let InstInfo { name, function, .. } = inst.info();
    match call.strip_prefix(name) {
        Some(rest) if kind(inst).is_some() || !function.is_empty() => format!("{}{rest}", uses.visible(name)),
        _ => call,
    }
}

/// The copy that one of two branches is, if the other fills the same place with zeros: both are one call.
pub(crate) fn filling_copy<'a>(inside: &'a [Stmt], otherwise: &[Stmt]) -> Option<&'a Call> {
    let ([Stmt::Inst(copy)], [Stmt::Inst(fill)]) = (inside, otherwise) else { return None };
    let (Kind::Copy(bytes), Kind::Fill(filled)) = (kind(copy.inst)?, kind(fill.inst)?) else { return None };
    (bytes == filled && copy.memory.first() == fill.memory.first()).then_some(copy)
}

/// The lines that define the function of an instruction, followed by an empty line.
fn function(info: &InstInfo, kind: Kind) -> Vec<String> {
    let InstInfo { name, ptx, .. } = info;
    let address = "\"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(to)))";
    let lines = match kind {
        Kind::Copy(bytes) => vec![
            "// A copy that is not inside of its tensor reads nothing and writes zeros.".to_string(),
            format!("__device__ __forceinline__ void {name}(void* to, const void* from, bool is_inside = true) {{"),
            format!("  asm volatile(\"{ptx} [%0], [%1], {bytes}, %2;\""),
            "               :".to_string(),
            format!(
                "               : {address}, \"l\"(__cvta_generic_to_global(from)), \"r\"(is_inside ? {bytes} : 0)"
            ),
            "               : \"memory\");".to_string(),
        ],
        Kind::Fill(bytes) => {
            let zeros = vec!["%1"; bytes as usize / 4].join(", ");
            let zeros = if bytes == 4 { zeros } else { format!("{{{zeros}}}") };
            vec![
                format!("__device__ __forceinline__ void {name}(void* to) {{"),
                format!("  asm volatile(\"{ptx} [%0], {zeros};\" :: {address}, \"r\"(0) : \"memory\");"),
            ]
        }
        Kind::Commit => vec![
            format!("__device__ __forceinline__ void {name}() {{"),
            format!("  asm volatile(\"{ptx};\" ::: \"memory\");"),
        ],
        Kind::Wait => vec![
            "// Waits until at most kPending of the latest groups have not arrived.".to_string(),
            format!("template <int kPending> __device__ __forceinline__ void {name}() {{"),
            format!("  asm volatile(\"{ptx} %0;\" :: \"n\"(kPending) : \"memory\");"),
        ],
    };
    lines.into_iter().chain(["}", ""].map(str::to_string)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_names_shared_and_global_memory() {
        let expected = r#"// A copy that is not inside of its tensor reads nothing and writes zeros.
__device__ __forceinline__ void cp_async_8(void* to, const void* from, bool is_inside = true) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)), "r"(is_inside ? 8 : 0)
               : "memory");
}
"#;
        assert_eq!(function(&Inst::CopyAsync8.info(), Kind::Copy(8)).join("\n"), expected);
    }

    #[test]
    fn a_row_says_what_its_function_does() {
        let kinds: Vec<Kind> = Inst::ALL.iter().filter_map(|inst| kind(*inst)).collect();
        let of_widths = |kind: fn(i64) -> Kind| [4, 8, 16].map(kind);
        let all = [&of_widths(Kind::Copy)[..], &of_widths(Kind::Fill)[..], &[Kind::Commit, Kind::Wait]].concat();
        assert_eq!(kinds, all);
    }
}
