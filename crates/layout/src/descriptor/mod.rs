//! Hardware descriptors: the words that tell the matrix and copy engines where a tile lives.
//!
//! Each is encoded from named fields and can be decoded. Those that describe a layout are also derived from one:
//! [`tcgen05_descriptor`], [`wgmma_descriptor`] and [`tensor_map()`] return either a descriptor that addresses exactly
//! the places of the layout, or an error that explains why there is none.

mod box_addresses;
mod boxes;
mod derive;
mod field;
mod form;
mod instruction;
mod limits;
mod pattern;
mod scaled;
mod shared;
mod tensor_map;

pub use boxes::{Boxes, TensorDimension, tensor_map, tensor_strides};
pub use derive::{Operand, tcgen05_descriptor, wgmma_descriptor};
pub use form::Major;
pub use instruction::{DenseKind, InstructionDescriptor, InstructionShape, InstructionTypes, dense};
pub use limits::{SHARED_UNIT as BOX_UNIT, UNIT as ROW_UNIT};
pub use pattern::SwizzlePattern;
pub use scaled::{BlockScaledInstructionDescriptor, ScaleFormat, ScaledKind, block_scaled};
pub use shared::{ADDRESS_UNIT, Tcgen05Descriptor, WgmmaDescriptor};
pub use tensor_map::{BoxCopy, BoxElement, Interleave, Source, TensorMap};
