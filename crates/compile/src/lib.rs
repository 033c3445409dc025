//! The pipeline: from a kernel to an [`Artifact`], which is all that a launch needs.
//!
//! Nothing here reads files, the environment, clocks or CUDA; the same kernel gives the same bytes on every machine.

mod artifact;
mod claims;
mod launch_shape;
mod parameter;
mod registers;
mod report;
mod sizes;
mod stage;
mod unwritten;
mod writers;

pub use artifact::Artifact;
pub use parameter::Parameter;
pub use registers::FragmentRegisters;
pub use report::defect_report;
pub use stage::Stage;
pub use tilewright_emit::{Origin, SourceMap};
pub use tilewright_lower::Options as LowerOptions;

use tilewright_diag::Diagnostic;
use tilewright_emit::emit;
use tilewright_infer::{Inferred, is_laid_out, lay_out};
use tilewright_ir::{Kernel, Target, VerifiedKernel, thread, tile};
use tilewright_lower::lower;

/// Options of compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The target to compile for.
    pub target: Target,
    /// Options of lowering.
    pub lower: LowerOptions,
}

impl Options {
    /// Options for this target, with everything else left to the compiler.
    pub fn new(target: Target) -> Options {
        Options { target, lower: LowerOptions::default() }
    }
}

/// Compiles a kernel to CUDA text. Errors: everything that is wrong with the kernel, at the user's lines.
pub fn compile(kernel: Kernel, options: &Options) -> Result<Artifact, Vec<Diagnostic>> {
    let kernel = tile::verify(Kernel { widest_global: options.target.widest_global(), ..kernel }, options.target)?;
    let kernel = tile::verify(tile::contract(kernel), options.target)?;
    let (kernel, inferred) = laid_out(kernel, options.target)?;
    let program = lower(&kernel, options.target, &options.lower)?;
    let program = thread::verify(program)?;
    let emitted = emit(&program).map_err(|finding| vec![finding])?;
    Artifact::new(kernel, inferred, program, emitted)
}

/// The kernel with all layouts, verified again if it had to be changed.
fn laid_out(kernel: VerifiedKernel, target: Target) -> Result<(VerifiedKernel, Inferred), Vec<Diagnostic>> {
    if is_laid_out(kernel.kernel()) {
        return Ok((kernel, Inferred::default()));
    }
    let (kernel, inferred) = lay_out(kernel.into_kernel())?;
    Ok((tile::verify(kernel, target)?, inferred))
}
