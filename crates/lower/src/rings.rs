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

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::{Diagnostic, counted, counted_as};
use tilewright_expr::linear::normalize;
use tilewright_expr::{Expr, Var};
use tilewright_ir::plan::{AccessCost, Barrier, MemoryKind, OpPlan, PlanFacts, VariantResult};
use tilewright_ir::thread::{
    Call, Cond, Cursor, EngineWay, Inst, Memory, Program, RegArray, Ring, Stmt, TensorMemory, Unroll, for_each_stmt,
    for_each_stmt_mut,
};
use tilewright_ir::tile::{EngineMove, Hold, Kernel, Role, Side};
use tilewright_ir::{Arena, Counter, Handle, HwIndex, tile};
use tilewright_layout::DType;
use tilewright_layout::access::{AccessKind, LANES};
use tilewright_layout::axis::Scope;

use crate::builder::{Builder, regs};
use crate::conditions::under;
use crate::engine::{OF_A_COPY, OF_AN_ISSUE, barrier_call};
use crate::lagged::lagged;
use crate::pipeline::Team;
use crate::sync::{Block, OpBlock, RequiredBarrier, for_each_op};

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

/// The barriers of a ring, and who arrives at them.
pub(crate) struct BarrierPair {
    /// The plan of the ring.
    plan: usize,
    full: Handle<Memory>,
    pub(crate) empty: Handle<Memory>,
    pub(crate) cursor: Handle<Cursor>,
    /// How each role that produces fills stages.
    producers: BTreeMap<Handle<Role>, Filled>,
    /// How each role that consumes uses stages.
    consumers: BTreeMap<Handle<Role>, Used>,
    /// Whether asynchronous products read the stages.
    is_read_by_products: bool,
    /// Whether a stage has sums in tensor memory.
    has_sums: bool,
}

/// In which ways a role fills stages of a ring. It arrives for each of them in every hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// By the copy engine: one thread arrives, and announces the bytes.
    engine: bool,
    /// By asynchronous copies: each thread arrives when its copies have.
    copies: bool,
    /// By stores: one thread of each warp arrives.
    stores: bool,
    /// By products whose sums are in tensor memory, which arrive when they are done.
    products: bool,
}

/// In which ways a role uses stages of a ring. It arrives for each of them in every hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// By products whose sums are in tensor memory, which arrive when they are done.
    products: bool,
    /// By its threads: one of each warp arrives.
    reads: bool,
}

impl Used {
    /// Whether its threads arrive: also where it does nothing.
    fn threads(self) -> bool {
        self.reads || !self.products
    }

    /// How often a role of so many warps arrives.
    fn arrivals(self, warps: i64) -> i64 {
        i64::from(self.products) + if self.threads() { warps } else { 0 }
    }
}

impl Filled {
    /// Whether one thread of each warp arrives: also where the role does nothing.
    fn threads(self) -> bool {
        self.stores || self == Filled::default()
    }

    /// How often threads of a role of so many warps arrive.
    fn arrivals(self, warps: i64) -> i64 {
        let threads = warps * LANES as i64;
        let each = [(self.engine, 1), (self.copies, threads), (self.threads(), warps), (self.products, 1)];
        each.into_iter().filter(|(is_so, _)| *is_so).map(|(_, arrivals)| arrivals).sum()
    }
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
    /// What the copy engine brings to the stage.
    moves: Vec<EngineMove>,
}

/// The end of a hold.
struct Ended {
    ring: Handle<tile::Ring>,
    role: Handle<Role>,
    side: Side,
    moves: Vec<EngineMove>,
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
            builder.program.tensor_memory = Some(TensorMemory { slot, base, columns: columns.allocated() });
        }
        Rings { all, ..Rings::default() }
    }

    /// The place of the hold of a role in the open ones, if it is one of the ring of a buffer.
    fn open_hold(&self, kernel: &Kernel, role: Option<Handle<Role>>, ring: Handle<tile::Ring>) -> Option<usize> {
        self.open.iter().position(|open| {
            let hold = &kernel.holds[open.hold];
            (hold.ring, hold.role) == (ring, role)
        })
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
        let (mut multiplied, mut read, mut loads) = (BTreeSet::new(), BTreeSet::new(), false);
        let mut multiplies = false;
        for_each_stmt(body, &mut |stmt| {
            let by_tensor_core = matches!(stmt, Stmt::TensorMma(_));
            multiplies |= by_tensor_core;
            loads |= matches!(stmt, Stmt::TensorLoad(_));
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
                Side::Produce => pair.producers.entry(role).or_default().products |= has_sums && multiplies,
                Side::Consume => {
                    let used = pair.consumers.entry(role).or_default();
                    used.products |= uses(&multiplied);
                    used.reads |= uses(&read) || has_sums && loads;
                }
            }
        }
    }

    /// The copy engine brings a tile to the current stage of a ring.
    pub(crate) fn fill_by_engine(
        &mut self,
        kernel: &Kernel,
        (role, ring): (Handle<Role>, Handle<tile::Ring>),
        moved: EngineMove,
    ) {
        if let Some(at) = self.open_hold(kernel, Some(role), ring) {
            self.open[at].moves.push(moved);
            self.all[ring.index()].producers.entry(role).or_default().engine = true;
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
        (handle, plan): (Handle<Hold>, usize),
        title: &str,
    ) -> OpBlock {
        let hold = &kernel.holds[handle];
        self.open.push(OpenHold { hold: handle, plan, moves: Vec::new() });
        self.holds.0.insert(plan, handle);
        let pair = &self.all[hold.ring.index()];
        let cursor = &builder.program.cursors[pair.cursor];
        let phase = Expr::var(&cursor.phase);
        let (barrier, parity, part) = match hold.side {
            Side::Produce => (pair.empty, normalize(&(1 - phase)), "wait for an empty stage"),
            Side::Consume => (pair.full, phase, "wait for a full stage"),
        };
        let mut body = vec![barrier_call(Inst::BarrierWait, (barrier, cursor.at()), Some(parity))];
        if kernel.role_uses_tensor_memory(hold.role) {
            body.push(Stmt::from(Call::plain(Inst::TensorFenceAfter)));
        }
        OpBlock::new(title.to_string(), None, body, plan).part(part).of(kernel.part_of_cta(hold.role))
    }

    /// A role gives a stage back. What it does then is known when all holds are: [`Rings::finish`] writes it.
    pub(crate) fn end(&mut self, kernel: &Kernel, handle: Handle<Hold>) -> Option<OpBlock> {
        let at = self.open.iter().position(|open| open.hold == handle)?;
        let OpenHold { plan, moves, .. } = self.open.remove(at);
        let hold = &kernel.holds[handle];
        let role = hold.role?;
        let part = match hold.side {
            Side::Produce => "fill it, and publish it",
            Side::Consume => "release it",
        };
        self.ended.insert(plan, Ended { ring: hold.ring, role, side: hold.side, moves });
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
        for_each_op(&mut blocks, &mut |op| {
            if !op.body.is_empty() {
                return;
            }
            let Some(Ended { ring, role, side, moves }) = ended.remove(&op.op) else { return };
            let pair = &all[ring.index()];
            op.body = match side {
                Side::Produce => pair.publish(builder, role, &moves),
                Side::Consume => pair.release(builder, role),
            };
            if side == Side::Produce {
                let facts = pair.issue_facts(role, &moves);
                plans[op.op].considered = vec![VariantResult { variant: MBARRIERS, answer: Ok(facts) }];
            }
        });
        for (pair, (_, ring)) in all.iter().zip(kernel.rings.iter()) {
            let facts = PlanFacts::without_accesses(pair.summary(kernel, ring), 0);
            plans[pair.plan].considered = vec![VariantResult { variant: MBARRIERS, answer: Ok(facts) }];
            let payload = ring.buffers.iter().filter(|buffer| !kernel.is_in_tensor_memory(**buffer));
            let payload = payload.map(|buffer| builder.memory(*buffer)).collect();
            let (name, stages) = (ring.name.clone(), ring.stages);
            let consumers = pair.arrivals(&builder.program.roles)[1];
            let ring = Ring { name, payload, stages, full: pair.full, empty: Some(pair.empty), consumers };
            builder.program.rings.push(ring);
        }
        let blocks = lagged(kernel, builder, (&all, &holds), blocks);
        if let (Some(tensor), Some(first)) = (&builder.program.tensor_memory, all.first()) {
            let facts = plans[first.plan].considered.iter_mut().filter_map(|known| known.answer.as_mut().ok());
            facts.for_each(|facts| facts.accesses.push(read_of_address(&builder.program, tensor)));
        }
        let begin = begin_block(kernel, builder, &all, plans);
        let end = end_block(builder, &all, plans);
        (begin.into_iter().map(Block::Op).chain(blocks).chain(end.map(Block::Op)).collect(), holds)
    }
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

/// The block in which one thread initialises the barriers of all rings, and all threads see them.
fn begin_block(kernel: &Kernel, builder: &mut Builder, all: &[BarrierPair], plans: &mut [OpPlan]) -> Option<OpBlock> {
    let first = all.first()?.plan;
    let mut inits = Vec::new();
    for (pair, (_, ring)) in all.iter().zip(kernel.rings.iter()) {
        let [full, empty] = pair.arrivals(&kernel.roles);
        let stage = Var::new(builder.fresh("stage"), 0, ring.stages - 1);
        let at = Expr::var(&stage);
        let init =
            |memory, arrivals| barrier_call(Inst::BarrierInit, (memory, at.clone()), Some(Expr::constant(arrivals)));
        let body = vec![init(pair.full, full), init(pair.empty, empty)];
        inits.push(Stmt::For { counter: Counter::of(stage), unroll: Unroll::Auto, body });
    }
    inits.push(Stmt::from(Call::plain(Inst::BarrierInitFence)));
    let team = Team::of(&builder.program, None);
    let mut body = team.by_first_of(&team, vec![Stmt::Elect { body: inits }]);
    let (sync, what) = team.sync();
    body.push(Stmt::from(Call::plain(sync)));
    let reason = "all threads see the barriers of the rings".to_string();
    plans[first].barriers.push(Barrier { what: what.to_string(), reason });
    let title = plans[first].title.clone();
    if let Some(tensor) = &builder.program.tensor_memory {
        body = with_tensor_memory(builder, tensor, body);
    }
    Some(OpBlock::new(title, None, body, first).part("its barriers begin"))
}

/// Statements that end in a barrier, before which a warp allocates tensor memory and after which all threads know its address.
fn with_tensor_memory(builder: &Builder, tensor: &TensorMemory, mut body: Vec<Stmt>) -> Vec<Stmt> {
    let slot = (tensor.slot, Expr::constant(0));
    let alloc =
        Call { memory: vec![slot], arguments: vec![Expr::constant(tensor.columns)], ..Call::plain(Inst::TensorAlloc) };
    let team = Team::of(&builder.program, None);
    let sync = body.pop();
    body.extend(team.by_first_of(&team, vec![Stmt::from(alloc)]));
    body.push(Stmt::from(Call::plain(Inst::TensorFenceBefore)));
    body.extend(sync);
    body.push(Stmt::from(Call::plain(Inst::TensorFenceAfter)));
    body.push(Stmt::Declare(tensor.base));
    body.push(Stmt::Load { to: regs(tensor.base, 0, 1), memory: tensor.slot, index: Expr::constant(0) });
    body
}

/// What it costs a warp to read where tensor memory begins.
fn read_of_address(program: &Program, tensor: &TensorMemory) -> AccessCost {
    let slot = &program.memories[tensor.slot];
    let width = slot.dtype.bytes();
    AccessCost {
        kind: AccessKind::Load,
        operand: slot.name.clone(),
        memory: MemoryKind::Shared,
        width,
        count: 1,
        passes: 1,
        ideal: 1,
        bytes: width * LANES as i64,
    }
}

/// The block in which the warp that allocated tensor memory frees it, when no thread uses it any more.
fn end_block(builder: &Builder, all: &[BarrierPair], plans: &mut [OpPlan]) -> Option<OpBlock> {
    let tensor = builder.program.tensor_memory?;
    let first = all.first()?.plan;
    let base = regs(tensor.base, 0, 1);
    let free =
        Call { from: vec![base], arguments: vec![Expr::constant(tensor.columns)], ..Call::plain(Inst::TensorDealloc) };
    let team = Team::of(&builder.program, None);
    let (sync, what) = team.sync();
    let mut body = vec![Stmt::from(Call::plain(Inst::TensorFenceBefore)), Stmt::from(Call::plain(sync))];
    body.push(Stmt::from(Call::plain(Inst::TensorFenceAfter)));
    body.extend(team.by_first_of(&team, vec![Stmt::from(free)]));
    let reason = "all roles have finished with tensor memory".to_string();
    plans[first].barriers.push(Barrier { what: what.to_string(), reason });
    Some(OpBlock::new(plans[first].title.clone(), None, body, first).part("tensor memory is freed"))
}

/// The tensor core arrives at a barrier when the products are done that the first warp of a role has issued.
fn by_products(builder: &Builder, role: Handle<Role>, barrier: (Handle<Memory>, Expr)) -> Vec<Stmt> {
    let team = Team::of(&builder.program, Some(role));
    team.by_first_of(&team, vec![Stmt::Elect { body: vec![barrier_call(Inst::TensorCommit, barrier, None)] }])
}

/// Each warp of a role arrives at a barrier, after what its lanes have done.
fn by_each_warp(builder: &Builder, role: Handle<Role>, barrier: (Handle<Memory>, Expr)) -> Vec<Stmt> {
    let arrives = by_one_lane(builder, role, barrier);
    std::iter::once(Stmt::from(Call::plain(Inst::SyncWarp))).chain(arrives).collect()
}

/// Each warp of a role arrives at a barrier, after what its first lane has done.
pub(crate) fn by_one_lane(builder: &Builder, role: Handle<Role>, barrier: (Handle<Memory>, Expr)) -> Vec<Stmt> {
    let threads = builder.program.roles[role].threads();
    let lane = HwIndex::Lane.var(threads, &builder.program.grid);
    let arrive = barrier_call(Inst::BarrierArrive, barrier, None);
    under(&[Cond::Equal(Expr::var(&lane), Expr::constant(0))], vec![arrive])
}

impl BarrierPair {
    fn of(kernel: &Kernel, builder: &mut Builder, plans: &mut Vec<OpPlan>, handle: Handle<tile::Ring>) -> BarrierPair {
        let ring = &kernel.rings[handle];
        let title = ring.span.titled(&format!("ring {}", ring.name));
        let ctas = kernel.grid.iter().fold(Expr::constant(1), |all, extent| all * extent.clone());
        let warps = normalize(&(ctas * kernel.warps()));
        plans.push(OpPlan::new(title, ring.span, warps, MBARRIERS));
        let mut barriers = |what: &str| builder.barriers(&format!("{}_{what}", ring.name), ring.stages, ring.span);
        let (full, empty) = (barriers("full"), barriers("empty"));
        let names = ["stage", "phase"].map(|what| builder.fresh(&format!("{}_{what}", ring.name)));
        let cursor = builder.program.cursors.push(Cursor::new(names, ring.stages));
        let is_consumer = |hold: &&Hold| hold.ring == handle && hold.side == Side::Consume;
        let consumers = kernel.holds.iter().map(|(_, hold)| hold).filter(is_consumer);
        let consumers = consumers.filter_map(|hold| Some((hold.role?, Used::default()))).collect();
        let has_sums = ring.buffers.iter().any(|buffer| kernel.is_in_tensor_memory(*buffer));
        BarrierPair {
            plan: plans.len() - 1,
            full,
            empty,
            cursor,
            producers: BTreeMap::new(),
            consumers,
            is_read_by_products: kernel.is_read_by_products(handle),
            has_sums,
        }
    }

    /// How often threads arrive in a phase: at the full barrier, and at the empty one.
    fn arrivals(&self, roles: &Arena<Role>) -> [i64; 2] {
        let full = self.producers.iter().map(|(role, filled)| filled.arrivals(roles[*role].warps)).sum();
        [full, self.consumers.iter().map(|(role, used)| used.arrivals(roles[*role].warps)).sum()]
    }

    /// The end of a hold of a role that produces: the copies of the engine start, and all that fill stages arrive.
    fn publish(&self, builder: &mut Builder, role: Handle<Role>, moves: &[EngineMove]) -> Vec<Stmt> {
        let filled = self.producers.get(&role).copied().unwrap_or_default();
        let at = builder.program.cursors[self.cursor].at();
        let full = (self.full, at.clone());
        let mut body = Vec::new();
        if filled.engine {
            let bytes: i64 = moves.iter().map(EngineMove::bytes).sum();
            let mut issue = vec![match bytes {
                0 => barrier_call(Inst::BarrierArrive, full.clone(), None),
                _ => barrier_call(Inst::BarrierExpect, full.clone(), Some(Expr::constant(bytes))),
            }];
            for moved in moves {
                let memory = builder.memory(moved.shared);
                let first = moved.place.clone() + &at * builder.program.memories[memory].stage_elements();
                let way = EngineWay::ToShared { full: full.clone() };
                issue.extend(builder.copies(moved, (memory, &first), &way));
            }
            let team = Team::of(&builder.program, Some(role));
            body.extend(team.by_first_of(&team, vec![Stmt::Elect { body: issue }]));
        }
        if filled.copies {
            body.push(barrier_call(Inst::CopyAsyncArrive, full.clone(), None));
        }
        if filled.threads() {
            body.extend(self.is_read_by_products.then(|| Stmt::from(Call::plain(Inst::ProxyFenceShared))));
            body.extend(by_each_warp(builder, role, full.clone()));
        }
        if filled.products {
            body.extend(by_products(builder, role, full));
        }
        body.push(Stmt::Advance(self.cursor));
        body
    }

    /// The end of a hold of a role that consumes: all that uses the stage arrives.
    fn release(&self, builder: &Builder, role: Handle<Role>) -> Vec<Stmt> {
        let used = self.consumers.get(&role).copied().unwrap_or_default();
        let empty = (self.empty, builder.program.cursors[self.cursor].at());
        let mut body = Vec::new();
        if used.products {
            body.extend(by_products(builder, role, empty.clone()));
        }
        if used.threads() {
            body.extend(self.has_sums.then(|| Stmt::from(Call::plain(Inst::TensorFenceBefore))));
            body.extend(by_each_warp(builder, role, empty));
        }
        body.push(Stmt::Advance(self.cursor));
        body
    }

    /// What one thread issues at the end of a hold.
    fn issue_facts(&self, role: Handle<Role>, moves: &[EngineMove]) -> PlanFacts {
        let copies: usize = moves.iter().map(EngineMove::copy_count).sum();
        let bytes: i64 = moves.iter().map(EngineMove::bytes).sum();
        let has_products = self.producers.get(&role).is_some_and(|filled| filled.products);
        let summary = match copies {
            0 if has_products => "full when the products are done".to_string(),
            0 => "threads fill the stage".to_string(),
            _ => format!("one thread issues {} of {bytes} B", counted_as(copies, "copy", "copies")),
        };
        PlanFacts::without_accesses(summary, OF_AN_ISSUE + copies as i64 * OF_A_COPY)
    }

    /// `3 stages of `sa`, `sb`, 16384 B each; full after 1 arrival of `load`, empty after 4 arrivals of `math``
    fn summary(&self, kernel: &Kernel, ring: &tile::Ring) -> String {
        let (sums, shared): (Vec<_>, Vec<_>) =
            ring.buffers.iter().copied().partition(|buffer| kernel.is_in_tensor_memory(*buffer));
        let bytes: i64 = shared.iter().map(|buffer| kernel.stage_bytes(*buffer)).sum();
        let columns: i64 = sums.iter().map(|buffer| kernel.buffers[*buffer].span_elements()).sum();
        let size = match (sums.is_empty(), shared.is_empty()) {
            (true, _) => format!("{bytes} B each"),
            (false, true) => format!("{columns} columns of tensor memory each"),
            (false, false) => format!("{bytes} B and {columns} columns of tensor memory each"),
        };
        let names: Vec<String> =
            ring.buffers.iter().map(|buffer| format!("`{}`", kernel.buffers[*buffer].name)).collect();
        let by = |role: &Handle<Role>, arrivals: i64| {
            format!("{} of `{}`", counted(arrivals, "arrival"), kernel.roles[*role].name)
        };
        let warps = |role: &Handle<Role>| kernel.roles[*role].warps;
        let full: Vec<String> =
            self.producers.iter().map(|(role, filled)| by(role, filled.arrivals(warps(role)))).collect();
        let empty: Vec<String> =
            self.consumers.iter().map(|(role, used)| by(role, used.arrivals(warps(role)))).collect();
        format!(
            "{} of {}, {size}; full after {}, empty after {}",
            counted(ring.stages, "stage"),
            names.join(", "),
            full.join(" and "),
            empty.join(" and ")
        )
    }
}

/// The holds of stages, by their plans.
#[derive(Default)]
pub(crate) struct RingHolds(BTreeMap<usize, Handle<Hold>>);

impl RingHolds {
    /// The hold of a plan.
    pub(crate) fn of(&self, plan: usize) -> Option<Handle<Hold>> {
        self.0.get(&plan).copied()
    }

    /// Errors for barriers of the CTA at which roles of a ring would wait for each other: one has to go through more stages than
    /// there are before it reaches the barrier, and another one begins to use them after it.
    pub(crate) fn blocked(&self, kernel: &Kernel, blocks: &[Block]) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (handle, ring) in kernel.rings.iter() {
            found.extend(self.blocked_by(kernel, blocks, (handle, ring)));
        }
        found
    }

    /// The first such barrier for a ring.
    fn blocked_by(
        &self,
        kernel: &Kernel,
        blocks: &[Block],
        of: (Handle<tile::Ring>, &tile::Ring),
    ) -> Option<Diagnostic> {
        let mut before: Vec<(&Hold, bool)> = Vec::new();
        for block in blocks {
            let mut here = Vec::new();
            self.holds_in(kernel, block, (of.0, false), &mut here);
            let others = |(hold, is_in_loop): &(&Hold, bool)| {
                let is_needed = here.iter().any(|(other, _)| other.role != hold.role);
                (*is_in_loop || of.1.stages < before.len() as i64) && is_needed
            };
            let waits = before.iter().find(|hold| others(hold));
            if let (Some((hold, _)), Some(reasons)) = (waits, barrier_in(block)) {
                let name = &of.1.name;
                let message = format!("the roles of the ring `{name}` wait for each other at a barrier of the CTA");
                let finding = Diagnostic::error("K0285", message)
                    .label(hold.span, format!("the stages of `{name}` are used here, before the barrier"))
                    .note(reasons);
                let help = "let only one role use that memory, or pass it from one role to the other in a ring";
                return Some(finding.help(help));
            }
            before.extend(here);
            let inner = match block {
                Block::Loop(inner) => self.blocked_by(kernel, &inner.body, of),
                Block::Op(_) | Block::If(_) => None,
            };
            if inner.is_some() {
                return inner;
            }
        }
        None
    }

    /// Adds the holds of a ring that are in a block, each with whether it is in a loop there.
    fn holds_in<'a>(
        &self,
        kernel: &'a Kernel,
        block: &Block,
        (ring, is_in_loop): (Handle<tile::Ring>, bool),
        found: &mut Vec<(&'a Hold, bool)>,
    ) {
        match block {
            Block::Op(op) => {
                let hold = self.0.get(&op.op).map(|hold| &kernel.holds[*hold]);
                found.extend(hold.filter(|hold| hold.ring == ring).map(|hold| (hold, is_in_loop)));
            }
            Block::Loop(inner) => inner.body.iter().for_each(|block| self.holds_in(kernel, block, (ring, true), found)),
            Block::If(_) => {}
        }
    }
}

/// Why the first barrier of all threads in a block is there, if there is one.
fn barrier_in(block: &Block) -> Option<String> {
    let of = |barrier: &RequiredBarrier| {
        (barrier.role.is_none() && barrier.scope > Scope::Warp).then(|| barrier.reasons.join("; "))
    };
    match block {
        Block::Op(op) => {
            let is_barrier = |stmt: &Stmt| op.role.is_none() && stmt.orders() > Scope::Warp;
            let own = op.body.iter().any(is_barrier).then(|| format!("`{}` has a barrier of its own", op.title));
            op.barrier.as_ref().and_then(of).or(own)
        }
        Block::Loop(inner) => {
            let before = inner.barrier.as_ref().and_then(|(barrier, _)| of(barrier));
            before.or_else(|| inner.body.iter().find_map(barrier_in))
        }
        Block::If(branches) => {
            let of_branch = |body: &[Block]| body.iter().find_map(barrier_in);
            let first = branches.first.barrier.as_ref().and_then(of);
            first.or_else(|| of_branch(&branches.then.body)).or_else(|| of_branch(&branches.otherwise.body))
        }
    }
}
