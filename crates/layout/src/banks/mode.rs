//! The choice of a hardware swizzle mode for a tile.

use super::check_bits;
use crate::error::LayoutError;
use crate::hardware::SwizzleMode;
use crate::swizzle::SwizzleLayout;

/// A swizzle mode for a tile, by the bytes of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwizzleChoice {
    /// The mode.
    pub mode: SwizzleMode,
    /// Without a swizzle: whether the rows are made of 16-byte units, so that the tile can be stored as 8 x 16 byte
    /// atoms (the 16-byte interleaved form). If not, the hardware has no form for it.
    pub interleave: bool,
    /// The swizzle over the tile's elements; none for [`SwizzleMode::None`].
    pub swizzle: Option<SwizzleLayout>,
}

/// The mode with the largest atom (8 rows of 128, 64 or 32 bytes) whose row length divides `row_bytes`; failing that,
/// 16-byte interleave if `row_bytes` is a multiple of 16. The rule of the seed document.
///
/// Errors: an element width that is not a power of two up to 128 bits, rows shorter than one byte.
pub fn choose_swizzle_mode(bits: i64, row_bytes: i64) -> Result<SwizzleChoice, LayoutError> {
    check_bits(bits)?;
    if row_bytes < 1 {
        return Err(LayoutError::Extent { extent: row_bytes });
    }
    for mode in MODES.into_iter().rev() {
        if row_bytes % mode.bytes() == 0 {
            return Ok(SwizzleChoice { mode, interleave: false, swizzle: Some(mode.swizzle(bits)?) });
        }
    }
    Ok(SwizzleChoice { mode: SwizzleMode::None, interleave: row_bytes % 16 == 0, swizzle: None })
}

/// The modes that swizzle.
pub(super) const MODES: [SwizzleMode; 3] = [SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128];

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(bits: i64, row_bytes: i64) -> (SwizzleMode, bool) {
        let choice = choose_swizzle_mode(bits, row_bytes).unwrap();
        (choice.mode, choice.interleave)
    }

    #[test]
    fn the_largest_atom_that_rows_fill_is_chosen() {
        let modes = [256, 192, 96].map(|row_bytes| chosen(16, row_bytes).0);
        assert_eq!(modes, [SwizzleMode::B128, SwizzleMode::B64, SwizzleMode::B32]);
    }

    #[test]
    fn rows_of_16_bytes_interleave_and_odd_rows_have_no_form() {
        assert_eq!(
            [16, 48, 24].map(|row_bytes| chosen(8, row_bytes)),
            [true, true, false].map(|i| (SwizzleMode::None, i))
        );
    }

    #[test]
    fn the_swizzle_moves_16_bytes_at_a_time_whatever_the_element() {
        let text = |bits| choose_swizzle_mode(bits, 128).unwrap().swizzle.map(|swizzle| swizzle.to_string());
        assert_eq!(text(16), Some("swizzle(M=3,B=3,S=3)".to_string()));
        assert_eq!([8, 32, 64].map(|bits| text(bits).unwrap()[8..11].to_string()), ["M=4", "M=2", "M=1"]);
    }

    #[test]
    fn impossible_elements_and_rows_are_errors() {
        assert_eq!(choose_swizzle_mode(24, 128).unwrap_err().code(), "L0110");
        assert_eq!(choose_swizzle_mode(16, 0).unwrap_err().code(), "L0102");
    }
}
