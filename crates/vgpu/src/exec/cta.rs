//! A CTA: its shared and local memory, its barriers and its clocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::{Agent, Clocks, Cluster};
use crate::exec::barrier::{Barrier, Release};
use crate::exec::bulk::{Bulk, Groups};
use crate::exec::copy::Copies;
use crate::exec::mbarrier::Mbarrier;
use crate::exec::registers::RegisterPool;
use crate::exec::tensor::Tensor;
use crate::exec::warpgroup::Products;
use crate::launch::{Launch, Options};
use crate::memory::Region;
use crate::program::Program;
use crate::shadow::RecentRecords;

/// Where a CTA is.
#[derive(Clone, Debug)]
pub(crate) struct CtaPlace {
    /// Index in the grid.
    pub(crate) index: [u32; 3],
    /// Rank in its cluster.
    pub(crate) rank: u32,
    /// Numbers of the CTAs of its cluster, by rank.
    pub(crate) cluster: Arc<[u32]>,
    /// What the CTAs with smaller numbers did is known to all threads from the start.
    pub(crate) known_from: u32,
}

/// What the threads of one CTA share, and their local memory.
pub(crate) struct Cta {
    /// Number of the CTA, counted over all launches on the memory, from 1.
    pub(crate) number: u32,
    /// Index in the grid.
    pub(crate) index: [u32; 3],
    /// Rank in its cluster.
    pub(crate) rank: u32,
    /// Numbers of the CTAs of its cluster, by rank.
    pub(crate) cluster: Arc<[u32]>,
    /// All its threads have exited.
    pub(crate) has_ended: bool,
    pub(crate) shared: Region,
    /// Bytes of shared memory that may be written: without those after the last variable, if that ends it.
    pub(crate) writable_shared: usize,
    /// The local memory of all threads, one after another.
    pub(crate) local: Region,
    /// Vector clocks of the threads.
    pub(crate) clocks: Clocks,
    /// The last records of the accesses of each warp.
    pub(crate) recent: Vec<RecentRecords>,
    /// The last records of the accesses of its copies.
    pub(crate) recent_of_copies: RecentRecords,
    /// Bulk copies that have started.
    pub(crate) engine: Vec<Bulk>,
    /// The groups of bulk copies of each thread that has started some.
    pub(crate) groups: BTreeMap<u32, Groups>,
    /// Its tensor memory.
    pub(crate) tensor: Tensor,
    /// The products of each warp.
    products: Vec<Products>,
    /// The agent of a cancellation for which there was no cluster left.
    pub(crate) canceled_nothing: Option<Agent>,
    /// Number of the next agent of bulk copies.
    pub(crate) next_agent: u32,
    /// The copies of each warp that its threads have started.
    pub(crate) copies: Vec<Copies>,
    pub(crate) registers: RegisterPool,
    /// The sixteen barriers, by id.
    pub(crate) barriers: Vec<Barrier>,
    /// The mbarrier objects, by their offset in shared memory.
    pub(crate) mbarriers: BTreeMap<usize, Mbarrier>,
    /// Lanes that have not exited, by warp.
    pub(crate) alive: Vec<u32>,
    /// Lanes released by barriers but not yet woken.
    pub(crate) released: Vec<Release>,
    /// Warp instructions executed so far, which is also what the clocks show.
    pub(crate) steps: u64,
    /// Thread instructions (instructions times active lanes) executed so far.
    pub(crate) executed: u64,
    /// Limit on `executed`.
    pub(crate) limit: u64,
}

impl Cta {
    pub(crate) fn new(program: &Program, launch: &Launch, options: &Options, place: &CtaPlace) -> Cta {
        let CtaPlace { index, rank, cluster, known_from } = place;
        let number = cluster[*rank as usize];
        let threads: u32 = launch.block.iter().product();
        let warps = threads.div_ceil(32);
        let alive: Vec<u32> = (0..warps).map(|warp| first_lanes(threads - warp * 32)).collect();
        let mut clocks = Clocks::new(Cluster { own: number, all: Arc::clone(cluster) }, warps * 32);
        clocks.know_launches(*known_from);
        let shared_bytes = program.dynamic_shared_offset() + u64::from(launch.dynamic_shared_bytes);
        let writable_shared = match launch.dynamic_shared_bytes {
            0 => program.static_shared_bytes as usize,
            _ => shared_bytes as usize,
        };
        Cta {
            number,
            index: *index,
            rank: *rank,
            cluster: Arc::clone(cluster),
            has_ended: false,
            shared: Region::poison(shared_bytes as usize),
            writable_shared,
            local: Region::poison(program.local_bytes as usize * warps as usize * 32),
            clocks,
            recent: vec![RecentRecords::new(); warps as usize],
            recent_of_copies: RecentRecords::new(),
            engine: Vec::new(),
            groups: BTreeMap::new(),
            tensor: Tensor::default(),
            products: vec![Products::default(); warps as usize],
            canceled_nothing: None,
            next_agent: 0,
            copies: vec![Copies::default(); warps as usize],
            registers: RegisterPool::new(program.max_registers, threads),
            barriers: (0..16).map(|_| Barrier::new(warps)).collect(),
            mbarriers: BTreeMap::new(),
            alive,
            released: Vec::new(),
            steps: 0,
            executed: 0,
            limit: options.max_instructions_per_thread.saturating_mul(u64::from(threads)),
        }
    }
}

impl Cta {
    /// The products of a warp.
    pub(crate) fn products(&mut self, warp: u32) -> &mut Products {
        &mut self.products[warp as usize]
    }
}

fn first_lanes(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}
