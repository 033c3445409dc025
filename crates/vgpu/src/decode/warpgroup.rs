//! `wgmma` (PTX ISA, section 9.7.15).

use crate::decode::copy::immediate;
use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::matrix::{MmaType, accumulator_type, mma_type, multiplicand, take_sync_aligned};
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::isa::{DType, Kind};
use crate::op::{AccumulatorType, Op, WarpgroupLeft, WarpgroupMma, WarpgroupMultiplicand, WarpgroupOp};
use crate::ptx::ast::{Number, Operand};

impl Decoder<'_> {
    /// `wgmma.fence` and `wgmma.commit_group`
    pub(crate) fn warpgroup_plain(&mut self, mods: &mut Mods<'_>, op: WarpgroupOp) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        Ok(warpgroup(op))
    }

    pub(crate) fn warpgroup_wait(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        expect_count(operands, 1)?;
        Ok(warpgroup(WarpgroupOp::Wait { pending: immediate(&operands[0])? }))
    }

    pub(crate) fn warpgroup_mma(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        let (n, k) = mods.find(shape).ok_or_else(|| "the shape is not supported".to_string())?;
        let saturate = mods.take("satfinite");
        let mut types = [MmaType::F32; 3];
        for slot in &mut types {
            *slot = mods.find(mma_type).ok_or_else(|| "unsupported multiplicand or accumulator types".to_string())?;
        }
        let [d_type, a_type, b_type] = types;
        let sum = accumulator_type(d_type, saturate)?;
        if !is_legal(n, k, types) {
            return Err(format!("these types are not supported in m64n{n}k{k}"));
        }
        let (head, rest) = operands.split_at_checked(4).ok_or_else(|| "operands are missing".to_string())?;
        let is_in_registers = matches!(head[1], Operand::Vector(_));
        let is_integer = matches!(sum, AccumulatorType::S32 { .. });
        let scales = if is_integer { 0 } else { 2 };
        let is_half = matches!(a_type, MmaType::F16 | MmaType::Bf16);
        let turns = if is_half { if is_in_registers { 1 } else { 2 } } else { 0 };
        expect_count(rest, scales + turns)?;
        let is_negated = |at: usize| if is_integer { Ok(false) } else { scale(&rest[at]) };
        let is_turned = |at: usize| rest.get(scales + at).map_or(Ok(0), immediate).map(|bit| bit != 0);
        let of_a = if is_half && !is_in_registers { is_turned(0)? } else { false };
        let of_b = if is_half { is_turned(turns - 1)? } else { false };
        let multiplicands = [
            WarpgroupMultiplicand { element: multiplicand(a_type)?, is_negated: is_negated(0)?, is_transposed: of_a },
            WarpgroupMultiplicand { element: multiplicand(b_type)?, is_negated: is_negated(1)?, is_transposed: of_b },
        ];
        let a = if is_in_registers {
            WarpgroupLeft::Registers(self.registers(&head[1], 4, false, DType::B32)?)
        } else {
            WarpgroupLeft::Shared(self.source(&head[1], DType::B64)?)
        };
        let (words, dtype) = match sum {
            AccumulatorType::F16 => (n / 4, DType::B32),
            AccumulatorType::F32 => (n / 2, DType::new(Kind::Float, 32)),
            AccumulatorType::S32 { .. } => (n / 2, DType::new(Kind::Signed, 32)),
        };
        let d = self.registers(&head[0], words, true, dtype)?;
        let mut distinct = d.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != d.len() {
            return Err("the registers of an accumulator are different ones".to_string());
        }
        self.program.warpgroup_registers.extend(distinct);
        if let WarpgroupLeft::Registers(regs) = &a {
            self.program.warpgroup_registers.extend(regs);
        }
        let (b, accumulates) = (self.source(&head[2], DType::B64)?, self.predicate(&head[3])?);
        Ok(warpgroup(WarpgroupOp::Mma(WarpgroupMma { n, k, sum, d, a, b, types: multiplicands, accumulates })))
    }
}

pub(super) fn warpgroup(op: WarpgroupOp) -> Op {
    Op::Warpgroup(Box::new(op))
}

/// `m64n128k16` as N and K.
fn shape(word: &str) -> Option<(usize, usize)> {
    let (n, k) = word.strip_prefix("m64n")?.split_once('k')?;
    Some((n.parse().ok()?, k.parse().ok()?))
}

/// `imm-scale`: 1, or -1 for a multiplicand that is negated.
fn scale(operand: &Operand) -> Decoded<bool> {
    match operand {
        Operand::Number(Number::Integer(bits)) if *bits == 1 => Ok(false),
        Operand::Number(Number::Integer(bits)) if *bits as u32 == u32::MAX => Ok(true),
        _ => Err("a multiplicand is scaled by 1 or -1".to_string()),
    }
}

/// Whether the ISA has this combination of shape and types (PTX ISA, section 9.7.15.2).
fn is_legal(n: usize, k: usize, [d, a, b]: [MmaType; 3]) -> bool {
    let is_float = d == MmaType::F32;
    let (k_of_type, is_pair) = match (a, b) {
        (MmaType::F16, MmaType::F16) => (16, is_float || d == MmaType::F16),
        (MmaType::Bf16, MmaType::Bf16) => (16, is_float),
        (MmaType::Tf32, MmaType::Tf32) => (8, is_float),
        (MmaType::E4m3 | MmaType::E5m2, MmaType::E4m3 | MmaType::E5m2) => (32, is_float || d == MmaType::F16),
        (MmaType::S8 | MmaType::U8, MmaType::S8 | MmaType::U8) => (32, d == MmaType::S32),
        _ => (0, false),
    };
    let is_n = if d == MmaType::S32 { n.is_multiple_of(16) || n == 8 || n == 24 } else { n.is_multiple_of(8) };
    is_pair && k == k_of_type && is_n && (8..=256).contains(&n)
}
