//! A warp: the registers of its lanes, and which of them run next.
//!
//! The lanes at one program counter form a group. Of several groups, the one with the deepest call stack runs, and
//! among those the one with the lowest program counter: lanes that are behind catch up, so that groups merge where
//! control flow reconverges. A group that runs for long while others are ready is set aside for a while, so that a loop
//! that waits for another lane terminates.

use crate::exec::endless::Loops;
use crate::exec::undefined::{Marks, UndefinedLanes, Update};
use crate::lanes::{Lanes, lanes};
use crate::memory::map;
use crate::op::{CollectiveFn, Guard};
use crate::program::{Preset, Program};

/// Number of steps that a group may run while other groups are ready.
const PATIENCE: u32 = 2048;
const DEEPEST: u32 = 1 << 20;

/// What a lane waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For the other members of a warp-wide instruction.
    Collective { pc: u32, members: u32, f: CollectiveFn },
    /// For the rest of the warp, before an aligned instruction.
    Aligned { pc: u32 },
    /// At the barrier of the cluster.
    Cluster { pc: u32 },
    /// For so many columns of tensor memory.
    Columns { pc: u32, columns: u32 },
    /// For so many registers of each thread.
    Registers { pc: u32, count: u32 },
    /// At a barrier of the CTA.
    Barrier { pc: u32, id: u32 },
    /// For a phase of the mbarrier at an address, asleep in `try_wait`.
    Phase { pc: u32, address: u64 },
}

/// The values that presets take in one warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Index of the CTA in the grid.
    pub(crate) cta: [u32; 3],
    /// Number of CTAs of a cluster in each dimension.
    pub(crate) cluster: [u32; 3],
    /// Rank of the CTA in its cluster.
    pub(crate) rank: u32,
    /// Number of warps in the CTA.
    pub(crate) warps: u32,
    /// Address of the dynamic shared memory, in the shared space.
    pub(crate) dynamic_shared: u64,
    /// Size of the dynamic shared memory in bytes.
    pub(crate) dynamic_bytes: u32,
    /// Size of the CTA's shared memory in bytes.
    pub(crate) total_bytes: u32,
    /// Number of the launch's first CTA, which serves as the grid id.
    pub(crate) launch: u32,
}

#[derive(Clone)]
pub(crate) struct Warp {
    pub(crate) id: u32,
    /// By register and lane.
    pub(crate) regs: Vec<Lanes>,
    /// The value of each predicate, one bit per lane.
    pub(crate) preds: Vec<u32>,
    /// The carry flag of each lane.
    pub(crate) carry: u32,
    /// Undefined bits of the registers, predicates and carry flags, if there are any.
    pub(crate) marks: Option<Box<Marks>>,
    /// Next program counter of each lane that is not in the running group.
    pub(crate) pcs: [u32; 32],
    /// Return addresses of each lane.
    pub(crate) stacks: Vec<Vec<u32>>,
    /// Lanes whose sleep in `try_wait` ended without success.
    pub(crate) timed_out: u32,
    /// What each lane waits for, unless it can run.
    pub(crate) waits: [Option<Wait>; 32],
    /// Lanes that exist and have not exited.
    pub(crate) alive: u32,
    /// Lanes that have exited, and where.
    pub(crate) left: u32,
    pub(crate) left_at: [u32; 32],
    /// Lanes that can run.
    pub(crate) ready: u32,
    /// The running group, and its program counter.
    pub(crate) active: u32,
    pub(crate) pc: u32,
    /// Call depth of the running group.
    depth: u32,
    /// The least key of the other ready lanes.
    others: u64,
    /// Steps left before the running group is set aside, if others are ready.
    patience: u32,
    /// Whether a group is favoured over the one with the least key.
    forced: bool,
    /// Keys of the group that was favoured last, and of the group that was set aside for it.
    last_forced: u64,
    set_aside: u64,
    pub(crate) loops: Loops,
}

impl Warp {
    /// A warp at the start of a program; `regs` are those of a warp that has ended, whatever they hold, or none.
    pub(crate) fn new(program: &Program, id: u32, alive: u32, environment: &Environment, mut regs: Vec<Lanes>) -> Warp {
        regs.clear();
        regs.resize(program.registers as usize, [0; 32]);
        for (reg, preset) in &program.presets {
            for (lane, slot) in regs[*reg as usize].iter_mut().enumerate() {
                *slot = preset_value(*preset, id, lane as u32, environment);
            }
        }
        Warp {
            id,
            regs,
            preds: vec![0; program.predicates as usize],
            carry: 0,
            marks: None,
            pcs: [0; 32],
            stacks: vec![Vec::new(); 32],
            timed_out: 0,
            waits: [None; 32],
            alive,
            left: 0,
            left_at: [0; 32],
            ready: alive,
            active: 0,
            pc: 0,
            depth: 0,
            others: u64::MAX,
            patience: PATIENCE,
            forced: false,
            last_forced: 0,
            set_aside: 0,
            loops: Loops::default(),
        }
    }

    /// Whether the warp is where `other` is, with the same lanes ready and in the same turn; the registers are not compared.
    pub(crate) fn is_at(&self, other: &Warp) -> bool {
        let lanes = |warp: &Warp| (warp.alive, warp.ready, warp.active, warp.timed_out, warp.carry);
        let turn = |warp: &Warp| (warp.pc, warp.depth, warp.others, warp.patience, warp.forced);
        let favoured = |warp: &Warp| (warp.last_forced, warp.set_aside);
        (lanes(self), turn(self), favoured(self)) == (lanes(other), turn(other), favoured(other))
            && (&self.preds, self.pcs, &self.stacks, self.waits)
                == (&other.preds, other.pcs, &other.stacks, other.waits)
            && self.marks == other.marks
    }

    /// A copy of the warp that has seen nothing.
    pub(crate) fn without_history(&self) -> Warp {
        Warp { loops: Loops::default(), ..self.clone() }
    }

    /// Linear index of a lane in its CTA.
    pub(crate) fn thread(&self, lane: usize) -> u32 {
        self.id * 32 + lane as u32
    }

    fn key(&self, lane: usize) -> u64 {
        key(self.stacks[lane].len() as u32, self.pcs[lane])
    }

    /// Makes the next group active; false if no lane is ready.
    pub(crate) fn select(&mut self) -> bool {
        if self.ready == 0 {
            return false;
        }
        let best = self.best_key();
        self.active = 0;
        self.others = u64::MAX;
        for lane in lanes(self.ready) {
            let key = self.key(lane);
            if key == best {
                self.active |= 1 << lane;
                self.pc = self.pcs[lane];
                self.depth = self.stacks[lane].len() as u32;
            } else {
                self.others = self.others.min(key);
            }
        }
        true
    }

    fn best_key(&mut self) -> u64 {
        let least = lanes(self.ready).map(|lane| self.key(lane)).min().unwrap_or(0);
        if !self.forced {
            return least;
        }
        let above = |bound: u64| lanes(self.ready).map(|lane| self.key(lane)).filter(|key| *key > bound).min();
        let next = above(self.last_forced.max(self.set_aside)).or(above(self.set_aside)).unwrap_or(least);
        self.last_forced = next;
        next
    }

    /// Puts the running group back among the ready lanes.
    pub(crate) fn park(&mut self) {
        for lane in lanes(self.active) {
            self.pcs[lane] = self.pc;
        }
        self.active = 0;
    }

    /// After a step: parks the running group if another one should run, or if it may merge with another one.
    pub(crate) fn yield_to_others(&mut self) {
        if self.active == 0 || self.others == u64::MAX {
            return;
        }
        self.patience -= 1;
        if self.patience == 0 {
            self.patience = PATIENCE;
            self.forced = !self.forced;
            self.set_aside = key(self.depth, self.pc);
            self.park();
        } else if !self.forced && key(self.depth, self.pc) >= self.others {
            self.park();
        }
    }

    /// Branches: the lanes in `exec` go to `target`, the other lanes of the running group to the next instruction.
    pub(crate) fn branch(&mut self, exec: u32, target: u32) {
        if exec == self.active {
            self.pc = target;
            return;
        }
        let next = self.pc + 1;
        for lane in lanes(self.active) {
            self.pcs[lane] = if exec >> lane & 1 == 1 { target } else { next };
        }
        self.active = 0;
    }

    /// Blocks the lanes in `exec`, which will continue at `resume`; the rest of the group goes to the next instruction.
    pub(crate) fn block(&mut self, exec: u32, resume: u32, wait: impl Fn(usize) -> Wait) {
        self.branch(exec, resume);
        self.park();
        self.ready &= !exec;
        for lane in lanes(exec) {
            self.waits[lane] = Some(wait(lane));
        }
    }

    /// Lets blocked lanes run.
    pub(crate) fn unblock(&mut self, mask: u32) {
        for lane in lanes(mask) {
            self.waits[lane] = None;
        }
        self.ready |= mask;
        self.loops.wake();
        // The running group, if any, is parked so that a group is selected from all ready lanes.
        self.park();
    }

    /// Lanes for which the predicate is true.
    pub(crate) fn guard(&self, guard: Guard) -> u32 {
        let value = self.preds[guard.index as usize];
        if guard.negate { !value } else { value }
    }

    pub(crate) fn set_pred(&mut self, index: u32, exec: u32, value: u32) {
        let slot = &mut self.preds[index as usize];
        *slot = (*slot & !exec) | (value & exec);
        if self.marks.is_some() {
            self.update_marks(exec, vec![Update::Pred(index, Box::<UndefinedLanes>::default())]);
        }
    }

    /// Writes `value` to the register in the lanes of `exec`.
    pub(crate) fn fill(&mut self, reg: u32, exec: u32, value: u64) {
        let slot = &mut self.regs[reg as usize];
        for lane in lanes(exec) {
            slot[lane] = value;
        }
        if self.marks.is_some() {
            self.update_marks(exec, vec![Update::Reg(reg, Box::<UndefinedLanes>::default())]);
        }
    }
}

/// Deeper calls first, then lower program counters.
fn key(depth: u32, pc: u32) -> u64 {
    u64::from(DEEPEST.saturating_sub(depth)) << 32 | u64::from(pc)
}

fn preset_value(preset: Preset, warp: u32, lane: u32, environment: &Environment) -> u64 {
    let [width, height, _] = environment.block.map(|size| size.max(1));
    let thread = warp * 32 + lane;
    let below = (1u64 << lane) - 1;
    let own = 1u64 << lane;
    match preset {
        Preset::Value(value) => value,
        Preset::DynamicShared => environment.dynamic_shared,
        Preset::Tid(axis) => u64::from(axis.of([thread % width, thread / width % height, thread / width / height])),
        Preset::Ntid(axis) => u64::from(axis.of(environment.block)),
        Preset::Ctaid(axis) => u64::from(axis.of(environment.cta)),
        Preset::Nctaid(axis) => u64::from(axis.of(environment.grid)),
        Preset::Shared(address) => (map::shared_start(environment.rank) - map::SHARED_START) + address,
        Preset::ClusterId(axis) => u64::from(axis.of(environment.cta) / axis.of(environment.cluster)),
        Preset::ClusterCount(axis) => u64::from(axis.of(environment.grid) / axis.of(environment.cluster)),
        Preset::ClusterCta(axis) => u64::from(axis.of(environment.cta) % axis.of(environment.cluster)),
        Preset::ClusterSize(axis) => u64::from(axis.of(environment.cluster)),
        Preset::ClusterRank => u64::from(environment.rank),
        Preset::ClusterRanks => environment.cluster.iter().map(|size| u64::from(*size)).product(),
        Preset::LaneId => u64::from(lane),
        Preset::WarpId => u64::from(warp),
        Preset::WarpCount => u64::from(environment.warps),
        Preset::LaneMaskEq => own,
        Preset::LaneMaskLt => below,
        Preset::LaneMaskLe => below | own,
        Preset::LaneMaskGt => u64::from(u32::MAX) & !(below | own),
        Preset::LaneMaskGe => u64::from(u32::MAX) & !below,
        Preset::DynamicSharedBytes => u64::from(environment.dynamic_bytes),
        Preset::TotalSharedBytes => u64::from(environment.total_bytes),
        Preset::GridId => u64::from(environment.launch),
    }
}
