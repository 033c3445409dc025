//! Statements that take stages of rings, fill them and use them.

use tilewright_diag::Diagnostic;
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::Handle;
use tilewright_ir::plan::{OpPlan, PlanFacts, Reason, VariantResult};
use tilewright_ir::thread::Reach;
use tilewright_ir::tile::{EngineMove, EngineOffers, Group, Hold, Op, OpKind, PAIR, Parallel, Ring, Role, Side, Tile};

use super::kernel_lowering::KernelLowering;
use crate::engine::facts;
use crate::measure::measure;
use crate::pipeline::{BULK, CP_ASYNC, TMA, asynchronous, unmet};
use crate::rings::{FilledBy, MBARRIERS, StageMove};
use crate::sync::OpBlock;

impl KernelLowering<'_> {
    /// The block in which a role waits for a stage.
    pub(super) fn begin_hold(&mut self, handle: Handle<Hold>) -> OpBlock {
        let kernel = self.kernels.whole();
        let hold = &kernel.holds[handle];
        let title = self.title_in_role(hold.role, &hold.span.titled(&kernel.hold_title(hold)));
        let warps = hold.role.map_or(kernel.warps(), |role| kernel.roles[role].warps);
        self.plans.push(OpPlan::new(title.clone(), hold.span, self.executions_by(warps), MBARRIERS));
        let plan = self.plans.len() - 1;
        self.rings.begin(kernel, &self.builder, (handle, plan, self.depth), &title)
    }

    /// The block in which a role gives a stage back; `None` if it holds none, which no verified kernel does.
    pub(super) fn end_hold(&mut self, handle: Handle<Hold>) -> Option<OpBlock> {
        self.rings.end(self.kernels.whole(), handle, self.claims.as_ref())
    }

    /// The role that produces the current stage of a ring, and that ring, if an op writes to it.
    pub(super) fn stage_filled_by(&self, op: &Op) -> Option<(Handle<Role>, Handle<Ring>)> {
        let written = op.operands.iter().enumerate().filter(|(place, _)| op.effect(*place).writes());
        let ring = written.map(|(_, tile)| tile.buffer).find_map(|buffer| self.kernel.ring_of(buffer))?;
        Some((op.role?, ring))
    }

    /// Notes that threads store to a stage, if a parallel loop does.
    pub(super) fn note_stores_to_stages(&mut self, parallel: &Parallel) {
        let mut rings = Vec::new();
        for element in &parallel.body {
            element.for_each_access(&mut |access, writes| {
                rings.extend(self.kernel.ring_of(access.buffer).filter(|_| writes));
            });
        }
        for (ring, role) in rings.into_iter().filter_map(|ring| Some((ring, parallel.role?))) {
            self.rings.fill_by_threads((role, ring), FilledBy::Stores);
        }
    }

    /// What a role does in its statements happens to the stages that it holds.
    pub(super) fn in_stages(&mut self, role: Option<Handle<Role>>, mut block: OpBlock) -> OpBlock {
        self.rings.note(self.kernels.whole(), &self.builder, role, &block.body);
        self.rings.in_stages(self.kernels.whole(), &self.builder, role, &mut block.body);
        block
    }

    /// The block of an op that fills a part of a stage; `None` if the copy engine does, which starts where the stage is published.
    pub(super) fn fill_of_stage(&mut self, op: &Op) -> Result<Option<OpBlock>, Diagnostic> {
        let Some(of) = self.stage_filled_by(op) else { return self.op(op).map(Some) };
        let op = self.with_variant(op);
        let asked = [CP_ASYNC, BULK, TMA].into_iter().find(|name| op.variant.as_deref() == Some(name));
        let kind = if op.kind == OpKind::CopyAsync { OpKind::Copy } else { op.kind };
        if !op.kind.is_copy() || op.variant.is_some() && asked.is_none() {
            self.rings.fill_by_threads(of, FilledBy::Stores);
            return self.op(&Op { kind, ..op }).map(Some);
        }
        let op = Op { kind, variant: None, ..op };
        let is_of_pair = self.kernel.is_led(of.1, Side::Consume);
        let mut offers = self.stage_offers(&op, of);
        if is_of_pair {
            // Only boxes count at a barrier of the other CTA (PTX ISA, "cp.async.bulk.tensor", `.cta_group::2`).
            let text = "a run of bytes does not count at the barrier of the other CTA of a pair";
            offers.run = Err(Reason::new(text, "boxes of a tensor"));
        }
        let considered: Vec<VariantResult> = [(BULK, &offers.run), (TMA, &offers.boxes)]
            .map(|(variant, offer)| VariantResult {
                variant,
                answer: offer.as_ref().map(facts).map_err(|reason| vec![reason.clone()]),
            })
            .to_vec();
        let engine = match asked {
            None => offers.best().ok(),
            Some(BULK) => offers.run.ok(),
            Some(TMA) => offers.boxes.ok(),
            Some(_) => None,
        };
        if let Some(moved) = engine {
            let moved = self.across_cluster(&op, of.1, moved);
            self.filled_by_engine(&op, (of, asked.is_some()), moved, considered);
            return Ok(None);
        }
        if is_of_pair {
            return Err(self.no_stage_of_pair(&op, of.1, considered));
        }
        // Asynchronous copies arrive without the fence that products need.
        let is_possible = !self.copies_wait(&op) && !self.kernel.is_read_by_products(of.1);
        let by_copies = if is_possible { self.copied_by_threads(&op) } else { None };
        let (block, by) = match by_copies {
            Some(block) => (block, FilledBy::Copies),
            None => (self.op(&op)?, FilledBy::Stores),
        };
        self.rings.fill_by_threads(of, by);
        let plan = &mut self.plans[block.op];
        plan.considered.extend(considered);
        match asked.filter(|asked| plan.chosen != *asked) {
            None => Ok(Some(block)),
            Some(asked) => {
                let reason = Reason::new(
                    "asynchronous copies cannot do it",
                    "vectors of 4, 8 or 16 bytes of tensors that the kernel only reads, for stages that `gemm_async` does not read",
                );
                if asked == CP_ASYNC {
                    plan.considered.push(VariantResult { variant: CP_ASYNC, answer: Err(vec![reason]) });
                }
                Err(unmet(plan, asked))
            }
        }
    }

    /// Whether what a copy reads may change while it is in flight.
    fn copies_wait(&self, op: &Op) -> bool {
        op.source().is_none_or(|src| self.kernel.written().contains(&self.kernel.storage(src.buffer)))
    }

    /// How the copy engine may fill a part of a stage.
    fn stage_offers(&self, op: &Op, (role, ring): (Handle<Role>, Handle<Ring>)) -> EngineOffers {
        if self.rings.depth_of(self.kernels.whole(), (role, ring)) != Some(self.depth) {
            // The copies of a stage start together, where it is published.
            let text = "the copy stands in a loop or a branch inside of the stage";
            return EngineOffers::refused(Reason::new(text, "copies that are executed once for each stage"));
        }
        if !self.kernel.is_from_tensor(op) {
            return EngineOffers::refused(Reason::new("the source is not a tensor", "copies from tensors"));
        }
        if self.copies_wait(op) {
            let text = "the kernel writes the tensor, and a copy of it may be in flight then";
            return EngineOffers::refused(Reason::new(text, "tensors that are only read"));
        }
        self.kernel.engine_copy(op)
    }

    /// The copy engine brings a tile to the current stage.
    fn filled_by_engine(
        &mut self,
        op: &Op,
        (of, is_forced): ((Handle<Role>, Handle<Ring>), bool),
        moved: StageMove,
        considered: Vec<VariantResult>,
    ) {
        let executions = self.executions_by(1);
        let plan = OpPlan::new(self.title(op), op.span, executions, moved.moved.variant());
        self.plans.push(OpPlan { considered, forced: is_forced, ..plan });
        self.rings.fill_by_engine(self.kernels.whole(), of, moved);
    }

    /// What a copy of a stage brings to which CTAs of the cluster: the same part of a tensor, of which each CTA brings a piece to all, or
    /// what is for the CTA itself.
    fn across_cluster(&self, op: &Op, ring: Handle<Ring>, moved: EngineMove) -> StageMove {
        let pair = self.kernel.is_led(ring, Side::Consume).then(|| self.builder.first_of_pair());
        // The CTAs of a pair have the same place in a group of one CTA of each pair only.
        let is_possible = |group: &Group| pair.is_none() || group.step % PAIR == 0;
        let group = self.group(op, ring).filter(is_possible);
        let shared = group.and_then(|group| Some((group, self.piece(op, &group, &moved)?)));
        let first = |group: &Group| normalize(&group.first(&Expr::var(&self.kernel.rank())));
        match (shared, pair) {
            (None, None) => StageMove { moved, reach: Reach::Own },
            (None, Some(pair)) => StageMove { moved, reach: Reach::OfPair { pair } },
            (Some((group, moved)), None) => {
                let reach = Reach::Group { mask: group.mask(), ctas: group.ctas, first: first(&group) };
                StageMove { moved, reach }
            }
            (Some((group, moved)), Some(pair)) => {
                let reach = Reach::OfPairs { mask: group.mask(), ctas: group.ctas, first: first(&group), pair };
                StageMove { moved, reach }
            }
        }
    }

    /// The CTAs of the cluster that copy the same to the same place.
    fn group(&self, op: &Op, ring: Handle<Ring>) -> Option<Group> {
        let kernel = self.kernels.whole();
        let (cluster, rank, of_rank) = (kernel.cluster_ctas(), kernel.rank(), kernel.of_rank());
        let starts = || op.operands.iter().flat_map(|tile| &tile.starts);
        let mut may_differ = false;
        let mut see = |var: &Var| may_differ |= *var != rank && of_rank.contains(var);
        starts().for_each(|start| start.for_each_var(&mut see));
        if cluster < 2 || may_differ || !kernel.is_same_in_cluster(ring) {
            return None;
        }
        Group::of(cluster, |place| starts().map(|start| normalize(&start.with(&rank, place))).collect::<Vec<Expr>>())
    }

    /// The piece of a copy that each CTA of a group brings: some of its rows, or of what its first dimension that can be divided has.
    fn piece(&self, op: &Op, group: &Group, whole: &EngineMove) -> Option<EngineMove> {
        let place = group.place(&Expr::var(&self.kernel.rank()));
        let dimensions = op.operands.first()?.non_unit_extents().len();
        let piece_of = |tile: &Tile, at: usize| {
            let dimension = tile.dimension_at(at)?;
            let mut piece = tile.clone();
            if tile.extents[dimension] % group.ctas != 0 {
                return None;
            }
            piece.extents[dimension] /= group.ctas;
            piece.starts[dimension] = tile.starts[dimension].clone() + place.clone() * piece.extents[dimension];
            (piece.extents[dimension] > 1).then_some(piece)
        };
        (0..dimensions).find_map(|at| {
            let operands = op.operands.iter().map(|tile| piece_of(tile, at)).collect::<Option<Vec<Tile>>>()?;
            let moved = self.kernel.engine_copy(&Op { operands, ..op.clone() }).best().ok()?;
            (moved.bytes() * group.ctas == whole.bytes()).then_some(moved)
        })
    }

    /// The error for a stage of a pair of CTAs that the copy engine cannot fill.
    fn no_stage_of_pair(&self, op: &Op, ring: Handle<Ring>, considered: Vec<VariantResult>) -> Diagnostic {
        let name = &self.kernel.rings[ring].name;
        let message = format!("the copy engine cannot fill the stages of `{name}`, which a pair of CTAs multiplies");
        let finding = Diagnostic::error("K0287", message).label(op.span, "this copy");
        let reasons = considered.into_iter().filter_map(|known| Some((known.variant, known.answer.err()?)));
        let notes = reasons.flat_map(|(variant, why)| {
            why.into_iter().map(move |Reason { text, accepted }| format!("{variant}: {text}; accepted: {accepted}"))
        });
        notes
            .fold(finding, Diagnostic::note)
            .help("change what the notes say, or multiply in each CTA: leave out `pair`")
    }

    /// A copy by asynchronous copies of the threads, if these can do it.
    fn copied_by_threads(&mut self, op: &Op) -> Option<OpBlock> {
        let block = self.vectorized_copy(op.clone())?;
        let body = asynchronous(&self.builder.program, &block.body).ok()?;
        let measured = measure(&self.builder.program, &body, 0, String::new(), i64::MAX);
        let plan = &mut self.plans[block.op];
        let summary = plan.facts().map(|facts| facts.summary.clone()).unwrap_or_default();
        plan.chosen = CP_ASYNC;
        plan.considered.push(VariantResult { variant: CP_ASYNC, answer: Ok(PlanFacts { summary, ..measured }) });
        Some(block.with_body(body))
    }
}
