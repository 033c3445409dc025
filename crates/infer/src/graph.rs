//! The ops of a kernel and the fragments between them, in program order.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use petgraph::unionfind::UnionFind;
use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Handle;
use tilewright_ir::tile::{Buffer, ElementStmt, Kernel, Op, OpClass, OpKind, Parallel, Space, Stmt, Tile, Value};

use crate::gemm::Dictation;
use crate::nest::Nest;
use crate::storage::Storages;

/// Where a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A tile op.
    Op(Handle<Op>),
    /// A parallel loop.
    Parallel(Handle<Parallel>),
}

/// What inference knows about an op.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Iterations without an order.
    Nest(Nest),
    /// A reduction.
    Reduce(Reduction),
    /// A product.
    Gemm(Dictation),
}

/// A reduction from one fragment to another.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    pub(crate) title: String,
    pub(crate) span: Span,
    /// The storage of the destination.
    pub(crate) dst: Handle<Buffer>,
    /// The storage of the source.
    pub(crate) src: Handle<Buffer>,
    /// The granule of the destination that each granule of the source goes to.
    pub(crate) row_of: Vec<u32>,
    /// Granules of the destination.
    pub(crate) rows: usize,
}

/// All nodes, and the fragments that every thread must have whole.
#[derive(Debug)]
pub(crate) struct Graph {
    /// In program order.
    pub(crate) nodes: Vec<(Origin, Node)>,
    /// Fragments that are used outside of ops, and the first such place.
    pub(crate) floating: IndexMap<Handle<Buffer>, Span>,
    /// Reductions that inference cannot place: from or to memory, or part of a fragment.
    pub(crate) unplaced: Vec<Handle<Op>>,
    /// Errors of products whose fragments cannot be operands.
    pub(crate) refused: Vec<Diagnostic>,
}

impl Node {
    /// The storages it touches.
    pub(crate) fn storages(&self) -> BTreeSet<Handle<Buffer>> {
        match self {
            Node::Nest(nest) => nest.touches.iter().map(|touch| touch.storage).collect(),
            Node::Reduce(reduction) => [reduction.dst, reduction.src].into_iter().collect(),
            Node::Gemm(dictation) => dictation.fragments.iter().map(|(storage, _)| *storage).collect(),
        }
    }

    /// Whether several iterations or elements meet in one granule, so that it matters how rows are shared.
    pub(crate) fn has_rows(&self) -> bool {
        match self {
            Node::Nest(nest) => nest.touches.iter().any(|touch| !touch.is_own()),
            Node::Reduce(_) => true,
            Node::Gemm(_) => false,
        }
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Node::Nest(nest) => &nest.title,
            Node::Reduce(reduction) => &reduction.title,
            Node::Gemm(dictation) => &dictation.title,
        }
    }

    pub(crate) fn span(&self) -> Span {
        match self {
            Node::Nest(nest) => nest.span,
            Node::Reduce(reduction) => reduction.span,
            Node::Gemm(dictation) => dictation.span,
        }
    }
}

impl Graph {
    pub(crate) fn of(kernel: &Kernel, storages: &Storages) -> Graph {
        let mut graph =
            Graph { nodes: Vec::new(), floating: IndexMap::new(), unplaced: Vec::new(), refused: Vec::new() };
        graph.body(kernel, storages, &kernel.body);
        graph
    }

    fn body(&mut self, kernel: &Kernel, storages: &Storages, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Op(op) => self.op(kernel, storages, *op),
                Stmt::Loop(inner) => self.body(kernel, storages, &inner.body),
                Stmt::Parallel(parallel) => {
                    let nest = Nest::of_parallel(kernel, storages, &kernel.parallels[*parallel]);
                    self.nodes.push((Origin::Parallel(*parallel), Node::Nest(nest)));
                }
                Stmt::EachThread(elements) => self.floating_elements(kernel, elements),
                Stmt::If(branch) => {
                    self.floating_value(kernel, &branch.cond);
                    self.body(kernel, storages, &branch.then);
                    self.body(kernel, storages, &branch.otherwise);
                }
            }
        }
    }

    fn op(&mut self, kernel: &Kernel, storages: &Storages, handle: Handle<Op>) {
        let op = &kernel.ops[handle];
        let uses_fragment = op.operands.iter().any(|tile| kernel.buffers[tile.buffer].space == Space::Fragment);
        let has_own_of_warps = op.operands.iter().any(|tile| kernel.warp_slice_dimension(tile).is_some());
        match op.kind.info().class {
            // Each warp moves only its own part of the fragment, which has a layout: there is nothing to place.
            OpClass::Elementwise if has_own_of_warps => {}
            OpClass::Elementwise => {
                let nest = Nest::of_op(kernel, storages, op);
                self.nodes.push((Origin::Op(handle), Node::Nest(nest)));
            }
            OpClass::Reduction => match reduction(kernel, storages, op) {
                Some(reduction) => self.nodes.push((Origin::Op(handle), Node::Reduce(reduction))),
                None => self.unplaced.push(handle),
            },
            OpClass::Product if uses_fragment => match Dictation::of(kernel, storages, op) {
                Ok(dictation) => self.nodes.push((Origin::Op(handle), Node::Gemm(dictation))),
                Err(finding) => self.refused.push(finding),
            },
            OpClass::Product | OpClass::Permutation => {}
        }
    }

    fn floating_elements(&mut self, kernel: &Kernel, elements: &[ElementStmt]) {
        for element in elements {
            element.for_each_access(&mut |access, _| self.floats(kernel, access.buffer, access.span));
        }
    }

    fn floating_value(&mut self, kernel: &Kernel, value: &Value) {
        value.for_each_load(&mut |access| self.floats(kernel, access.buffer, access.span));
    }

    fn floats(&mut self, kernel: &Kernel, buffer: Handle<Buffer>, span: Span) {
        if kernel.buffers[buffer].space == Space::Fragment {
            self.floating.entry(kernel.storage(buffer)).or_insert(span);
        }
    }

    /// The nodes of each connected component, in program order.
    pub(crate) fn components(&self) -> Vec<Vec<usize>> {
        let mut sets: UnionFind<usize> = UnionFind::new(self.nodes.len());
        let mut first: BTreeMap<Handle<Buffer>, usize> = BTreeMap::new();
        for (at, (_, node)) in self.nodes.iter().enumerate() {
            for storage in node.storages() {
                sets.union(at, *first.entry(storage).or_insert(at));
            }
        }
        let mut components: IndexMap<usize, Vec<usize>> = IndexMap::new();
        for at in 0..self.nodes.len() {
            components.entry(sets.find(at)).or_default().push(at);
        }
        components.into_values().collect()
    }
}

/// A reduction of whole fragments; `None` for parts, or where an operand is in memory.
fn reduction(kernel: &Kernel, storages: &Storages, op: &Op) -> Option<Reduction> {
    let ([dst, src], OpKind::Reduce(told)) = (&op.operands[..], op.kind) else { return None };
    let (to, from) = (&kernel.buffers[dst.buffer], &kernel.buffers[src.buffer]);
    let is_whole = |tile: &Tile| tile.extents == kernel.buffers[tile.buffer].shape;
    if to.space != Space::Fragment || from.space != Space::Fragment || !is_whole(dst) || !is_whole(src) {
        return None;
    }
    let below: i64 = src.extents[told.dimension + 1..].iter().product();
    let extent = src.extents[told.dimension];
    let (dst_storage, src_storage) = (kernel.storage(dst.buffer), kernel.storage(src.buffer));
    let source = storages.get(src_storage);
    let mut row_of = vec![0u32; source.granules];
    for element in 0..src.elements() {
        let row = element / below / extent * below + element % below;
        let granule = storages.granule(src_storage, element, from.dtype.bytes());
        row_of[granule as usize] = storages.granule(dst_storage, row, to.dtype.bytes());
    }
    Some(Reduction {
        title: kernel.op_title(op),
        span: op.span,
        dst: dst_storage,
        src: src_storage,
        row_of,
        rows: storages.get(dst_storage).granules,
    })
}
