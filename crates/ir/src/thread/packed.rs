//! Pairs of values that instructions compute together: two floats in one register of 64 bits (PTX ISA, "Floating Point
//! Instructions", `add`, `mul` and `fma` with `.f32x2`), two halves in a word (PTX ISA, "Half Precision Floating Point
//! Instructions", `.f16x2` and `.bf16x2`), or two floats that are rounded together, to both halves of a word or to two
//! bytes (PTX ISA, `cvt`).

use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_layout::DType;

use crate::arena::{Arena, Handle};
use crate::thread::registers::{RegArray, Regs};
use crate::thread::value::Value;
use crate::tile::{ElementClass, ElementOp};

/// Bytes of a register of the machine.
pub(super) const WORD: i64 = 4;

/// Two values of f32, f16 or bf16, as operands of an instruction on pairs.
#[derive(Clone, Debug)]
pub enum Packed<'a> {
    /// Adjacent registers of an array; the index of the first is even.
    Registers(Handle<RegArray>, &'a Expr),
    /// The same value twice.
    Twice(&'a Value),
    /// Values that are computed separately.
    Separate([&'a Value; 2]),
    /// An instruction on pairs.
    Op(ElementOp, Vec<Packed<'a>>),
}

impl<'a> Packed<'a> {
    /// How two values of one dtype are computed as a pair.
    pub fn of(registers: &Arena<RegArray>, [low, high]: [&'a Value; 2]) -> Packed<'a> {
        if low == high {
            return Packed::Twice(low);
        }
        match (low, high) {
            (Value::Reg(array, at), Value::Reg(other, next))
                if array == other && registers[*array].vector == 1 && is_pair(at, next) =>
            {
                Packed::Registers(*array, at)
            }
            (Value::Op(op, operands), Value::Op(other, others))
                if op == other && is_packed(*op, low.dtype(registers)) && operands.len() == others.len() =>
            {
                let pairs = operands.iter().zip(others);
                Packed::Op(*op, pairs.map(|(low, high)| Packed::of(registers, [low, high])).collect())
            }
            _ => Packed::Separate([low, high]),
        }
    }

    /// Calls `visit` on the arrays whose registers are read as pairs.
    pub fn for_each_pair(&self, visit: &mut dyn FnMut(Handle<RegArray>)) {
        match self {
            Packed::Registers(array, _) => visit(*array),
            Packed::Twice(_) | Packed::Separate(_) => {}
            Packed::Op(_, operands) => operands.iter().for_each(|operand| operand.for_each_pair(visit)),
        }
    }

    /// The instructions on pairs in it.
    pub fn operations(&self) -> usize {
        match self {
            Packed::Registers(..) | Packed::Twice(_) | Packed::Separate(_) => 0,
            Packed::Op(_, operands) => 1 + operands.iter().map(Packed::operations).sum::<usize>(),
        }
    }

    /// The pairs in it whose values are computed separately, and must be moved to adjacent registers first. Conversions
    /// write to any registers.
    pub fn joined(&self) -> usize {
        match self {
            Packed::Registers(..) | Packed::Twice(_) => 0,
            Packed::Separate(values) if values.iter().all(|value| matches!(value, Value::Cast(..))) => 0,
            Packed::Separate(_) => 1,
            Packed::Op(_, operands) => operands.iter().map(Packed::joined).sum(),
        }
    }
}

/// Whether an instruction computes the operation for two values at once, with the result of the operation on floats,
/// rounded once. That is not so for `Fma` of halves, and for products of bf16 that are too small for a normal float.
fn is_packed(op: ElementOp, dtype: Option<DType>) -> bool {
    let dtypes: &[DType] = match op {
        ElementOp::Add | ElementOp::Sub => &[DType::F32, DType::F16, DType::BF16],
        ElementOp::Mul => &[DType::F32, DType::F16],
        ElementOp::Max | ElementOp::Min => &[DType::F16, DType::BF16],
        ElementOp::Fma => &[DType::F32],
        _ => &[],
    };
    dtype.is_some_and(|dtype| dtypes.contains(&dtype))
}

/// Whether a pair of registers begins at the first index, and the second is the other one.
pub fn is_pair(first: &Expr, second: &Expr) -> bool {
    first.multiple() % 2 == 0 && normalize(&(second - first)).as_const() == Some(1)
}

/// Whether a move is that of a word: of adjacent registers that fill one of the machine's, on both sides.
pub fn is_word(registers: &Arena<RegArray>, sides: [&Regs; 2]) -> bool {
    sides.iter().all(|regs| {
        let RegArray { dtype, vector, .. } = registers[regs.array];
        let is_whole = regs.count > 1 && regs.count * dtype.bytes() == WORD && regs.first.multiple() % regs.count == 0;
        vector == 1 && regs.step == 1 && is_whole
    })
}

/// Whether both values are narrow floats that are computed as `f32` and then rounded: one instruction rounds two of them.
pub fn are_rounded(registers: &Arena<RegArray>, values: [&Value; 2]) -> bool {
    let is_rounded = |value: &Value| match value {
        Value::Op(ElementOp::Rounded, _) => false,
        Value::Op(op, _) => matches!(op.class(), ElementClass::Arithmetic | ElementClass::Floating),
        Value::Cast(_, _, of) => of.dtype(registers) == Some(DType::F32),
        _ => false,
    };
    let dtypes = values.map(|value| value.dtype(registers));
    dtypes[0] == dtypes[1]
        && dtypes[0].is_some_and(DType::is_narrow_float)
        && values.iter().all(|value| is_rounded(value))
}

/// The two floats of which these values are the roundings to a narrower dtype; `None` for other values.
pub fn halves<'a>(registers: &Arena<RegArray>, [low, high]: [&'a Value; 2]) -> Option<[&'a Value; 2]> {
    let (Value::Cast(to, _, low), Value::Cast(other, _, high)) = (low, high) else { return None };
    let are_floats = [low, high].iter().all(|of| of.dtype(registers) == Some(DType::F32));
    (to == other && to.is_narrow_float() && are_floats).then_some([&**low, &**high])
}
