//! Why a buffer has its layout: the chain of reasons back to a line that the user wrote.

use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Space};

use crate::alternatives::Alternative;
use crate::inferred::{Component, Inferred, Placed};
use crate::known::{Pass, Reason};
use crate::text::layout_text;

/// The maximum number of alternatives that are listed: the cheapest ones, and ones that fail.
const TOLD: [usize; 2] = [3, 2];

/// A fragment in the chain from a buffer to the line that fixed its layout.
#[derive(Clone, Debug)]
pub struct Link {
    /// The fragment that owns the storage.
    pub fragment: Handle<Buffer>,
    /// Its name.
    pub name: String,
    /// Its layout.
    pub layout: String,
    /// Why it has this layout.
    pub reason: Reason,
    /// The name of the fragment that it follows from.
    pub parent: Option<String>,
    /// What it costs in registers, if threads have all of it.
    pub note: Option<String>,
}

impl Inferred {
    /// The chain from a fragment to the line that fixed its layout: each link follows from the next. Empty for buffers
    /// in memory, and fragments that nothing uses. The kernel is the one that [`lay_out`](crate::lay_out) returned.
    pub fn chain(&self, kernel: &Kernel, buffer: Handle<Buffer>) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        let mut next = Some(kernel.storage(buffer));
        while let Some(fragment) = next {
            let Some(placed) = self.fragments.get(&fragment) else { break };
            links.push(link(kernel, fragment, placed));
            // A fragment with added copies may follow from one that follows from it; the chain ends there.
            let is_new = |parent: &Handle<Buffer>| links.iter().all(|link| link.fragment != *parent);
            next = placed.reason.parent.filter(is_new);
        }
        links
    }

    /// `fixed by: kernels/src/softmax.rs:35, parallel i, j`: the end of the chain.
    pub(crate) fn fixed_by(&self, kernel: &Kernel, buffer: Handle<Buffer>) -> Option<String> {
        let reason = self.chain(kernel, buffer).pop()?.reason;
        let by = if reason.is_written() { "which lays it out" } else { reason.op.as_str() };
        Some(format!("fixed by: {}, {by}", reason.span))
    }

    /// Why a buffer has its layout, as text: every link of its [chain](Inferred::chain), and for a layout that was
    /// chosen, its cost and that of alternatives.
    pub fn why(&self, kernel: &Kernel, buffer: Handle<Buffer>) -> String {
        let named = &kernel.buffers[buffer];
        let (name, storage) = (&named.name, kernel.storage(buffer));
        let mut lines = Vec::new();
        if storage != buffer {
            lines.push(format!("{name}: a view of {}  // {}", kernel.buffers[storage].name, named.span));
        }
        match named.space {
            Space::Global(_) => lines.push(in_memory(named, "global memory")),
            Space::Shared => lines.push(in_memory(named, "shared memory")),
            Space::Tensor => lines.push(in_memory(named, "tensor memory")),
            Space::Fragment => {
                let chain = self.chain(kernel, buffer);
                if chain.is_empty() {
                    lines.push(format!("{name}: nothing uses it, so it has no layout  // {}", named.span));
                }
                chain.iter().for_each(|link| lines.extend(link.lines()));
                if let Some(last) = chain.last() {
                    lines.extend(self.choice(kernel, last));
                }
                lines.extend(self.fixed_by(kernel, buffer));
            }
        }
        lines.join("\n") + "\n"
    }

    /// The cost of a layout that was chosen, and that of alternatives.
    fn choice(&self, kernel: &Kernel, link: &Link) -> Vec<String> {
        let is_chosen = link.reason.pass == Pass::Free;
        let holds = |component: &&Component| component.fragments.contains(&link.fragment);
        let Some(component) = self.components.iter().find(holds).filter(|_| is_chosen) else { return Vec::new() };
        let names: Vec<&str> =
            component.fragments.iter().map(|fragment| kernel.buffers[*fragment].name.as_str()).collect();
        let ops = component.ops.len();
        let mut lines = vec![
            format!("  chosen with: {}; ops and loops: {ops}", names.join(", ")),
            format!("  total cost: {}", component.cost),
        ];
        let (possible, refused): (Vec<Alternative>, Vec<Alternative>) =
            self.alternatives(kernel, link.fragment).into_iter().partition(|one| one.outcome.is_ok());
        let told = possible.iter().take(TOLD[0]).chain(refused.iter().take(TOLD[1]));
        lines.extend(told.map(alternative_text));
        lines
    }
}

impl Link {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.name, self.layout), format!("  because: {}", self.reason)];
        lines.extend(self.note.as_ref().map(|note| format!("  {note}")));
        lines.extend(self.parent.as_ref().map(|parent| format!("  from: {parent}")));
        lines
    }

    /// The line that the link names.
    pub fn span(&self) -> Span {
        self.reason.span
    }
}

fn link(kernel: &Kernel, fragment: Handle<Buffer>, placed: &Placed) -> Link {
    let buffer = &kernel.buffers[fragment];
    Link {
        fragment,
        name: buffer.name.clone(),
        layout: layout_text(buffer, placed),
        reason: placed.reason.clone(),
        parent: placed.reason.parent.map(|parent| kernel.buffers[parent].name.clone()),
        note: placed.note.clone(),
    }
}

fn in_memory(buffer: &Buffer, memory: &str) -> String {
    let layout = match (&buffer.layout, &buffer.dynamic_shape) {
        (Some(layout), None) => layout.to_string(),
        (_, Some(_)) => "strides computed from its sizes".to_string(),
        (None, None) => "no layout".to_string(),
    };
    format!("{}: {layout}\n  because: it is in {memory}, and is laid out as written, {}", buffer.name, buffer.span)
}

fn alternative_text(alternative: &Alternative) -> String {
    match &alternative.outcome {
        Ok(cost) => format!("  instead, {}: {cost}", alternative.way),
        Err(violation) => format!("  refused, {}: `{}`: {}", alternative.way, violation.op, violation.what),
    }
}
