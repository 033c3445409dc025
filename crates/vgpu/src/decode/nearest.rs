//! What a name or a modifier that does not exist was probably meant to be.

use crate::decode::decoder::Decoder;
use crate::decode::table::Row;
use crate::isa::DType;
use crate::ptx::ast::Number;

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

/// What is said of an opcode that is not that of a row.
pub(super) fn unknown_opcode<'a>(opcode: &str, names: impl Iterator<Item = &'a str>) -> String {
    // A name is as many words of the opcode.
    let slips = names.filter_map(|name| {
        let end = opcode.match_indices('.').map(|(at, _)| at).chain([opcode.len()]).nth(name.matches('.').count())?;
        nearest(&opcode[..end], [name])
    });
    format!("`{opcode}` is not supported{}", did_you_mean(slips.min_by_key(|name| name.len().abs_diff(opcode.len()))))
}

/// What is to be added to the reason why an instruction was refused: the first modifier that its row does not have, as it was
/// probably meant.
pub(super) fn slip(row: &Row, opcode: &str) -> Option<String> {
    let known = row.modifiers();
    let mut words = opcode.strip_prefix(row.name)?.split('.').skip(1).filter(|word| !known.contains(word));
    let (given, meant) = words.find_map(|word| Some((word, nearest(word, known.iter().copied())?)))?;
    Some(format!("; did you mean `.{meant}` in place of `.{given}`?"))
}

/// The refused instructions for which it is looked up what was meant, so that a file of many takes no time.
const MOST_EXPLAINED: usize = 20;

impl Decoder<'_> {
    /// Whether it is said of a refused instruction what was probably meant.
    pub(super) fn explains(&self) -> bool {
        self.program.unsupported.len() < MOST_EXPLAINED
    }

    /// What is said of a name that is not declared.
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

/// Why a number cannot be an operand of a type (PTX ISA, section 4.5): integers and floating-point numbers are not converted.
pub(super) fn unfit(number: Number, dtype: DType) -> Option<&'static str> {
    let is_integer = matches!(number, Number::Integer(_));
    if dtype.is_float() && (dtype.bits < 32 || dtype.count > 1) {
        return Some("there are no constants of this type");
    }
    match (dtype.is_float(), dtype.is_integer()) {
        (true, _) if is_integer => Some("an integer cannot be an operand of a floating-point type; write `1.0` for 1"),
        (_, true) if !is_integer => Some("a floating-point number cannot be an operand of an integer type"),
        _ => None,
    }
}
