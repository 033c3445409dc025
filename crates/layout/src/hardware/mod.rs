//! Where hardware puts elements: the layouts that instructions, tensor memory and swizzled shared memory prescribe, as
//! ordinary layouts.
//!
//! Each constructor names its source in the PTX ISA. Tensors are row-major: of an MMA, A is (M, K), B is (K, N) and
//! C or D is (M, N). Fragments of `mma`, `wgmma`, `ldmatrix` and `stmatrix` place elements on `laneid` (and
//! `wid_in_wg`) and `reg`; those of `tcgen05.ld` and of a warpgroup's rows on `m`, which is renamed on
//! attaching the layout to a fragment.
//! The register axis counts elements, low bits of a register first.
//!
//! ```
//! use tilewright_layout::Layout;
//! use tilewright_layout::hardware::{MmaOperand, MmaShape, MmaType, mma_fragment, named};
//! let a = mma_fragment(MmaShape::M16N8K16, MmaOperand::A, MmaType::F16, None)?;
//! assert_eq!(a.to_string(), "S[(2,8,2,4,2):(2@reg,4@laneid,4@reg,1@laneid,1@reg)]");
//! assert_eq!(named("mma:m16n8k16:a:f16")?.layout, Layout::from(a));
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```

mod block_scaled;
mod catalogue;
#[cfg(test)]
mod check;
mod choice;
mod datapath;
mod element;
mod ldmatrix;
mod mma;
mod mma_operand;
mod named;
mod operand;
mod parts;
mod quad_pairs;
mod scale;
mod shared;
mod tcgen05;
mod warpgroup;
mod wgmma;

pub use block_scaled::{BlockScaledMma, ScaleOperand, ScaleVec, scale_smem_layout, scale_tmem_layout};
pub use catalogue::{NamedExample, catalogue};
pub use datapath::{Datapath, tmem_datapath_layout};
pub use element::MmaType;
pub use ldmatrix::{MatrixOp, MatrixShape, matrix_fragment, matrix_fragment_shape};
pub use mma::{mma_element_bits, mma_fragment, mma_fragment_shape};
pub use mma_operand::{MatrixOrder, MmaOperand, MmaShape};
pub use named::{NamedLayout, named};
pub use operand::{CtaGroup, TmemMma, TmemOperand, tmem_mma_operand_layout};
pub use scale::{ScaleFactors, sf_smem_layout, sf_tmem_layout};
pub use shared::{SwizzleMode, mma_atom_shape, mma_shared_layout, mma_shared_layout_of_tf32_rows};
pub use tcgen05::{Tcgen05Shape, tcgen05_atom_layout};
pub use warpgroup::wg_local_layout;
pub use wgmma::{WgmmaOperand, wgmma_fragment, wgmma_fragment_shape};

use crate::axis::{Axis, TCOL};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

/// Columns of tensor memory, 32 bits each (PTX ISA, section "Tensor Memory").
const TMEM_COLUMNS: i64 = 512;

fn iter(extent: i64, stride: i64, axis: Axis) -> Iter {
    Iter { extent, stride, axis }
}

/// The error for parameters that hardware does not support.
fn refused(name: &'static str, problem: String, legal: impl Into<String>) -> LayoutError {
    LayoutError::Hardware { name, problem, legal: legal.into() }
}

/// The layout, if its columns fit in tensor memory; elements on `TCol` have `bits` bits.
fn within_columns(name: &'static str, layout: TileLayout, bits: i64) -> Result<TileLayout, LayoutError> {
    let columns = layout.span_on(&TCOL).saturating_mul(bits).saturating_add(31) / 32;
    if columns <= TMEM_COLUMNS {
        return Ok(layout);
    }
    let problem = format!("{columns} columns of 32 bits in tensor memory");
    Err(refused(name, problem, format!("up to {TMEM_COLUMNS} columns")))
}

fn at_least_one(name: &'static str, what: &str, value: i64) -> Result<(), LayoutError> {
    if value >= 1 { Ok(()) } else { Err(refused(name, format!("{what} is {value}"), "1 or more")) }
}
