//! Diagnostics as data: where in the user's Rust a thing was written ([`Span`]), and what is wrong with it
//! ([`Diagnostic`]). Nothing here renders text for people; `tilewright-viz` does.

mod counted;
mod diagnostic;
mod nearest;
mod span;

pub use counted::{counted, counted_as};
pub use diagnostic::{Diagnostic, Label, Severity, Snippet};
pub use nearest::nearest;
pub use span::{Span, in_op, is_in_op};
