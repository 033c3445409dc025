//! A kernel and its statements.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr::{Expr, Var};
use tilewright_layout::axis::{LANEID, WARPID};
use tilewright_layout::{DType, Iter, Layout};

use crate::arena::{Arena, Handle};
use crate::caching::Caching;
use crate::counter::Counter;
use crate::tile::buffer::{Buffer, Space};
use crate::tile::cluster::Cluster;
use crate::tile::combiner::Combiner;
use crate::tile::element::{ElementStmt, Parallel};
use crate::tile::loaded::LoadedIndex;
use crate::tile::op::Op;
use crate::tile::ring::{Hold, Ring};
use crate::tile::role::Role;
use crate::tile::tiles::Tile;
use crate::tile::value::Value;
use crate::tile::vectors::WIDEST;

/// A kernel at tile level.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name; the entry point's name in CUDA, unless C++ or CUDA reserves it.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// Sizes known only at launch, in the order of the parameters.
    pub sizes: Vec<Size>,
    /// Numbers that are parameters, in their order; they follow the sizes.
    pub scalars: Vec<ScalarParameter>,
    /// Integers that a CTA loads before all else, in their order.
    pub loaded: Vec<LoadedIndex>,
    /// CTAs along x, y and z: numbers, or expressions of the sizes.
    pub grid: [Expr; 3],
    /// Where the grid was set; where the kernel was written, if it was not.
    pub grid_span: Span,
    /// The clusters of CTAs, if it has some: the grid along x is one of them.
    pub cluster: Option<Cluster>,
    /// Threads of one CTA.
    pub threads: i64,
    /// Where their number was set; where the kernel was written, if it was not.
    pub threads_span: Span,
    /// Global, shared and fragment buffers, and views of them.
    pub buffers: Arena<Buffer>,
    /// All tile ops; `body` refers to them.
    pub ops: Arena<Op>,
    /// The functions of the ops that reduce tuples.
    pub combiners: Arena<Combiner>,
    /// All parallel loops; `body` refers to them.
    pub parallels: Arena<Parallel>,
    /// The roles that ops and parallel loops have.
    pub roles: Arena<Role>,
    /// The rings between roles.
    pub rings: Arena<Ring>,
    /// The stages of rings that roles take; `body` refers to them.
    pub holds: Arena<Hold>,
    /// The role whose threads alone count, if this is the kernel [as a role sees it](crate::tile::KernelsByRole).
    pub seen_by: Option<Handle<Role>>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Whether inference may copy fragments through shared memory where their uses do not agree on one layout.
    pub allow_conversions: bool,
    /// The most bytes that a thread moves at once from or to global memory: those of the target.
    pub widest_global: i64,
    /// The tensors of asynchronous copies, which move at most 16 bytes at once: those that pipelined loops copy ahead
    /// ([`Kernel::fills`]), and those of `copy_async`.
    pub copied_ahead: BTreeSet<Handle<Buffer>>,
    /// The shared buffers whose storage no other may use ([`Kernel::shared_storage`]).
    pub alone: BTreeSet<Handle<Buffer>>,
    /// How accesses to tensors and their views are cached, where the user says it; by the owner of the storage.
    pub caching: BTreeMap<Handle<Buffer>, Caching>,
    /// Whether shared buffers whose lives do not meet have the same storage even where no more CTAs run on an SM then.
    pub always_shares: bool,
    /// Where it asks that warpgroups that hold little give registers to the others.
    pub moves_registers: Option<Span>,
    /// Whether it may begin before the launch before it has ended, and what it does not wait for.
    pub overlap: Option<Overlap>,
    /// The rings of claimed tiles that were left out, since the target has no claims ([`Kernel::without_claims`]).
    pub unclaimed: Vec<Ring>,
    /// Whether a product and the sum around it are fused into one operation, rounded once; see
    /// [`crate::tile::prepare`].
    pub contracts: bool,
    /// Mistakes found while the kernel was built, with which it does not verify, and warnings.
    pub build_findings: Vec<Diagnostic>,
}

/// A launch that may begin before the one before it has ended (CUDA programming guide, "Programmatic Dependent Launch").
#[derive(Clone, Debug)]
pub struct Overlap {
    /// The inputs that no launch before writes: they may be read at once.
    pub unchanged: BTreeSet<Handle<Buffer>>,
    /// Where it was asked for.
    pub span: Span,
}

/// A size known only at launch: a parameter of the kernel.
#[derive(Clone, Debug)]
pub struct Size {
    /// Its variable: the name, a divisor, and the range from 1 up. A launch checks divisor and range.
    pub var: Var,
    /// Where it was written.
    pub span: Span,
}

/// A number that is a parameter of the kernel, passed by value. Statements on elements use it by its name.
#[derive(Clone, Debug)]
pub struct ScalarParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Where it was written.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A tile op.
    Op(Handle<Op>),
    /// A loop.
    Loop(Loop),
    /// A parallel loop, whose iterations are divided among the threads.
    Parallel(Handle<Parallel>),
    /// Statements that every thread executes.
    EachThread(Vec<ElementStmt>),
    /// Statements under a condition that is the same for all threads.
    If(If),
    /// A role takes the next stage of a ring.
    Begin(Handle<Hold>),
    /// A role gives it back.
    End(Handle<Hold>),
}

/// `if cond { then } else { otherwise }`
#[derive(Clone, Debug)]
pub struct If {
    /// A truth value.
    pub cond: Value,
    /// What happens where it holds.
    pub then: Vec<Stmt>,
    /// What happens where it does not.
    pub otherwise: Vec<Stmt>,
    /// Where it was written.
    pub span: Span,
}

/// Whether a loop stays a loop in CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// `serial`: a loop.
    No,
    /// `let`: it has one iteration, and its variable is the name of an expression.
    Once,
    /// `unroll`: one copy of the body per iteration.
    Full,
    /// `pipelined`: a loop whose shared buffers have this many stages, or as many as the compiler chooses, so that copies to
    /// them may run one iteration less ahead of what uses them ([`Kernel::fills`]). Its results are those of a serial loop.
    Pipelined(Option<i64>),
    /// `claimed`: a loop over tiles. A launch has a CTA for each value, or a cluster, whose own value is where the loop begins; those
    /// that run take over the values of others that have not started. Each value is taken once, by whichever CTA claims it.
    Claimed,
}

/// The iterations number `index`, `index + of`, `index + 2*of` and so on of a loop, from 0 on. As many roles as `of` says execute all of
/// them together. Each passes the stages of rings that the others use in theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first iteration.
    pub index: i64,
    /// How many roles there are.
    pub of: i64,
}

/// A loop around ops.
#[derive(Clone, Debug)]
pub struct Loop {
    /// What it counts through.
    pub counter: Counter,
    /// Serial, unrolled or pipelined.
    pub unroll: Unroll,
    /// The variant that the user asks for, if it is pipelined.
    pub variant: Option<String>,
    /// Which of the iterations its role executes, if other roles execute the rest.
    pub part: Option<Part>,
    /// Variables that name the place of a tile in its body, if it is a loop over tiles: in two iterations, one of them differs.
    pub place: Vec<Var>,
    /// What is repeated.
    pub body: Vec<Stmt>,
    /// Where it was written.
    pub span: Span,
}

impl Loop {
    /// Whether an iteration may use what an earlier one has left in fragments and shared memory: it does not if it is not known which one
    /// that was, or if another role executed it.
    pub fn carries(&self) -> bool {
        self.unroll != Unroll::Claimed && self.part.is_none()
    }
}

impl Kernel {
    /// What all CTAs of the grid together have, if each has this many.
    pub fn in_all_ctas(&self, of_each: Expr) -> Expr {
        self.grid.iter().fold(of_each, |product, ctas| product * ctas.clone())
    }

    /// A kernel of one CTA of 32 threads, in which nothing is declared yet.
    pub fn new(name: &str, span: Span) -> Kernel {
        Kernel {
            name: name.to_string(),
            span,
            sizes: Vec::new(),
            scalars: Vec::new(),
            loaded: Vec::new(),
            grid: [1, 1, 1].map(Expr::constant),
            grid_span: span,
            cluster: None,
            threads: 32,
            threads_span: span,
            buffers: Arena::new(),
            ops: Arena::new(),
            combiners: Arena::new(),
            parallels: Arena::new(),
            roles: Arena::new(),
            rings: Arena::new(),
            holds: Arena::new(),
            seen_by: None,
            body: Vec::new(),
            allow_conversions: false,
            widest_global: WIDEST,
            copied_ahead: BTreeSet::new(),
            alone: BTreeSet::new(),
            caching: BTreeMap::new(),
            always_shares: false,
            moves_registers: None,
            overlap: None,
            unclaimed: Vec::new(),
            contracts: true,
            build_findings: Vec::new(),
        }
    }

    /// The dtype of the scalar parameter with this name.
    pub fn scalar_dtype(&self, name: &str) -> Option<DType> {
        self.scalars.iter().find(|scalar| scalar.name == name).map(|scalar| scalar.dtype)
    }

    /// The most bytes of a buffer in memory that a thread moves at once.
    pub fn widest_access(&self, buffer: Handle<Buffer>) -> i64 {
        match self.buffers[buffer].space {
            Space::Global(_) if self.copied_ahead.contains(&self.storage(buffer)) => self.widest_global.min(WIDEST),
            // CUDA has no cache hint for 32 bytes.
            Space::Global(_) if self.caching_of(buffer).is_some() => self.widest_global.min(WIDEST),
            Space::Global(_) => self.widest_global,
            Space::Shared | Space::Fragment | Space::Tensor => WIDEST,
        }
    }

    /// How accesses to a buffer are cached, if the user says it of it, its owner or another view.
    pub fn caching_of(&self, buffer: Handle<Buffer>) -> Option<Caching> {
        self.caching.get(&self.storage(buffer)).copied()
    }

    /// The buffer that owns the storage of `handle`: itself, or what it is a view of.
    pub fn storage(&self, handle: Handle<Buffer>) -> Handle<Buffer> {
        let mut owner = handle;
        while let Some(next) = self.buffers[owner].view_of {
            owner = next;
        }
        owner
    }

    /// The dimension of a fragment along which the tile is a separate slice for each warp: the tile starts at the warp
    /// index there, the layout maps the dimension to the warps of the CTA in order, and nothing else in the layout
    /// differs between warps.
    pub fn warp_slice_dimension(&self, tile: &Tile) -> Option<usize> {
        let buffer = &self.buffers[tile.buffer];
        let Some(Layout::Tile(layout)) = buffer.layout.as_ref().filter(|_| buffer.space == Space::Fragment) else {
            return None;
        };
        let dimension = tile.starts.iter().position(|start| *start == Expr::var(&self.warp()))?;
        let each_warp = Iter { extent: self.warps(), stride: 1, axis: WARPID };
        let grouped = layout.group(&buffer.shape).ok()?;
        let is_warps = tile.extents[dimension] == 1 && *grouped.dimension(dimension) == [each_warp];
        let moves = |iter: &&Iter| iter.extent > 1 && iter.axis.is_thread() && iter.axis != LANEID;
        let moving = layout.shard().iter().chain(layout.replica()).filter(moves).count();
        (is_warps && moving == 1 && layout.offset().keys().all(|axis| !axis.is_thread() || *axis == LANEID))
            .then_some(dimension)
    }
}
