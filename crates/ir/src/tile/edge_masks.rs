//! Leaves out what is [not valid](super::valid_extents) where it would count: in reductions and products of tiles that hang
//! over the edge of a tensor, in what is added to an element, and in stores whose index is such data.
//!
//! The user writes no condition for this. A zero is left where it is neutral: in sums, and in products with a finite number.

mod branches;
mod nests;
mod stages;

use std::collections::BTreeSet;

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;

use crate::arena::Handle;
use crate::counter::Counter;
use crate::scalar::Scalar;
use crate::tile::atomic::AtomicOp;
use crate::tile::attributes::{Gemm, Reduce, ReduceBy, Scan, ScanBy, ScanOrder};
use crate::tile::bounds::{Bounds, Sum, value_of};
use crate::tile::buffer::{Buffer, Space};
use crate::tile::combiner::Combiner;
use crate::tile::dimensions::Dimensions;
use crate::tile::element::{Claim, ElementStmt, Parallel};
use crate::tile::kernel::{If, Kernel, Loop, Stmt};
use crate::tile::op::{Effect, Op, OpClass, OpKind};
use crate::tile::role::Role;
use crate::tile::tiles::Tile;
use crate::tile::valid_extents::{State, Valid, both, is_below, joined};
use crate::tile::value::{ElementOp, Narrowing, Value};

use self::stages::Stages;

/// The most times that the body of a loop is walked until what is valid at its beginning does not change any more.
const MOST_WALKS: usize = 4;

/// The kernel with conditions where invalid elements would count.
pub(super) fn with_edge_masks(mut kernel: Kernel) -> Kernel {
    let body = std::mem::take(&mut kernel.body);
    let mut masks = Masks::of(kernel, &body);
    let body = masks.body(body);
    Kernel { body, ..masks.kernel }
}

/// Warnings about elements that may lie beyond the edge of a tensor, and count all the same, since it is not known which they
/// are.
pub(super) fn uncertain_edges(kernel: &Kernel) -> Vec<Diagnostic> {
    let mut masks = Masks::of(kernel.clone(), &kernel.body);
    masks.body(kernel.body.clone());
    masks.uncertain
}

struct Masks {
    kernel: Kernel,
    state: State,
    /// What is valid in the stages of rings.
    stages: Stages,
    /// The storage of the buffers that were written up to here.
    written: BTreeSet<Handle<Buffer>>,
    /// Where elements count that may be invalid.
    uncertain: Vec<Diagnostic>,
    /// The loops around, outermost first.
    outer: Vec<Around>,
    /// The role of the op that is looked at.
    role: Option<Handle<Role>>,
    /// Whether what is valid at the current statement is known; otherwise nothing is changed yet.
    is_final: bool,
    /// Whether the kernel is walked only to learn what roles leave in stages.
    is_rehearsal: bool,
}

/// A loop around a statement.
struct Around {
    var: Var,
    /// The storages that each iteration overwrites as a whole.
    overwritten: BTreeSet<Handle<Buffer>>,
}

impl Around {
    fn of(kernel: &Kernel, inner: &Loop) -> Around {
        let ops =
            inner.body.iter().filter_map(|stmt| if let Stmt::Op(op) = stmt { Some(&kernel.ops[*op]) } else { None });
        let written =
            ops.flat_map(|op| op.operands.iter().enumerate().map(move |(place, tile)| (op.effect(place), tile)));
        let is_whole = |tile: &Tile| tile.extents == kernel.buffers[tile.buffer].shape;
        let overwritten = written.filter(|(effect, tile)| *effect == Effect::Write && is_whole(tile));
        let overwritten = overwritten.map(|(_, tile)| kernel.storage(tile.buffer)).collect();
        Around { var: inner.counter.var.clone(), overwritten }
    }
}

impl Masks {
    /// At the beginning of a kernel with these statements. What roles leave in stages is known already, wherever they are written.
    fn of(kernel: Kernel, body: &[Stmt]) -> Masks {
        let (state, written, uncertain) = (State::new(), BTreeSet::new(), Vec::new());
        let stages = Stages::of(body);
        let most = kernel.holds.len();
        let (outer, role, is_final, is_rehearsal) = (Vec::new(), None, true, true);
        let mut masks = Masks { kernel, state, stages, written, uncertain, outer, role, is_final, is_rehearsal };
        // What a hold leaves may depend on those of other roles and rings, which do on others in turn.
        for _ in 0..most {
            let before = masks.stages.published().clone();
            masks.body(body.to_vec());
            masks.state.clear();
            masks.written.clear();
            if masks.stages.is_known() || *masks.stages.published() == before {
                break;
            }
        }
        masks.is_rehearsal = false;
        masks
    }

    /// Whether the kernel is changed by what is known now.
    fn changes(&self) -> bool {
        self.is_final && !self.is_rehearsal
    }

    fn body(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            match stmt {
                Stmt::Op(handle) => {
                    out.extend(self.op(handle));
                    out.push(Stmt::Op(handle));
                }
                Stmt::Loop(inner) => out.push(Stmt::Loop(self.repeat(inner))),
                Stmt::Begin(hold) => {
                    self.begin(hold);
                    out.push(stmt);
                }
                Stmt::End(hold) => {
                    self.end(hold);
                    out.push(stmt);
                }
                Stmt::Parallel(handle) => {
                    self.parallel(handle);
                    out.push(Stmt::Parallel(handle));
                }
                Stmt::EachThread(elements) => {
                    elements.iter().for_each(|element| self.forget_written(element));
                    out.push(Stmt::EachThread(elements));
                }
                Stmt::If(If { cond, then, otherwise, span }) => {
                    let before = self.state.clone();
                    self.enter_branch(&cond, true);
                    let then = self.body(then);
                    let after = std::mem::replace(&mut self.state, before);
                    self.enter_branch(&cond, false);
                    let otherwise = self.body(otherwise);
                    self.state = joined(&after, &self.state);
                    out.push(Stmt::If(If { cond, then, otherwise, span }));
                }
            }
        }
        out
    }

    /// A loop. What an iteration leaves is what the next one begins with, for the value of the variable before.
    fn repeat(&mut self, inner: Loop) -> Loop {
        let (counter, is_final) = (inner.counter.clone(), self.is_final);
        let before = self.state.clone();
        let around = Around::of(&self.kernel, &inner);
        self.outer.push(around);
        self.is_final = false;
        // While what is valid at the beginning of a loop around is not known yet, one walk has to do: an op inside `n` loops is
        // looked at `MOST_WALKS * n` times, not a power of that.
        let carries = is_final && inner.carries();
        for _ in 0..if carries { MOST_WALKS } else { 0 } {
            let head = self.state.clone();
            self.body(inner.body.clone());
            let earlier = Expr::var(&counter.var) - counter.step;
            self.state = joined(&before, &self.in_iteration(&counter, &earlier));
            if self.state == head {
                break;
            }
        }
        self.is_final = is_final;
        let body = self.body(inner.body);
        self.outer.pop();
        self.state = joined(&before, &self.in_iteration(&counter, &counter.last()));
        Loop { body, ..inner }
    }

    /// What is valid where the loop's variable has this value.
    fn in_iteration(&self, counter: &Counter, value: &Expr) -> State {
        let replaced = |expr: &Expr| expr.substitute(&|var| (*var == counter.var).then(|| value.clone()));
        let replaced = |valid: &Valid| Valid { bounds: valid.bounds.with_limits(&replaced), ..valid.clone() };
        self.state.iter().map(|(buffer, valid)| (*buffer, replaced(valid))).collect()
    }

    /// The statements in front of an op, whose operands are changed if they are masked.
    fn op(&mut self, handle: Handle<Op>) -> Vec<Stmt> {
        let op = self.kernel.ops[handle].clone();
        self.role = op.role;
        if let (Some(by), [dst, src]) = (op.kind.atomic(), &op.operands[..]) {
            return self.atomic_tile(handle, by, [dst, src], op.span);
        }
        match (op.kind.info().class, op.kind, &op.operands[..]) {
            (OpClass::Reduction, OpKind::Reduce(reduce), [dst, src]) => {
                self.reduce(handle, reduce, [dst, src], op.span)
            }
            (OpClass::Reduction, OpKind::ReduceBy(by), tiles) => self.reduce_by(handle, by, tiles, op.span),
            (OpClass::Scan, OpKind::Scan(scan), [dst, src, ..]) => {
                let (before, known) = self.scan(handle, scan, [dst, src], op.span);
                self.carried(&op, (src, scan.order), &known);
                before
            }
            (OpClass::Scan, OpKind::ScanBy(by), tiles) => {
                let (before, known) = self.scan_by(handle, by, tiles, op.span);
                self.carried(&op, (&tiles[by.values], by.order), &known);
                before
            }
            (OpClass::Product, OpKind::Gemm(gemm) | OpKind::GemmAsync(gemm), [c, a, b]) => {
                self.gemm(handle, gemm, [c, a, b], op.span)
            }
            (OpClass::Elementwise | OpClass::Permutation | OpClass::Conversion, ..) => {
                self.moved(&op);
                Vec::new()
            }
            // The verifier has checked that the op has the operands of its row.
            (OpClass::Reduction | OpClass::Scan | OpClass::Product, ..) => Vec::new(),
        }
    }

    /// An op that computes each element from those at the same index: what it writes is valid where all that it reads is.
    fn moved(&mut self, op: &Op) {
        let reads = (0..op.operands.len()).filter(|place| op.effect(*place).reads());
        let read: Vec<Valid> = reads.map(|place| self.kernel.valid_tile(&self.state, &op.operands[place])).collect();
        for (place, dst) in op.operands.iter().enumerate() {
            match op.effect(place) {
                Effect::Write => {
                    let valid = read.iter().fold(Valid::everywhere(), |all, valid| both(&all, valid));
                    self.write(dst, valid, op.span);
                }
                Effect::Update => {
                    self.state.remove(&dst.buffer);
                }
                Effect::Read | Effect::Move => {}
            }
        }
    }

    /// Records what is valid of a tile that is written.
    fn write(&mut self, dst: &Tile, valid: Valid, span: Span) {
        let buffer = &self.kernel.buffers[dst.buffer];
        if matches!(buffer.space, Space::Global(_)) {
            return;
        }
        let is_whole = dst.extents == buffer.shape;
        let bounds = valid.bounds.renamed(|place| dst.dimension_at(*place));
        let in_buffer = |(sum, limit): (&Sum<usize>, &Expr)| {
            (sum.clone(), normalize(&(limit + &value_of(sum, |at| dst.starts[*at].clone()))))
        };
        let valid = Valid { bounds: Bounds::of(bounds.iter().map(in_buffer)), ..valid };
        if is_whole {
            self.replace(dst.buffer, valid, span);
        } else {
            self.write_part(dst.buffer, valid, span);
        }
    }

    /// A buffer is written as a whole.
    fn replace(&mut self, buffer: Handle<Buffer>, valid: Valid, span: Span) {
        let lost = self.forget_views(buffer).then_some(span);
        self.written.insert(self.kernel.storage(buffer));
        self.set(buffer, Valid { lost: valid.lost.or(lost), ..valid });
    }

    /// A part of a buffer is written, which is valid within these bounds of the whole. They hold for all of it if nothing else
    /// of it has been written, or what has is valid within the same bounds.
    fn write_part(&mut self, buffer: Handle<Buffer>, valid: Valid, span: Span) {
        let is_first = !self.written.contains(&self.kernel.storage(buffer));
        let earlier = if is_first { valid.clone() } else { self.kernel.valid_buffer(&self.state, buffer) };
        if valid.bounds == earlier.bounds {
            self.replace(buffer, both(&earlier, &valid), span);
        } else {
            let is_zero = earlier.is_zero && valid.is_zero;
            self.replace(buffer, Valid { bounds: Bounds::default(), is_zero, lost: Some(span) }, span);
        }
    }

    fn set(&mut self, buffer: Handle<Buffer>, valid: Valid) {
        match valid.is_everywhere() {
            true => self.state.remove(&buffer),
            false => self.state.insert(buffer, valid),
        };
    }

    /// Forgets what is known of other names of a buffer's storage, and returns whether anything was.
    fn forget_views(&mut self, buffer: Handle<Buffer>) -> bool {
        let (storage, known) = (self.kernel.storage(buffer), self.state.len());
        let kernel = &self.kernel;
        self.state.retain(|other, _| *other == buffer || kernel.storage(*other) != storage);
        self.state.len() < known
    }

    /// Forgets what is known of what a statement writes.
    fn forget_written(&mut self, element: &ElementStmt) {
        let mut written = Vec::new();
        element.for_each_access(&mut |access, writes| written.extend(writes.then_some((access.buffer, access.span))));
        written.into_iter().for_each(|(buffer, span)| self.write_part(buffer, Valid::everywhere(), span));
    }

    /// Warns that elements count at a statement that may be invalid.
    fn count_anyway(&mut self, lost: Option<Span>, at: Span, what: &str) {
        let Some(lost) = lost.filter(|_| self.changes()) else { return };
        let message = format!("{what} may count zeros from beyond the edge of a tensor");
        let finding = Diagnostic::warning("K0273", message)
            .label(at, "they are not left out here")
            .label(lost, "from here on it is not known which elements these are")
            .help("write the whole tile in one statement, under its own name and with its variables as indices")
            .help("or give those elements another value in an arm of select; .or_zero() if they are to count");
        if !self.uncertain.contains(&finding) {
            self.uncertain.push(finding);
        }
    }

    /// An atomic op on tiles: what is invalid leaves its element alone, unless the element lies beyond the edge too.
    fn atomic_tile(&mut self, handle: Handle<Op>, by: AtomicOp, [dst, src]: [&Tile; 2], span: Span) -> Vec<Stmt> {
        let [of_dst, of_src] = [dst, src].map(|tile| self.kernel.valid_tile(&self.state, tile));
        let known = self.kernel.valid_buffer(&self.state, src.buffer);
        let neutral = by.reduction().neutral(self.kernel.buffers[src.buffer].dtype);
        let is_neutral = known.is_zero && by.reduction().ignores_zeros();
        let counts = !is_neutral && !of_src.without(&of_dst.bounds).bounds.is_empty();
        // A destination that hangs over an edge ends there: what lies beyond it is not changed.
        let lost = known.lost.filter(|_| !is_neutral && of_dst.bounds.is_empty());
        self.count_anyway(lost, span, "this atomic operation");
        let masked = neutral.filter(|_| counts).and_then(|neutral| self.masked_by(src, &known.bounds, neutral, span));
        self.state.remove(&dst.buffer);
        self.with_operand(handle, 1, masked)
    }

    fn reduce(&mut self, handle: Handle<Op>, reduce: Reduce, [dst, src]: [&Tile; 2], span: Span) -> Vec<Stmt> {
        let Reduce { kind, dimensions, clear } = reduce;
        let known = self.kernel.valid_buffer(&self.state, src.buffer);
        let is_neutral = known.is_zero && kind.ignores_zeros();
        let neutral = kind.neutral(self.kernel.buffers[src.buffer].dtype).filter(|_| !is_neutral);
        let moving = self.moving(dst, &known, clear);
        let masked = neutral.and_then(|neutral| self.reduced(src, (&known, dimensions), &moving, (neutral, span)));
        self.results(dst, known.without(&moving), (src, dimensions), (clear, span));
        self.with_operand(handle, 1, masked)
    }

    /// A reduction of tuples: what is invalid becomes the identity, in every source.
    fn reduce_by(&mut self, handle: Handle<Op>, by: ReduceBy, tiles: &[Tile], span: Span) -> Vec<Stmt> {
        let (destinations, sources) = tiles.split_at(by.values);
        let reduced = |masks: &mut Masks, src: &Tile, valid: &Valid, identity| {
            let moving = masks.moving(&destinations[0], valid, by.clear);
            masks.reduced(src, (valid, by.dimensions), &moving, (identity, span))
        };
        let (before, all) = self.masked_tuples(handle, by.combiner, sources, reduced);
        let moving = self.moving(&destinations[0], &all, by.clear);
        for (dst, src) in destinations.iter().zip(sources) {
            let all = Valid { is_zero: false, ..all.without(&moving) };
            self.results(dst, all, (src, by.dimensions), (by.clear, span));
        }
        before
    }

    /// Masks the sources of an op on tuples by the identity. Returns the statements that do it, and where the tuples are valid:
    /// where all of their values are.
    fn masked_tuples(
        &mut self,
        handle: Handle<Op>,
        combiner: Handle<Combiner>,
        sources: &[Tile],
        mask: impl Fn(&mut Masks, &Tile, &Valid, Scalar) -> Option<(Vec<Stmt>, Tile)>,
    ) -> (Vec<Stmt>, Valid) {
        let known = sources.iter().map(|src| self.kernel.valid_buffer(&self.state, src.buffer));
        let all = known.fold(Valid::everywhere(), |all, valid| both(&all, &valid));
        let identity = self.kernel.combiners[combiner].identity.clone();
        let mut before = Vec::new();
        for (at, (src, identity)) in sources.iter().zip(identity).enumerate() {
            let masked = mask(self, src, &all, identity);
            before.extend(self.with_operand(handle, sources.len() + at, masked));
        }
        (before, all)
    }

    /// The source of a reduction with this value where elements that are reduced are invalid, and beyond the bounds that move;
    /// `None` if there are none.
    fn reduced(
        &mut self,
        src: &Tile,
        (known, dimensions): (&Valid, Dimensions),
        moving: &Bounds<usize>,
        (value, span): (Scalar, Span),
    ) -> Option<(Vec<Stmt>, Tile)> {
        let counted = known.bounds.filtered(|sum, _| sum.iter().any(|(at, _)| dimensions.contains(*at))).and(moving);
        self.count_anyway(known.lost, span, "this reduction");
        self.masked_by(src, &counted, value, span)
    }

    /// The bounds of a source that differ between the iterations whose results `dst` collects: rows that are invalid in one
    /// iteration may be valid in others, and must leave these results as they are. None if `dst` is overwritten.
    fn moving(&self, dst: &Tile, known: &Valid, clear: bool) -> Bounds<usize> {
        let storage = self.kernel.storage(dst.buffer);
        let collects = |from: usize| !self.outer[from..].iter().any(|around| around.overwritten.contains(&storage));
        let moves = |limit: &Expr| {
            let mut around = self.outer.iter().enumerate();
            around.any(|(at, around)| limit.mentions(&around.var) && collects(at))
        };
        known.bounds.filtered(|_, limit| !clear && moves(limit))
    }

    /// Records what is valid of the results of a reduction.
    fn results(
        &mut self,
        dst: &Tile,
        known: Valid,
        (src, dimensions): (&Tile, Dimensions),
        (clear, span): (bool, Span),
    ) {
        let left: Vec<usize> =
            (0..src.extents.len()).filter(|at| !dimensions.contains(*at) && src.extents[*at] != 1).collect();
        let bounds = known.bounds.renamed(|at| left.iter().position(|kept| kept == at));
        let earlier = self.state.get(&dst.buffer).cloned();
        self.write(dst, Valid { bounds, ..known }, span);
        self.accumulated(dst.buffer, earlier.filter(|_| !clear));
    }

    /// A scan: what is invalid comes after everything that is valid, unless it goes backwards; but the carry has all of a row.
    /// Returns the statements that mask it, and where its source is valid.
    fn scan(&mut self, handle: Handle<Op>, scan: Scan, [dst, src]: [&Tile; 2], span: Span) -> (Vec<Stmt>, Valid) {
        let Scan { kind, order } = scan;
        let known = self.kernel.valid_buffer(&self.state, src.buffer);
        let is_neutral = known.is_zero && kind.ignores_zeros();
        let dtype = self.kernel.buffers[src.buffer].dtype;
        // The last valid element then has the result of no elements, as the last one of a whole tile has.
        let is_first_result = order.is_exclusive && !order.has_carry;
        let beyond = if is_first_result { kind.start(dtype) } else { kind.neutral(dtype) };
        let moving = self.moving_carries(handle, &known);
        let beyond = beyond.filter(|_| !is_neutral);
        let masked = beyond.and_then(|beyond| self.scanned(src, (&known, order), &moving, (beyond, span)));
        self.running_results(dst, &known, src, span);
        (self.with_operand(handle, 1, masked), known)
    }

    /// A scan of tuples: what is invalid becomes the identity, in every source, if it goes backwards.
    fn scan_by(&mut self, handle: Handle<Op>, by: ScanBy, tiles: &[Tile], span: Span) -> (Vec<Stmt>, Valid) {
        let (destinations, sources) = (&tiles[..by.values], &tiles[by.values..2 * by.values]);
        let scanned = |masks: &mut Masks, src: &Tile, valid: &Valid, identity| {
            let moving = masks.moving_carries(handle, valid);
            masks.scanned(src, (valid, by.order), &moving, (identity, span))
        };
        let (before, all) = self.masked_tuples(handle, by.combiner, sources, scanned);
        destinations.iter().zip(sources).for_each(|(dst, src)| self.running_results(dst, &all, src, span));
        (before, all)
    }

    /// The bounds of the sources of a scan that move between the iterations that its carries go through.
    fn moving_carries(&self, handle: Handle<Op>, known: &Valid) -> Bounds<usize> {
        let carry = self.kernel.ops[handle].carries().first();
        carry.map_or_else(Bounds::default, |carry| self.moving(carry, known, false))
    }

    /// The source of a scan with this value where elements that come before valid ones are invalid, or change a carry, and beyond
    /// the bounds that move; `None` if there are none.
    fn scanned(
        &mut self,
        src: &Tile,
        (known, order): (&Valid, ScanOrder),
        moving: &Bounds<usize>,
        (value, span): (Scalar, Span),
    ) -> Option<(Vec<Stmt>, Tile)> {
        if !order.is_reverse && !order.has_carry {
            return None;
        }
        let counted = known.bounds.filtered(|sum, _| sum.iter().any(|(at, _)| *at == order.dimension)).and(moving);
        self.count_anyway(known.lost, span, "this scan");
        self.masked_by(src, &counted, value, span)
    }

    /// Records what is valid of the results of a scan.
    fn running_results(&mut self, dst: &Tile, known: &Valid, src: &Tile, span: Span) {
        let bounds = known.bounds.renamed(|at| src.non_unit_place(*at));
        self.write(dst, Valid { bounds, is_zero: false, ..known.clone() }, span);
    }

    /// The carries of a scan: each is a result of its row, and what it was takes part in all of the row.
    fn carried(&mut self, op: &Op, (src, order): (&Tile, ScanOrder), known: &Valid) {
        let rows: Vec<usize> =
            (0..src.extents.len()).filter(|at| *at != order.dimension && src.extents[*at] != 1).collect();
        let sources = op.operands.len() - op.carries().len();
        for (carry, dst) in op.carries().iter().zip(&op.operands[..sources / 2]) {
            let earlier = self.kernel.valid_buffer(&self.state, carry.buffer);
            let of_row = |at: &usize| src.non_unit_place(*rows.get(carry.non_unit_place(*at)?)?);
            let bounds = earlier.bounds.renamed(of_row).renamed(|place| dst.dimension_at(*place));
            self.accumulated(dst.buffer, Some(Valid { bounds, ..earlier }));
            let known = Valid { is_zero: false, ..known.without(&self.moving(carry, known, false)) };
            self.results(carry, known, (src, order.dimension.into()), (false, op.span));
        }
    }

    /// A result that was added to what a buffer had is valid where both are.
    fn accumulated(&mut self, buffer: Handle<Buffer>, earlier: Option<Valid>) {
        if let Some(earlier) = earlier {
            let now = self.state.get(&buffer).map_or_else(|| earlier.clone(), |now| both(now, &earlier));
            self.set(buffer, now);
        }
    }

    /// A product: its rows and columns are valid as those of the factors are. Along K, one factor has to be 0 where the other
    /// is invalid, and that one a number.
    fn gemm(&mut self, handle: Handle<Op>, gemm: Gemm, [c, a, b]: [&Tile; 3], span: Span) -> Vec<Stmt> {
        let mut before = Vec::new();
        let (mut outer, mut lost) = (Bounds::default(), None);
        for (place, tile, is_transposed) in [(1, a, gemm.transpose_a), (2, b, gemm.transpose_b)] {
            let dimensions: Vec<usize> = matrix_dimensions(tile);
            let known = self.kernel.valid_buffer(&self.state, tile.buffer);
            self.count_anyway(known.lost.filter(|_| !known.is_zero), span, "this product");
            let (kept, summed) = if (place == 1) == is_transposed { (1, 0) } else { (0, 1) };
            let (kept, summed) = (dimensions.get(kept).copied(), dimensions.get(summed).copied());
            let own = known.bounds.renamed(|at| (Some(*at) == kept).then_some(place - 1));
            lost = lost.or(known.lost);
            match gemm.pair && place == 2 && !own.is_empty() {
                // Where the columns of the other CTA end is not known here.
                true => lost = lost.or(Some(span)),
                false => outer = outer.and(&own),
            }
            let along_k = |sum: &Sum<usize>| sum.iter().any(|(at, _)| Some(*at) == summed);
            if let Some(bound) = known.bounds.iter().find(|(sum, _)| !known.is_zero && along_k(sum)) {
                let zero = zero_of(&self.kernel, tile);
                let masked = self.masked(tile, bound, zero, span);
                before.extend(self.with_operand(handle, place, Some(masked)));
            }
        }
        let valid = Valid { bounds: outer, is_zero: false, lost };
        if c.matrix().is_some() && c.non_unit_extents().len() == 2 {
            let earlier = self.state.get(&c.buffer).cloned().filter(|_| !gemm.clear);
            self.write(c, valid, span);
            self.accumulated(c.buffer, earlier);
        }
        before
    }

    /// Makes a masked tile an operand of an op; the statements that mask it.
    fn with_operand(&mut self, op: Handle<Op>, place: usize, masked: Option<(Vec<Stmt>, Tile)>) -> Vec<Stmt> {
        let Some((before, tile)) = masked else { return Vec::new() };
        if self.changes() {
            self.kernel.ops[op].operands[place] = tile;
        }
        before
    }

    /// The tile masked by each of some bounds, and the statements that do it; `None` if there are no bounds.
    fn masked_by(
        &mut self,
        tile: &Tile,
        bounds: &Bounds<usize>,
        value: Scalar,
        span: Span,
    ) -> Option<(Vec<Stmt>, Tile)> {
        let start = (Vec::new(), tile.clone());
        let masked = bounds.iter().fold(start, |(mut before, tile), bound| {
            let (more, tile) = self.masked(&tile, bound, value, span);
            before.extend(more);
            (before, tile)
        });
        (!bounds.is_empty()).then_some(masked)
    }

    /// A copy of a whole fragment in which the elements beyond a bound have this value; memory is changed where it is.
    fn masked(
        &mut self,
        tile: &Tile,
        (sum, limit): (&Sum<usize>, &Expr),
        value: Scalar,
        span: Span,
    ) -> (Vec<Stmt>, Tile) {
        if !self.changes() {
            return (Vec::new(), tile.clone());
        }
        let buffer = self.kernel.buffers[tile.buffer].clone();
        let vars = self.variables(&tile.non_unit_extents());
        let index = |at: &usize| match tile.non_unit_place(*at) {
            Some(place) => tile.starts[*at].clone() + Expr::var(&vars[place]),
            None => tile.starts[*at].clone(),
        };
        let is_valid = is_below(value_of(sum, index), limit);
        let chosen = [is_valid, Value::Load(tile.access(&vars, span)), constant(value, buffer.dtype)];
        let to = match buffer.space {
            Space::Fragment => {
                let name = self.kernel.free_name(&format!("{}_masked", buffer.name));
                let own = Buffer { name, view_of: None, order: None, span, ..buffer };
                Tile { buffer: self.kernel.buffers.push(own), ..tile.clone() }
            }
            Space::Shared | Space::Global(_) | Space::Tensor => tile.clone(),
        };
        let value = Value::Op(ElementOp::Select, chosen.into());
        let body = vec![ElementStmt::Store { to: to.access(&vars, span), value, claim: Claim::None }];
        let parallel = Parallel { vars, body, layout: None, vector: None, role: self.role, span };
        (vec![Stmt::Parallel(self.kernel.parallels.push(parallel))], to)
    }

    /// Variables for these extents, with names that nothing around has.
    fn variables(&self, extents: &[i64]) -> Vec<Var> {
        let is_taken = |name: &str| {
            let buffer = self.kernel.buffers.iter().any(|(_, buffer)| buffer.name == name);
            let size = self.kernel.sizes.iter().any(|size| size.var.name() == name);
            buffer
                || size
                || self.outer.iter().any(|outer| outer.var.name() == name)
                || self.kernel.scalar_dtype(name).is_some()
        };
        let mut free = (0..).flat_map(|round| {
            ["i", "j", "k", "l"].map(|base| if round == 0 { base.to_string() } else { format!("{base}{round}") })
        });
        let mut name = || free.by_ref().find(|name| !is_taken(name)).unwrap_or_default();
        extents.iter().map(|extent| Var::new(name(), 0, extent - 1)).collect()
    }
}

/// The dimensions of a tile that are the rows and the columns of the matrix that it is.
fn matrix_dimensions(tile: &Tile) -> Vec<usize> {
    let mut dimensions: Vec<usize> = (0..tile.extents.len()).collect();
    while dimensions.len() > 2 {
        let Some(unit) = dimensions.iter().position(|at| tile.extents[*at] == 1) else { break };
        dimensions.remove(unit);
    }
    dimensions
}

/// A number as a value of this dtype; negative ones stand for the unsigned number with the same bits.
fn constant(value: Scalar, dtype: DType) -> Value {
    let is_unsigned = dtype.integers().is_some_and(|(least, _)| least == 0);
    match value {
        Scalar::Int(number) if number < 0 && is_unsigned => {
            Value::Cast(dtype, Narrowing::Wraps, Value::Const(value).into())
        }
        _ => Value::Const(value),
    }
}

fn zero_of(kernel: &Kernel, tile: &Tile) -> Scalar {
    if kernel.buffers[tile.buffer].dtype.is_float() { Scalar::Float(0.0) } else { Scalar::Int(0) }
}
