//! Products with sums in tensor memory, and loads and stores of these, as C++: a function around each instruction, in front of the kernel, and
//! its calls.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_ir::thread::{Accumulates, COLUMN_BYTES, Program, TensorLeft, TensorMma, TensorMove};
use tilewright_layout::DType;
use tilewright_layout::descriptor::DenseKind;

use crate::dtype::c_type;
use crate::index::c_index;
use crate::registers::{pointer, register};
use crate::statements::MOST_COLUMNS;
use crate::uses::Uses;
use crate::wgmma::{matrix, wrapped};

/// A load or a store as one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MoveFunction {
    /// Whether it stores.
    is_store: bool,
    /// Of the registers, those of columns if elements are narrower.
    dtype: DType,
    columns: i64,
}

impl MoveFunction {
    pub(crate) fn of(program: &Program, moved: &TensorMove) -> MoveFunction {
        let of_elements = program.registers[moved.registers.array].dtype;
        let dtype = if of_elements.bytes() == COLUMN_BYTES { of_elements } else { DType::U32 };
        MoveFunction { is_store: moved.is_store, dtype, columns: moved.columns(of_elements.bytes()) }
    }

    fn name(self) -> String {
        let MoveFunction { is_store, dtype, columns } = self;
        format!("tensor_{}_{columns}_{dtype}", if is_store { "store" } else { "load" })
    }

    /// The lines that define it.
    fn lines(self) -> Vec<String> {
        let MoveFunction { is_store, dtype, columns } = self;
        let (what, parameters) = match is_store {
            false => ("Loads", format!("{}* to, unsigned int from", c_type(dtype))),
            true => ("Stores", format!("unsigned int to, const {}* from", c_type(dtype))),
        };
        let mut lines = vec![
            format!("// {what} {columns} columns of the lane of this thread."),
            format!("__device__ __forceinline__ void {}({parameters}) {{", self.name()),
        ];
        for (place, part) in parts(columns).into_iter().enumerate() {
            let head = if place == 0 { "  asm volatile(" } else { "               " };
            let [first, rest @ ..] = &self.instruction(place as i64, part)[..] else { continue };
            lines.push(format!("{head}\"{first}\\n\""));
            lines.extend(rest.iter().map(|line| format!("               \"  {line}\\n\"")));
        }
        lines.push(format!("               \"tcgen05.wait::{}.sync.aligned;\"", self.inst()));
        lines.extend(self.operands());
        lines.extend(["}".to_string(), String::new()]);
        lines
    }

    fn inst(self) -> &'static str {
        if self.is_store { "st" } else { "ld" }
    }

    /// The instruction that moves a part of the columns. The registers of a load come before all addresses, and those of a store behind.
    fn instruction(self, place: i64, (at, count): (i64, i64)) -> Vec<String> {
        let addresses = parts(self.columns).len() as i64;
        let (first_register, first_address) = if self.is_store { (addresses, 0) } else { (0, self.columns) };
        let address = format!("[%{}]", first_address + place);
        let mut lines = wrapped((at..at + count).map(|at| format!("%{}", first_register + at)), 84);
        let last = lines.len() - 1;
        for (at, line) in lines.iter_mut().enumerate() {
            let begin = match (at, self.is_store) {
                (0, false) => "{".to_string(),
                (0, true) => format!("{address}, {{"),
                _ => " ".to_string(),
            };
            let end = match (at == last, self.is_store) {
                (false, _) => ",".to_string(),
                (true, false) => format!("}}, {address};"),
                (true, true) => "};".to_string(),
            };
            *line = format!("{begin}{line}{end}");
        }
        lines.insert(0, format!("tcgen05.{}.sync.aligned.32x32b.x{count}.b32", self.inst()));
        lines
    }

    /// The lines with its operands.
    fn operands(self) -> Vec<String> {
        let letter = if self.dtype == DType::F32 { 'f' } else { 'r' };
        let registers = |constraint: &str, name: &str| {
            let all = (0..self.columns).map(|at| format!("\"{constraint}{letter}\"({name}[{at}])"));
            wrapped(all, MOST_COLUMNS - 20)
        };
        let addresses = |name: &str| {
            let of = |at: i64| if at == 0 { format!("\"r\"({name})") } else { format!("\"r\"({name} + {at})") };
            parts(self.columns).iter().map(|(at, _)| of(*at)).collect::<Vec<String>>().join(", ")
        };
        let (outputs, inputs) = match self.is_store {
            false => (registers("=", "to"), vec![addresses("from")]),
            true => (Vec::new(), [vec![addresses("to")], registers("", "from")].concat()),
        };
        let mut lines = [constraints(&outputs), constraints(&inputs)].concat();
        lines.last_mut().into_iter().for_each(|last| last.push_str(" : \"memory\");"));
        lines
    }
}

/// The lines with a list of operands of an assembly statement.
fn constraints(chunks: &[String]) -> Vec<String> {
    let line = |(at, chunk): (usize, &String)| {
        let (begin, end) = (if at == 0 { ":" } else { " " }, if at + 1 == chunks.len() { "" } else { "," });
        format!("               {begin} {chunk}{end}")
    };
    match chunks.is_empty() {
        true => vec!["               :".to_string()],
        false => chunks.iter().enumerate().map(line).collect(),
    }
}

/// A product as one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProductFunction {
    kind: DenseKind,
    /// Whether a pair of CTAs computes it.
    is_of_pair: bool,
    /// Whether the left factor is in tensor memory.
    is_left_in_tensor: bool,
}

impl ProductFunction {
    pub(crate) fn of(product: &TensorMma) -> ProductFunction {
        let is_left_in_tensor = matches!(product.a, TensorLeft::Tensor(_));
        ProductFunction { kind: product.kind, is_of_pair: product.is_of_pair, is_left_in_tensor }
    }

    fn name(self) -> String {
        let pair = if self.is_of_pair { "_pair" } else { "" };
        let left = if self.is_left_in_tensor { "_left" } else { "" };
        format!("tensor_mma{left}{pair}_{}", self.kind.name())
    }

    /// The lines that define it.
    fn lines(self) -> Vec<String> {
        let ctas = if self.is_of_pair { 2 } else { 1 };
        let (a, constraint, left) = match self.is_left_in_tensor {
            false => ("unsigned long long", 'l', "%1"),
            true => ("unsigned int", 'r', "[%1]"),
        };
        let what = match self.is_left_in_tensor {
            false => {
                "// Adds a product of this shape to sums in tensor memory, or replaces these, when the tensor core gets to it."
            }
            true => "// The same for a left factor in tensor memory: adds a product to sums, or replaces these.",
        };
        let lines = [
            what,
            &format!(
                "__device__ __forceinline__ void {}(unsigned int sums, {a} a, unsigned long long b, unsigned int shape, int accumulates) {{",
                self.name()
            ),
            "  asm volatile(\"{ .reg .pred accumulates;\\n\"",
            "               \"  setp.ne.b32 accumulates, %4, 0;\\n\"",
            &format!(
                "               \"  tcgen05.mma.cta_group::{ctas}.kind::{} [%0], {left}, %2, %3, accumulates; }}\"",
                self.kind.name()
            ),
            &format!(
                "               :: \"r\"(sums), \"{constraint}\"(a), \"l\"(b), \"r\"(shape), \"r\"(accumulates) : \"memory\");"
            ),
            "}",
            "",
        ];
        lines.map(str::to_string).to_vec()
    }
}

/// The names of the functions that the program calls.
pub(crate) fn names(uses: &Uses) -> Vec<String> {
    let products = uses.tensor_products.iter().map(|function| function.name());
    products.chain(uses.tensor_moves.iter().map(|function| function.name())).collect()
}

/// The lines that define those functions.
pub(crate) fn functions(uses: &Uses) -> Vec<String> {
    let products = uses.tensor_products.iter().flat_map(|function| function.lines());
    products.chain(uses.tensor_moves.iter().flat_map(|function| function.lines())).collect()
}

/// An address of tensor memory.
fn address(program: &Program, at: &tilewright_expr::Expr) -> String {
    let base = program.tensor_memory.map_or("0", |tensor| program.registers[tensor.base].name.as_str());
    let at = normalize(at);
    if at.as_const() == Some(0) { base.to_string() } else { format!("{base} + {}", c_index(&at)) }
}

/// `tensor_mma_f16(tensor_base, shared_matrix<0x...>(left), shared_matrix<0x...>(right), 0x8100490, 1)`
pub(crate) fn product_call(program: &Program, uses: &Uses, product: &TensorMma) -> Result<String, Diagnostic> {
    let TensorMma { descriptor, sums, a, b, accumulates, .. } = product;
    let a = match a {
        TensorLeft::Shared(a) => matrix(program, uses, a),
        TensorLeft::Tensor(a) => address(program, a),
    };
    let b = matrix(program, uses, b);
    let accumulates = match accumulates {
        Accumulates::Never => "0".to_string(),
        Accumulates::Always => "1".to_string(),
        Accumulates::If(flag) => register(program, flag.array, &flag.first)?,
    };
    let name = ProductFunction::of(product).name();
    Ok(format!("{}({}, {a}, {b}, {descriptor:#x}, {accumulates})", uses.visible(&name), address(program, sums)))
}

/// `tensor_load_64_f32(part, tensor_base + (warp << 21))`, `tensor_store_64_f32(tensor_base + (warp << 21), part)`
pub(crate) fn move_call(program: &Program, uses: &Uses, moved: &TensorMove) -> String {
    let TensorMove { registers, address: at, is_store } = moved;
    let function = MoveFunction::of(program, moved);
    let mut begin = pointer(program, registers.array, &registers.first);
    if program.registers[registers.array].dtype.bytes() < COLUMN_BYTES {
        let is_const = if *is_store { "const " } else { "" };
        begin = format!("reinterpret_cast<{is_const}{}*>({begin})", c_type(function.dtype));
    }
    let mut operands = [begin, address(program, at)];
    if *is_store {
        operands.reverse();
    }
    format!("{}({})", uses.visible(&function.name()), operands.join(", "))
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
