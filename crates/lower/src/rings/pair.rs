//! The barriers of one ring: who arrives at them, and what a role does where it gives a stage back.

use std::collections::BTreeMap;

use tilewright_diag::{counted, counted_as};
use tilewright_expr::Expr;
use tilewright_ir::plan::{OpPlan, PlanFacts};
use tilewright_ir::thread::{Call, Cond, Cursor, EngineWay, Inst, Memory, Stmt};
use tilewright_ir::tile::{EngineMove, Hold, Kernel, Role, Side};
use tilewright_ir::{Arena, Handle, HwIndex, tile};
use tilewright_layout::access::LANES;

use super::MBARRIERS;
use crate::builder::Builder;
use crate::conditions::under;
use crate::engine::{OF_A_COPY, OF_AN_ISSUE, barrier_call};
use crate::pipeline::Team;

/// The barriers of a ring, and who arrives at them.
pub(crate) struct BarrierPair {
    /// The plan of the ring.
    pub(super) plan: usize,
    pub(super) full: Handle<Memory>,
    pub(crate) empty: Handle<Memory>,
    pub(crate) cursor: Handle<Cursor>,
    /// How each role that produces fills stages.
    pub(super) producers: BTreeMap<Handle<Role>, Filled>,
    /// How each role that consumes uses stages.
    pub(super) consumers: BTreeMap<Handle<Role>, Used>,
    /// Whether asynchronous products read the stages.
    is_read_by_products: bool,
    /// Whether a stage has sums in tensor memory.
    has_sums: bool,
}

/// In which ways a role fills stages of a ring. It arrives for each of them in every hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// By the copy engine: one thread arrives, and announces the bytes.
    pub(super) engine: bool,
    /// By asynchronous copies: each thread arrives when its copies have.
    pub(super) copies: bool,
    /// By stores: one thread of each warp arrives.
    pub(super) stores: bool,
    /// By products whose sums are in tensor memory, which arrive when they are done.
    pub(super) products: bool,
}

/// In which ways a role uses stages of a ring. It arrives for each of them in every hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// By products whose sums are in tensor memory, which arrive when they are done.
    pub(super) products: bool,
    /// By its threads: one of each warp arrives.
    pub(super) reads: bool,
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
    pub(super) fn of(
        kernel: &Kernel,
        builder: &mut Builder,
        plans: &mut Vec<OpPlan>,
        handle: Handle<tile::Ring>,
    ) -> BarrierPair {
        let ring = &kernel.rings[handle];
        let title = ring.span.titled(&format!("ring {}", ring.name));
        let warps = kernel.in_all_ctas(Expr::constant(kernel.warps()));
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
    pub(super) fn arrivals(&self, roles: &Arena<Role>) -> [i64; 2] {
        let full = self.producers.iter().map(|(role, filled)| filled.arrivals(roles[*role].warps)).sum();
        [full, self.consumers.iter().map(|(role, used)| used.arrivals(roles[*role].warps)).sum()]
    }

    /// The end of a hold of a role that produces: the copies of the engine start, and all that fill stages arrive.
    pub(super) fn publish(&self, builder: &mut Builder, role: Handle<Role>, moves: &[EngineMove]) -> Vec<Stmt> {
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
    pub(super) fn release(&self, builder: &Builder, role: Handle<Role>) -> Vec<Stmt> {
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
    pub(super) fn issue_facts(&self, role: Handle<Role>, moves: &[EngineMove]) -> PlanFacts {
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
    pub(super) fn summary(&self, kernel: &Kernel, ring: &tile::Ring) -> String {
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
