//! Registers as C++: elements of arrays, and parts of vectors.

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::thread::{Program, RegArray, Regs};

use crate::defect::unprintable;

/// The index of the first of these registers.
pub(crate) fn first(regs: &Regs) -> Result<i64, Diagnostic> {
    let unknown = || unprintable(format!("the register index `{}` is not a number", regs.first));
    regs.first.as_const().ok_or_else(unknown)
}

/// The parts of a vector.
pub(crate) const PARTS: [&str; 4] = ["x", "y", "z", "w"];

/// One register: an element of an array, or a part of a vector.
pub(crate) fn register(program: &Program, array: Handle<RegArray>, index: i64) -> Result<String, Diagnostic> {
    let RegArray { name, vector, len, .. } = &program.registers[array];
    if *vector == 1 {
        return Ok(format!("{name}[{index}]"));
    }
    let part = usize::try_from(index % vector).ok().and_then(|part| PARTS.get(part));
    let part = part.ok_or_else(|| unprintable(format!("`{name}` has no register {index}")))?;
    Ok(format!("{}.{part}", vector_name(name, len / vector, index / vector)))
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
    use tilewright_expr::{Expr, Var};
    use tilewright_ir::Arena;
    use tilewright_ir::thread::RegArray;
    use tilewright_layout::DType;

    use super::*;

    #[test]
    fn a_register_index_must_be_a_number() {
        let mut arrays = Arena::new();
        let array = arrays.push(RegArray { name: "a".to_string(), dtype: DType::F32, len: 4, vector: 1 });
        let regs = |first: Expr| Regs { array, first, count: 1, step: 1 };
        assert_eq!(first(&regs(Expr::constant(2))), Ok(2));
        let unknown = first(&regs(Expr::var(&Var::new("i", 0, 3)))).unwrap_err();
        assert_eq!(unknown.to_string(), "internal error[E0502]: a thread program cannot be written as CUDA");
        assert_eq!(unknown.notes[1], "the register index `i` is not a number");
    }
}
