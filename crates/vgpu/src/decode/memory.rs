//! Loads, stores, atomics and address conversions.

use std::ops::Range;

use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::operand::{expect_count, nth};
use crate::decode::symbol::Symbol;
use crate::float::{BF16, F16};
use crate::isa::{DType, Kind, Scope, Space, Strong};
use crate::op::{
    AtomFn, Atomic, BulkReduce, FloatType, IntegerType, Load, MemRef, NumberType, Op, Reg, ScalarOp, Store,
};
use crate::program::Preset;
use crate::ptx::ast::Operand;
use crate::tensor_map::MapElement;

/// Cache operators and hints, which do not affect results.
fn is_hint(part: &str) -> bool {
    part.starts_with("L1::")
        || part.starts_with("L2::")
        || matches!(part, "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "nc" | "weak" | "unified")
}

/// The operands without the cache policy, which is the last one; it does not affect the result.
fn without_policy<'o>(mods: &mut Mods<'_>, operands: &'o [Operand]) -> &'o [Operand] {
    match operands.split_last() {
        Some((_, rest)) if mods.take("L2::cache_hint") => rest,
        _ => operands,
    }
}

/// Takes the ordering and the scope; `None` for a weak access. Volatile accesses are relaxed in the scope of the system
/// (PTX ISA, section 8.4).
fn strong(mods: &mut Mods<'_>) -> Option<Strong> {
    let order = mods.find(|part| {
        Some(match part {
            "volatile" | "mmio" | "relaxed" => (false, false),
            "acquire" => (true, false),
            "release" => (false, true),
            "acq_rel" => (true, true),
            _ => return None,
        })
    });
    // `ld.mmio.relaxed.sys` has both.
    mods.take("mmio");
    let scope = mods.find(Scope::parse);
    let (acquires, releases) = order?;
    Some(Strong { scope: scope.unwrap_or(Scope::Sys), acquires, releases })
}

impl Decoder<'_> {
    pub(crate) fn load(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let operands = without_policy(mods, operands);
        expect_count(operands, 2)?;
        let (space, dtype, strong) = access_mods(mods)?;
        let mut regs = Vec::new();
        let mut width = 64;
        let count = vector_count(mods);
        for item in elements(count, &operands[0])? {
            let (reg, declared) = self.dest_with_type(item)?;
            width = declared.width();
            if dtype.bits == 128 && declared.bits != 128 {
                return Err("a 128-bit load needs a `.b128` register".to_string());
            }
            push_element(&mut regs, reg, dtype);
        }
        let at = self.mem_ref(&operands[1], space)?;
        let extend = dtype.is_signed().then_some(width.min(64));
        let size = dtype.bytes().min(8);
        let load = Load { at, regs: regs.into_boxed_slice(), size, extend, strong };
        check_size(load.regs.len(), size)?;
        Ok(Op::Load(Box::new(load)))
    }

    pub(crate) fn store(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        let operands = without_policy(mods, operands);
        expect_count(operands, 2)?;
        let (space, dtype, strong) = access_mods(mods)?;
        let at = self.mem_ref(&operands[0], space)?;
        let (mut regs, mut runs) = (Vec::new(), Vec::<Range<usize>>::new());
        let count = vector_count(mods);
        for item in elements(count, &operands[1])? {
            let begins = regs.len();
            let reg = self.source(item, dtype)?;
            if dtype.bits == 128 && !self.is_wide_register(item) {
                return Err("a 128-bit store needs a `.b128` register".to_string());
            }
            push_element(&mut regs, reg, dtype);
            let is_written = !matches!(item, Operand::Word(name) if name == "_");
            match runs.last_mut().filter(|run| run.end == begins) {
                Some(run) if is_written => run.end = regs.len(),
                None if is_written => runs.push(begins..regs.len()),
                Some(_) | None => {}
            }
        }
        let size = dtype.bytes().min(8);
        check_size(regs.len(), size)?;
        let (regs, runs) = (regs.into_boxed_slice(), runs.into_boxed_slice());
        Ok(Op::Store(Box::new(Store { at, regs, runs, size, strong })))
    }

    fn is_wide_register(&mut self, operand: &Operand) -> bool {
        let Operand::Word(name) = operand else { return false };
        matches!(self.lookup(name), Some(Symbol::Register(_, dtype)) if dtype.bits == 128)
    }

    /// `[base + offset]` in `space`, or in the space of a named variable.
    pub(crate) fn mem_ref(&mut self, operand: &Operand, space: Space) -> Decoded<MemRef> {
        let Operand::Address { base, offset, extra } = operand else {
            return Err("expected an address".to_string());
        };
        if !extra.is_empty() {
            return Err("addresses with several parts are not supported".to_string());
        }
        let offset = *offset;
        let Some(name) = base else {
            return Ok(MemRef { space, base: self.constant(0), offset });
        };
        match self.lookup(name) {
            Some(Symbol::Register(base, _)) => Ok(MemRef { space, base, offset }),
            Some(Symbol::Variable(own, address)) => {
                let named = matches!(space, Space::Generic | Space::Param);
                let space = if named { own } else { space };
                let base =
                    if own == Space::Shared { self.preset(Preset::Shared(address)) } else { self.constant(address) };
                Ok(MemRef { space, base, offset })
            }
            Some(Symbol::DynamicShared) => {
                Ok(MemRef { space: Space::Shared, base: self.preset(Preset::DynamicShared), offset })
            }
            Some(_) => Err(format!("`{name}` cannot be used as an address")),
            None => Err(self.unknown(name)),
        }
    }

    pub(crate) fn atomic(&mut self, mods: &mut Mods<'_>, operands: &[Operand], returns: bool) -> Decoded<Op> {
        let operands = without_policy(mods, operands);
        // Without an ordering, it is relaxed; without a scope, it has that of the device.
        let scope = mods.find(Scope::parse).unwrap_or(Scope::Gpu);
        let strong = Strong { scope, ..strong(mods).unwrap_or(Strong::relaxed(scope)) };
        mods.drop_all(is_hint);
        let noftz = mods.take("noftz");
        let space = mods.find(Space::parse).unwrap_or(Space::Generic);
        let name = mods.find(|part| is_atomic_name(part).then_some(part));
        let name = name.ok_or_else(|| "the operation is missing".to_string())?;
        let count = vector_count(mods);
        let dtype = mods.dtype()?;
        let f = atomic_fn(name, dtype)?;
        if count.is_some() && (!dtype.is_float() || dtype.bits == 64 || f == AtomFn::Exch) {
            return Err("vector atomics are not supported for this type and operation".to_string());
        }
        let first = usize::from(returns);
        expect_count(operands, first + if f == AtomFn::Cas { 3 } else { 2 })?;
        let mut d = Vec::new();
        if returns {
            for item in elements(count, &operands[0])? {
                d.push(self.dest(item)?);
            }
        }
        let at = self.mem_ref(nth(operands, first)?, space)?;
        let mut b = Vec::new();
        for item in elements(count, nth(operands, first + 1)?)? {
            b.push(self.source(item, dtype)?);
        }
        let c = match operands.get(first + 2) {
            Some(operand) => self.source(operand, dtype)?,
            None => self.constant(0),
        };
        let (d, b, size) = (d.into_boxed_slice(), b.into_boxed_slice(), dtype.bytes());
        check_size(b.len(), size)?;
        let ftz = f == AtomFn::AddFloat(FloatType::F32, false) && !noftz;
        Ok(Op::Atomic(Box::new(Atomic { at, f, strong, size, ftz, d, b, c })))
    }

    pub(crate) fn cvta(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let to_generic = !mods.take("to");
        let space = mods.find(Space::parse).ok_or_else(|| "the state space is missing".to_string())?;
        let dtype = mods.dtype()?;
        let d = self.dest(&operands[0])?;
        // Parameters of device functions are in local memory here.
        let space = match &operands[1] {
            Operand::Word(name) | Operand::Sum(name, _) => match self.lookup(name) {
                Some(Symbol::Variable(own, _)) if space == Space::Param => own,
                _ => space,
            },
            _ => space,
        };
        let a = self.source(&operands[1], dtype)?;
        Ok(Op::Scalar(ScalarOp::Cvta { d, a, space, to_generic, bits: dtype.width() }))
    }

    pub(crate) fn is_space(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        expect_count(operands, 2)?;
        let space = mods.find(Space::parse).ok_or_else(|| "the state space is missing".to_string())?;
        let d = self.predicate_dest(&operands[0])?;
        let a = self.source(&operands[1], DType::B64)?;
        Ok(Op::Scalar(ScalarOp::IsSpace { d, a, space }))
    }
}

fn access_mods(mods: &mut Mods<'_>) -> Decoded<(Space, DType, Option<Strong>)> {
    let strong = strong(mods);
    mods.drop_all(is_hint);
    let space = mods.find(Space::parse).unwrap_or(Space::Generic);
    let dtype = mods.dtype()?;
    if dtype.kind == Kind::Pred {
        return Err("predicates cannot be loaded or stored".to_string());
    }
    Ok((space, dtype, strong))
}

/// Number of elements of a vector access; `None` for a scalar access.
fn vector_count(mods: &mut Mods<'_>) -> Option<usize> {
    mods.find(|part| match part {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    })
}

/// The elements of a vector operand, or the scalar operand itself.
fn elements(count: Option<usize>, operand: &Operand) -> Decoded<Vec<&Operand>> {
    match (count, operand) {
        (None, operand) => Ok(vec![operand]),
        (Some(count), Operand::Vector(items)) if items.len() == count => Ok(items.iter().collect()),
        (Some(count), _) => Err(format!("expected a vector of {count} elements")),
    }
}

fn push_element(regs: &mut Vec<Reg>, reg: Reg, dtype: DType) {
    regs.push(reg);
    if dtype.bits == 128 {
        regs.push(reg + 1);
    }
}

fn check_size(count: usize, size: u32) -> Decoded<()> {
    if count as u32 * size <= 32 { Ok(()) } else { Err("the access is larger than 32 bytes".to_string()) }
}

fn is_atomic_name(part: &str) -> bool {
    matches!(part, "add" | "min" | "max" | "exch" | "cas" | "inc" | "dec" | "and" | "or" | "xor")
}

/// The type of a number, or of an element of a packed `dtype`.
pub(crate) fn number_type(dtype: DType) -> Decoded<NumberType> {
    Ok(match dtype.kind {
        Kind::Float | Kind::Bfloat => NumberType::Float(element(dtype)?),
        Kind::Signed => NumberType::Integer(IntegerType { signed: true, bits: dtype.bits }),
        Kind::Bits | Kind::Unsigned | Kind::Pred => {
            NumberType::Integer(IntegerType { signed: false, bits: dtype.bits })
        }
    })
}

/// The element type of a floating-point `dtype`.
pub(crate) fn element(dtype: DType) -> Decoded<FloatType> {
    match (dtype.kind, dtype.bits) {
        (Kind::Float, 32) => Ok(FloatType::F32),
        (Kind::Float, 64) => Ok(FloatType::F64),
        (Kind::Float, 16) => Ok(FloatType::Half(F16)),
        (Kind::Bfloat, 16) => Ok(FloatType::Half(BF16)),
        _ => Err("not a supported floating-point type".to_string()),
    }
}

pub(super) fn atomic_fn(name: &str, dtype: DType) -> Decoded<AtomFn> {
    let packed = dtype.count == 2;
    if dtype.width() > 64 || (dtype.width() < 32 && !dtype.is_half() && name != "cas" && name != "exch") {
        return Err("atomics of this width are not supported".to_string());
    }
    if dtype.is_float() {
        return match name {
            "add" => Ok(AtomFn::AddFloat(element(dtype)?, packed)),
            "min" => Ok(AtomFn::MinFloat(element(dtype)?, packed)),
            "max" => Ok(AtomFn::MaxFloat(element(dtype)?, packed)),
            "exch" => Ok(AtomFn::Exch),
            _ => Err("this floating-point atomic is not supported".to_string()),
        };
    }
    if packed {
        return Err("atomics on packed integers are not supported".to_string());
    }
    integer_atomic(name, dtype.is_signed())
}

/// A reduction of elements of a tensor, by name, and the bytes of an element.
pub(crate) fn atomic_of_element(name: &str, element: MapElement) -> Option<BulkReduce> {
    let dtype = match element {
        MapElement::U32 => DType::U32,
        MapElement::S32 => DType::new(Kind::Signed, 32),
        MapElement::U64 => DType::new(Kind::Unsigned, 64),
        MapElement::S64 => DType::new(Kind::Signed, 64),
        MapElement::F16 => DType::new(Kind::Float, 16),
        MapElement::F32 => DType::new(Kind::Float, 32),
        MapElement::F64 => DType::new(Kind::Float, 64),
        MapElement::Bf16 => DType::new(Kind::Bfloat, 16),
        MapElement::U8
        | MapElement::U16
        | MapElement::Tf32
        | MapElement::B4x16
        | MapElement::B4x16P64
        | MapElement::B6x16P32 => return None,
    };
    Some((atomic_fn(name, dtype).ok()?, dtype.bytes()))
}

/// An integer read-modify-write function by name.
pub(crate) fn integer_atomic(name: &str, signed: bool) -> Decoded<AtomFn> {
    Ok(match name {
        "add" => AtomFn::Add,
        "min" => AtomFn::Min { signed },
        "max" => AtomFn::Max { signed },
        "exch" => AtomFn::Exch,
        "cas" => AtomFn::Cas,
        "inc" => AtomFn::Inc,
        "dec" => AtomFn::Dec,
        "and" => AtomFn::And,
        "or" => AtomFn::Or,
        "xor" => AtomFn::Xor,
        _ => return Err(format!("the atomic `{name}` is not supported")),
    })
}
