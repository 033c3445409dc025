//! What a name that does not exist was probably meant to be.

use crate::decode::decoder::Decoder;

/// How a suggestion is added to a message; empty if there is none.
pub(super) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// The known name that differs from `given` by a slip: one character, or one in five of a long name.
pub(super) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (given.len() / 5).max(1);
    let slips = known.into_iter().map(|name| (strsim::damerau_levenshtein(given, name), name));
    slips.filter(|(slips, _)| (1..=most).contains(slips)).min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// The message for an opcode that is not that of a row.
pub(super) fn unknown_opcode<'a>(opcode: &str, names: impl Iterator<Item = &'a str>) -> String {
    // A name is as many words of the opcode.
    let slips = names.filter_map(|name| {
        let end = opcode.match_indices('.').map(|(at, _)| at).chain([opcode.len()]).nth(name.matches('.').count())?;
        nearest(&opcode[..end], [name])
    });
    format!("`{opcode}` is not supported{}", did_you_mean(slips.min_by_key(|name| name.len().abs_diff(opcode.len()))))
}

/// The refused instructions for which it is looked up what was meant, so that a file of many takes no time.
const MOST_EXPLAINED: usize = 20;

impl Decoder<'_> {
    /// Whether the message for a refused instruction suggests what was probably meant.
    pub(super) fn explains(&self) -> bool {
        self.program.unsupported.len() < MOST_EXPLAINED
    }

    /// The message for a name that is not declared.
    pub(super) fn unknown(&self, name: &str) -> String {
        if !self.explains() {
            return format!("`{name}` is not declared");
        }
        let visible = || self.scopes.iter().flat_map(|scope| scope.keys()).map(String::as_str);
        let series = name.trim_end_matches(|last: char| last.is_ascii_digit());
        let number = |name: &str| name.strip_prefix(series)?.parse::<u32>().ok();
        match visible().filter_map(number).max() {
            Some(last) if series.len() < name.len() => {
                format!("`{name}` is not declared; the last of its series is `{series}{last}`")
            }
            _ => format!("`{name}` is not declared{}", did_you_mean(nearest(name, visible()))),
        }
    }
}
