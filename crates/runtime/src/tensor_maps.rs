//! The tensor maps of a launch, as the virtual GPU takes them.

use tilewright_diag::Diagnostic;
use tilewright_layout::descriptor::{SwizzlePattern, TensorMap as Described};
use tilewright_vgpu::{MapAccess, MapElement, MapSwizzle, TensorMap};

use crate::failure::{Failure, FailureKind};
use crate::launch_numbers::narrow;

/// The map of a tensor at an address. An error is a defect.
pub fn tensor_map(described: &Described, address: u64) -> Result<TensorMap, Failure> {
    let numbers = |of: &[i64]| -> Result<Vec<u64>, Failure> { of.iter().map(|one| narrow("a side", *one)).collect() };
    // Elements are only moved, so their width is all that counts.
    let element = match described.bits {
        8 => MapElement::U8,
        16 => MapElement::U16,
        32 => MapElement::U32,
        64 => MapElement::U64,
        bits => {
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
