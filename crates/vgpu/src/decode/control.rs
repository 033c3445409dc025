//! Branches, barriers and warp-wide instructions.

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::memory::integer_atomic;
use crate::decode::mods::Mods;
use crate::decode::operand::{expect_count, nth};
use crate::decode::symbol::Symbol;
use crate::isa::DType;
use crate::op::{
    AtomFn, BarrierOp, BarrierReduce, ClusterBarrier, CollectiveFn, FloatType, Op, Reg, ScalarOp, Shuffle, ShuffleMode,
    VoteMode,
};
use crate::ptx::ast::Operand;

impl Decoder<'_> {
    pub(crate) fn branch(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        mods.take("uni");
        Ok(Op::Bra { target: self.target(nth(operands, 0)?)? })
    }

    pub(crate) fn active_mask(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        mods.take("b32");
        Ok(Op::Scalar(ScalarOp::ActiveMask { d: self.dest(nth(operands, 0)?)? }))
    }

    /// `bar.warp.sync`
    pub(crate) fn warp_barrier(&mut self, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 1)?;
        let members = self.source(&operands[0], DType::B32)?;
        Ok(Op::Collective { f: CollectiveFn::Barrier, members })
    }

    fn target(&mut self, operand: &Operand) -> Decoded<u32> {
        let Operand::Word(name) = operand else { return Err("the target is not a label".to_string()) };
        match self.lookup(name) {
            Some(Symbol::Label(label)) => Ok(label),
            Some(_) => Err(format!("`{name}` is not a label")),
            None => Err(self.unknown(name)),
        }
    }

    pub(crate) fn branch_index(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        mods.take("idx");
        mods.take("uni");
        let index = self.source(&operands[0], DType::B32)?;
        let names = match &operands[1] {
            Operand::Word(name) => match self.lookup(name) {
                Some(Symbol::Targets(names)) => names,
                _ => return Err(format!("`{name}` is not a `.branchtargets` table")),
            },
            _ => return Err("expected a `.branchtargets` table".to_string()),
        };
        let mut targets = Vec::new();
        for name in names {
            targets.push(self.target(&Operand::Word(name))?);
        }
        Ok(Op::BranchIndex { index, targets: targets.into_boxed_slice() })
    }

    pub(crate) fn barrier(&mut self, mods: &mut Mods<'_>, operands: &[Operand], aligned: bool) -> Decoded<Op> {
        mods.take("cta");
        let arrive = mods.take("arrive");
        if !arrive && mods.take("red") {
            return self.barrier_reduce(mods, operands, aligned);
        }
        if !arrive && !mods.take("sync") {
            return Err("the barrier is not `.sync`, `.arrive` or `.red`".to_string());
        }
        let id = self.source(nth(operands, 0)?, DType::B32)?;
        let count = self.optional_count(operands.get(1))?;
        if arrive && count.is_none() {
            return Err("`.arrive` needs a thread count".to_string());
        }
        Ok(Op::Barrier(Box::new(BarrierOp { id, count, wait: !arrive, aligned, reduce: None })))
    }

    /// `barrier.cluster.arrive` and `barrier.cluster.wait`
    pub(crate) fn cluster_barrier(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 0)?;
        let arrives = mods.take("arrive");
        if !arrives && !mods.take("wait") {
            return Err("the barrier is not `.arrive` or `.wait`".to_string());
        }
        let is_relaxed = arrives && mods.take("relaxed");
        mods.take(if arrives { "release" } else { "acquire" });
        let is_aligned = mods.take("aligned");
        Ok(Op::ClusterBarrier(ClusterBarrier { waits: !arrives, orders: !is_relaxed, is_aligned }))
    }

    fn optional_count(&mut self, operand: Option<&Operand>) -> Decoded<Option<Reg>> {
        match operand {
            Some(operand) => Ok(Some(self.source(operand, DType::B32)?)),
            None => Ok(None),
        }
    }

    /// `bar.red.popc.u32 d, a {, b}, {!}c` and `bar.red.{and,or}.pred p, a {, b}, {!}c`
    fn barrier_reduce(&mut self, mods: &mut Mods<'_>, operands: &[Operand], aligned: bool) -> Decoded<Op> {
        if !(3..=4).contains(&operands.len()) {
            return Err("wrong number of operands: expected 3 or 4".to_string());
        }
        let id = self.source(&operands[1], DType::B32)?;
        let count = self.optional_count(if operands.len() == 4 { operands.get(2) } else { None })?;
        let a = self.predicate(&operands[operands.len() - 1])?;
        mods.drop_all(|part| part == "u32" || part == "pred");
        let reduce = if mods.take("popc") {
            BarrierReduce::Popc { d: self.dest(&operands[0])?, a }
        } else if mods.take("and") {
            BarrierReduce::And { d: self.predicate_dest(&operands[0])?, a }
        } else if mods.take("or") {
            BarrierReduce::Or { d: self.predicate_dest(&operands[0])?, a }
        } else {
            return Err("the reduction operation is missing".to_string());
        };
        Ok(Op::Barrier(Box::new(BarrierOp { id, count, wait: true, aligned, reduce: Some(reduce) })))
    }

    pub(crate) fn shuffle(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 5)?;
        take_sync(mods)?;
        mods.take("b32");
        let mode = mods.find(|part| match part {
            "up" => Some(ShuffleMode::Up),
            "down" => Some(ShuffleMode::Down),
            "bfly" => Some(ShuffleMode::Butterfly),
            "idx" => Some(ShuffleMode::Index),
            _ => None,
        });
        let mode = mode.ok_or_else(|| "the shuffle mode is missing".to_string())?;
        let (d, p) = self.value_and_predicate(&operands[0])?;
        let a = self.source(&operands[1], DType::B32)?;
        let b = self.source(&operands[2], DType::B32)?;
        let c = self.source(&operands[3], DType::B32)?;
        let members = self.source(&operands[4], DType::B32)?;
        Ok(Op::Collective { f: CollectiveFn::Shuffle(Shuffle { mode, d, p, a, b, c }), members })
    }

    /// `d|p` or `d`.
    fn value_and_predicate(&mut self, operand: &Operand) -> Decoded<(Reg, Option<u32>)> {
        match operand {
            Operand::Pair(value, predicate) => {
                let d = self.dest(value)?;
                Ok((d, Some(self.predicate_dest(predicate)?)))
            }
            _ => Ok((self.dest(operand)?, None)),
        }
    }

    pub(crate) fn vote(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 3)?;
        take_sync(mods)?;
        mods.drop_all(|part| part == "pred" || part == "b32");
        let a = self.predicate(&operands[1])?;
        let members = self.source(&operands[2], DType::B32)?;
        if mods.take("ballot") {
            let d = self.dest(&operands[0])?;
            return Ok(Op::Collective { f: CollectiveFn::Ballot { d, a }, members });
        }
        let mode = mods.find(|part| match part {
            "all" => Some(VoteMode::All),
            "any" => Some(VoteMode::Any),
            "uni" => Some(VoteMode::Uniform),
            _ => None,
        });
        let mode = mode.ok_or_else(|| "the vote mode is missing".to_string())?;
        let d = self.predicate_dest(&operands[0])?;
        Ok(Op::Collective { f: CollectiveFn::Vote { mode, d, a }, members })
    }

    pub(crate) fn match_sync(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 3)?;
        take_sync(mods)?;
        let dtype = mods.dtype()?;
        let a = self.source(&operands[1], dtype)?;
        let members = self.source(&operands[2], DType::B32)?;
        let (d, p) = self.value_and_predicate(&operands[0])?;
        let f = if mods.take("any") {
            CollectiveFn::MatchAny { d, a }
        } else if mods.take("all") {
            CollectiveFn::MatchAll { d, p, a }
        } else {
            return Err("`.any` or `.all` is missing".to_string());
        };
        Ok(Op::Collective { f, members })
    }

    pub(crate) fn redux(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 3)?;
        take_sync(mods)?;
        let abs = mods.take("abs");
        let nan = mods.take("NaN");
        let dtype = mods.dtype()?;
        let name = mods.find(|part| matches!(part, "add" | "min" | "max" | "and" | "or" | "xor").then_some(part));
        let name = name.ok_or_else(|| "the operation is missing".to_string())?;
        let f = match (dtype.is_float(), name) {
            (true, "min") => AtomFn::MinFloat(FloatType::F32, false),
            (true, "max") => AtomFn::MaxFloat(FloatType::F32, false),
            (true, _) => return Err("only `.min` and `.max` are supported for floating-point types".to_string()),
            (false, name) => integer_atomic(name, dtype.is_signed())?,
        };
        if dtype.width() != 32 {
            return Err("`redux` supports only 32-bit types".to_string());
        }
        let d = self.dest(&operands[0])?;
        let a = self.source(&operands[1], dtype)?;
        let members = self.source(&operands[2], DType::B32)?;
        Ok(Op::Collective { f: CollectiveFn::Reduce { f, nan, abs, d, a }, members })
    }

    pub(crate) fn elect(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        take_sync(mods)?;
        let members = self.source(&operands[1], DType::B32)?;
        let (d, p) = match &operands[0] {
            Operand::Pair(value, predicate) => {
                let d = self.dest(value)?;
                (Some(d), self.predicate_dest(predicate)?)
            }
            operand => (None, self.predicate_dest(operand)?),
        };
        Ok(Op::Collective { f: CollectiveFn::Elect { d, p }, members })
    }
}

/// Takes `.sync`; the forms without it are not supported on sm_70 and later.
pub(crate) fn take_sync(mods: &mut Mods<'_>) -> Decoded<()> {
    if mods.take("sync") { Ok(()) } else { Err("the form without `.sync` is not supported".to_string()) }
}
