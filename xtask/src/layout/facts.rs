//! Facts about a layout that fit on a few lines.

use serde_json::{Value, json};
use tilewright::layout::axis::{M, REG};
use tilewright::layout::{Axis, Layout, LayoutError};

/// What is known about any layout. Facts that are too expensive to compute are left out.
struct Facts {
    /// The number of elements.
    size: i64,
    canonical: String,
    axes: Vec<(Axis, i64)>,
    injective: Option<bool>,
    /// The axes over which elements are replicated.
    replicated_over: Vec<Axis>,
    /// The axis and length, in elements, of contiguous runs.
    run: Option<(Axis, i64)>,
    /// The left inverse in notation.
    inverse: Option<String>,
}

fn facts(layout: &Layout) -> Result<Facts, LayoutError> {
    let axes: Vec<(Axis, i64)> = layout.axes().into_iter().map(|axis| (axis.clone(), layout.span_on(&axis))).collect();
    let run_axis = [M, REG].into_iter().find(|axis| layout.axes().contains(axis));
    let run = run_axis.and_then(|axis| Some((axis.clone(), layout.vector_width(&axis).ok()?)));
    let replicated_over = layout.replicated_over()?.into_iter().collect();
    let (canonical, inverse) = match layout {
        Layout::Tile(tile) => {
            let spans = axes.iter().cloned().collect();
            let inverse = tile.left_inverse().ok().map(|inverse| inverse.within(&spans).to_string());
            (tile.canonicalize().to_string(), inverse)
        }
        Layout::Compose(compose) => (compose.canonicalize().to_string(), None),
        Layout::Table(table) => (table.to_string(), None),
    };
    let injective = layout.is_injective().ok();
    Ok(Facts { size: layout.size(), canonical, axes, injective, replicated_over, run, inverse })
}

pub(super) fn text(layout: &Layout) -> Result<String, LayoutError> {
    let facts = facts(layout)?;
    let spans: Vec<String> = facts.axes.iter().map(|(axis, span)| format!("{axis} {span}")).collect();
    let mut lines = vec![
        format!("canonical       {}", facts.canonical),
        format!("elements        {}; span: {}", facts.size, spans.join(", ")),
    ];
    if let Some(injective) = facts.injective {
        let said = if injective { "no two elements share a place" } else { "some elements share a place" };
        lines.push(format!("injective       {}: {said}", if injective { "yes" } else { "no" }));
    }
    if !facts.replicated_over.is_empty() {
        let names: Vec<&str> = facts.replicated_over.iter().map(Axis::name).collect();
        lines.push(format!("replicated over {}", names.join(", ")));
    }
    if let Some((axis, run)) = &facts.run {
        lines.push(format!("contiguous run  {run} on {axis}"));
    }
    if let Some(inverse) = &facts.inverse {
        lines.push(format!("inverse         {inverse}"));
    }
    Ok(lines.join("\n"))
}

pub(super) fn json(layout: &Layout) -> Result<Value, LayoutError> {
    let facts = facts(layout)?;
    let spans: serde_json::Map<String, Value> =
        facts.axes.iter().map(|(axis, span)| (axis.to_string(), Value::from(*span))).collect();
    let replicated: Vec<&str> = facts.replicated_over.iter().map(Axis::name).collect();
    Ok(json!({
        "canonical": facts.canonical,
        "spans": spans,
        "injective": facts.injective,
        "replicated_over": replicated,
        "run": facts.run.map(|(axis, run)| json!({"axis": axis.name(), "elements": run})),
        "inverse": facts.inverse,
    }))
}
