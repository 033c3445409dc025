//! `mma.sync`, `ldmatrix`, `stmatrix`, `movmatrix`.

use crate::decode::control::take_sync;
use crate::decode::decoder::{Decoded, Decoder};
use crate::decode::mods::Mods;
use crate::decode::operand::expect_count;
use crate::float::{BF16, E4M3, E5M2, F16};
use crate::isa::{DType, Kind, Space};
use crate::op::{AccumulatorType, DoubleMma, MatrixAccess, MatrixOp, Mma, Multiplicand, Op, Reg};
use crate::ptx::ast::Operand;

/// An operand type in the opcode of an `mma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MmaType {
    F16,
    Bf16,
    Tf32,
    F32,
    E4m3,
    E5m2,
    S8,
    U8,
    S32,
}

impl Decoder<'_> {
    pub(crate) fn load_matrix(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        expect_count(operands, 2)?;
        Ok(matrix(MatrixOp::Load(self.matrix_access(mods, &operands[1], &operands[0], true)?)))
    }

    pub(crate) fn store_matrix(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        expect_count(operands, 2)?;
        Ok(matrix(MatrixOp::Store(self.matrix_access(mods, &operands[0], &operands[1], false)?)))
    }

    pub(crate) fn move_matrix(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        expect_count(operands, 2)?;
        take_shape(mods)?;
        if !mods.take("trans") {
            return Err("the form without `.trans` is not supported".to_string());
        }
        let (a, d) = (self.source(&operands[1], DType::B32)?, self.dest(&operands[0])?);
        Ok(matrix(MatrixOp::Transpose { a, d }))
    }

    pub(crate) fn mma(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Op> {
        take_sync_aligned(mods)?;
        if mods.take("m8n8k4") {
            return Ok(matrix(MatrixOp::DoubleMma(self.double_mma(mods, operands)?)));
        }
        Ok(matrix(MatrixOp::Mma(self.wide_mma(mods, operands)?)))
    }

    fn matrix_access(
        &mut self,
        mods: &mut Mods<'_>,
        address: &Operand,
        list: &Operand,
        is_load: bool,
    ) -> Decoded<MatrixAccess> {
        take_shape(mods)?;
        let transposed = mods.take("trans");
        let count = mods.find(|part| match part {
            "x1" => Some(1),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        });
        let count = count.ok_or_else(|| "the number of matrices is missing".to_string())?;
        let space = mods.find(Space::parse).unwrap_or(Space::Generic);
        if !matches!(space, Space::Shared | Space::Generic) {
            return Err("a matrix must be in shared memory".to_string());
        }
        let regs = self.registers(list, count, is_load, DType::B32)?;
        Ok(MatrixAccess { at: self.mem_ref(address, space)?, regs, transposed })
    }

    /// A vector of exactly `count` registers; a single register may be written without braces.
    pub(super) fn registers(
        &mut self,
        list: &Operand,
        count: usize,
        is_dest: bool,
        dtype: DType,
    ) -> Decoded<Box<[Reg]>> {
        let items = match list {
            Operand::Vector(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        if items.len() != count {
            return Err(format!("{}-register vector, expected {count}", items.len()));
        }
        let mut regs = Vec::new();
        for item in items {
            regs.push(if is_dest { self.dest(item)? } else { self.source(item, dtype)? });
        }
        Ok(regs.into_boxed_slice())
    }

    /// `mma` of m16n8.
    fn wide_mma(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<Mma> {
        let k = mods.find(|part| match part {
            "m16n8k4" => Some(4),
            "m16n8k8" => Some(8),
            "m16n8k16" => Some(16),
            "m16n8k32" => Some(32),
            _ => None,
        });
        let k: usize = k.ok_or_else(|| "supported shapes: m8n8k4 and m16n8k4, k8, k16 and k32".to_string())?;
        take_orders(mods)?;
        let saturate = mods.take("satfinite");
        let mut types = [MmaType::F32; 4];
        for slot in &mut types {
            *slot = mods.find(mma_type).ok_or_else(|| "unsupported multiplicand or accumulator types".to_string())?;
        }
        expect_count(operands, 4)?;
        let [d_type, a, b, c_type] = types;
        let accumulator = accumulator_type(c_type, saturate)?;
        if d_type != c_type || !is_legal(k, a, b, c_type) {
            return Err(format!("these types are not supported in m16n8k{k}"));
        }
        let (a_type, b_type) = (multiplicand(a)?, multiplicand(b)?);
        let (words, sum) = match accumulator {
            AccumulatorType::F16 => (2, DType::B32),
            AccumulatorType::F32 => (4, DType::new(Kind::Float, 32)),
            AccumulatorType::S32 { .. } => (4, DType::new(Kind::Signed, 32)),
        };
        // A has 16 rows of k elements and B has 8 columns of k, both distributed over 32 lanes.
        let in_lane = k * a_type.bits() as usize / 128;
        Ok(Mma {
            k,
            a_type,
            b_type,
            accumulator,
            a: self.registers(&operands[1], 2 * in_lane, false, DType::B32)?,
            b: self.registers(&operands[2], in_lane, false, DType::B32)?,
            c: self.registers(&operands[3], words, false, sum)?,
            d: self.registers(&operands[0], words, true, sum)?,
        })
    }
}

impl Decoder<'_> {
    fn double_mma(&mut self, mods: &mut Mods<'_>, operands: &[Operand]) -> Decoded<DoubleMma> {
        take_orders(mods)?;
        if !(0..4).all(|_| mods.take("f64")) {
            return Err("these types are not supported in m8n8k4".to_string());
        }
        expect_count(operands, 4)?;
        let dtype = DType::new(Kind::Float, 64);
        Ok(DoubleMma {
            a: self.source(&operands[1], dtype)?,
            b: self.source(&operands[2], dtype)?,
            c: self.registers(&operands[3], 2, false, dtype)?,
            d: self.registers(&operands[0], 2, true, dtype)?,
        })
    }
}

fn matrix(op: MatrixOp) -> Op {
    Op::Matrix(Box::new(op))
}

/// Takes `.sync.aligned`.
pub(super) fn take_sync_aligned(mods: &mut Mods<'_>) -> Decoded<()> {
    take_sync(mods)?;
    if mods.take("aligned") { Ok(()) } else { Err("the form without `.aligned` is not supported".to_string()) }
}

/// Takes the layouts of A and B.
fn take_orders(mods: &mut Mods<'_>) -> Decoded<()> {
    if mods.take("row") && mods.take("col") { Ok(()) } else { Err("A must be `.row` and B `.col`".to_string()) }
}

/// Takes the shape and the element type, which are the same for `ldmatrix`, `stmatrix` and `movmatrix`.
fn take_shape(mods: &mut Mods<'_>) -> Decoded<()> {
    if !mods.take("m8n8") {
        return Err("only the shape m8n8 is supported".to_string());
    }
    if mods.take("b16") { Ok(()) } else { Err("only `.b16` elements are supported".to_string()) }
}

pub(super) fn mma_type(word: &str) -> Option<MmaType> {
    match word {
        "f16" => Some(MmaType::F16),
        "bf16" => Some(MmaType::Bf16),
        "tf32" => Some(MmaType::Tf32),
        "f32" => Some(MmaType::F32),
        "e4m3" => Some(MmaType::E4m3),
        "e5m2" => Some(MmaType::E5m2),
        "s8" => Some(MmaType::S8),
        "u8" => Some(MmaType::U8),
        "s32" => Some(MmaType::S32),
        _ => None,
    }
}

pub(super) fn accumulator_type(c: MmaType, saturate: bool) -> Decoded<AccumulatorType> {
    match c {
        MmaType::S32 => Ok(AccumulatorType::S32 { saturate }),
        MmaType::F16 if !saturate => Ok(AccumulatorType::F16),
        MmaType::F32 if !saturate => Ok(AccumulatorType::F32),
        _ => Err("accumulators of this type are not supported".to_string()),
    }
}

/// Whether the ISA has this combination of shape and types (section "Matrix multiply-accumulate instruction: mma").
fn is_legal(k: usize, a: MmaType, b: MmaType, sum: MmaType) -> bool {
    let either = |x: MmaType, y: MmaType| [a, b].iter().all(|found| *found == x || *found == y);
    let single = sum == MmaType::F32;
    if either(MmaType::F16, MmaType::F16) {
        return matches!(k, 8 | 16) && (single || sum == MmaType::F16);
    }
    if either(MmaType::Bf16, MmaType::Bf16) {
        return matches!(k, 8 | 16) && single;
    }
    if either(MmaType::Tf32, MmaType::Tf32) {
        return matches!(k, 4 | 8) && single;
    }
    if either(MmaType::E4m3, MmaType::E5m2) {
        return matches!(k, 16 | 32) && (single || sum == MmaType::F16);
    }
    either(MmaType::S8, MmaType::U8) && matches!(k, 16 | 32) && sum == MmaType::S32
}

pub(super) fn multiplicand(element: MmaType) -> Decoded<Multiplicand> {
    Ok(match element {
        MmaType::F16 => Multiplicand::Float(F16),
        MmaType::Bf16 => Multiplicand::Float(BF16),
        MmaType::E4m3 => Multiplicand::Float(E4M3),
        MmaType::E5m2 => Multiplicand::Float(E5M2),
        MmaType::Tf32 => Multiplicand::Tf32,
        MmaType::S8 => Multiplicand::Integer { signed: true },
        MmaType::U8 => Multiplicand::Integer { signed: false },
        MmaType::F32 | MmaType::S32 => return Err("multiplicands of this type are not supported".to_string()),
    })
}
