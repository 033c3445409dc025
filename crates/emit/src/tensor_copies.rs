//! Copies by the copy engine: the type of tensor maps, the election of the thread that issues copies, and a function for
//! each kind of copy and rank, in front of the kernel.

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

/// Which CTAs get what is copied to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Receivers {
    /// That of the thread.
    Own,
    /// Those of a mask.
    Group,
    /// That of the thread; the bytes count in the first CTA of its pair.
    OfPair,
}

impl Receivers {
    fn of(reach: &Reach) -> Receivers {
        match reach {
            Reach::Own => Receivers::Own,
            Reach::Group { .. } => Receivers::Group,
            Reach::OfPair => Receivers::OfPair,
        }
    }

    /// What the names of functions end in.
    fn suffix(self) -> &'static str {
        match self {
            Receivers::Own => "",
            Receivers::Group => "_multicast",
            Receivers::OfPair => "_of_pair",
        }
    }

    /// What the names of instructions end in.
    fn ptx(self) -> &'static str {
        match self {
            Receivers::Own => "",
            Receivers::Group => ".multicast::cluster",
            Receivers::OfPair => ".cta_group::2",
        }
    }

    /// The last parameters of a function.
    fn parameters(self) -> &'static str {
        match self {
            Receivers::Own | Receivers::OfPair => "unsigned long long* barrier",
            Receivers::Group => "unsigned long long* barrier, int ctas",
        }
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

/// An instruction with the barrier as operand `at`, which is the last, or before that of a mask: its text, and its last operands.
fn at_barrier(receivers: Receivers, instruction: &str, operands: &str, at: usize) -> [String; 2] {
    let barrier = address("barrier");
    match receivers {
        Receivers::Own => [format!("\"{instruction}\"\n               \" {operands}, [%{at}];\""), barrier],
        Receivers::Group => [
            format!("\"{instruction}\"\n               \" {operands}, [%{at}], %{};\"", at + 1),
            format!("{barrier},\n                 \"h\"(static_cast<unsigned short>(ctas))"),
        ],
        Receivers::OfPair => [
            format!(
                "\"{{ .reg .b32 first;\\n\"\n               \"  mapa.shared::cluster.u32 first, %{at}, 0;\\n\"\n               \"                   {instruction}\"\n               \" {operands}, [first]; }}\""
            ),
            barrier,
        ],
    }
}

/// The function that copies a box of a tensor with so many dimensions to shared memory.
fn to_shared(name: &str, rank: usize, receivers: Receivers) -> Vec<String> {
    let [parameters, numbers, operands] = coordinates(rank, 2);
    let instruction = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{}",
        receivers.ptx()
    );
    let [text, last] = at_barrier(receivers, &instruction, &format!("[%0], [%1, {{{numbers}}}]"), rank + 2);
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
    let (mask, ctas) = match receivers {
        Receivers::Own | Receivers::OfPair => ("", ""),
        Receivers::Group => (", %4", ", \"h\"(static_cast<unsigned short>(ctas))"),
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

/// The mask of the CTAs that get what is copied, as a last argument: `, 0x5 << bx % 2`.
fn ctas(reach: &Reach) -> String {
    match reach {
        Reach::Own | Reach::OfPair => String::new(),
        Reach::Group { mask, first, .. } if first.as_const() == Some(0) => format!(", {mask:#x}"),
        Reach::Group { mask, first, .. } => format!(", {mask:#x} << ({})", c_index(first)),
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
        assert_eq!(EngineFunction::Load(2, Receivers::Own).lines().join("\n"), expected);
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
