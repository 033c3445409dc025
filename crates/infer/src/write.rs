//! What was inferred, written into the kernel.

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Space};
use tilewright_layout::Layout;
use tilewright_layout::map::Map;

use crate::{Inferred, Origin, infer};

/// The kernel with a layout for every fragment that is used (views have that of what they are views of), every parallel
/// loop, and every op whose elements move one by one to or from fragments. What has a layout keeps it. Errors: those of
/// [`infer`].
pub fn lay_out(mut kernel: Kernel) -> Result<(Kernel, Inferred), Vec<Diagnostic>> {
    let inferred = infer(&kernel)?;
    let fragments: Vec<Handle<Buffer>> = kernel
        .buffers
        .iter()
        .filter(|(_, buffer)| buffer.space == Space::Fragment && buffer.layout.is_none() && buffer.view_of.is_none())
        .map(|(handle, _)| handle)
        .collect();
    for handle in fragments {
        if let Some(placed) = inferred.fragments.get(&handle) {
            let layout = layout_of(&placed.map, placed.bytes, &kernel.buffers[handle]);
            kernel.buffers[handle].layout = layout;
        }
    }
    for (origin, map) in &inferred.loops {
        match origin {
            Origin::Parallel(parallel) => {
                let layout = &mut kernel.parallels[*parallel].layout;
                *layout = layout.take().or_else(|| map.to_layout());
            }
            Origin::Op(op) => {
                let uses_fragment = |kernel: &Kernel| {
                    let mut tiles = kernel.ops[*op].operands.iter();
                    tiles.any(|tile| kernel.buffers[tile.buffer].space == Space::Fragment)
                };
                if kernel.ops[*op].layout.is_none() && uses_fragment(&kernel) {
                    kernel.ops[*op].layout = map.to_layout();
                }
            }
        }
    }
    Ok((kernel, inferred))
}

/// The layout of a fragment's own elements. The map is of granules of so many bytes, of which each has several elements
/// where a view of the fragment has wider ones.
pub(crate) fn layout_of(map: &Map, bytes: i64, buffer: &Buffer) -> Option<Layout> {
    let lanes = (bytes / buffer.dtype.bytes()).max(1) as usize;
    if lanes == 1 {
        return map.to_layout();
    }
    let mut of_elements = Map::empty(map.threads(), map.elements() * lanes);
    for (thread, slot, granule) in map.entries() {
        for lane in 0..lanes {
            of_elements.put(thread, slot * lanes + lane, granule * lanes + lane);
        }
    }
    of_elements.to_layout()
}
