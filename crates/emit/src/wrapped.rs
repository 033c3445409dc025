//! Instructions that CUDA C++ has no function for: a function around each, in front of the kernel, and its calls.

use std::collections::BTreeSet;

use tilewright_ir::thread::{Inst, InstInfo, Program, RegisterOperand, Stmt, for_each_stmt};

/// Whether the emitter writes a function for an instruction.
pub(crate) fn is_wrapped(info: &InstInfo) -> bool {
    info.cuda.is_empty()
}

/// The lines that define the functions that the program calls.
pub(crate) fn functions(program: &Program) -> Vec<String> {
    used(program).into_iter().flat_map(|inst| function(&inst.info())).collect()
}

/// The names of those functions.
pub(crate) fn function_names(program: &Program) -> Vec<&'static str> {
    used(program).iter().map(|inst| inst.info().name).collect()
}

/// `ldmatrix_x4<k*32>(a_part + 0, left, lane*16)`
pub(crate) fn call(program: &Program, info: &InstInfo, offset: &str, operands: &[String]) -> String {
    // A shift would end the list of template arguments.
    let offset = if offset.contains('>') { format!("({offset})") } else { offset.to_string() };
    format!("{}<{offset}>({})", visible(program, info.name), operands.join(", "))
}

/// The name of a function in front of the kernel, also where a name of the kernel hides it.
pub(crate) fn visible(program: &Program, function: &str) -> String {
    let is_hidden = program.registers.iter().any(|(_, array)| array.name == function)
        || program.memories.iter().any(|(_, memory)| memory.name == function);
    format!("{}{function}", if is_hidden { "::" } else { "" })
}

/// The instructions of a program without a function of their own.
fn used(program: &Program) -> BTreeSet<Inst> {
    let mut used = BTreeSet::new();
    for_each_stmt(&program.body, &mut |stmt| {
        if let Stmt::Inst(call) = stmt
            && is_wrapped(&call.inst.info())
        {
            used.insert(call.inst);
        }
    });
    used
}

/// The lines that define the function of an instruction, followed by an empty line. It writes adjacent words and reads
/// shared memory from byte `byte + kOffset` of an array on, so that calls share all but the constant.
fn function(info: &InstInfo) -> Vec<String> {
    let words = match info.result {
        Some(RegisterOperand::Words(words)) => words,
        Some(RegisterOperand::Word | RegisterOperand::WordOrPair | RegisterOperand::Element) | None => 1,
    };
    let numbers: Vec<String> = (0..words).map(|at| format!("%{at}")).collect();
    let results: Vec<String> = (0..words).map(|at| format!("\"=r\"(words[{at}])")).collect();
    vec![
        "template <int kOffset>".to_string(),
        format!("__device__ __forceinline__ void {}(void* to, const void* shared, int byte) {{", info.name),
        "  unsigned int* const words = static_cast<unsigned int*>(to);".to_string(),
        format!("  asm volatile(\"{} {{{}}}, [%{words} + %{}];\"", info.ptx, numbers.join(", "), words + 1),
        format!("               : {}", results.join(", ")),
        "               : \"r\"(static_cast<unsigned int>(__cvta_generic_to_shared(shared)) + byte), \"n\"(kOffset)"
            .to_string(),
        "               : \"memory\");".to_string(),
        "}".to_string(),
        String::new(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_with_a_shift_is_in_parentheses() {
        let program = Program::new("k", tilewright_ir::Target::Sm100a, 32);
        let text = |offset: &str| call(&program, &Inst::LoadMatrixX1.info(), offset, &["r + 0".to_string()]);
        assert_eq!(text("k*32"), "ldmatrix_x1<k*32>(r + 0)");
        assert_eq!(text("k >> 1"), "ldmatrix_x1<(k >> 1)>(r + 0)");
    }

    #[test]
    fn words_are_results_and_the_row_is_an_address_in_shared_memory() {
        let expected = r#"template <int kOffset>
__device__ __forceinline__ void ldmatrix_x2_trans(void* to, const void* shared, int byte) {
  unsigned int* const words = static_cast<unsigned int*>(to);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2 + %3];"
               : "=r"(words[0]), "=r"(words[1])
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(shared)) + byte), "n"(kOffset)
               : "memory");
}
"#;
        assert_eq!(function(&Inst::LoadMatrixTransX2.info()).join("\n"), expected);
    }
}
