//! Counts in messages.

use std::fmt::Display;

/// A count with its noun, which is given in the singular and takes an `s`: `1 element`, `2 elements`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let texts = [counted(0u32, "byte"), counted(1i64, "byte"), counted(2usize, "byte")];
        assert_eq!(texts, ["0 bytes", "1 byte", "2 bytes"]);
    }
}
