//! Layout inference: which thread has which element of every fragment, and does which iteration of every loop.
//!
//! Fragments that are used outside of ops are whole on every thread. A strict pass takes what the user wrote and what
//! instructions dictate; a common pass derives what follows, breadth first, to a fixpoint; a free pass tries plans for
//! each connected component of ops and fragments, and keeps the cheapest. All questions are decided on [`Map`]s, which
//! list who has what.

mod answers;
mod cost;
mod explain;
mod families;
mod gather;
mod gemm;
mod graph;
mod known;
mod nest;
mod pattern;
mod place;
mod plans;
mod resolve;
mod scene;
mod search;
mod settle;
#[cfg(test)]
mod small_kernels;
mod steps;
mod storage;
mod tables;
mod vectors;
mod walk;
mod write;

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel, Op, Space};
use tilewright_layout::map::Map;

use graph::{Graph, Node};
use known::Known;
use scene::Scene;
use storage::Storages;
use tables::Tables;

pub use cost::Cost;
pub use graph::Origin;
pub use known::{Pass, Reason};
pub use steps::{Clash, Violation};
pub use write::lay_out;

/// A fragment that has a layout.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Which thread has which granule in which slot.
    pub map: Map,
    /// Bytes of a granule: an element of the widest dtype among the fragment and its views.
    pub bytes: i64,
    /// Why.
    pub reason: Reason,
    /// The price of a layout that was chosen as the last resort.
    pub note: Option<String>,
}

/// How a nest accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The op or loop.
    pub origin: Origin,
    /// The buffer in global or shared memory.
    pub buffer: Handle<Buffer>,
    /// Whether it is written.
    pub writes: bool,
    /// Elements that a thread moves at once.
    pub lanes: usize,
}

/// The layouts of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// By the fragment that owns the storage.
    pub fragments: BTreeMap<Handle<Buffer>, Placed>,
    /// Which thread does which iteration in which step, in program order.
    pub loops: Vec<(Origin, Map)>,
    /// The accesses of memory of each loop, by component.
    pub accesses: Vec<MemoryAccess>,
    /// What all of it costs.
    pub cost: Cost,
}

/// Finds the layouts of all fragments of a kernel. Errors: everything that stands in the way.
pub fn infer(kernel: &Kernel) -> Result<Inferred, Vec<Diagnostic>> {
    let storages = Storages::of(kernel);
    let graph = Graph::of(kernel, &storages);
    let unplaced = |handle: &Handle<Op>| {
        let op = &kernel.ops[*handle];
        let message = format!("`{}` cannot be placed", kernel.op_title(op));
        Diagnostic::error("I0701", message).label(op.span, "this op")
    };
    if !graph.unplaced.is_empty() {
        return Err(graph.unplaced.iter().map(unplaced).collect());
    }
    if !graph.refused.is_empty() {
        return Err(graph.refused);
    }
    let threads = kernel.threads.max(1) as usize;
    let known = strict(kernel, &storages, &graph, threads)?;
    let laid_out = laid_out_loops(kernel, &graph, threads)?;
    let mut tables = Tables::new(threads);
    let mut inferred = Inferred::of_known(&known, &storages);
    let mut loops = Vec::new();
    for members in graph.components() {
        let scene = Scene::of(&mut tables, (&graph, &storages), &known, &laid_out, &members);
        let settled = search::best(&scene, &mut tables).map_err(|violation| {
            let message = format!("`{}`: {}", violation.op, violation.what);
            let span = members.first().map_or(kernel.span, |at| graph.nodes[*at].1.span());
            vec![Diagnostic::error("I0702", message).label(span, "first op of those that share fragments")]
        })?;
        loops.extend(inferred.add(&graph, &scene, &mut tables, &settled));
    }
    loops.sort_by_key(|(at, _)| *at);
    inferred.loops = loops.into_iter().map(|(at, map)| (graph.nodes[at].0, map)).collect();
    Ok(inferred)
}

/// What the user wrote, what instructions dictate, and what loose statements demand.
fn strict(kernel: &Kernel, storages: &Storages, graph: &Graph, threads: usize) -> Result<Known, Vec<Diagnostic>> {
    let mut known = Known::default();
    let mut found = Vec::new();
    for (handle, buffer) in kernel.buffers.iter().filter(|(_, buffer)| buffer.space == Space::Fragment) {
        let Some(layout) = &buffer.layout else { continue };
        let reason = Reason {
            pass: Pass::Strict,
            rule: "written by the user",
            op: buffer.name.clone(),
            span: buffer.span,
            parent: None,
        };
        let ratio = storages.get(handle).bytes / buffer.dtype.bytes();
        match Map::of_layout(layout, threads).and_then(|map| granules(&map, ratio as usize)) {
            Ok(map) => known.set(handle, map, reason),
            Err(what) => found.push(
                Diagnostic::error("I0703", format!("the layout of `{}` {what}", buffer.name))
                    .label(buffer.span, buffer.laid_out()),
            ),
        }
    }
    gemm::dictate(kernel, graph, &mut known, &mut found);
    for (storage, span) in &graph.floating {
        let title = &kernel.buffers[*storage].name;
        let reason = Reason {
            pass: Pass::Strict,
            rule: "used outside of ops, so every thread has all of it",
            op: title.clone(),
            span: *span,
            parent: None,
        };
        match known.get(*storage) {
            None => known.set(*storage, Map::replicated(threads, storages.get(*storage).granules), reason),
            Some(fixed) if fixed.owners.elements() * threads != fixed.map.entries().count() => found.push(
                Diagnostic::error("I0704", format!("`{title}` is used where every thread needs all of it"))
                    .label(*span, "used here")
                    .label(fixed.reason.span, gemm::said_of(&kernel.buffers[*storage], &fixed.reason)),
            ),
            Some(_) => {}
        }
    }
    if found.is_empty() { Ok(known) } else { Err(found) }
}

fn laid_out_loops(kernel: &Kernel, graph: &Graph, threads: usize) -> Result<BTreeMap<usize, Map>, Vec<Diagnostic>> {
    let mut maps = BTreeMap::new();
    for (at, (origin, node)) in graph.nodes.iter().enumerate() {
        let (Origin::Parallel(parallel), Node::Nest(_)) = (origin, node) else { continue };
        let parallel = &kernel.parallels[*parallel];
        let Some(layout) = &parallel.layout else { continue };
        match Map::of_layout(layout, threads) {
            Ok(map) => {
                maps.insert(at, map);
            }
            Err(what) => {
                let message = format!("the layout of this loop {what}");
                return Err(vec![Diagnostic::error("I0703", message).label(parallel.span, layout.to_string())]);
            }
        }
    }
    Ok(maps)
}

/// The map of granules of `ratio` elements each, which are adjacent, aligned and on one thread.
fn granules(map: &Map, ratio: usize) -> Result<Map, String> {
    let lane = |thread, slot| map.at(thread, slot).map(|element| (element / ratio, element % ratio));
    let mut granules = Map::empty(map.threads(), map.elements() / ratio);
    for (thread, slot, element) in map.entries() {
        let (granule, first) = (element / ratio, slot / ratio * ratio);
        if (0..ratio).any(|at| lane(thread, first + at) != Some((granule, at))) {
            return Err(format!(
                "does not fit a view of it: elements {} to {} are not adjacent, aligned and on one thread",
                granule * ratio,
                granule * ratio + ratio - 1
            ));
        }
        granules.put(thread, slot / ratio, granule);
    }
    Ok(granules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> tilewright_layout::Layout {
        text.parse().unwrap()
    }

    #[test]
    fn a_wider_view_takes_adjacent_elements_of_one_thread() {
        let pairs = Map::of_layout(&layout("S[(4,2):(1@tx,1@reg)]"), 4).unwrap();
        assert_eq!(granules(&pairs, 2).unwrap().at(3, 0), Some(3));
        let apart = Map::of_layout(&layout("S[(2,4):(1@reg,1@tx)]"), 4).unwrap();
        assert!(granules(&apart, 2).is_err());
    }
}
