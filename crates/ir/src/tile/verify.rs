//! Checks of the tile level.
//!
//! Names are identifiers and unique. Shapes and layouts agree, and layouts use the axes of their memory space. A view
//! stays inside its buffer. Ops have the operands and the scope of their table row; their tiles lie inside their
//! buffers and have equal dtypes, and extents that agree apart from those of 1; inputs are not written; fragments name
//! threads that exist.
//! Values have one dtype per op. Elements of shared memory and fragments are in bounds where the enclosing conditions
//! hold, in shared memory also where data decides the index; such indices are integers. No iteration of a parallel loop
//! touches what another one writes. Conditions around ops are the same for all threads. Warps of one CTA never execute
//! the same warp-scope op on the same tile, and none reads what another one writes in it. A fragment is used in one role.
//! Stages of rings are used where they are held, and all roles of a ring go through the same sequence of them.
//! Shared memory fits the target.
//!
//! Not checked here: that every element of an output is written (the virtual GPU checks it), and whether a variant can
//! use a layout (the variants report that, with reasons).

pub(in crate::tile) mod bounds;
mod buffer_errors;
mod buffers;
mod carries;
mod clusters;
mod conditions;
mod data;
mod elements;
mod identifiers;
mod index;
mod loaded;
mod masked;
mod ops;
mod owners;
mod races;
mod rings;
mod roles;
mod sizes;
mod tensor_memory;
mod tile_loops;
mod tuples;
mod uniform;
mod unwritten;
mod values;
mod warps;

use tilewright_diag::{Diagnostic, Severity, counted};
use tilewright_expr::{Expr, Node};
use tilewright_layout::axis::Scope;

use crate::target::Target;
use crate::tile::buffer::{Direction, Space};
use crate::tile::kernel::{Kernel, Loop, Overlap, Stmt, Unroll};
use crate::tile::op::{Op, OpClass};
use crate::tile::role::KernelsByRole;
use crate::tile::value::Value;

use identifiers::{IDENTIFIER_HELP, check_name, is_identifier};
pub use masked::warnings;

/// A kernel that passed the verifier; only such a kernel can be lowered.
#[derive(Clone, Debug)]
pub struct VerifiedKernel(Kernel);

impl VerifiedKernel {
    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.0
    }

    /// The kernel, to be changed; the result has to be verified again.
    pub fn into_kernel(self) -> Kernel {
        self.0
    }
}

/// Checks a kernel for a target. Returns everything that is wrong with it, in source order.
pub fn verify(kernel: Kernel, target: Target) -> Result<VerifiedKernel, Vec<Diagnostic>> {
    let is_error = |finding: &Diagnostic| finding.severity != Severity::Warning;
    if kernel.build_findings.iter().any(is_error) {
        return Err(kernel.build_findings.into_iter().filter(is_error).collect());
    }
    let mut found = Vec::new();
    // All other checks enumerate iterations.
    elements::check_all_iterations(&kernel, &mut found);
    if !found.is_empty() {
        return Err(found);
    }
    launch_shape(&kernel, target, &mut found);
    let before = found.len();
    roles::check(&kernel, target, &mut found);
    // Everything else is checked with the threads of the roles.
    if found.len() > before {
        return Err(found);
    }
    clusters::check(&kernel, target, &mut found);
    rings::check(&kernel, &mut found);
    if found.is_empty() {
        tile_loops::check(&kernel, &mut found);
    }
    tensor_memory::check(&kernel, target, &mut found);
    if !found.is_empty() {
        return Err(found);
    }
    loaded::check(&kernel, &mut found);
    let kernels = KernelsByRole::of(&kernel);
    buffers::check(&kernels, target, &mut found);
    check_body(&kernels, &kernel.body, &mut Vec::new(), &mut Vec::new(), &mut found);
    if found.is_empty() {
        unwritten::check(&kernel, &mut found);
        unwritten::check_carried(&kernel, &mut found);
    }
    if found.is_empty() { Ok(VerifiedKernel(kernel)) } else { Err(found) }
}

/// The first op that needs whole warps, if there is one.
fn needs_whole_warps(kernel: &Kernel) -> Option<&Op> {
    let is_by_warps = |op: &&Op| match op.kind.info().class {
        OpClass::Product => true,
        OpClass::Elementwise | OpClass::Reduction | OpClass::Scan | OpClass::Permutation | OpClass::Conversion => {
            op.scope == Scope::Warp
        }
    };
    kernel.ops.iter().map(|(_, op)| op).find(is_by_warps)
}

fn launch_shape(kernel: &Kernel, target: Target, found: &mut Vec<Diagnostic>) {
    if !is_identifier(&kernel.name) {
        let message = format!("`{}` cannot be the name of a kernel", kernel.name);
        found.push(Diagnostic::error("K0201", message).label(kernel.span, "named here").help(IDENTIFIER_HELP));
    }
    let most = target.max_threads();
    let help = match needs_whole_warps(kernel) {
        Some(_) => format!("call k.threads(n) with a multiple of 32 up to {most}"),
        None => format!("call k.threads(n) with 1 to {most} threads"),
    };
    let threads = counted(kernel.threads, "thread");
    if kernel.threads < 1 || kernel.threads > most {
        let message = format!("a CTA cannot have {threads}");
        found.push(Diagnostic::error("K0202", message).label(kernel.threads_span, "set here").help(help));
    } else if let Some(op) = needs_whole_warps(kernel).filter(|_| kernel.threads % 32 != 0) {
        let message = format!("`{}` needs whole warps, but the CTA has {threads}", op.kind.info().name);
        found.push(Diagnostic::error("K0202", message).label(op.span, "this op needs whole warps").help(help));
    }
    let before = found.len();
    for size in &kernel.sizes {
        sizes::check(kernel, size, found);
    }
    (0..kernel.scalars.len()).for_each(|at| sizes::check_scalar(kernel, at, found));
    found.extend(kernel.overlap.iter().filter_map(|overlap| changed_input(kernel, overlap)));
    found.extend(kernel.grid.iter().find_map(|ctas| sizes::unknown_size(kernel, ctas, kernel.grid_span)));
    found.extend(kernel.grid.iter().filter_map(|ctas| index::wrong(ctas, &ctas.to_string(), kernel.grid_span)));
    // The number of CTAs depends on the sizes.
    if found.len() == before {
        found.extend(no_grid(kernel));
    }
}

/// The error for a buffer that is said to be an input that no launch before writes, and is none.
fn changed_input(kernel: &Kernel, Overlap { unchanged, span }: &Overlap) -> Option<Diagnostic> {
    let buffer = unchanged
        .iter()
        .map(|buffer| &kernel.buffers[*buffer])
        .find(|buffer| buffer.space != Space::Global(Direction::Input))?;
    let message = format!("`{}` is not an input, and cannot be unchanged", buffer.name);
    let found = Diagnostic::error("K0290", message).label(*span, "asked for here").label(buffer.span, "declared here");
    Some(found.help("name inputs that no launch before writes, such as weights: k.overlap_previous(&[w])"))
}

/// The error for a grid that the hardware does not support.
fn no_grid(kernel: &Kernel) -> Option<Diagnostic> {
    let limits = [(1i64 << 31) - 1, 65_535, 65_535];
    let is_wrong = |ctas: &Expr, limit: i64| ctas.range().lo < 1 || ctas.range().hi > limit;
    let wrong: Vec<&Expr> =
        kernel.grid.iter().zip(limits).filter(|(g, limit)| is_wrong(g, *limit)).map(|(g, _)| g).collect();
    if wrong.is_empty() {
        return None;
    }
    let [x, y, z] = &kernel.grid;
    let mut finding = Diagnostic::error("K0203", format!("a grid cannot have ({x},{y},{z}) CTAs"))
        .label(kernel.grid_span, "this grid");
    for ctas in wrong.into_iter().filter(|ctas| ctas.range().constant().is_none()) {
        let range = ctas.range();
        finding = match ctas.node() {
            Node::Div(..) if range.lo == 0 => {
                let [of, by] = ctas.operands().map_or([ctas, ctas], |(of, by)| [of, by]);
                let shown = if of.operands().is_some() { format!("({of})") } else { of.to_string() };
                finding
                    .note(format!("`{ctas}` is 0 where `{of}` is less than {by}"))
                    .help(format!("round up, with {shown}.ceil_div({by})"))
            }
            _ => {
                let finding = finding.note(format!("`{ctas}` ranges from {} to {}", range.lo, range.hi));
                finding
                    .help("put the dimension with the most CTAs first, or bound its size: k.size(\"m\").max(1 << 16)")
            }
        };
    }
    Some(finding.help("a grid has 1 to 2147483647 CTAs along x, and 1 to 65535 along y and z"))
}

/// The most iterations of an unrolled loop.
const MAX_UNROLLED: i64 = 1024;

/// Conditions around a statement, and whether they hold there.
type Conditions<'a> = Vec<(&'a Value, bool)>;

fn check_body<'a>(
    kernels: &'a KernelsByRole<'a>,
    body: &'a [Stmt],
    scope: &mut Vec<Loop>,
    conditions: &mut Conditions<'a>,
    found: &mut Vec<Diagnostic>,
) {
    let kernel = kernels.whole();
    for stmt in body {
        match stmt {
            Stmt::Op(op) => {
                let (before, op) = (found.len(), &kernel.ops[*op]);
                ops::check(kernels.seen_by(op.role), op, scope, found);
                if !conditions.is_empty() {
                    found[before..].iter_mut().filter(|finding| finding.code == "K0216").for_each(under_conditions);
                }
            }
            Stmt::Loop(inner) => {
                check_loop(kernel, inner, scope, found);
                scope.push(Loop { body: Vec::new(), ..inner.clone() });
                check_body(kernels, &inner.body, scope, conditions, found);
                scope.pop();
            }
            Stmt::Parallel(parallel) => {
                let parallel = &kernel.parallels[*parallel];
                elements::check_parallel(kernels.seen_by(parallel.role), parallel, scope, conditions, found);
            }
            Stmt::EachThread(body) => elements::check_each(kernel, body, scope, conditions, found),
            Stmt::Begin(_) | Stmt::End(_) => {}
            Stmt::If(branch) => {
                elements::check_condition(kernel, branch, scope, conditions, found);
                for (body, holds) in [(&branch.then, true), (&branch.otherwise, false)] {
                    conditions.push((&branch.cond, holds));
                    check_body(kernels, body, scope, conditions, found);
                    conditions.pop();
                }
            }
        }
    }
}

/// Adds to the error for a region that leaves its buffer that the conditions around it do not help.
fn under_conditions(finding: &mut Diagnostic) {
    finding.notes.push("the enclosing conditions do not count for a region, only for elements".to_string());
    finding.help.push("end the loop earlier, and write the last iteration separately, after the loop".to_string());
}

/// The error for the bound of a loop that uses something other than sizes, block indices and variables of the loops
/// around it.
fn no_bound(kernel: &Kernel, inner: &Loop, bound: &Expr, scope: &[Loop]) -> Option<Diagnostic> {
    let mut known = kernel.vars_of_ctas();
    known.extend(scope.iter().map(|outer| outer.counter.var.clone()));
    let mut unknown = None;
    bound.for_each_var(&mut |var| {
        if !known.contains(var) {
            unknown = Some(var.clone());
        }
    });
    let of_loop = format!("the bound `{bound}` of the loop `{}`", inner.counter.var.name());
    match unknown {
        None => index::wrong(bound, &bound.to_string(), inner.span),
        Some(var) if var == kernel.warp() => {
            let message = format!("{of_loop} differs between threads: it depends on the warp");
            let finding = Diagnostic::error("K0240", message).label(inner.span, "this loop");
            Some(finding.help(
                "all threads of a CTA go through a loop around ops together: use sizes, block indices and \
                               variables of outer loops in its bounds",
            ))
        }
        Some(var) => {
            let message = format!("`{}` is not defined where {of_loop} uses it", var.name());
            let finding = Diagnostic::error("K0217", message).label(inner.span, "this loop");
            Some(
                finding
                    .help("bounds of a loop may use sizes, block indices after k.grid, and variables of outer loops"),
            )
        }
    }
}

fn check_loop(kernel: &Kernel, inner: &Loop, scope: &[Loop], found: &mut Vec<Diagnostic>) {
    let counter = &inner.counter;
    let name = counter.var.name();
    let outer = scope.iter().find(|l| l.counter.var.name() == name).map(|l| l.span);
    let buffer = kernel.buffers.iter().find(|(_, b)| b.name == name).map(|(_, b)| b.span);
    if let Some(first) = outer.or(buffer) {
        found.push(
            Diagnostic::error("K0204", format!("the name `{name}` is taken"))
                .label(inner.span, "this loop")
                .label(first, "first used here")
                .help("give the loop variable another name"),
        );
    }
    check_name(name, inner.span, "a loop variable", found);
    found.extend([&counter.begin, &counter.end].into_iter().find_map(|bound| no_bound(kernel, inner, bound, scope)));
    let range = counter.var.range();
    let too_far = range.lo < i64::from(i32::MIN) || range.hi >= i64::from(i32::MAX);
    if inner.unroll == Unroll::Full && counter.values().is_none() {
        let message = format!("the loop `{counter}` cannot be unrolled: its length is known only when the kernel runs");
        let finding = Diagnostic::error("K0228", message).label(inner.span, "this loop");
        found.push(finding.help("use k.serial, or loop over numbers and test in k.if_ whether an iteration exists"));
    }
    let is_unrolled = inner.unroll == Unroll::Full && counter.values().is_some();
    if too_far || (is_unrolled && counter.most_trips() > MAX_UNROLLED) {
        let (message, help) = match counter.values() {
            Some(_) => (
                format!("the loop `{counter}` is too long"),
                format!("a loop counts in 32 bits; an unrolled one has up to {MAX_UNROLLED} iterations"),
            ),
            None => (
                format!("the loop `{counter}` is too long: `{name}` may be {}", range.hi),
                "a loop counts in 32 bits; bound the sizes that its length follows from: k.size(\"rows\").max(1 << 16)"
                    .to_string(),
            ),
        };
        found.push(Diagnostic::error("K0228", message).label(inner.span, "this loop").help(help));
    }
    if let Unroll::Pipelined(Some(stages)) = inner.unroll
        && stages < 1
    {
        let message = format!("the loop `{name}` cannot have {}", counted(stages, "stage"));
        found.push(
            Diagnostic::error("K0228", message).label(inner.span, "this loop").help("a pipeline has 1 stage or more"),
        );
    }
}
