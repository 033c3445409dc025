//! Positions that the hardware does not have.

use tilewright::diag::Diagnostic;
use tilewright::layout::Layout;

/// A warning for each axis on which the layout, called `name`, reaches a position that the hardware does not have.
pub(super) fn beyond(layout: &Layout, name: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for axis in layout.axes() {
        let Some(extent) = axis.extent() else { continue };
        let (least, greatest) = (layout.least_on(&axis), layout.span_on(&axis) - 1);
        if least < 0 || greatest >= extent {
            let reached = if least < 0 { least } else { greatest };
            let has = format!("`{axis}` has {extent} positions (0 to {})", extent - 1);
            found.push(Diagnostic::warning("L0120", format!("{has}; {name} reaches {reached}")));
        }
    }
    found
}
