//! Rings between roles: how the stages are filled, and the barriers that order those who fill and those who use them.
//!
//! Each ring has two barriers for a stage (PTX ISA, "mbarrier"). For a ring of 3 stages that one role fills by the copy engine:
//!
//! ```text
//! once:      initialise the barriers; all threads of the CTA see them
//! producer:  wait until stage s is empty; one thread: announce bytes, start the copies; s = (s + 1) % 3
//! consumer:  wait until stage s is full; use it; each warp arrives: it is empty; s = (s + 1) % 3
//! ```
//!
//! Every warp counts for itself where it is ([`Cursor`]). A phase of the full barrier ends when all producers have arrived and all
//! bytes are there, one of the empty barrier when all warps that consume have arrived. What a role does to a stage decides how it
//! arrives, the same way in each of its holds ([`Filled`]).

mod claims;
mod drains;
mod holds;
mod lifetime;
mod pair;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::Diagnostic;
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{OpPlan, PlanFacts, VariantResult};
use tilewright_ir::thread::{
    Call, Cursor, Inst, Memory, Reach, RegArray, Ring, Stmt, TensorMemory, for_each_stmt, for_each_stmt_mut,
};
use tilewright_ir::tile::{EngineMove, Hold, Kernel, Role, Side};
use tilewright_ir::{Handle, tile};
use tilewright_layout::DType;

use self::drains::drains;
pub(crate) use self::holds::RingHolds;
use self::lifetime::{begin_block, end_block, read_of_address};
use self::pair::Across;
pub(crate) use self::pair::BarrierPair;
use self::turns::with_turns;
use crate::builder::Builder;
use crate::engine::barrier_call;
use crate::lagged::lagged;
use crate::pipeline::Team;
use crate::sync::{Block, OpBlock, for_each_op};

/// The name of what orders the stages of a ring, in its plan and in those of its holds.
pub(crate) const MBARRIERS: &str = "mbarriers";

/// The rings of a kernel while it is lowered.
#[derive(Default)]
pub(crate) struct Rings {
    all: Vec<BarrierPair>,
    /// The stages that roles hold where the walk is.
    open: Vec<OpenHold>,
    /// The ends of holds, by the plans of these.
    ended: BTreeMap<usize, Ended>,
    holds: RingHolds,
}

/// How an op fills a part of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilledBy {
    /// By asynchronous copies of threads.
    Copies,
    /// By stores.
    Stores,
}

/// A stage that a role holds.
struct OpenHold {
    hold: Handle<Hold>,
    plan: usize,
    /// Loops and branches around its beginning.
    depth: usize,
    /// What the copy engine brings to the stage.
    moves: Vec<StageMove>,
}

/// The end of a hold.
struct Ended {
    ring: Handle<tile::Ring>,
    role: Handle<Role>,
    side: Side,
    moves: Vec<StageMove>,
    /// The next tile of the loop that it ends an iteration of.
    next: Option<NextTile>,
}

/// The register for the next tile of a loop whose tiles are claimed, and the end of the loop.
pub(crate) type NextTile = (Handle<RegArray>, Expr);

/// What the copy engine brings to a stage, and to which CTAs.
#[derive(Clone, Debug)]
pub(crate) struct StageMove {
    pub(crate) moved: EngineMove,
    pub(crate) reach: Reach,
}

impl Rings {
    /// The rings of a kernel: their stages, barriers and cursors. Each has a plan.
    pub(crate) fn of(kernel: &Kernel, builder: &mut Builder, plans: &mut Vec<OpPlan>) -> Rings {
        let all: Vec<BarrierPair> =
            kernel.rings.iter().map(|(handle, _)| BarrierPair::of(kernel, builder, plans, handle)).collect();
        let columns = kernel.tensor_columns();
        if let (true, Some((_, ring))) = (columns.taken > 0, kernel.rings.iter().next()) {
            let slot = builder.tensor_slot(ring.span);
            let base = RegArray { name: builder.fresh("tensor_base"), dtype: DType::U32, len: 1, vector: 1 };
            let base = builder.program.registers.push(base);
            let is_of_pair = kernel.ops.iter().any(|(_, op)| Kernel::is_of_pair(op));
            let columns = columns.allocated();
            builder.program.tensor_memory = Some(TensorMemory { slot, base, columns, is_of_pair });
        }
        Rings { all, ..Rings::default() }
    }

    /// Where warps are in a ring, and its plan.
    pub(crate) fn cursor_of(&self, ring: Handle<tile::Ring>) -> (Handle<Cursor>, usize) {
        let pair = &self.all[ring.index()];
        (pair.cursor, pair.plan)
    }

    /// The error for roles that use a ring in turns, and do not release a stage equally often.
    pub(crate) fn uneven(&self, kernel: &Kernel) -> Vec<Diagnostic> {
        self.all.iter().zip(kernel.rings.iter()).filter_map(|(pair, (_, ring))| pair.uneven(kernel, ring)).collect()
    }

    /// The place of the hold of a role in the open ones, if it is one of the ring of a buffer.
    fn open_hold(&self, kernel: &Kernel, role: Option<Handle<Role>>, ring: Handle<tile::Ring>) -> Option<usize> {
        self.open.iter().position(|open| {
            let hold = &kernel.holds[open.hold];
            (hold.ring, hold.role) == (ring, role)
        })
    }

    /// How many loops and branches are around the beginning of the hold of a role.
    pub(crate) fn depth_of(&self, kernel: &Kernel, (role, ring): (Handle<Role>, Handle<tile::Ring>)) -> Option<usize> {
        self.open_hold(kernel, Some(role), ring).map(|at| self.open[at].depth)
    }

    /// The stage of a ring that a role holds.
    pub(crate) fn stage_of(
        &self,
        kernel: &Kernel,
        builder: &Builder,
        (role, ring): (Option<Handle<Role>>, Handle<tile::Ring>),
    ) -> Option<Expr> {
        self.open_hold(kernel, role, ring)?;
        Some(builder.program.cursors[self.all[ring.index()].cursor].at())
    }

    /// Notes what statements of a role do to the stages that it holds.
    pub(crate) fn note(&mut self, kernel: &Kernel, builder: &Builder, role: Option<Handle<Role>>, body: &[Stmt]) {
        let Some(role) = role else { return };
        let (mut multiplied, mut read, mut moves_sums) = (BTreeSet::new(), BTreeSet::new(), false);
        let mut multiplies = false;
        for_each_stmt(body, &mut |stmt| {
            let by_tensor_core = matches!(stmt, Stmt::TensorMma(_));
            multiplies |= by_tensor_core;
            moves_sums |= matches!(stmt, Stmt::TensorMove(_));
            let into = if by_tensor_core { &mut multiplied } else { &mut read };
            into.extend(stmt.accesses().map(|access| builder.program.owner(access.memory)));
        });
        for hold in self.open.iter().map(|open| &kernel.holds[open.hold]).filter(|hold| hold.role == Some(role)) {
            let uses = |memories: &BTreeSet<Handle<Memory>>| {
                shared_memories(kernel, builder, hold.ring).any(|memory| memories.contains(&memory))
            };
            let has_sums = kernel.rings[hold.ring].buffers.iter().any(|buffer| kernel.is_in_tensor_memory(*buffer));
            let pair = &mut self.all[hold.ring.index()];
            match hold.side {
                Side::Produce => {
                    let filled = pair.producers.entry(role).or_default();
                    filled.products |= has_sums && multiplies;
                    filled.stores |= has_sums && moves_sums;
                }
                Side::Consume => {
                    let used = pair.consumers.entry(role).or_default();
                    used.products |= uses(&multiplied) || has_sums && multiplies;
                    used.reads |= uses(&read) || has_sums && moves_sums;
                }
            }
        }
    }

    /// The copy engine brings a tile to the current stage of a ring.
    pub(crate) fn fill_by_engine(
        &mut self,
        kernel: &Kernel,
        (role, ring): (Handle<Role>, Handle<tile::Ring>),
        moved: StageMove,
    ) {
        let across = match &moved.reach {
            Reach::Own | Reach::OfPair { .. } => None,
            Reach::Group { .. } => Some(Across::Shared),
            Reach::OfPairs { .. } => Some(Across::Pairs),
        };
        if let Some(at) = self.open_hold(kernel, Some(role), ring) {
            self.open[at].moves.push(moved);
            let pair = &mut self.all[ring.index()];
            pair.producers.entry(role).or_default().engine = true;
            pair.across = across.unwrap_or(pair.across);
        }
    }

    /// Threads of a role fill a part of the current stage of a ring.
    pub(crate) fn fill_by_threads(&mut self, (role, ring): (Handle<Role>, Handle<tile::Ring>), by: FilledBy) {
        let filled = self.all[ring.index()].producers.entry(role).or_default();
        match by {
            FilledBy::Copies => filled.copies = true,
            FilledBy::Stores => filled.stores = true,
        }
    }

    /// Moves the accesses of a role to stages that it holds.
    pub(crate) fn in_stages(&self, kernel: &Kernel, builder: &Builder, role: Option<Handle<Role>>, body: &mut [Stmt]) {
        let program = &builder.program;
        let mut stages: BTreeMap<Handle<Memory>, Expr> = BTreeMap::new();
        for hold in self.open.iter().map(|open| &kernel.holds[open.hold]).filter(|hold| hold.role == role) {
            let at = program.cursors[self.all[hold.ring.index()].cursor].at();
            stages.extend(shared_memories(kernel, builder, hold.ring).map(|memory| (memory, at.clone())));
        }
        if stages.is_empty() {
            return;
        }
        for_each_stmt_mut(body, &mut |stmt| {
            stmt.for_each_place_mut(&mut |memory, index| {
                if let Some(stage) = stages.get(&program.owner(memory)) {
                    *index = normalize(&(stage * program.memories[memory].stage_elements() + index.clone()));
                }
            });
        });
    }

    /// A role takes the next stage: the block that waits for it. The plan of the hold has this place.
    pub(crate) fn begin(
        &mut self,
        kernel: &Kernel,
        builder: &Builder,
        (handle, plan, depth): (Handle<Hold>, usize, usize),
        title: &str,
    ) -> OpBlock {
        let hold = &kernel.holds[handle];
        self.open.push(OpenHold { hold: handle, plan, depth, moves: Vec::new() });
        self.holds.note(plan, handle);
        let pair = &self.all[hold.ring.index()];
        let cursor = &builder.program.cursors[pair.cursor];
        let phase = Expr::var(&cursor.phase);
        let (barrier, parity, part) = match hold.side {
            Side::Produce => (pair.empty, normalize(&(1 - phase)), "wait for an empty stage"),
            Side::Consume => (pair.full, phase, "wait for a full stage"),
        };
        let mut body = vec![barrier_call(Inst::BarrierWait, (barrier, cursor.at()), Some(parity))];
        if pair.responses.is_none() && kernel.role_uses_tensor_memory(hold.role) {
            body.push(Stmt::from(Call::plain(Inst::TensorFenceAfter)));
        }
        OpBlock::new(title.to_string(), None, body, plan).part(part).of(kernel.part_of_cta(hold.role))
    }

    /// A role gives a stage back. What it does then is known when all holds are: [`Rings::finish`] writes it.
    pub(crate) fn end(&mut self, kernel: &Kernel, handle: Handle<Hold>, next: Option<&NextTile>) -> Option<OpBlock> {
        let at = self.open.iter().position(|open| open.hold == handle)?;
        let OpenHold { plan, moves, .. } = self.open.remove(at);
        let hold = &kernel.holds[handle];
        let role = hold.role?;
        let next = next.filter(|_| kernel.rings[hold.ring].claims()).cloned();
        let part = match (hold.side, &next) {
            (Side::Produce, None) => "fill it, and publish it",
            (Side::Consume, None) => "release it",
            (Side::Produce, Some(_)) => "claim the next tile",
            (Side::Consume, Some(_)) => "go on with the next tile",
        };
        self.ended.insert(plan, Ended { ring: hold.ring, role, side: hold.side, moves, next });
        let body = Vec::new();
        Some(OpBlock::new(kernel.hold_title(hold), None, body, plan).part(part).of(kernel.part_of_cta(Some(role))))
    }

    /// Writes what the holds that produce do at their ends, and the block in which the barriers of all rings begin.
    pub(crate) fn finish(
        self,
        kernel: &Kernel,
        builder: &mut Builder,
        plans: &mut [OpPlan],
        mut blocks: Vec<Block>,
    ) -> (Vec<Block>, RingHolds) {
        let Rings { all, mut ended, holds, .. } = self;
        // Where one warp of a role does all that is done with a stage, the others are not counted: they must not wait, since the stage
        // may be filled and used twice before they look.
        let of_one_warp: BTreeMap<usize, Handle<Role>> = ended
            .iter()
            .filter(|(_, ended)| all[ended.ring.index()].is_by_one_warp(ended.role, ended.side))
            .map(|(plan, ended)| (*plan, ended.role))
            .collect();
        for_each_op(&mut blocks, &mut |op| {
            if !op.body.is_empty() {
                if let Some(role) = of_one_warp.get(&op.op) {
                    op.body = waits_by_first_warp(builder, *role, std::mem::take(&mut op.body));
                }
                return;
            }
            let Some(Ended { ring, role, side, moves, next }) = ended.remove(&op.op) else { return };
            let pair = &all[ring.index()];
            op.body = match (side, &next) {
                (Side::Produce, None) => pair.publish(builder, role, &moves),
                (Side::Consume, None) => pair.release(builder, role),
                (Side::Produce, Some(next)) => pair.claim(builder, role, next),
                (Side::Consume, Some(next)) => pair.take_claimed(builder, role, next),
            };
            let facts = match (side, &next) {
                (_, Some(next)) => Some(pair.claim_facts(builder, next, side)),
                (Side::Produce, None) => Some(pair.issue_facts(role, &moves)),
                (Side::Consume, None) => None,
            };
            if let Some(facts) = facts {
                plans[op.op].considered = vec![VariantResult { variant: MBARRIERS, answer: Ok(facts) }];
            }
        });
        for (pair, (handle, ring)) in all.iter().zip(kernel.rings.iter()) {
            let facts = PlanFacts::without_accesses(pair.summary(kernel, ring), 0);
            plans[pair.plan].considered = vec![VariantResult { variant: MBARRIERS, answer: Ok(facts) }];
            let payload = shared_memories(kernel, builder, handle).chain(pair.responses).collect();
            let (name, stages) = (ring.name.clone(), ring.stages);
            let consumers = pair.arrivals(builder)[1];
            let ring = Ring { name, payload, stages, full: pair.full, empty: Some(pair.empty), consumers };
            builder.program.rings.push(ring);
            builder.program.rings.extend(pair.turns.map(|turns| turns.ring(&kernel.rings[handle].name)));
        }
        let blocks = lagged(kernel, builder, (&all, &holds), blocks);
        let mut blocks = with_turns(builder, &all, blocks);
        for_each_op(&mut blocks, &mut |op| wait_for_clusters(&all, &mut op.body));
        if let (Some(tensor), Some(first)) = (&builder.program.tensor_memory, all.first()) {
            let facts = plans[first.plan].considered.iter_mut().filter_map(|known| known.answer.as_mut().ok());
            facts.for_each(|facts| facts.accesses.push(read_of_address(&builder.program, tensor)));
        }
        let mut drains = drains(kernel, builder, &all, plans);
        drains.iter_mut().for_each(|op| wait_for_clusters(&all, &mut op.body));
        let begin = begin_block(kernel, builder, &all, plans);
        let end = end_block(builder, &all, plans);
        let ends = drains.into_iter().chain(end).map(Block::Op);
        (begin.into_iter().map(Block::Op).chain(blocks).chain(ends).collect(), holds)
    }
}

/// The statements, of which waits at barriers are executed by the first warp of a role only.
fn waits_by_first_warp(builder: &Builder, role: Handle<Role>, body: Vec<Stmt>) -> Vec<Stmt> {
    let team = Team::of(&builder.program, Some(role));
    let is_wait = |stmt: &Stmt| matches!(stmt, Stmt::Inst(call) if call.inst == Inst::BarrierWait);
    let of_warp = |stmt: Stmt| if is_wait(&stmt) { team.by_first_of(&team, vec![stmt]) } else { vec![stmt] };
    body.into_iter().flat_map(of_warp).collect()
}

/// Where other CTAs of the cluster arrive, waits are for what these have done.
fn wait_for_clusters(all: &[BarrierPair], body: &mut [Stmt]) {
    let is_of_cluster = |memory: Handle<Memory>| {
        all.iter().any(|pair| pair.across != Across::Own && [pair.full, pair.empty].contains(&memory))
    };
    for_each_stmt_mut(body, &mut |stmt| {
        if let Stmt::Inst(call) = stmt
            && call.inst == Inst::BarrierWait
            && call.memory.iter().any(|(memory, _)| is_of_cluster(*memory))
        {
            call.inst = Inst::BarrierWaitCluster;
        }
    });
}

/// The memories in shared memory that a stage of a ring carries.
fn shared_memories<'a>(
    kernel: &'a Kernel,
    builder: &'a Builder,
    ring: Handle<tile::Ring>,
) -> impl Iterator<Item = Handle<Memory>> + 'a {
    let buffers = kernel.rings[ring].buffers.iter().filter(|buffer| !kernel.is_in_tensor_memory(**buffer));
    buffers.map(|buffer| builder.memory(*buffer))
}
