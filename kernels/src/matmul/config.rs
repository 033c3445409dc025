//! How a matrix product is computed: one value, from which the kernel and its costs follow.

use std::fmt;

use tilewright::ir::SHARED_ALIGNMENT;
use tilewright::ir::thread::WgmmaInst;
use tilewright::layout::LayoutError;
use tilewright::layout::descriptor::{InstructionShape, InstructionTypes, ROW_UNIT, dense};
use tilewright::layout::hardware::{CtaGroup, MmaType};
use tilewright::prelude::*;

use super::fallback::fallback;
use super::kernel::matmul;
use crate::products::turned;

/// Rows of a CTA's tile.
pub(super) const ROWS: i64 = 128;
/// Bytes of a row of a factor in a stage: the width of the widest swizzle.
pub(super) const STEP_BYTES: i64 = 128;
/// Elements of a row of the swizzle of MN-major tf32.
const ATOM_OF_TF32: i64 = 32;
/// Rows that a swizzle permutes in the same way.
const SWIZZLED_ROWS: i64 = 8;
/// The most clusters, and rows of tiles of a group.
const MOST_CTAS: i64 = 1 << 16;
/// The most products of a batch, and the most rows and columns of tiles of each.
const MOST: i64 = 1 << 10;
/// The most clusters along a dimension of a grid of clusters.
const MOST_IN_GRID: i64 = (1 << 16) - 1;
/// The most rows and columns of a single product.
const MOST_SIZE: i64 = 1 << 20;

/// The extents of a product, `batch` times `m` by `k` times `k` by `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatmulShape {
    /// Products.
    pub batch: i64,
    /// Rows of the result.
    pub m: i64,
    /// Columns of the result.
    pub n: i64,
    /// The extent that is summed over.
    pub k: i64,
    /// Elements from the beginning of a row to that of the next one, of `a`, `b` and `c` as they are stored; `None` if rows follow
    /// each other without gaps.
    pub leading: Option<[i64; 3]>,
}

impl MatmulShape {
    /// One product of matrices without gaps.
    pub const fn new([m, n, k]: [i64; 3]) -> MatmulShape {
        MatmulShape { batch: 1, m, n, k, leading: None }
    }

    /// The lengths of the rows of `a`, `b` and `c` as they are stored.
    fn rows(&self, [transpose_a, transpose_b]: [bool; 2]) -> [i64; 3] {
        let MatmulShape { m, n, k, .. } = *self;
        [turned(transpose_a, [m, k])[1], turned(transpose_b, [k, n])[1], n]
    }

    /// Whether the rows of the factors begin at multiples of 16 bytes.
    pub(super) fn has_whole_rows(&self, config: &MatmulConfig) -> bool {
        let [a, b, _] = self.leading.unwrap_or_else(|| self.rows(config.transposed));
        [a, b].into_iter().all(|row| row * config.factor.bytes() % ROW_UNIT == 0)
    }

    /// Refuses rows that begin before the one before has ended.
    #[track_caller]
    pub(super) fn refuse_overlaps(&self, k: &mut KernelBuilder, transposed: [bool; 2]) {
        let given = ["lda", "ldb", "ldc"].into_iter().zip(self.leading.into_iter().flatten());
        for ((name, row), length) in given.zip(self.rows(transposed)).filter(|((_, row), length)| row < length) {
            let found = match row {
                0 => format!("`{name}` is not given, and other distances of rows are"),
                _ => format!("`{name}`: {row}, for rows of {length} elements"),
            };
            k.refuse(found, format!("{length} or more"));
        }
    }
}

/// What sums pass through before they are stored: `activation(scale * sum + bias) + residual`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epilogue {
    /// Whether sums are multiplied by a number that is given at launch.
    pub scale: bool,
    /// Whether a number is added to each column.
    pub bias: bool,
    /// The function of what this gives.
    pub activation: Activation,
    /// Whether a matrix is added, of the dtype of the result.
    pub residual: bool,
}

impl Epilogue {
    /// Sums are stored as they are.
    pub const NONE: Epilogue = Epilogue { scale: false, bias: false, activation: Activation::None, residual: false };

    /// Whether it computes in floating point, also on sums of integers.
    fn is_real(self) -> bool {
        self.scale || matches!(self.activation, Activation::Gelu | Activation::Silu)
    }
}

/// A function of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The element itself.
    None,
    /// `max(x, 0)`
    Relu,
    /// `x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 * x^3))`, the approximation by tanh.
    Gelu,
    /// `x * sigmoid(x)`
    Silu,
}

/// Which clusters compute which tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// As many clusters as run at once, each of which computes every so many-th tile.
    Persistent,
    /// A cluster for each tile.
    OneEach,
    /// A cluster for each tile, of which those that run take over the tiles of others: cluster launch control of `sm_100a`. On `sm_90a`
    /// each computes its own.
    Claimed,
}

/// How a matrix product is computed. Fields may be set freely; [`MatmulConfig::check`] says what of it cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatmulConfig {
    /// What it runs on.
    pub target: Target,
    /// The dtype of the factors.
    pub factor: DType,
    /// The dtype of the result.
    pub result: DType,
    /// Whether the left factor is stored as K x M, and the right one as N x K.
    pub transposed: [bool; 2],
    /// Whether the rows of the factors begin at multiples of 16 bytes: else, threads copy them.
    pub has_whole_rows: bool,
    /// Columns of a tile, which has 128 rows for each CTA of a cluster.
    pub columns: i64,
    /// Stages of 128 bytes of each row of the factors.
    pub stages: i64,
    /// Stages of the sums in tensor memory; on `sm_90a`, sums are in registers.
    pub sums: i64,
    /// Whether each of the two warpgroups of `sm_90a` has a tile of its own, and one stores while the other multiplies ("ping-pong");
    /// else, they compute a tile together. On `sm_100a` it means nothing.
    pub turns: bool,
    /// CTAs of a cluster, which have rows of their own and the same columns.
    pub cluster: i64,
    /// Which clusters compute which tiles.
    pub scheduler: Scheduler,
    /// Clusters that run at once, if they are persistent: each computes every so many-th tile.
    pub clusters: i64,
    /// Rows of tiles that clusters compute at the same time, so that they read the same columns of the right factor.
    pub group: i64,
    /// Whether the transposed product is computed, `B^T A^T`: tiles then have 128 columns of the result for each CTA of a cluster, and
    /// as many rows as `columns` says.
    pub swapped: bool,
    /// Parts of K, which different clusters multiply; their sums are added in memory.
    pub splits: i64,
    /// Whether a launch may begin before the one before it has ended ("programmatic dependent launch"). Another role loads tiles of `b` then,
    /// and does not wait: no launch before may write `b`, as is so for weights.
    pub overlaps: bool,
    /// What becomes of the sums.
    pub epilogue: Epilogue,
}

/// A limit that a configuration exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What exceeds it, with its number.
    pub found: String,
    /// What would be possible.
    pub legal: String,
    /// Where the limit is from.
    pub source: &'static str,
}

impl fmt::Display for Limit {
    /// `bytes of shared memory of a CTA: 245888; at most 232448 (..)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {} ({})", self.found, self.legal, self.source)
    }
}

impl MatmulConfig {
    /// A tile of 128 columns in 4 stages on each SM, without an epilogue; factors are M x K and N x K.
    pub fn new(target: Target, factor: DType) -> MatmulConfig {
        let config = MatmulConfig {
            target,
            factor,
            result: factor,
            transposed: [false, true],
            has_whole_rows: true,
            columns: 128,
            stages: 4,
            sums: 2,
            turns: false,
            cluster: 1,
            scheduler: Scheduler::Persistent,
            clusters: super::machine::Machine::of(target).sms,
            group: 8,
            swapped: false,
            splits: 1,
            overlaps: false,
            epilogue: Epilogue::NONE,
        };
        MatmulConfig { result: config.usual_result(), ..config }
    }

    /// The dtype of the result that loses least: that of the factors if they have 16 bits and sums are not added in memory, else that of
    /// the sums.
    pub fn usual_result(&self) -> DType {
        if self.factor.bytes() == 2 && self.splits == 1 { self.factor } else { self.value() }
    }

    /// The dtype of sums.
    pub fn sum(&self) -> DType {
        if self.factor == I8 { I32 } else { F32 }
    }

    /// The dtype that the epilogue computes in.
    pub fn value(&self) -> DType {
        let adds_real = self.epilogue.residual && self.result.is_float();
        if self.epilogue.is_real() || adds_real { F32 } else { self.sum() }
    }

    /// Whether the left and right factors of the instructions are transposed.
    pub(super) fn transposed_sides(&self) -> [bool; 2] {
        let [a, b] = self.transposed;
        if self.swapped { [!b, !a] } else { [a, b] }
    }

    /// The part of K in a stage.
    pub fn step(&self) -> i64 {
        STEP_BYTES / self.factor.bytes()
    }

    /// Whether every two CTAs of a cluster multiply as a pair: each then has half of the columns of the right factor.
    pub fn is_pair(&self) -> bool {
        let half = if self.has_rows_of_tf32() { ATOM_OF_TF32 } else { 16 };
        self.target == Target::Sm100a && self.cluster % 2 == 0 && self.columns % (2 * half) == 0 && self.has_whole_rows
    }

    /// Whether the right factor of the instructions has rows of f32 along N, which `tcgen05.mma` reads in atoms of 32 elements.
    fn has_rows_of_tf32(&self) -> bool {
        self.factor == F32 && self.is_mn_major()[1]
    }

    /// Whether warpgroups compute tiles in turns.
    pub(super) fn takes_turns(&self) -> bool {
        self.turns && self.target == Target::Sm90a
    }

    /// How many CTAs of a cluster copy a part of the right factor each, for all of them: all, if the parts along columns consist of the
    /// 8 rows that a swizzle permutes, or else those of a pair.
    pub fn sharing_columns(&self) -> i64 {
        let is_divided = || self.is_mn_major()[1] || self.columns % (SWIZZLED_ROWS * self.cluster) == 0;
        match self.cluster > 1 && self.has_whole_rows {
            true if is_divided() => self.cluster,
            true if self.is_pair() => 2,
            _ => 1,
        }
    }

    /// Columns of the sums of a tile that the threads of a role hold at a time on their way from tensor memory.
    pub(super) fn part(&self) -> i64 {
        [32, 24, 16].into_iter().find(|part| self.columns % part == 0).unwrap_or(8)
    }

    /// Warps of a CTA, over all roles.
    pub fn warps(&self) -> i64 {
        let others = [self.epilogue.residual, self.scheduler == Scheduler::Claimed, self.overlaps];
        let others = others.into_iter().map(i64::from).sum::<i64>();
        match self.target {
            // Registers move from the warpgroup of those that load.
            Target::Sm90a if self.takes_turns() => 4 + 8,
            // One loads, and two warpgroups multiply and store.
            Target::Sm90a => 1 + others + 8,
            // One loads, one multiplies, and a warpgroup stores.
            Target::Sm100a => 1 + others + 1 + 4,
        }
    }

    /// Bytes of a stage of the factors in a CTA.
    pub fn stage_bytes(&self) -> i64 {
        let own = if self.is_pair() { self.columns / 2 } else { self.columns };
        own.saturating_add(ROWS).saturating_mul(STEP_BYTES)
    }

    /// Bytes of the shared memory of a CTA.
    pub fn shared_bytes(&self) -> i64 {
        let tile = self.columns.saturating_mul(ROWS * self.result.bytes());
        let loaded = i64::from(self.epilogue.residual);
        let tiles = loaded + if self.takes_turns() { 2 } else { 1 };
        let rings = 1 + loaded + i64::from(self.target == Target::Sm100a);
        let claims = self.scheduler == Scheduler::Claimed && self.target == Target::Sm100a;
        // Two arrays of barriers for each ring and one for turns at it, the address of tensor memory, and the tiles that are claimed with
        // their barriers.
        let of_ring = 2 + i64::from(self.takes_turns());
        let barriers = of_ring * rings + i64::from(self.target == Target::Sm100a) + 3 * i64::from(claims);
        self.stages
            .saturating_mul(self.stage_bytes())
            .saturating_add(tile.saturating_mul(tiles))
            .saturating_add(barriers * SHARED_ALIGNMENT)
    }

    /// Columns of tensor memory that are allocated: a power of two from 32 on.
    pub fn tensor_columns(&self) -> i64 {
        let columns = u64::try_from(self.sums.saturating_mul(self.columns)).unwrap_or(0);
        let allocated = columns.checked_next_power_of_two().and_then(|columns| i64::try_from(columns).ok());
        allocated.unwrap_or(i64::MAX).max(32)
    }

    /// The configuration, if the matrix unit multiplies in it; otherwise all that is against it.
    pub fn check(self) -> Result<MatmulConfig, Vec<Limit>> {
        let mut limits = self.limits();
        limits.extend(self.against_unit().into_iter().chain(self.against_layout()));
        if limits.is_empty() { Ok(self) } else { Err(limits) }
    }

    /// The limits that it exceeds: it cannot be. On `sm_90a`, threads multiply what the matrix unit does not.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        let mut at_most = |what: &str, found: i64, most: i64, source| {
            if found > most {
                let (found, legal) = (format!("{what}: {found}"), format!("at most {most}"));
                limits.push(Limit { found, legal, source });
            }
        };
        at_most("bytes of shared memory of a CTA", self.shared_bytes(), self.target.shared_bytes(), SPECIFICATIONS);
        at_most("clusters", self.clusters, MOST_CTAS, TILES);
        at_most("rows of tiles of a group", self.group, MOST_CTAS, TILES);
        at_most("parts of K", self.splits, self.most(self.splits)[0], TILES);
        if self.target == Target::Sm100a {
            at_most("columns of tensor memory", self.tensor_columns(), 512, "PTX ISA, \"Tensor Memory Addressing\"");
            let limits_of_rows = self.against_wide_rows().into_iter().chain(self.against_rows_of_tf32());
            limits.extend(self.against_unit().into_iter().chain(limits_of_rows));
        } else if self.takes_turns() {
            at_most("columns of a tile of one warpgroup", self.columns, 128, "its sums are in registers");
        }
        if self.target == Target::Sm90a && self.columns % 8 != 0 {
            let (found, legal) = (format!("columns of a tile: {}", self.columns), "multiples of 8".to_string());
            limits.push(Limit { found, legal, source: "PTX ISA, \"Matrix shape\" of wgmma and mma" });
        }
        let counts = [
            ("columns of a tile", self.columns),
            ("stages of the factors", self.stages),
            ("stages of the sums", self.sums),
            ("clusters", self.clusters),
            ("rows of tiles of a group", self.group),
            ("parts of K", self.splits),
        ];
        for (what, count) in counts.into_iter().filter(|(_, count)| *count < 1) {
            let found = format!("{what}: {count}");
            limits.push(Limit { found, legal: "1 or more".to_string(), source: "nothing is computed otherwise" });
        }
        limits.extend(self.against_splits().into_iter().chain(self.against_turns()));
        if ![1, 2, 4, 8].contains(&self.cluster) {
            let found = format!("CTAs of a cluster: {}", self.cluster);
            limits.push(Limit { found, legal: "1, 2, 4 or 8".to_string(), source: SPECIFICATIONS });
        }
        limits
    }

    /// What cannot be computed from parts of sums.
    fn against_splits(&self) -> Option<Limit> {
        let Epilogue { scale: _, bias, activation, residual } = self.epilogue;
        let is_linear = !bias && activation == Activation::None && !residual;
        let (found, legal) = match (is_linear, self.result) {
            _ if self.splits == 1 => return None,
            (true, F32 | I32) => return None,
            (true, result) => (format!("a result of {result} in parts"), "f32, or i32: parts are not rounded"),
            (false, _) => ("an epilogue of parts of sums".to_string(), "`scale` only: the parts are added in memory"),
        };
        Some(Limit { found, legal: legal.to_string(), source: "each part of K passes through the epilogue" })
    }

    /// Tiles that warpgroups cannot have in turns.
    fn against_turns(&self) -> Option<Limit> {
        (self.takes_turns() && self.scheduler != Scheduler::Persistent).then(|| Limit {
            found: "a single tile for warpgroups that take turns".to_string(),
            legal: "persistent clusters".to_string(),
            source: "each warpgroup computes every second tile of its CTA",
        })
    }

    /// Whether M of the left factor of the instructions, and N of the right one, are contiguous.
    fn is_mn_major(&self) -> [bool; 2] {
        let [left, right] = self.transposed_sides();
        [left, !right]
    }

    /// Factors that the matrix unit of `sm_90a` does not read.
    fn against_layout(&self) -> Option<Limit> {
        let is_against = self.target == Target::Sm90a && self.factor.bytes() != 2 && self.is_mn_major() != [false; 2];
        is_against.then(|| Limit {
            found: format!("factors of {} of which K is not contiguous", self.factor),
            legal: "M x K and N x K".to_string(),
            source: "PTX ISA, wgmma: only 16-bit types may be transposed",
        })
    }

    /// Rows of 256 bytes of which the compiler finds no layout that `tcgen05.mma` reads.
    fn against_wide_rows(&self) -> Option<Limit> {
        let is_wide = self.factor.bytes() == 1 && self.is_mn_major()[1] && self.columns == 256 && !self.is_pair();
        is_wide.then(|| Limit {
            found: format!("256 columns of {} in a CTA, which are contiguous in memory", self.factor),
            legal: "at most 240, or a pair of CTAs".to_string(),
            source: "the layouts of shared memory that Tilewright finds",
        })
    }

    /// Rows of f32 along N that do not consist of whole swizzle atoms.
    fn against_rows_of_tf32(&self) -> Option<Limit> {
        let is_against = self.has_rows_of_tf32() && self.columns % ATOM_OF_TF32 != 0;
        is_against.then(|| Limit {
            found: format!("{} columns of f32, which are contiguous in memory", self.columns),
            legal: format!("multiples of {ATOM_OF_TF32}"),
            source: "PTX ISA, tcgen05: MN-major tf32 has the 128-byte swizzle of 32-byte atoms",
        })
    }

    /// Columns that the matrix unit does not multiply at once.
    fn against_unit(&self) -> Option<Limit> {
        let found = format!("columns of a tile: {}", self.columns);
        let limit = |legal: String, source| Some(Limit { found, legal, source });
        match self.target {
            Target::Sm90a => {
                let types = WgmmaInst::ALL.iter().map(|inst| inst.info());
                let mut types = types.filter(|info| (info.multiplicand, info.sum) == (self.factor, self.sum()));
                if types.any(|info| info.has_columns(self.columns)) {
                    return None;
                }
                let legal = "multiples of 8 up to 256; with integers 8, 16, 24 and multiples of 16";
                limit(legal.to_string(), "PTX ISA, \"Matrix shape\" of wgmma")
            }
            Target::Sm100a => {
                let (cta_group, ctas) = if self.is_pair() { (CtaGroup::Two, 2) } else { (CtaGroup::One, 1) };
                let k = 32 / self.factor.bytes();
                let shape = InstructionShape { cta_group, m: ctas * ROWS, n: self.columns, k };
                let [a, d] = [MmaType::of_factor(self.factor), MmaType::of_dtype(self.sum())];
                let types = a.and_then(|a| Ok(InstructionTypes { a, b: a, d: d? }));
                let why = types.and_then(|types| dense(shape, types, self.is_mn_major())).err()?;
                let legal = match why {
                    LayoutError::Hardware { legal, .. } => legal,
                    other => other.to_string(),
                };
                limit(legal, "PTX ISA, \"Matrix shape\" of tcgen05.mma")
            }
        }
    }

    /// Whether the kernel takes a product of this shape: the tiles of a batch, and those of parts of K, are counted in 32 bits.
    pub fn holds(&self, shape: MatmulShape) -> bool {
        self.against_shape(shape).is_none()
    }

    /// The most products, and the most rows and columns of each as the instructions see them: tiles are counted in 32 bits. A grid with a
    /// cluster for each tile has two dimensions beside that of the cluster.
    pub(super) fn most(&self, products: i64) -> [i64; 3] {
        let in_grid = self.cluster > 1 && self.scheduler != Scheduler::Persistent;
        let [rows, columns] = [ROWS, self.columns].map(|side| MOST.saturating_mul(side));
        match (products > 1, in_grid) {
            (true, true) => [MOST_IN_GRID.saturating_mul(self.cluster) / MOST, rows, columns],
            (true, false) => [MOST, rows, columns],
            (false, true) => [1, MOST_SIZE, MOST_IN_GRID.saturating_mul(self.columns).min(MOST_SIZE)],
            (false, false) => [1, MOST_SIZE, MOST_SIZE],
        }
    }

    /// Why the kernel does not take a product of this shape.
    fn against_shape(&self, shape: MatmulShape) -> Option<Limit> {
        let [rows, columns] = turned(self.swapped, [shape.m, shape.n]);
        let products = shape.batch.saturating_mul(self.splits);
        let most = self.most(products);
        let is_within = [products, rows, columns].iter().zip(most).all(|(size, most)| *size <= most);
        (products > 1 && !is_within).then(|| Limit {
            found: format!("{products} products of parts of K, of {rows} rows and {columns} columns"),
            legal: format!("at most {} of them, {} rows and {} columns", most[0], most[1], most[2]),
            source: TILES,
        })
    }

    /// The kernel for sizes like these: they are given at launch, and may be any that have the same powers of two up to 16 as
    /// divisors.
    ///
    /// A configuration that exceeds [limits](Self::limits) is refused.
    pub fn kernel(&self, like: MatmulShape) -> Kernel {
        let mut limits = self.limits();
        limits.extend(self.against_shape(like));
        if limits.is_empty() {
            return self.unchecked_kernel(like);
        }
        kernel("matmul", |k| {
            for Limit { found, legal, source } in limits {
                k.refuse(found, format!("{legal} ({source})"));
            }
        })
    }

    /// The same, with what the compiler itself says of limits.
    pub fn unchecked_kernel(&self, like: MatmulShape) -> Kernel {
        matmul(self, like)
    }

    /// The kernel for such a product in which warps multiply, `matmul_fallback`: it takes what [`check`](Self::check) refuses, factors
    /// of f32 too, which are rounded to tf32. Of the configuration, only the dtypes, how the factors are
    /// stored and the epilogue matter.
    pub fn fallback(&self, like: MatmulShape) -> Kernel {
        fallback(&MatmulConfig { splits: 1, ..*self }, like)
    }
}

const TILES: &str = "tiles are counted in 32 bits";
const SPECIFICATIONS: &str = "CUDA C++ Programming Guide, technical specifications per compute capability";

impl fmt::Display for MatmulConfig {
    /// `sm_100a bf16 n t bf16 pair 256x128x64 cluster 2 stages 4 sums 2 clusters 74 group 8 bias`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatmulConfig { target, factor, result, columns, stages, sums, cluster, .. } = self;
        let MatmulConfig { scheduler, clusters, group, epilogue, .. } = self;
        write!(f, "{target} {factor}")?;
        for is_transposed in self.transposed {
            f.write_str(if is_transposed { " t" } else { " n" })?;
        }
        write!(f, " {result}")?;
        let of_cluster = if self.is_pair() { " pair" } else { "" };
        write!(f, "{of_cluster} {}x{columns}x{}", cluster * ROWS, self.step())?;
        write!(f, " cluster {cluster} stages {stages}")?;
        if *target == Target::Sm100a {
            write!(f, " sums {sums}")?;
        }
        if self.takes_turns() {
            f.write_str(" turns")?;
        }
        match scheduler {
            Scheduler::Persistent => write!(f, " clusters {clusters} group {group}")?,
            Scheduler::OneEach => f.write_str(" one each")?,
            Scheduler::Claimed => write!(f, " claimed group {group}")?,
        }
        if self.swapped {
            f.write_str(" swapped")?;
        }
        if self.splits != 1 {
            write!(f, " splits {}", self.splits)?;
        }
        if self.overlaps {
            f.write_str(" overlaps")?;
        }
        let Epilogue { scale, bias, activation, residual } = epilogue;
        let activation = match activation {
            Activation::None => "",
            Activation::Relu => " relu",
            Activation::Gelu => " gelu",
            Activation::Silu => " silu",
        };
        let parts = [(*scale, " scale"), (*bias, " bias"), (true, activation), (*residual, " residual")];
        parts.into_iter().filter(|(has, _)| *has).try_for_each(|(_, part)| f.write_str(part))?;
        if self.has_whole_rows { Ok(()) } else { f.write_str(" by threads") }
    }
}
