//! Walks over a kernel: chooses the variant of every op, builds its statements, and puts barriers between ops.

mod across;
mod assemble;
mod derived;
mod kernel_lowering;
mod loaded;
mod options;
mod overlap;
mod pipelined;
mod placed;
mod registers;
mod staged;
mod tensor;
mod variants;

pub use options::Options;

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, counted};
use tilewright_expr::Expr;
use tilewright_ir::plan::OpPlan;
use tilewright_ir::thread::Program;
use tilewright_ir::tile::{KernelsByRole, Ring};
use tilewright_ir::{Target, VerifiedKernel};

use self::kernel_lowering::KernelLowering;
use crate::builder::Builder;
use crate::in_flight::with_waits;
use crate::rings::{RingHolds, Rings};
use crate::sync::derive_barriers;

/// What becomes of claimed tiles on a target that has no claims.
const OWN_TILE: &str = "own tile";

/// Lowers a kernel to the program of one thread. Errors: ops to which no variant applies, with the reasons of every
/// variant.
pub fn lower(kernel: &VerifiedKernel, target: Target, options: &Options) -> Result<Program, Vec<Diagnostic>> {
    let kernels = KernelsByRole::of(kernel.kernel());
    let kernel = kernels.whole();
    let (mut builder, mut plans) = (Builder::new(kernel, target), Vec::new());
    let rings = Rings::of(kernel, &mut builder, &mut plans);
    plans.extend(kernel.unclaimed.iter().map(|ring| own_tile(ring, target)));
    let mut lowering = KernelLowering {
        kernel,
        kernels: &kernels,
        options,
        builder,
        plans,
        rings,
        tensor_columns: kernel.tensor_columns(),
        sums_flags: BTreeMap::new(),
        found: Vec::new(),
        trips: Expr::constant(1),
        loops: 0,
        statements: 0,
        depth: 0,
        claims: None,
        spread_ops: Vec::new(),
    };
    let first = lowering.load_indices();
    let mut blocks = lowering.body(&kernel.body, &[]);
    let mut holds = RingHolds::default();
    if lowering.found.is_empty() {
        blocks = lowering.rotated(blocks);
        let uneven = lowering.rings.uneven(kernel);
        lowering.found.extend(uneven);
        let KernelLowering { builder, plans, found, rings, .. } = &mut lowering;
        (blocks, holds) = std::mem::take(rings).finish(kernel, builder, plans, blocks);
        blocks = with_waits(builder, plans, found, blocks);
        lowering.check_variant_is_known();
    }
    if !lowering.found.is_empty() {
        return Err(lowering.found);
    }
    if let Some(finding) = too_much_shared(&lowering.builder.program) {
        return Err(vec![finding]);
    }
    derive_barriers(&lowering.builder.program, &mut blocks);
    let blocked = holds.blocked(kernel, &blocks);
    if !blocked.is_empty() {
        return Err(blocked);
    }
    lowering.finish(first, blocks)
}

/// The plan of claimed tiles on a target that has no claims.
fn own_tile(ring: &Ring, target: Target) -> OpPlan {
    let title = ring.span.titled(&format!("ring {}", ring.name));
    let summary = format!("each CTA computes its own tile: {target} cannot claim those of others");
    derived::plan(&title, ring.span, OWN_TILE, summary)
}

/// The error for shared memory that exceeds the limit with the scratch of ops, which follows the kernel's own buffers; the
/// verifier has counted those.
fn too_much_shared(program: &Program) -> Option<Diagnostic> {
    let (total, most) = (program.shared_bytes(), program.target.shared_bytes());
    let scratch = program.memories.iter().map(|(_, memory)| memory).filter(|memory| memory.shared_bytes() > 0).last();
    let scratch = scratch.filter(|_| total > most)?;
    let needed = counted(scratch.shared_bytes(), "byte");
    let message = format!("{total} bytes of shared memory, but a CTA of {} has {most}", program.target);
    let finding = Diagnostic::error("K0210", message).label(scratch.span, format!("this op needs {needed} of it"));
    Some(finding.help("use smaller tiles or fewer stages, or layouts between which elements stay in their warp"))
}
