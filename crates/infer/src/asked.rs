//! Warnings about vector widths that the user asked for and that no access reaches.

use tilewright_diag::Diagnostic;
use tilewright_ir::tile::{Kernel, Parallel};

use crate::inferred::{Inferred, MemoryAccess};
use crate::node::Origin;
use crate::text::access_text;

impl Inferred {
    /// Warnings about loops with `.vector(n)` in which no access moves `n` elements at once.
    pub(crate) fn narrower_than_asked(&self, kernel: &Kernel) -> Vec<Diagnostic> {
        let of_loop = |(handle, parallel)| {
            let accesses = self.accesses.iter().filter(move |access| access.origin == Origin::Parallel(handle));
            narrower(kernel, parallel, &accesses.collect::<Vec<_>>())
        };
        kernel.parallels.iter().filter_map(of_loop).collect()
    }
}

fn narrower(kernel: &Kernel, parallel: &Parallel, accesses: &[&MemoryAccess]) -> Option<Diagnostic> {
    let asked = parallel.vector?;
    let most = accesses.iter().map(|access| access.widths.1).max()?;
    if most as i64 >= asked {
        return None;
    }
    let elements = if most == 1 { "element".to_string() } else { "elements".to_string() };
    let message = format!("`.vector({asked})` is not possible: a thread moves {most} {elements} at once");
    let finding = Diagnostic::warning("I0711", message).label(parallel.span, "in this loop");
    let finding = accesses.iter().fold(finding, |finding, access| finding.note(access_text(kernel, access)));
    Some(finding.help(format!("write `.vector({most})`, or leave it out: vectors are then as wide as possible")))
}
