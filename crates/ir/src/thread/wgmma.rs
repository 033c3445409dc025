//! Products of a warpgroup, `wgmma.mma_async`: four warps multiply tiles in shared memory, and hold the sums.
//!
//! They are asynchronous (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"): a fence comes before the
//! first one, they are committed as a group, and a thread waits for the group before it touches the sums.

use tilewright_expr::Expr;
use tilewright_layout::DType;
use tilewright_layout::hardware::MmaType;

use crate::arena::Handle;
use crate::target::Target;
use crate::thread::program::{Memory, Stmt};
use crate::thread::registers::Regs;

/// Rows of the sums that a warpgroup computes with one instruction.
pub const WGMMA_ROWS: i64 = 64;
/// The most columns of the sums of one instruction.
pub const WGMMA_COLUMNS: i64 = 256;

/// A row of the table of `wgmma` types. Every instruction is `m64nNkK`, with N from 8 to 256.
#[derive(Clone, Copy, Debug)]
pub struct WgmmaInfo {
    /// The dtypes of D, A and B in its name in PTX: `f32.bf16.bf16`.
    pub types: &'static str,
    /// Type of an element of A and B.
    pub multiplicand: DType,
    /// The same, as the instruction reads it.
    pub element: MmaType,
    /// Type of an element of the sums.
    pub sum: DType,
    /// K of one instruction: 32 bytes.
    pub k: i64,
}

impl WgmmaInfo {
    /// Whether tiles may have M or N contiguous: those of 16-bit elements.
    pub fn may_be_transposed(&self) -> bool {
        self.multiplicand.bytes() == 2
    }

    /// Whether N may have this value: a multiple of 8 up to 256; with integers 8, 16, 24 and multiples of 16.
    pub fn has_columns(&self, n: i64) -> bool {
        let in_steps = if self.sum == DType::I32 && n > 24 { 16 } else { 8 };
        (8..=WGMMA_COLUMNS).contains(&n) && n % in_steps == 0
    }

    /// The targets that have it.
    pub fn targets(&self) -> &'static [Target] {
        &[Target::Sm90a]
    }
}

macro_rules! warpgroup_products {
    ($($(#[$doc:meta])* $inst:ident = $types:literal, $multiplicand:ident as $element:ident, $sum:ident, $k:literal;)*) => {
        /// Types of `wgmma`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WgmmaInst {
            $($(#[$doc])* $inst,)*
        }

        impl WgmmaInst {
            /// All of them.
            pub const ALL: &'static [WgmmaInst] = &[$(WgmmaInst::$inst),*];

            /// Its row of the table.
            pub fn info(self) -> WgmmaInfo {
                match self {
                    $(WgmmaInst::$inst => WgmmaInfo {
                        types: $types,
                        multiplicand: DType::$multiplicand,
                        element: MmaType::$element,
                        sum: DType::$sum,
                        k: $k,
                    },)*
                }
            }
        }
    };
}

warpgroup_products! {
    /// bf16, accumulated in f32.
    Bf16F32 = "f32.bf16.bf16", BF16 as Bf16, F32, 16;
    /// f16, accumulated in f32.
    F16F32 = "f32.f16.f16", F16 as F16, F32, 16;
    /// f16, accumulated in f16.
    F16F16 = "f16.f16.f16", F16 as F16, F16, 16;
    /// f32 read as tf32, accumulated in f32.
    Tf32F32 = "f32.tf32.tf32", F32 as Tf32, F32, 8;
    /// e4m3, accumulated in f32.
    E4m3F32 = "f32.e4m3.e4m3", E4M3 as E4m3, F32, 32;
    /// e5m2, accumulated in f32.
    E5m2F32 = "f32.e5m2.e5m2", E5M2 as E5m2, F32, 32;
    /// i8, accumulated in i32.
    S8S32 = "s32.s8.s8", I8 as S8, I32, 32;
    /// u8, accumulated in i32.
    U8S32 = "s32.u8.u8", U8 as U8, I32, 32;
}

/// A tile in shared memory, as an instruction reads a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedMatrix {
    /// The memory of the tile.
    pub memory: Handle<Memory>,
    /// The first element of the tile.
    pub first: Expr,
    /// Bytes of the tile.
    pub bytes: i64,
    /// The element at which the part begins, from the first of the tile.
    pub offset: Expr,
    /// The descriptor without the address at which the part begins (PTX ISA, "Matrix Descriptor Format").
    pub descriptor: u64,
    /// Whether M or N is contiguous, not K.
    pub is_transposed: bool,
}

/// The left factor of a product of a warpgroup.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftMatrix {
    /// Registers: each warp has 16 rows, as of `mma.sync`.
    Registers(Regs),
    /// A tile in shared memory.
    Shared(SharedMatrix),
}

/// One instruction: the product of 64 rows and N columns is added to sums.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpgroupMma {
    /// The types.
    pub inst: WgmmaInst,
    /// Columns of the sums.
    pub n: i64,
    /// The sums: N/2 of each thread.
    pub sums: Regs,
    /// The left factor.
    pub a: LeftMatrix,
    /// The right factor.
    pub b: SharedMatrix,
    /// Whether the product is added to the sums; otherwise it replaces them.
    pub accumulates: bool,
}

impl WarpgroupMma {
    /// Its factors in shared memory.
    pub fn shared(&self) -> impl Iterator<Item = &SharedMatrix> {
        let left = match &self.a {
            LeftMatrix::Shared(matrix) => Some(matrix),
            LeftMatrix::Registers(_) => None,
        };
        left.into_iter().chain([&self.b])
    }

    /// The same, mutably.
    pub fn shared_mut(&mut self) -> impl Iterator<Item = &mut SharedMatrix> {
        let left = match &mut self.a {
            LeftMatrix::Shared(matrix) => Some(matrix),
            LeftMatrix::Registers(_) => None,
        };
        left.into_iter().chain([&mut self.b])
    }

    /// Its registers that are read, beside the sums.
    pub fn left_registers(&self) -> Option<&Regs> {
        match &self.a {
            LeftMatrix::Registers(regs) => Some(regs),
            LeftMatrix::Shared(_) => None,
        }
    }
}

impl From<WarpgroupMma> for Stmt {
    fn from(product: WarpgroupMma) -> Stmt {
        Stmt::WarpgroupMma(Box::new(product))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_say_what_they_are() {
        for info in WgmmaInst::ALL.iter().map(|inst| inst.info()) {
            let sum = if info.sum == DType::I32 { "s32" } else { info.sum.name() };
            assert_eq!(info.types, format!("{sum}.{}.{}", info.element, info.element));
            assert_eq!(info.k * info.multiplicand.bytes(), 32);
        }
    }

    #[test]
    fn columns_are_those_of_the_isa() {
        let [floats, integers] = [WgmmaInst::Bf16F32, WgmmaInst::S8S32].map(WgmmaInst::info);
        assert!([8, 24, 40, 256].into_iter().all(|n| floats.has_columns(n)));
        assert!([0, 4, 12, 264].into_iter().all(|n| !floats.has_columns(n) && !integers.has_columns(n)));
        assert!([8, 16, 24, 32, 48, 256].into_iter().all(|n| integers.has_columns(n)) && !integers.has_columns(40));
    }
}
