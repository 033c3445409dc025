//! Bit fields of a descriptor word.

/// `value` in the `width` bits starting at bit `at`; its higher bits are dropped.
pub(crate) fn put(value: u64, at: u32, width: u32) -> u64 {
    (value & mask(width)) << at
}

/// The `width` bits of `word` starting at bit `at`.
pub(crate) fn take(word: u64, at: u32, width: u32) -> u64 {
    (word >> at) & mask(width)
}

fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_back_without_its_neighbours() {
        let word = put(0b101, 3, 3) | put(1, 6, 1) | put(0b1111, 0, 2);
        assert_eq!((take(word, 0, 3), take(word, 3, 3), take(word, 6, 1)), (0b011, 0b101, 1));
    }
}
