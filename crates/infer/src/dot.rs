//! The graph of ops and fragments as DOT, the language of Graphviz.

use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel};

use crate::inferred::Inferred;
use crate::known::{Pass, Reason};
use crate::node::Origin;
use crate::text::layout_text;
use crate::uses::{OpVertex, Use, Vertex};

impl Inferred {
    /// The ops and loops with the fragments that they use, as a graph in DOT: ops are boxes, fragments are ellipses with
    /// their layouts, and the color tells in which pass a layout was fixed. Ops that use no fragment are left out. The
    /// kernel is the one that [`lay_out`](crate::lay_out) returned.
    pub fn dot(&self, kernel: &Kernel) -> String {
        let mut lines = vec![format!("digraph {} {{", quoted(&kernel.name)), legend()];
        for (at, vertex) in self.uses.vertices() {
            lines.extend(match vertex {
                Vertex::Op(op) => self.op_line(at, op),
                Vertex::Fragment(fragment) => Some(self.fragment_line(kernel, at, *fragment)),
            });
        }
        lines.extend(self.uses.all().map(|used| self.use_line(used)));
        lines.join("\n") + "\n}\n"
    }

    /// `None` for an op that uses no fragment.
    fn op_line(&self, at: usize, op: &OpVertex) -> Option<String> {
        let is_shown = match op.origin {
            Origin::Parallel(_) => true,
            Origin::Op(_) => !self.uses.of_op(op.at).is_empty(),
        };
        let steps = self.loops.iter().position(|(origin, _)| *origin == op.origin);
        let color = steps.map_or(NO_LAYOUT, |steps| color(&self.loop_reasons[steps]));
        let label = quoted(&format!("{}\n{}", op.title, op.span));
        is_shown.then(|| format!("  n{at} [shape=box, color={color}, label={label}];"))
    }

    fn fragment_line(&self, kernel: &Kernel, at: usize, fragment: Handle<Buffer>) -> String {
        let buffer = &kernel.buffers[fragment];
        let layout = self.fragments.get(&fragment).map(|placed| format!("\n{}", layout_text(buffer, placed)));
        let label = format!("{}\n{}{}", buffer.name, buffer.type_text(), layout.unwrap_or_default());
        format!("  n{at} [shape=ellipse, color={}, label={}];", self.color_of(fragment), quoted(&label))
    }

    fn use_line(&self, used: Use) -> String {
        let Use { from, to, fragment, verb } = used;
        format!("  n{from} -> n{to} [label={verb}, color={}];", self.color_of(fragment))
    }

    fn color_of(&self, fragment: Handle<Buffer>) -> &'static str {
        self.fragments.get(&fragment).map_or(NO_LAYOUT, |placed| color(&placed.reason))
    }
}

/// The color of ops whose layout inference does not choose.
const NO_LAYOUT: &str = "black";

/// The color of what the user laid out.
const DECLARED: &str = "blue";

fn color(reason: &Reason) -> &'static str {
    if reason.is_written() { DECLARED } else { color_of_pass(reason.pass) }
}

fn color_of_pass(pass: Pass) -> &'static str {
    match pass {
        Pass::Strict => "purple",
        Pass::Common => "darkgreen",
        Pass::Free => "orangered",
    }
}

/// A comment that tells what the colors mean.
fn legend() -> String {
    let passes =
        [Pass::Strict, Pass::Common, Pass::Free].map(|pass| format!("{}: {}", color_of_pass(pass), pass.name()));
    format!("  // {DECLARED}: declared, {}", passes.join(", "))
}

/// A text as DOT writes it.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
