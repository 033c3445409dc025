use tilewright_diag::Diagnostic;

/// What kind of failure it is; command lines turn it into an exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The program did something wrong while it ran.
    Fault,
    /// Something is missing on this machine, or an instruction is not supported.
    Unsupported,
    /// The input is wrong.
    BadInput,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind it is.
    pub kind: FailureKind,
    /// What to report.
    pub diagnostics: Vec<Diagnostic>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, diagnostic: Diagnostic) -> Failure {
        Failure { kind, diagnostics: vec![diagnostic] }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.diagnostics.iter().map(Diagnostic::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Failure {}
