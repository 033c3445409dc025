//! Reasons against operands that several variants give.

use tilewright_ir::plan::Reason;
use tilewright_layout::LayoutError;

use crate::operand::hangs_over;

/// The reason against a tile whose strides are known only at launch.
pub(crate) fn unknown_strides(title: &str) -> Reason {
    Reason {
        text: format!("the strides of `{title}` are known only at launch"),
        accepted: "tiles whose strides are constants".to_string(),
    }
}

/// The reason against a tile of which two elements share a place.
pub(crate) fn collision(title: &str, found: Result<Option<(i64, i64)>, LayoutError>) -> Option<Reason> {
    let text = match found {
        Ok(None) => return None,
        Ok(Some((first, second))) => format!("elements {first} and {second} of `{title}` share a place"),
        Err(error) => format!("cannot tell whether elements of `{title}` share a place: {error}"),
    };
    Some(Reason { text, accepted: "layouts that give every element its own place".to_string() })
}

/// The reason of schedules for any bijection against a tile that may hang over an edge.
pub(super) fn over_an_edge(title: &str) -> Reason {
    let Reason { text, accepted } = hangs_over(title);
    Reason { text, accepted: format!("extents that are powers of two, or {accepted}") }
}
