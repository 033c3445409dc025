//! Copies by the copy engine: the type of tensor maps, the election of the thread that issues copies, and a function for
//! each kind of copy and rank, in front of the kernel.

use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{EngineWay, Program, Reach, TensorCopy, TensorMapRecipe, TensorPart};
use tilewright_ir::tile::AtomicOp;
use tilewright_layout::DType;

use crate::index::c_index;
use crate::uses::Uses;

/// The type of a tensor map.
const TENSOR_MAP: &str = "TensorMap";
/// The function that elects a thread of a warp.
const ELECT: &str = "elect_one";

/// A function that copies a part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EngineFunction {
    /// To shared memory, from a tensor with so many dimensions.
    Load(usize, Receivers),
    /// From shared memory, to a tensor with so many dimensions.
    Store(usize),
    /// The same, combined with what is there.
    Combine(AtomicOp, usize),
    /// Neighbouring elements, to shared memory.
    LoadRun(Receivers),
    /// Neighbouring elements, from shared memory.
    StoreRun,
    /// The same, combined with elements of this type that are there.
    CombineRun(AtomicOp, DType),
}

/// Which CTAs get what is copied to shared memory, and where its bytes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receivers {
    /// Whether those of a mask do, and not only that of the thread.
    is_group: bool,
    counted: Counted,
}

/// At whose barrier the bytes of a copy count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// At that of the CTA that gets them.
    Own,
    /// At that of the first CTA of its pair, which is the first of the cluster.
    First,
    /// At that of the first CTA of its pair, which is a parameter.
    FirstOfPair,
}

impl Receivers {
    fn of(reach: &Reach) -> Receivers {
        let counted = match reach {
            Reach::Own | Reach::Group { .. } => Counted::Own,
            Reach::OfPair { pair } | Reach::OfPairs { pair, .. } if pair.as_const() == Some(0) => Counted::First,
            Reach::OfPair { .. } | Reach::OfPairs { .. } => Counted::FirstOfPair,
        };
        Receivers { is_group: matches!(reach, Reach::Group { .. } | Reach::OfPairs { .. }), counted }
    }

    /// What the names of functions end in.
    fn suffix(self) -> String {
        self.parts("_multicast", "_of_pair")
    }

    /// What the names of instructions end in.
    fn ptx(self) -> String {
        self.parts(".multicast::cluster", ".cta_group::2")
    }

    /// A part for a group, and another one for bytes that count in a CTA of the pair.
    fn parts(self, of_group: &str, of_pair: &str) -> String {
        let is_of_pair = self.counted != Counted::Own;
        let parts = [(self.is_group, of_group), (is_of_pair, of_pair)];
        parts.into_iter().filter(|(is_part, _)| *is_part).map(|(_, part)| part).collect()
    }

    /// The last parameters of a function.
    fn parameters(self) -> String {
        let first = if self.counted == Counted::FirstOfPair { ", int first" } else { "" };
        let ctas = if self.is_group { ", int ctas" } else { "" };
        format!("unsigned long long* barrier{first}{ctas}")
    }

    /// An instruction with the barrier as operand `at`, which is followed by the first CTA of the pair and the mask, where there are such:
    /// its text, and its last operands.
    fn at_barrier(self, instruction: &str, operands: &str, at: usize) -> [String; 2] {
        let is_given = self.counted == Counted::FirstOfPair;
        let mask = if self.is_group { format!(", %{}", at + 1 + usize::from(is_given)) } else { String::new() };
        let text = match self.counted {
            Counted::Own => format!("\"{instruction}\"\n               \" {operands}, [%{at}]{mask};\""),
            Counted::First | Counted::FirstOfPair => {
                let rank = if is_given { format!("%{}", at + 1) } else { "0".to_string() };
                format!(
                    "\"{{ .reg .b32 first;\\n\"\n               \"  mapa.shared::cluster.u32 first, %{at}, {rank};\\n\"\n               \"                   {instruction}\"\n               \" {operands}, [first]{mask}; }}\""
                )
            }
        };
        let first = if is_given { ", \"r\"(first)" } else { "" };
        let ctas = if self.is_group { ",\n                 \"h\"(static_cast<unsigned short>(ctas))" } else { "" };
        [text, format!("{}{first}{ctas}", address("barrier"))]
    }
}

impl EngineFunction {
    /// The function that a copy calls.
    pub(crate) fn of(program: &Program, copy: &TensorCopy) -> EngineFunction {
        match (&copy.part, &copy.way) {
            (TensorPart::Box { coordinates, .. }, EngineWay::ToShared { reach, .. }) => {
                EngineFunction::Load(coordinates.len(), Receivers::of(reach))
            }
            (TensorPart::Box { coordinates, .. }, EngineWay::ToTensor { combined }) => match combined {
                None => EngineFunction::Store(coordinates.len()),
                Some(by) => EngineFunction::Combine(*by, coordinates.len()),
            },
            (TensorPart::Run { .. }, EngineWay::ToShared { reach, .. }) => {
                EngineFunction::LoadRun(Receivers::of(reach))
            }
            (TensorPart::Run { .. }, EngineWay::ToTensor { combined: None }) => EngineFunction::StoreRun,
            (TensorPart::Run { first }, EngineWay::ToTensor { combined: Some(by) }) => {
                EngineFunction::CombineRun(*by, program.memories[first.0].dtype)
            }
        }
    }

    fn name(self) -> String {
        match self {
            EngineFunction::Load(rank, receivers) => format!("tensor_copy_{rank}d{}", receivers.suffix()),
            EngineFunction::Store(rank) => format!("tensor_store_{rank}d"),
            EngineFunction::Combine(by, rank) => format!("tensor_{}_{rank}d", ptx_operation(by)),
            EngineFunction::LoadRun(receivers) => format!("bulk_copy{}", receivers.suffix()),
            EngineFunction::StoreRun => "bulk_store".to_string(),
            EngineFunction::CombineRun(by, dtype) => format!("bulk_{}_{}", ptx_operation(by), ptx_type(by, dtype)),
        }
    }

    /// The lines that define it, followed by an empty line.
    fn lines(self) -> Vec<String> {
        let name = self.name();
        match self {
            EngineFunction::Load(rank, receivers) => to_shared(&name, rank, receivers),
            EngineFunction::Store(rank) => to_tensor(&name, rank, "cp.async.bulk.tensor", ""),
            EngineFunction::Combine(by, rank) => {
                to_tensor(&name, rank, "cp.reduce.async.bulk.tensor", &format!(".{}", ptx_operation(by)))
            }
            EngineFunction::LoadRun(receivers) => run_to_shared(&name, receivers),
            EngineFunction::StoreRun => run_to_tensor(&name, "cp.async.bulk.global.shared::cta.bulk_group"),
            EngineFunction::CombineRun(by, dtype) => {
                // Sums of halves name what happens to subnormal numbers: they are kept.
                let is_half = matches!(dtype, DType::F16 | DType::BF16);
                let (operation, noftz) = (ptx_operation(by), if is_half { ".noftz" } else { "" });
                let element = ptx_type(by, dtype);
                let ptx = format!("cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{noftz}.{element}");
                run_to_tensor(&name, &ptx)
            }
        }
    }
}

/// How PTX calls an operation: `atomic_add` is `add`.
fn ptx_operation(by: AtomicOp) -> &'static str {
    by.function().trim_start_matches("atomic_")
}

/// How PTX calls elements that the copy engine combines (PTX ISA, `cp.reduce.async.bulk`); sums of `s64` are those of `u64`.
fn ptx_type(by: AtomicOp, dtype: DType) -> String {
    let bits = dtype.bytes() * 8;
    match (by, dtype) {
        (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor, _) => format!("b{bits}"),
        (AtomicOp::Add, DType::I64) => "u64".to_string(),
        (_, DType::BF16) => "bf16".to_string(),
        (_, DType::I32 | DType::I64) => format!("s{bits}"),
        (_, dtype) if dtype.is_float() => format!("f{bits}"),
        _ => format!("u{bits}"),
    }
}

/// The lines that define the type and the functions that the program uses.
pub(crate) fn functions(program: &Program, uses: &Uses) -> Vec<String> {
    let map: &[&str] = match program.maps.is_empty() {
        true => &[],
        false => &["struct alignas(64) TensorMap {", "  unsigned char bytes[128];", "};", ""],
    };
    let elect: &[&str] = match uses.elects {
        true => &[
            "// Whether this thread is the one of its warp that the hardware elects.",
            "__device__ __forceinline__ bool elect_one() {",
            "  int is_elected;",
            "  asm volatile(\"{ .reg .pred elected; elect.sync _|elected, 0xffffffff; selp.b32 %0, 1, 0, elected; }\"",
            "               : \"=r\"(is_elected));",
            "  return is_elected != 0;",
            "}",
            "",
        ],
        false => &[],
    };
    let lines = map.iter().chain(elect).map(|line| line.to_string());
    lines.chain(uses.engine.iter().flat_map(|function| function.lines())).collect()
}

/// The names that those lines define.
pub(crate) fn names(program: &Program, uses: &Uses) -> Vec<String> {
    let map = (!program.maps.is_empty()).then_some(TENSOR_MAP);
    let elect = uses.elects.then_some(ELECT);
    map.into_iter().chain(elect).map(str::to_string).chain(uses.engine.iter().map(|function| function.name())).collect()
}

/// The names of the coordinates.
const AXES: [&str; 5] = ["x", "y", "z", "u", "v"];

/// One text for each dimension, in a list.
fn list(rank: usize, text: &dyn Fn(usize) -> String) -> String {
    (0..rank).map(text).collect::<Vec<_>>().join(", ")
}

fn address(name: &str) -> String {
    format!("\"r\"(static_cast<unsigned int>(__cvta_generic_to_shared({name})))")
}

/// The coordinates as parameters, as numbers of operands from `first` on, and as operands.
fn coordinates(rank: usize, first: usize) -> [String; 3] {
    [
        list(rank, &|at| format!("int {}", AXES[at])),
        list(rank, &|at| format!("%{}", at + first)),
        list(rank, &|at| format!("\"r\"({})", AXES[at])),
    ]
}

/// The function that copies a box of a tensor with so many dimensions to shared memory.
fn to_shared(name: &str, rank: usize, receivers: Receivers) -> Vec<String> {
    let [parameters, numbers, operands] = coordinates(rank, 2);
    let instruction = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{}",
        receivers.ptx()
    );
    let [text, last] = receivers.at_barrier(&instruction, &format!("[%0], [%1, {{{numbers}}}]"), rank + 2);
    let lines = [
        format!("__device__ __forceinline__ void {name}(void* to, const TensorMap* map, {parameters},"),
        format!("                                               {}) {{", receivers.parameters()),
        format!("  asm volatile({text}"),
        "               :".to_string(),
        format!("               : {}, \"l\"(map), {operands},", address("to")),
        format!("                 {last}"),
        "               : \"memory\");".to_string(),
        "}".to_string(),
        String::new(),
    ];
    lines.iter().flat_map(|line| line.split('\n').map(str::to_string).collect::<Vec<_>>()).collect()
}

/// The function for boxes that go to a tensor with so many dimensions: its PTX, and what is done to elements there.
fn to_tensor(name: &str, rank: usize, ptx: &str, combined: &str) -> Vec<String> {
    let [parameters, numbers, operands] = coordinates(rank, 1);
    [
        format!("__device__ __forceinline__ void {name}(const TensorMap* map, {parameters}, const void* from) {{"),
        format!("  asm volatile(\"{ptx}.{rank}d.global.shared::cta{combined}.tile.bulk_group\""),
        format!("               \" [%0, {{{numbers}}}], [%{}];\"", rank + 1),
        "               :".to_string(),
        format!("               : \"l\"(map), {operands}, {}", address("from")),
        "               : \"memory\");".to_string(),
        "}".to_string(),
        String::new(),
    ]
    .into()
}

/// The function that copies neighbouring elements of a tensor to shared memory.
fn run_to_shared(name: &str, receivers: Receivers) -> Vec<String> {
    let (mask, ctas) = match receivers.is_group {
        true => (", %4", ", \"h\"(static_cast<unsigned short>(ctas))"),
        false => ("", ""),
    };
    [
        format!("__device__ __forceinline__ void {name}(void* to, const void* from, int bytes, {}) {{", receivers.parameters()),
        format!("  asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{} [%0], [%1], %2, [%3]{mask};\"", receivers.ptx()),
        "               :".to_string(),
        format!("               : {},", address("to")),
        "                 \"l\"(__cvta_generic_to_global(from)), \"r\"(bytes),".to_string(),
        format!("                 {}{ctas}", address("barrier")),
        "               : \"memory\");".to_string(),
        "}".to_string(),
        String::new(),
    ]
    .into()
}

/// The function for neighbouring elements of shared memory that go to a tensor, around its PTX.
fn run_to_tensor(name: &str, ptx: &str) -> Vec<String> {
    [
        format!("__device__ __forceinline__ void {name}(void* to, const void* from, int bytes) {{"),
        format!("  asm volatile(\"{ptx} [%0], [%1], %2;\""),
        "               :".to_string(),
        format!("               : \"l\"(__cvta_generic_to_global(to)), {}, \"r\"(bytes)", address("from")),
        "               : \"memory\");".to_string(),
        "}".to_string(),
        String::new(),
    ]
    .into()
}

/// The parameter that is a tensor map.
pub(crate) fn parameter(map: &TensorMapRecipe, uses: &Uses) -> String {
    format!("const __grid_constant__ {} {}", uses.visible(TENSOR_MAP), map.name)
}

/// The condition that holds for the elected thread.
pub(crate) fn is_elected(uses: &Uses) -> String {
    format!("{}()", uses.visible(ELECT))
}

/// `tensor_copy_2d(&left[stage*4096], &a_map, t*32, row, &t_full[stage])`, `tensor_store_2d(&c_map, column, row, &tile[0])`, or
/// `bulk_store(&y[t*128], &tile[0], 512)`
pub(crate) fn call(program: &Program, uses: &Uses, copy: &TensorCopy) -> String {
    let TensorCopy { part, shared, bytes, way } = copy;
    let place = |(memory, index): &(Handle<_>, _)| format!("&{}[{}]", program.memories[*memory].name, c_index(index));
    let shared = place(shared);
    let function = uses.visible(&EngineFunction::of(program, copy).name());
    match part {
        TensorPart::Box { map, coordinates } => {
            let map = &program.maps[*map].name;
            let coordinates = list(coordinates.len(), &|at| c_index(&coordinates[at]));
            match way {
                EngineWay::ToShared { full, reach } => {
                    format!("{function}({shared}, &{map}, {coordinates}, {}{})", place(full), ctas(reach))
                }
                EngineWay::ToTensor { .. } => format!("{function}(&{map}, {coordinates}, {shared})"),
            }
        }
        TensorPart::Run { first } => match way {
            EngineWay::ToShared { full, reach } => {
                format!("{function}({shared}, {}, {bytes}, {}{})", place(first), place(full), ctas(reach))
            }
            EngineWay::ToTensor { .. } => format!("{function}({}, {shared}, {bytes})", place(first)),
        },
    }
}

/// The first CTA of the pair and the mask of the CTAs that get what is copied, as last arguments: `, bx / 2 * 2, 0x5 << bx % 2`.
fn ctas(reach: &Reach) -> String {
    let of_pair = |pair: &Expr| if pair.as_const() == Some(0) { String::new() } else { format!(", {}", c_index(pair)) };
    let of_mask = |mask: &u16, first: &Expr| match first.as_const() {
        Some(0) => format!(", {mask:#x}"),
        _ => format!(", {mask:#x} << ({})", c_index(first)),
    };
    match reach {
        Reach::Own => String::new(),
        Reach::Group { mask, first, .. } => of_mask(mask, first),
        Reach::OfPair { pair } => of_pair(pair),
        Reach::OfPairs { mask, first, pair, .. } => of_pair(pair) + &of_mask(mask, first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_dimensions_of_its_map() {
        let expected = r#"__device__ __forceinline__ void tensor_copy_2d(void* to, const TensorMap* map, int x, int y,
                                               unsigned long long* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3}], [%4];"
               :
               : "r"(static_cast<unsigned int>(__cvta_generic_to_shared(to))), "l"(map), "r"(x), "r"(y),
                 "r"(static_cast<unsigned int>(__cvta_generic_to_shared(barrier)))
               : "memory");
}
"#;
        assert_eq!(EngineFunction::Load(2, Receivers::of(&Reach::Own)).lines().join("\n"), expected);
    }

    #[test]
    fn a_store_names_the_map_first() {
        let expected = r#"__device__ __forceinline__ void tensor_store_3d(const TensorMap* map, int x, int y, int z, const void* from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"
               " [%0, {%1, %2, %3}], [%4];"
               :
               : "l"(map), "r"(x), "r"(y), "r"(z), "r"(static_cast<unsigned int>(__cvta_generic_to_shared(from)))
               : "memory");
}
"#;
        assert_eq!(EngineFunction::Store(3).lines().join("\n"), expected);
    }
}
