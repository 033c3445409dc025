//! The barriers of one ring: who arrives at them, and what a role does where it gives a stage back.

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, counted, counted_as};
use tilewright_expr::Expr;
use tilewright_expr::linear::normalize;
use tilewright_ir::plan::{OpPlan, PlanFacts};
use tilewright_ir::thread::{Call, Cond, Cursor, EngineWay, Inst, Memory, RESPONSE_BYTES, Reach, Stmt};
use tilewright_ir::tile::{CLAIMED_TILES, Kernel, PAIR, Part, Role, Side};
use tilewright_ir::{Handle, HwIndex, tile};
use tilewright_layout::access::LANES;

use super::turns::Turns;
use super::{MBARRIERS, StageMove};
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
    /// The roles that take turns with others.
    parts: BTreeMap<Handle<Role>, Part>,
    /// The barriers at which they wait for these.
    pub(super) turns: Option<Turns>,
    /// Whether asynchronous products read the stages.
    is_read_by_products: bool,
    /// Whether a stage has sums in tensor memory.
    has_sums: bool,
    /// Where the responses to claims of tiles arrive, if the ring has those.
    pub(super) responses: Option<Handle<Memory>>,
    /// Which CTAs of a cluster use the stages of each other.
    pub(super) across: Across,
}

/// Which CTAs of a cluster use the stages of each other, and so arrive at the barriers of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    /// Each has stages of its own.
    Own,
    /// The copies of one go to others, too: a stage is empty when all CTAs have used it.
    Shared,
    /// The first CTA of a pair multiplies the stages of both: the bytes of both count at its full barrier, and its products arrive at
    /// the empty barriers of both.
    Factors,
    /// The same, and copies of one CTA go to others of other pairs, too: a stage is empty when all pairs have used it.
    Pairs,
    /// The first CTA of a pair writes the sums of both: its products arrive at the full barriers of both, and both arrive at its empty
    /// barrier.
    Sums,
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

/// Each warp of a role arrives at a barrier, after what its first lane has done.
pub(super) fn by_one_lane(builder: &Builder, role: Handle<Role>, arrive: Stmt) -> Vec<Stmt> {
    under(&[Cond::Equal(lane_of(builder, role), Expr::constant(0))], vec![arrive])
}

fn lane_of(builder: &Builder, role: Handle<Role>) -> Expr {
    Expr::var(&HwIndex::Lane.var(builder.program.roles[role].threads(), &builder.program.grid))
}

impl BarrierPair {
    /// Each warp of a role that consumes arrives: a stage is empty.
    pub(crate) fn release_by_warps(&self, builder: &Builder, role: Handle<Role>, stage: Expr) -> Vec<Stmt> {
        let empty = (self.empty, stage);
        let lane = lane_of(builder, role);
        match self.across {
            Across::Own => by_one_lane(builder, role, barrier_call(Inst::BarrierArrive, empty, None)),
            Across::Sums => {
                let of_first = barrier_call(Inst::BarrierArriveAt, empty, Some(builder.first_of_pair()));
                by_one_lane(builder, role, of_first)
            }
            Across::Factors => {
                let there = normalize(&(builder.first_of_pair() + lane.clone()));
                let arrive = barrier_call(Inst::BarrierArriveAt, empty, Some(there));
                under(&[Cond::Less(lane, Expr::constant(PAIR))], vec![arrive])
            }
            Across::Shared | Across::Pairs => {
                // A lane for each CTA.
                let arrive = barrier_call(Inst::BarrierArriveAt, empty, Some(lane.clone()));
                under(&[Cond::Less(lane, Expr::constant(builder.program.cluster))], vec![arrive])
            }
        }
    }

    /// The tensor core arrives at a barrier when the products are done that the first warp of a role has issued: a stage of sums is full,
    /// or one of factors is empty.
    fn by_products(&self, builder: &Builder, (role, side): (Handle<Role>, Side), stage: Expr) -> Vec<Stmt> {
        let barrier = match side {
            Side::Produce => (self.full, stage),
            Side::Consume => (self.empty, stage),
        };
        let all = || Expr::constant((1 << builder.program.cluster) - 1);
        let commit = match (self.across, side) {
            // The sums of a CTA are its own, also where it shares what copies bring to the same stage.
            (Across::Own, _) | (Across::Shared, Side::Produce) => barrier_call(Inst::TensorCommit, barrier, None),
            (Across::Factors | Across::Sums, _) if builder.program.cluster == PAIR => {
                barrier_call(Inst::TensorCommitPair, barrier, None)
            }
            (Across::Factors | Across::Sums, _) => {
                let of_pair = [Expr::constant((1 << PAIR) - 1), builder.first_of_pair()];
                barrier_call(Inst::TensorCommitPairs, barrier, of_pair)
            }
            (Across::Pairs, _) => barrier_call(Inst::TensorCommitPairs, barrier, [all(), Expr::constant(0)]),
            (Across::Shared, Side::Consume) => barrier_call(Inst::TensorCommitCluster, barrier, Some(all())),
        };
        let team = Team::of(&builder.program, Some(role));
        team.by_first_of(&team, vec![Stmt::Elect { body: vec![commit] }])
    }

    pub(super) fn of(
        kernel: &Kernel,
        builder: &mut Builder,
        plans: &mut Vec<OpPlan>,
        handle: Handle<tile::Ring>,
    ) -> BarrierPair {
        let ring = &kernel.rings[handle];
        let what = if ring.is_exchange() { "exchange" } else { "ring" };
        let title = ring.span.titled(&format!("{what} {}", ring.name));
        let warps = kernel.in_all_ctas(Expr::constant(kernel.warps()));
        plans.push(OpPlan::new(title, ring.span, warps, MBARRIERS));
        let mut barriers = |what: &str| builder.barriers(&format!("{}_{what}", ring.name), ring.stages, ring.span);
        let (full, empty) = (barriers("full"), barriers("empty"));
        let names = ["stage", "phase"].map(|what| builder.fresh(&format!("{}_{what}", ring.name)));
        let cursor = builder.program.cursors.push(Cursor::new(names, ring.stages));
        let roles = |side: Side| {
            let holds = kernel.holds.iter().map(|(_, hold)| hold);
            holds.filter(move |hold| (hold.ring, hold.side) == (handle, side)).filter_map(|hold| hold.role)
        };
        // The hardware brings responses, which the role that asked for them reads, too.
        let claiming = || roles(Side::Produce).filter(|_| ring.claims());
        let consumers = roles(Side::Consume).chain(claiming()).map(|role| (role, Used::default())).collect();
        let producers = claiming().map(|role| (role, Filled { engine: true, ..Filled::default() })).collect();
        let responses = ring.claims().then(|| builder.responses(&ring.name, ring.stages, ring.span));
        let has_sums = ring.buffers.iter().any(|buffer| kernel.is_in_tensor_memory(*buffer));
        BarrierPair {
            plan: plans.len() - 1,
            full,
            empty,
            cursor,
            producers,
            consumers,
            parts: kernel.parts(handle),
            turns: Turns::of(kernel, builder, handle),
            is_read_by_products: kernel.is_read_by_products(handle),
            has_sums,
            responses,
            across: match (kernel.is_led(handle, Side::Consume), kernel.is_led(handle, Side::Produce)) {
                (true, _) => Across::Factors,
                (false, true) => Across::Sums,
                (false, false) if ring.claims() && kernel.cluster_ctas() > 1 => Across::Shared,
                (false, false) => Across::Own,
            },
        }
    }

    /// How often threads arrive in a phase: at the full barrier, and at the empty one.
    pub(super) fn arrivals(&self, builder: &Builder) -> [i64; 2] {
        let Builder { program, leading, .. } = builder;
        let full = self.producers.iter().map(|(role, filled)| filled.arrivals(program.roles[*role].warps)).sum();
        let of = |(role, used): (&Handle<Role>, &Used)| {
            // Of those that take turns, one uses a stage.
            if self.parts.get(role).is_some_and(|part| part.index > 0) {
                return 0;
            }
            let ctas = self.releasing_ctas(program.cluster, leading.contains(role));
            ctas * used.arrivals(program.roles[*role].warps)
        };
        [full, self.consumers.iter().map(of).sum()]
    }

    /// The error for roles that take turns, and do not release a stage equally often.
    pub(super) fn uneven(&self, kernel: &Kernel, ring: &tile::Ring) -> Option<Diagnostic> {
        let mut arrivals = self.parts.keys().filter_map(|role| {
            let used = self.consumers.get(role)?;
            Some((role, used.arrivals(kernel.roles[*role].warps)))
        });
        let (first, of_first) = arrivals.next()?;
        let (other, of_other) = arrivals.find(|(_, count)| *count != of_first)?;
        let [one, two] = [first, other].map(|role| &kernel.roles[*role]);
        let message =
            format!("the roles `{}` and `{}` release stages of `{}` in different ways", one.name, two.name, ring.name);
        let finding = Diagnostic::error("K0292", message);
        let by = |count: i64| format!("{} for each stage", counted(count, "arrival"));
        let finding = finding.label(one.span, by(of_first)).label(two.span, by(of_other));
        Some(
            finding.help(
                "roles that take turns have as many warps, and use a stage alike: by products, or by their threads",
            ),
        )
    }

    /// Whether the first warp of a role does all that the role does with a stage: it issues copies or products.
    pub(super) fn is_by_one_warp(&self, role: Handle<Role>, side: Side) -> bool {
        match side {
            Side::Produce => self.producers.get(&role).is_some_and(|filled| !filled.copies && !filled.threads()),
            Side::Consume => self.consumers.get(&role).is_some_and(|used| !used.threads()),
        }
    }

    /// From how many CTAs of a cluster of so many a role releases a stage. It may run in the first CTA of each pair only.
    fn releasing_ctas(&self, cluster: i64, leads: bool) -> i64 {
        match self.across {
            Across::Own | Across::Factors => 1,
            Across::Pairs => cluster / PAIR,
            Across::Shared if leads && self.responses.is_some() => cluster / PAIR,
            Across::Shared => cluster,
            Across::Sums => PAIR,
        }
    }

    /// The end of a hold of a role that produces: the copies of the engine start, and all that fill stages arrive.
    pub(super) fn publish(&self, builder: &mut Builder, role: Handle<Role>, moves: &[StageMove]) -> Vec<Stmt> {
        let filled = self.producers.get(&role).copied().unwrap_or_default();
        let full = (self.full, builder.program.cursors[self.cursor].at());
        let mut body = Vec::new();
        if filled.engine {
            let mut issue = self.announce(builder, moves);
            for StageMove { moved, reach } in moves {
                let memory = builder.memory(moved.shared);
                let first = moved.place.clone() + &full.1 * builder.program.memories[memory].stage_elements();
                let way = EngineWay::ToShared { full: full.clone(), reach: reach.clone() };
                issue.extend(builder.copies(moved, (memory, &first), &way));
            }
            let team = Team::of(&builder.program, Some(role));
            body.extend(team.by_first_of(&team, vec![Stmt::Elect { body: issue }]));
        }
        if filled.copies {
            body.push(barrier_call(Inst::CopyAsyncArrive, full.clone(), None));
        }
        if filled.threads() {
            // Products read what threads have stored, and copies of the same role may overwrite it in another stage.
            let is_seen = self.is_read_by_products || filled.engine;
            body.extend(is_seen.then(|| Stmt::from(Call::plain(Inst::ProxyFenceShared))));
            body.extend(self.has_sums.then(|| Stmt::from(Call::plain(Inst::TensorFenceBefore))));
            body.push(Stmt::from(Call::plain(Inst::SyncWarp)));
            body.extend(by_one_lane(builder, role, barrier_call(Inst::BarrierArrive, full.clone(), None)));
        }
        if filled.products {
            body.extend(self.by_products(builder, (role, Side::Produce), full.1));
        }
        body.push(Stmt::advance(self.cursor));
        body
    }

    /// A thread arrives at the full barrier, and announces the bytes that copies bring there.
    fn announce(&self, builder: &Builder, moves: &[StageMove]) -> Vec<Stmt> {
        let full = (self.full, builder.program.cursors[self.cursor].at());
        let bytes: i64 = moves.iter().map(|StageMove { moved, reach }| moved.bytes() * reach.bringers()).sum();
        let announced = match bytes {
            0 => barrier_call(Inst::BarrierArrive, full, None),
            _ => barrier_call(Inst::BarrierExpect, full, Some(Expr::constant(bytes))),
        };
        match self.across {
            Across::Factors | Across::Pairs => under(&[builder.is_first_of_pair()], vec![announced]),
            Across::Own | Across::Shared | Across::Sums => vec![announced],
        }
    }

    /// The end of a hold of a role that consumes: all that uses the stage arrives.
    pub(super) fn release(&self, builder: &Builder, role: Handle<Role>) -> Vec<Stmt> {
        let used = self.consumers.get(&role).copied().unwrap_or_default();
        let stage = builder.program.cursors[self.cursor].at();
        let mut body = Vec::new();
        if used.products {
            body.extend(self.by_products(builder, (role, Side::Consume), stage.clone()));
        }
        if used.threads() {
            body.extend(self.has_sums.then(|| Stmt::from(Call::plain(Inst::TensorFenceBefore))));
            body.push(Stmt::from(Call::plain(Inst::SyncWarp)));
            body.extend(self.release_by_warps(builder, role, stage));
        }
        body.push(Stmt::advance(self.cursor));
        body
    }

    /// What one thread issues at the end of a hold.
    pub(super) fn issue_facts(&self, role: Handle<Role>, moves: &[StageMove]) -> PlanFacts {
        let copies: usize = moves.iter().map(|of| of.moved.copy_count()).sum();
        let bytes: i64 = moves.iter().map(|of| of.moved.bytes()).sum();
        let ctas = moves.iter().filter_map(|of| match of.reach {
            Reach::Group { ctas, .. } | Reach::OfPairs { ctas, .. } => Some(ctas),
            Reach::Own | Reach::OfPair { .. } => None,
        });
        let shared = ctas.max().map_or(String::new(), |ctas| format!(", up to {ctas} CTAs get them"));
        let has_products = self.producers.get(&role).is_some_and(|filled| filled.products);
        let summary = match copies {
            0 if has_products => "full when the products are done".to_string(),
            0 => "threads fill the stage".to_string(),
            _ => format!("one thread issues {} of {bytes} B{shared}", counted_as(copies, "copy", "copies")),
        };
        PlanFacts::without_accesses(summary, OF_AN_ISSUE + copies as i64 * OF_A_COPY)
    }

    /// `3 stages of `sa`, `sb`, 16384 B each; full after 1 arrival of `load`, empty after 4 arrivals of `math``
    pub(super) fn summary(&self, kernel: &Kernel, ring: &tile::Ring) -> String {
        let (sums, shared): (Vec<_>, Vec<_>) =
            ring.buffers.iter().copied().partition(|buffer| kernel.is_in_tensor_memory(*buffer));
        let bytes: i64 = shared.iter().map(|buffer| kernel.stage_bytes(*buffer)).sum();
        let columns: i64 = sums.iter().map(|buffer| kernel.buffers[*buffer].columns()).sum();
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
        let released = |(role, used): (&Handle<Role>, &Used)| {
            let ctas = self.releasing_ctas(kernel.cluster_ctas(), kernel.leads(*role));
            by(role, ctas * used.arrivals(warps(role)))
        };
        let takes_turns = |(role, _): &(&Handle<Role>, &Used)| self.parts.contains_key(role);
        let (in_turn, always): (Vec<_>, Vec<_>) = self.consumers.iter().partition(takes_turns);
        let in_turn = in_turn.into_iter().map(released).collect::<Vec<_>>().join(" or ");
        let always = always.into_iter().map(released);
        let empty: Vec<String> = always.chain((!in_turn.is_empty()).then_some(in_turn)).collect();
        let across = match self.across {
            Across::Own => "",
            Across::Shared if self.responses.is_some() => {
                "; the first CTA of the cluster claims tiles for all, which release a stage"
            }
            Across::Shared => "; copies go to several CTAs of the cluster, all of which release a stage",
            Across::Factors => "; the first CTA of the pair multiplies the stages of both",
            Across::Pairs => {
                "; the first CTA of each pair multiplies the stages of both, and copies go to several pairs, all of which release a stage"
            }
            Across::Sums => "; the first CTA of the pair computes the sums of both, which both release",
        };
        let (carried, size) = match ring.claims() {
            true => (CLAIMED_TILES.to_string(), format!("{RESPONSE_BYTES} B each")),
            false => (names.join(", "), size),
        };
        format!(
            "{} of {carried}, {size}; full after {}, empty after {}{across}",
            counted(ring.stages, "stage"),
            full.join(" and "),
            empty.join(" and ")
        )
    }
}
