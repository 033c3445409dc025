//! The elements of tensors that tensor copies move (PTX ISA, section 5.5.1).

/// The type of an element. Elements of less than 8 bits are packed in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapElement {
    /// 8 bits, unsigned.
    U8,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    S32,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    S64,
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// bfloat16.
    Bf16,
    /// 32 bits, of which 19 are used.
    Tf32,
    /// 4 bits, packed in shared memory too (`.b4x16`).
    B4x16,
    /// 4 bits; 16 of them take 16 bytes of shared memory, of which the upper 8 are padding (`.b4x16_p64`).
    B4x16P64,
    /// 6 bits; 16 of them take 16 bytes of shared memory, of which the upper 4 are padding (`.b6x16_p32`).
    B6x16P32,
}

/// Bytes to a multiple of which the first element of a copy lies in its row.
const START_UNIT: u64 = 16;

/// Elements that are copied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) elements: u64,
    /// Their bytes in global memory.
    pub(crate) bytes: u64,
    /// Their bytes in shared memory, with padding.
    pub(crate) shared: u64,
}

impl MapElement {
    /// With the codes of `tensormap.replace` (PTX ISA).
    const CODES: [(MapElement, u8); 14] = [
        (MapElement::U8, 0),
        (MapElement::U16, 1),
        (MapElement::U32, 2),
        (MapElement::S32, 3),
        (MapElement::U64, 4),
        (MapElement::S64, 5),
        (MapElement::F16, 6),
        (MapElement::F32, 7),
        (MapElement::F64, 9),
        (MapElement::Bf16, 10),
        (MapElement::Tf32, 11),
        (MapElement::B4x16, 13),
        (MapElement::B4x16P64, 14),
        (MapElement::B6x16P32, 15),
    ];

    pub(super) fn code(self) -> u8 {
        MapElement::CODES.iter().find(|(element, _)| *element == self).map_or(0, |(_, code)| *code)
    }

    pub(super) fn of_code(code: u8) -> Option<MapElement> {
        // Those that flush subnormals are copied like the others.
        let code = if matches!(code, 8 | 12) { code - 1 } else { code };
        MapElement::CODES.iter().find(|(_, known)| *known == code).map(|(element, _)| *element)
    }

    pub(crate) fn chunk(self) -> Chunk {
        let chunk = |elements: u64, bytes: u64, shared: u64| Chunk { elements, bytes, shared };
        match self {
            MapElement::U8 => chunk(1, 1, 1),
            MapElement::U16 | MapElement::F16 | MapElement::Bf16 => chunk(1, 2, 2),
            MapElement::U32 | MapElement::S32 | MapElement::F32 | MapElement::Tf32 => chunk(1, 4, 4),
            MapElement::U64 | MapElement::S64 | MapElement::F64 => chunk(1, 8, 8),
            MapElement::B4x16 => chunk(2, 1, 1),
            MapElement::B4x16P64 => chunk(16, 8, 16),
            MapElement::B6x16P32 => chunk(16, 12, 16),
        }
    }

    /// What the first coordinate of a copy is a multiple of, in elements. No document says so: on an H200, copies in either
    /// direction, reductions and prefetches are illegal instructions if they begin elsewhere than at a multiple of 16
    /// bytes. Elements with padding have not been tried; they are moved in groups.
    pub(crate) fn start_unit(self) -> i64 {
        let Chunk { elements, bytes, .. } = self.chunk();
        (if self.is_padded() { elements } else { START_UNIT * elements / bytes }) as i64
    }

    /// Whether it has padding in shared memory.
    pub(crate) fn is_padded(self) -> bool {
        let Chunk { bytes, shared, .. } = self.chunk();
        bytes != shared
    }

    /// Whether elements outside the tensor can be NaN.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, MapElement::F16 | MapElement::Bf16 | MapElement::F32 | MapElement::F64 | MapElement::Tf32)
    }

    /// The bytes of elements outside the tensor, repeated: zeros, or the NaN whose bits are all ones but the sign.
    pub(crate) fn fill(self, is_nan: bool) -> Vec<u8> {
        let bytes = self.chunk().bytes as usize;
        let mut fill = vec![if is_nan { 0xff } else { 0 }; bytes];
        if is_nan && bytes < 8 {
            fill[bytes - 1] = 0x7f;
        }
        fill
    }
}
