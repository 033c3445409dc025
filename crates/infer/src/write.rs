//! What was inferred, written into the kernel.

use std::sync::Arc;

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Op, OpClass, Space, Tile};
use tilewright_layout::Layout;
use tilewright_layout::map::Map;

use crate::convert::converted;
use crate::granules::{lanes_of, layout_of};
use crate::inference::attempt;
use crate::inferred::Inferred;
use crate::node::Origin;
use crate::tables::BUDGET;

/// Whether a kernel has neither fragments nor parallel loops, nor reductions or atomic ops that would need some, so that there is
/// nothing to lay out.
pub fn is_laid_out(kernel: &Kernel) -> bool {
    let has_fragments = kernel.buffers.iter().any(|(_, buffer)| buffer.space == Space::Fragment);
    let reduces = kernel.ops.iter().any(|(_, op)| match op.kind.info().class {
        OpClass::Reduction | OpClass::Scan => true,
        OpClass::Elementwise | OpClass::Product | OpClass::Permutation | OpClass::Conversion => false,
    });
    let combines = kernel.ops.iter().any(|(_, op)| op.kind.is_atomic());
    kernel.parallels.is_empty() && !has_fragments && !reduces && !combines
}

/// The maximum number of conversions that are inserted into a kernel. Each takes another search for layouts.
const MOST_CONVERSIONS: usize = 64;

/// How many more places of elements inference may visit after each of these.
const OF_A_CONVERSION: u64 = 1 << 20;

/// The kernel with a layout for every fragment that is used (a view has that of its owner), every parallel loop, and
/// every op whose elements move one by one to or from fragments, or are combined with memory. Layouts that were written are
/// kept. If the kernel allows conversions, fragments may be copied through shared memory. Errors: those of [`crate::infer`].
pub fn lay_out(kernel: Kernel) -> Result<(Kernel, Inferred), Vec<Diagnostic>> {
    let (mut kernel, inferred) = placed(kernel)?;
    let fragments: Vec<Handle<Buffer>> = kernel
        .buffers
        .iter()
        .filter(|(_, buffer)| buffer.space == Space::Fragment && buffer.layout.is_none() && buffer.view_of.is_none())
        .map(|(handle, _)| handle)
        .collect();
    let mut layouts = Layouts::default();
    for handle in fragments {
        if let Some(placed) = inferred.fragments.get(&handle) {
            let lanes = lanes_of(placed.bytes, &kernel.buffers[handle]);
            kernel.buffers[handle].layout = layouts.of(&placed.map, lanes);
        }
    }
    for (origin, map) in &inferred.loops {
        match origin {
            Origin::Parallel(parallel) => {
                let layout = &mut kernel.parallels[*parallel].layout;
                *layout = layout.take().or_else(|| layouts.of(map, 1));
            }
            Origin::Op(op) => {
                if kernel.ops[*op].layout.is_none() && is_by_elements(&kernel, &kernel.ops[*op]) {
                    kernel.ops[*op].layout = layouts.of(map, 1);
                }
            }
        }
    }
    Ok((kernel, inferred))
}

/// Whether the elements of an op are distributed over the threads: those of fragments, and those that are combined with memory.
fn is_by_elements(kernel: &Kernel, op: &Op) -> bool {
    let is_fragment = |tile: &Tile| kernel.buffers[tile.buffer].space == Space::Fragment;
    op.kind.is_atomic() || op.operands.iter().any(is_fragment)
}

/// The layouts of maps, each found once: many fragments and loops share a map.
#[derive(Default)]
struct Layouts(Vec<(Arc<Map>, usize, Option<Layout>)>);

impl Layouts {
    /// The layout of elements, of which a granule of the map has `lanes`.
    fn of(&mut self, map: &Arc<Map>, lanes: usize) -> Option<Layout> {
        let is_same = |(known, of, _): &&(Arc<Map>, usize, Option<Layout>)| Arc::ptr_eq(known, map) && *of == lanes;
        if let Some((.., layout)) = self.0.iter().find(is_same) {
            return layout.clone();
        }
        let layout = layout_of(map, lanes);
        self.0.push((Arc::clone(map), lanes, layout.clone()));
        layout
    }
}

/// The layouts of a kernel, and the kernel with the conversions that they need.
fn placed(mut kernel: Kernel) -> Result<(Kernel, Inferred), Vec<Diagnostic>> {
    let mut left = BUDGET;
    for _ in 0..=MOST_CONVERSIONS {
        let against = match attempt(&kernel, &mut left) {
            Ok(inferred) => return Ok((kernel, inferred)),
            Err(against) => against,
        };
        let helped = against.clashes.iter().filter(|_| kernel.allow_conversions).find_map(|c| converted(&kernel, c));
        kernel = helped.ok_or(against.findings)?;
        left += OF_A_CONVERSION;
    }
    Err(vec![too_many_conversions(&kernel)])
}

fn too_many_conversions(kernel: &Kernel) -> Diagnostic {
    Diagnostic::error("I0712", format!("`{}` needs more than {MOST_CONVERSIONS} conversions of fragments", kernel.name))
        .label(kernel.span, "k.allow_conversions() inserts at most that many")
        .help("let the fragments of one loop have the same layout, or leave their layouts out")
}
