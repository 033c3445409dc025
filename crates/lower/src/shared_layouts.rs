//! The layouts of shared buffers for which only a shape was written.
//!
//! Which bytes of a row each lane touches does not depend on where the rows are, so the accesses of a program that was
//! lowered with one layout of rows tell what another one would cost: the wavefronts of the same bytes at other
//! addresses, in narrower vectors where that layout splits them. Lowering may find still better accesses for it, so the
//! promising layouts are lowered, and the cheapest program is taken.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::counted;
use tilewright_expr::{EvalError, Var};
use tilewright_ir::plan::{MemoryKind, OpPlan, PlanFacts};
use tilewright_ir::thread::{Lanes, Memory, MemoryAccess, Moved, Observer, Program, WarpState, for_each_stmt, walk};
use tilewright_ir::tile::Buffer;
use tilewright_ir::tile::vectors::WIDEST;
use tilewright_ir::{Handle, Kernel, VerifiedKernel};
use tilewright_layout::Layout;
use tilewright_layout::access::{AccessKind, LANES, WAVEFRONT_BYTES, WarpAccess};
use tilewright_layout::banks::RowLayout;
use tilewright_layout::weights::WEIGHTS;

use crate::trace::{scattered, steps};

/// The layout that the compiler chose for a shared buffer.
#[derive(Clone, Debug)]
pub struct SharedLayout {
    /// The buffer.
    pub buffer: Handle<Buffer>,
    /// Why: what the accesses of a warp cost, and what they would cost row-major.
    pub reason: String,
}

/// Layouts for some open buffers of a kernel.
pub type Placement = Vec<(Handle<Buffer>, Layout)>;

/// The most accesses of a thread that are looked at, if fewer iterations of loops are enough for that.
const MOST_STEPS: u64 = 1 << 12;
/// A program of more statements is lowered again only once.
const LONG: usize = 1 << 10;
/// A program of more statements is not lowered again.
const VERY_LONG: usize = 1 << 13;
/// Instructions that a swizzled address takes beyond a linear one: a shift and an exclusive or.
const OF_A_SWIZZLE: i64 = 2;

/// How a program accesses the open buffers of its kernel. The accesses that count are those of the first warp, and of warps
/// that ops name; branches on data count as taken, and indices from data as far apart as their range allows.
#[derive(Clone, Debug, Default)]
pub struct OpenAccesses {
    tiles: Vec<TileAccesses>,
}

impl OpenAccesses {
    /// The accesses of a program that a kernel was lowered to.
    pub fn of(kernel: &VerifiedKernel, program: &Program) -> OpenAccesses {
        let kernel = kernel.kernel();
        let open = kernel.open_buffers();
        if open.is_empty() {
            return OpenAccesses::default();
        }
        let mut patterns = Patterns::new(kernel, program, &open);
        let named = kernel.ops.iter().filter_map(|(_, op)| op.warp);
        let of_roles = program.roles.iter().map(|(_, role)| role.first);
        for position in named.chain(of_roles).chain([0]).collect::<BTreeSet<i64>>() {
            let mut warp = WarpState::of(program, position);
            // The accesses up to an expression that cannot be evaluated are known.
            let _ = walk(program, &program.body, &mut warp, &mut patterns);
        }
        OpenAccesses { tiles: patterns.of.into_values().filter(|tile| !tile.patterns.is_empty()).collect() }
    }

    /// Other layouts that may be cheaper than those of the program, most promising first; none if no buffer can be
    /// accessed with fewer wavefronts or takes more memory than it needs.
    ///
    /// Layouts that would not fit in shared memory together with all else are left out.
    pub fn trials(&self, kernel: &VerifiedKernel, program: &Program) -> Vec<Placement> {
        let free = (program.target.shared_bytes() - program.shared_bytes()) / self.tiles.len().max(1) as i64;
        let others = |tile: &TileAccesses| {
            let is_wasteful = has_wasteful_accesses(program, &kernel.kernel().buffers[tile.buffer].name);
            tile.others(kernel.kernel(), free, is_wasteful)
        };
        let lists: Vec<Placement> = self.tiles.iter().map(others).collect();
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0).min(most_trials(program));
        (0..longest).map(|at| lists.iter().filter_map(|list| list.get(at).cloned()).collect()).collect()
    }

    /// Why each buffer has its layout.
    pub fn reasons(&self) -> Vec<SharedLayout> {
        self.tiles.iter().map(|tile| SharedLayout { buffer: tile.buffer, reason: tile.reason() }).collect()
    }
}

/// Whether an op that accesses a shared buffer touches twice as many sectors of global memory as hold its bytes.
fn has_wasteful_accesses(program: &Program, buffer: &str) -> bool {
    let of_buffer = |facts: &&PlanFacts| {
        facts.accesses.iter().any(|access| access.memory == MemoryKind::Shared && access.operand == buffer)
    };
    let accesses = program.plans.iter().filter_map(OpPlan::facts).filter(of_buffer).flat_map(|facts| &facts.accesses);
    accesses.filter(|access| access.memory == MemoryKind::Global).any(|access| access.passes >= 2 * access.ideal)
}

/// Whether the threads of a program move the widest vectors, in full wavefronts, to and from the buffers that are open in `source` and
/// those that may take sums of products: other layouts of these could save index arithmetic at most. Never where conversions of
/// fragments depend on the layouts.
pub fn has_full_wavefronts(source: &Kernel, program: &Program) -> bool {
    let open = source.open_buffers().into_iter().map(|buffer| &source.buffers[buffer]);
    let names: Vec<&String> = open.chain(source.may_take_sums()).map(|buffer| &buffer.name).collect();
    let accesses = program.plans.iter().filter_map(OpPlan::facts).flat_map(|facts| &facts.accesses);
    let mut of_tiles = accesses.filter(|access| names.contains(&&access.operand));
    !source.allow_conversions
        && of_tiles.all(|access| access.width == WIDEST && access.passes * WAVEFRONT_BYTES <= access.bytes)
}

/// How often a program is lowered again: the longer it is, the more each trial takes.
fn most_trials(program: &Program) -> usize {
    let mut statements = 0usize;
    for_each_stmt(&program.body, &mut |_| statements += 1);
    if statements > VERY_LONG {
        0
    } else if statements > LONG {
        1
    } else {
        usize::MAX
    }
}

/// The cost of all ops of a program, as plans give it, times their executions.
pub fn cost(program: &Program) -> i64 {
    let of = |plan: &OpPlan| plan.facts().map_or(0, PlanFacts::cost).saturating_mul(plan.executions.range().hi);
    program.plans.iter().map(of).fold(0, i64::saturating_add)
}

/// How the warps of a program access its open buffers.
struct Patterns<'a> {
    program: &'a Program,
    /// How many iterations of each loop are looked at.
    iterations: i64,
    /// The accesses to each open buffer.
    of: BTreeMap<Handle<Memory>, TileAccesses>,
}

/// The accesses of warps to a tile.
#[derive(Clone, Debug)]
struct TileAccesses {
    buffer: Handle<Buffer>,
    /// Where its rows are in the program.
    rows: RowLayout,
    /// How often each pattern occurs.
    patterns: BTreeMap<Pattern, i64>,
}

/// One access of a warp.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    writes: bool,
    /// Bytes of each lane.
    width: i64,
    /// The row, and the byte in it, where the access of each lane begins.
    places: Vec<Option<(i64, i64)>>,
}

/// What accesses cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    instructions: i64,
    wavefronts: i64,
}

impl Patterns<'_> {
    fn new<'a>(kernel: &Kernel, program: &'a Program, open: &[Handle<Buffer>]) -> Patterns<'a> {
        let memory = |name: &str| program.memories.iter().find(|(_, memory)| memory.name == name);
        let tile = |handle: &Handle<Buffer>| {
            let buffer = &kernel.buffers[*handle];
            let rows = RowLayout::of(buffer.layout.as_ref()?, &buffer.shape, buffer.dtype.bytes())?;
            let tile = TileAccesses { buffer: *handle, rows, patterns: BTreeMap::new() };
            Some((memory(&buffer.name)?.0, tile))
        };
        let is_few = |iterations: &i64| steps(&program.body, *iterations) <= MOST_STEPS;
        let iterations = [i64::MAX, 4, 2].into_iter().find(is_few).unwrap_or(1);
        Patterns { program, iterations, of: open.iter().filter_map(tile).collect() }
    }
}

impl Observer for Patterns<'_> {
    fn access(&mut self, warp: &WarpState, access: &MemoryAccess<'_>) -> Result<(), EvalError> {
        let Some(tile) = self.of.get_mut(&self.program.buffer(access.memory)) else { return Ok(()) };
        // The copy engine has no banks.
        if let Moved::Box(_) = access.moved {
            return Ok(());
        }
        let memory = &self.program.memories[access.memory];
        let (element, stage) = (memory.dtype.bytes(), memory.stage_elements());
        let index = warp.eval(access.index)?;
        let is_active = |lane: usize| lane < access.lanes && warp.active()[lane];
        let place = |lane: usize| is_active(lane).then(|| tile.rows.place(index[lane] % stage * element));
        let places: Vec<Option<(i64, i64)>> = (0..LANES).map(place).collect();
        // Moved by whole rows it is the same access.
        let first = places.iter().flatten().map(|(row, _)| *row).min().unwrap_or(0);
        let first = first - first % ROWS_OF_A_PERIOD;
        let places = places.into_iter().map(|place| place.map(|(row, byte)| (row - first, byte))).collect();
        let pattern = Pattern { writes: access.effect.writes(), width: access.bytes(self.program), places };
        *tile.patterns.entry(pattern).or_default() += 1;
        Ok(())
    }

    fn data(&self, var: &Var) -> Lanes {
        scattered(var)
    }

    fn last(&self, var: &Var) -> i64 {
        let range = var.range();
        range.hi.min(range.lo.saturating_add(self.iterations - 1))
    }
}

/// After this many rows, all rows fall on banks as the first ones do: rows begin at whole bytes, banks repeat after 128
/// bytes, and no swizzle that is considered takes bits above those of 512 rows.
const ROWS_OF_A_PERIOD: i64 = 512;

impl TileAccesses {
    /// Other layouts to try, among those that take up to `free` bytes more than the present one.
    /// Without conflicts there are none, unless ops on the tile are wasteful elsewhere (`is_wasteful`): lanes may go along rows
    /// of this tile to avoid conflicts, and across rows of a tensor.
    fn others(&self, kernel: &Kernel, free: i64, is_wasteful: bool) -> Placement {
        let buffer = &kernel.buffers[self.buffer];
        let (count, element) = (buffer.shape.iter().rev().skip(1).product::<i64>(), buffer.dtype.bytes());
        let dense = RowLayout::dense(self.rows.row);
        let is_needed = self.rows == dense || self.rows.odd_words.is_some() || !self.is_ideal(&dense);
        if !is_wasteful && self.is_ideal(&self.rows) && is_needed {
            return Vec::new();
        }
        if self.rows.odd_words.is_some() {
            let plain = RowLayout::in_vectors(self.rows.row).layout(&buffer.shape, element);
            return plain.map(|layout| (self.buffer, layout)).into_iter().collect();
        }
        let fits = |rows: &RowLayout| rows.bytes(count) - self.rows.bytes(count) <= free.max(0);
        let mut all: Vec<RowLayout> = RowLayout::all(self.rows.row, count, element).into_iter().filter(fits).collect();
        all.sort_by_cached_key(|rows| (self.cost(rows, element).weight(), rows.bytes(count)));
        // Beside the cheapest, those that lowering may have other ways for.
        let words = RowLayout::in_words(self.rows.row, element);
        let cheapest = all.first().copied();
        let promising = |rows: &RowLayout| Some(*rows) == cheapest || *rows == words || *rows == dense;
        let new = all.into_iter().filter(|rows| *rows != self.rows && promising(rows));
        new.filter_map(|rows| Some((self.buffer, rows.layout(&buffer.shape, element).ok()?))).collect()
    }

    /// Why the tile has its layout.
    fn reason(&self) -> String {
        let wavefronts = |rows: &RowLayout| counted(self.cost(rows, 1).wavefronts, "wavefront");
        let taken = format!("{}: a warp's accesses take {}", self.rows, wavefronts(&self.rows));
        let dense = RowLayout::dense(self.rows.row);
        if self.rows.odd_words.is_some() {
            format!("{taken}; a thread has 4 neighbours of a row of products with it, or of their left factor")
        } else if self.rows == dense {
            taken
        } else if self.cost(&dense, 1).wavefronts > self.cost(&self.rows, 1).wavefronts {
            format!("{taken}; row-major, {}", wavefronts(&dense))
        } else {
            // Dense rows are always tried. Under them, ops have accesses of other widths.
            format!(
                "{taken}; row-major, {} for the same accesses, but the kernel's plans cost more",
                wavefronts(&dense)
            )
        }
    }

    /// Whether no access takes more instructions than now, or more wavefronts than any access to as many words.
    fn is_ideal(&self, layout: &RowLayout) -> bool {
        self.patterns.keys().all(|pattern| {
            let access = pattern.at(layout, pattern.width);
            pattern.width_in(layout, pattern.width) == pattern.width && access.wavefronts() == access.ideal_wavefronts()
        })
    }

    fn cost(&self, layout: &RowLayout, element: i64) -> Cost {
        let mut sum = Cost::default();
        for (pattern, times) in &self.patterns {
            let width = pattern.width_in(layout, element);
            for part in 0..pattern.width / width {
                let access = pattern.part(part * width).at(layout, width);
                sum.wavefronts += times * i64::from(access.wavefronts());
                sum.instructions += times * if layout.swizzle.is_none() { 1 } else { 1 + OF_A_SWIZZLE };
            }
        }
        sum
    }
}

impl Cost {
    fn weight(self) -> i64 {
        self.instructions * WEIGHTS.instruction + self.wavefronts * WEIGHTS.pass
    }
}

impl Pattern {
    /// The access with its rows where a layout puts them, `width` bytes for each lane.
    fn at(&self, layout: &RowLayout, width: i64) -> WarpAccess {
        let kind = if self.writes { AccessKind::Store } else { AccessKind::Load };
        WarpAccess::of(width as u64, kind, |lane| self.places[lane].map(|(row, byte)| layout.address(row, byte) as u64))
    }

    /// The bytes from `offset` on of every lane.
    fn part(&self, offset: i64) -> Pattern {
        let places = self.places.iter().map(|place| place.map(|(row, byte)| (row, byte + offset))).collect();
        Pattern { places, ..*self }
    }

    /// The widest vector, not below `least`, in which every lane accesses its bytes under a layout: a vector begins at a
    /// multiple of its width, and a swizzle keeps 16 bytes together.
    fn width_in(&self, layout: &RowLayout, least: i64) -> i64 {
        let is_aligned =
            |width: i64| self.places.iter().flatten().all(|(row, byte)| layout.unswizzled(*row, *byte) % width == 0);
        let mut width = self.width;
        while width > least && !is_aligned(width) {
            width /= 2;
        }
        width
    }
}
