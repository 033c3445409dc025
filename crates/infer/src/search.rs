//! The free pass: for every connected component, plans are tried and the cheapest is kept.

use std::collections::BTreeSet;

use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::{Map, Spread};

use crate::cost;
use crate::graph::Node;
use crate::known::{Known, Pass, Reason};
use crate::place::{Scene, spreads};
use crate::steps::Violation;

/// The rule of fragments that are shared in their plain order.
const IN_ORDER: &str = "shared among the threads in the order of its elements";

/// A first choice, from which the rest follows.
#[derive(Clone, Debug)]
enum Root {
    /// A nest is shared in this way.
    Nest(usize, Spread),
    /// A fragment is shared in this way.
    Storage(Handle<Buffer>, Spread),
    /// Every thread has a fragment whole.
    Whole(Handle<Buffer>),
}

/// Layouts of a component, the steps of its nests, and what they cost.
pub(crate) struct Settled {
    pub(crate) known: Known,
    pub(crate) steps: Vec<(usize, Map)>,
    pub(crate) cost: u64,
}

/// The cheapest layouts of a component, or what stood against the first choice.
pub(crate) fn best(scene: &Scene, base: &Known, members: &[usize]) -> Result<Settled, Violation> {
    let open = unknown(scene, base, members);
    if open.is_empty() {
        return settle_all(scene, base.clone(), members);
    }
    let mut found: Option<Settled> = None;
    let mut against: Option<Violation> = None;
    let mut tried: BTreeSet<Vec<(Handle<Buffer>, Map)>> = BTreeSet::new();
    for root in roots(scene, members, &open) {
        let mut known = base.clone();
        root.apply(scene, &mut known);
        fill_in(scene, &mut known, members);
        let maps: Vec<(Handle<Buffer>, Map)> =
            open.iter().filter_map(|storage| Some((*storage, known.get(*storage)?.map.clone()))).collect();
        if !tried.insert(maps) {
            continue;
        }
        match settle_all(scene, known, members) {
            Ok(settled) if found.as_ref().is_none_or(|best| settled.cost < best.cost) => found = Some(settled),
            Ok(_) => {}
            Err(violation) => against = against.or(Some(violation)),
        }
    }
    let nothing = || Violation { op: "the kernel".to_string(), what: "no fragment can be placed".to_string() };
    found.ok_or_else(|| against.unwrap_or_else(nothing))
}

/// Storages of the members without a layout, in program order.
fn unknown(scene: &Scene, known: &Known, members: &[usize]) -> Vec<Handle<Buffer>> {
    let mut open = Vec::new();
    for at in members {
        for storage in scene.graph.nodes[*at].1.storages() {
            if known.get(storage).is_none() && !open.contains(&storage) {
                open.push(storage);
            }
        }
    }
    open
}

fn roots(scene: &Scene, members: &[usize], open: &[Handle<Buffer>]) -> Vec<Root> {
    let mut roots = Vec::new();
    let by_rows = members.iter().any(|at| scene.graph.nodes[*at].1.has_rows());
    for at in members {
        if let Node::Nest(nest) = &scene.graph.nodes[*at].1
            && nest.touches.iter().any(|touch| open.contains(&touch.storage))
        {
            roots.extend(scene.spreads(nest, by_rows).into_iter().map(|spread| Root::Nest(*at, spread)));
        }
    }
    for storage in open {
        let granules = scene.storages.get(*storage).granules as i64;
        let plain = spreads(&[granules], scene.threads, 4, false);
        roots.extend(plain.into_iter().map(|spread| Root::Storage(*storage, spread)));
    }
    roots.extend(open.iter().map(|storage| Root::Whole(*storage)));
    roots
}

impl Root {
    fn apply(&self, scene: &Scene, known: &mut Known) {
        match self {
            Root::Nest(at, spread) => {
                let (_, node) = &scene.graph.nodes[*at];
                let Node::Nest(nest) = node else { return };
                let steps = Map::spread(scene.threads, nest.iterations(), *spread);
                for touch in &nest.touches {
                    let map = nest.complete(touch, &steps, scene.storages.get(touch.storage).granules);
                    if known.get(touch.storage).is_none() && map.missing().is_none() {
                        known.set(touch.storage, map, chosen(node, "shared among the threads by this op"));
                    }
                }
            }
            Root::Storage(storage, spread) => {
                let granules = scene.storages.get(*storage).granules;
                let map = Map::spread(scene.threads, granules, *spread);
                choose(scene, known, *storage, map, IN_ORDER);
            }
            Root::Whole(storage) => {
                let map = Map::replicated(scene.threads, scene.storages.get(*storage).granules);
                choose(scene, known, *storage, map, "every thread has all of it");
            }
        }
    }
}

fn chosen(node: &Node, rule: &'static str) -> Reason {
    Reason { pass: Pass::Free, rule, op: node.title().to_string(), span: node.span(), parent: None }
}

/// Gives a fragment a map because nothing says another; the reason names its first op.
fn choose(scene: &Scene, known: &mut Known, storage: Handle<Buffer>, map: Map, rule: &'static str) {
    let user = scene.graph.nodes.iter().map(|(_, node)| node).find(|node| node.storages().contains(&storage));
    if let Some(node) = user {
        known.set(storage, map, chosen(node, rule));
    }
}

/// Derives what follows; what nothing says is chosen, one fragment at a time.
fn fill_in(scene: &Scene, known: &mut Known, members: &[usize]) {
    scene.spread_out(known, members, Pass::Common);
    while let Some(storage) = unknown(scene, known, members).first().copied() {
        let granules = scene.storages.get(storage).granules;
        let spread = Spread { row: granules, group: scene.threads, groups: 1, vector: 1 };
        let map = Map::spread(scene.threads, granules, spread);
        choose(scene, known, storage, map, IN_ORDER);
        scene.spread_out(known, members, Pass::Common);
    }
}

fn settle_all(scene: &Scene, known: Known, members: &[usize]) -> Result<Settled, Violation> {
    let mut steps = Vec::new();
    let mut total = 0;
    for at in members {
        match &scene.graph.nodes[*at].1 {
            Node::Nest(nest) => {
                let (map, cost) = scene.settle(*at, nest, &known)?;
                steps.push((*at, map));
                total += cost;
            }
            Node::Reduce(reduction) => reduction.check(&known)?,
            Node::Gemm(_) => {}
        }
    }
    let mut storages: BTreeSet<Handle<Buffer>> = BTreeSet::new();
    for at in members {
        storages.extend(scene.graph.nodes[*at].1.storages());
    }
    for storage in storages {
        if let Some(fixed) = known.get(storage) {
            total += 4 * cost::of_registers(&fixed.map, scene.storages.get(storage).bytes);
        }
    }
    Ok(Settled { known, steps, cost: total })
}
