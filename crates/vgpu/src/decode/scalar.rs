//! Instructions on registers: moves, comparisons, selections.

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::memory::{element, number_type};
use crate::decode::mods::Mods;
use crate::decode::operand::{expect_count, nth};
use crate::decode::symbol::Symbol;
use crate::isa::{CmpOp, DType, Kind, mask};
use crate::op::{Comparison, FloatType, Guard, IntFn, Op, PredFn, Reg, ScalarOp, Set, Setp, TestFn};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    pub(crate) fn mov(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let dtype = mods.dtype()?;
        if dtype.kind == Kind::Pred {
            let d = self.predicate_dest(&operands[0])?;
            return Ok(Op::Scalar(ScalarOp::MovPred { d, a: self.predicate(&operands[1])? }));
        }
        if dtype.bits == 128 {
            return self.mov_128(operands);
        }
        match (&operands[0], &operands[1]) {
            (Operand::Vector(parts), source) if parts.len() > 1 => self.unpack(parts, source, dtype),
            (dest, Operand::Vector(parts)) if parts.len() > 1 => self.pack(dest, parts, dtype),
            (dest, source) => {
                let d = self.dest(dest)?;
                if let Operand::Word(name) = source
                    && let Some(shift) = clock_shift(name)
                {
                    return Ok(Op::Clock { d, bits: dtype.width(), shift });
                }
                Ok(Op::Scalar(ScalarOp::Mov { d, a: self.source(source, dtype)? }))
            }
        }
    }

    fn unpack(&mut self, parts: &[Operand], source: &Operand, dtype: DType) -> Decoded<Op> {
        let bits = part_bits(dtype, parts.len())?;
        let a = self.source(source, dtype)?;
        let mut found = Vec::new();
        for part in parts {
            let ignored = matches!(part, Operand::Word(name) if name == "_");
            found.push(if ignored { None } else { Some(self.dest(part)?) });
        }
        Ok(Op::Scalar(ScalarOp::Unpack { a, bits, parts: found.into_boxed_slice() }))
    }

    fn pack(&mut self, dest: &Operand, parts: &[Operand], dtype: DType) -> Decoded<Op> {
        let bits = part_bits(dtype, parts.len())?;
        let d = self.dest(dest)?;
        let mut found = Vec::new();
        for part in parts {
            found.push(self.source(part, DType::new(Kind::Bits, bits))?);
        }
        Ok(Op::Scalar(ScalarOp::Pack { d, bits, parts: found.into_boxed_slice() }))
    }

    /// A 128-bit `mov`: each operand is a `.b128` register or a vector `{a, b}` of two 64-bit registers.
    fn mov_128(&mut self, operands: &[Operand]) -> Decoded<Op> {
        let to = self.halves(&operands[0], true)?;
        let from = self.halves(&operands[1], false)?;
        Ok(Op::Scalar(ScalarOp::MovMany(Box::new([(to[0], from[0]), (to[1], from[1])]))))
    }

    pub(crate) fn halves(&mut self, operand: &Operand, is_dest: bool) -> Decoded<[Reg; 2]> {
        match operand {
            Operand::Vector(items) if items.len() == 2 => {
                let mut found = [0; 2];
                for (slot, item) in found.iter_mut().zip(items) {
                    *slot = if is_dest { self.dest(item)? } else { self.source(item, DType::B64)? };
                }
                Ok(found)
            }
            Operand::Word(name) => match self.lookup(name) {
                Some(Symbol::Register(reg, dtype)) if dtype.bits == 128 => Ok([reg, reg + 1]),
                _ => Err(format!("`{name}` is not a 128-bit register")),
            },
            _ => Err("this form of 128-bit operand is not supported".to_string()),
        }
    }

    pub(crate) fn pred_logic(&mut self, base: &str, operands: &[Operand]) -> Decoded<Op> {
        let d = self.predicate_dest(nth(operands, 0)?)?;
        let a = self.predicate(nth(operands, 1)?)?;
        if base == "not" {
            return Ok(Op::Scalar(ScalarOp::MovPred { d, a: Guard { index: a.index, negate: !a.negate } }));
        }
        let b = self.predicate(nth(operands, 2)?)?;
        let f = pred_fn(base).ok_or_else(|| "this operation is not supported on predicates".to_string())?;
        Ok(Op::Scalar(ScalarOp::Pred { f, d, a, b }))
    }

    pub(crate) fn setp(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let dtype = compared_type(mods)?;
        let compare = self.comparison(mods, operands, dtype)?;
        let (d, q) = match nth(operands, 0)? {
            Operand::Pair(first, second) => (self.predicate_dest(first)?, Some(self.predicate_dest(second)?)),
            operand => (self.predicate_dest(operand)?, None),
        };
        Ok(Op::Scalar(ScalarOp::Setp(Box::new(Setp { compare, d, q }))))
    }

    /// The common part of `setp` and `set`.
    fn comparison(&mut self, mods: &mut Mods<'_>, operands: &[Operand], dtype: DType) -> Decoded<Comparison> {
        let cmp = mods.find(CmpOp::parse).ok_or_else(|| "the comparison operator is missing".to_string())?;
        let combine = mods.find(pred_fn);
        let ftz = mods.take("ftz");
        expect_count(operands, if combine.is_some() { 4 } else { 3 })?;
        let a = self.source(&operands[1], dtype)?;
        let b = self.source(&operands[2], dtype)?;
        let combine = match combine {
            Some(f) => Some((f, self.predicate(&operands[3])?)),
            None => None,
        };
        Ok(Comparison { cmp, number: number_type(dtype)?, packed: dtype.count == 2, ftz, a, b, combine })
    }

    pub(crate) fn set(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        // The first type is the destination's.
        let to = mods.dtype()?;
        let dtype = compared_type(mods)?;
        let compare = self.comparison(mods, operands, dtype)?;
        let d = self.dest(nth(operands, 0)?)?;
        let true_value = true_value(to, dtype)?;
        Ok(Op::Scalar(ScalarOp::Set(Box::new(Set { compare, d, true_value }))))
    }

    pub(crate) fn selp(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 4)?;
        let dtype = mods.dtype()?;
        let d = self.dest(&operands[0])?;
        let a = self.source(&operands[1], dtype)?;
        let b = self.source(&operands[2], dtype)?;
        let p = self.predicate(&operands[3])?;
        Ok(Op::Scalar(ScalarOp::Selp { d, a, b, p }))
    }

    pub(crate) fn slct(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 4)?;
        let ftz = mods.take("ftz");
        let dtype = mods.dtype()?;
        let sign = mods.dtype()?;
        let d = self.dest(&operands[0])?;
        let a = self.source(&operands[1], dtype)?;
        let b = self.source(&operands[2], dtype)?;
        let c = self.source(&operands[3], sign)?;
        Ok(Op::Scalar(ScalarOp::Int {
            f: IntFn::Select { float: sign.is_float(), ftz },
            bits: dtype.width(),
            d,
            s: [a, b, c, c],
        }))
    }

    pub(crate) fn testp(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let f = mods.find(|part| match part {
            "finite" => Some(TestFn::Finite),
            "infinite" => Some(TestFn::Infinite),
            "number" => Some(TestFn::Number),
            "notanumber" => Some(TestFn::NotANumber),
            "normal" => Some(TestFn::Normal),
            "subnormal" => Some(TestFn::Subnormal),
            _ => None,
        });
        let f = f.ok_or_else(|| "the property to test is missing".to_string())?;
        let dtype = mods.dtype()?;
        let double = match element(dtype)? {
            FloatType::F32 => false,
            FloatType::F64 => true,
            FloatType::Half(_) => return Err("`testp` is not supported for 16-bit types".to_string()),
        };
        let d = self.predicate_dest(&operands[0])?;
        let a = self.source(&operands[1], dtype)?;
        Ok(Op::Scalar(ScalarOp::Testp { f, double, d, a }))
    }
}

/// Takes the type of the values that are compared.
fn compared_type(mods: &mut Mods<'_>) -> Decoded<DType> {
    let dtype = mods.dtype()?;
    if dtype.count != 1 && !dtype.is_half() {
        return Err("packed comparisons of this type are not supported".to_string());
    }
    Ok(dtype)
}

/// What `set` writes for an element whose comparison is true (PTX ISA, sections 9.7.6.1 and 9.7.7.1).
fn true_value(to: DType, compared: DType) -> Decoded<u64> {
    let one = match (to.kind, to.bits) {
        (Kind::Float, 16) => Some(0x3c00),
        (Kind::Bfloat, 16) => Some(0x3f80),
        (Kind::Float, 32) => Some(u64::from(1.0f32.to_bits())),
        _ => None,
    };
    let packed = to.count == 2;
    let masks = compared.count == 2 && !packed && to.width() == 32 && one.is_none();
    if (packed && !to.is_half()) || (to.count != compared.count && !masks) {
        return Err("a result of this type is not supported".to_string());
    }
    Ok(one.unwrap_or(mask(to.width() / compared.count)))
}

fn pred_fn(word: &str) -> Option<PredFn> {
    match word {
        "and" => Some(PredFn::And),
        "or" => Some(PredFn::Or),
        "xor" => Some(PredFn::Xor),
        _ => None,
    }
}

/// For a clock register, the number of bits by which its value is shifted right.
fn clock_shift(name: &str) -> Option<u32> {
    match name {
        "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Some(0),
        "%clock_hi" | "%globaltimer_hi" => Some(32),
        _ => None,
    }
}

fn part_bits(dtype: DType, parts: usize) -> Decoded<u32> {
    let bits = dtype.width() / parts as u32;
    if bits * parts as u32 == dtype.width() && bits >= 8 { Ok(bits) } else { Err("unsupported part width".to_string()) }
}
