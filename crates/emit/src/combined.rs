//! Shuffles whose result the next statement takes: they are printed inside of its value.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Program, RegArray, Resource, Stmt, for_each_stmt};
use tilewright_layout::DType;

/// The arrays of one register that only shuffles write, and that only the statement after each of them reads, once.
pub(crate) fn combined_arrays(program: &Program) -> BTreeSet<usize> {
    let mut uses: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
    for_each_stmt(&program.body, &mut |stmt| {
        let mut count = |of: usize, resource: Resource<'_>| match resource {
            Resource::Registers(regs) => uses.entry(regs.array.index()).or_default()[of] += 1,
            Resource::Memory(_) => {}
        };
        stmt.reads(&mut |resource| count(0, resource));
        stmt.writes(&mut |resource| count(1, resource));
    });
    let mut pairs: BTreeMap<usize, usize> = BTreeMap::new();
    count_pairs(program, &program.body, &mut pairs);
    pairs.into_iter().filter(|(array, pairs)| uses.get(array) == Some(&[*pairs; 2])).map(|(array, _)| array).collect()
}

/// Counts the shuffles to each array that are followed by a statement that reads it once.
fn count_pairs(program: &Program, body: &[Stmt], pairs: &mut BTreeMap<usize, usize>) {
    for pair in body.windows(2) {
        if let [Stmt::Inst(call), taken @ Stmt::Assign { to, .. }] = pair
            && let Some(array) = shuffled(program, call)
            && to.array != array
            && reads_of(taken, array) == 1
        {
            *pairs.entry(array.index()).or_default() += 1;
        }
    }
    body.iter().for_each(|stmt| count_pairs(program, stmt.inner(), pairs));
}

fn reads_of(stmt: &Stmt, array: Handle<RegArray>) -> usize {
    let mut reads = 0;
    stmt.reads(&mut |resource| match resource {
        Resource::Registers(regs) => reads += usize::from(regs.array == array),
        Resource::Memory(_) => {}
    });
    reads
}

/// The array of one register to which a call shuffles values; in C++, the call has the type of the register.
pub(crate) fn shuffled(program: &Program, call: &Call) -> Option<Handle<RegArray>> {
    let to = call.to.as_ref().filter(|_| matches!(call.inst, Inst::ShuffleXor | Inst::Shuffle))?;
    let RegArray { dtype, len, vector, .. } = &program.registers[to.array];
    let is_typed = matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64);
    (*len == 1 && *vector == 1 && is_typed).then_some(to.array)
}
