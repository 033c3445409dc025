//! Walks over a kernel: chooses the variant of every op, builds its statements, and puts barriers between ops.

mod assemble;
mod kernel_lowering;
mod options;
mod placed;
mod variants;

pub use options::Options;

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::Program;
use tilewright_ir::{Target, VerifiedKernel};

use self::kernel_lowering::KernelLowering;
use crate::builder::Builder;
use crate::sync::derive_barriers;

/// Lowers a kernel to the program of one thread. Errors: ops to which no variant applies, with the reasons of every
/// variant.
pub fn lower(kernel: &VerifiedKernel, target: Target, options: &Options) -> Result<Program, Vec<Diagnostic>> {
    let kernel = kernel.kernel();
    let mut lowering = KernelLowering {
        kernel,
        options,
        builder: Builder::new(kernel, target),
        plans: Vec::new(),
        found: Vec::new(),
        trips: 1,
        loops: 0,
    };
    let mut blocks = lowering.body(&kernel.body, &[]);
    lowering.check_variant_is_known();
    if !lowering.found.is_empty() {
        return Err(lowering.found);
    }
    derive_barriers(&lowering.builder.program, &mut blocks);
    lowering.finish(blocks)
}
