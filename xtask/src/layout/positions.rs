//! Positions that the hardware does not have.

use tilewright::diag::Diagnostic;
use tilewright::layout::Layout;

/// A warning for each axis on which the layout, called `name`, reaches a position that the hardware does not have.
pub(super) fn beyond(layout: &Layout, name: &str) -> Vec<Diagnostic> {
    let fixed = layout.axes().into_iter().filter(|axis| axis.extent().is_some());
    let beyond = fixed.filter_map(|axis| axis.beyond(layout.least_on(&axis), layout.span_on(&axis) - 1));
    let warning = |(positions, reached)| Diagnostic::warning("L0120", format!("{positions}; {name} reaches {reached}"));
    beyond.map(warning).collect()
}
