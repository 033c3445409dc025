//! What Tilewright's data looks like to a person: diagnostics and layouts as text, layouts as SVG and as an interactive
//! page.

mod diagnostic;
pub mod layout;
pub mod layout_page;

pub use diagnostic::{Style, render, render_all};
