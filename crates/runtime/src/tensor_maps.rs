//! The tensor maps of a launch, as the virtual GPU takes them.

use tilewright_diag::Diagnostic;
use tilewright_layout::DType;
use tilewright_layout::descriptor::{SwizzlePattern, TensorMap as Described};
use tilewright_vgpu::{MapAccess, MapElement, MapSwizzle, TensorMap};

use crate::failure::{Failure, FailureKind};
use crate::launch_numbers::narrow;

/// The map of a tensor of elements of this type at an address. An error is a defect.
pub fn tensor_map(described: &Described, dtype: DType, address: u64) -> Result<TensorMap, Failure> {
    let numbers = |of: &[i64]| -> Result<Vec<u64>, Failure> { of.iter().map(|one| narrow("a side", *one)).collect() };
    // Of elements that are only moved, the width is all that counts.
    let element = match (dtype, described.bits) {
        (DType::F16, 16) => MapElement::F16,
        (DType::BF16, 16) => MapElement::Bf16,
        (DType::F32, 32) => MapElement::F32,
        (DType::I32, 32) => MapElement::S32,
        (DType::I64, 64) => MapElement::S64,
        (DType::F64, 64) => MapElement::F64,
        (_, 8) => MapElement::U8,
        (_, 16) => MapElement::U16,
        (_, 32) => MapElement::U32,
        (_, 64) => MapElement::U64,
        (_, bits) => {
            let finding = Diagnostic::internal("R0618", format!("a tensor map of elements of {bits} bits"));
            return Err(Failure::new(FailureKind::Fault, finding));
        }
    };
    let swizzle = match described.swizzle {
        SwizzlePattern::None => MapSwizzle::None,
        SwizzlePattern::B32 => MapSwizzle::B32,
        SwizzlePattern::B64 => MapSwizzle::B64,
        SwizzlePattern::B128 => MapSwizzle::B128,
        SwizzlePattern::B128Atom32 => MapSwizzle::B128Atom32,
    };
    Ok(TensorMap {
        address: address + narrow::<i64, u64>("the start of a tensor", described.start)?,
        element,
        fills_nan: false,
        dims: numbers(&described.dims)?,
        strides: numbers(&described.strides)?,
        access: MapAccess::Tiled(numbers(&described.box_dims)?),
        element_strides: numbers(&described.element_strides)?,
        swizzle,
    })
}
