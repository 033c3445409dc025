//! The bytes of a tensor map, in an order of our own, and the fields that `tensormap.replace` changes.

use std::ops::Range;

use super::{Im2col, MapAccess, MapElement, MapSwizzle, TENSOR_MAP_BYTES, TensorMap};

const MAGIC: [u8; 4] = *b"TMAP";

/// Where a field is: its first byte, and its number of bytes.
type Field = (usize, usize);

const RANK: Field = (4, 1);
const ELEMENT: Field = (5, 1);
const FILL: Field = (6, 1);
const SWIZZLE: Field = (7, 1);
const ADDRESS: Field = (8, 8);
const DIMS: Field = (16, 4);
const STRIDES: Field = (36, 8);
const BOX: Field = (68, 2);
const ELEMENT_STRIDES: Field = (78, 1);
const ATOMICITY: Field = (83, 1);
const IS_IM2COL: Field = (84, 1);
const INTERLEAVE: Field = (85, 1);
const LOWER: Field = (86, 2);
const UPPER: Field = (92, 2);
const CHANNELS: Field = (98, 2);
const PIXELS: Field = (100, 2);

/// The place of element `at` of a list.
fn nth((first, len): Field, at: usize) -> Field {
    (first + at * len, len)
}

fn get(bytes: &[u8; TENSOR_MAP_BYTES], (first, len): Field) -> u64 {
    bytes[first..first + len].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

fn set(bytes: &mut [u8; TENSOR_MAP_BYTES], (first, len): Field, value: u64) {
    bytes[first..first + len].copy_from_slice(&value.to_le_bytes()[..len]);
}

/// A field that `tensormap.replace` changes, with the number of the dimension for those that have one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapField {
    Address,
    /// One less than the number of dimensions.
    Rank,
    Box(usize),
    Dim(usize),
    Stride(usize),
    ElementStride(usize),
    Element,
    Interleave,
    Swizzle,
    Atomicity,
    Fill,
}

impl MapField {
    /// Changes the field of a map, whose bytes need not be a legal map before or after. Returns where the field is.
    pub(crate) fn replace(self, bytes: &mut [u8; TENSOR_MAP_BYTES], value: u64) -> Range<usize> {
        let (field, value) = match self {
            MapField::Address => (ADDRESS, value),
            MapField::Rank => (RANK, value + 1),
            MapField::Box(at) => (nth(BOX, at), value),
            // A dimension of 2^32 elements is stored as one less.
            MapField::Dim(at) => (nth(DIMS, at), value.wrapping_sub(1)),
            MapField::Stride(at) => (nth(STRIDES, at), value),
            MapField::ElementStride(at) => (nth(ELEMENT_STRIDES, at), value),
            MapField::Element => (ELEMENT, value),
            MapField::Interleave => (INTERLEAVE, value),
            MapField::Swizzle => (SWIZZLE, value),
            MapField::Atomicity => (ATOMICITY, value),
            MapField::Fill => (FILL, value),
        };
        set(bytes, field, value);
        field.0..field.0 + field.1
    }
}

impl TensorMap {
    /// The 128 bytes of the map.
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut bytes = [0; TENSOR_MAP_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        let (swizzle, atomicity) = self.swizzle.codes();
        let mut put = |field: MapField, value: u64| _ = field.replace(&mut bytes, value);
        put(MapField::Address, self.address);
        put(MapField::Rank, self.rank() as u64 - 1);
        put(MapField::Element, u64::from(self.element.code()));
        put(MapField::Fill, u64::from(self.fills_nan));
        put(MapField::Swizzle, u64::from(swizzle));
        put(MapField::Atomicity, u64::from(atomicity));
        self.dims.iter().enumerate().for_each(|(at, size)| put(MapField::Dim(at), *size));
        self.strides.iter().enumerate().for_each(|(at, stride)| put(MapField::Stride(at), *stride));
        self.element_strides.iter().enumerate().for_each(|(at, stride)| put(MapField::ElementStride(at), *stride));
        match &self.access {
            MapAccess::Tiled(sides) => sides.iter().enumerate().for_each(|(at, side)| put(MapField::Box(at), *side)),
            MapAccess::Im2col(Im2col { lower, upper, channels, pixels }) => {
                set(&mut bytes, IS_IM2COL, 1);
                lower.iter().enumerate().for_each(|(at, offset)| set(&mut bytes, nth(LOWER, at), *offset as u64));
                upper.iter().enumerate().for_each(|(at, offset)| set(&mut bytes, nth(UPPER, at), *offset as u64));
                set(&mut bytes, CHANNELS, *channels);
                set(&mut bytes, PIXELS, *pixels);
            }
        }
        bytes
    }

    /// The map in 128 bytes.
    ///
    /// # Errors
    /// Why they are not a map that the hardware accepts.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, String> {
        if !bytes.starts_with(&MAGIC) {
            return Err("the bytes at this address are not a tensor map".to_string());
        }
        let number = |field: Field| get(bytes, field);
        let rank = number(RANK) as usize;
        if !(1..=5).contains(&rank) {
            return Err(format!("the tensor map has {rank} dimensions; a tensor has 1 to 5"));
        }
        if number(INTERLEAVE) != 0 {
            return Err("the tensor map interleaves channels, which is not supported".to_string());
        }
        let element = MapElement::of_code(number(ELEMENT) as u8);
        let element = element.ok_or_else(|| format!("there is no element type with the code {}", number(ELEMENT)))?;
        let codes = (number(SWIZZLE) as u8, number(ATOMICITY) as u8);
        let swizzle = MapSwizzle::of_codes(codes);
        let swizzle = swizzle
            .ok_or_else(|| format!("there is no swizzle with the mode {} and the atomicity {}", codes.0, codes.1))?;
        let list = |field: Field, count: usize| (0..count).map(|at| number(nth(field, at))).collect::<Vec<u64>>();
        let corner = |field: Field| -> Vec<i64> {
            list(field, rank.saturating_sub(2)).into_iter().map(|offset| i64::from(offset as u16 as i16)).collect()
        };
        let access = if number(IS_IM2COL) == 1 {
            let (channels, pixels) = (number(CHANNELS), number(PIXELS));
            MapAccess::Im2col(Im2col { lower: corner(LOWER), upper: corner(UPPER), channels, pixels })
        } else {
            MapAccess::Tiled(list(BOX, rank))
        };
        let map = TensorMap {
            address: number(ADDRESS),
            element,
            fills_nan: number(FILL) == 1,
            dims: list(DIMS, rank).into_iter().map(|size| size + 1).collect(),
            strides: list(STRIDES, rank - 1),
            access,
            element_strides: list(ELEMENT_STRIDES, rank),
            swizzle,
        };
        map.check().map_err(|(field, at, text)| {
            let at = at.map_or(String::new(), |at| format!("[{at}]"));
            format!("the tensor map is illegal: {field}{at}: {text}")
        })?;
        Ok(map)
    }
}
