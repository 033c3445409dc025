//! Tensors on the host: logical elements in row-major order, as raw bytes of a dtype.

use std::fmt;

use half::{bf16, f16};
use tilewright_compile::Parameter;
use tilewright_ir::tile::non_unit_extents;
use tilewright_ir::{ByteFloat, nearest_bf16, nearest_f16};
use tilewright_layout::DType;

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    dtype: DType,
    shape: Vec<i64>,
    /// The elements in row-major order, little-endian.
    bytes: Vec<u8>,
}

/// The error for a tensor that does not fit its shape or parameter, and for tensors that are too few or too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorError(pub(crate) String);

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TensorError {}

/// The bits of a number in a dtype.
fn bits_of(dtype: DType, number: f64) -> u128 {
    match dtype {
        DType::F64 => u128::from(number.to_bits()),
        DType::F32 => u128::from((number as f32).to_bits()),
        DType::F16 => u128::from(nearest_f16(number).to_bits()),
        DType::BF16 => u128::from(nearest_bf16(number).to_bits()),
        DType::E4M3 | DType::E5M2 => ByteFloat::of(dtype).map_or(0, |format| format.nearest(number).into()),
        DType::I8 => number as i8 as u128,
        DType::I16 => number as i16 as u128,
        DType::I32 => number as i32 as u128,
        DType::I64 => number as i64 as u128,
        DType::U8 => number as u8 as u128,
        DType::U16 => number as u16 as u128,
        DType::U32 => number as u32 as u128,
        DType::U64 => number as u64 as u128,
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => number as u128,
    }
}

/// The number of elements of a tensor of this shape; an error for negative extents, and if the elements or bytes are
/// more than an `i64` can count.
fn elements(dtype: DType, shape: &[i64]) -> Result<i64, TensorError> {
    if let Some(extent) = shape.iter().find(|extent| **extent < 0) {
        return Err(TensorError(format!("a tensor of {dtype} of shape {shape:?}: the extent {extent} is negative")));
    }
    let count = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
    let counted = count.filter(|count| count.checked_mul(dtype.bytes()).is_some());
    counted.ok_or_else(|| TensorError(format!("a tensor of {dtype} of shape {shape:?} has more than 2^63 - 1 bytes")))
}

impl HostTensor {
    /// A tensor from its bytes, little-endian, row-major. Errors: a negative extent, a shape of more than 2^63 - 1
    /// bytes, and a number of bytes that differs from the shape's.
    pub fn from_bytes(dtype: DType, shape: &[i64], bytes: Vec<u8>) -> Result<HostTensor, TensorError> {
        let wanted = elements(dtype, shape)? * dtype.bytes();
        if bytes.len() as i64 != wanted {
            return Err(TensorError(format!(
                "{} bytes for a tensor of {dtype} of shape {shape:?}, which has {wanted}",
                bytes.len()
            )));
        }
        Ok(HostTensor { dtype, shape: shape.to_vec(), bytes })
    }

    /// A tensor whose element `i` is the low bytes of `element(i)`, as many as the dtype has.
    ///
    /// # Panics
    ///
    /// If an extent is negative, or the shape has more than 2^63 - 1 bytes.
    #[track_caller]
    pub fn from_fn(dtype: DType, shape: &[i64], element: impl Fn(i64) -> u128) -> HostTensor {
        let count = match elements(dtype, shape) {
            Ok(count) => count,
            Err(error) => panic!("{error}"),
        };
        let width = dtype.bytes() as usize;
        let mut bytes = Vec::with_capacity(count as usize * width);
        for i in 0..count {
            bytes.extend_from_slice(&element(i).to_le_bytes()[..width]);
        }
        HostTensor { dtype, shape: shape.to_vec(), bytes }
    }

    /// A tensor whose element `i` is `number(i)`: rounded to the nearest float, ties to even, or truncated to an
    /// integer and saturated, as `cast` does in a kernel. For opaque dtypes it is the integer's bits.
    ///
    /// # Panics
    ///
    /// As [`HostTensor::from_fn`].
    #[track_caller]
    pub fn from_f64(dtype: DType, shape: &[i64], number: impl Fn(i64) -> f64) -> HostTensor {
        HostTensor::from_fn(dtype, shape, |i| bits_of(dtype, number(i)))
    }

    /// A test pattern, the same on every run: steps of 1/4 for f32 and f64; for other dtypes, elements that differ from
    /// their neighbours in every byte.
    ///
    /// # Panics
    ///
    /// As [`HostTensor::from_fn`].
    #[track_caller]
    pub fn pattern(dtype: DType, shape: &[i64]) -> HostTensor {
        HostTensor::from_fn(dtype, shape, |i| {
            let i = i as u128 + 1;
            let real = i as f64 * 0.25 - 7.0;
            match dtype {
                DType::F64 => u128::from(real.to_bits()),
                DType::F32 => u128::from((real as f32).to_bits()),
                _ => i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
            }
        })
    }

    /// Type of an element.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its shape.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// How many elements it has.
    pub fn len(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of element `i`; `None` outside the tensor.
    pub fn element(&self, i: i64) -> Option<&[u8]> {
        self.bytes.chunks(self.dtype.bytes() as usize).nth(usize::try_from(i).ok()?)
    }

    /// The bits of element `i`, which [`HostTensor::from_fn`] takes.
    ///
    /// # Panics
    ///
    /// Outside the tensor.
    #[track_caller]
    pub fn bits(&self, i: i64) -> u128 {
        let count = self.len();
        assert!((0..count).contains(&i), "element {i} of a tensor of {count} elements");
        let width = self.dtype.bytes() as usize;
        let mut bytes = [0; 16];
        bytes[..width].copy_from_slice(&self.bytes[i as usize * width..][..width]);
        u128::from_le_bytes(bytes)
    }

    /// All bytes, row-major.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Element `i` as a number; `None` for opaque dtypes, and outside the tensor.
    pub fn number(&self, i: i64) -> Option<f64> {
        let mut low = [0u8; 8];
        let element = self.element(i)?;
        let width = element.len().min(8);
        low[..width].copy_from_slice(&element[..width]);
        let bits = u64::from_le_bytes(low);
        let signed = |bits_used: u32| (bits << (64 - bits_used)) as i64 >> (64 - bits_used);
        match self.dtype {
            DType::F64 => Some(f64::from_bits(bits)),
            DType::F32 => Some(f64::from(f32::from_bits(bits as u32))),
            DType::BF16 => Some(bf16::from_bits(bits as u16).to_f64()),
            DType::F16 => Some(f16::from_bits(bits as u16).to_f64()),
            DType::E4M3 | DType::E5M2 => ByteFloat::of(self.dtype).map(|format| format.value(bits as u8)),
            DType::I8 => Some(signed(8) as f64),
            DType::I16 => Some(signed(16) as f64),
            DType::I32 => Some(signed(32) as f64),
            DType::I64 => Some(signed(64) as f64),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some(bits as f64),
            DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => None,
        }
    }

    /// Element `i` as text, a number or its bytes; `None` outside the tensor.
    pub fn show(&self, i: i64) -> Option<String> {
        let element = self.element(i)?;
        let bytes = || element.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
        Some(self.number(i).map_or_else(|| format!("0x{}", bytes()), |number| number.to_string()))
    }

    /// Whether it can be passed for a tensor of this shape: extents of 1 are ignored, and a one-dimensional tensor
    /// lists the elements in row-major order.
    fn has_shape(&self, shape: &[i64]) -> bool {
        let moving = non_unit_extents(&self.shape);
        let is_flat = moving.len() < 2 && self.len() == shape.iter().product::<i64>();
        is_flat || moving == non_unit_extents(shape)
    }

    /// The memory of a parameter that holds these elements; bytes between them are zero.
    pub(crate) fn pack(&self, parameter: &Parameter) -> Result<Vec<u8>, TensorError> {
        if self.dtype != parameter.dtype || !self.has_shape(&parameter.shape) {
            return Err(TensorError(format!(
                "`{}` is {} of shape {:?}, but the tensor that was given is {} of shape {:?}",
                parameter.name, parameter.dtype, parameter.shape, self.dtype, self.shape
            )));
        }
        let width = self.dtype.bytes() as usize;
        let mut memory = vec![0; parameter.memory_elements() as usize * width];
        for (element, position) in self.bytes.chunks(width).zip(parameter.layout.memory_positions()) {
            let at = position as usize * width;
            memory[at..at + width].copy_from_slice(element);
        }
        Ok(memory)
    }

    /// The elements that the memory of a parameter holds.
    pub(crate) fn unpack(parameter: &Parameter, memory: &[u8]) -> HostTensor {
        let width = parameter.dtype.bytes() as usize;
        let mut bytes = Vec::with_capacity(parameter.shape.iter().product::<i64>() as usize * width);
        for position in parameter.layout.memory_positions() {
            let at = position as usize * width;
            bytes.extend_from_slice(&memory[at..at + width]);
        }
        HostTensor { dtype: parameter.dtype, shape: parameter.shape.clone(), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_16_bits_come_back() {
        let numbers = [1.0, -2.0, 65504.0, 2f64.powi(-24), f64::INFINITY];
        let tensor = HostTensor::from_f64(DType::F16, &[5], |i| numbers[i as usize]);
        assert_eq!(
            tensor.bytes().chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect::<Vec<_>>(),
            [0x3c00, 0xc000, 0x7bff, 1, 0x7c00]
        );
        assert_eq!((0..5).map(|i| tensor.number(i)).collect::<Vec<_>>(), numbers.map(Some));
    }

    #[test]
    fn numbers_are_rounded_once() {
        // Just above the midpoint of 1 and the next number. In f32 it would be the midpoint itself, which is a tie.
        let shown = |dtype, number: f64| HostTensor::from_f64(dtype, &[1], |_| number).number(0);
        let tiny = 2f64.powi(-40);
        let next = |bits: i32| 1.0 + 2f64.powi(-bits);
        for sign in [1.0, -1.0] {
            assert_eq!(shown(DType::F16, sign * (next(11) + tiny)), Some(sign * next(10)));
            assert_eq!(shown(DType::BF16, sign * (next(8) + tiny)), Some(sign * next(7)));
            assert_eq!(shown(DType::F16, sign * (next(11) - tiny)), Some(sign));
            assert_eq!(shown(DType::BF16, sign * next(8)), Some(sign));
            assert_eq!(shown(DType::BF16, sign * 1e39), Some(sign * f64::INFINITY));
            assert_eq!(shown(DType::F16, sign * 1e-300), Some(sign * 0.0));
        }
        assert!(shown(DType::BF16, f64::NAN).is_some_and(f64::is_nan));
    }

    #[test]
    fn nothing_is_outside_of_a_tensor() {
        for dtype in [DType::F32, DType::B128] {
            let tensor = HostTensor::pattern(dtype, &[2, 2]);
            assert!(tensor.element(3).is_some() && tensor.show(3).is_some());
            for outside in [-1, 4, 99, i64::MIN, i64::MAX] {
                let found = (tensor.element(outside), tensor.number(outside), tensor.show(outside));
                assert_eq!(found, (None, None, None), "{outside}");
            }
        }
        let empty = HostTensor::from_bytes(DType::F32, &[0, 3], Vec::new()).unwrap();
        assert_eq!((empty.len(), empty.element(0)), (0, None));
    }

    #[test]
    #[should_panic(expected = "element 4 of a tensor of 4 elements")]
    fn there_are_no_bits_outside_of_a_tensor() {
        let tensor = HostTensor::pattern(DType::B128, &[2, 2]);
        assert_eq!(HostTensor::from_fn(DType::B128, &[2, 2], |i| tensor.bits(i)), tensor);
        tensor.bits(4);
    }

    #[test]
    fn shapes_that_no_tensor_has() {
        let error = |dtype, shape: &[i64]| HostTensor::from_bytes(dtype, shape, Vec::new()).unwrap_err().to_string();
        assert_eq!(error(DType::F32, &[-4]), "a tensor of f32 of shape [-4]: the extent -4 is negative");
        assert_eq!(error(DType::F32, &[0, -4]), "a tensor of f32 of shape [0, -4]: the extent -4 is negative");
        let too_large = "a tensor of f32 of shape [1099511627776, 1099511627776] has more than 2^63 - 1 bytes";
        assert_eq!(error(DType::F32, &[1i64 << 40, 1i64 << 40]), too_large);
        assert!(error(DType::F32, &[1i64 << 61]).ends_with("has more than 2^63 - 1 bytes"));
        assert_eq!(error(DType::U8, &[2]), "0 bytes for a tensor of u8 of shape [2], which has 2");
    }

    #[test]
    #[should_panic(expected = "a tensor of f32 of shape [-4]: the extent -4 is negative")]
    fn a_function_of_elements_asks_for_a_shape() {
        HostTensor::from_f64(DType::F32, &[-4], |_| 0.0);
    }

    #[test]
    fn packing_follows_the_layout_and_back() {
        let layout = tilewright_layout::TileLayout::row_major(&[2, 3]).unwrap();
        let column_major = "S[(2,3):(1,4)]".parse::<tilewright_layout::Layout>().unwrap();
        let parameter = |layout| Parameter {
            name: "a".into(),
            dtype: DType::U8,
            shape: vec![2, 3],
            layout,
            direction: tilewright_ir::tile::Direction::Input,
            alignment: 16,
        };
        let tensor = HostTensor::from_bytes(DType::U8, &[2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let memory = tensor.pack(&parameter(column_major.clone())).unwrap();
        assert_eq!(memory, [1, 4, 0, 0, 2, 5, 0, 0, 3, 6]);
        assert_eq!(HostTensor::unpack(&parameter(column_major), &memory), tensor);
        assert_eq!(tensor.pack(&parameter(layout.clone().into())).unwrap(), [1, 2, 3, 4, 5, 6]);
        let packed = |shape: &[i64]| {
            let tensor = HostTensor::from_bytes(DType::U8, shape, vec![1, 2, 3, 4, 5, 6]).unwrap();
            tensor.pack(&parameter(layout.clone().into())).map_err(|error| error.to_string())
        };
        assert_eq!([packed(&[6]), packed(&[2, 1, 3])], [Ok(vec![1, 2, 3, 4, 5, 6]), Ok(vec![1, 2, 3, 4, 5, 6])]);
        let wrong = "`a` is u8 of shape [2, 3], but the tensor that was given is u8 of shape [3, 2]";
        assert_eq!(packed(&[3, 2]), Err(wrong.to_string()));
    }
}
