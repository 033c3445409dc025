//! Renders Tilewright's data for people: diagnostics, layouts and schedules as text, layouts and schedules as SVG,
//! layouts and recorded launches as interactive pages.

mod diagnostic;
pub mod layout;
pub mod layout_page;
pub mod schedule;
mod timeline_page;

pub use diagnostic::{Style, render, render_all};
pub use timeline_page::timeline_page;
