//! `cp.async` and its groups (PTX ISA, section 9.7.9.25.3).

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::operand::{expect_count, nth};
use crate::decode::symbol::Symbol;
use crate::isa::{DType, Space};
use crate::op::{AsyncCopy, CopyOp, Op};
use crate::ptx::ast::{Number, Operand};

impl Decoder<'_> {
    pub(crate) fn start_copy(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let bypasses = mods.take("cg");
        if !bypasses && !mods.take("ca") {
            return Err("`.ca` or `.cg` is missing".to_string());
        }
        if !(mods.take("shared") || mods.take("shared::cta")) || !mods.take("global") {
            return Err("the copy is not from `.global` to `.shared`".to_string());
        }
        let operands = match operands.split_last() {
            Some((_, rest)) if mods.take("L2::cache_hint") => rest,
            _ => operands,
        };
        mods.drop_all(|part| part.starts_with("L2::"));
        if !(3..=4).contains(&operands.len()) {
            return Err("wrong number of operands: expected 3 or 4".to_string());
        }
        let bytes = immediate(&operands[2])?;
        if !matches!((bypasses, bytes), (false, 4 | 8) | (_, 16)) {
            return Err("a copy has 4, 8 or 16 bytes, with `.cg` 16".to_string());
        }
        let (mut read_bytes, mut ignore) = (None, None);
        if let Some(last) = operands.get(3) {
            if self.is_predicate(last) {
                ignore = Some(self.predicate(last)?);
            } else {
                read_bytes = Some(self.source(last, DType::B32)?);
            }
        }
        let to = self.mem_ref(&operands[0], Space::Shared)?;
        let from = self.mem_ref(&operands[1], Space::Global)?;
        Ok(copy(CopyOp::Start(AsyncCopy { to, from, bytes, read_bytes, ignore })))
    }

    fn is_predicate(&mut self, operand: &Operand) -> bool {
        match operand {
            Operand::Not(_) => true,
            Operand::Word(name) => matches!(self.lookup(name), Some(Symbol::Predicate(_))),
            _ => false,
        }
    }

    pub(crate) fn wait_group(&mut self, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 1)?;
        Ok(copy(CopyOp::WaitGroup { pending: immediate(nth(operands, 0)?)? }))
    }
}

/// An instruction of `cp.async`.
pub(super) fn copy(op: CopyOp) -> Op {
    Op::Copy(Box::new(op))
}

pub(super) fn immediate(operand: &Operand) -> Decoded<u32> {
    match operand {
        Operand::Number(Number::Integer(bits)) => {
            u32::try_from(*bits).map_err(|_| "the number is too large".to_string())
        }
        _ => Err("expected a number".to_string()),
    }
}
