//! Arithmetic on integers and bits; floating-point types are passed on to their own module.

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::operand::{expect_count, nth};
use crate::isa::{DType, Kind};
use crate::memory::map;
use crate::op::{Carry, CarryFn, IntFn, Op, Packed16Fn, PrmtMode, Reg, ScalarOp};
use crate::ptx::ast::{Number, Operand};

impl Decoder<'_> {
    pub(crate) fn arithmetic(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Vec<Op>> {
        let base = mods.base();
        let dtype = mods.dtype()?;
        if dtype.is_float() {
            return self.float_arithmetic(mods, operands, dtype);
        }
        if let Some(op) = self.carry(mods, operands, dtype)? {
            return Ok(vec![op]);
        }
        let f = int_fn(base, mods, dtype)?;
        let relu = matches!(base, "min" | "max") && dtype.is_signed() && mods.take("relu");
        let mut ops = vec![self.int_op(f, operands, dtype)?];
        if relu {
            let d = self.dest(&operands[0])?;
            ops.push(self.not_below_zero(d, dtype));
        }
        Ok(ops)
    }

    /// Replaces negative values in `d` by 0 (`.relu`).
    fn not_below_zero(&mut self, d: Reg, dtype: DType) -> Op {
        let zero = self.constant(0);
        let packed = dtype.count == 2;
        let f = if packed { IntFn::Packed16(Packed16Fn::Max { signed: true }) } else { IntFn::Max { signed: true } };
        Op::Scalar(ScalarOp::Int { f, bits: dtype.width(), d, s: [d, zero, zero, zero] })
    }

    fn int_op(&mut self, f: IntFn, operands: &[Operand], dtype: DType) -> Decoded<Op> {
        let (count, types) = (f.arity(), operand_types(f, dtype));
        expect_count(operands, count + 1)?;
        let packed = matches!(f, IntFn::Packed16(_));
        if (dtype.count != 1) != packed || dtype.bits < 16 || dtype.bits > 64 {
            return Err("this type is not supported for integer instructions".to_string());
        }
        let d = self.dest(&operands[0])?;
        let mut s = [0; 4];
        for (at, slot) in s.iter_mut().enumerate().take(count) {
            *slot = self.source(&operands[at + 1], types[at])?;
        }
        Ok(Op::Scalar(ScalarOp::Int { f, bits: dtype.width(), d, s }))
    }

    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`
    fn carry(&mut self, mods: &mut Mods<'_>, operands: &[Operand], dtype: DType) -> Decoded<Option<Op>> {
        let base = mods.base();
        let read = matches!(base, "addc" | "subc" | "madc");
        let write = mods.take("cc");
        if !read && !write {
            return Ok(None);
        }
        if dtype.count != 1 {
            return Err("a carry is not supported for this type".to_string());
        }
        let signed = dtype.is_signed();
        let f = match base {
            "add" | "addc" => CarryFn::Add,
            "sub" | "subc" => CarryFn::Sub,
            "mad" | "madc" if mods.take("lo") => CarryFn::MadLo { signed },
            "mad" | "madc" if mods.take("hi") => CarryFn::MadHi { signed },
            _ => return Err("this instruction has no form with a carry".to_string()),
        };
        let count = if matches!(f, CarryFn::Add | CarryFn::Sub) { 2 } else { 3 };
        expect_count(operands, count + 1)?;
        let d = self.dest(&operands[0])?;
        let mut s = [0; 3];
        for (at, slot) in s.iter_mut().enumerate().take(count) {
            *slot = self.source(&operands[at + 1], dtype)?;
        }
        Ok(Some(Op::Scalar(ScalarOp::Carry(Carry { f, bits: dtype.bits, read, write, d, s }))))
    }

    /// `and`, `or`, `xor` and `not`, on predicates or on bits.
    pub(crate) fn logic(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Vec<Op>> {
        if mods.take("pred") {
            return Ok(vec![self.pred_logic(mods.base(), operands)?]);
        }
        self.arithmetic(mods, operands)
    }

    pub(crate) fn prmt(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let mode = prmt_mode(mods);
        let dtype = mods.dtype()?;
        self.int_op(IntFn::Prmt(mode), operands, dtype)
    }

    /// `mapa`: the rank in an address of shared memory is replaced.
    pub(crate) fn map_to_rank(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 3)?;
        mods.take("shared::cluster");
        let dtype = mods.dtype()?;
        let (first, count) = rank_bits();
        let operands = [operands[0].clone(), operands[2].clone(), operands[1].clone(), first, count];
        self.int_op(IntFn::Bfi, &operands, dtype)
    }

    /// `getctarank`: the rank in an address of shared memory.
    pub(crate) fn rank_of(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        mods.take("shared::cluster");
        let dtype = mods.dtype()?;
        let (first, count) = rank_bits();
        let operands = [operands[0].clone(), operands[1].clone(), first, count];
        self.int_op(IntFn::Bfe { signed: false }, &operands, DType::new(Kind::Unsigned, dtype.bits))
    }

    pub(crate) fn lop3(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 5)?;
        let dtype = mods.dtype()?;
        let table = match nth(operands, 4)? {
            Operand::Number(Number::Integer(bits)) => *bits as u8,
            _ => return Err("the lookup table of `lop3` must be an immediate".to_string()),
        };
        self.int_op(IntFn::Lop3(table), &operands[..4], dtype)
    }
}

/// The position and the number of the bits of a rank in an address, as operands.
fn rank_bits() -> (Operand, Operand) {
    let number = |bits: u32| Operand::Number(Number::Integer(u64::from(bits)));
    (number(map::RANK_BIT), number(map::RANK_BITS))
}

/// The types of the sources of `f`.
fn operand_types(f: IntFn, dtype: DType) -> [DType; 4] {
    let word = DType::U32;
    match f {
        IntFn::Shl | IntFn::Shr { .. } | IntFn::Bmsk { .. } | IntFn::Bfe { .. } | IntFn::Fns => {
            [dtype, word, word, word]
        }
        IntFn::MadWide { .. } => [dtype, dtype, wide(dtype), dtype],
        IntFn::Bfi => [dtype, dtype, word, word],
        _ => [dtype; 4],
    }
}

fn wide(dtype: DType) -> DType {
    DType::new(dtype.kind, dtype.bits * 2)
}

fn int_fn(base: &str, mods: &mut Mods<'_>, dtype: DType) -> Decoded<IntFn> {
    let signed = dtype.kind == Kind::Signed;
    if dtype.count == 2 {
        return packed16_fn(base, signed);
    }
    Ok(match base {
        "add" if mods.take("sat") => IntFn::AddSat,
        "add" => IntFn::Add,
        "sub" if mods.take("sat") => IntFn::SubSat,
        "sub" => IntFn::Sub,
        "mul" | "mad" | "mul24" | "mad24" => return product_fn(base, mods, signed),
        "div" => IntFn::Div { signed },
        "rem" => IntFn::Rem { signed },
        "abs" => IntFn::Abs,
        "neg" => IntFn::Neg,
        "min" => IntFn::Min { signed },
        "max" => IntFn::Max { signed },
        "and" => IntFn::And,
        "or" => IntFn::Or,
        "xor" => IntFn::Xor,
        "not" => IntFn::Not,
        "cnot" => IntFn::Cnot,
        "shl" => IntFn::Shl,
        "shr" => IntFn::Shr { signed },
        "shf" => funnel_fn(mods)?,
        "bfe" => IntFn::Bfe { signed },
        "bfi" => IntFn::Bfi,
        "bfind" => IntFn::Bfind { signed, shift: mods.take("shiftamt") },
        "brev" => IntFn::Brev,
        "clz" => IntFn::Clz,
        "popc" => IntFn::Popc,
        "sad" => IntFn::Sad { signed },
        "dp4a" => IntFn::Dp4a { a_signed: signed, b_signed: mods.dtype()?.is_signed() },
        "dp2a" => {
            let hi = mods.take("hi");
            mods.take("lo");
            IntFn::Dp2a { a_signed: signed, b_signed: mods.dtype()?.is_signed(), hi }
        }
        "bmsk" => {
            let wrap = mods.take("wrap");
            mods.take("clamp");
            IntFn::Bmsk { wrap }
        }
        "fns" => IntFn::Fns,
        _ => return Err(format!("`{base}` is not supported for this type")),
    })
}

fn packed16_fn(base: &str, signed: bool) -> Decoded<IntFn> {
    Ok(IntFn::Packed16(match base {
        "add" => Packed16Fn::Add,
        "sub" => Packed16Fn::Sub,
        "min" => Packed16Fn::Min { signed },
        "max" => Packed16Fn::Max { signed },
        _ => return Err(format!("`{base}` is not supported for this type")),
    }))
}

fn product_fn(base: &str, mods: &mut Mods<'_>, signed: bool) -> Decoded<IntFn> {
    let (lo, hi, wide) = (mods.take("lo"), mods.take("hi"), mods.take("wide"));
    if !lo && !hi && !wide {
        return Err("`.lo`, `.hi` or `.wide` is missing".to_string());
    }
    Ok(match base {
        "mul24" => IntFn::Mul24 { signed, hi },
        "mad24" => IntFn::Mad24 { signed, hi },
        "mul" if wide => IntFn::MulWide { signed },
        "mul" if hi => IntFn::MulHi { signed },
        "mul" => IntFn::Mul,
        "mad" if wide => IntFn::MadWide { signed },
        "mad" if hi && mods.take("sat") => IntFn::MadHiSat,
        "mad" if hi => IntFn::MadHi { signed },
        "mad" => IntFn::Mad,
        _ => return Err(format!("`{base}` is not a product")),
    })
}

fn funnel_fn(mods: &mut Mods<'_>) -> Decoded<IntFn> {
    let left = mods.take("l");
    if !left && !mods.take("r") {
        return Err("`.l` or `.r` is missing".to_string());
    }
    let wrap = mods.take("wrap");
    if !wrap && !mods.take("clamp") {
        return Err("`.wrap` or `.clamp` is missing".to_string());
    }
    Ok(IntFn::Funnel { left, wrap })
}

fn prmt_mode(mods: &mut Mods<'_>) -> PrmtMode {
    let mode = mods.find(|part| match part {
        "f4e" => Some(PrmtMode::F4e),
        "b4e" => Some(PrmtMode::B4e),
        "rc8" => Some(PrmtMode::Rc8),
        "ecl" => Some(PrmtMode::Ecl),
        "ecr" => Some(PrmtMode::Ecr),
        "rc16" => Some(PrmtMode::Rc16),
        _ => None,
    });
    mode.unwrap_or(PrmtMode::Index)
}
