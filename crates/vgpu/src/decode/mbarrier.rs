//! Instructions on mbarrier objects (PTX ISA, section 9.7.13.15).

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::operand::{expect_count, nth};
use crate::isa::{DType, Scope, Space};
use crate::op::{Arrive, MbarrierFn, MbarrierOp, Op, Phase, PhaseWait, Reg};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    /// An instruction that only has the address of the object.
    pub(crate) fn mbarrier_at(&mut self, mods: &mut Mods<'_>, operand: &Operand, f: MbarrierFn) -> Decoded<Op> {
        mods.take("b64");
        let at = self.mbarrier_address(mods, operand)?;
        Ok(mbarrier(MbarrierOp::At { at, f }))
    }

    fn mbarrier_address(&mut self, mods: &mut Mods<'_>, operand: &Operand) -> Decoded<crate::op::MemRef> {
        // The shared memory of the own CTA is at the same addresses in the window of its cluster.
        let is_shared = mods.take("shared") || mods.take("shared::cta") || mods.take("shared::cluster");
        self.mem_ref(operand, if is_shared { Space::Shared } else { Space::Generic })
    }

    pub(crate) fn mbarrier_init(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let count = self.source(&operands[1], DType::B32)?;
        self.mbarrier_at(mods, &operands[0], MbarrierFn::Init { count })
    }

    /// `mbarrier.expect_tx` and `mbarrier.complete_tx`
    pub(crate) fn mbarrier_bytes(
        &mut self,
        mods: &mut Mods<'_>,
        operands: &[Operand],
        f: fn(Reg) -> MbarrierFn,
    ) -> Decoded<Op> {
        expect_count(operands, 2)?;
        mods.take("relaxed");
        mods.find(Scope::parse);
        let bytes = self.source(&operands[1], DType::B32)?;
        self.mbarrier_at(mods, &operands[0], f(bytes))
    }

    pub(crate) fn mbarrier_arrive(&mut self, mods: &mut Mods<'_>, operands: &[Operand], drop: bool) -> Decoded<Op> {
        let expects = mods.take("expect_tx");
        let no_complete = mods.take("noComplete");
        let relaxed = mods.take("relaxed");
        mods.take("release");
        mods.find(Scope::parse);
        let (state, rest) = match operands {
            [state, rest @ ..] if !matches!(state, Operand::Address { .. }) => {
                let ignored = matches!(state, Operand::Word(name) if name == "_");
                (if ignored { None } else { Some(self.dest(state)?) }, rest)
            }
            rest => (None, rest),
        };
        if !(1..=2).contains(&rest.len()) {
            return Err("wrong number of operands".to_string());
        }
        let number = match rest.get(1) {
            Some(operand) => Some(self.source(operand, DType::B32)?),
            None => None,
        };
        let (count, expect) = if expects { (None, number) } else { (number, None) };
        if (expects || no_complete) && number.is_none() {
            return Err("the number of bytes or of arrivals is missing".to_string());
        }
        let arrive = Arrive { state, count, expect, no_complete, drop, releases: !relaxed };
        self.mbarrier_at(mods, &rest[0], MbarrierFn::Arrive(arrive))
    }

    pub(crate) fn mbarrier_wait(&mut self, mods: &mut Mods<'_>, operands: &[Operand], sleeps: bool) -> Decoded<Op> {
        if !(3..=3 + usize::from(sleeps)).contains(&operands.len()) {
            return Err("wrong number of operands".to_string());
        }
        let has_parity = mods.take("parity");
        let acquires = !mods.take("relaxed");
        mods.take("acquire");
        mods.find(Scope::parse);
        let done = self.predicate_dest(nth(operands, 0)?)?;
        let phase = if has_parity {
            Phase::Parity(self.source(&operands[2], DType::B32)?)
        } else {
            Phase::State(self.source(&operands[2], DType::B64)?)
        };
        let wait = PhaseWait { done, phase, sleeps, acquires };
        self.mbarrier_at(mods, &operands[1], MbarrierFn::Wait(wait))
    }

    pub(crate) fn mbarrier_pending(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        mods.take("b64");
        let (d, state) = (self.dest(&operands[0])?, self.source(&operands[1], DType::B64)?);
        Ok(mbarrier(MbarrierOp::PendingCount { d, state }))
    }

    /// `cp.async.mbarrier.arrive`
    pub(crate) fn arrive_after_copies(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 1)?;
        let is_counted = mods.take("noinc");
        self.mbarrier_at(mods, &operands[0], MbarrierFn::ArriveAfterCopies { is_counted })
    }
}

fn mbarrier(op: MbarrierOp) -> Op {
    Op::Mbarrier(Box::new(op))
}
