//! Layout inference: which thread has each element of every fragment, and which does each iteration of every loop.
//!
//! Fragments that are used outside of ops are whole on every thread. A strict pass takes the layouts that the user
//! wrote and those that instructions dictate; a common pass derives what follows, breadth first, to a fixpoint; a free
//! pass tries plans for each connected component of ops and fragments, and keeps the cheapest. All of this is decided
//! on [`Map`]s, which list the elements that each thread has.

mod alternatives;
mod answers;
mod asked;
mod convert;
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
mod price;
mod refusal;
mod resolve;
mod scene;
mod search;
mod settle;
#[cfg(test)]
mod small_kernels;
mod steps;
mod storage;
mod strict;
mod tables;
mod text;
mod vectors;
mod walk;
mod why;
mod words;
mod write;

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Kernel};
use tilewright_layout::map::Map;

use graph::Graph;
use refusal::Refusal;
use scene::Scene;
use storage::Storages;
use strict::granules;
use tables::Tables;

pub use alternatives::Alternative;
pub use cost::Cost;
pub use graph::Origin;
pub use known::{Pass, Reason};
pub use steps::{Clash, Violation};
pub use why::Link;
pub use write::{is_laid_out, lay_out};

/// A fragment that has a layout.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The granule that each thread has in each slot.
    pub map: Map,
    /// Bytes of a granule, which is an element of the widest dtype among the fragment and its views.
    pub bytes: i64,
    /// Why the fragment has this layout.
    pub reason: Reason,
    /// What it costs in registers, if the search chose to give threads all of the fragment.
    pub note: Option<String>,
}

/// How a nest accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The op or loop.
    pub origin: Origin,
    /// The buffer in global or shared memory.
    pub buffer: Handle<Buffer>,
    /// Whether the access is a write.
    pub writes: bool,
    /// Elements that a thread moves at once: the least and the most.
    pub widths: (usize, usize),
    /// Why a thread does not move more elements at once.
    pub limit: &'static str,
}

/// A connected component of fragments and ops, whose layouts were found together.
#[derive(Clone, Debug)]
pub struct Component {
    /// The fragments, each named by the one that owns the storage.
    pub fragments: Vec<Handle<Buffer>>,
    /// The ops and loops, in program order.
    pub ops: Vec<Origin>,
    /// The cost of the component.
    pub cost: Cost,
}

/// The layouts of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// The layout of each fragment, by the fragment that owns the storage.
    pub fragments: BTreeMap<Handle<Buffer>, Placed>,
    /// For each op or loop, which iteration each thread does in each step; in program order.
    pub loops: Vec<(Origin, Map)>,
    /// Why each entry of `loops` has its steps.
    pub loop_reasons: Vec<Reason>,
    /// The memory accesses of all loops, component by component.
    pub accesses: Vec<MemoryAccess>,
    /// The connected components.
    pub components: Vec<Component>,
    /// The cost of all components.
    pub cost: Cost,
}

/// Finds the layouts of all fragments and loops of a kernel. Errors: everything that prevents it.
pub fn infer(kernel: &Kernel) -> Result<Inferred, Vec<Diagnostic>> {
    attempt(kernel).map_err(|against| against.findings)
}

/// Why no layouts were found.
#[derive(Debug)]
pub(crate) struct Against {
    /// The errors, at the user's lines.
    pub(crate) findings: Vec<Diagnostic>,
    /// Elements that are not on the threads that use them, in the attempt that got furthest for each component.
    pub(crate) clashes: Vec<Clash>,
}

impl From<Vec<Diagnostic>> for Against {
    fn from(findings: Vec<Diagnostic>) -> Against {
        Against { findings, clashes: Vec::new() }
    }
}

/// [`infer`], which on failure also returns the clashes that a conversion could resolve.
pub(crate) fn attempt(kernel: &Kernel) -> Result<Inferred, Against> {
    let storages = Storages::of(kernel);
    let graph = Graph::of(kernel, &storages);
    if !graph.unplaced.is_empty() {
        let findings: Vec<Diagnostic> = graph.unplaced.iter().map(|op| strict::unplaced(kernel, *op)).collect();
        return Err(findings.into());
    }
    if !graph.refused.is_empty() {
        return Err(graph.refused.into());
    }
    let threads = kernel.threads.max(1) as usize;
    let known = strict::strict(kernel, &storages, &graph, threads)?;
    let laid_out = strict::laid_out_loops(kernel, &graph, threads)?;
    let mut tables = Tables::new(threads);
    let mut inferred = Inferred::of_known(&known, &storages);
    let (mut loops, mut findings, mut clashes) = (Vec::new(), Vec::new(), Vec::new());
    for members in graph.components() {
        let scene = Scene::of(&mut tables, (&graph, &storages), &known, &laid_out, &members);
        match search::best(&scene, &mut tables) {
            Ok(settled) => loops.extend(inferred.add(&graph, &scene, &mut tables, &settled)),
            Err(violation) => {
                let (graph, storages, known, laid_out) = (&graph, &storages, &known, &laid_out);
                let refusal = Refusal { kernel, graph, storages, known, laid_out, members: &members, scene: &scene };
                findings.push(refusal.told(&mut tables, &violation));
                clashes.extend(violation.clash);
            }
        }
    }
    if !findings.is_empty() {
        return Err(Against { findings, clashes });
    }
    loops.sort_by_key(|(at, ..)| *at);
    for (at, map, reason) in loops {
        inferred.loops.push((graph.nodes[at].0, map));
        inferred.loop_reasons.push(reason);
    }
    Ok(inferred)
}
