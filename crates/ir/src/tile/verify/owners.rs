//! Which thread holds which elements of a fragment.

use tilewright_diag::Diagnostic;
use tilewright_layout::map::Map;

use super::buffers;
use crate::tile::buffer::Buffer;
use crate::tile::kernel::Kernel;

/// The map of a fragment that is not a view; `None` if its layout is to be inferred, or if its layout was reported
/// already.
pub(super) fn map_of(kernel: &Kernel, owner: &Buffer) -> Result<Option<Map>, Diagnostic> {
    let Some(layout) = &owner.layout else { return Ok(None) };
    match Map::of_layout(layout, kernel.threads.max(1) as usize) {
        Ok(map) => Ok(Some(map)),
        Err(_) if buffers::is_reported(kernel, owner) => Ok(None),
        Err(what) => Err(Diagnostic::error("K0227", format!("the layout of `{}` {what}", owner.name))
            .label(owner.span, owner.laid_out())
            .help(
                "name threads that the kernel has, or declare the fragment with a shape: its layout is then inferred",
            )),
    }
}
