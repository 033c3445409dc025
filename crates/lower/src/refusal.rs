//! Errors for ops and loops that earlier checks accepted, and that are not lowered.

use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::plan::Reason;

/// Why an op or a loop is not lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The kernel is valid, but exceeds a limit of lowering.
    Limit {
        /// What exceeds the limit.
        text: String,
        /// What would be accepted instead.
        help: &'static str,
    },
    /// A defect of the compiler: an earlier check should have refused it, or lowering should handle it.
    Defect(String),
}

impl Refusal {
    /// What exceeds the limit, or what is wrong.
    pub(crate) fn text(&self) -> &str {
        match self {
            Refusal::Limit { text, .. } | Refusal::Defect(text) => text,
        }
    }

    /// The diagnostic for the op or loop `title` at the user's line.
    pub(crate) fn diagnostic(self, title: &str, span: Span) -> Diagnostic {
        match self {
            Refusal::Limit { text, help } => Diagnostic::error("K0263", format!("`{title}` cannot be lowered: {text}"))
                .label(span, "here")
                .help(help),
            Refusal::Defect(text) => {
                let message = format!("`{title}` was accepted but cannot be lowered: {text}");
                Diagnostic::internal("P0404", message).label(span, "here")
            }
        }
    }
}

/// The most statements of a program: about as many lines of CUDA.
pub(crate) const MOST_STATEMENTS: usize = 1 << 16;

/// The refusal of an op with which a program has more statements than that.
pub(crate) fn too_many_statements() -> Refusal {
    Refusal::Limit {
        text: format!("up to here the kernel has more than {MOST_STATEMENTS} statements"),
        help: "use k.grid or more threads to give each thread less to do, smaller tiles, or k.serial instead of k.unroll",
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Defect(text)
    }
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Refusal {
        Refusal::Defect(text.to_string())
    }
}

/// Why a variant has no schedule for an op.
#[derive(Clone, Debug)]
pub(crate) enum Against {
    /// What about the op does not suit the variant.
    Reasons(Vec<Reason>),
    /// The op suits the variant, but cannot be lowered.
    Refusal(Refusal),
}

impl From<Vec<Reason>> for Against {
    fn from(reasons: Vec<Reason>) -> Against {
        Against::Reasons(reasons)
    }
}

impl From<Refusal> for Against {
    fn from(refusal: Refusal) -> Against {
        Against::Refusal(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_errors_and_defects_are_internal() {
        let span = Span::at("k.rs", 2, 5);
        let limit = Refusal::Limit { text: "too many".to_string(), help: "take fewer" }.diagnostic("parallel i", span);
        assert_eq!(limit.to_string(), "error[K0263]: `parallel i` cannot be lowered: too many");
        let defect = Refusal::from("this loop has no layout").diagnostic("parallel i", span);
        let expected =
            "internal error[P0404]: `parallel i` was accepted but cannot be lowered: this loop has no layout";
        assert_eq!(defect.to_string(), expected);
    }
}
