//! The table of `mma.sync` instructions: products of small matrices that are distributed over the lanes of a warp.

use tilewright_layout::DType;
use tilewright_layout::hardware::{MmaShape, MmaType};

use crate::target::Target;

/// A row of the table. Every instruction adds the product of A (row-major) and B (column-major) to an accumulator in
/// place.
#[derive(Clone, Copy, Debug)]
pub struct MmaInfo {
    /// Its name, in the IR and in CUDA.
    pub name: &'static str,
    /// The PTX it stands for (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
    pub ptx: &'static str,
    /// M, N and K.
    pub shape: MmaShape,
    /// Type of an element of A and B in registers.
    pub multiplicand: DType,
    /// Element type that the instruction reads from it; the same except for tf32, the upper bits of an f32.
    pub element: MmaType,
    /// Type of an element of the accumulator.
    pub sum: DType,
    /// The targets that have it.
    pub targets: &'static [Target],
}

impl MmaInfo {
    /// Elements that a lane holds of the accumulator, of A and of B.
    pub fn elements_per_lane(&self) -> [i64; 3] {
        let (m, n, k) = self.shape.mnk();
        [m * n / 32, m * k / 32, k * n / 32]
    }
}

macro_rules! products {
    ($($(#[$doc:meta])* $inst:ident = $name:literal, $ptx:literal, $shape:ident, $multiplicand:ident as $element:ident, $sum:ident, $targets:expr;)*) => {
        /// An instruction of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum MmaInst {
            $($(#[$doc])* $inst,)*
        }

        impl MmaInst {
            /// Every instruction; among those with the same types, the one with the largest K first.
            pub const ALL: &'static [MmaInst] = &[$(MmaInst::$inst),*];

            /// Its row of the table.
            pub fn info(self) -> MmaInfo {
                match self {
                    $(MmaInst::$inst => MmaInfo {
                        name: $name,
                        ptx: $ptx,
                        shape: MmaShape::$shape,
                        multiplicand: DType::$multiplicand,
                        element: MmaType::$element,
                        sum: DType::$sum,
                        targets: $targets,
                    },)*
                }
            }
        }
    };
}

products! {
    /// f16, accumulated in f32.
    F16K16F32 = "mma_m16n8k16_f32_f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", M16N8K16, F16 as F16, F32, Target::ALL;
    /// f16, accumulated in f32, with half the K.
    F16K8F32 = "mma_m16n8k8_f32_f16", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", M16N8K8, F16 as F16, F32, Target::ALL;
    /// f16, accumulated in f16.
    F16K16F16 = "mma_m16n8k16_f16_f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", M16N8K16, F16 as F16, F16, Target::ALL;
    /// f16, accumulated in f16, with half the K.
    F16K8F16 = "mma_m16n8k8_f16_f16", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", M16N8K8, F16 as F16, F16, Target::ALL;
    /// bf16, accumulated in f32.
    Bf16K16F32 = "mma_m16n8k16_f32_bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", M16N8K16, BF16 as Bf16, F32, Target::ALL;
    /// bf16, accumulated in f32, with half the K.
    Bf16K8F32 = "mma_m16n8k8_f32_bf16", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", M16N8K8, BF16 as Bf16, F32, Target::ALL;
    /// f32 read as tf32, accumulated in f32.
    Tf32K8F32 = "mma_m16n8k8_f32_tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", M16N8K8, F32 as Tf32, F32, Target::ALL;
    /// f32 read as tf32, accumulated in f32, with half the K.
    Tf32K4F32 = "mma_m16n8k4_f32_tf32", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", M16N8K4, F32 as Tf32, F32, Target::ALL;
    /// i8, accumulated in i32.
    S8K32S32 = "mma_m16n8k32_s32_s8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", M16N8K32, I8 as S8, I32, Target::ALL;
    /// i8, accumulated in i32, with half the K.
    S8K16S32 = "mma_m16n8k16_s32_s8", "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", M16N8K16, I8 as S8, I32, Target::ALL;
    /// u8, accumulated in i32.
    U8K32S32 = "mma_m16n8k32_s32_u8", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", M16N8K32, U8 as U8, I32, Target::ALL;
    /// u8, accumulated in i32, with half the K.
    U8K16S32 = "mma_m16n8k16_s32_u8", "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32", M16N8K16, U8 as U8, I32, Target::ALL;
    /// e4m3, accumulated in f32.
    E4m3K32F32 = "mma_m16n8k32_f32_e4m3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", M16N8K32, E4M3 as E4m3, F32, Target::ALL;
    /// e4m3, accumulated in f32, with half the K.
    E4m3K16F32 = "mma_m16n8k16_f32_e4m3", "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", M16N8K16, E4M3 as E4m3, F32, Target::ALL;
    /// e5m2, accumulated in f32.
    E5m2K32F32 = "mma_m16n8k32_f32_e5m2", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", M16N8K32, E5M2 as E5m2, F32, Target::ALL;
    /// e5m2, accumulated in f32, with half the K.
    E5m2K16F32 = "mma_m16n8k16_f32_e5m2", "mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32", M16N8K16, E5M2 as E5m2, F32, Target::ALL;
    /// f64, accumulated in f64.
    F64K4F64 = "mma_m8n8k4_f64_f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", M8N8K4, F64 as F64, F64, Target::ALL;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_ptx_say_shape_and_types() {
        for info in MmaInst::ALL.iter().map(|inst| inst.info()) {
            let MmaInfo { shape, element, sum, .. } = info;
            let sum = if sum == DType::I32 { "s32" } else { sum.name() };
            let types = format!("{sum}.{element}.{element}.{sum}");
            assert_eq!(info.ptx, format!("mma.sync.aligned.{shape}.row.col.{types}"));
            assert_eq!(info.name, format!("mma_{shape}_{sum}_{element}"));
        }
    }

    #[test]
    fn the_deepest_of_a_type_comes_first() {
        let rows: Vec<MmaInfo> = MmaInst::ALL.iter().map(|inst| inst.info()).collect();
        for pair in rows.windows(2).filter(|pair| (pair[0].element, pair[0].sum) == (pair[1].element, pair[1].sum)) {
            assert!(pair[0].shape.mnk().2 > pair[1].shape.mnk().2, "{} before {}", pair[0].name, pair[1].name);
        }
    }
}
