//! Which kernel a handle or a name belongs to.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright_diag::Span;

/// A kernel that is or was built: its handles and names say nothing in another one. Kernels that one line builds are told
/// apart by a number, which is part of no output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    number: u64,
    span: Span,
}

impl Origin {
    /// Of a kernel that begins to be built at this place.
    pub fn new(span: Span) -> Origin {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Origin { number: NEXT.fetch_add(1, Ordering::Relaxed), span }
    }

    /// Where the kernel was written.
    pub fn span(self) -> Span {
        self.span
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel of {:?}", self.span)
    }
}

/// The name of a value.
#[derive(Clone, Debug)]
pub struct Name {
    text: String,
    origin: Origin,
}

impl Name {
    /// A name that a value was given in a kernel.
    pub fn new(text: &str, origin: Origin) -> Name {
        Name { text: text.to_string(), origin }
    }

    /// The kernel in which the value was named.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<Name> for String {
    fn eq(&self, name: &Name) -> bool {
        *self == name.text
    }
}

impl PartialEq<Name> for &str {
    fn eq(&self, name: &Name) -> bool {
        *self == name.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_one_line_are_told_apart_and_look_alike() {
        let [one, other] = [0, 1].map(|_| Origin::new(Span::here()));
        assert_ne!(one, other);
        assert_eq!((one.span(), format!("{one:?}")), (other.span(), format!("{other:?}")));
    }
}
