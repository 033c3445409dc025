//! Suggestions for misspelled names: "did you mean ...?".

/// The known name that was probably meant: the only one that `given` abbreviates, otherwise the closest by edit distance
/// of those that are close enough and have at least half of their characters in `given`. Among equally close names,
/// those that begin with `given` come first.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let abbreviated: Vec<&str> = known.iter().copied().filter(|name| name.starts_with(given)).collect();
    if let ([name], false) = (&abbreviated[..], given.is_empty()) {
        return Some(name);
    }
    let has_half = |name: &&str| {
        let given_letters = name.chars().filter(|letter| given.contains(*letter)).count();
        2 * given_letters >= name.chars().count()
    };
    let distance = |name: &str| (strsim::damerau_levenshtein(given, name), !name.starts_with(given));
    let distances = known.into_iter().filter(has_half).map(|name| (distance(name), name));
    distances.min().filter(|((distance, _), name)| *distance <= name.len() / 3 + 1).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_none() {
        let known = ["laneid", "warpid", "tx"];
        assert_eq!((nearest("lanid", known), nearest("partition", known)), (Some("laneid"), None));
    }

    #[test]
    fn an_abbreviation_finds_its_name_and_a_short_word_none() {
        let dtypes = ["f64", "f16"];
        assert_eq!((nearest("col", ["row", "column"]), nearest("f17", dtypes)), (Some("column"), Some("f16")));
        assert_eq!((nearest("foo", dtypes), nearest("", ["row"])), (None, None));
    }

    #[test]
    fn of_equally_near_names_the_longer_form_is_meant() {
        assert_eq!(nearest("lane", ["TLane", "laneid"]), Some("laneid"));
    }
}
