//! Names that CUDA accepts.

use tilewright_diag::{Diagnostic, Span};

use crate::hw_index::HwIndex;

/// Prefixes that NVRTC reserves, and that an underscore appended to the name does not fix: it drops the first from the
/// names of kernels, and cannot parse names with the second.
const OWN_PREFIXES: [&str; 2] = ["__builtin_", "__cuda_"];

/// The help for a name that CUDA does not accept.
pub(super) const IDENTIFIER_HELP: &str =
    "letters, digits and underscores, not beginning with a digit, `__builtin_` or `__cuda_`";

/// The help for a name that is taken; `is_one_line` if one line gives it twice.
pub(super) fn taken_help(what: &str, name: &str, is_one_line: bool) -> String {
    match is_one_line {
        true => format!("this line is executed several times: number the names, as in &format!(\"{name}{{at}}\")"),
        false => format!("give {what} another name"),
    }
}

/// True for names that are valid in CUDA. Those that C++ or CUDA reserves get an underscore appended there.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let head = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_plain = head && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_plain && !OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Reports a name that CUDA does not accept, or that a hardware index has.
pub(super) fn check_name(name: &str, span: Span, what: &str, found: &mut Vec<Diagnostic>) {
    if HwIndex::named(name).is_some() {
        let message = format!("`{name}` is the name of a hardware index");
        let help = format!("{} are reserved", HwIndex::ALL.map(HwIndex::name).join(", "));
        found.push(Diagnostic::error("K0201", message).label(span, "named here").help(help));
    } else if !is_identifier(name) {
        let message = format!("`{name}` cannot be the name of {what}");
        found.push(Diagnostic::error("K0201", message).label(span, "named here").help(IDENTIFIER_HELP));
    }
}
