//! Products of a warpgroup as C++: a function around each instruction, in front of the kernel, and its calls.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_ir::thread::{LeftMatrix, Memory, Program, SharedMatrix, WarpgroupMma, WgmmaInst};
use tilewright_layout::DType;
use tilewright_layout::descriptor::ADDRESS_UNIT;

use crate::dtype::c_type;
use crate::index::{Level, c_index, c_operand};
use crate::registers::pointer;
use crate::statements::MOST_COLUMNS;
use crate::uses::Uses;

/// The function that makes a descriptor.
const DESCRIPTOR: &str = "shared_matrix";

/// An instruction as one function: its types, its columns, and whether the left factor is in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WgmmaFunction {
    inst: WgmmaInst,
    n: i64,
    left_in_registers: bool,
}

impl WgmmaFunction {
    pub(crate) fn of(product: &WarpgroupMma) -> WgmmaFunction {
        let left_in_registers = product.left_registers().is_some();
        WgmmaFunction { inst: product.inst, n: product.n, left_in_registers }
    }

    /// `wgmma_m64n128k16_f32_bf16`
    fn name(self) -> String {
        let info = self.inst.info();
        let sum = if info.sum == DType::I32 { "s32" } else { info.sum.name() };
        let left = if self.left_in_registers { "_from_registers" } else { "" };
        format!("wgmma_m64n{}k{}_{sum}_{}{left}", self.n, info.k, info.element)
    }

    /// The factors that may be transposed: A and B, B alone, or none.
    fn transposes(self) -> &'static [&'static str] {
        match (self.inst.info().may_be_transposed(), self.left_in_registers) {
            (true, false) => &["kTransposeA", "kTransposeB"],
            (true, true) => &["kTransposeB"],
            (false, _) => &[],
        }
    }
}

/// The names of the functions that the program calls.
pub(crate) fn names(uses: &Uses) -> Vec<String> {
    let descriptor = has_descriptors(uses).then(|| DESCRIPTOR.to_string());
    uses.warpgroup_products.iter().map(|function| function.name()).chain(descriptor).collect()
}

/// Whether the program makes descriptors.
fn has_descriptors(uses: &Uses) -> bool {
    !uses.warpgroup_products.is_empty() || !uses.tensor_products.is_empty()
}

/// The lines that define those functions.
pub(crate) fn functions(uses: &Uses) -> Vec<String> {
    if !has_descriptors(uses) {
        return Vec::new();
    }
    let head = format!(
        "template <unsigned long long kForm> __device__ __forceinline__ unsigned long long {DESCRIPTOR}(const void* begin) {{"
    );
    let mut lines = vec![
        "// A tile in shared memory as the matrix unit reads it: its distances, its swizzle, and where it begins, in units of 16 bytes."
            .to_string(),
        head,
        "  return kForm | (static_cast<unsigned int>(__cvta_generic_to_shared(begin)) & 0x3ffff) >> 4;".to_string(),
        "}".to_string(),
        String::new(),
    ];
    lines.extend(uses.warpgroup_products.iter().flat_map(|function| definition(*function)));
    lines
}

/// `wgmma_m64n64k16_f32_bf16<0, 1>(sums, shared_matrix<0x...>(&left[16]), shared_matrix<0x...>(right), 1)`
pub(crate) fn call(program: &Program, uses: &Uses, product: &WarpgroupMma) -> Result<String, Diagnostic> {
    let function = WgmmaFunction::of(product);
    let WarpgroupMma { sums, a, b, accumulates, .. } = product;
    let matrix = |part: &SharedMatrix| matrix(program, uses, part);
    let left = match a {
        LeftMatrix::Registers(regs) => pointer(program, regs.array, &regs.first),
        LeftMatrix::Shared(part) => matrix(part),
    };
    let transposes = product.shared().map(|part| i64::from(part.is_transposed).to_string());
    let transposes: Vec<String> = transposes.take(function.transposes().len()).collect();
    let template = if transposes.is_empty() { String::new() } else { format!("<{}>", transposes.join(", ")) };
    let sums = pointer(program, sums.array, &sums.first);
    let name = function.name();
    Ok(format!("{}{template}({sums}, {left}, {}, {})", uses.visible(&name), matrix(b), i64::from(*accumulates)))
}

/// `shared_matrix<0x4000004000010000>(&left[stage*8192]) + i*2`: the part of a tile is added to the descriptor of the tile, which
/// takes one instruction.
pub(crate) fn matrix(program: &Program, uses: &Uses, part: &SharedMatrix) -> String {
    let Memory { name, dtype, .. } = &program.memories[part.memory];
    let at = normalize(&part.first);
    let begin = if at.as_const() == Some(0) { name.clone() } else { format!("&{name}[{}]", c_index(&at)) };
    let whole = format!("{}<{:#x}>({begin})", uses.visible(DESCRIPTOR), part.descriptor);
    let offset = normalize(&(normalize(&(&part.offset * dtype.bytes())) / ADDRESS_UNIT));
    if offset.as_const() == Some(0) {
        return whole;
    }
    let (offset, level) = c_operand(&offset);
    if level < Level::Sum { format!("{whole} + ({offset})") } else { format!("{whole} + {offset}") }
}

/// The lines that define a function, followed by an empty line.
fn definition(function: WgmmaFunction) -> Vec<String> {
    let info = function.inst.info();
    let in_word = 4 / info.sum.bytes();
    let (sums, letter) = (function.n / 2 / in_word, if info.sum == DType::F32 { 'f' } else { 'r' });
    let lefts = if function.left_in_registers { 4 } else { 1 };
    let number = |at: i64| format!("%{at}");
    let list = |numbers: std::ops::Range<i64>| numbers.map(number).collect::<Vec<_>>().join(", ");
    let left = if function.left_in_registers { format!("{{{}}}", list(sums..sums + 4)) } else { number(sums) };
    let (right, scale) = (sums + lefts, sums + lefts + 1);
    // Neither factor of floats is negated.
    let signs = if info.sum == DType::I32 { "" } else { ", 1, 1" };
    let transposes: Vec<String> =
        (0..function.transposes().len() as i64).map(|at| format!(", %{}", scale + 1 + at)).collect();
    let ptx = format!("wgmma.mma_async.sync.aligned.m64n{}k{}.{}", function.n, info.k, info.types);
    let words =
        |name: &str, c_type: &str| format!("  {c_type}* const {name}_words = reinterpret_cast<{c_type}*>({name});");
    let mut lines = Vec::new();
    if !function.transposes().is_empty() {
        let parameters: Vec<String> = function.transposes().iter().map(|name| format!("int {name}")).collect();
        lines.push(format!("template <{}>", parameters.join(", ")));
    }
    let of_left = match function.left_in_registers {
        true => format!("const {}* a", c_type(info.multiplicand)),
        false => "unsigned long long a".to_string(),
    };
    lines.push(format!(
        "__device__ __forceinline__ void {}({}* d, {of_left}, unsigned long long b, int accumulates) {{",
        function.name(),
        c_type(info.sum)
    ));
    let sum_name = if in_word > 1 { "d_words" } else { "d" };
    lines.extend((in_word > 1).then(|| words("d", "unsigned int")));
    lines.extend(function.left_in_registers.then(|| words("a", "const unsigned int")));
    lines.push("  asm volatile(\"{ .reg .pred accumulates;\\n\"".to_string());
    lines.push(format!("               \"  setp.ne.b32 accumulates, %{scale}, 0;\\n\""));
    lines.push(format!("               \"  {ptx}\\n\""));
    for (at, chunk) in wrapped((0..sums).map(number), 84).into_iter().enumerate() {
        let (begin, is_last) = (if at == 0 { "{" } else { " " }, chunk.ends_with(&number(sums - 1)));
        let end = if is_last { "}," } else { "," };
        lines.push(format!("               \"  {begin}{chunk}{end}\\n\""));
    }
    lines.push(format!("               \"  {left}, %{right}, accumulates{signs}{}; }}\"", transposes.concat()));
    let outputs = wrapped((0..sums).map(|at| format!("\"+{letter}\"({sum_name}[{at}])")), MOST_COLUMNS - 20);
    for (at, chunk) in outputs.iter().enumerate() {
        let (begin, end) = (if at == 0 { ":" } else { " " }, if at + 1 == outputs.len() { "" } else { "," });
        lines.push(format!("               {begin} {chunk}{end}"));
    }
    let of_left: Vec<String> = match function.left_in_registers {
        true => (0..4).map(|at| format!("\"r\"(a_words[{at}])")).collect(),
        false => vec!["\"l\"(a)".to_string()],
    };
    let of_transposes = function.transposes().iter().map(|name| format!("\"n\"({name})"));
    let others = of_left.into_iter().chain(["\"l\"(b)", "\"r\"(accumulates)"].map(str::to_string)).chain(of_transposes);
    lines.push(format!("               : {});", others.collect::<Vec<_>>().join(", ")));
    lines.extend(["}".to_string(), String::new()]);
    lines
}

/// Items in lines of up to so many columns, separated by commas.
pub(crate) fn wrapped(items: impl Iterator<Item = String>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + item.len() + 2 <= columns => {
                line.push_str(", ");
                line.push_str(&item);
            }
            _ => lines.push(item),
        }
    }
    lines
}
