//! The swizzle patterns that the matrix and copy engines support.

use crate::error::LayoutError;
use crate::hardware::SwizzleMode;
use crate::layout::Layout;
use crate::swizzle::SwizzleLayout;

/// How 16-byte chunks of shared memory (32-byte chunks with [`SwizzlePattern::B128Atom32`]) are permuted.
///
/// The engines XOR bits of the byte address itself. Sources: PTX ISA, sections "Shared memory descriptor" and
/// "Canonical layouts" of tcgen05, "Swizzling modes" of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwizzlePattern {
    /// No swizzle: no chunk moves.
    None,
    /// Permutes chunks within 32 bytes; the pattern repeats every 256 bytes.
    B32,
    /// Permutes chunks within 64 bytes; the pattern repeats every 512 bytes.
    B64,
    /// Permutes chunks within 128 bytes; the pattern repeats every 1024 bytes.
    B128,
    /// Permutes 32-byte chunks within 128 bytes; the pattern repeats every 512 bytes. Only for tcgen05 and its copies.
    B128Atom32,
}

impl SwizzlePattern {
    /// Every pattern.
    pub const ALL: [SwizzlePattern; 5] = [
        SwizzlePattern::None,
        SwizzlePattern::B32,
        SwizzlePattern::B64,
        SwizzlePattern::B128,
        SwizzlePattern::B128Atom32,
    ];

    /// The pattern of a layout of elements of `bits` bits; `None` for a table or a swizzle that no engine supports, as
    /// every swizzle of elements of a width that is not a power of two up to 128.
    pub fn of(layout: &Layout, bits: i64) -> Option<SwizzlePattern> {
        match layout {
            Layout::Tile(_) => Some(SwizzlePattern::None),
            Layout::Compose(compose) if compose.swizzle().swizzle_len() == 0 => Some(SwizzlePattern::None),
            Layout::Compose(compose) => {
                SwizzlePattern::ALL.into_iter().find(|pattern| pattern.swizzle(bits) == Ok(Some(compose.swizzle())))
            }
            Layout::Table(_) => None,
        }
    }

    /// The swizzle on addresses that count elements of `bits` bits (a power of two up to 128); with `bits` = 1, on bit
    /// addresses. `None` if nothing moves. Error: elements of any other width.
    pub fn swizzle(self, bits: i64) -> Result<Option<SwizzleLayout>, LayoutError> {
        let unmoved = SwizzleMode::None.swizzle(bits)?;
        match self.mode() {
            Some(SwizzleMode::None) => Ok(None),
            Some(mode) => mode.swizzle(bits).map(Some),
            None => SwizzleLayout::new(i64::from(unmoved.per_element()) + 1, 2, 2, true).map(Some),
        }
    }

    /// Length in bytes of a row, within which chunks are permuted; 16 (one chunk) without a swizzle.
    pub fn span(self) -> i64 {
        self.mode().map_or(128, SwizzleMode::bytes)
    }

    /// Number of consecutive rows of [`SwizzlePattern::span`] bytes that form one group.
    pub fn rows(self) -> i64 {
        if self == SwizzlePattern::B128Atom32 { 4 } else { 8 }
    }

    /// Bytes of a group of rows, after which the pattern repeats.
    pub fn repeat(self) -> i64 {
        self.rows() * self.span()
    }

    /// The number of the pattern in `CUtensorMapSwizzle`.
    pub fn tensor_map_code(self) -> u32 {
        match self {
            SwizzlePattern::None => 0,
            SwizzlePattern::B32 => 1,
            SwizzlePattern::B64 => 2,
            SwizzlePattern::B128 => 3,
            SwizzlePattern::B128Atom32 => 4,
        }
    }

    /// The corresponding mode of 16-byte chunks; `None` for 32-byte chunks, which wgmma does not support.
    pub fn mode(self) -> Option<SwizzleMode> {
        match self {
            SwizzlePattern::None => Some(SwizzleMode::None),
            SwizzlePattern::B32 => Some(SwizzleMode::B32),
            SwizzlePattern::B64 => Some(SwizzleMode::B64),
            SwizzlePattern::B128 => Some(SwizzleMode::B128),
            SwizzlePattern::B128Atom32 => None,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            SwizzlePattern::None => "no swizzle",
            SwizzlePattern::B32 => "the 32-byte swizzle",
            SwizzlePattern::B64 => "the 64-byte swizzle",
            SwizzlePattern::B128 => "the 128-byte swizzle",
            SwizzlePattern::B128Atom32 => "the 128-byte swizzle of 32-byte chunks",
        }
    }
}

impl From<SwizzleMode> for SwizzlePattern {
    fn from(mode: SwizzleMode) -> SwizzlePattern {
        match mode {
            SwizzleMode::None => SwizzlePattern::None,
            SwizzleMode::B32 => SwizzlePattern::B32,
            SwizzleMode::B64 => SwizzlePattern::B64,
            SwizzleMode::B128 => SwizzlePattern::B128,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swizzle_is_recognised_by_what_it_does_to_bytes() {
        let pattern = |text: &str, bits| SwizzlePattern::of(&text.parse::<Layout>().unwrap(), bits);
        assert_eq!(pattern("swizzle(M=3,B=3,S=3) o S[512:1]", 16), Some(SwizzlePattern::B128));
        assert_eq!(pattern("swizzle(M=2,B=1,S=3) o S[512:1]", 32), Some(SwizzlePattern::B32));
        assert_eq!(pattern("swizzle(M=3,B=2,S=2) o S[512:1]", 32), Some(SwizzlePattern::B128Atom32));
        assert_eq!(pattern("swizzle(M=3,B=3,S=3) o S[512:1]", 8), None);
        assert_eq!(pattern("swizzle(M=3,B=0,S=3) o S[512:1]", 8), Some(SwizzlePattern::None));
    }

    #[test]
    fn elements_that_no_chunk_holds_evenly_have_no_swizzle() {
        for bits in [-8, 0, 6, 24, 256] {
            assert!(SwizzlePattern::ALL.into_iter().all(|pattern| pattern.swizzle(bits).is_err()), "{bits} bits");
        }
        assert_eq!(SwizzlePattern::B128Atom32.swizzle(128), SwizzleLayout::new(1, 2, 2, true).map(Some));
    }

    #[test]
    fn a_pattern_repeats_after_its_group_of_rows() {
        for pattern in SwizzlePattern::ALL.into_iter().filter(|p| *p != SwizzlePattern::None) {
            let swizzle = pattern.swizzle(8).unwrap().unwrap();
            let moved = |byte: i64| swizzle.apply(byte) - byte;
            assert!((0..4096).all(|byte| moved(byte) == moved(byte + pattern.repeat())), "{}", pattern.name());
            assert!((0..pattern.repeat()).any(|byte| moved(byte) != moved(byte + pattern.repeat() / 2)));
        }
    }

    #[test]
    fn modes_are_patterns() {
        for pattern in SwizzlePattern::ALL {
            assert_eq!(pattern.mode().map_or(SwizzlePattern::B128Atom32, SwizzlePattern::from), pattern);
        }
    }
}
