//! Registers as C++: elements of arrays, and parts of vectors.

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Program, RegArray};

use crate::defect::unprintable;
use crate::index::c_index;

/// A pointer to the register of an array at an index: `sums + i*4`.
pub(crate) fn pointer(program: &Program, array: Handle<RegArray>, index: &Expr) -> String {
    let array = &program.registers[array];
    match index.as_const() {
        _ if is_single(array) => format!("&{}", array.name),
        Some(0) => array.name.clone(),
        _ => format!("{} + {}", array.name, c_index(index)),
    }
}

/// Whether an array of one register is a plain variable.
pub(crate) fn is_single(array: &RegArray) -> bool {
    array.len == 1 && array.vector == 1
}

/// The declarator of an array of scalars: `sums[4]`, or `sum` for a single register.
pub(crate) fn declarator(array: &RegArray) -> String {
    if is_single(array) { array.name.clone() } else { format!("{}[{}]", array.name, array.len) }
}

/// The parts of a vector.
pub(crate) const PARTS: [&str; 4] = ["x", "y", "z", "w"];

/// One register: an element of an array, or a part of a vector.
pub(crate) fn register(program: &Program, array: Handle<RegArray>, index: &Expr) -> Result<String, Diagnostic> {
    let RegArray { name, vector, len, .. } = &program.registers[array];
    if is_single(&program.registers[array]) {
        return Ok(name.clone());
    }
    if *vector == 1 {
        return Ok(format!("{name}[{}]", c_index(index)));
    }
    let missing = || unprintable(format!("`{name}` has no register {index}"));
    let at = index.as_const().ok_or_else(missing)?;
    let part = usize::try_from(at % vector).ok().and_then(|part| PARTS.get(part)).ok_or_else(missing)?;
    Ok(format!("{}.{part}", vector_name(name, len / vector, at / vector)))
}

/// Vectors are separate variables, not elements of an array: NVRTC splits vectors that are in an array, and does not
/// always join them again, nor always in the same way.
pub(crate) fn vector_name(array: &str, vectors: i64, at: i64) -> String {
    if vectors == 1 { array.to_string() } else { format!("{array}_{at}") }
}

/// The variables of an array of several vectors; none for other arrays.
pub(crate) fn vector_names(array: &RegArray) -> Vec<String> {
    let RegArray { name, len, vector, .. } = array;
    let vectors = len / vector;
    if *vector == 1 || vectors == 1 {
        return Vec::new();
    }
    (0..vectors).map(|at| vector_name(name, vectors, at)).collect()
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Var;
    use tilewright_ir::{Arena, Target};
    use tilewright_layout::DType;

    use super::*;

    #[test]
    fn the_part_of_a_vector_must_be_a_number() {
        let mut registers = Arena::new();
        let array = registers.push(RegArray { name: "a".to_string(), dtype: DType::F32, len: 8, vector: 4 });
        let program = Program { registers, ..Program::new("k", Target::Sm100a, 32) };
        assert_eq!(register(&program, array, &Expr::constant(6)), Ok("a_1.z".to_string()));
        let unknown = register(&program, array, &Expr::var(&Var::new("i", 0, 3))).unwrap_err();
        assert_eq!(unknown.to_string(), "internal error[E0502]: a thread program cannot be written as CUDA");
        assert_eq!(unknown.notes[1], "`a` has no register i");
    }
}
