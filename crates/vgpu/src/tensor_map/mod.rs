//! Tensor maps: how a tensor copy (TMA) finds the boxes of a tensor in global memory. The 128 bytes of a map are opaque;
//! here they hold the arguments of `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col` (CUDA driver API, tensor map object
//! management).

mod bytes;
mod element;
mod swizzle;

pub(crate) use bytes::MapField;
pub(crate) use element::Chunk;
pub use element::MapElement;
pub(crate) use swizzle::GRANULE;
pub use swizzle::MapSwizzle;

/// Size of a map in bytes.
pub const TENSOR_MAP_BYTES: usize = 128;

/// What a map describes. Dimensions go from the innermost to the outermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of the tensor.
    pub address: u64,
    /// The type of an element.
    pub element: MapElement,
    /// Whether elements outside the tensor are NaN, not 0.
    pub fills_nan: bool,
    /// The number of elements in each dimension.
    pub dims: Vec<u64>,
    /// The distance between neighbours in each dimension but the first, in bytes.
    pub strides: Vec<u64>,
    /// What a copy moves.
    pub access: MapAccess,
    /// The distance of the elements that are copied, in each dimension; the first is ignored.
    pub element_strides: Vec<u64>,
    /// How shared memory is permuted.
    pub swizzle: MapSwizzle,
}

/// What a copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapAccess {
    /// A box: the elements that it spans in each dimension.
    Tiled(Vec<u64>),
    /// Pixels of images, one after another (PTX ISA, section 5.5.4).
    Im2col(Im2col),
}

/// Pixels of images. The tensor has channels first, images last, and one to three dimensions of space between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Im2col {
    /// The first position of the base of the filter in each dimension of space.
    pub lower: Vec<i64>,
    /// What is added to the extents of the dimensions of space: the bases end there.
    pub upper: Vec<i64>,
    /// Channels of a pixel that are copied.
    pub channels: u64,
    /// Pixels that are copied.
    pub pixels: u64,
}

/// What a field of a map violates, as field, index and text.
pub type MapError = (&'static str, Option<usize>, String);

impl TensorMap {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Elements of a row: of a box, or of a pixel.
    pub(crate) fn row(&self) -> u64 {
        match &self.access {
            MapAccess::Tiled(sides) => sides[0],
            MapAccess::Im2col(pixels) => pixels.channels,
        }
    }

    /// Bytes of a row of the tensor.
    pub(crate) fn row_of_tensor(&self) -> u64 {
        let chunk = self.element.chunk();
        self.dims[0].div_ceil(chunk.elements) * chunk.bytes
    }

    /// Bytes of a row in shared memory.
    pub(crate) fn row_bytes(&self) -> u64 {
        let chunk = self.element.chunk();
        self.row() / chunk.elements * chunk.shared
    }

    /// The distance of rows in shared memory, in bytes: a row that is shorter than the swizzle's span leaves the rest of it
    /// untouched (seen on an H200).
    pub(crate) fn row_pitch(&self) -> u64 {
        self.swizzle.span().unwrap_or_else(|| self.row_bytes())
    }

    /// Rows that are copied in a dimension of a box: an element stride skips some.
    pub(crate) fn copied(&self, sides: &[u64], at: usize) -> u64 {
        sides[at].div_ceil(self.element_strides[at])
    }

    /// Rows that are copied at once: of a box, or pixels.
    pub(crate) fn rows(&self) -> u64 {
        match &self.access {
            MapAccess::Tiled(sides) => (1..self.rank()).map(|at| self.copied(sides, at)).product(),
            MapAccess::Im2col(pixels) => pixels.pixels,
        }
    }

    /// Bytes of a box in shared memory.
    pub fn box_bytes(&self) -> u64 {
        self.rows() * self.row_bytes()
    }

    /// Checks what `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` demand.
    ///
    /// # Errors
    /// The first field that violates it.
    pub fn check(&self) -> Result<(), MapError> {
        self.check_lengths()?;
        self.check_tensor()?;
        match &self.access {
            MapAccess::Tiled(sides) => check_box(sides)?,
            MapAccess::Im2col(pixels) => self.check_pixels(pixels)?,
        }
        for (at, stride) in self.element_strides.iter().enumerate() {
            if !(1..=8).contains(stride) {
                let text = format!("an element stride is 1 to 8; this one is {stride}");
                return Err(("element_strides", Some(at), text));
            }
        }
        self.check_row()
    }

    fn check_lengths(&self) -> Result<(), MapError> {
        let rank = self.rank();
        if !(1..=5).contains(&rank) {
            return Err(("dims", None, format!("a tensor has 1 to 5 dimensions; this one has {rank}")));
        }
        let of_access: &[(&'static str, usize, usize)] = match &self.access {
            MapAccess::Tiled(sides) => &[("box", sides.len(), rank)],
            MapAccess::Im2col(_) if rank < 3 => {
                let text = format!("images have 3 to 5 dimensions; this tensor has {rank}");
                return Err(("dims", None, text));
            }
            MapAccess::Im2col(Im2col { lower, upper, .. }) => {
                &[("im2col.lower", lower.len(), rank - 2), ("im2col.upper", upper.len(), rank - 2)]
            }
        };
        let common =
            [("strides_bytes", self.strides.len(), rank - 1), ("element_strides", self.element_strides.len(), rank)];
        for (field, have, want) in common.iter().chain(of_access) {
            if have != want {
                return Err((
                    field,
                    None,
                    format!("the number of entries is {have}; for a tensor of rank {rank} it is {want}"),
                ));
            }
        }
        Ok(())
    }

    fn check_tensor(&self) -> Result<(), MapError> {
        let wrong = |field: &'static str, at: Option<usize>, text: String| Err((field, at, text));
        let unit = if self.element.is_padded() { 32 } else { 16 };
        if !self.address.is_multiple_of(unit) {
            return wrong("byte_offset", None, format!("the tensor does not begin at a multiple of {unit} bytes"));
        }
        for (at, size) in self.dims.iter().enumerate() {
            if !(1..=1 << 32).contains(size) {
                return wrong("dims", Some(at), format!("a dimension has 1 to 2^32 elements; this one has {size}"));
            }
        }
        let row_unit = match self.element {
            MapElement::B4x16 => 2,
            MapElement::B4x16P64 | MapElement::B6x16P32 => 128,
            _ => 1,
        };
        if !self.dims[0].is_multiple_of(row_unit) {
            let text = format!("a row of these elements is a multiple of {row_unit}; this one has {}", self.dims[0]);
            return wrong("dims", Some(0), text);
        }
        for (at, stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(unit) || *stride >= 1 << 40 {
                let text = format!("a stride is a multiple of {unit} bytes below 2^40; this one is {stride}");
                return wrong("strides_bytes", Some(at), text);
            }
        }
        if self.fills_nan && !self.element.is_float() {
            return wrong("oob_fill", None, "only floating-point elements can be filled with NaN".to_string());
        }
        Ok(())
    }

    fn check_pixels(&self, Im2col { lower, upper, channels, pixels }: &Im2col) -> Result<(), MapError> {
        let bits = [16, 8, 5][self.rank() - 3];
        let range = -(1i64 << (bits - 1))..1i64 << (bits - 1);
        for (field, corner) in [("im2col.lower", lower), ("im2col.upper", upper)] {
            if let Some(at) = corner.iter().position(|offset| !range.contains(offset)) {
                let text = format!("an offset is {} to {}; this one is {}", range.start, range.end - 1, corner[at]);
                return Err((field, Some(at), text));
            }
        }
        for (at, (lower, upper)) in lower.iter().zip(upper).enumerate() {
            if *lower >= self.dims[at + 1] as i64 + upper {
                let text = format!("the bases of the filter, from {lower} to the extent plus {upper}, are empty");
                return Err(("im2col.upper", Some(at), text));
            }
        }
        if !(1..=256).contains(channels) {
            return Err(("im2col.channels", None, format!("a pixel has 1 to 256 channels; this one has {channels}")));
        }
        if !(1..=1024).contains(pixels) {
            return Err(("im2col.pixels", None, format!("a copy has 1 to 1024 pixels; this one has {pixels}")));
        }
        Ok(())
    }

    /// Checks the length of a row in shared memory.
    fn check_row(&self) -> Result<(), MapError> {
        let (field, at) = match &self.access {
            MapAccess::Tiled(_) => ("box", Some(0)),
            MapAccess::Im2col(_) => ("im2col.channels", None),
        };
        let (elements, row) = (self.row(), self.row_bytes());
        let text = if self.element.is_padded() && elements != 128 {
            format!("a row of these elements has 128 in a box; this one has {elements}")
        } else if !row.is_multiple_of(16) || !elements.is_multiple_of(self.element.chunk().elements) {
            format!("a row of a box is a multiple of 16 bytes; this one has {row}")
        } else {
            match self.swizzle.span() {
                Some(span) if row > span => format!("a row of {row} bytes is longer than the swizzle's {span}"),
                Some(span) if row < span && self.swizzle.has_wide_atoms() => {
                    format!("a row of {row} bytes is shorter than the swizzle's {span}: where it goes is not known")
                }
                Some(_) | None => return Ok(()),
            }
        };
        Err((field, at, text))
    }
}

fn check_box(sides: &[u64]) -> Result<(), MapError> {
    match sides.iter().position(|side| !(1..=256).contains(side)) {
        None => Ok(()),
        Some(at) => {
            let text = format!("a box has 1 to 256 elements in a dimension; this one has {}", sides[at]);
            Err(("box", Some(at), text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x7000_0000_0100,
            element: MapElement::Bf16,
            fills_nan: false,
            dims: vec![64, 1 << 32, 3],
            strides: vec![128, 4096],
            access: MapAccess::Tiled(vec![64, 256, 1]),
            element_strides: vec![1, 2, 1],
            swizzle: MapSwizzle::B128,
        }
    }

    fn images() -> TensorMap {
        let pixels = Im2col { lower: vec![-1, -2], upper: vec![-1, 0], channels: 64, pixels: 100 };
        TensorMap {
            dims: vec![64, 9, 14, 3],
            strides: vec![128, 1152, 16128],
            access: MapAccess::Im2col(pixels),
            element_strides: vec![1, 2, 1, 1],
            ..map()
        }
    }

    #[test]
    fn a_map_survives_its_bytes() {
        for map in [map(), images()] {
            assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
        }
        assert!(TensorMap::decode(&[0; 128]).is_err());
        let with = |at: usize, byte: u8| {
            let mut bytes = map().encode();
            bytes[at] = byte;
            TensorMap::decode(&bytes).is_err()
        };
        // The rank, the element, and an element stride.
        assert_eq!([with(4, 200), with(5, 16), with(79, 0)], [true; 3]);
        assert_eq!((map().box_bytes(), images().box_bytes()), (64 * 128 * 2, 6400 * 2));
    }

    #[test]
    fn what_the_hardware_refuses_is_named() {
        let said = |change: fn(&mut TensorMap)| {
            let mut map = map();
            change(&mut map);
            map.check().expect_err("it is wrong")
        };
        assert_eq!(map().check(), Ok(()));
        assert_eq!(said(|map| map.access = MapAccess::Tiled(vec![64, 257, 1])).1, Some(1));
        assert_eq!(said(|map| map.strides[0] = 130).0, "strides_bytes");
        assert_eq!(said(|map| map.element_strides[2] = 9).0, "element_strides");
        let narrow = said(|map| map.access = MapAccess::Tiled(vec![66, 256, 1]));
        assert_eq!(narrow.2, "a row of a box is a multiple of 16 bytes; this one has 132");
        assert_eq!(said(|map| map.swizzle = MapSwizzle::B64).2, "a row of 128 bytes is longer than the swizzle's 64");
        assert_eq!(said(|map| map.address = 8).0, "byte_offset");
        assert_eq!(said(|map| map.strides.push(0)).2, "the number of entries is 3; for a tensor of rank 3 it is 2");
        let padded = said(|map| map.element = MapElement::B6x16P32);
        assert_eq!(padded.2, "a row of these elements is a multiple of 128; this one has 64");
    }

    #[test]
    fn what_the_hardware_refuses_of_images_is_named() {
        let said = |change: fn(&mut Im2col)| {
            let mut map = images();
            if let MapAccess::Im2col(pixels) = &mut map.access {
                change(pixels);
            }
            map.check().expect_err("it is wrong")
        };
        assert_eq!(images().check(), Ok(()));
        assert_eq!(said(|pixels| pixels.lower[1] = -129).2, "an offset is -128 to 127; this one is -129");
        assert_eq!(said(|pixels| pixels.upper[0] = -10).0, "im2col.upper");
        assert_eq!(said(|pixels| pixels.pixels = 1025).0, "im2col.pixels");
        assert_eq!(said(|pixels| pixels.channels = 257).0, "im2col.channels");
        assert_eq!(said(|pixels| pixels.upper.push(0)).2, "the number of entries is 3; for a tensor of rank 4 it is 2");
    }
}
