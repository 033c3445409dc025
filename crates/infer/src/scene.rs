//! A connected component of ops and fragments, with numbers for everything that the search compares.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilewright_ir::Handle;
use tilewright_ir::tile::Buffer;
use tilewright_layout::map::Map;

use crate::graph::Graph;
use crate::ids::{MapId, PatternId};
use crate::known::{Known, Reason};
use crate::nest::Nest;
use crate::node::{Node, Reduction};
use crate::state::Why;
use crate::storage::Storages;
use crate::tables::Tables;
use crate::vectors::Moves;

/// A connected component: the data that does not change during the search.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// Threads of the block.
    pub(crate) threads: usize,
    /// The ops, in program order.
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) storages: Vec<Stored<'a>>,
    /// The ops that touch each storage.
    pub(crate) users: Vec<Vec<usize>>,
    /// Whether it matters how rows are shared: some op does not access the elements of its fragments in their order.
    pub(crate) by_rows: bool,
}

/// An op.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// The index of its node in the graph.
    pub(crate) at: usize,
    pub(crate) node: &'a Node,
    /// The storages that it touches.
    pub(crate) storages: Vec<usize>,
    pub(crate) kind: Kind<'a>,
}

/// What an op requires of the layouts of its fragments.
#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Nest(Work<'a>),
    Reduce(Fold),
    /// Nothing more: the op dictated them in the strict pass.
    Dictated,
}

/// A nest.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) nest: &'a Nest,
    pub(crate) iterations: usize,
    /// Accesses of fragments, in the order of those of the nest.
    pub(crate) touches: Vec<Use>,
    /// Accesses of memory, in the order of those of the nest.
    pub(crate) moves: Vec<Moves>,
    /// The rows of its elements, if it is a scan.
    pub(crate) rows: Option<PatternId>,
    /// Its steps, if the user laid it out.
    pub(crate) laid_out: Option<MapId>,
}

/// A use of a fragment by a nest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    /// The index of the storage in the component.
    pub(crate) storage: usize,
    pub(crate) pattern: PatternId,
    pub(crate) writes: bool,
}

/// A reduction; the pattern gives the rows of every granule of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    /// The index of the source's storage.
    pub(crate) src: usize,
    /// The index of the destination's storage.
    pub(crate) dst: usize,
    pub(crate) pattern: PatternId,
    /// How often it is executed.
    pub(crate) executions: u64,
    /// How often the threads exchange their parts.
    pub(crate) exchanges: u64,
}

/// The storage of a fragment.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    /// The fragment that owns it.
    pub(crate) handle: Handle<Buffer>,
    /// Bytes of a granule.
    pub(crate) bytes: i64,
    /// The number of granules.
    pub(crate) granules: usize,
    /// Extents of the fragment that owns it, in granules.
    pub(crate) extents: &'a [i64],
    /// Its map, if that was known before the search.
    pub(crate) given: Option<MapId>,
}

impl Work<'_> {
    pub(crate) fn writes_fragments(&self) -> bool {
        self.touches.iter().any(|touch| touch.writes)
    }
}

impl<'a> Scene<'a> {
    /// The component of these nodes; `laid_out` has the steps of loops that the user laid out, by node.
    pub(crate) fn of(
        tables: &mut Tables,
        (graph, storages): (&'a Graph, &'a Storages),
        known: &Known,
        laid_out: &BTreeMap<usize, Map>,
        members: &[usize],
    ) -> Scene<'a> {
        let threads = tables.threads();
        let mut scene = Scene { threads, items: Vec::new(), storages: Vec::new(), users: Vec::new(), by_rows: false };
        let mut numbers: BTreeMap<Handle<Buffer>, usize> = BTreeMap::new();
        for at in members {
            let node = &graph.nodes[*at].1;
            let mut touched = Vec::new();
            for handle in graph.uses.of_op(*at) {
                let number = *numbers.entry(handle).or_insert(scene.storages.len());
                if number == scene.storages.len() {
                    scene.storages.push(stored(tables, storages, known, handle));
                    scene.users.push(Vec::new());
                }
                scene.users[number].push(scene.items.len());
                touched.push(number);
            }
            let kind = match node {
                Node::Nest(nest) => Kind::Nest(work(tables, nest, &numbers, laid_out.get(at))),
                Node::Reduce(reduction) => Kind::Reduce(fold(tables, reduction, &numbers)),
                Node::Gemm(_) => Kind::Dictated,
            };
            scene.by_rows |= node.has_rows() || !kind.is_in_order(tables);
            scene.items.push(Item { at: *at, node, storages: touched, kind });
        }
        scene
    }

    /// A measure of the places that its search visits: those of every op's fragments, each with its elements once, and of
    /// a fragment with one element a thread.
    pub(crate) fn size(&self) -> u64 {
        let places = |storage: &usize| self.storages[*storage].granules + self.threads;
        self.items.iter().flat_map(|item| &item.storages).map(|storage| places(storage) as u64).sum()
    }

    /// The nest of an op; `None` for reductions and products.
    pub(crate) fn work(&self, item: usize) -> Option<&Work<'a>> {
        match &self.items[item].kind {
            Kind::Nest(work) => Some(work),
            Kind::Reduce(_) | Kind::Dictated => None,
        }
    }

    /// Why a storage has its map, or a nest its steps, in terms of the kernel.
    pub(crate) fn reason(&self, why: &Why) -> Reason {
        let parent = why.parent.map(|storage| self.storages[storage].handle);
        let op = self.items[why.item].node.title().to_string();
        Reason { pass: why.pass, rule: why.rule, op, span: why.span, parent }
    }

    /// The ops that touch some of these storages, in program order.
    pub(crate) fn users_of(&self, storages: &[usize]) -> Vec<usize> {
        let mut users: Vec<usize> = storages.iter().flat_map(|storage| self.users[*storage].iter().copied()).collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

impl Kind<'_> {
    /// Whether the op accesses all elements in their order.
    fn is_in_order(&self, tables: &Tables) -> bool {
        match self {
            Kind::Nest(work) => work.touches.iter().all(|touch| tables.pattern(touch.pattern).is_identity()),
            Kind::Reduce(_) => false,
            Kind::Dictated => true,
        }
    }
}

fn stored<'a>(tables: &mut Tables, storages: &'a Storages, known: &Known, handle: Handle<Buffer>) -> Stored<'a> {
    let storage = storages.get(handle);
    let given = known.get(handle).map(|fixed| tables.number(fixed.map.clone()));
    Stored { handle, bytes: storage.bytes, granules: storage.granules, extents: storages.extents(handle), given }
}

fn work<'a>(
    tables: &mut Tables,
    nest: &'a Nest,
    numbers: &BTreeMap<Handle<Buffer>, usize>,
    laid_out: Option<&Map>,
) -> Work<'a> {
    let mut touches = Vec::new();
    for touch in &nest.touches {
        let pattern = tables.number_pattern(&touch.pattern);
        touches.push(Use { storage: numbers[&touch.storage], pattern, writes: touch.effect.writes() });
    }
    let moves = nest.memory.iter().map(|touch| Moves::of(tables, nest, touch)).collect();
    let laid_out = laid_out.map(|map| tables.number(map.clone()));
    let rows = nest.scanned.as_ref().map(|scanned| tables.number_pattern(&scanned.rows));
    Work { nest, iterations: nest.iterations(), touches, moves, rows, laid_out }
}

fn fold(tables: &mut Tables, reduction: &Reduction, numbers: &BTreeMap<Handle<Buffer>, usize>) -> Fold {
    let pattern = tables.number_pattern(&Arc::new(reduction.rows.clone()));
    let Reduction { executions, exchanges, .. } = *reduction;
    Fold { src: numbers[&reduction.src], dst: numbers[&reduction.dst], pattern, executions, exchanges }
}
