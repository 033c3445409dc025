//! All passes over a kernel.

use std::collections::BTreeMap;

use tilewright_diag::Diagnostic;
use tilewright_ir::tile::{Kernel, KernelsByRole};

use crate::graph::Graph;
use crate::inferred::Inferred;
use crate::refusal::Refusal;
use crate::scene::{Scene, Use, Work};
use crate::search::{self, Failure};
use crate::steps::Clash;
use crate::storage::Storages;
use crate::strict;
use crate::tables::{BUDGET, Tables};

/// The most fragments that an error names.
const MOST_NAMED: usize = 3;

/// Finds the layouts of all fragments and loops of a kernel. Errors: everything that prevents it.
pub fn infer(kernel: &Kernel) -> Result<Inferred, Vec<Diagnostic>> {
    let mut left = BUDGET;
    attempt(kernel, &mut left).map_err(|against| against.findings)
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

/// [`infer`], which on failure also returns the clashes that a conversion could resolve. `left`: how many places of
/// elements may still be visited.
pub(crate) fn attempt(kernel: &Kernel, left: &mut u64) -> Result<Inferred, Against> {
    let storages = Storages::of(kernel);
    let kernels = KernelsByRole::of(kernel);
    let graph = Graph::of(&kernels, &storages);
    if !graph.unplaced.is_empty() {
        let findings: Vec<Diagnostic> = graph.unplaced.iter().map(|op| strict::unplaced(kernel, *op)).collect();
        return Err(findings.into());
    }
    if !graph.refused.is_empty() {
        return Err(graph.refused.into());
    }
    let known = strict::strict(&kernels, &storages, &graph)?;
    let laid_out = strict::laid_out_loops(&kernels, &graph)?;
    let mut all = TablesByThreads { tables: BTreeMap::new(), left: *left };
    let mut inferred = Inferred::of_known(&known, &storages);
    let (mut loops, mut findings, mut clashes) = (Vec::new(), Vec::new(), Vec::new());
    let components = graph.uses.components();
    let threads = |members: &[usize]| strict::threads_of(kernels.seen_by(graph.role_of(kernel, members)));
    let mut scene = |members: &Vec<usize>| {
        all.of(threads(members), |tables| Scene::of(tables, (&graph, &storages), &known, &laid_out, members))
    };
    let scenes: Vec<Scene> = components.iter().map(&mut scene).collect();
    let mut size_of_rest: u64 = scenes.iter().map(Scene::size).sum();
    for (scene, members) in scenes.iter().zip(&components) {
        let share = share(all.left, scene.size(), size_of_rest);
        size_of_rest -= scene.size();
        all.of(scene.threads, |tables| match search::best(scene, tables, share) {
            Ok(settled) => loops.extend(inferred.add(&graph, scene, tables, &settled)),
            Err(Failure { violation, is_cut }) => {
                let (graph, storages, known, laid_out) = (&graph, &storages, &known, &laid_out);
                let refusal = Refusal { kernel, graph, storages, known, laid_out, members, scene };
                findings.push(match is_cut {
                    true => exhausted(kernel, scene, tables),
                    false => refusal.told(tables, &violation),
                });
                clashes.extend(violation.clash);
            }
        });
    }
    *left = all.left;
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

/// The tables of components, by the number of threads that execute them: those of the CTA, or of a role.
struct TablesByThreads {
    tables: BTreeMap<usize, Tables>,
    /// How many places of elements may still be visited, in all of them together.
    left: u64,
}

impl TablesByThreads {
    fn of<T>(&mut self, threads: usize, visit: impl FnOnce(&mut Tables) -> T) -> T {
        let tables = self.tables.entry(threads).or_insert_with(|| Tables::new(threads));
        tables.left = self.left;
        let result = visit(tables);
        self.left = tables.left;
        result
    }
}

/// The part of `left` for a component of this size, of components that have `all` together.
fn share(left: u64, size: u64, all: u64) -> u64 {
    (u128::from(left) * u128::from(size) / u128::from(all.max(1))) as u64
}

/// The error for a component whose layouts take too long to find: its largest nest, and two fragments that the nest uses
/// in different orders.
fn exhausted(kernel: &Kernel, scene: &Scene, tables: &Tables) -> Diagnostic {
    let name = |storage: usize| format!("`{}`", kernel.buffers[scene.storages[storage].handle].name);
    let names: Vec<String> = (0..scene.storages.len()).take(MOST_NAMED).map(name).collect();
    let others = scene.storages.len() - names.len();
    let names = if others == 0 { names.join(", ") } else { format!("{} and {others} more", names.join(", ")) };
    let mut finding = Diagnostic::error("I0713", format!("inference gives up on the layouts of {names}"));
    let is_other = |work: &Work| {
        let is_in_order = |touch: &Use| tables.pattern(touch.pattern).is_identity();
        work.touches.iter().any(|touch| !is_in_order(touch))
    };
    let works = (0..scene.items.len()).filter_map(|item| scene.work(item)).filter(|work| is_other(work));
    finding = match works.max_by_key(|work| work.iterations) {
        Some(work) => {
            let titles: Vec<String> =
                work.nest.touches.iter().take(2).map(|touch| format!("`{}`", touch.title)).collect();
            finding.label(work.nest.span, format!("`{}` uses {}", work.nest.title, titles.join(" and ")))
        }
        None => finding.label(kernel.span, "in this kernel"),
    };
    finding
        .note(format!("it visits up to {BUDGET} places of elements on threads; these fragments have too many"))
        .help("let a loop use its fragments in one order, and pass elements to other threads through shared memory")
}
