//! The ops of a kernel and the fragments between them, in program order.

use indexmap::IndexMap;
use tilewright_diag::{Diagnostic, Span};
use tilewright_ir::Handle;
use tilewright_ir::tile::{
    Buffer, Dimensions, Effect, ElementStmt, Kernel, KernelsByRole, Op, OpClass, Role, Space, Stmt, Tile, Value,
};
use tilewright_layout::map::NONE;

use crate::dictation::Dictation;
use crate::nest::Nest;
use crate::node::{Node, Origin, Reduction};
use crate::pattern::Pattern;
use crate::storage::Storages;
use crate::uses::Uses;

/// All nodes, and the fragments that every thread must have whole.
#[derive(Debug)]
pub(crate) struct Graph {
    /// In program order.
    pub(crate) nodes: Vec<(Origin, Node)>,
    /// Which node uses which fragment.
    pub(crate) uses: Uses,
    /// Fragments that are used outside of ops, and the first such place.
    pub(crate) floating: IndexMap<Handle<Buffer>, Span>,
    /// Reductions that inference cannot place: from or to memory, or part of a fragment.
    pub(crate) unplaced: Vec<Handle<Op>>,
    /// For reductions that exchange the parts of threads only after the loop around them, the iterations of the loop.
    pub(crate) spread: IndexMap<Handle<Op>, u64>,
    /// The iterations of the loops around the current statement.
    executions: u64,
    /// Errors of products whose fragments cannot be operands.
    pub(crate) refused: Vec<Diagnostic>,
}

/// Loops of more iterations count as this many, so that registers still matter.
const MOST_EXECUTIONS: u64 = 64;

impl Graph {
    pub(crate) fn of(kernels: &KernelsByRole<'_>, storages: &Storages) -> Graph {
        let kernel = kernels.whole();
        let mut graph = Graph {
            nodes: Vec::new(),
            uses: Uses::default(),
            floating: IndexMap::new(),
            unplaced: Vec::new(),
            spread: IndexMap::new(),
            executions: 1,
            refused: Vec::new(),
        };
        graph.body(kernels, storages, &kernel.body);
        graph
    }

    /// The role that executes these nodes, which share fragments.
    pub(crate) fn role_of(&self, kernel: &Kernel, members: &[usize]) -> Option<Handle<Role>> {
        match self.nodes[*members.first()?].0 {
            Origin::Op(op) => kernel.ops[op].role,
            Origin::Parallel(parallel) => kernel.parallels[parallel].role,
        }
    }

    fn add(&mut self, origin: Origin, node: Node) {
        self.uses.add(origin, &node);
        self.nodes.push((origin, node));
    }

    fn add_nest(&mut self, origin: Origin, nest: Nest) {
        self.add(origin, Node::Nest(Nest { executions: self.executions, ..nest }));
    }

    fn body(&mut self, kernels: &KernelsByRole<'_>, storages: &Storages, body: &[Stmt]) {
        let kernel = kernels.whole();
        for stmt in body {
            match stmt {
                Stmt::Op(op) => self.op(kernels.seen_by(kernel.ops[*op].role), storages, *op),
                Stmt::Loop(inner) => {
                    let trips = inner.counter.assumed_trips().max(1).unsigned_abs();
                    self.spread.extend(kernel.spread_over(inner).into_iter().map(|op| (op, trips)));
                    let around = self.executions;
                    self.executions = around.saturating_mul(trips).min(MOST_EXECUTIONS);
                    self.body(kernels, storages, &inner.body);
                    self.executions = around;
                }
                Stmt::Parallel(parallel) => {
                    let nest = Nest::of_parallel(kernel, storages, &kernel.parallels[*parallel]);
                    self.add_nest(Origin::Parallel(*parallel), nest);
                }
                Stmt::EachThread(elements) => self.floating_elements(kernel, elements),
                Stmt::Begin(_) | Stmt::End(_) => {}
                Stmt::If(branch) => {
                    self.floating_value(kernel, &branch.cond);
                    self.body(kernels, storages, &branch.then);
                    self.body(kernels, storages, &branch.otherwise);
                }
            }
        }
    }

    fn op(&mut self, kernel: &Kernel, storages: &Storages, handle: Handle<Op>) {
        let op = &kernel.ops[handle];
        let uses_fragment = op.operands.iter().any(|tile| kernel.buffers[tile.buffer].space == Space::Fragment);
        let has_own_of_warps = op.operands.iter().any(|tile| kernel.warp_slice_dimension(tile).is_some());
        match op.kind.info().class {
            // Loads of tensor memory dictate which thread gets which row.
            OpClass::Elementwise if kernel.uses_tensor_memory(op) => {
                match Dictation::of_tensor_memory(kernel, storages, op) {
                    Some(Ok(dictation)) => self.add(Origin::Op(handle), Node::Gemm(dictation)),
                    Some(Err(finding)) => self.refused.push(finding),
                    None => {}
                }
            }
            // Each warp moves only its own part of the fragment, which has a layout: there is nothing to place.
            OpClass::Elementwise if has_own_of_warps => {}
            // An op on memory alone chooses the threads itself when it is lowered.
            OpClass::Elementwise if !uses_fragment && !op.kind.is_atomic() => {}
            // An element of a scan is written where it is read.
            OpClass::Elementwise | OpClass::Scan => {
                let nest = Nest::of_op(kernel, storages, op);
                self.add_nest(Origin::Op(handle), nest);
                // The scan exchanges what its carries need anyway.
                for carry in carries(kernel, storages, op) {
                    self.add(Origin::Op(handle), Node::Reduce(Reduction { executions: 0, exchanges: 0, ..carry }));
                }
            }
            OpClass::Reduction => match reductions(kernel, storages, op) {
                Some(reductions) => {
                    let executions = self.executions;
                    let exchanges = executions.div_ceil(self.spread.get(&handle).copied().unwrap_or(1));
                    if reductions.len() > 1 {
                        self.add_nest(Origin::Op(handle), Nest::of_tuples(kernel, storages, op, Effect::Read));
                    }
                    if reductions.len() > 1 && op.effect(0) == Effect::Update {
                        self.add_nest(Origin::Op(handle), Nest::of_tuples(kernel, storages, op, Effect::Update));
                    }
                    for reduction in reductions {
                        self.add(Origin::Op(handle), Node::Reduce(Reduction { executions, exchanges, ..reduction }));
                    }
                }
                None => self.unplaced.push(handle),
            },
            OpClass::Product if uses_fragment => match Dictation::of(kernel, storages, op) {
                Ok(dictation) => self.add(Origin::Op(handle), Node::Gemm(dictation)),
                Err(finding) => self.refused.push(finding),
            },
            OpClass::Product | OpClass::Permutation | OpClass::Conversion => {}
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
}

/// The reductions of an op, one for each value of its tuples.
fn reductions(kernel: &Kernel, storages: &Storages, op: &Op) -> Option<Vec<Reduction>> {
    let told = op.kind.reduction()?;
    let (destinations, sources) = op.operands.split_at_checked(told.values)?;
    let pairs = destinations.iter().zip(sources);
    pairs.map(|(dst, src)| reduction(kernel, storages, (op, told.dimensions), [dst, src])).collect()
}

/// The carries of a scan, as reductions: each is on the threads that have part of its row.
fn carries(kernel: &Kernel, storages: &Storages, op: &Op) -> Vec<Reduction> {
    let (Some(order), [dst, ..], Some(src)) = (op.kind.scan_order(), &op.operands[..], op.source()) else {
        return Vec::new();
    };
    // Other threads may have copies of the source, but not of the result.
    let row = if dst.extents == src.extents { dst } else { src };
    let of = |carry| reduction(kernel, storages, (op, order.dimension.into()), [carry, row]);
    op.carries().iter().filter_map(of).collect()
}

/// A reduction of whole fragments; `None` for parts, or where an operand is in memory.
fn reduction(
    kernel: &Kernel,
    storages: &Storages,
    (op, dimensions): (&Op, Dimensions),
    [dst, src]: [&Tile; 2],
) -> Option<Reduction> {
    let (to, from) = (&kernel.buffers[dst.buffer], &kernel.buffers[src.buffer]);
    let is_whole = |tile: &Tile| tile.extents == kernel.buffers[tile.buffer].shape;
    if to.space != Space::Fragment || from.space != Space::Fragment || !is_whole(dst) || !is_whole(src) {
        return None;
    }
    Some(Reduction {
        title: kernel.op_title(op),
        span: op.span,
        dst: kernel.storage(dst.buffer),
        effect: Effect::Update,
        src: kernel.storage(src.buffer),
        rows: rows(kernel, storages, [dst, src], dimensions),
        executions: 1,
        exchanges: 1,
    })
}

/// For each granule of the tile that is reduced, the granules of the rows that its elements belong to.
fn rows(kernel: &Kernel, storages: &Storages, [dst, src]: [&Tile; 2], dimensions: Dimensions) -> Pattern {
    let dtype_bytes = |tile: &Tile| kernel.buffers[tile.buffer].dtype.bytes();
    let (to, from) = (kernel.storage(dst.buffer), storages.get(kernel.storage(src.buffer)));
    let row_granules: Vec<u32> = (0..dst.elements()).map(|row| storages.granule(to, row, dtype_bytes(dst))).collect();
    // The rows of the elements of the source, in row-major order.
    let mut rows = (0..src.elements() as usize).map(|at| row_granules[dimensions.row_of(&src.extents, at)]);
    let elements_per_granule = (from.bytes / dtype_bytes(src)) as usize;
    let mut table = vec![NONE; from.granules * elements_per_granule];
    for entries in table.chunks_mut(elements_per_granule) {
        for row in rows.by_ref().take(elements_per_granule) {
            if let Some(entry) = entries.iter_mut().find(|entry| [NONE, row].contains(entry)) {
                *entry = row;
            }
        }
    }
    Pattern::of_padded(storages.get(to).granules, elements_per_granule, table)
}
