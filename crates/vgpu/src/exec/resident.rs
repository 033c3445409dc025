//! The clusters of CTAs that are resident at once, and their turns. Without a seed, a cluster runs until it ends or has to
//! wait, and the next one starts only then; a seed starts them in another order and interleaves them.

use std::sync::Arc;

use crate::clock::Flag;
use crate::exec::cluster::ClusterState;
use crate::exec::cta::{Cta, CtaPlace};
use crate::exec::machine::Machine;
use crate::exec::random::Random;
use crate::exec::schedule::Slice;
use crate::exec::warp::{Wait, Warp};
use crate::fault::Fault;
use crate::shadow::Shadow;

/// A cluster that has started and not ended.
pub(super) struct Resident {
    /// By rank.
    ctas: Vec<Cta>,
    /// The warps of each CTA.
    warps: Vec<Vec<Warp>>,
    state: ClusterState,
    /// The choices of its own schedule; `None` without a seed.
    random: Option<Random>,
}

impl Resident {
    fn has_ended(&self) -> bool {
        self.ctas.iter().all(|cta| cta.has_ended)
    }
}

/// The order in which the clusters of a grid start.
#[derive(Default)]
pub(super) struct Starts {
    count: u64,
    next: u64,
    /// The cluster at place `n` is `(first + n * step) % count`; `step` has no divisor in common with `count`.
    first: u64,
    step: u64,
}

impl Starts {
    fn new(count: u32, random: Option<&mut Random>) -> Starts {
        let (first, step) = match random {
            None => (0, 1),
            Some(random) => {
                let mut step = u64::from(random.below(count)).max(1);
                while divisor(step, u64::from(count)) != 1 {
                    step += 1;
                }
                (u64::from(random.below(count)), step)
            }
        };
        Starts { count: u64::from(count), next: 0, first, step }
    }

    /// The linear index of the next cluster.
    pub(super) fn next(&mut self) -> Option<u32> {
        let place = (self.next < self.count).then_some(self.next)?;
        self.next += 1;
        Some(((self.first + place * self.step) % self.count) as u32)
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Machine<'_> {
    /// Runs every CTA of the grid.
    pub(super) fn run_ctas(&mut self, most_resident: u32) -> Result<(), Box<Fault>> {
        let size = self.launch.cluster_size();
        let mut random = (self.options.seed != 0).then(|| Random::new(self.options.seed));
        self.starts = Starts::new(self.completed.ctas / size, random.as_mut());
        let mut resident: Vec<Resident> = Vec::new();
        loop {
            let room = (resident.len() as u32 + 1) * size <= most_resident.max(size);
            let started = if room { self.starts.next() } else { None };
            let has_started = started.is_some();
            resident.extend(started.map(|linear| self.start(linear)));
            if resident.is_empty() {
                return Ok(());
            }
            if let Some(random) = &mut random {
                random.shuffle(&mut resident);
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.timeline.ticks += 1;
            }
            let mut progress = has_started;
            let mut running = Vec::new();
            for mut item in resident {
                progress |= self.run_cluster(&mut item)?;
                if item.has_ended() {
                    self.end_cluster(item);
                } else {
                    running.push(item);
                }
            }
            resident = running;
            if !progress {
                return Err(self.deadlock(&mut resident));
            }
        }
    }

    /// Runs the cluster with a linear index from its start to its end, as if it were the only one.
    pub(super) fn run_alone(&mut self, linear: u32) -> Result<(), Box<Fault>> {
        self.sequence = Flag::default();
        let mut cluster = self.start(linear);
        while !cluster.has_ended() {
            if !self.run_cluster(&mut cluster)? {
                return Err(self.deadlock(&mut [cluster]));
            }
        }
        self.end_cluster(cluster);
        Ok(())
    }

    /// Keeps the registers and shadows of a cluster that has ended: the host is slow to give memory back.
    fn end_cluster(&mut self, cluster: Resident) {
        let shadows = cluster.ctas.into_iter().map(|cta| cta.shared.shadow);
        self.spare_shadows.extend(shadows.map(Shadow::cleared));
        self.spare_registers.extend(cluster.warps.into_iter().flatten().map(|warp| warp.regs));
    }

    /// The index of the first CTA of the cluster with a linear index.
    pub(super) fn first_index(&self, linear: u32) -> [u32; 3] {
        let (grid, extent) = (self.launch.grid, self.launch.cluster);
        let clusters = [grid[0] / extent[0], grid[1] / extent[1]];
        let index = [linear % clusters[0], linear / clusters[0] % clusters[1], linear / clusters[0] / clusters[1]];
        [0, 1, 2].map(|axis| index[axis] * extent[axis])
    }

    /// Starts the cluster with a linear index.
    fn start(&mut self, linear: u32) -> Resident {
        let (grid, extent) = (self.launch.grid, self.launch.cluster);
        let first = self.first_index(linear);
        let size = self.launch.cluster_size();
        let index = |rank: u32| {
            let inside = [rank % extent[0], rank / extent[0] % extent[1], rank / extent[0] / extent[1]];
            [0, 1, 2].map(|axis| first[axis] + inside[axis])
        };
        let number = |[x, y, z]: [u32; 3]| self.first_cta + x + grid[0] * (y + grid[1] * z);
        let cluster: Arc<[u32]> = (0..size).map(|rank| number(index(rank))).collect();
        let known_from = self.known_from;
        let place = |rank: u32| CtaPlace { index: index(rank), rank, cluster: Arc::clone(&cluster), known_from };
        let (program, launch, options) = (self.program, self.launch, self.options);
        let mut ctas: Vec<Cta> = (0..size).map(|rank| Cta::new(program, launch, options, &place(rank))).collect();
        ctas.iter_mut().for_each(|cta| cta.shared.shadow = self.spare_shadows.pop().unwrap_or_default());
        let warps: Vec<Vec<Warp>> = ctas.iter().map(|cta| self.warps_of(cta)).collect();
        let state = ClusterState::new(ctas.len(), warps[0].len());
        let random = (options.seed != 0).then(|| Random::of(options.seed, linear));
        Resident { ctas, warps, state, random }
    }

    /// Gives each CTA of a cluster its turn. Returns whether one of them did something.
    fn run_cluster(&mut self, item: &mut Resident) -> Result<bool, Box<Fault>> {
        let mut order: Vec<usize> = (0..item.ctas.len()).collect();
        let mut progress = false;
        std::mem::swap(&mut self.random, &mut item.random);
        if let Some(random) = self.random.as_mut().filter(|_| order.len() > 1) {
            random.shuffle(&mut order);
        }
        std::mem::swap(&mut self.cluster, &mut item.state);
        std::mem::swap(&mut self.peers, &mut item.ctas);
        for rank in order {
            if self.peers[rank].has_ended {
                continue;
            }
            std::mem::swap(&mut self.cta, &mut self.peers[rank]);
            let slice = self.run_warps(&mut item.warps[rank])?;
            if slice == Slice::Ended {
                self.completed.ended += 1;
                self.cta.has_ended = true;
            }
            progress |= slice != Slice::Blocked;
            std::mem::swap(&mut self.cta, &mut self.peers[rank]);
        }
        std::mem::swap(&mut self.peers, &mut item.ctas);
        std::mem::swap(&mut self.cluster, &mut item.state);
        std::mem::swap(&mut self.random, &mut item.random);
        Ok(progress)
    }

    /// What a deadlock says of the CTAs beside the one that it describes.
    fn other_ctas(&self, resident: &[Resident]) -> String {
        let running = resident.iter().flat_map(|item| &item.ctas).filter(|cta| !cta.has_ended).count();
        let left = self.starts.count.saturating_sub(self.starts.next) * u64::from(self.launch.cluster_size());
        let waiting = match running {
            0 | 1 => String::new(),
            2 => "; another CTA waits too".to_string(),
            count => format!("; {} other CTAs wait too", count - 1),
        };
        let unstarted = match left {
            0 => String::new(),
            1 => "; 1 CTA has not started, since there is no room for it until these have ended".to_string(),
            count => format!("; {count} CTAs have not started, since there is no room for them until these have ended"),
        };
        waiting + &unstarted
    }

    /// The fault of a launch in which no thread can run: that of the first CTA with threads that wait for something else than
    /// the barrier of their cluster, if there is one.
    fn deadlock(&mut self, resident: &mut [Resident]) -> Box<Fault> {
        let all = resident.iter().enumerate().flat_map(|(at, item)| (0..item.ctas.len()).map(move |rank| (at, rank)));
        let key = |(at, rank): &(usize, usize)| {
            let (cta, warps) = (&resident[*at].ctas[*rank], &resident[*at].warps[*rank]);
            let mut waits = warps.iter().flat_map(|warp| warp.waits.iter().flatten());
            let is_loop = warps.iter().any(|warp| warp.ready != 0);
            let is_cause = is_loop || waits.any(|wait| !matches!(wait, Wait::Cluster { .. }));
            (!is_cause, cta.number)
        };
        let (at, rank) =
            all.filter(|(at, rank)| !resident[*at].ctas[*rank].has_ended).min_by_key(key).unwrap_or((0, 0));
        let others = self.other_ctas(resident);
        let item = &mut resident[at];
        std::mem::swap(&mut self.cluster, &mut item.state);
        std::mem::swap(&mut self.peers, &mut item.ctas);
        std::mem::swap(&mut self.cta, &mut self.peers[rank]);
        self.deadlock_fault(&item.warps[rank], &others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cta_starts_once_in_any_order() {
        for (count, seed) in [(1, 1), (7, 2), (60, 3), (1000, 4)] {
            let mut random = Random::new(seed);
            let mut starts = Starts::new(count, Some(&mut random));
            let mut order: Vec<u32> = std::iter::from_fn(|| starts.next()).collect();
            assert!(count < 60 || order != (0..count).collect::<Vec<u32>>());
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<u32>>());
        }
    }
}
