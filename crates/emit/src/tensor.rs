//! Products with sums in tensor memory, and loads of these, as C++: a function around each instruction, in front of the kernel, and
//! its calls.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_ir::thread::{Accumulates, Program, TensorLoad, TensorMma};
use tilewright_layout::DType;
use tilewright_layout::descriptor::DenseKind;

use crate::dtype::c_type;
use crate::index::c_index;
use crate::registers::{pointer, register};
use crate::statements::MOST_COLUMNS;
use crate::uses::Uses;
use crate::wgmma::{matrix, wrapped};

/// A load as one function: the dtype of the registers, and how many columns it has.
pub(crate) type LoadFunction = (DType, i64);

/// A product as one function: its kind, and whether a pair of CTAs computes it.
pub(crate) type ProductFunction = (DenseKind, bool);

fn mma_name((kind, is_of_pair): ProductFunction) -> String {
    format!("tensor_mma{}_{}", if is_of_pair { "_pair" } else { "" }, kind.name())
}

fn load_name((dtype, columns): LoadFunction) -> String {
    format!("tensor_load_{columns}_{dtype}")
}

/// The names of the functions that the program calls.
pub(crate) fn names(uses: &Uses) -> Vec<String> {
    let products = uses.tensor_products.iter().map(|kind| mma_name(*kind));
    products.chain(uses.tensor_loads.iter().map(|load| load_name(*load))).collect()
}

/// The lines that define those functions.
pub(crate) fn functions(uses: &Uses) -> Vec<String> {
    let products = uses.tensor_products.iter().flat_map(|kind| mma(*kind));
    products.chain(uses.tensor_loads.iter().flat_map(|function| load(*function))).collect()
}

/// An address of tensor memory.
fn address(program: &Program, at: &tilewright_expr::Expr) -> String {
    let base = program.tensor_memory.map_or("0", |tensor| program.registers[tensor.base].name.as_str());
    let at = normalize(at);
    if at.as_const() == Some(0) { base.to_string() } else { format!("{base} + {}", c_index(&at)) }
}

/// `tensor_mma_f16(tensor_base, shared_matrix<0x...>(left), shared_matrix<0x...>(right), 0x8100490, 1)`
pub(crate) fn product_call(program: &Program, uses: &Uses, product: &TensorMma) -> Result<String, Diagnostic> {
    let TensorMma { kind, descriptor, sums, a, b, accumulates, is_of_pair } = product;
    let [a, b] = [a, b].map(|part| matrix(program, uses, part));
    let accumulates = match accumulates {
        Accumulates::Never => "0".to_string(),
        Accumulates::Always => "1".to_string(),
        Accumulates::If(flag) => register(program, flag.array, &flag.first)?,
    };
    let name = mma_name((*kind, *is_of_pair));
    Ok(format!("{}({}, {a}, {b}, {descriptor:#x}, {accumulates})", uses.visible(&name), address(program, sums)))
}

/// `tensor_load_64_f32(part, tensor_base + (warp << 21))`
pub(crate) fn load_call(program: &Program, uses: &Uses, load: &TensorLoad) -> String {
    let TensorLoad { to, from } = load;
    let name = load_name((program.registers[to.array].dtype, to.count));
    let registers = pointer(program, to.array, &to.first);
    format!("{}({registers}, {})", uses.visible(&name), address(program, from))
}

fn mma((kind, is_of_pair): ProductFunction) -> Vec<String> {
    let ctas = if is_of_pair { 2 } else { 1 };
    let lines = [
        "// Adds a product of this shape to sums in tensor memory, or replaces these, when the tensor core gets to it.",
        &format!(
            "__device__ __forceinline__ void {}(unsigned int sums, unsigned long long a, unsigned long long b, unsigned int shape, int accumulates) {{",
            mma_name((kind, is_of_pair))
        ),
        "  asm volatile(\"{ .reg .pred accumulates;\\n\"",
        "               \"  setp.ne.b32 accumulates, %4, 0;\\n\"",
        &format!(
            "               \"  tcgen05.mma.cta_group::{ctas}.kind::{} [%0], %1, %2, %3, accumulates; }}\"",
            kind.name()
        ),
        "               :: \"r\"(sums), \"l\"(a), \"l\"(b), \"r\"(shape), \"r\"(accumulates) : \"memory\");",
        "}",
        "",
    ];
    lines.map(str::to_string).to_vec()
}

/// The columns of instructions that load so many: powers of 2.
fn parts(columns: i64) -> Vec<(i64, i64)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < columns {
        let count = 1 << (columns - at).ilog2();
        all.push((at, count));
        at += count;
    }
    all
}

fn load((dtype, columns): LoadFunction) -> Vec<String> {
    let letter = if dtype == DType::F32 { 'f' } else { 'r' };
    let mut lines = vec![
        format!("// Loads {columns} columns of the lane of this thread."),
        format!(
            "__device__ __forceinline__ void {}({}* to, unsigned int from) {{",
            load_name((dtype, columns)),
            c_type(dtype)
        ),
    ];
    let parts = parts(columns);
    for (place, (at, count)) in parts.iter().enumerate() {
        let head = if place == 0 { "  asm volatile(" } else { "               " };
        lines.push(format!("{head}\"tcgen05.ld.sync.aligned.32x32b.x{count}.b32\\n\""));
        let chunks = wrapped((*at..at + count).map(|at| format!("%{at}")), 84);
        let last = chunks.len() - 1;
        for (at, chunk) in chunks.into_iter().enumerate() {
            let (begin, end) = (
                if at == 0 { "{" } else { " " },
                if at == last { format!("}}, [%{}];", columns + place as i64) } else { ",".to_string() },
            );
            lines.push(format!("               \"  {begin}{chunk}{end}\\n\""));
        }
    }
    lines.push("               \"tcgen05.wait::ld.sync.aligned;\"".to_string());
    let outputs = wrapped((0..columns).map(|at| format!("\"={letter}\"(to[{at}])")), MOST_COLUMNS - 20);
    for (at, chunk) in outputs.iter().enumerate() {
        let (begin, end) = (if at == 0 { ":" } else { " " }, if at + 1 == outputs.len() { "" } else { "," });
        lines.push(format!("               {begin} {chunk}{end}"));
    }
    let addresses: Vec<String> = parts
        .iter()
        .map(|(at, _)| if *at == 0 { "\"r\"(from)".to_string() } else { format!("\"r\"(from + {at})") })
        .collect();
    lines.push(format!("               : {} : \"memory\");", addresses.join(", ")));
    lines.extend(["}".to_string(), String::new()]);
    lines
}
