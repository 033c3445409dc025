//! Decodes operands to register and predicate indices.

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::symbol::Symbol;
use crate::isa::{DType, Space, mask};
use crate::op::{Guard, Reg};
use crate::program::{Axis, Preset};
use crate::ptx::ast::{Number, Operand};
use crate::ptx::variable::number_bits;

/// The operand at index `at`.
pub(crate) fn nth(operands: &[Operand], at: usize) -> Decoded<&Operand> {
    operands.get(at).ok_or_else(|| format!("operand {} is missing", at + 1))
}

/// Fails unless there are exactly `count` operands.
pub(crate) fn expect_count(operands: &[Operand], count: usize) -> Decoded<()> {
    if operands.len() == count {
        return Ok(());
    }
    Err(format!("wrong number of operands: expected {count}, found {}", operands.len()))
}

impl Decoder<'_> {
    /// The register of a value operand of type `dtype`.
    pub(crate) fn source(&mut self, operand: &Operand, dtype: DType) -> Decoded<Reg> {
        match operand {
            Operand::Number(number) => self.literal(*number, dtype),
            Operand::Word(name) => self.named_source(name, 0),
            Operand::Sum(name, offset) => self.named_source(name, *offset),
            Operand::Vector(items) if items.len() == 1 => self.source(&items[0], dtype),
            _ => Err("this form of operand is not supported here".to_string()),
        }
    }

    fn literal(&mut self, number: Number, dtype: DType) -> Decoded<Reg> {
        match unfit(number, dtype) {
            Some(reason) => Err(reason.to_string()),
            None => Ok(self.constant(number_bits(number, dtype) & mask(dtype.width()))),
        }
    }

    fn named_source(&mut self, name: &str, offset: i64) -> Decoded<Reg> {
        if let Some(preset) = special(name) {
            return Ok(self.preset(preset));
        }
        if name == "WARP_SZ" {
            return Ok(self.constant(32));
        }
        if name == "_" {
            return Ok(self.constant(0));
        }
        match self.lookup(name) {
            Some(Symbol::Register(reg, _)) if offset == 0 => Ok(reg),
            Some(Symbol::Variable(Space::Shared, address)) => {
                Ok(self.preset(Preset::Shared(address.wrapping_add(offset as u64))))
            }
            Some(Symbol::Variable(_, address)) => Ok(self.constant(address.wrapping_add(offset as u64))),
            Some(Symbol::DynamicShared) if offset == 0 => Ok(self.preset(Preset::DynamicShared)),
            Some(Symbol::Predicate(_)) => Err(format!("predicate `{name}` where a value is expected")),
            Some(_) => Err(format!("`{name}` cannot be used as a value")),
            None => Err(self.unknown(name)),
        }
    }

    /// The destination register; `_` is a new register that is never read.
    pub(crate) fn dest(&mut self, operand: &Operand) -> Decoded<Reg> {
        self.dest_with_type(operand).map(|(reg, _)| reg)
    }

    /// The destination register with its declared type.
    pub(crate) fn dest_with_type(&mut self, operand: &Operand) -> Decoded<(Reg, DType)> {
        match operand {
            Operand::Word(name) if name == "_" => Ok((self.new_register(), DType::B64)),
            Operand::Word(name) => match self.lookup(name) {
                Some(Symbol::Register(reg, dtype)) => Ok((reg, dtype)),
                Some(_) => Err(format!("`{name}` is not a register")),
                None => Err(self.unknown(name)),
            },
            Operand::Vector(items) if items.len() == 1 => self.dest_with_type(&items[0]),
            _ => Err("this form of destination is not supported here".to_string()),
        }
    }

    /// A predicate operand; a number is true unless it is zero.
    pub(crate) fn predicate(&mut self, operand: &Operand) -> Decoded<Guard> {
        match operand {
            Operand::Not(inner) => {
                let guard = self.predicate(inner)?;
                Ok(Guard { index: guard.index, negate: !guard.negate })
            }
            Operand::Number(Number::Integer(bits)) => {
                // No instruction writes this predicate, so it is false.
                let index = self.new_predicate();
                Ok(Guard { index, negate: *bits != 0 })
            }
            Operand::Word(name) => match self.lookup(name) {
                Some(Symbol::Predicate(index)) => Ok(Guard { index, negate: false }),
                Some(_) => Err(format!("`{name}` is not a predicate")),
                None => Err(self.unknown(name)),
            },
            _ => Err("this form of predicate is not supported here".to_string()),
        }
    }

    /// A predicate destination; `_` is a new predicate that is never read.
    pub(crate) fn predicate_dest(&mut self, operand: &Operand) -> Decoded<u32> {
        match operand {
            Operand::Word(name) if name == "_" => Ok(self.new_predicate()),
            Operand::Word(name) => match self.lookup(name) {
                Some(Symbol::Predicate(index)) => Ok(index),
                Some(_) => Err(format!("`{name}` is not a predicate")),
                None => Err(self.unknown(name)),
            },
            _ => Err("this form of predicate is not supported here".to_string()),
        }
    }
}

/// Why a number cannot be an operand of a type (PTX ISA, section 4.5): integers and floating-point numbers are not converted.
fn unfit(number: Number, dtype: DType) -> Option<&'static str> {
    let is_integer = matches!(number, Number::Integer(_));
    if dtype.is_float() && (dtype.bits < 32 || dtype.count > 1) {
        return Some("there are no constants of this type");
    }
    match (dtype.is_float(), dtype.is_integer()) {
        (true, _) if is_integer => Some("an integer cannot be an operand of a floating-point type; write `1.0` for 1"),
        (_, true) if !is_integer => Some("a floating-point number cannot be an operand of an integer type"),
        _ => None,
    }
}

/// Special registers whose value never changes (PTX ISA, section 10).
fn special(name: &str) -> Option<Preset> {
    let axis = |suffix: &str| match suffix {
        "x" => Some(Axis::X),
        "y" => Some(Axis::Y),
        "z" => Some(Axis::Z),
        _ => None,
    };
    if let Some((base, suffix)) = name.split_once('.') {
        let axis = axis(suffix)?;
        return match base {
            "%tid" => Some(Preset::Tid(axis)),
            "%ntid" => Some(Preset::Ntid(axis)),
            "%ctaid" => Some(Preset::Ctaid(axis)),
            "%nctaid" => Some(Preset::Nctaid(axis)),
            "%clusterid" => Some(Preset::ClusterId(axis)),
            "%nclusterid" => Some(Preset::ClusterCount(axis)),
            "%cluster_ctaid" => Some(Preset::ClusterCta(axis)),
            "%cluster_nctaid" => Some(Preset::ClusterSize(axis)),
            _ => None,
        };
    }
    Some(match name {
        "%laneid" => Preset::LaneId,
        "%warpid" => Preset::WarpId,
        "%nwarpid" => Preset::WarpCount,
        "%cluster_ctarank" => Preset::ClusterRank,
        "%cluster_nctarank" => Preset::ClusterRanks,
        "%smid" => Preset::Value(0),
        "%nsmid" => Preset::Value(1),
        "%gridid" => Preset::GridId,
        "%lanemask_eq" => Preset::LaneMaskEq,
        "%lanemask_lt" => Preset::LaneMaskLt,
        "%lanemask_le" => Preset::LaneMaskLe,
        "%lanemask_gt" => Preset::LaneMaskGt,
        "%lanemask_ge" => Preset::LaneMaskGe,
        "%dynamic_smem_size" => Preset::DynamicSharedBytes,
        "%total_smem_size" => Preset::TotalSharedBytes,
        "%reserved_smem_offset_0" | "%reserved_smem_offset_begin" => Preset::Value(0),
        _ => return None,
    })
}
