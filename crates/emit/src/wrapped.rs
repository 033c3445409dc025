//! Instructions that CUDA C++ has no function for: a function around each, in front of the kernel, and its calls.

use tilewright_ir::thread::{Inst, InstInfo, RegisterOperand};

use crate::uses::Uses;

/// Whether the emitter writes a function for an instruction.
pub(crate) fn is_wrapped(info: &InstInfo) -> bool {
    info.cuda.is_empty()
}

/// The lines that define the functions that the program calls.
pub(crate) fn functions(uses: &Uses) -> Vec<String> {
    used(uses).flat_map(|inst| function(&inst.info())).collect()
}

/// The names of those functions.
pub(crate) fn function_names(uses: &Uses) -> impl Iterator<Item = &'static str> {
    used(uses).map(|inst| inst.info().name)
}

/// `ldmatrix_x4<k*32>(a_part, left, lane*16)`
pub(crate) fn call(uses: &Uses, info: &InstInfo, offset: &str, operands: &[String]) -> String {
    // A shift would end the list of template arguments.
    let offset = if offset.contains('>') { format!("({offset})") } else { offset.to_string() };
    format!("{}<{offset}>({})", uses.visible(info.name), operands.join(", "))
}

/// The instructions of a program without a function of their own.
fn used<'a>(uses: &'a Uses<'_>) -> impl Iterator<Item = &'a Inst> {
    uses.insts.iter().filter(|inst| is_wrapped(&inst.info()))
}

/// The lines that define the function of an instruction, followed by an empty line. It loads adjacent words from shared
/// memory, or stores them there, from byte `byte + kOffset` of an array on, so that calls share all but the constant.
fn function(info: &InstInfo) -> Vec<String> {
    let words = |operand: &RegisterOperand| match operand {
        RegisterOperand::Words(words) => *words,
        RegisterOperand::Word | RegisterOperand::WordOrPair | RegisterOperand::Element => 1,
    };
    let list = |count: i64, text: &dyn Fn(i64) -> String| (0..count).map(text).collect::<Vec<_>>().join(", ");
    let address = "\"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(shared)) + byte), \"n\"(kOffset)";
    let name = info.name;
    let body = match info.result.as_ref().map(words) {
        Some(count) => {
            let (numbers, results) =
                (list(count, &|at| format!("%{at}")), list(count, &|at| format!("\"=r\"(words[{at}])")));
            vec![
                format!(
                    "template <int kOffset> __device__ __forceinline__ void {name}(void* to, const void* shared, int byte) {{"
                ),
                "  unsigned int* const words = static_cast<unsigned int*>(to);".to_string(),
                format!("  asm volatile(\"{} {{{numbers}}}, [%{count} + %{}];\"", info.ptx, count + 1),
                format!("               : {results}"),
                format!("               : {address}"),
            ]
        }
        None => {
            let count = info.registers.first().map_or(0, words);
            let (numbers, sources) =
                (list(count, &|at| format!("%{}", at + 2)), list(count, &|at| format!("\"r\"(words[{at}])")));
            vec![
                format!(
                    "template <int kOffset> __device__ __forceinline__ void {name}(const void* from, void* shared, int byte) {{"
                ),
                "  const unsigned int* const words = static_cast<const unsigned int*>(from);".to_string(),
                format!("  asm volatile(\"{} [%0 + %1], {{{numbers}}};\"", info.ptx),
                "               :".to_string(),
                format!("               : {address}, {sources}"),
            ]
        }
    };
    let ends = ["               : \"memory\");", "}", ""].map(str::to_string);
    body.into_iter().chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use tilewright_ir::thread::Program;

    use super::*;

    #[test]
    fn an_offset_with_a_shift_is_in_parentheses() {
        let program = Program::new("k", tilewright_ir::Target::Sm100a, 32);
        let text = |offset: &str| call(&Uses::of(&program), &Inst::LoadMatrixX1.info(), offset, &["r".to_string()]);
        assert_eq!(text("k*32"), "ldmatrix_x1<k*32>(r)");
        assert_eq!(text("k >> 1"), "ldmatrix_x1<(k >> 1)>(r)");
    }

    #[test]
    fn words_are_results_and_the_row_is_an_address_in_shared_memory() {
        let expected = r#"template <int kOffset> __device__ __forceinline__ void ldmatrix_x2_trans(void* to, const void* shared, int byte) {
  unsigned int* const words = static_cast<unsigned int*>(to);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2 + %3];"
               : "=r"(words[0]), "=r"(words[1])
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(shared)) + byte), "n"(kOffset)
               : "memory");
}
"#;
        assert_eq!(function(&Inst::LoadMatrixTransX2.info()).join("\n"), expected);
    }

    #[test]
    fn words_that_are_stored_are_sources() {
        let expected = r#"template <int kOffset> __device__ __forceinline__ void stmatrix_x2(const void* from, void* shared, int byte) {
  const unsigned int* const words = static_cast<const unsigned int*>(from);
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0 + %1], {%2, %3};"
               :
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(shared)) + byte), "n"(kOffset), "r"(words[0]), "r"(words[1])
               : "memory");
}
"#;
        assert_eq!(function(&Inst::StoreMatrixX2.info()).join("\n"), expected);
    }
}
