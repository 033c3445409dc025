use tilewright::diag::Diagnostic;
use tilewright::layout::LayoutError;

/// Why the command fails.
#[derive(Debug)]
pub(super) enum Failure {
    /// Something about a layout.
    Layout(LayoutError),
    /// Something about a layout, in terms of the option that requests it.
    Option(Box<Diagnostic>),
    /// Something about the request.
    Request(String),
    /// A file that cannot be read or written.
    File(String),
    /// A defect of Tilewright.
    Defect(String),
}

impl From<LayoutError> for Failure {
    fn from(error: LayoutError) -> Failure {
        Failure::Layout(error)
    }
}
