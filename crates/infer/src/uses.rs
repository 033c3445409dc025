//! The graph of ops and fragments: which op uses which fragment, and how.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeRef, UndirectedAdaptor};
use tilewright_diag::Span;
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, Effect};

use crate::node::{Node, Origin};

/// A node of the graph.
#[derive(Clone, Debug)]
pub(crate) enum Vertex {
    /// An op or loop.
    Op(OpVertex),
    /// A fragment, named by the one that owns the storage.
    Fragment(Handle<Buffer>),
}

/// An op or loop as a node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct OpVertex {
    /// Its number in program order.
    pub(crate) at: usize,
    pub(crate) origin: Origin,
    /// The op or loop as text.
    pub(crate) title: String,
    pub(crate) span: Span,
}

/// A use, from the op to the fragment if the fragment is written, else from the fragment to the op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// The number of the vertex where it begins.
    pub(crate) from: usize,
    /// The number of the vertex where it ends.
    pub(crate) to: usize,
    pub(crate) fragment: Handle<Buffer>,
    /// `read`, `write` or `update`.
    pub(crate) verb: &'static str,
}

/// Ops and fragments, and the uses between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    graph: DiGraph<Vertex, Effect>,
    /// The vertices of the ops, in program order.
    ops: Vec<NodeIndex>,
    /// The vertices of the fragments.
    fragments: BTreeMap<Handle<Buffer>, NodeIndex>,
}

impl Uses {
    /// Adds the next op in program order, with its uses of fragments.
    pub(crate) fn add(&mut self, origin: Origin, node: &Node) {
        let (at, title) = (self.ops.len(), node.title().to_string());
        let op = self.graph.add_node(Vertex::Op(OpVertex { at, origin, title, span: node.span() }));
        self.ops.push(op);
        for (storage, effect) in node.uses() {
            let new = || self.graph.add_node(Vertex::Fragment(storage));
            let fragment = *self.fragments.entry(storage).or_insert_with(new);
            let (from, to) = if effect.writes() { (op, fragment) } else { (fragment, op) };
            self.graph.add_edge(from, to, effect);
        }
    }

    /// The fragments that an op uses, in the order of their declarations.
    pub(crate) fn of_op(&self, at: usize) -> Vec<Handle<Buffer>> {
        let used = self.graph.neighbors_undirected(self.ops[at]).filter_map(|vertex| match &self.graph[vertex] {
            Vertex::Fragment(storage) => Some(*storage),
            Vertex::Op(_) => None,
        });
        let mut used: Vec<Handle<Buffer>> = used.collect();
        used.sort_unstable();
        used
    }

    /// The ops of each connected component, in program order.
    pub(crate) fn components(&self) -> Vec<Vec<usize>> {
        let graph = UndirectedAdaptor(&self.graph);
        let mut walk = Dfs::empty(graph);
        let mut components = Vec::new();
        for op in &self.ops {
            walk.move_to(*op);
            let mut component = Vec::new();
            while let Some(vertex) = walk.next(graph) {
                match &self.graph[vertex] {
                    Vertex::Op(op) => component.push(op.at),
                    Vertex::Fragment(_) => {}
                }
            }
            component.sort_unstable();
            components.extend(Some(component).filter(|component| !component.is_empty()));
        }
        components
    }

    /// All vertices, each with its number.
    pub(crate) fn vertices(&self) -> impl Iterator<Item = (usize, &Vertex)> {
        self.graph.node_indices().map(|vertex| (vertex.index(), &self.graph[vertex]))
    }

    /// All uses, op by op in program order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Use> {
        self.ops.iter().flat_map(|op| {
            let used = [Direction::Incoming, Direction::Outgoing].map(|way| self.graph.edges_directed(*op, way));
            let mut uses: Vec<Use> = Vec::new();
            for edge in used.into_iter().flatten() {
                let (from, to) = (edge.source(), edge.target());
                let other = if from == *op { to } else { from };
                if let Vertex::Fragment(fragment) = self.graph[other] {
                    uses.push(Use { from: from.index(), to: to.index(), fragment, verb: verb(*edge.weight()) });
                }
            }
            uses.sort_unstable();
            uses
        })
    }
}

fn verb(effect: Effect) -> &'static str {
    match effect {
        Effect::Read | Effect::Move => "read",
        Effect::Write => "write",
        Effect::Update => "update",
    }
}
