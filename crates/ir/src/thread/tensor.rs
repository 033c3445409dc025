//! Tensor memory: products whose sums are there, and loads of these (PTX ISA, "TensorCore 5th Generation Family Instructions").
//!
//! An address has a lane in its upper 16 bits and a column of 32 bits in its lower ones. What a CTA allocates begins at a column that
//! only the kernel knows, [`TensorMemory::base`].

use tilewright_expr::Expr;
use tilewright_layout::descriptor::DenseKind;

use crate::arena::Handle;
use crate::thread::program::{Memory, Stmt};
use crate::thread::registers::{RegArray, Regs};
use crate::thread::wgmma::SharedMatrix;
use crate::tile::Effect;

/// Columns of the tensor memory of an SM (PTX ISA, "Tensor Memory Addressing").
pub const TENSOR_COLUMNS: i64 = 512;
/// Rows of the sums of an instruction of one CTA, one for each lane.
pub const TENSOR_LANES: i64 = 128;
/// The most columns of the sums of one instruction.
pub const TENSOR_PRODUCT_COLUMNS: i64 = 256;
/// Bytes of each lane in a column.
pub const COLUMN_BYTES: i64 = 4;
/// What is added to an address to go one lane further.
pub const TENSOR_LANE: i64 = 1 << 16;

/// The tensor memory of a CTA.
#[derive(Clone, Copy, Debug)]
pub struct TensorMemory {
    /// Where the allocation writes its address in shared memory.
    pub slot: Handle<Memory>,
    /// The register that has the address.
    pub base: Handle<RegArray>,
    /// The columns that are allocated.
    pub columns: i64,
    /// Whether a pair of CTAs allocates it, the same columns in both.
    pub is_of_pair: bool,
}

/// Whether a product is added to sums, or replaces them.
#[derive(Clone, Debug, PartialEq)]
pub enum Accumulates {
    /// It replaces them.
    Never,
    /// It is added.
    Always,
    /// It is added if this register is not 0.
    If(Regs),
}

/// One instruction: 128 rows of A times the columns of B, added to sums in tensor memory. One thread issues it. A pair of CTAs has 128 rows
/// in each, and half of the columns of B.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMma {
    /// Its kind in PTX.
    pub kind: DenseKind,
    /// What it multiplies (PTX ISA, "Instruction descriptor").
    pub descriptor: u32,
    /// The address of the sums, from the base on.
    pub sums: Expr,
    /// The left factor.
    pub a: TensorLeft,
    /// The right factor.
    pub b: SharedMatrix,
    /// Whether the product is added to the sums.
    pub accumulates: Accumulates,
    /// Whether the tensor cores of a pair of CTAs compute it (PTX ISA, "tcgen05.mma", `.cta_group::2`).
    pub is_of_pair: bool,
}

/// The left factor of a product with sums in tensor memory.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorLeft {
    /// In shared memory.
    Shared(SharedMatrix),
    /// In tensor memory: the address, from the base on. Each lane has a row, and a column 32 bits of it.
    Tensor(Expr),
}

impl TensorMma {
    /// Its factors in shared memory.
    pub fn shared(&self) -> impl Iterator<Item = &SharedMatrix> {
        let a = match &self.a {
            TensorLeft::Shared(a) => Some(a),
            TensorLeft::Tensor(_) => None,
        };
        a.into_iter().chain([&self.b])
    }

    /// Its factors in shared memory, mutably.
    pub fn shared_mut(&mut self) -> impl Iterator<Item = &mut SharedMatrix> {
        let a = match &mut self.a {
            TensorLeft::Shared(a) => Some(a),
            TensorLeft::Tensor(_) => None,
        };
        a.into_iter().chain([&mut self.b])
    }

    /// The addresses of what it has in tensor memory.
    pub fn addresses(&self) -> impl Iterator<Item = &Expr> {
        let a = match &self.a {
            TensorLeft::Shared(_) => None,
            TensorLeft::Tensor(a) => Some(a),
        };
        [&self.sums].into_iter().chain(a)
    }
}

/// The most columns that a thread moves with one statement.
pub const MOST_MOVED: i64 = 64;

/// Each thread of a warp moves adjacent columns of its lane from or to registers, and waits until they have arrived (PTX ISA,
/// "tcgen05.ld" and "tcgen05.st", `.32x32b`, and "tcgen05.wait").
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMove {
    /// The registers for up to [`MOST_MOVED`] columns, each of which has one of 32 bits, or several narrower ones.
    pub registers: Regs,
    /// The address of the first column in the first lane of the warp, from the base on.
    pub address: Expr,
    /// Whether the columns get what is in the registers, and not the registers what is in the columns.
    pub is_store: bool,
}

impl TensorMove {
    /// What it does to its registers.
    pub fn effect(&self) -> Effect {
        if self.is_store { Effect::Read } else { Effect::Write }
    }

    /// Columns of a thread, in registers of these bytes.
    pub fn columns(&self, bytes: i64) -> i64 {
        self.registers.count * bytes / COLUMN_BYTES
    }

    /// The instruction.
    pub fn name(&self) -> &'static str {
        if self.is_store { "tcgen05.st" } else { "tcgen05.ld" }
    }
}

impl From<TensorMma> for Stmt {
    fn from(product: TensorMma) -> Stmt {
        Stmt::TensorMma(Box::new(product))
    }
}

impl From<TensorMove> for Stmt {
    fn from(moved: TensorMove) -> Stmt {
        Stmt::TensorMove(Box::new(moved))
    }
}
