//! Shuffles whose result the next statement combines with something: they are printed inside of its value. All lanes have
//! to execute a shuffle, so this is done only for operations that compute all of their operands.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::Handle;
use tilewright_ir::thread::{Call, Inst, Program, RegArray, Stmt, Value};
use tilewright_ir::tile::ElementOp;
use tilewright_layout::DType;

use crate::uses::Uses;

/// The arrays of one register that only shuffles write, and that only the operation after each of them reads, once.
pub(crate) fn combined_arrays(program: &Program, uses: &Uses) -> BTreeSet<Handle<RegArray>> {
    if !uses.insts.iter().any(is_shuffle) {
        return BTreeSet::new();
    }
    let mut pairs = BTreeMap::new();
    count_pairs(program, &program.body, &mut pairs);
    let is_all = |array: Handle<RegArray>, pairs: usize| {
        let uses = uses.of_array(array);
        uses.reads == pairs && uses.writes == pairs
    };
    pairs.into_iter().filter(|(array, pairs)| is_all(*array, *pairs)).map(|(array, _)| array).collect()
}

fn is_shuffle(inst: &Inst) -> bool {
    matches!(inst, Inst::ShuffleXor | Inst::Shuffle | Inst::ShuffleWithin)
}

/// Counts the shuffles to each array that are followed by an operation that takes its value.
fn count_pairs(program: &Program, body: &[Stmt], pairs: &mut BTreeMap<Handle<RegArray>, usize>) {
    for pair in body.windows(2) {
        if let [Stmt::Inst(call), Stmt::Assign { to, value }] = pair
            && let Some(array) = shuffled(program, call)
            && to.array != array
            && combines(value, array)
        {
            *pairs.entry(array).or_default() += 1;
        }
    }
    body.iter().for_each(|stmt| count_pairs(program, stmt.inner(), pairs));
}

/// Whether a value is a sum, a maximum or a minimum with the register of an array as one operand.
fn combines(value: &Value, array: Handle<RegArray>) -> bool {
    let Value::Op(ElementOp::Add | ElementOp::Max | ElementOp::Min, operands) = value else { return false };
    operands.iter().filter(|operand| matches!(operand, Value::Reg(of, _) if *of == array)).count() == 1
}

/// The array of one register to which a call shuffles values; in C++, the call has the type of the register.
pub(crate) fn shuffled(program: &Program, call: &Call) -> Option<Handle<RegArray>> {
    let to = call.to.as_ref().filter(|_| is_shuffle(&call.inst))?;
    let RegArray { dtype, len, vector, .. } = &program.registers[to.array];
    let is_typed = matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64);
    (*len == 1 && *vector == 1 && is_typed).then_some(to.array)
}

#[cfg(test)]
mod tests {
    use tilewright_expr::Expr;
    use tilewright_ir::Target;
    use tilewright_ir::thread::Regs;

    use super::*;

    /// Whether the register of a shuffle is printed inside of the value that `build` makes of it and another register.
    fn is_combined(build: impl Fn(Value, Value) -> Value) -> bool {
        let mut program = Program::new("k", Target::Sm100a, 32);
        let [own, other] = ["own", "other"].map(|name| {
            program.registers.push(RegArray { name: name.to_string(), dtype: DType::F32, len: 1, vector: 1 })
        });
        let regs = |array| Regs { array, first: Expr::constant(0), count: 1, step: 1 };
        let call = Call {
            to: Some(regs(other)),
            from: vec![regs(own)],
            arguments: vec![Expr::constant(1)],
            ..Call::plain(Inst::ShuffleXor)
        };
        let value = build(Value::reg(own, 0), Value::reg(other, 0));
        program.body = vec![call.into(), Stmt::Assign { to: regs(own), value }];
        combined_arrays(&program, &Uses::of(&program)).contains(&other)
    }

    #[test]
    fn a_shuffle_is_part_of_the_sum_that_takes_it() {
        assert!(is_combined(|own, other| Value::Op(ElementOp::Add, vec![own, other])));
        assert!(is_combined(|own, other| Value::Op(ElementOp::Max, vec![other, own])));
    }

    #[test]
    fn a_shuffle_that_is_taken_twice_or_never_stands_alone() {
        assert!(!is_combined(|_, other| Value::Op(ElementOp::Add, vec![other.clone(), other])));
        assert!(!is_combined(|own, _| Value::Op(ElementOp::Add, vec![own.clone(), own])));
    }

    /// A lane that does not choose it would not execute it.
    #[test]
    fn a_shuffle_in_a_choice_stands_alone() {
        assert!(!is_combined(|own, other| {
            let less = Value::Op(ElementOp::Lt, vec![own.clone(), own.clone()]);
            Value::Op(ElementOp::Select, vec![less, own, other])
        }));
    }
}
