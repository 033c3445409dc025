//! Errors for programs that the verifier should have refused.

use tilewright_diag::Diagnostic;

/// The error for something that has no CUDA text.
pub(crate) fn unprintable(what: impl Into<String>) -> Diagnostic {
    Diagnostic::internal("E0502", "a thread program cannot be written as CUDA").note(what)
}
