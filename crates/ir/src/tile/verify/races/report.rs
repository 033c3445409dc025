//! Diagnostics for conflicting accesses.

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::Var;
use tilewright_expr::points::{extent, value};

use super::iterations::{Iterations, MOST_POINTS, Who};
use super::touches::{Kind, Touch};
use crate::tile::atomic::{AtomicChange, AtomicOp};
use crate::tile::kernel::Kernel;
use crate::tile::print::access_title;
use crate::tile::print::{element_index, index_title};

const ADDITION: AtomicChange = AtomicChange::Combine(AtomicOp::Add);

/// An iteration that touches a place, and the access by which it does.
pub(super) struct Visit {
    /// Number of the iteration, with the last variable the fastest.
    pub(super) iteration: usize,
    /// Position of the access in the list of touches.
    pub(super) touch: usize,
    /// One index per dimension of the buffer, or the position in bytes.
    pub(super) place: Vec<i64>,
}

/// The error for two iterations that conflict where the enclosing variables have these values.
pub(super) fn meeting(
    kernel: &Kernel,
    iterations: &Iterations,
    touches: &[&Touch],
    [earlier, later]: [Visit; 2],
    known: &[(&Var, i64)],
    is_index: bool,
) -> Diagnostic {
    let (one, other) = (touches[earlier.touch], touches[later.touch]);
    let buffer = &kernel.buffers[other.access.buffer];
    let around = known.iter().map(|(var, value)| format!("{} = {value}", var.name())).collect::<Vec<_>>().join(", ");
    let around = if around.is_empty() { around } else { format!(", where {around}") };
    let place = match is_index {
        true => {
            let element = later.place.iter().zip(&buffer.shape).fold(0, |flat, (at, extent)| flat * extent + at);
            format!("element {} of `{}`", index_title(&element_index(&buffer.shape, element)), buffer.name)
        }
        false => {
            let owner = &kernel.buffers[kernel.storage(other.access.buffer)];
            format!(
                "`{}` and `{}` overlap in the storage of `{}`",
                kernel.buffers[one.access.buffer].name, buffer.name, owner.name
            )
        }
    };
    let who = match iterations.who {
        Who::Turns => "iterations",
        Who::Threads => "threads",
        Who::Warps(op) => {
            let pair = format!("warps {} and {}", earlier.iteration, later.iteration);
            return of_warps(kernel, op, (one, other)).note(format!("{place}: {pair}{around}")).help(WARPS_HELP);
        }
    };
    let pair = format!("{} and {}", title(iterations, earlier.iteration), title(iterations, later.iteration));
    // The accesses are listed in the order of the source: the element is stored first, and then read.
    let (first, second) = if earlier.touch < later.touch { (one, other) } else { (other, one) };
    let is_read_back = first.kind != Kind::Read && second.kind == Kind::Read && iterations.who == Who::Turns;
    two_labels(kernel, "K0237", (one, other), who).note(format!("{place}: {who} {pair}{around}")).help(
        match is_read_back {
            true => "iterations of one loop are unordered: store in one loop, and read in a later loop",
            false => help(one, other),
        },
    )
}

/// The help for an op that several warps execute.
pub(in crate::tile::verify) const WARPS_HELP: &str =
    "name the warp: k.warp_at(0), or give each its own tile with an index that uses k.warp_id()";

/// The error for two warps that conflict in one op.
fn of_warps(kernel: &Kernel, op: Span, (one, other): (&Touch, &Touch)) -> Diagnostic {
    let name = |touch: &Touch| kernel.buffers[touch.access.buffer].name.as_str();
    let (read, written) = if one.kind == Kind::Read { (one, other) } else { (other, one) };
    let message = match read.kind {
        Kind::Read => format!("one warp would read in `{}` what another writes in `{}`", name(read), name(written)),
        Kind::Store(_) | Kind::Atomic(_) => format!("two warps would write the same element of `{}`", name(other)),
    };
    Diagnostic::error("K0221", message).label(op, "a warp-scope op that several warps reach")
}

/// The error for an index that depends on data, so that any two iterations may conflict.
pub(super) fn depends_on_data(kernel: &Kernel, one: &Touch, other: &Touch) -> Diagnostic {
    let (data, plain) = if one.index.is_none() { (one, other) } else { (other, one) };
    let title = access_title(kernel, data.access);
    let message = match data.kind {
        Kind::Store(_) => format!("iterations may store to the same element through `{title}`"),
        Kind::Atomic(ADDITION) => format!("an iteration may add through `{title}` to what another touches"),
        Kind::Atomic(_) => format!("an iteration may change through `{title}` what another touches"),
        Kind::Read => format!("an iteration may read through `{title}` what another writes"),
    };
    let mut finding = Diagnostic::error("K0236", message).label(data.access.span, "the index depends on data");
    if plain.access.span != data.access.span {
        let verb = if plain.kind == Kind::Read { "read" } else { "written" };
        finding = finding.label(plain.access.span, format!("the same buffer is {verb} here"));
    }
    finding.help(match data.kind {
        Kind::Store(_) => {
            "add .unique() if no two indices are equal, .any_wins() if any value will do, or use k.atomic_add"
        }
        Kind::Atomic(_) | Kind::Read => {
            "read in a separate loop; to add to an element, use k.atomic_add, and to replace one, k.atomic_exchange; to change one \
             that no other iteration touches, read and store it with one index, and add .unique() to the store"
        }
    })
}

/// The error where too many accesses would have to be listed.
pub(super) fn undecided(kernel: &Kernel, iterations: &Iterations, touches: &[&Touch]) -> Diagnostic {
    let written = touches.iter().find(|touch| touch.kind != Kind::Read).or(touches.first());
    let Some(written) = written else { return Diagnostic::error("K0239", "iterations may conflict") };
    if let Who::Warps(op) = iterations.who {
        let name = &kernel.buffers[written.access.buffer].name;
        let message = format!("deciding whether warps conflict in `{name}` takes more than {MOST_POINTS} comparisons");
        return Diagnostic::error("K0221", message)
            .label(op, "a warp-scope op that several warps reach")
            .help(WARPS_HELP);
    }
    let title = access_title(kernel, written.access);
    let message =
        format!("deciding whether iterations conflict at `{title}` takes more than {MOST_POINTS} comparisons");
    let mut finding = Diagnostic::error("K0239", message).label(written.access.span, "written here");
    if let Some(other) = touches.iter().find(|touch| touch.access.span != written.access.span) {
        finding = finding.label(other.access.span, "and touched here");
    }
    finding.help("use an index that is a sum of multiples of the loop's variables, or split the loop")
}

fn two_labels(kernel: &Kernel, code: &'static str, (one, other): (&Touch, &Touch), who: &str) -> Diagnostic {
    // The main label is at the access that writes, at an addition rather than a store; the other access gets a label
    // too.
    let rank = |touch: &Touch| match touch.kind {
        Kind::Atomic(_) => 2,
        Kind::Store(_) => 1,
        Kind::Read => 0,
    };
    let (main, beside) = if rank(one) > rank(other) { (one, other) } else { (other, one) };
    let title = access_title(kernel, main.access);
    let message = match (main.kind, beside.kind) {
        (Kind::Store(_), Kind::Store(_)) => format!("two {who} store to the same element through `{title}`"),
        (Kind::Store(_), Kind::Read | Kind::Atomic(_)) => {
            format!("one of the {who} stores through `{title}` what another reads")
        }
        (Kind::Atomic(_), Kind::Atomic(_)) => {
            format!("two {who} change the same element through `{title}` by different atomic operations")
        }
        (Kind::Read | Kind::Atomic(_), beside) => {
            let other = if matches!(beside, Kind::Store(_)) { "stores" } else { "reads" };
            match main.kind {
                Kind::Atomic(ADDITION) => {
                    format!("one of the {who} adds through `{title}` to what another {other}")
                }
                _ => format!("one of the {who} changes through `{title}` what another {other}"),
            }
        }
    };
    let label = |kind: Kind| match kind {
        Kind::Store(_) => "stored",
        Kind::Atomic(ADDITION) => "added to",
        Kind::Atomic(_) => "changed",
        Kind::Read => "read",
    };
    let mut finding = Diagnostic::error(code, message).label(main.access.span, format!("{} here", label(main.kind)));
    if beside.access.span != main.access.span {
        let text = if label(beside.kind) == label(main.kind) {
            "and here".to_string()
        } else {
            format!("{} here", label(beside.kind))
        };
        finding = finding.label(beside.access.span, text);
    }
    finding
}

fn help(one: &Touch, other: &Touch) -> &'static str {
    match (one.kind, other.kind) {
        (Kind::Store(_), Kind::Store(_)) => {
            "reduce with k.reduce, add with k.atomic_add, or add .any_wins() to the store if any of the values will do"
        }
        (Kind::Read, _) | (_, Kind::Read) => {
            "iterations are unordered: read in a loop before, into another fragment, and store in a separate loop; to add \
             up over iterations, use k.reduce or k.atomic_add"
        }
        (Kind::Atomic(_), Kind::Atomic(_)) => {
            "iterations are unordered, and the result depends on the order of different operations: put one of them in a \
             separate loop, before or after this one"
        }
        (Kind::Store(_), Kind::Atomic(_)) | (Kind::Atomic(_), Kind::Store(_)) => {
            "iterations are unordered: store in a separate loop, before or after this one"
        }
    }
}

/// An iteration as text: `i = 0, j = 3`.
fn title(iterations: &Iterations, iteration: usize) -> String {
    let mut rest = iteration;
    let mut parts = Vec::with_capacity(iterations.vars.len());
    for var in iterations.vars.iter().rev() {
        parts.push(format!("{} = {}", var.name(), value(var, (rest % extent(var)) as i64)));
        rest /= extent(var);
    }
    parts.reverse();
    parts.join(", ")
}
