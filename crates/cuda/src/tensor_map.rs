//! Tensor maps, which the driver encodes (CUDA driver API, "Tensor Map Object Management").

use crate::driver::{Gpu, failed};
use crate::error::CudaError;
use crate::memory::GpuBuffer;
use cudarc::driver::sys::{
    self, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill, CUtensorMapInterleave as Interleave,
    CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle as Swizzle,
};
use std::ffi::c_void;

/// The type of the elements of a tensor, as the `CU_TENSOR_MAP_DATA_TYPE_` of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the driver's")]
pub enum TensorElement {
    Uint8,
    Uint16,
    Uint32,
    Int32,
    Uint64,
    Int64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Tfloat32,
    Uint4x16Align8,
    Uint4x16Align16,
    Uint6x16Align16,
}

/// How shared memory is permuted, as the `CU_TENSOR_MAP_SWIZZLE_` of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the driver's")]
pub enum TensorSwizzle {
    None,
    B32,
    B64,
    B128,
    B128Atom32,
    B128Atom32Flip8,
    B128Atom64,
}

/// What a copy moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TensorAccess {
    /// A box: the elements that it spans in each dimension.
    Tiled(Vec<u32>),
    /// Pixels of images, between two corners of each dimension of space.
    Im2col {
        /// The first position of the base of the filter.
        lower: Vec<i32>,
        /// What is added to the extents: the bases end there.
        upper: Vec<i32>,
        /// Channels of a pixel.
        channels: u32,
        /// Pixels of a copy.
        pixels: u32,
    },
}

/// The arguments of `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col`. Dimensions go from the innermost to the
/// outermost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapRequest {
    /// The type of an element.
    pub element: TensorElement,
    /// The number of elements in each dimension.
    pub dims: Vec<u64>,
    /// The distance between neighbours in each dimension but the first, in bytes.
    pub strides: Vec<u64>,
    /// What a copy moves.
    pub access: TensorAccess,
    /// The distance of the elements that are copied, in each dimension.
    pub element_strides: Vec<u32>,
    /// How shared memory is permuted.
    pub swizzle: TensorSwizzle,
    /// Whether elements outside the tensor are NaN, not 0.
    pub fills_nan: bool,
}

impl Gpu {
    /// The 128 bytes of the map of a tensor that begins at byte `offset` of a buffer.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfBounds`] if the offset is past the end of the buffer; [`CudaError::Driver`] if the lengths of
    /// the vectors differ from the number of dimensions, or if the driver refuses the map.
    pub fn tensor_map(
        &self,
        buffer: &GpuBuffer,
        offset: u64,
        request: &TensorMapRequest,
    ) -> Result<Vec<u8>, CudaError> {
        let (call, are_right) = request.call();
        if !are_right {
            let reason = "the number of entries is not that of the dimensions".to_string();
            return Err(CudaError::Driver { call, reason });
        }
        if offset > buffer.size() {
            return Err(CudaError::OutOfBounds { offset, length: 0, size: buffer.size() });
        }
        self.context().bind()?;
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let address = (buffer.address() + offset) as *mut c_void;
        let rank = request.dims.len() as u32;
        let (element, swizzle) = (request.element.code(), request.swizzle.code());
        let fill = match request.fills_nan {
            true => Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
            false => Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        };
        let interleave = Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE;
        let promotion = Promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE;
        let (dims, strides) = (request.dims.as_ptr(), request.strides.as_ptr());
        let steps = request.element_strides.as_ptr();
        let status = match &request.access {
            // SAFETY: Each pointer is to as many numbers as the driver reads for this rank, which `call` has checked, or
            // to the map on the stack. The address is not accessed.
            TensorAccess::Tiled(sides) => unsafe {
                sys::cuTensorMapEncodeTiled(
                    &mut map,
                    element,
                    rank,
                    address,
                    dims,
                    strides,
                    sides.as_ptr(),
                    steps,
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            },
            // SAFETY: As above.
            TensorAccess::Im2col { lower, upper, channels, pixels } => unsafe {
                sys::cuTensorMapEncodeIm2col(
                    &mut map,
                    element,
                    rank,
                    address,
                    dims,
                    strides,
                    lower.as_ptr(),
                    upper.as_ptr(),
                    *channels,
                    *pixels,
                    steps,
                    interleave,
                    swizzle,
                    promotion,
                    fill,
                )
            },
        };
        status.result().map_err(failed(call))?;
        Ok(map.opaque.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }
}

impl TensorMapRequest {
    /// The driver's call, and whether it can read as many numbers as it will.
    fn call(&self) -> (&'static str, bool) {
        let rank = self.dims.len();
        let common = (1..=5).contains(&rank) && self.strides.len() + 1 == rank && self.element_strides.len() == rank;
        match &self.access {
            TensorAccess::Tiled(sides) => ("cuTensorMapEncodeTiled", common && sides.len() == rank),
            TensorAccess::Im2col { lower, upper, .. } => {
                ("cuTensorMapEncodeIm2col", common && lower.len() + 2 == rank && upper.len() + 2 == rank)
            }
        }
    }
}

impl TensorElement {
    fn code(self) -> DataType {
        match self {
            TensorElement::Uint8 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            TensorElement::Uint16 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            TensorElement::Uint32 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            TensorElement::Int32 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
            TensorElement::Uint64 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
            TensorElement::Int64 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
            TensorElement::Float16 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            TensorElement::Float32 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            TensorElement::Float64 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            TensorElement::Bfloat16 => DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            TensorElement::Tfloat32 => DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
            TensorElement::Uint4x16Align8 => DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
            TensorElement::Uint4x16Align16 => DataType::CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
            TensorElement::Uint6x16Align16 => DataType::CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
        }
    }
}

impl TensorSwizzle {
    fn code(self) -> Swizzle {
        match self {
            TensorSwizzle::None => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            TensorSwizzle::B32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            TensorSwizzle::B64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            TensorSwizzle::B128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            TensorSwizzle::B128Atom32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
            TensorSwizzle::B128Atom32Flip8 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
            TensorSwizzle::B128Atom64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_reads_no_more_numbers_than_there_are() {
        let map = TensorMapRequest {
            element: TensorElement::Float16,
            dims: vec![64, 8],
            strides: vec![128],
            access: TensorAccess::Tiled(vec![64, 8]),
            element_strides: vec![1, 1],
            swizzle: TensorSwizzle::None,
            fills_nan: false,
        };
        assert!(map.call().1);
        assert!(!TensorMapRequest { strides: Vec::new(), ..map.clone() }.call().1);
        assert!(!TensorMapRequest { access: TensorAccess::Tiled(vec![64]), ..map.clone() }.call().1);
        assert!(!TensorMapRequest { dims: vec![1; 6], ..map }.call().1);
    }
}
