//! Bulk copies and tensor copies (PTX ISA, section 9.7.9.25.4 and 9.7.9.25.5).

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::memory::atomic_fn;
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::isa::{DType, Kind, Scope, Space};
use crate::op::{BulkCopy, BulkOp, BulkPlace, FenceOrder, MemRef, Op, Reduction, Reg, TensorMode};
use crate::ptx::ast::Operand;
use crate::tensor_map::{MapField, TENSOR_MAP_BYTES};

/// The direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Shared,
    Global,
    /// From the own shared memory to that of a CTA of the cluster.
    Cluster,
}

/// To which CTAs a copy goes, and whether its bytes count in CTAs of their pairs.
#[derive(Clone, Copy)]
struct Multicast {
    ranks: Option<Reg>,
    counts_in_pairs: bool,
}

impl Decoder<'_> {
    /// `cp.async.bulk`: `[to], [from], bytes, [mbarrier]` or `[to], [from], bytes`.
    pub(crate) fn bulk_copy(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, multicast) = self.without_hints(mods, operands)?;
        let to = direction(mods)?;
        let has_mask = to == To::Global && mods.take("cp_mask");
        expect_count(operands, if to == To::Global && !has_mask { 3 } else { 4 })?;
        let bytes = self.source(&operands[2], DType::B32)?;
        let (place, shared) = match to {
            To::Shared => (BulkPlace::Linear { at: self.mem_ref(&operands[1], Space::Global)?, bytes }, 0),
            To::Global => (BulkPlace::Linear { at: self.mem_ref(&operands[0], Space::Global)?, bytes }, 1),
            To::Cluster => (BulkPlace::Shared { at: self.mem_ref(&operands[1], Space::Shared)?, bytes }, 0),
        };
        let shared = self.mem_ref(&operands[shared], Space::Shared)?;
        if has_mask {
            let byte_mask = Some(self.source(&operands[3], DType::new(Kind::Bits, 16))?);
            let Multicast { ranks, counts_in_pairs } = multicast;
            let copy =
                BulkCopy { global: place, shared, mbarrier: None, reduce: None, ranks, counts_in_pairs, byte_mask };
            return Ok(bulk(BulkOp::Start(copy)));
        }
        self.bulk(place, shared, operands.get(3), multicast)
    }

    /// `cp.async.bulk.tensor`: `[to], [map, {coordinates}], [mbarrier], {offsets}` or `[map, {coordinates}], [from]`.
    pub(crate) fn tensor_copy(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, multicast) = self.without_hints(mods, operands)?;
        let rank = take_rank(mods)?;
        let mode = take_mode(mods, rank)?;
        let to = direction(mods)?;
        let has_offsets = to == To::Shared && mode == TensorMode::Im2col;
        expect_count(operands, if to == To::Global { 2 } else { 3 + usize::from(has_offsets) })?;
        let (global, shared) = if to == To::Shared { (1, 0) } else { (0, 1) };
        let offsets = if has_offsets { self.offsets(&operands[3], rank)? } else { Box::default() };
        let place = self.tensor_place(&operands[global], (rank, mode), offsets)?;
        let shared = self.mem_ref(&operands[shared], Space::Shared)?;
        self.bulk(place, shared, operands.get(2), multicast)
    }

    /// `cp.reduce.async.bulk.tensor`: `[map, {coordinates}], [from]`.
    pub(crate) fn tensor_reduce(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, _) = self.without_hints(mods, operands)?;
        let rank = take_rank(mods)?;
        let mode = take_mode(mods, rank)?;
        if direction(mods)? != To::Global || mode == TensorMode::Rows {
            return Err("a reduction is to global memory, of a box or of pixels".to_string());
        }
        expect_count(operands, 2)?;
        let reduce = Some(Reduction::OfMap(take_reduction(mods)?.into()));
        let global = self.tensor_place(&operands[0], (rank, mode), Box::default())?;
        let shared = self.mem_ref(&operands[1], Space::Shared)?;
        let copy =
            BulkCopy { global, shared, mbarrier: None, reduce, ranks: None, counts_in_pairs: false, byte_mask: None };
        Ok(bulk(BulkOp::Start(copy)))
    }

    /// `cp.reduce.async.bulk`: `[to], [from], bytes` to global memory, `[to], [from], bytes, [mbarrier]` within a cluster.
    pub(crate) fn bulk_reduce(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let (operands, _) = self.without_hints(mods, operands)?;
        let to = direction(mods)?;
        expect_count(operands, if to == To::Cluster { 4 } else { 3 })?;
        mods.take("noftz");
        let name = take_reduction(mods)?;
        let dtype = mods.dtype()?;
        let is_plain = !dtype.is_float() && dtype.width() == 32 || (name == "add" && dtype.width() == 64);
        let reduce = Some(Reduction::Typed((atomic_fn(name, dtype)?, dtype.bytes())));
        let bytes = self.source(&operands[2], DType::B32)?;
        let (global, shared) = match to {
            To::Global => (BulkPlace::Linear { at: self.mem_ref(&operands[0], Space::Global)?, bytes }, 1),
            To::Cluster if is_plain => (BulkPlace::Shared { at: self.mem_ref(&operands[1], Space::Shared)?, bytes }, 0),
            To::Cluster => return Err("a reduction to shared memory is of integers of 32 bits, or adds 64".to_string()),
            To::Shared => return Err("a reduction to shared memory reads shared memory".to_string()),
        };
        let shared = self.mem_ref(&operands[shared], Space::Shared)?;
        let mbarrier = match operands.get(3) {
            Some(operand) => Some(self.mem_ref(operand, Space::Shared)?),
            None => None,
        };
        Ok(bulk(BulkOp::Start(BulkCopy {
            global,
            shared,
            mbarrier,
            reduce,
            ranks: None,
            counts_in_pairs: false,
            byte_mask: None,
        })))
    }

    /// `st.async` and `red.async`: `[to], value, [mbarrier]`.
    pub(crate) fn async_store(&mut self, mods: &mut Mods<'_>, operands: &[Operand], reduces: bool) -> Decoded<Op> {
        mods.drop_all(|part| matches!(part, "weak" | "relaxed" | "cluster"));
        if !mods.take("shared::cluster") || !mods.take("mbarrier::complete_tx::bytes") {
            return Err(
                "only stores to the shared memory of the cluster that an mbarrier counts are supported".to_string()
            );
        }
        let count = mods.find(|part| part.strip_prefix('v').and_then(|count| count.parse::<usize>().ok()));
        let name = if reduces { Some(take_reduction(mods)?) } else { None };
        let dtype = mods.dtype()?;
        expect_count(operands, 3)?;
        let is_wide = dtype.width() == 64 && (name.is_none() || name == Some("add"));
        if !is_wide && dtype.width() != 32 || reduces && dtype.is_float() {
            return Err("values of 32 bits, and of 64 bits that are stored or added, are supported".to_string());
        }
        let reduce = match name {
            Some(name) => Some(atomic_fn(name, dtype)?),
            None => None,
        };
        let values = match (&operands[1], count) {
            (value, None) => Box::new([self.source(value, dtype)?]),
            (Operand::Vector(items), Some(count @ (2 | 4))) if items.len() == count && !reduces => {
                items.iter().map(|item| self.source(item, dtype)).collect::<Decoded<Box<[Reg]>>>()?
            }
            _ => return Err("the values do not fit the vector".to_string()),
        };
        let (at, mbarrier) = (self.mem_ref(&operands[0], Space::Shared)?, self.mem_ref(&operands[2], Space::Shared)?);
        Ok(bulk(BulkOp::Store { at, values, size: dtype.bytes(), mbarrier, reduce }))
    }

    /// `tensormap.replace`: `[map], value` or `[map], dimension, value`.
    pub(crate) fn replace_in_map(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        mods.take("tile");
        let space = mods.find(Space::parse).unwrap_or(Space::Generic);
        mods.take("b1024");
        let field = mods.find(|part| Some(part).filter(|part| *part != "b32" && *part != "b64")).unwrap_or_default();
        let dtype = mods.dtype()?;
        let has_dimension = matches!(field, "box_dim" | "global_dim" | "global_stride" | "element_stride");
        expect_count(operands, 2 + usize::from(has_dimension))?;
        let at = if has_dimension { super::copy::immediate(&operands[1])? as usize } else { 0 };
        let most = if field == "global_stride" { 3 } else { 4 };
        if at > most {
            return Err(format!("`{field}` has the dimensions 0 to {most}"));
        }
        let field = match field {
            "global_address" => MapField::Address,
            "rank" => MapField::Rank,
            "box_dim" => MapField::Box(at),
            "global_dim" => MapField::Dim(at),
            "global_stride" => MapField::Stride(at),
            "element_stride" => MapField::ElementStride(at),
            "elemtype" => MapField::Element,
            "interleave_layout" => MapField::Interleave,
            "swizzle_mode" => MapField::Swizzle,
            "swizzle_atomicity" => MapField::Atomicity,
            "fill_mode" => MapField::Fill,
            _ => return Err(format!("a tensor map has no field `{field}`")),
        };
        let map = self.mem_ref(&operands[0], space)?;
        let value = self.source(&operands[operands.len() - 1], dtype)?;
        Ok(bulk(BulkOp::Replace { map, field, value }))
    }

    /// `tensormap.cp_fenceproxy`: `[to], [from], 128`.
    pub(crate) fn copy_map(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Vec<Op>> {
        for word in ["global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"] {
            if !mods.take(word) {
                return Err(format!("`.{word}` is missing"));
            }
        }
        let scope = mods.find(Scope::parse).ok_or_else(|| "the scope is missing".to_string())?;
        expect_count(operands, 3)?;
        if super::copy::immediate(&operands[2])? != TENSOR_MAP_BYTES as u32 {
            return Err(format!("a tensor map has {TENSOR_MAP_BYTES} bytes"));
        }
        let (to, from) = (self.mem_ref(&operands[0], Space::Global)?, self.mem_ref(&operands[1], Space::Shared)?);
        let release = Op::Fence { scope, order: FenceOrder::Release };
        Ok(vec![bulk(BulkOp::CopyMap { to, from, scope }), release])
    }

    fn bulk(
        &mut self,
        global: BulkPlace,
        shared: MemRef,
        mbarrier: Option<&Operand>,
        Multicast { ranks, counts_in_pairs }: Multicast,
    ) -> Decoded<Op> {
        let mbarrier = match mbarrier {
            Some(operand) => Some(self.mem_ref(operand, Space::Shared)?),
            None => None,
        };
        let copy = BulkCopy { global, shared, mbarrier, reduce: None, ranks, counts_in_pairs, byte_mask: None };
        Ok(bulk(BulkOp::Start(copy)))
    }

    /// The operands without a cache policy and the ranks of a multicast, and these.
    fn without_hints<'o>(
        &mut self,
        mods: &mut Mods<'_>,
        operands: &'o [Operand],
    ) -> Decoded<(&'o [Operand], Multicast)> {
        // The group of a copy to one CTA tells in which CTAs the mbarrier may be; here it may be in any.
        let counts_in_pairs = mods.take("cta_group::2");
        mods.take("cta_group::1");
        let mut rest = operands;
        if mods.take("L2::cache_hint") {
            rest = rest.split_last().map_or(rest, |(_, rest)| rest);
        }
        if !mods.take("multicast::cluster") {
            return Ok((rest, Multicast { ranks: None, counts_in_pairs }));
        }
        let (ranks, rest) = rest.split_last().ok_or_else(|| "the ranks of the multicast are missing".to_string())?;
        let ranks = Some(self.source(ranks, DType::new(Kind::Bits, 16))?);
        Ok((rest, Multicast { ranks, counts_in_pairs }))
    }

    /// `[map, {coordinates}]`; the address of the map is generic.
    fn tensor_place(
        &mut self,
        operand: &Operand,
        (rank, mode): (usize, TensorMode),
        offsets: Box<[Reg]>,
    ) -> Decoded<BulkPlace> {
        let count = if mode == TensorMode::Rows { 5 } else { rank };
        let Operand::Address { base, offset, extra } = operand else {
            return Err("expected `[map, {coordinates}]`".to_string());
        };
        let items = match extra.as_slice() {
            [Operand::Vector(items)] if items.len() == count => items,
            _ => return Err(format!("expected {count} coordinates")),
        };
        let coordinates =
            items.iter().map(|item| self.source(item, DType::B32)).collect::<Decoded<Vec<Reg>>>()?.into_boxed_slice();
        let address = Operand::Address { base: base.clone(), offset: *offset, extra: Vec::new() };
        Ok(BulkPlace::Tensor { map: self.mem_ref(&address, Space::Generic)?, coordinates, mode, offsets })
    }

    /// The offsets of a copy of pixels, one for each dimension of space.
    fn offsets(&mut self, operand: &Operand, rank: usize) -> Decoded<Box<[Reg]>> {
        match operand {
            Operand::Vector(items) if items.len() + 2 == rank => {
                items.iter().map(|item| self.source(item, DType::new(Kind::Bits, 16))).collect()
            }
            _ => Err(format!("expected {} offsets", rank.saturating_sub(2))),
        }
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

fn take_mode(mods: &mut Mods<'_>, rank: usize) -> Decoded<TensorMode> {
    let mode = mods.find(|part| match part {
        "tile" => Some(TensorMode::Tile),
        "tile::gather4" | "tile::scatter4" => Some(TensorMode::Rows),
        "im2col" | "im2col_no_offs" => Some(TensorMode::Im2col),
        _ => None,
    });
    match mode.unwrap_or(TensorMode::Tile) {
        TensorMode::Rows if rank != 2 => Err("four rows are those of a tensor of two dimensions".to_string()),
        TensorMode::Im2col if rank < 3 => Err("images have 3 to 5 dimensions".to_string()),
        mode => Ok(mode),
    }
}

fn take_reduction<'a>(mods: &mut Mods<'a>) -> Decoded<&'a str> {
    let name =
        mods.find(|part| matches!(part, "add" | "min" | "max" | "inc" | "dec" | "and" | "or" | "xor").then_some(part));
    name.ok_or_else(|| "the operation is missing".to_string())
}
