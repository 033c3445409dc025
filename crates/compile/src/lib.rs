//! The pipeline: from a kernel to an [`Artifact`], which is all that a launch needs.
//!
//! Nothing here reads files, the environment, clocks or CUDA; the same kernel gives the same bytes on every machine.

mod artifact;
mod chosen;
mod claims;
mod launch_shape;
mod memory_map;
mod parameter;
mod registers;
mod report;
mod sizes;
mod stage;
mod tensor_maps;
mod unwritten;
mod vectors;
mod writers;

pub use artifact::Artifact;
pub use parameter::Parameter;
pub use registers::FragmentRegisters;
pub use report::defect_report;
pub use stage::Stage;
pub use tensor_maps::MapParameter;
pub use tilewright_emit::{Origin, SourceMap};
pub use tilewright_lower::Options as LowerOptions;

use chosen::Chosen;
use tilewright_diag::Diagnostic;
use tilewright_emit::emit;
use tilewright_infer::{Inferred, is_laid_out, lay_out};
use tilewright_ir::thread::Program;
use tilewright_ir::{Kernel, Target, VerifiedKernel, thread, tile};
use tilewright_lower::{OpenAccesses, cost, has_full_wavefronts, lower};

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
    let kernel = tile::prepare(kernel);
    let kernel = if options.target.has_claims() { kernel } else { kernel.without_claims() };
    let kernel = tile::with_producer(kernel, options.target, options.lower.variant.as_deref());
    let Lowered { kernel, inferred, program, accesses } = fitting(kernel, options)?;
    let program = thread::verify(program)?;
    let inferred = vectors::as_lowered(inferred, kernel.kernel(), program.program());
    let emitted = emit(&program).map_err(|finding| vec![finding])?;
    let storage = kernel.kernel().shared_storage(options.target);
    Artifact::new(kernel, Chosen { inferred, shared: accesses.reasons(), storage }, program, emitted)
}

/// A kernel with all layouts, and its program.
struct Lowered {
    kernel: VerifiedKernel,
    inferred: Inferred,
    program: Program,
    /// How it accesses open buffers.
    accesses: OpenAccesses,
}

/// The cheapest program of a kernel. If its own shared memory or that of its ops does not suffice, buffers share storage as far
/// as they can.
fn fitting(kernel: Kernel, options: &Options) -> Result<Lowered, Vec<Diagnostic>> {
    let may_share = kernel.shared_storage(options.target).is_not_worth_it;
    let sharing = may_share.then(|| Kernel { always_shares: true, ..kernel.clone() });
    let is_too_much = |found: &[Diagnostic]| found.iter().any(|finding| finding.code == "K0210");
    match (cheapest(kernel, options), sharing) {
        (Err(found), Some(sharing)) if is_too_much(&found) => cheapest(sharing, options),
        (lowered, _) => lowered,
    }
}

/// The kernel and its program, with the layouts of open buffers under which it is the cheapest. Error: what is wrong with
/// it whatever these are.
fn cheapest(kernel: Kernel, options: &Options) -> Result<Lowered, Vec<Diagnostic>> {
    if kernel.open_buffers().is_empty() {
        return lowered(kernel, options);
    }
    let (mut best, mut wrong) = (None::<Lowered>, Vec::new());
    for guess in tile::with_open_placed(&kernel, options.target) {
        match lowered(guess.clone(), options) {
            Err(findings) => wrong = findings,
            Ok(first) => {
                let other = improved(guess, first, options);
                if best.as_ref().is_none_or(|best| other.price() < best.price()) {
                    best = Some(other);
                }
                if !kernel.compares_open_layouts()
                    || best.as_ref().is_some_and(|best| has_full_wavefronts(&kernel, &best.program))
                {
                    break;
                }
            }
        }
    }
    best.ok_or(wrong)
}

/// A lowered kernel with other layouts of its open buffers, where these make it cheaper.
fn improved(mut source: Kernel, mut best: Lowered, options: &Options) -> Lowered {
    for placement in best.accesses.trials(&best.kernel, &best.program) {
        let mut placed = source.clone();
        let is_placed = placement.iter().all(|(buffer, layout)| placed.place(*buffer, layout).is_ok());
        // A layout that cannot be lowered is not taken.
        let other = is_placed.then(|| lowered(placed.clone(), options));
        let Some(Ok(other)) = other else { continue };
        if other.price() < best.price() {
            (source, best) = (placed, other);
            if best.accesses.trials(&best.kernel, &best.program).is_empty() {
                break;
            }
        }
    }
    best
}

impl Lowered {
    /// The cost of its ops, then the shared memory that it takes.
    fn price(&self) -> (i64, i64) {
        (cost(&self.program), self.program.shared_bytes())
    }
}

/// The kernel with all fragments and loops laid out, and its program.
fn lowered(kernel: Kernel, options: &Options) -> Result<Lowered, Vec<Diagnostic>> {
    let (kernel, inferred) = laid_out(tile::verify(kernel, options.target)?, options.target)?;
    let program = lower(&kernel, options.target, &options.lower)?;
    let accesses = OpenAccesses::of(&kernel, &program);
    Ok(Lowered { kernel, inferred, program, accesses })
}

/// The kernel with all layouts, verified again if it had to be changed.
fn laid_out(kernel: VerifiedKernel, target: Target) -> Result<(VerifiedKernel, Inferred), Vec<Diagnostic>> {
    if is_laid_out(kernel.kernel()) {
        return Ok((kernel, Inferred::default()));
    }
    let (kernel, inferred) = lay_out(kernel.into_kernel())?;
    Ok((tile::verify(kernel, target)?, inferred))
}
