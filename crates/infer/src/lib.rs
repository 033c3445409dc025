//! Layout inference: which thread has which element of every fragment, and does which iteration of every loop.
//!
//! Fragments that are used outside of ops are whole on every thread. A strict pass takes what the user wrote and what
//! instructions dictate; a common pass derives what follows, breadth first, to a fixpoint; a free pass tries plans for
//! each connected component of ops and fragments, and keeps the cheapest. All questions are decided on [`Map`]s, which
//! list who has what.

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
    /// Which thread has which granule in which slot.
    pub map: Map,
    /// Bytes of a granule: an element of the widest dtype among the fragment and its views.
    pub bytes: i64,
    /// Why.
    pub reason: Reason,
    /// The price, where threads have all of it and the search chose so.
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
    /// Elements that a thread moves at once: the least and the most.
    pub widths: (usize, usize),
    /// Why these are not more.
    pub limit: &'static str,
}

/// Fragments and ops that hang together, whose layouts were found together.
#[derive(Clone, Debug)]
pub struct Component {
    /// The fragments, by those that own the storage.
    pub fragments: Vec<Handle<Buffer>>,
    /// The ops and loops, in program order.
    pub ops: Vec<Origin>,
    /// What they cost.
    pub cost: Cost,
}

/// The layouts of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// By the fragment that owns the storage.
    pub fragments: BTreeMap<Handle<Buffer>, Placed>,
    /// Which thread does which iteration in which step, in program order.
    pub loops: Vec<(Origin, Map)>,
    /// Why, for each of the loops.
    pub loop_reasons: Vec<Reason>,
    /// The accesses of memory of each loop, by component.
    pub accesses: Vec<MemoryAccess>,
    /// What was found together.
    pub components: Vec<Component>,
    /// What all of it costs.
    pub cost: Cost,
}

/// Finds the layouts of all fragments of a kernel. Errors: everything that stands in the way.
pub fn infer(kernel: &Kernel) -> Result<Inferred, Vec<Diagnostic>> {
    attempt(kernel).map_err(|against| against.findings)
}

/// What stands against layouts.
#[derive(Debug)]
pub(crate) struct Against {
    pub(crate) findings: Vec<Diagnostic>,
    /// Elements that are not on the threads that use them, by what was tried and got furthest.
    pub(crate) clashes: Vec<Clash>,
}

impl From<Vec<Diagnostic>> for Against {
    fn from(findings: Vec<Diagnostic>) -> Against {
        Against { findings, clashes: Vec::new() }
    }
}

/// [`infer`], with what a conversion could help against.
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
