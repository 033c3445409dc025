//! Renders Tilewright's data for people: diagnostics, layouts and schedules as text, layouts and schedules as SVG,
//! layouts as an interactive page.

mod diagnostic;
pub mod layout;
pub mod layout_page;
pub mod schedule;

pub use diagnostic::{Style, render, render_all};
