//! What Tilewright's data looks like to a person: for now, diagnostics as text.

mod diagnostic;

pub use diagnostic::{Style, render, render_all};
