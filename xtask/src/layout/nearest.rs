//! The name that was probably meant.

/// `; did you mean ...?` with the one name that `given` abbreviates, otherwise with the closest name if at least half
/// of its characters were given; nothing if there is no such name.
pub(super) fn suggestion(given: &str, names: &[&str]) -> String {
    let abbreviated: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(given)).collect();
    if let ([name], false) = (&abbreviated[..], given.is_empty()) {
        return format!("; did you mean `{name}`?");
    }
    let is_close = |name: &&str| 2 * name.chars().filter(|letter| given.contains(*letter)).count() >= name.len();
    crate::request::suggestion(given, names.iter().copied().filter(is_close))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_and_a_slip_find_the_name_and_a_short_word_none() {
        let said = |given, names: &[&str]| suggestion(given, names);
        assert_eq!(said("col", &["row", "column"]), "; did you mean `column`?");
        assert_eq!(said("colunm", &["row", "column"]), "; did you mean `column`?");
        assert_eq!(said("f17", &["f64", "f16"]), "; did you mean `f16`?");
        assert_eq!(said("foo", &["f64", "f16"]), "");
        assert_eq!(said("", &["row"]), "");
    }
}
