//! Suggestions for misspelled names: "did you mean ...?".

/// The known name that is closest to `given` by edit distance, if it is close enough. Among equally close names, those
/// that begin with `given` come first.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| (strsim::damerau_levenshtein(given, name), !name.starts_with(given));
    let distances = known.into_iter().map(|name| (distance(name), name));
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
    fn of_equally_near_names_the_longer_form_is_meant() {
        assert_eq!(nearest("lane", ["TLane", "laneid"]), Some("laneid"));
    }
}
