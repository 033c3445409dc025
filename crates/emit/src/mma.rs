//! Products of a warp as C++: a function around each instruction, in front of the kernel, and its calls.

use tilewright_ir::thread::{MmaInfo, MmaInst, Program, Regs};
use tilewright_layout::DType;
use tilewright_layout::hardware::MmaType;

use crate::dtype::c_type;
use crate::registers::pointer;
use crate::uses::Uses;

/// The lines that define the functions that the program calls.
pub(crate) fn functions(uses: &Uses) -> Vec<String> {
    let mut lines = Vec::new();
    if uses.products.iter().any(rounds) {
        lines.extend(ROUNDING.iter().map(|line| line.to_string()));
    }
    lines.extend(uses.products.iter().flat_map(|inst| function(&inst.info())));
    lines
}

/// The names of those functions.
pub(crate) fn function_names(uses: &Uses) -> impl Iterator<Item = &'static str> {
    let rounding = uses.products.iter().any(rounds).then_some(ROUNDING_NAME);
    uses.products.iter().map(|inst| inst.info().name).chain(rounding)
}

/// `mma_m16n8k16_f32_f16(c, a + 8, b)`
pub(crate) fn call(program: &Program, uses: &Uses, inst: MmaInst, operands: [&Regs; 3]) -> String {
    let place = |regs: &Regs| pointer(program, regs.array, &regs.first);
    format!("{}({})", uses.visible(inst.info().name), operands.map(place).join(", "))
}

/// Whether the multiplicands of an instruction have to be rounded first.
fn rounds(inst: &MmaInst) -> bool {
    inst.info().element == MmaType::Tf32
}

/// The name of the function that [`ROUNDING`] defines.
const ROUNDING_NAME: &str = "to_tf32";

/// A function that rounds to tf32: the instruction itself would drop the low bits of its operands.
const ROUNDING: [&str; 6] = [
    "__device__ __forceinline__ unsigned int to_tf32(float x) {",
    "  unsigned int y;",
    "  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(y) : \"f\"(x));",
    "  return y;",
    "}",
    "",
];

/// An operand as inline assembly takes it.
struct Operand {
    /// The definition of a pointer to whole registers, where the elements are narrower.
    pointer: Option<String>,
    /// The C++ expressions of its registers.
    registers: Vec<String>,
    /// Their constraint letter.
    letter: char,
}

/// An operand called `name`, of which a lane holds `held` elements.
fn operand(name: &str, dtype: DType, held: i64, is_const: bool, is_tf32: bool) -> Operand {
    let letter = match dtype {
        DType::F32 if !is_tf32 => 'f',
        DType::F64 => 'd',
        _ => 'r',
    };
    let in_word = 4 / dtype.bytes();
    if in_word > 1 {
        let qualifier = if is_const { "const " } else { "" };
        let c_type = format!("{qualifier}unsigned int*");
        let pointer = format!("{c_type} const {name}_words = reinterpret_cast<{c_type}>({name});");
        let registers = (0..held / in_word).map(|at| format!("{name}_words[{at}]")).collect();
        return Operand { pointer: Some(pointer), registers, letter };
    }
    let register = |at: i64| if is_tf32 { format!("to_tf32({name}[{at}])") } else { format!("{name}[{at}]") };
    Operand { pointer: None, registers: (0..held).map(register).collect(), letter }
}

/// The lines that define the function of an instruction, followed by an empty line.
fn function(info: &MmaInfo) -> Vec<String> {
    let MmaInfo { name, ptx, multiplicand, sum, element, .. } = *info;
    let [held_c, held_a, held_b] = info.elements_per_lane();
    let is_tf32 = element == MmaType::Tf32;
    let c = operand("c", sum, held_c, false, false);
    let a = operand("a", multiplicand, held_a, true, is_tf32);
    let b = operand("b", multiplicand, held_b, true, is_tf32);
    let mut next = 0usize;
    let mut list = |operand: &Operand| {
        let first = next;
        next += operand.registers.len();
        let numbers: Vec<String> = (first..next).map(|number| format!("%{number}")).collect();
        format!("{{{}}}", numbers.join(", "))
    };
    let lists = [list(&c), list(&a), list(&b), list(&c)].join(", ");
    let bound = |operand: &Operand, mark: &str| -> Vec<String> {
        operand.registers.iter().map(|register| format!("\"{mark}{}\"({register})", operand.letter)).collect()
    };
    let inputs = [bound(&a, ""), bound(&b, ""), bound(&c, "")].concat();
    let (of_sum, of_multiplicand) = (c_type(sum), c_type(multiplicand));
    let head = format!("{of_sum}* c, const {of_multiplicand}* a, const {of_multiplicand}* b");
    let mut lines = vec![format!("__device__ __forceinline__ void {name}({head}) {{")];
    lines.extend([&c, &a, &b].into_iter().filter_map(|operand| Some(format!("  {}", operand.pointer.as_ref()?))));
    lines.push(format!("  asm volatile(\"{ptx} {lists};\""));
    lines.push(format!("               : {}", bound(&c, "=").join(", ")));
    lines.push(format!("               : {});", inputs.join(", ")));
    lines.extend(["}".to_string(), String::new()]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(inst: MmaInst) -> String {
        function(&inst.info()).join("\n")
    }

    #[test]
    fn halves_are_given_as_words() {
        let expected = r#"__device__ __forceinline__ void mma_m16n8k16_f32_f16(float* c, const unsigned short* a, const unsigned short* b) {
  const unsigned int* const a_words = reinterpret_cast<const unsigned int*>(a);
  const unsigned int* const b_words = reinterpret_cast<const unsigned int*>(b);
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "r"(a_words[0]), "r"(a_words[1]), "r"(a_words[2]), "r"(a_words[3]), "r"(b_words[0]), "r"(b_words[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
"#;
        assert_eq!(text(MmaInst::F16K16F32), expected);
    }

    #[test]
    fn sums_of_halves_are_words_and_single_precision_is_rounded() {
        let halves = text(MmaInst::F16K8F16);
        assert!(halves.contains("unsigned int* const c_words = reinterpret_cast<unsigned int*>(c);"), "{halves}");
        assert!(halves.contains(": \"=r\"(c_words[0]), \"=r\"(c_words[1])\n"), "{halves}");
        let single = text(MmaInst::Tf32K4F32);
        assert!(single.contains("{%4, %5}, {%6}, {%7, %8, %9, %10};"), "{single}");
        assert!(
            single.contains(": \"r\"(to_tf32(a[0])), \"r\"(to_tf32(a[1])), \"r\"(to_tf32(b[0])), \"f\"(c[0])"),
            "{single}"
        );
    }

    #[test]
    fn double_precision_has_registers_of_its_own() {
        let double = text(MmaInst::F64K4F64);
        assert!(double.contains("{%0, %1}, {%2}, {%3}, {%4, %5};"), "{double}");
        assert!(double.contains(": \"d\"(a[0]), \"d\"(b[0]), \"d\"(c[0]), \"d\"(c[1]));"), "{double}");
    }
}
