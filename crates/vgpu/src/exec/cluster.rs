//! The CTAs of a cluster: they run on the same device at the same time, access each other's shared memory, and have a
//! barrier (PTX ISA, section 9.7.13.3).

use crate::clock::Released;
use crate::exec::access::RegionId;
use crate::exec::barrier::Release;
use crate::exec::cta::Cta;
use crate::exec::machine::Machine;
use crate::exec::warp::{Wait, Warp};
use crate::fault::{ExecResult, FaultKind, RaisedFault};
use crate::isa::Scope;
use crate::lanes::lanes;
use crate::op::ClusterBarrier;

/// The barrier of a cluster, between two completions.
#[derive(Debug, Default)]
pub(crate) struct ClusterState {
    /// Lanes that have arrived, by the rank of their CTA and by warp.
    arrived: Vec<Vec<u32>>,
    /// Lanes that have arrived and not waited since.
    unwaited: Vec<Vec<u32>>,
    /// Lanes that wait: rank, warp and mask.
    waiting: Vec<(usize, u32, u32)>,
    /// What the arrivals bring.
    brought: Option<Released>,
    /// What those who wait for the last completed phase know.
    known: Option<Released>,
}

impl ClusterState {
    pub(crate) fn new(ctas: usize, warps: usize) -> ClusterState {
        let none = vec![vec![0; warps]; ctas];
        ClusterState { arrived: none.clone(), unwaited: none, ..ClusterState::default() }
    }
}

impl Machine<'_> {
    /// The CTA whose shared memory a region is.
    pub(crate) fn owner(&self, id: RegionId) -> &Cta {
        match id {
            RegionId::Peer(rank) => &self.peers[rank as usize],
            RegionId::Shared | RegionId::Local | RegionId::Buffer(_) => &self.cta,
        }
    }

    /// The CTA whose shared memory a region is.
    pub(crate) fn owner_mut(&mut self, id: RegionId) -> &mut Cta {
        match id {
            RegionId::Peer(rank) => &mut self.peers[rank as usize],
            RegionId::Shared | RegionId::Local | RegionId::Buffer(_) => &mut self.cta,
        }
    }

    /// The CTA of a rank.
    fn of_rank(&mut self, rank: usize) -> &mut Cta {
        if rank == self.cta.rank as usize { &mut self.cta } else { &mut self.peers[rank] }
    }

    /// The ranks of a multicast, one bit each.
    pub(crate) fn ranks(&self, value: u64, lane: usize) -> ExecResult<u32> {
        let (ranks, size) = (value as u32 & 0xffff, self.peers.len().max(1));
        if ranks == 0 || ranks >> size != 0 {
            let message = format!("a multicast to the ranks {ranks:#06x} of a cluster of {size}");
            return Err(RaisedFault::new(FaultKind::IllegalInstruction, 1 << lane, message));
        }
        Ok(ranks)
    }

    pub(crate) fn cluster_barrier(&mut self, warp: &mut Warp, exec: u32, op: &ClusterBarrier) -> ExecResult<()> {
        let here = if op.is_aligned { self.gather_alive(warp, exec)? } else { Some(exec) };
        let Some(here) = here else { return Ok(()) };
        match op.waits {
            false => self.arrive_in_cluster(warp, here, op.orders),
            true => self.wait_in_cluster(warp, here, op.orders),
        }
    }

    fn arrive_in_cluster(&mut self, warp: &mut Warp, exec: u32, releases: bool) -> ExecResult<()> {
        let (rank, id) = (self.cta.rank as usize, warp.id as usize);
        if self.cluster.unwaited[rank][id] & exec != 0 {
            let message = "a thread arrives at the barrier of its cluster again before it has waited";
            return Err(RaisedFault::new(FaultKind::BarrierMisuse, exec, message));
        }
        self.cluster.unwaited[rank][id] |= exec;
        self.cluster.arrived[rank][id] |= exec;
        self.effects += 1;
        if self.options.check_races {
            for lane in lanes(exec) {
                // A relaxed arrival brings what the last fence has ordered.
                let released = self.cta.clocks.written(warp.thread(lane), Scope::Cluster, releases);
                let Some(released) = released.filter(|released| released.reaches_cluster()) else { continue };
                let brought = &mut self.cluster.brought;
                *brought = Some(brought.take().map_or(released.clone(), |all| all.joined(&released)));
            }
        }
        warp.pc += 1;
        self.complete_cluster();
        Ok(())
    }

    fn wait_in_cluster(&mut self, warp: &mut Warp, exec: u32, acquires: bool) -> ExecResult<()> {
        let (rank, id) = (self.cta.rank as usize, warp.id as usize);
        if self.cluster.unwaited[rank][id] & exec != exec {
            let message = "a thread waits at the barrier of its cluster before it has arrived";
            return Err(RaisedFault::new(FaultKind::BarrierMisuse, exec, message));
        }
        let incomplete = self.cluster.arrived[rank][id] & exec;
        if incomplete != 0 {
            let pc = warp.pc;
            self.cluster.waiting.push((rank, warp.id, exec));
            warp.block(exec, pc, |_| Wait::Cluster { pc });
            return Ok(());
        }
        self.cluster.unwaited[rank][id] &= !exec;
        if let Some(known) = self.cluster.known.as_ref().filter(|_| acquires) {
            let threads: Vec<u32> = lanes(exec).map(|lane| warp.thread(lane)).collect();
            self.cta.clocks.learn(&threads, known);
        }
        warp.pc += 1;
        Ok(())
    }

    /// Completes the barrier of the cluster if all threads that have not exited have arrived.
    pub(crate) fn complete_cluster(&mut self) {
        let has_arrived = |(rank, arrived): (usize, &Vec<u32>)| {
            let alive = if rank == self.cta.rank as usize { &self.cta.alive } else { &self.peers[rank].alive };
            arrived.iter().zip(alive).all(|(arrived, alive)| alive & !arrived == 0)
        };
        let any = self.cluster.arrived.iter().flatten().any(|mask| *mask != 0);
        if !any || !self.cluster.arrived.iter().enumerate().all(has_arrived) {
            return;
        }
        self.cluster.arrived.iter_mut().flatten().for_each(|mask| *mask = 0);
        self.cluster.known = self.cluster.brought.take();
        for (rank, warp, mask) in std::mem::take(&mut self.cluster.waiting) {
            self.of_rank(rank).released.push(Release::wake(warp, mask));
        }
    }
}
