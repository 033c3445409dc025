//! The error for an element of an output that a launch did not write: which ops write the output, and why they miss it.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Dim;
use tilewright_ir::tile::{element_index, index_title, value_title};

use crate::writers::{Writer, writers};
use crate::{Artifact, Parameter};

/// The most writers that one message names.
const MOST_NAMED: usize = 4;

/// The names of the grid's dimensions.
const AXES: [&str; 3] = ["x", "y", "z"];

/// A dimension in which a writer does not reach the element's index.
struct MissedIndex<'w> {
    /// The dimension, from 0.
    dimension: usize,
    /// The element's index in this dimension.
    at: i64,
    /// The first index that is written, as an expression of the kernel.
    first: &'w Expr,
    /// The least index that is written.
    least: i64,
    /// The greatest index that is written.
    most: i64,
}

impl Artifact {
    /// The error for an element that a launch with these sizes did not write. `parameter` is the number of the output
    /// among all parameters, `element` is counted in row-major order.
    ///
    /// # Panics
    ///
    /// If there is no such parameter.
    pub fn unwritten_element_error(&self, parameter: usize, element: i64) -> Diagnostic {
        let (kernel, handle) = (self.kernel(), self.launch().buffers()[parameter]);
        let Parameter { name: output, shape, .. } = &self.parameters()[parameter];
        let index = element_index(shape, element);
        let message = format!("element {} of the output `{output}` was never written", index_title(&index));
        let finding = Diagnostic::error("R0609", message);
        let writers = writers(kernel, handle);
        if writers.is_empty() {
            let finding = finding.label(kernel.buffers[handle].span, "nothing writes it");
            return finding.help(format!("write every element of `{output}`, or remove the output"));
        }
        writers.iter().take(MOST_NAMED).fold(finding, |finding, writer| {
            let missed = if writer.buffer == handle { self.missed(writer, &index) } else { None };
            match missed {
                Some(missed) => match self.swapped(writer, &missed, shape) {
                    Some(other) => self.label_swapped(finding, writer, &missed, &other),
                    None => self.label_out_of_range(finding, writer, &missed),
                },
                None => self.label_condition(finding, writer),
            }
        })
    }

    /// The first dimension in which a writer's indices do not include the element's.
    fn missed<'w>(&self, writer: &'w Writer<'_>, index: &[i64]) -> Option<MissedIndex<'w>> {
        writer.indices.iter().zip(index).enumerate().find_map(|(dimension, (indices, at))| {
            let (first, count) = indices.as_ref()?;
            let range = self.bind_to_launch(first).range();
            let (least, most) = (range.lo, range.hi.saturating_add(count - 1));
            let is_missed = *at < least || *at > most;
            is_missed.then_some(MissedIndex { dimension, at: *at, first, least, most })
        })
    }

    /// The dimension whose end a writer passes, if exchanging its index with that of the missed dimension fits both.
    fn swapped<'w>(&self, writer: &'w Writer<'_>, missed: &MissedIndex<'_>, shape: &[i64]) -> Option<MissedIndex<'w>> {
        writer.indices.iter().zip(shape).enumerate().find_map(|(dimension, (indices, extent))| {
            let (first, count) = indices.as_ref()?;
            let range = self.bind_to_launch(first).range();
            let (least, most) = (range.lo, range.hi.saturating_add(count - 1));
            let fits = most < shape[missed.dimension] && missed.most < *extent;
            let is_swapped = dimension != missed.dimension && most >= *extent && fits;
            is_swapped.then_some(MissedIndex { dimension, at: *extent, first, least, most })
        })
    }

    /// Adds a writer whose indices of two dimensions seem to be exchanged.
    fn label_swapped(
        &self,
        finding: Diagnostic,
        writer: &Writer<'_>,
        missed: &MissedIndex<'_>,
        other: &MissedIndex<'_>,
    ) -> Diagnostic {
        let MissedIndex { dimension, least, most, .. } = missed;
        let text = format!(
            "{} reaches indices {least} to {most} of dimension {dimension}, and {} to {} of dimension {} (extent {})",
            writer.title, other.least, other.most, other.dimension, other.at
        );
        let help = format!(
            "exchange the indices of dimensions {} and {}",
            dimension.min(&other.dimension),
            dimension.max(&other.dimension)
        );
        with_help_once(finding.label(writer.span, text), help)
    }

    /// An index expression, with the sizes and the grid of this launch substituted.
    fn bind_to_launch(&self, index: &Expr) -> Expr {
        let (kernel, grid) = (self.kernel(), self.grid());
        let known = |var: &Var| {
            if let Some(size) = kernel.sizes.iter().position(|size| size.var == *var) {
                return Some(Expr::constant(self.launch().values()[size]));
            }
            let dimension = Dim::ALL.into_iter().find(|dimension| kernel.block(*dimension) == *var)?;
            Some(Expr::var(&Var::new(var.name(), 0, (grid[dimension.index()] - 1).max(0))))
        };
        normalize(&index.substitute(&known))
    }

    /// Adds a writer whose loop, grid or region ends before the element.
    fn label_out_of_range(&self, finding: Diagnostic, writer: &Writer<'_>, missed: &MissedIndex<'_>) -> Diagnostic {
        let MissedIndex { dimension, at, first, least, most } = missed;
        let which = if least == most { format!("index {least}") } else { format!("indices {least} to {most}") };
        let text = format!("{} writes {which} of dimension {dimension}", writer.title);
        let mut finding = finding.label(writer.span, text);
        let mut causes = Vec::new();
        for (var, span) in writer.loops.iter().filter(|(var, _)| first.mentions(var)) {
            let (name, range) = (var.name(), var.range());
            finding = finding.label(*span, format!("`{name}` runs from {} to {}", range.lo, range.hi));
            causes.push(format!("the loop `{name}`"));
        }
        for ((dimension, name), ctas) in Dim::ALL.into_iter().zip(AXES).zip(self.grid()) {
            let block = self.kernel().block(dimension);
            if first.mentions(&block) {
                let last = (ctas - 1).max(0);
                finding = finding.note(format!("`{}` runs from 0 to {last}: CTAs along {name}", block.name()));
                causes.push(format!("the grid along {name}"));
            }
        }
        let other = "or write the rest with another op";
        let help = match &causes[..] {
            [] => format!("use a region that includes index {at} of dimension {dimension}, {other}"),
            causes => format!("make {} reach index {at} of dimension {dimension}, {other}", causes.join(" or ")),
        };
        with_help_once(finding, help)
    }

    /// Adds a writer that missed the element because of a condition or of data, or for an unknown reason.
    fn label_condition(&self, finding: Diagnostic, writer: &Writer<'_>) -> Diagnostic {
        let output = &self.kernel().buffers[writer.buffer].name;
        let text = format!("{} writes `{output}`, but not this element", writer.title);
        let mut finding = finding.label(writer.span, text);
        if writer.indices.iter().any(Option::is_none) {
            finding = finding.note(format!("which elements {} writes depends on data", writer.title));
        }
        for (cond, holds, span) in &writer.conditions {
            let how = if *holds { "holds" } else { "does not hold" };
            finding = finding.label(*span, format!("only where `{}` {how}", value_title(self.kernel(), cond)));
        }
        let help = match writer.conditions.is_empty() {
            false => "write the element in the other case too, with if_else, or before the condition",
            true => "make sure that every element is written: check the indices, and the CUDA text if it was edited",
        };
        with_help_once(finding, help.to_string())
    }
}

/// Adds a suggestion, unless it is already there.
fn with_help_once(finding: Diagnostic, help: String) -> Diagnostic {
    if finding.help.contains(&help) { finding } else { finding.help(help) }
}
