//! What a configuration costs, by a model with stated parts, and which one is best for a shape.

use tilewright::prelude::*;

use super::config::{MatmulConfig, MatmulShape, ROWS, STEP_BYTES, Scheduler};
use super::machine::Machine;
use crate::blocks::ceil_div;
use crate::products::turned;

/// The predicted time of a product, in seconds, and what it is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// In all.
    pub seconds: f64,
    /// Tiles that the busiest CTA computes.
    pub waves: i64,
    /// The tensor core's time for the products of a tile; what it reads from shared memory may take longer than it computes.
    pub products: f64,
    /// The time in which the factors of a tile arrive.
    pub loads: f64,
    /// The time from the last product of a tile to the end of its copy to the result.
    pub epilogue: f64,
    /// The time in which memory moves all tensors, each as often as the cache does not keep it.
    pub memory: f64,
    /// Bytes in flight over those that arrive at an SM in the time of a latency: 1 is just enough.
    pub in_flight: f64,
}

/// What the time of a product depends on most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The tensor cores.
    Products,
    /// Copies of the factors to shared memory.
    Loads,
    /// What happens to the sums.
    Epilogue,
    /// The memory.
    Memory,
}

impl Bound {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Products => "products",
            Bound::Loads => "loads",
            Bound::Epilogue => "epilogue",
            Bound::Memory => "memory",
        }
    }
}

impl Cost {
    /// What takes longest.
    pub fn bound(&self) -> Bound {
        let tiles = self.waves as f64;
        let parts = [
            (Bound::Memory, self.memory),
            (Bound::Loads, tiles * self.loads),
            (Bound::Epilogue, tiles * self.epilogue),
            (Bound::Products, tiles * self.products),
        ];
        parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(Bound::Products, |(bound, _)| bound)
    }
}

/// Clusters, rows of a group and columns of tiles among which one is chosen. Ranks of equal cost stay in this order.
const CLUSTERS: [i64; 3] = [1, 2, 4];
const GROUPS: [i64; 4] = [8, 4, 16, 1];
const COLUMNS: i64 = 16;
const MOST_COLUMNS: i64 = 256;
/// What few tiles may need: factors that are exchanged, and parts of K. Groups of rows of tiles do not matter to them.
const FOR_FEW_TILES: [(bool, i64); 7] =
    [(true, 1), (false, 2), (true, 2), (false, 4), (true, 4), (false, 8), (true, 8)];

/// The most configurations that are ranked.
pub const MOST_RANKED: usize =
    CLUSTERS.len() * (MOST_COLUMNS / COLUMNS) as usize * (GROUPS.len() + FOR_FEW_TILES.len());

/// The part of the cache that the factors of tiles in progress may use.
const CACHED: f64 = 0.6;

impl MatmulShape {
    /// Multiplications and additions.
    pub fn operations(&self) -> f64 {
        2.0 * (self.batch * self.m) as f64 * self.n as f64 * self.k as f64
    }
}

impl MatmulConfig {
    /// The predicted cost of a product. The roles of a CTA work at the same time, so that the slowest one decides; the first
    /// tile waits for its factors, and the last one for its epilogue.
    pub fn cost(&self, shape: MatmulShape) -> Cost {
        let machine = Machine::of(self.target);
        let MatmulShape { m, n, k, .. } = self.sides(shape);
        let splits = self.splits.max(1);
        let [_, rows, columns] = self.extents(shape);
        let steps = ceil_div(ceil_div(k, self.step()), splits);
        let tiles = self.tiles(shape).saturating_mul(splits);
        let held = match self.scheduler {
            Scheduler::Persistent => self.clusters,
            Scheduler::OneEach | Scheduler::Claimed => machine.sms,
        };
        let clusters = held.min(machine.sms / self.cluster.max(1)).min(tiles).max(1);
        let waves = ceil_div(tiles, clusters);

        let products = steps as f64 * self.step_seconds(&machine);
        let arriving = steps as f64 * self.arriving_bytes([m, n]) / (machine.arriving as f64 * machine.busy_clock);
        let waiting = steps as f64 / self.stages as f64 * machine.latency;
        let loads = arriving.max(waiting);
        let in_flight = self.stages as f64 * self.stage_bytes() as f64
            / (machine.latency * machine.arriving as f64 * machine.busy_clock);
        let epilogue = self.epilogue_seconds(&machine);
        let memory = self.memory_bytes(shape, [rows, columns], clusters) / machine.memory;

        let main = products.max(loads);
        let has_next = match self.target {
            Target::Sm100a => self.sums > 1,
            Target::Sm90a => self.takes_turns(),
        };
        let overlaps = has_next && self.scheduler != Scheduler::OneEach;
        let tile = if overlaps { main.max(epilogue) } else { main + epilogue };
        let last = if overlaps { main.min(epilogue) } else { 0.0 };
        let busy = machine.latency + waves as f64 * tile + last;
        let seconds = machine.launch + busy.max(memory);
        Cost { seconds, waves, products, loads, epilogue, memory, in_flight }
    }

    /// The tiles of clusters that cover a product, before they are split: products, rows and columns of them.
    fn extents(&self, shape: MatmulShape) -> [i64; 3] {
        let MatmulShape { batch, m, n, .. } = self.sides(shape);
        let [columns, cluster] = [self.columns, self.cluster].map(|extent| extent.max(1));
        [batch, ceil_div(m, ROWS * cluster), ceil_div(n, columns)]
    }

    /// How many these are.
    fn tiles(&self, shape: MatmulShape) -> i64 {
        self.extents(shape).into_iter().fold(1, i64::saturating_mul)
    }

    /// The tensor core's time for the products of a stage.
    fn step_seconds(&self, machine: &Machine) -> f64 {
        let products = (ROWS * self.columns * self.step()) as f64 / machine.products_of(self.factor);
        // On sm_90a, each of the two warpgroups reads all of the right factor.
        let passes = if self.target == Target::Sm90a { 2 } else { 1 };
        let left = ROWS * STEP_BYTES;
        let reads = (left + passes * (self.stage_bytes() - left)) as f64 / machine.shared as f64;
        products.max(reads) / machine.busy_clock
    }

    /// Bytes of a stage that arrive at an SM because its CTA, or one for all of its cluster, asks for them. Rows and columns
    /// outside of the tensors do not.
    fn arriving_bytes(&self, [m, n]: [i64; 2]) -> f64 {
        let (left, right) = (ROWS.min(m), self.columns.min(n));
        // All CTAs of a cluster read the same columns: each asks for a part of them, if they can be divided.
        (left * STEP_BYTES) as f64 + (right * STEP_BYTES) as f64 / self.sharing_columns() as f64
    }

    /// The time from sums to the result: sums are read, the tile is written to shared memory and read by the copy engine.
    fn epilogue_seconds(&self, machine: &Machine) -> f64 {
        let elements = (ROWS * self.columns) as f64;
        let result = elements * self.result.bytes() as f64;
        // Four warps read 128 bytes of tensor memory in a cycle each.
        let sums = if self.target == Target::Sm100a { elements * 4.0 / 512.0 } else { 0.0 };
        let tiles = if self.epilogue.residual { 4.0 } else { 2.0 };
        let shared = tiles * result / machine.shared as f64;
        // About 10 instructions for 4 elements, by 4 schedulers of 32 lanes.
        let computed = elements * 2.5 / 128.0;
        (sums + shared + computed) / machine.busy_clock + machine.latency / 2.0
    }

    /// Bytes that memory moves. Where the cache does not keep both factors, each is read again for every group of clusters that
    /// work at the same time.
    fn memory_bytes(&self, shape: MatmulShape, [rows, columns]: [i64; 2], clusters: i64) -> f64 {
        let MatmulShape { batch, m, n, k, .. } = self.sides(shape);
        let bytes = |[a, b]: [i64; 2], dtype: DType| (batch * dtype.bytes()) as f64 * a as f64 * b as f64;
        let [left, right] = [[m, k], [n, k]].map(|extent| bytes(extent, self.factor));
        let result = bytes([m, n], self.result);
        let high = self.group.min(rows).min(clusters).max(1);
        let wide = ceil_div(clusters, high).min(columns).max(1);
        let [left_times, right_times] = [ceil_div(columns, wide), ceil_div(rows, high)].map(|times| times as f64);
        let factors = if left + right <= CACHED * Machine::of(self.target).cache {
            left + right
        } else {
            left * left_times + right * right_times
        };
        // Parts are added to zeros.
        let results = if self.splits > 1 { 1 + self.splits } else { 1 + i64::from(self.epilogue.residual) };
        factors + result * results as f64
    }

    /// The shape, with the rows of the left factor of the instructions and the columns of the right one as `m` and `n`.
    fn sides(&self, shape: MatmulShape) -> MatmulShape {
        let [m, n] = turned(self.swapped, [shape.m, shape.n]);
        MatmulShape { m, n, ..shape }
    }

    /// The configuration of the least predicted cost for a product of this shape, among those that differ in the tile, the cluster,
    /// the order of tiles, which factor is the left one, and the parts of K; there are as many stages as fit, and clusters as the machine
    /// holds. `None` if there is none.
    pub fn choose(&self, shape: MatmulShape) -> Option<MatmulConfig> {
        self.ranked(shape).into_iter().next().map(|(config, _)| config)
    }

    /// Those configurations with their costs, the best first: at most [`MOST_RANKED`].
    pub fn ranked(&self, shape: MatmulShape) -> Vec<(MatmulConfig, Cost)> {
        let mut all = Vec::with_capacity(MOST_RANKED);
        for cluster in CLUSTERS {
            for columns in (1..=MOST_COLUMNS / COLUMNS).map(|count| count * COLUMNS) {
                let in_groups = GROUPS.map(|group| MatmulConfig { group, swapped: false, splits: 1, ..*self });
                let for_few =
                    FOR_FEW_TILES.map(|(swapped, splits)| MatmulConfig { group: GROUPS[0], swapped, splits, ..*self });
                let configs =
                    in_groups.iter().chain(&for_few).filter_map(|config| config.with([cluster, columns], shape));
                // Parts of K are for clusters that have no tile otherwise.
                let is_for = |config: &MatmulConfig| config.splits == 1 || config.tiles(shape) < config.clusters;
                let configs = configs.filter(|config| config.holds(shape) && is_for(config));
                all.extend(configs.map(|config| (config, config.cost(shape))));
            }
        }
        all.sort_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds).then(a.memory.total_cmp(&b.memory)));
        all
    }

    /// The configuration with as many stages as there is room for, and with turns where these are faster; `None` if it cannot be.
    fn with(&self, [cluster, columns]: [i64; 2], shape: MatmulShape) -> Option<MatmulConfig> {
        let clusters = Machine::of(self.target).sms / cluster;
        let may_turn: &[bool] = if self.target == Target::Sm90a { &[false, true] } else { &[false] };
        let all = may_turn.iter().filter_map(|turns| {
            let config = MatmulConfig { cluster, columns, clusters, turns: *turns, stages: 1, ..*self };
            let room = self.target.shared_bytes() - config.shared_bytes();
            let stages = 1 + room.max(0) / config.stage_bytes();
            MatmulConfig { stages, ..config }.check().ok()
        });
        all.min_by(|a, b| a.cost(shape).seconds.total_cmp(&b.cost(shape).seconds))
    }
}
