//! All passes over a kernel.

use tilewright_diag::Diagnostic;
use tilewright_ir::tile::Kernel;

use crate::graph::Graph;
use crate::inferred::Inferred;
use crate::refusal::Refusal;
use crate::scene::Scene;
use crate::search;
use crate::steps::Clash;
use crate::storage::Storages;
use crate::strict;
use crate::tables::Tables;

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
    for members in graph.uses.components() {
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
    inferred.uses = graph.uses;
    Ok(inferred)
}
