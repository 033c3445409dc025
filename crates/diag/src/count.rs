//! Numbers of things, as they are written in text.

use std::fmt::Display;

/// A number of things: `1 index`, `2 indices`.
pub fn counted(count: impl Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let things = if count == "1" { one } else { many };
    format!("{count} {things}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_is_in_the_singular() {
        let indices = [0, 1, 2, 11, -1].map(|count| counted(count, "index", "indices"));
        assert_eq!(indices, ["0 indices", "1 index", "2 indices", "11 indices", "-1 indices"]);
    }
}
