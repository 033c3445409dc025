//! The 64-bit words that tell a matrix engine where an operand starts in shared memory and how it continues.
//!
//! Addresses and offsets are in units of 16 bytes, 14 bits each. Sources: PTX ISA, "Shared memory descriptor" of
//! tcgen05 and "Matrix descriptor format" of wgmma.

use crate::error::LayoutError;
use crate::hardware::SwizzleMode;

use super::field::{put, take};
use super::pattern::SwizzlePattern;

/// Bytes that addresses and offsets count in.
pub const ADDRESS_UNIT: i64 = 16;

/// Bits 46 to 48 of every tcgen05 descriptor.
const TCGEN05_CONSTANT: u64 = 0b001;

/// The descriptor of `tcgen05.mma` and `tcgen05.cp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Descriptor {
    /// Start address, in units of 16 bytes (bits 0 to 13).
    pub start_address: u16,
    /// Leading dimension: offset or address, in units of 16 bytes (bits 16 to 29). Unused if K-major rows are swizzled.
    pub leading_byte_offset: u16,
    /// Stride dimension: offset, in units of 16 bytes (bits 32 to 45).
    pub stride_byte_offset: u16,
    /// Phase of the swizzle at the start (bits 49 to 51); 0 if the tile starts at a multiple of the pattern's period.
    pub base_offset: u8,
    /// Whether the leading dimension is an address instead of an offset (bit 52; for K of 48 bytes, `sm_103a`).
    pub leading_is_address: bool,
    /// Swizzle (bits 61 to 63).
    pub swizzle: SwizzlePattern,
}

impl Tcgen05Descriptor {
    /// The encoded word. Bits beyond a field's width are dropped, as hardware wraps addresses at 256 KiB.
    pub fn encode(&self) -> u64 {
        let swizzle = match self.swizzle {
            SwizzlePattern::None => 0,
            SwizzlePattern::B128Atom32 => 1,
            SwizzlePattern::B128 => 2,
            SwizzlePattern::B64 => 4,
            SwizzlePattern::B32 => 6,
        };
        put(u64::from(self.start_address), 0, 14)
            | put(u64::from(self.leading_byte_offset), 16, 14)
            | put(u64::from(self.stride_byte_offset), 32, 14)
            | put(TCGEN05_CONSTANT, 46, 3)
            | put(u64::from(self.base_offset), 49, 3)
            | put(u64::from(self.leading_is_address), 52, 1)
            | put(swizzle, 61, 3)
    }

    /// Decodes a word. Errors: the fixed constant is missing, reserved bits are set, the swizzle code is unknown.
    pub fn decode(word: u64) -> Result<Tcgen05Descriptor, LayoutError> {
        let refuse = |problem: &str, legal: &str| LayoutError::Hardware {
            name: "tcgen05 shared-memory descriptor",
            problem: format!("{word:#018x} has {problem}"),
            legal: legal.to_string(),
        };
        if take(word, 46, 3) != TCGEN05_CONSTANT {
            return Err(refuse("a wrong constant in bits 46 to 48", "0b001 in bits 46 to 48"));
        }
        if take(word, 14, 2) | take(word, 30, 2) | take(word, 53, 8) != 0 {
            return Err(refuse("reserved bits set", "zeros in bits 14, 15, 30, 31 and 53 to 60"));
        }
        let swizzle = match take(word, 61, 3) {
            0 => SwizzlePattern::None,
            1 => SwizzlePattern::B128Atom32,
            2 => SwizzlePattern::B128,
            4 => SwizzlePattern::B64,
            6 => SwizzlePattern::B32,
            _ => return Err(refuse("an unknown swizzle code in bits 61 to 63", "0, 1, 2, 4 or 6 in bits 61 to 63")),
        };
        Ok(Tcgen05Descriptor {
            start_address: take(word, 0, 14) as u16,
            leading_byte_offset: take(word, 16, 14) as u16,
            stride_byte_offset: take(word, 32, 14) as u16,
            base_offset: take(word, 49, 3) as u8,
            leading_is_address: take(word, 52, 1) == 1,
            swizzle,
        })
    }
}

/// The descriptor of `wgmma.mma_async`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WgmmaDescriptor {
    /// Start address, in units of 16 bytes (bits 0 to 13).
    pub start_address: u16,
    /// Leading dimension offset, in units of 16 bytes (bits 16 to 29). Unused if K-major rows are swizzled.
    pub leading_byte_offset: u16,
    /// Stride dimension offset, in units of 16 bytes (bits 32 to 45).
    pub stride_byte_offset: u16,
    /// Phase of the swizzle at the start (bits 49 to 51); 0 if the tile starts at a multiple of the pattern's period.
    pub base_offset: u8,
    /// Swizzle (bits 62 and 63).
    pub swizzle: SwizzleMode,
}

impl WgmmaDescriptor {
    /// The encoded word. Bits beyond a field's width are dropped, as hardware wraps addresses at 256 KiB.
    pub fn encode(&self) -> u64 {
        let swizzle = match self.swizzle {
            SwizzleMode::None => 0,
            SwizzleMode::B128 => 1,
            SwizzleMode::B64 => 2,
            SwizzleMode::B32 => 3,
        };
        put(u64::from(self.start_address), 0, 14)
            | put(u64::from(self.leading_byte_offset), 16, 14)
            | put(u64::from(self.stride_byte_offset), 32, 14)
            | put(u64::from(self.base_offset), 49, 3)
            | put(swizzle, 62, 2)
    }

    /// Decodes a word. Error: reserved bits are set.
    pub fn decode(word: u64) -> Result<WgmmaDescriptor, LayoutError> {
        if take(word, 14, 2) | take(word, 30, 2) | take(word, 46, 3) | take(word, 52, 10) != 0 {
            return Err(LayoutError::Hardware {
                name: "wgmma shared-memory descriptor",
                problem: format!("{word:#018x} has reserved bits set"),
                legal: "zeros in bits 14, 15, 30, 31, 46 to 48 and 52 to 61".to_string(),
            });
        }
        let swizzle = match take(word, 62, 2) {
            0 => SwizzleMode::None,
            1 => SwizzleMode::B128,
            2 => SwizzleMode::B64,
            _ => SwizzleMode::B32,
        };
        Ok(WgmmaDescriptor {
            start_address: take(word, 0, 14) as u16,
            leading_byte_offset: take(word, 16, 14) as u16,
            stride_byte_offset: take(word, 32, 14) as u16,
            base_offset: take(word, 49, 3) as u8,
            swizzle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_tcgen05_descriptor_of_a_128_byte_swizzled_tile() {
        let descriptor = Tcgen05Descriptor {
            start_address: 0,
            leading_byte_offset: 1,
            stride_byte_offset: 64,
            base_offset: 0,
            leading_is_address: false,
            swizzle: SwizzlePattern::B128,
        };
        assert_eq!(descriptor.encode(), 0x4000_4040_0001_0000);
        assert_eq!(Tcgen05Descriptor::decode(0x4000_4040_0001_0000), Ok(descriptor));
    }

    /// PTX ISA, tcgen05 "Shared memory descriptor"; bits 46 to 48 of every word are 0b001.
    #[test]
    fn every_field_of_a_tcgen05_descriptor_has_the_bits_of_the_isa() {
        let constant = 1 << 46;
        let none = Tcgen05Descriptor::decode(constant).unwrap();
        let words = [
            (Tcgen05Descriptor { start_address: 0x3fff, ..none }, 0x0000_0000_0000_3fff),
            (Tcgen05Descriptor { leading_byte_offset: 0x3fff, ..none }, 0x0000_0000_3fff_0000),
            (Tcgen05Descriptor { stride_byte_offset: 0x3fff, ..none }, 0x0000_3fff_0000_0000),
            (Tcgen05Descriptor { base_offset: 7, ..none }, 0x000e_0000_0000_0000),
            (Tcgen05Descriptor { leading_is_address: true, ..none }, 0x0010_0000_0000_0000),
            (Tcgen05Descriptor { swizzle: SwizzlePattern::B128Atom32, ..none }, 0x2000_0000_0000_0000),
            (Tcgen05Descriptor { swizzle: SwizzlePattern::B128, ..none }, 0x4000_0000_0000_0000),
            (Tcgen05Descriptor { swizzle: SwizzlePattern::B64, ..none }, 0x8000_0000_0000_0000),
            (Tcgen05Descriptor { swizzle: SwizzlePattern::B32, ..none }, 0xc000_0000_0000_0000),
        ];
        for (descriptor, field) in words {
            let word = constant | field;
            assert_eq!((descriptor.encode(), Tcgen05Descriptor::decode(word)), (word, Ok(descriptor)), "{word:#x}");
        }
    }

    /// PTX ISA, wgmma "Matrix descriptor format".
    #[test]
    fn every_field_of_a_wgmma_descriptor_has_the_bits_of_the_isa() {
        let none = WgmmaDescriptor::decode(0).unwrap();
        let words = [
            (WgmmaDescriptor { start_address: 0x3fff, ..none }, 0x0000_0000_0000_3fff),
            (WgmmaDescriptor { leading_byte_offset: 0x3fff, ..none }, 0x0000_0000_3fff_0000),
            (WgmmaDescriptor { stride_byte_offset: 0x3fff, ..none }, 0x0000_3fff_0000_0000),
            (WgmmaDescriptor { base_offset: 7, ..none }, 0x000e_0000_0000_0000),
            (WgmmaDescriptor { swizzle: SwizzleMode::B128, ..none }, 0x4000_0000_0000_0000),
            (WgmmaDescriptor { swizzle: SwizzleMode::B64, ..none }, 0x8000_0000_0000_0000),
            (WgmmaDescriptor { swizzle: SwizzleMode::B32, ..none }, 0xc000_0000_0000_0000),
        ];
        for (descriptor, word) in words {
            assert_eq!((descriptor.encode(), WgmmaDescriptor::decode(word)), (word, Ok(descriptor)), "{word:#x}");
        }
    }

    #[test]
    fn every_field_of_a_tcgen05_descriptor_is_read_back() {
        for swizzle in SwizzlePattern::ALL {
            let descriptor = Tcgen05Descriptor {
                start_address: 0x2aaa,
                leading_byte_offset: 0x1555,
                stride_byte_offset: 0x3fff,
                base_offset: 5,
                leading_is_address: true,
                swizzle,
            };
            assert_eq!(Tcgen05Descriptor::decode(descriptor.encode()), Ok(descriptor));
        }
    }

    #[test]
    fn every_field_of_a_wgmma_descriptor_is_read_back() {
        for swizzle in SwizzlePattern::ALL.into_iter().filter_map(SwizzlePattern::mode) {
            let descriptor = WgmmaDescriptor {
                start_address: 0x2aaa,
                leading_byte_offset: 0x1555,
                stride_byte_offset: 0x3fff,
                base_offset: 5,
                swizzle,
            };
            assert_eq!(WgmmaDescriptor::decode(descriptor.encode()), Ok(descriptor));
        }
    }

    #[test]
    fn words_that_are_no_descriptor_are_refused() {
        let wrong = [0, (1 << 46) | (1 << 14), (1 << 46) | (3 << 61)];
        assert!(wrong.into_iter().all(|word| Tcgen05Descriptor::decode(word).is_err()));
        assert!(WgmmaDescriptor::decode(1 << 46).is_err());
    }
}
