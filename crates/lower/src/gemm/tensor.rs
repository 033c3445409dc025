//! Products with sums in tensor memory: one thread issues `tcgen05.mma`, which reads the factors from shared memory by itself.

use tilewright_diag::{Diagnostic, counted};
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::Reason;
use tilewright_ir::thread::{
    Accumulates, COLUMN_BYTES, Stmt, TENSOR_LANES, TENSOR_PRODUCT_COLUMNS, TensorLeft, TensorMma,
};
use tilewright_ir::tile::{Gemm, Kernel, Op, PAIR, Tile};
use tilewright_layout::descriptor::{DenseKind, InstructionShape, InstructionTypes, dense};
use tilewright_layout::hardware::{CtaGroup, MmaType};
use tilewright_layout::{DType, LayoutError};

use super::described::{BLOCK_ROWS, Described, MatrixUnit, columns_of_an_instruction, in_shared};
use super::reason;
use crate::builder::Builder;
use crate::operand::{MemoryTile, Operand, other_operands};

/// Bytes of a row that an instruction multiplies.
const STEP_BYTES: i64 = 32;

/// The instructions of a product, and what plans say of them.
pub(crate) struct Issue {
    pub(crate) body: Vec<Stmt>,
    pub(crate) summary: String,
}

/// Columns of one instruction, with its kind and its descriptor.
struct Instruction {
    columns: i64,
    kind: DenseKind,
    descriptor: u32,
}

/// The instructions of a product whose sums are at an address of tensor memory, of which the first ones add to them as `first` says. The
/// left factor may be at another such address. Error: why `tcgen05.mma` cannot compute it.
pub(crate) fn issue(
    builder: &mut Builder,
    kernel: &Kernel,
    op: &Op,
    (sums, first): (&Expr, &Accumulates),
    left: Option<Expr>,
) -> Result<Result<Issue, Vec<Reason>>, Diagnostic> {
    let (Some(gemm), [c, a, b]) = (op.kind.product(), &op.operands[..]) else {
        return Err(other_operands(kernel, op));
    };
    let factor = |tile: &Tile| Ok(in_shared(Operand::resolve(builder, kernel, op, tile)?));
    let left = match left {
        Some(at) => Left::Tensor(at),
        None => Left::Shared(factor(a)?),
    };
    let factors = (left, factor(b)?);
    let dtypes = [a, c].map(|tile| kernel.buffers[tile.buffer].dtype);
    let shape = match (a.matrix(), b.matrix()) {
        (Some([rows, columns]), Some(_)) => {
            Ok([TENSOR_LANES, columns_of(kernel, c), if gemm.transpose_a { rows } else { columns }])
        }
        _ => Err(reason("a factor is not a matrix".to_string(), "two dimensions besides those of extent 1")),
    };
    Ok(issue_of(builder, (gemm, dtypes, sums, first), shape, factors))
}

/// Where the left factor is.
enum Left {
    Shared(Result<MemoryTile, Reason>),
    /// The address of its first column.
    Tensor(Expr),
}

/// A left factor that can be multiplied.
enum DescribedLeft {
    Shared(Box<Described>),
    Tensor(Expr),
}

impl DescribedLeft {
    fn in_shared(&self) -> Option<&Described> {
        match self {
            DescribedLeft::Shared(described) => Some(described),
            DescribedLeft::Tensor(_) => None,
        }
    }

    fn is_transposed(&self) -> bool {
        self.in_shared().is_some_and(|described| described.is_transposed)
    }

    /// The factor of the instruction at a step along K, each of which has 32 bytes of every row.
    fn factor(&self, builder: &Builder, step: i64) -> TensorLeft {
        match self {
            DescribedLeft::Shared(described) => TensorLeft::Shared(described.matrix(builder, step, &Expr::constant(0))),
            DescribedLeft::Tensor(at) => {
                TensorLeft::Tensor(normalize(&(at.clone() + step * (STEP_BYTES / COLUMN_BYTES))))
            }
        }
    }

    fn summary(&self) -> String {
        self.in_shared().map_or_else(|| "in tensor memory".to_string(), Described::summary)
    }
}

fn columns_of(kernel: &Kernel, sums: &Tile) -> i64 {
    kernel.buffers[sums.buffer].shape.last().copied().unwrap_or(0)
}

fn issue_of(
    builder: &mut Builder,
    (gemm, dtypes, sums, of_first): (Gemm, [DType; 2], &Expr, &Accumulates),
    shape: Result<[i64; 3], Reason>,
    (a, b): (Left, Result<MemoryTile, Reason>),
) -> Result<Issue, Vec<Reason>> {
    let [m, n, k] = shape.map_err(|reason| vec![reason])?;
    let describe = |tile: Result<MemoryTile, Reason>, rows: i64, turned: (bool, &str)| {
        tile.and_then(|tile| Described::of(MatrixUnit::Tcgen05, &tile, [rows, k], turned))
    };
    // Each CTA of a pair has its own rows of A, and half of the columns of B.
    let group = if gemm.pair { CtaGroup::Two } else { CtaGroup::One };
    let own = if gemm.pair { n / PAIR } else { n };
    let [is_a_turned, is_b_turned] = gemm.is_mn_major();
    let a = match a {
        Left::Shared(a) => {
            describe(a, m, (is_a_turned, "a")).map(|described| DescribedLeft::Shared(Box::new(described)))
        }
        Left::Tensor(_) if is_a_turned => {
            Err(reason("`a` is in tensor memory, and transposed".to_string(), "rows of `a`, along K"))
        }
        Left::Tensor(_) if gemm.pair => {
            Err(reason("`a` is in tensor memory".to_string(), "products of a pair with `a` in shared memory"))
        }
        Left::Tensor(at) => Ok(DescribedLeft::Tensor(at)),
    };
    let (a, b) = match (a, describe(b, own, (is_b_turned, "b"))) {
        (Ok(a), Ok(b)) => (a, b),
        (a, b) => return Err([a.err(), b.err()].into_iter().flatten().collect()),
    };
    let step = STEP_BYTES / dtypes[0].bytes();
    if k % step != 0 {
        return Err(vec![reason(format!("K is {k}"), &format!("multiples of {step}"))]);
    }
    let instruction = instruction(group, [m, n, step], dtypes, [a.is_transposed(), b.is_transposed])?;
    a.in_shared().into_iter().chain([&b]).for_each(|described| described.align(builder));
    let mut body = Vec::new();
    for at in 0..k / step {
        for part in 0..n / instruction.columns {
            let first = part * instruction.columns;
            let accumulates = if at == 0 { of_first.clone() } else { Accumulates::Always };
            body.push(Stmt::from(TensorMma {
                kind: instruction.kind,
                descriptor: instruction.descriptor,
                sums: normalize(&(sums + first)),
                a: a.factor(builder, at),
                b: b.matrix(builder, at, &Expr::constant(first / BLOCK_ROWS)),
                accumulates,
                is_of_pair: gemm.pair,
            }));
        }
    }
    let summary = format!(
        "{} of m{}n{}k{step}, kind {}{}; `a` {}, `b` {}",
        counted(body.len(), "instruction"),
        rows_of(group, m),
        instruction.columns,
        instruction.kind.name(),
        if gemm.pair { ", by a pair of CTAs" } else { "" },
        a.summary(),
        b.summary()
    );
    Ok(Issue { body, summary })
}

/// Rows of an instruction, each CTA of which has `m`.
fn rows_of(group: CtaGroup, m: i64) -> i64 {
    match group {
        CtaGroup::One => m,
        CtaGroup::Two => PAIR * m,
    }
}

/// One instruction: as many columns as possible, all of the sums or blocks of 64. That of a pair has all of them.
fn instruction(
    group: CtaGroup,
    [m, n, k]: [i64; 3],
    dtypes: [DType; 2],
    transpose: [bool; 2],
) -> Result<Instruction, Vec<Reason>> {
    let refused = |error: LayoutError| vec![reason(error.to_string(), "shapes and dtypes of `tcgen05.mma`")];
    let [factor, sum] = dtypes;
    let multiplicand = MmaType::of_factor(factor).map_err(refused)?;
    let sum = MmaType::of_dtype(sum).map_err(refused)?;
    let types = InstructionTypes { d: sum, a: multiplicand, b: multiplicand };
    let is_possible = |columns| columns <= TENSOR_PRODUCT_COLUMNS && (group == CtaGroup::One || columns == n);
    let Some(columns) = columns_of_an_instruction(n, is_possible) else {
        let accepted = format!("up to {TENSOR_PRODUCT_COLUMNS} columns, or multiples of {BLOCK_ROWS}");
        return Err(vec![reason(format!("{n} columns"), &accepted)]);
    };
    let shape = InstructionShape { cta_group: group, m: rows_of(group, m), n: columns, k };
    let (kind, descriptor) = dense(shape, types, transpose).map_err(refused)?;
    Ok(Instruction { columns, kind, descriptor: descriptor.encode() })
}
