//! `tcgen05` (PTX ISA, section 9.7.16).

use crate::decode::copy::immediate;
use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::matrix::take_sync_aligned;
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::isa::{DType, Kind, Space};
use crate::op::{Left, MemRef, Op, ProductKind, TensorCopy, TensorMma, TensorMove, TensorOp, TensorShape};
use crate::ptx::ast::Operand;

/// Largest `scale-input-d`.
const MOST_SHIFT: u32 = 15;

impl Decoder<'_> {
    pub(crate) fn tensor_allocate(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_group(mods)?;
        take_sync_aligned(mods)?;
        mods.take("b32");
        let is_shared = mods.take("shared::cta") || mods.take("shared");
        expect_count(operands, 2)?;
        let at = self.mem_ref(&operands[0], if is_shared { Space::Shared } else { Space::Generic })?;
        Ok(tensor(TensorOp::Allocate { at, columns: self.source(&operands[1], DType::B32)? }))
    }

    pub(crate) fn tensor_free(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_group(mods)?;
        take_sync_aligned(mods)?;
        mods.take("b32");
        expect_count(operands, 2)?;
        let address = self.source(&operands[0], DType::B32)?;
        Ok(tensor(TensorOp::Free { address, columns: self.source(&operands[1], DType::B32)? }))
    }

    /// An aligned instruction without operands.
    pub(crate) fn tensor_aligned(&mut self, mods: &mut Mods<'_>, op: TensorOp) -> Decoded<Op> {
        if matches!(op, TensorOp::Relinquish) {
            take_group(mods)?;
        }
        take_sync_aligned(mods)?;
        Ok(tensor(op))
    }

    pub(crate) fn tensor_move(&mut self, mods: &mut Mods<'_>, operands: &[Operand], is_load: bool) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        mods.take("b32");
        let name = mods.find(|part| part.starts_with("16x").then_some(part).or((part == "32x32b").then_some(part)));
        let is_split = name == Some("16x32bx2");
        expect_count(operands, if is_split { 3 } else { 2 })?;
        let (address, list, split) = match (is_load, is_split) {
            (true, false) => (&operands[1], &operands[0], None),
            (true, true) => (&operands[1], &operands[0], Some(&operands[2])),
            (false, false) => (&operands[0], &operands[1], None),
            (false, true) => (&operands[0], &operands[2], Some(&operands[1])),
        };
        let second = split.map_or(Ok(0), immediate)?;
        let (shape, each) = match name {
            Some("32x32b") => (TensorShape::S32x32b, 1),
            Some("16x64b") => (TensorShape::S16x64b, 1),
            Some("16x128b") => (TensorShape::S16x128b, 2),
            Some("16x256b") => (TensorShape::S16x256b, 4),
            Some("16x32bx2") => (TensorShape::S16x32bx2 { second }, 1),
            _ => return Err("this shape is not supported".to_string()),
        };
        let count = mods.find(|part| part.strip_prefix('x').and_then(|count| count.parse::<u32>().ok()));
        let count = count.filter(|count| count.is_power_of_two() && count * each <= 128);
        let count = count.ok_or_else(|| "the number of repetitions does not fit the shape".to_string())?;
        let packs = mods.take(if is_load { "pack::16b" } else { "unpack::16b" });
        let regs = self.registers(list, (count * each) as usize, is_load, DType::B32)?;
        let moved = TensorMove { at: self.tensor_address(address)?, shape, count, packs, regs };
        Ok(tensor(if is_load { TensorOp::Load(moved) } else { TensorOp::Store(moved) }))
    }

    /// An address in tensor memory: a lane and a column.
    fn tensor_address(&mut self, operand: &Operand) -> Decoded<MemRef> {
        self.mem_ref(operand, Space::Shared)
    }

    pub(crate) fn tensor_mma(&mut self, mods: &mut Mods<'_>, operands: &[Operand], is_stationary: bool) -> Decoded<Op> {
        let is_pair = take_group(mods)?;
        mods.drop_all(|part| part.starts_with("collector::"));
        let kind = take_kind(mods)?;
        let is_scaled = matches!(kind, ProductKind::Scaled { .. });
        let (head, mut rest) = operands.split_at_checked(4).ok_or_else(|| "operands are missing".to_string())?;
        let d = self.tensor_address(&head[0])?;
        let a = match &head[1] {
            at @ Operand::Address { .. } => Left::Tensor(self.tensor_address(at)?),
            descriptor => Left::Shared(self.source(descriptor, DType::B64)?),
        };
        let (b, descriptor) = (self.source(&head[2], DType::B64)?, self.source(&head[3], DType::B32)?);
        let mut scales = None;
        if let ([of_a, of_b, after @ ..], true) = (rest, is_scaled) {
            scales = Some((self.tensor_address(of_a)?, self.tensor_address(of_b)?));
            rest = after;
        }
        let mut disabled = Vec::new();
        if let [Operand::Vector(masks), after @ ..] = rest {
            if masks.len() != if is_pair { 8 } else { 4 } {
                return Err("the lanes of a CTA have four masks".to_string());
            }
            for mask in masks {
                disabled.push(self.source(mask, DType::B32)?);
            }
            rest = after;
        }
        let (accumulates, shift) = match rest {
            [accumulates] => (accumulates, 0),
            [accumulates, shift] if matches!(kind, ProductKind::F16 | ProductKind::Tf32) && !is_stationary => {
                (accumulates, immediate(shift)?)
            }
            _ => return Err("wrong number of operands".to_string()),
        };
        if is_scaled != scales.is_some() || shift > MOST_SHIFT {
            return Err("these operands do not fit the kind".to_string());
        }
        if is_stationary && (is_pair || is_scaled) {
            return Err("`.ws` is for one CTA, without scale factors".to_string());
        }
        let (accumulates, disabled) = (self.predicate(accumulates)?, disabled.into_boxed_slice());
        let mma = TensorMma { is_pair, kind, is_stationary, d, a, b, descriptor, scales, disabled, accumulates, shift };
        Ok(tensor(TensorOp::Mma(mma)))
    }

    pub(crate) fn tensor_copy_in(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let is_pair = take_group(mods)?;
        let all = [0, 32, 64, 96];
        let shape = mods.find(|part| part.ends_with('b').then_some(part));
        let spread = mods.find(|part| part.strip_prefix("warp"));
        let (rows, bytes, quarters, lanes) = match (shape, spread) {
            (Some("128x256b"), None) => (128, 32, all, 32),
            (Some("4x256b"), None) => (4, 32, [0, 1, 2, 3], 1),
            (Some("128x128b"), None) => (128, 16, all, 32),
            (Some("64x128b"), Some("x2::02_13")) => (64, 16, [0, 32, 0, 32], 32),
            (Some("64x128b"), Some("x2::01_23")) => (64, 16, [0, 0, 32, 32], 32),
            (Some("32x128b"), Some("x4")) => (32, 16, [0; 4], 32),
            _ => return Err("this shape is not supported".to_string()),
        };
        expect_count(operands, 2)?;
        let (at, from) = (self.tensor_address(&operands[0])?, self.source(&operands[1], DType::B64)?);
        Ok(tensor(TensorOp::Copy { at, from, shape: TensorCopy { rows, bytes, is_pair, quarters, lanes } }))
    }

    pub(crate) fn tensor_shift(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let is_pair = take_group(mods)?;
        if !mods.take("down") {
            return Err("the direction `.down` is missing".to_string());
        }
        expect_count(operands, 1)?;
        Ok(tensor(TensorOp::Shift { at: self.tensor_address(&operands[0])?, is_pair }))
    }

    pub(crate) fn tensor_commit(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_group(mods)?;
        if !mods.take("mbarrier::arrive::one") {
            return Err("the arrival is missing".to_string());
        }
        mods.take("b64");
        let is_multicast = mods.take("multicast::cluster");
        expect_count(operands, if is_multicast { 2 } else { 1 })?;
        let is_shared = mods.take("shared::cluster");
        let at = self.mem_ref(&operands[0], if is_shared { Space::Shared } else { Space::Generic })?;
        let ranks = match operands.get(1) {
            Some(ranks) => Some(self.source(ranks, DType::new(Kind::Bits, 16))?),
            None => None,
        };
        Ok(tensor(TensorOp::Commit { at, ranks }))
    }
}

pub(super) fn tensor(op: TensorOp) -> Op {
    Op::Tensor(Box::new(op))
}

/// Takes the group: whether it is a pair of CTAs.
fn take_group(mods: &mut Mods<'_>) -> Decoded<bool> {
    match (mods.take("cta_group::1"), mods.take("cta_group::2")) {
        (true, false) => Ok(false),
        (false, true) => Ok(true),
        _ => Err("the `.cta_group` is missing".to_string()),
    }
}

fn take_kind(mods: &mut Mods<'_>) -> Decoded<ProductKind> {
    let name = mods.find(|part| part.strip_prefix("kind::"));
    let plain = match name {
        Some("f16") => Some(ProductKind::F16),
        Some("tf32") => Some(ProductKind::Tf32),
        Some("f8f6f4") => Some(ProductKind::F8f6f4),
        Some("i8") => Some(ProductKind::I8),
        _ => None,
    };
    if let Some(kind) = plain {
        return Ok(kind);
    }
    let vector = mods.find(|part| {
        (part.starts_with("scale_vec::") || part.starts_with("block1") || part == "block32").then_some(part)
    });
    if !mods.take("block_scale") {
        return Err("this kind is not supported without `.block_scale`".to_string());
    }
    let (is_four_bit, block) = match (name, vector) {
        (Some("mxf8f6f4"), None | Some("scale_vec::1X" | "block32")) => (false, 32),
        (Some("mxf4"), None | Some("scale_vec::2X" | "block32")) => (true, 32),
        (Some("mxf4nvf4"), Some("scale_vec::2X" | "block32")) => (true, 32),
        (Some("mxf4nvf4"), Some("scale_vec::4X" | "block16")) => (true, 16),
        _ => return Err("the blocks of the scale factors do not fit the kind".to_string()),
    };
    Ok(ProductKind::Scaled { is_four_bit, block })
}
