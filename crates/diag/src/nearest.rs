//! Did you mean ...?

/// The known name that `given` was perhaps meant to be: the nearest by edit distance, if it is near.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|name| (strsim::damerau_levenshtein(given, name), name));
    distances.min().filter(|(distance, name)| *distance <= name.len() / 3 + 1).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_none() {
        let known = ["laneid", "warpid", "tx"];
        assert_eq!((nearest("lanid", known), nearest("partition", known)), (Some("laneid"), None));
    }
}
