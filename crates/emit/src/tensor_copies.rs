//! Copies by the copy engine: the type of tensor maps, the election of the thread that issues copies, and a function for
//! each rank, in front of the kernel.

use tilewright_ir::Handle;
use tilewright_ir::thread::{Program, TensorCopy, TensorMapRecipe};

use crate::index::c_index;
use crate::uses::Uses;

/// The type of a tensor map.
const TENSOR_MAP: &str = "TensorMap";
/// The function that elects a thread of a warp.
const ELECT: &str = "elect_one";
/// The function that copies a box, by the dimensions of its map.
const COPIES: [&str; 5] = ["tensor_copy_1d", "tensor_copy_2d", "tensor_copy_3d", "tensor_copy_4d", "tensor_copy_5d"];

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
    lines.chain(uses.ranks.iter().flat_map(|rank| copy(*rank))).collect()
}

/// The names that those lines define.
pub(crate) fn names(program: &Program, uses: &Uses) -> Vec<&'static str> {
    let map = (!program.maps.is_empty()).then_some(TENSOR_MAP);
    let elect = uses.elects.then_some(ELECT);
    map.into_iter().chain(elect).chain(uses.ranks.iter().map(|rank| name(*rank))).collect()
}

fn name(rank: usize) -> &'static str {
    COPIES[rank.clamp(1, COPIES.len()) - 1]
}

/// The function that copies a box of a tensor with so many dimensions.
fn copy(rank: usize) -> Vec<String> {
    let axes = ["x", "y", "z", "u", "v"];
    let list = |text: &dyn Fn(usize) -> String| (0..rank).map(text).collect::<Vec<_>>().join(", ");
    let address = |name: &str| format!("\"r\"(static_cast<unsigned int>(__cvta_generic_to_shared({name})))");
    let (parameters, numbers) = (list(&|at| format!("int {}", axes[at])), list(&|at| format!("%{}", at + 2)));
    let operands = list(&|at| format!("\"r\"({})", axes[at]));
    [
        format!("__device__ __forceinline__ void {}(void* to, const TensorMap* map, {parameters},", name(rank)),
        "                                               unsigned long long* barrier) {".to_string(),
        format!(
            "  asm volatile(\"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\""
        ),
        format!("               \" [%0], [%1, {{{numbers}}}], [%{}];\"", rank + 2),
        "               :".to_string(),
        format!("               : {}, \"l\"(map), {operands},", address("to")),
        format!("                 {}", address("barrier")),
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

/// `tensor_copy_2d(&left[stage*4096], &a_map, t*32, row, &t_full[stage])`
pub(crate) fn call(program: &Program, uses: &Uses, copy: &TensorCopy) -> String {
    let TensorCopy { map, to, barrier, coordinates, .. } = copy;
    let place = |(memory, index): &(Handle<_>, _)| format!("&{}[{}]", program.memories[*memory].name, c_index(index));
    let coordinates: Vec<String> = coordinates.iter().map(c_index).collect();
    let function = uses.visible(name(coordinates.len()));
    let map = &program.maps[*map].name;
    format!("{function}({}, &{map}, {}, {})", place(to), coordinates.join(", "), place(barrier))
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
        assert_eq!(copy(2).join("\n"), expected);
    }
}
