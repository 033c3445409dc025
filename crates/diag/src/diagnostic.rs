use std::fmt;
use std::ops::Range;

use crate::Span;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing can be produced.
    Error,
    /// Nothing can be produced, and the input is not at fault: a defect of Tilewright.
    Internal,
    /// The result is right, but something deserves attention.
    Warning,
}

impl Severity {
    /// The words before the code in a rendered finding.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Internal => "internal error",
            Severity::Warning => "warning",
        }
    }
}

/// A remark attached to a place in the user's Rust source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The remark.
    pub text: String,
}

/// A piece of text that the user gave (a layout in notation, a line of edited CUDA) with the offending part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// What the text is called: `<layout>`, or a file name with a line.
    pub origin: String,
    /// The text, one line.
    pub text: String,
    /// Byte range of the offending part inside `text`.
    pub range: Range<usize>,
    /// The remark about that part.
    pub label: String,
}

/// One finding: code, message, the places it concerns, and what would be legal.
///
/// The same value serves the terminal, `--json` and the tests, so it holds no formatting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code, such as `L0103`; each has a page in `docs/diagnostics.md`.
    pub code: &'static str,
    /// Whether it is an error of the user, a defect of Tilewright, or a warning.
    pub severity: Severity,
    /// One sentence in the user's terms.
    pub message: String,
    /// Places in the user's Rust source, the most important first.
    pub labels: Vec<Label>,
    /// The offending text, for errors in text rather than in Rust.
    pub snippet: Option<Snippet>,
    /// Facts that help to understand, one per line.
    pub notes: Vec<String>,
    /// What to do, one suggestion per line.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error without places yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            snippet: None,
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning without places yet.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// A defect of Tilewright: nothing that a user wrote is at fault. The notes say so, and the help asks for a report.
    pub fn internal(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Internal, ..Diagnostic::error(code, message) }
            .note("this is a defect of Tilewright, not of the kernel")
            .help("please report it, with the text of the kernel, the options and the version of Tilewright")
    }

    /// Whether it is a defect of Tilewright.
    pub fn is_internal(&self) -> bool {
        self.severity == Severity::Internal
    }

    /// Adds a place in the user's source. For one in the definition of an op, the remark also says where that is.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: span.remark(text.into()) });
        self
    }

    /// Sets the offending text.
    pub fn snippet(mut self, snippet: Snippet) -> Diagnostic {
        self.snippet = Some(snippet);
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds a suggestion.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    /// The first line only: `error[L0103]: ...`. Rendering with places belongs to `tilewright-viz`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity.name(), self.code, self.message)
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_told_as_ours_and_asks_for_a_report() {
        let defect = Diagnostic::internal("V0305", "`x` is used before it is defined");
        assert_eq!(defect.to_string(), "internal error[V0305]: `x` is used before it is defined");
        assert_eq!(defect.notes, ["this is a defect of Tilewright, not of the kernel"]);
        assert!(defect.help[0].starts_with("please report it"));
    }
}
