//! The strict pass: what the user laid out, what instructions dictate, and what statements outside of ops demand.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, KernelsByRole, Op, Parallel, Space, Tile, tile_title};
use tilewright_layout::Layout;
use tilewright_layout::map::Map;

use crate::dictation::{Dictated, Dictation};
use crate::granules::{Torn, granules};
use crate::graph::Graph;
use crate::known::{Known, Pass, Reason, WRITTEN};
use crate::nest::Nest;
use crate::node::{Node, Origin};
use crate::storage::Storages;
use crate::words::{Words, coordinates, digits};

/// The threads among which a kernel, or its view by a role, divides its work.
pub(crate) fn threads_of(kernel: &Kernel) -> usize {
    kernel.threads.max(1) as usize
}

/// What is known before anything is derived or chosen. Errors: layouts that are not possible, and demands that
/// contradict them.
pub(crate) fn strict(
    kernels: &KernelsByRole<'_>,
    storages: &Storages,
    graph: &Graph,
) -> Result<Known, Vec<Diagnostic>> {
    let kernel = kernels.whole();
    let mut known = Known::default();
    let mut found = Vec::new();
    written(kernels, storages, &mut known, &mut found);
    dictated(kernel, storages, graph, &mut known, &mut found);
    demanded(kernels, storages, graph, &mut known, &mut found);
    if found.is_empty() { Ok(known) } else { Err(found) }
}

/// Adds the layouts that the user wrote.
fn written(kernels: &KernelsByRole<'_>, storages: &Storages, known: &mut Known, found: &mut Vec<Diagnostic>) {
    let kernel = kernels.whole();
    for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Fragment) {
        let Some(layout) = &buffer.layout else { continue };
        let threads = threads_of(kernels.seen_by_user_of(kernel.storage(handle)));
        let map = match Map::of_layout(layout, threads) {
            Ok(map) => map,
            Err(what) => {
                found.push(not_of_the_block(buffer, &what));
                continue;
            }
        };
        let ratio = (storages.get(handle).bytes / buffer.dtype.bytes()).max(1) as usize;
        match granules(&map, ratio) {
            Ok(map) => {
                let (op, span) = (buffer.name.clone(), buffer.span);
                known.set(handle, map, Reason { pass: Pass::Strict, rule: WRITTEN, op, span, parent: None });
            }
            Err(torn) => found.push(does_not_fit_a_view(kernel, handle, &map, &torn)),
        }
    }
}

fn not_of_the_block(buffer: &Buffer, what: &str) -> Diagnostic {
    Diagnostic::error("I0703", format!("the layout of `{}` {what}", buffer.name))
        .label(buffer.span, buffer.laid_out())
        .help(
            "name threads that the kernel has, or declare the fragment with a shape alone: its layout is then inferred",
        )
}

/// The error for elements that a wider view takes as one, but that are not adjacent, aligned and on one thread.
fn does_not_fit_a_view(kernel: &Kernel, handle: Handle<Buffer>, map: &Map, torn: &Torn) -> Diagnostic {
    let buffer = &kernel.buffers[handle];
    let finding = Diagnostic::error("I0703", format!("the layout of `{}` {torn}", buffer.name))
        .label(buffer.span, buffer.laid_out());
    let bytes = buffer.dtype.bytes() * torn.ratio as i64;
    let is_view = |at: Handle<Buffer>, view: &Buffer| kernel.storage(at) == handle && view.dtype.bytes() == bytes;
    let Some((_, view)) = kernel.buffers.iter().find(|(at, view)| is_view(*at, view)) else { return finding };
    let first = torn.granule * torn.ratio;
    let [one, other] = [first, first + 1].map(|element| {
        let place = map.entries().find(|(_, _, had)| *had == element);
        let (thread, slot, _) = place.unwrap_or_default();
        format!("{} is on thread {thread} register {slot}", coordinates(&buffer.shape, element))
    });
    finding
        .label(view.span, format!("`{}` takes {} elements of `{}` as one", view.name, torn.ratio, buffer.name))
        .note(format!("element {one}, and element {other}"))
        .help(format!(
            "put every {} neighbours into adjacent registers of one thread, the first at a multiple of {}; or declare \
             `{}` with a shape alone",
            torn.ratio, torn.ratio, buffer.name
        ))
}

/// Adds what products dictate. An error for a fragment with another layout gets a note with the first difference.
fn dictated(kernel: &Kernel, storages: &Storages, graph: &Graph, known: &mut Known, found: &mut Vec<Diagnostic>) {
    let first = found.len();
    dictate(kernel, graph, known, found);
    let mut differences = Vec::new();
    for (_, node) in &graph.nodes {
        let Node::Gemm(dictation) = node else { continue };
        for Dictated { storage, map: wanted, .. } in &dictation.fragments {
            let other = known.get(*storage).filter(|fixed| fixed.map != *wanted);
            let words = Words::of(kernel, storages, *storage);
            differences.extend(other.map(|fixed| words.difference(&fixed.map, wanted)));
        }
    }
    for (finding, difference) in found[first..].iter_mut().zip(differences) {
        finding.notes.extend(difference);
    }
}

/// Gives fragments the layouts that products dictate, and reports those that have another one.
fn dictate(kernel: &Kernel, graph: &Graph, known: &mut Known, found: &mut Vec<Diagnostic>) {
    for (_, node) in &graph.nodes {
        let Node::Gemm(dictation) = node else { continue };
        for Dictated { storage, map, .. } in &dictation.fragments {
            match known.get(*storage) {
                None => known.set(*storage, map.clone(), dictation.reason()),
                Some(fixed) if fixed.map == *map => {}
                Some(fixed) => found.push(contradicted(dictation, &kernel.buffers[*storage], map, &fixed.reason)),
            }
        }
    }
}

/// The error for a fragment that has another layout than a product dictates, for the given reason.
fn contradicted(dictation: &Dictation, buffer: &Buffer, map: &Map, reason: &Reason) -> Diagnostic {
    let wanted = map.to_layout().map_or_else(|| "differently".to_string(), |layout| format!("as {layout}"));
    Diagnostic::error("I0706", format!("`{}` cannot be laid out in two ways", buffer.name))
        .label(dictation.span, format!("`{}` needs it laid out {wanted}", dictation.title))
        .label(reason.span, said_of(buffer, reason))
        .help("copy it into another fragment, or through shared memory; layouts of fragments can be left out")
}

/// The label at the line that fixed the layout of a fragment, for the given reason.
fn said_of(buffer: &Buffer, reason: &Reason) -> String {
    match buffer.layout {
        Some(_) => buffer.laid_out(),
        None => format!("its layout is {}", reason.rule),
    }
}

/// Adds what statements outside of ops demand: that every thread, or every one of a role, has all of a fragment.
fn demanded(
    kernels: &KernelsByRole<'_>,
    storages: &Storages,
    graph: &Graph,
    known: &mut Known,
    found: &mut Vec<Diagnostic>,
) {
    let kernel = kernels.whole();
    for (storage, span) in &graph.floating {
        let threads = threads_of(kernels.seen_by_user_of(*storage));
        let buffer = &kernel.buffers[*storage];
        let reason = Reason {
            pass: Pass::Strict,
            rule: "used outside of ops, so every thread has all of it",
            op: "a statement that every thread executes".to_string(),
            span: *span,
            parent: None,
        };
        let Some(fixed) = known.get(*storage) else {
            known.set(*storage, Map::replicated(threads, storages.get(*storage).granules), reason);
            continue;
        };
        let is_spread = |granule: &usize| fixed.owners.of(*granule).len() < threads;
        let Some(granule) = (0..fixed.owners.elements()).find(is_spread) else { continue };
        let words = Words::of(kernel, storages, *storage);
        let (element, place) = (words.element(granule), words.place(&fixed.map, granule));
        found.push(
            Diagnostic::error("I0704", format!("`{}` is used where every thread needs all of it", buffer.name))
                .label(*span, "used here")
                .label(fixed.reason.span, said_of(buffer, &fixed.reason))
                .note(format!("{element} is on {place}"))
                .help(match buffer.layout {
                    Some(_) => {
                        "use it in a parallel loop: an iteration is done where its elements are; or leave its layout out"
                    }
                    None => {
                        "use it in a parallel loop: an iteration is done where its elements are; or copy it to shared \
                         memory and read it there"
                    }
                }),
        );
    }
}

/// The steps of the loops that the user laid out, by node. Errors: layouts that are not possible.
pub(crate) fn laid_out_loops(
    kernels: &KernelsByRole<'_>,
    graph: &Graph,
) -> Result<BTreeMap<usize, Map>, Vec<Diagnostic>> {
    let kernel = kernels.whole();
    let (mut maps, mut found) = (BTreeMap::new(), Vec::new());
    for (at, (origin, node)) in graph.nodes.iter().enumerate() {
        let (Origin::Parallel(parallel), Node::Nest(nest)) = (origin, node) else { continue };
        let parallel = &kernel.parallels[*parallel];
        let Some(layout) = &parallel.layout else { continue };
        match laid_out_loop(parallel, nest, layout, threads_of(kernels.seen_by(parallel.role))) {
            Ok(map) => {
                maps.insert(at, map);
            }
            Err(finding) => found.push(finding),
        }
    }
    if found.is_empty() { Ok(maps) } else { Err(found) }
}

fn laid_out_loop(parallel: &Parallel, nest: &Nest, layout: &Layout, threads: usize) -> Result<Map, Diagnostic> {
    let wrong = |what: &str| {
        Diagnostic::error("I0703", format!("the layout of this loop {what}"))
            .label(parallel.span, format!("laid out as {layout}"))
    };
    let map = Map::of_layout(layout, threads).map_err(|what| {
        wrong(&what)
            .help("give each thread more iterations, by `reg`, or the kernel more threads; or leave the layout out")
    })?;
    match map.missing() {
        None => Ok(map.once_per_thread()),
        Some(iteration) => {
            let title = iteration_title(parallel, nest, iteration);
            Err(wrong(&format!("has no place for {title}"))
                .note("another iteration is done by the same thread in the same step")
                .help("give every iteration of a thread a different step, by `reg`"))
        }
    }
}

/// `iteration i = 0, j = 2`
pub(crate) fn iteration_title(parallel: &Parallel, nest: &Nest, iteration: usize) -> String {
    let digits = digits(&nest.extents, iteration);
    let named = parallel.vars.iter().zip(digits).map(|(var, digit)| format!("{} = {digit}", var.name()));
    format!("iteration {}", named.collect::<Vec<_>>().join(", "))
}

/// The error for an op that inference cannot place, with the operand that prevents it.
pub(crate) fn unplaced(kernel: &Kernel, handle: Handle<Op>) -> Diagnostic {
    let op = &kernel.ops[handle];
    let finding =
        Diagnostic::error("I0701", format!("`{}` cannot be placed", kernel.op_title(op))).label(op.span, "this op");
    let is_whole = |tile: &Tile| tile.extents == kernel.buffers[tile.buffer].shape;
    let is_wrong = |tile: &Tile| kernel.buffers[tile.buffer].space != Space::Fragment || !is_whole(tile);
    let Some((place, tile)) = op.operands.iter().enumerate().find(|(_, tile)| is_wrong(tile)) else { return finding };
    let (buffer, title) = (&kernel.buffers[tile.buffer], tile_title(kernel, tile));
    let what = match buffer.space {
        Space::Fragment => "a part of a fragment",
        Space::Shared => "in shared memory",
        Space::Tensor => "in tensor memory",
        Space::Global(_) => "in global memory",
    };
    let help = match place {
        0 => format!("reduce into a whole fragment, and copy that to `{title}`"),
        _ => format!("copy `{title}` into a separate fragment, and reduce that"),
    };
    finding.label(buffer.span, format!("`{title}` is {what}")).help(help)
}
