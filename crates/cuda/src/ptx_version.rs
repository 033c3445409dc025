//! The version that a PTX text names, and those before it.

/// A version as (major, minor).
pub(crate) type Version = (u32, u32);

/// The oldest version that is tried: the first with `sm_90`.
const OLDEST: Version = (7, 8);
/// The last version of each major one but the current (PTX ISA, "Changes").
const LAST: [Version; 2] = [(7, 8), (8, 8)];

/// The version of a text.
pub(crate) fn of(ptx: &str) -> Option<Version> {
    let (_, rest) = ptx.split_once(".version")?;
    let (major, minor) = rest.split_whitespace().next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The version before one.
pub(crate) fn before((major, minor): Version) -> Option<Version> {
    let before = match minor.checked_sub(1) {
        Some(minor) => Some((major, minor)),
        None => LAST.into_iter().find(|last| last.0 + 1 == major),
    };
    before.filter(|before| *before >= OLDEST)
}

/// The text with another version.
pub(crate) fn replaced(ptx: &str, (major, minor): Version) -> String {
    let Some((head, rest)) = ptx.split_once(".version") else { return ptx.to_string() };
    let spaces = rest.len() - rest.trim_start().len();
    let end = rest[spaces..].find(char::is_whitespace).map_or(rest.len(), |length| spaces + length);
    format!("{head}.version {major}.{minor}{}", &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_go_down_to_the_oldest() {
        let mut all = vec![(9, 1)];
        while let Some(older) = before(all[all.len() - 1]) {
            all.push(older);
        }
        let minors = (0..=8).rev().map(|minor| (8, minor));
        let want: Vec<Version> = [(9, 1), (9, 0)].into_iter().chain(minors).chain([(7, 8)]).collect();
        assert_eq!(all, want);
    }

    #[test]
    fn only_the_version_is_replaced() {
        let text = "// a\n.version 9.5\n.target sm_90a\n";
        assert_eq!(of(text), Some((9, 5)));
        assert_eq!(replaced(text, (9, 0)), "// a\n.version 9.0\n.target sm_90a\n");
        assert_eq!((of("x"), replaced("x", (9, 0))), (None, "x".to_string()));
    }
}
