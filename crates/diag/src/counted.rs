//! Counts in messages.

use std::fmt::Display;

/// A count with its noun, which is given in the singular and takes an `s`: `1 element`, `2 elements`.
pub fn counted(count: impl Display, noun: &str) -> String {
    counted_as(count, noun, &format!("{noun}s"))
}

/// A count with its noun in the singular or in the plural: `1 index`, `2 indices`.
pub fn counted_as(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let texts = [counted(0u32, "byte"), counted(1i64, "byte"), counted(2usize, "byte")];
        assert_eq!(texts, ["0 bytes", "1 byte", "2 bytes"]);
        assert_eq!([1, 3].map(|count| counted_as(count, "index", "indices")), ["1 index", "3 indices"]);
    }
}
