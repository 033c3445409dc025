use std::fmt;
use std::panic::Location;

/// A place in the user's Rust source: the line that built an op, a buffer or a layout.
///
/// Builder methods are `#[track_caller]` and call `Span::here()`, so no macro is needed to find it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Path as the Rust compiler saw it, relative to the crate's workspace.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Span {
    /// The caller's place; inside `#[track_caller]` functions, the place of their caller.
    #[track_caller]
    pub fn here() -> Span {
        let at = Location::caller();
        Span { file: at.file(), line: at.line(), column: at.column() }
    }
}

impl fmt::Display for Span {
    /// `file:line`, the form that generated code and diagnostics use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.replace('\\', "/"), self.line)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}:{}", self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn builder_method() -> Span {
        Span::here()
    }

    #[test]
    fn a_tracked_method_reports_its_callers_line() {
        let span = builder_method();
        assert_eq!((span.file.ends_with("span.rs"), span.line), (true, line!() - 1));
    }
}
