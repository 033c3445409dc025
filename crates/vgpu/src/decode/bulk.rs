//! Bulk copies and tensor copies (PTX ISA, section 9.7.9.25.4 and 9.7.9.25.5).

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::memory::atomic_fn;
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::isa::{DType, Kind, Space};
use crate::op::{BulkCopy, BulkOp, BulkPlace, MemRef, Op, Reg};
use crate::ptx::ast::Operand;

/// The direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Shared,
    Global,
    /// From the own shared memory to that of a CTA of the cluster.
    Cluster,
}

impl Decoder<'_> {
    /// `cp.async.bulk`: `[to], [from], bytes, [mbarrier]` or `[to], [from], bytes`.
    pub(crate) fn bulk_copy(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, ranks) = self.without_hints(mods, operands)?;
        let to = direction(mods)?;
        expect_count(operands, if to == To::Global { 3 } else { 4 })?;
        let bytes = self.source(&operands[2], DType::B32)?;
        let (place, shared) = match to {
            To::Shared => (BulkPlace::Linear { at: self.mem_ref(&operands[1], Space::Global)?, bytes }, 0),
            To::Global => (BulkPlace::Linear { at: self.mem_ref(&operands[0], Space::Global)?, bytes }, 1),
            To::Cluster => (BulkPlace::Shared { at: self.mem_ref(&operands[1], Space::Shared)?, bytes }, 0),
        };
        let shared = self.mem_ref(&operands[shared], Space::Shared)?;
        self.bulk(place, shared, operands.get(3), ranks)
    }

    /// `cp.async.bulk.tensor`: `[to], [map, {coordinates}], [mbarrier]` or `[map, {coordinates}], [from]`.
    pub(crate) fn tensor_copy(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, ranks) = self.without_hints(mods, operands)?;
        let rank = take_rank(mods)?;
        mods.take("tile");
        let to = direction(mods)?;
        expect_count(operands, if to == To::Shared { 3 } else { 2 })?;
        let (global, shared) = if to == To::Shared { (1, 0) } else { (0, 1) };
        let place = self.tensor_place(&operands[global], rank)?;
        let shared = self.mem_ref(&operands[shared], Space::Shared)?;
        self.bulk(place, shared, operands.get(2), ranks)
    }

    /// `cp.reduce.async.bulk`: `[to], [from], bytes`, to global memory.
    pub(crate) fn bulk_reduce(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, _) = self.without_hints(mods, operands)?;
        if direction(mods)? != To::Global {
            return Err("a reduction to shared memory is not supported".to_string());
        }
        expect_count(operands, 3)?;
        mods.take("noftz");
        let name = take_reduction(mods)?;
        let dtype = mods.dtype()?;
        let reduce = Some((atomic_fn(name, dtype)?, dtype.bytes()));
        let at = self.mem_ref(&operands[0], Space::Global)?;
        let bytes = self.source(&operands[2], DType::B32)?;
        let shared = self.mem_ref(&operands[1], Space::Shared)?;
        let copy = BulkCopy { global: BulkPlace::Linear { at, bytes }, shared, mbarrier: None, reduce, ranks: None };
        Ok(bulk(BulkOp::Start(copy)))
    }

    fn bulk(
        &mut self,
        global: BulkPlace,
        shared: MemRef,
        mbarrier: Option<&Operand>,
        ranks: Option<Reg>,
    ) -> Decoded<Op> {
        let mbarrier = match mbarrier {
            Some(operand) => Some(self.mem_ref(operand, Space::Shared)?),
            None => None,
        };
        Ok(bulk(BulkOp::Start(BulkCopy { global, shared, mbarrier, reduce: None, ranks })))
    }

    /// The operands without a cache policy and the ranks of a multicast, and these.
    fn without_hints<'o>(
        &mut self,
        mods: &mut Mods<'_>,
        operands: &'o [Operand],
    ) -> Decoded<(&'o [Operand], Option<Reg>)> {
        // The group says in which CTAs the mbarrier may be; here it may be in any.
        mods.find(|part| part.starts_with("cta_group::").then_some(()));
        let mut rest = operands;
        if mods.take("L2::cache_hint") {
            rest = rest.split_last().map_or(rest, |(_, rest)| rest);
        }
        if !mods.take("multicast::cluster") {
            return Ok((rest, None));
        }
        let (ranks, rest) = rest.split_last().ok_or_else(|| "the ranks of the multicast are missing".to_string())?;
        Ok((rest, Some(self.source(ranks, DType::new(Kind::Bits, 16))?)))
    }

    /// `[map, {coordinates}]`; the address of the map is generic.
    fn tensor_place(&mut self, operand: &Operand, rank: usize) -> Decoded<BulkPlace> {
        let Operand::Address { base, offset, extra } = operand else {
            return Err("expected `[map, {coordinates}]`".to_string());
        };
        let items = match extra.as_slice() {
            [Operand::Vector(items)] if items.len() == rank => items,
            _ => return Err(format!("expected {rank} coordinates")),
        };
        let coordinates =
            items.iter().map(|item| self.source(item, DType::B32)).collect::<Decoded<Vec<Reg>>>()?.into_boxed_slice();
        let address = Operand::Address { base: base.clone(), offset: *offset, extra: Vec::new() };
        Ok(BulkPlace::Tensor { map: self.mem_ref(&address, Space::Generic)?, coordinates })
    }

    pub(crate) fn bulk_wait(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 1)?;
        let reads_only = mods.take("read");
        Ok(bulk(BulkOp::Wait { pending: super::copy::immediate(&operands[0])?, reads_only }))
    }
}

/// An instruction on bulk copies.
pub(super) fn bulk(op: BulkOp) -> Op {
    Op::Bulk(Box::new(op))
}

/// Takes the spaces and the way of completion.
fn direction(mods: &mut Mods<'_>) -> Decoded<To> {
    let global = mods.take("global");
    let cluster = mods.take("shared::cluster");
    let shared = mods.take("shared::cta") || mods.take("shared");
    if mods.take("mbarrier::complete_tx::bytes") {
        match (global, cluster, shared) {
            (true, ..) if cluster || shared => return Ok(To::Shared),
            (false, true, true) => return Ok(To::Cluster),
            _ => {}
        }
    }
    if mods.take("bulk_group") && global && shared {
        return Ok(To::Global);
    }
    Err("a copy between these spaces is not supported".to_string())
}

fn take_rank(mods: &mut Mods<'_>) -> Decoded<usize> {
    let rank = mods.find(|part| match part {
        "1d" => Some(1),
        "2d" => Some(2),
        "3d" => Some(3),
        "4d" => Some(4),
        "5d" => Some(5),
        _ => None,
    });
    rank.ok_or_else(|| "the number of dimensions is missing".to_string())
}

fn take_reduction<'a>(mods: &mut Mods<'a>) -> Decoded<&'a str> {
    let name =
        mods.find(|part| matches!(part, "add" | "min" | "max" | "inc" | "dec" | "and" | "or" | "xor").then_some(part));
    name.ok_or_else(|| "the operation is missing".to_string())
}
