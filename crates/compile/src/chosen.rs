//! The layouts that the user did not write, and why they are what they are.

use tilewright_infer::Inferred;
use tilewright_ir::tile::{Buffer, SharedStorage};
use tilewright_ir::{Handle, Kernel};
use tilewright_layout::Layout;
use tilewright_lower::SharedLayout;

/// The layouts that the compiler found.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Those of fragments and loops; empty if all were written.
    pub(crate) inferred: Inferred,
    /// Those of shared buffers for which only a shape was written.
    pub(crate) shared: Vec<SharedLayout>,
    /// Which shared buffers have the same storage.
    pub(crate) storage: SharedStorage,
}

impl Chosen {
    /// The stage `layouts`: shared buffers, then what was inferred.
    pub(crate) fn text(&self, kernel: &Kernel) -> String {
        let shared = self.shared.iter().map(|one| shared_text(kernel, one));
        let has_inferred = !self.inferred.fragments.is_empty() || !self.inferred.loops.is_empty();
        let inferred = (has_inferred || self.shared.is_empty()).then(|| self.inferred.text(kernel));
        shared.chain(self.storage_text(kernel)).chain(inferred).collect::<Vec<String>>().join("\n")
    }

    /// What shared buffers take together, and which have the same storage; `None` where none could.
    pub(crate) fn storage_text(&self, kernel: &Kernel) -> Option<String> {
        let SharedStorage { inside, bytes, bytes_apart, is_not_worth_it } = &self.storage;
        if *is_not_worth_it {
            let why = "the lives of some buffers do not meet, but no more CTAs would run on an SM if they had the same storage";
            return Some(format!("shared memory: the buffers take {bytes} bytes\n  because: {why}\n"));
        }
        let name = |buffer: &Handle<Buffer>| &kernel.buffers[*buffer].name;
        let lines =
            inside.iter().map(|(buffer, owner)| format!("  {} has the storage of {}\n", name(buffer), name(owner)));
        let text = format!(
            "shared memory: the buffers take {bytes} bytes; apart from each other, they would take {bytes_apart}\n"
        );
        (!inside.is_empty()).then(|| lines.fold(text, |text, line| text + &line))
    }

    /// Whose storage a shared buffer has, if it is not its own.
    fn storage_of(&self, kernel: &Kernel, buffer: Handle<Buffer>) -> Option<String> {
        let owner = self.storage.inside.get(&kernel.storage(buffer))?;
        let owner = &kernel.buffers[*owner].name;
        Some(format!("  storage: that of {owner}, which is not in use at the same time\n"))
    }

    /// Why a buffer has its layout. A view is traced to the buffer that owns its storage.
    pub(crate) fn why(&self, kernel: &Kernel, buffer: Handle<Buffer>) -> String {
        let storage = kernel.storage(buffer);
        let of = self.storage_of(kernel, buffer).unwrap_or_default();
        let Some(chosen) = self.shared.iter().find(|one| one.buffer == storage) else {
            return self.inferred.why(kernel, buffer) + &of;
        };
        let (named, owner) = (&kernel.buffers[buffer], &kernel.buffers[storage]);
        let view = match buffer == storage {
            true => String::new(),
            false => format!("{}: a view of {}  // {}\n", named.name, owner.name, named.span),
        };
        format!("{view}{}: {}\n  because: {}\n{of}", owner.name, layout_text(owner), chosen.reason)
    }
}

/// `shared left: f16(64,64) = S[(64,64):(72@m,1@m)]`, and the reason.
fn shared_text(kernel: &Kernel, chosen: &SharedLayout) -> String {
    let buffer = &kernel.buffers[chosen.buffer];
    let (kind, layout) = (buffer.type_text(), layout_text(buffer));
    format!("shared {}: {kind} = {layout}\n  because: {}\n", buffer.name, chosen.reason)
}

fn layout_text(buffer: &Buffer) -> String {
    buffer.layout.as_ref().map_or_else(String::new, Layout::to_string)
}
