//! Tensor maps: how a tensor copy (TMA) finds the boxes of a tensor in global memory. The 128 bytes of a map are opaque;
//! here they hold the arguments of `cuTensorMapEncodeTiled` (CUDA driver API, tensor map object management).

use serde::Deserialize;

/// Size of a map in bytes.
pub const TENSOR_MAP_BYTES: usize = 128;

/// How the rows of a box are permuted in shared memory, by an exclusive or on address bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MapSwizzle {
    /// Not at all.
    #[serde(rename = "none")]
    None,
    /// Bit 4 by bit 7.
    #[serde(rename = "32B")]
    B32,
    /// Bits 4 and 5 by bits 7 and 8.
    #[serde(rename = "64B")]
    B64,
    /// Bits 4 to 6 by bits 7 to 9.
    #[serde(rename = "128B")]
    B128,
}

impl MapSwizzle {
    /// The most bytes of a row of a box; `None` without a swizzle.
    pub fn span(self) -> Option<u64> {
        match self {
            MapSwizzle::None => None,
            MapSwizzle::B32 => Some(32),
            MapSwizzle::B64 => Some(64),
            MapSwizzle::B128 => Some(128),
        }
    }

    /// The address that stands for `address` in shared memory.
    pub fn apply(self, address: u64) -> u64 {
        let mask = self.span().map_or(0, |span| span / 16 - 1);
        address ^ ((address >> 7 & mask) << 4)
    }
}

/// What a map describes. Dimensions go from the innermost to the outermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of the tensor.
    pub address: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Whether elements outside the tensor are NaN, not 0.
    pub fills_nan: bool,
    /// The number of elements in each dimension.
    pub dims: Vec<u64>,
    /// The distance between neighbours in each dimension but the first, in bytes.
    pub strides: Vec<u64>,
    /// The elements that a box spans in each dimension.
    pub box_dims: Vec<u64>,
    /// The distance of the elements that are copied, in each dimension; the first is ignored.
    pub element_strides: Vec<u64>,
    /// How shared memory is permuted.
    pub swizzle: MapSwizzle,
}

/// What a field of a map violates, as field, index and text.
pub type MapError = (&'static str, Option<usize>, String);

const MAGIC: [u8; 4] = *b"TMAP";

impl TensorMap {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Elements that are copied in dimension `at` of a box.
    pub fn copied(&self, at: usize) -> u64 {
        // Without interleaving, the stride of the first dimension is ignored.
        if at == 0 { self.box_dims[0] } else { self.box_dims[at].div_ceil(self.element_strides[at]) }
    }

    /// Bytes of a box in shared memory.
    pub fn box_bytes(&self) -> u64 {
        (0..self.rank()).map(|at| self.copied(at)).product::<u64>() * self.element_bytes
    }

    /// Checks what `cuTensorMapEncodeTiled` demands.
    ///
    /// # Errors
    /// The first field that violates it.
    pub fn check(&self) -> Result<(), MapError> {
        let rank = self.rank();
        let wrong = |field: &'static str, at: Option<usize>, text: String| Err((field, at, text));
        if !(1..=5).contains(&rank) {
            return wrong("dims", None, format!("a tensor has 1 to 5 dimensions; this one has {rank}"));
        }
        let lengths = [
            ("strides_bytes", self.strides.len(), rank - 1),
            ("box", self.box_dims.len(), rank),
            ("element_strides", self.element_strides.len(), rank),
        ];
        for (field, have, want) in lengths {
            if have != want {
                return wrong(field, None, format!("{rank} dimensions need {want} entries; here are {have}"));
            }
        }
        if !matches!(self.element_bytes, 1 | 2 | 4 | 8) {
            return wrong(
                "dtype",
                None,
                format!("an element has 1, 2, 4 or 8 bytes; this one has {}", self.element_bytes),
            );
        }
        if !self.address.is_multiple_of(16) {
            return wrong("byte_offset", None, "the tensor does not begin at a multiple of 16 bytes".to_string());
        }
        for (at, size) in self.dims.iter().enumerate() {
            if !(1..=1 << 32).contains(size) {
                return wrong("dims", Some(at), format!("a dimension has 1 to 2^32 elements; this one has {size}"));
            }
        }
        for (at, stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(16) || *stride >= 1 << 40 {
                let text = format!("a stride is a multiple of 16 bytes below 2^40; this one is {stride}");
                return wrong("strides_bytes", Some(at), text);
            }
        }
        for (at, size) in self.box_dims.iter().enumerate() {
            if !(1..=256).contains(size) {
                return wrong(
                    "box",
                    Some(at),
                    format!("a box has 1 to 256 elements in a dimension; this one has {size}"),
                );
            }
        }
        for (at, stride) in self.element_strides.iter().enumerate() {
            if !(1..=8).contains(stride) {
                return wrong(
                    "element_strides",
                    Some(at),
                    format!("an element stride is 1 to 8; this one is {stride}"),
                );
            }
        }
        let row = self.box_dims[0] * self.element_bytes;
        if !row.is_multiple_of(16) {
            return wrong("box", Some(0), format!("a row of a box is a multiple of 16 bytes; this one has {row}"));
        }
        match self.swizzle.span() {
            Some(span) if row > span => {
                wrong("box", Some(0), format!("a row of {row} bytes is longer than the swizzle's {span}"))
            }
            Some(span) if row < span => {
                let text =
                    format!("a row of {row} bytes is shorter than the swizzle's {span}: where it goes is not modelled");
                wrong("box", Some(0), text)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The 128 bytes of the map.
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut bytes = Vec::with_capacity(TENSOR_MAP_BYTES);
        bytes.extend(MAGIC);
        bytes.extend([self.rank() as u8, self.element_bytes as u8, u8::from(self.fills_nan), self.swizzle as u8]);
        bytes.extend(self.address.to_le_bytes());
        let padded = |list: &[u64], count: usize| {
            list.iter().copied().chain(std::iter::repeat(0)).take(count).collect::<Vec<u64>>()
        };
        // A dimension of 2^32 elements is stored as one less.
        padded(&self.dims, 5).iter().for_each(|size| bytes.extend((size.wrapping_sub(1) as u32).to_le_bytes()));
        padded(&self.strides, 4).iter().for_each(|stride| bytes.extend(stride.to_le_bytes()));
        padded(&self.box_dims, 5).iter().for_each(|size| bytes.extend((*size as u16).to_le_bytes()));
        padded(&self.element_strides, 5).iter().for_each(|stride| bytes.push(*stride as u8));
        bytes.resize(TENSOR_MAP_BYTES, 0);
        let mut all = [0; TENSOR_MAP_BYTES];
        all.copy_from_slice(&bytes);
        all
    }

    /// The map in 128 bytes; `None` if they are not a map that the hardware accepts.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<TensorMap> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let number =
            |at: usize, len: usize| rest[at..at + len].iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
        let rank = number(0, 1) as usize;
        if !(1..=5).contains(&rank) {
            return None;
        }
        let swizzle = match number(3, 1) {
            0 => MapSwizzle::None,
            1 => MapSwizzle::B32,
            2 => MapSwizzle::B64,
            _ => MapSwizzle::B128,
        };
        let list =
            |start: usize, len: usize, count: usize| (0..count).map(|at| number(start + at * len, len)).collect();
        let dims: Vec<u64> = list(12, 4, rank);
        let map = TensorMap {
            address: number(4, 8),
            element_bytes: number(1, 1),
            fills_nan: number(2, 1) == 1,
            dims: dims.iter().map(|size| size + 1).collect(),
            strides: list(32, 8, rank - 1),
            box_dims: list(64, 2, rank),
            element_strides: list(74, 1, rank),
            swizzle,
        };
        map.check().is_ok().then_some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x7000_0000_0100,
            element_bytes: 2,
            fills_nan: false,
            dims: vec![64, 1 << 32, 3],
            strides: vec![128, 4096],
            box_dims: vec![64, 256, 1],
            element_strides: vec![1, 2, 1],
            swizzle: MapSwizzle::B128,
        }
    }

    #[test]
    fn a_map_survives_its_bytes() {
        assert_eq!(TensorMap::decode(&map().encode()), Some(map()));
        assert_eq!(TensorMap::decode(&[0; 128]), None);
        let with = |at: usize, byte: u8| {
            let mut bytes = map().encode();
            bytes[at] = byte;
            TensorMap::decode(&bytes)
        };
        // The rank, bytes of an element, and an element stride.
        assert_eq!([with(4, 200), with(5, 16), with(79, 0)], [None, None, None]);
        assert_eq!(map().box_bytes(), 64 * 128 * 2);
    }

    #[test]
    fn what_the_hardware_refuses_is_named() {
        let said = |change: fn(&mut TensorMap)| {
            let mut map = map();
            change(&mut map);
            map.check().expect_err("it is wrong")
        };
        assert_eq!(map().check(), Ok(()));
        assert_eq!(said(|map| map.box_dims[1] = 257).1, Some(1));
        assert_eq!(said(|map| map.strides[0] = 130).0, "strides_bytes");
        assert_eq!(said(|map| map.element_strides[2] = 9).0, "element_strides");
        assert_eq!(said(|map| map.box_dims[0] = 66).2, "a row of a box is a multiple of 16 bytes; this one has 132");
        assert_eq!(said(|map| map.swizzle = MapSwizzle::B64).2, "a row of 128 bytes is longer than the swizzle's 64");
        assert_eq!(said(|map| map.address = 8).0, "byte_offset");
        assert_eq!(said(|map| map.strides.push(0)).2, "3 dimensions need 2 entries; here are 3");
    }

    #[test]
    fn a_swizzle_is_its_own_inverse() {
        for swizzle in [MapSwizzle::None, MapSwizzle::B32, MapSwizzle::B64, MapSwizzle::B128] {
            for address in (0..4096).step_by(16) {
                assert_eq!(swizzle.apply(swizzle.apply(address)), address);
            }
        }
        assert_eq!(MapSwizzle::B128.apply(128 + 16), 128);
        assert_eq!(MapSwizzle::B32.apply(256 + 16), 256 + 16);
    }
}
