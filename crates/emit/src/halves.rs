//! Which roundings to halves one instruction can do: those to both halves of a register.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::{Program, RegArray, Regs, Stmt, Value};

use crate::registers::first;

/// The register and the two values of statements that assign to its halves, one after the other, if it moves as a whole
/// elsewhere. `widest` has the bytes of the widest vector that moves through each array.
pub(crate) fn both_halves<'a>(
    program: &Program,
    widest: &BTreeMap<usize, i64>,
    [stmt, next]: [&'a Stmt; 2],
) -> Result<Option<(&'a Regs, [&'a Value; 2])>, Diagnostic> {
    let (Stmt::Assign { to, value: low }, Stmt::Assign { to: other, value: high }) = (stmt, next) else {
        return Ok(None);
    };
    let RegArray { dtype, vector, .. } = program.registers[to.array];
    let moves_whole = widest.get(&to.array.index()).is_some_and(|bytes| *bytes >= 4);
    if to.array != other.array || dtype.bytes() != 2 || vector != 1 || !moves_whole {
        return Ok(None);
    }
    let (low_at, high_at) = (first(to)?, first(other)?);
    let mut reads_low = false;
    high.for_each(&mut |part| {
        reads_low |= matches!(part, Value::Reg(array, at) if (*array, *at) == (to.array, low_at));
    });
    let are_both = low_at % 2 == 0 && high_at == low_at + 1 && !reads_low;
    Ok(are_both.then_some((to, [low, high])))
}
