//! Copies by the copy engine (TMA), and the rings that they fill.

use tilewright_expr::{Expr, Var};
use tilewright_layout::DType;
use tilewright_layout::descriptor::Boxes;

use crate::arena::{Arena, Handle};
use crate::thread::program::{Memory, Stmt};
use crate::tile::{AtomicOp, PAIR};

/// Stages of shared memory that an engine fills and threads read, one after the other, ordered by barriers in shared memory
/// alone (PTX ISA, "mbarrier"): iteration `i` uses stage `i % stages`, in phase `i / stages` of its barriers.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Its name: that of its loop.
    pub name: String,
    /// What a stage carries.
    pub payload: Vec<Handle<Memory>>,
    /// The number of stages.
    pub stages: i64,
    /// A barrier for each stage. A phase ends when all bytes of the stage have arrived; one thread announces them.
    pub full: Handle<Memory>,
    /// A barrier for each stage. A phase ends when all warps have read the stage; `None` if no stage is filled twice.
    pub empty: Option<Handle<Memory>>,
    /// The warps that read a stage, each of which arrives at its barrier once.
    pub consumers: i64,
}

/// Where a warp is in a ring that roles share: variables that it changes itself, from 0 on.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// The stage that it uses next.
    pub stage: Var,
    /// How often it has gone around the ring, modulo 2: the parity of the phases of that stage's barriers.
    pub phase: Var,
    /// The number of stages.
    pub stages: i64,
}

impl Cursor {
    /// The cursor of a ring of so many stages, with names for its variables.
    pub fn new([stage, phase]: [String; 2], stages: i64) -> Cursor {
        Cursor { stage: Var::new(stage, 0, stages - 1), phase: Var::new(phase, 0, 1), stages }
    }

    /// The stage that is used next.
    pub fn at(&self) -> Expr {
        if self.stages == 1 { Expr::constant(0) } else { Expr::var(&self.stage) }
    }

    /// Its variables: with one stage, only the phase.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        (self.stages > 1).then_some(&self.stage).into_iter().chain([&self.phase])
    }
}

impl Ring {
    /// The memory whose accesses its barriers order: the stages, and the barriers themselves.
    pub fn memories(&self) -> impl Iterator<Item = Handle<Memory>> {
        self.payload.iter().copied().chain([self.full]).chain(self.empty)
    }
}

/// How to make the tensor map of a tensor: a parameter of the kernel, which a launch encodes from the sizes (CUDA driver
/// API, `cuTensorMapEncodeTiled`).
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMapRecipe {
    /// The name of the parameter.
    pub name: String,
    /// The tensor.
    pub tensor: Handle<Memory>,
    /// Elements of the boxes from the beginning of the memory to the first of the tensor.
    pub start: i64,
    /// Extents of the tensor.
    pub extents: Vec<Expr>,
    /// Distance of neighbours of each dimension, in elements.
    pub strides: Vec<Expr>,
    /// What a copy moves.
    pub boxes: Boxes,
    /// What the elements are for the copy engine: it compares signed integers, but adds those of 64 bits, and combines bits, as
    /// unsigned ones, with the same results (PTX ISA, "cp.reduce.async.bulk.tensor").
    pub elements: DType,
}

/// One thread starts to copy a part of a tensor to shared memory, or from there.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorCopy {
    /// The part of the tensor.
    pub part: TensorPart,
    /// Its first element in shared memory.
    pub shared: (Handle<Memory>, Expr),
    /// Its bytes.
    pub bytes: i64,
    /// Where it goes, and what tells that it has arrived.
    pub way: EngineWay,
}

/// Runs begin at multiples of as many bytes and have multiples of them (PTX ISA, "cp.async.bulk").
pub const RUN_UNIT: i64 = 16;

/// A part of a tensor that the copy engine moves.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorPart {
    /// A box (PTX ISA, "cp.async.bulk.tensor").
    Box {
        /// The map of the tensor.
        map: Handle<TensorMapRecipe>,
        /// The first index in each dimension of the map, fastest first.
        coordinates: Vec<Expr>,
    },
    /// Neighbouring elements from this one on, in the tensor's memory (PTX ISA, "cp.async.bulk").
    Run {
        /// The memory, and the index there.
        first: (Handle<Memory>, Expr),
    },
}

impl TensorPart {
    /// Its integer expressions.
    pub fn exprs(&self) -> &[Expr] {
        match self {
            TensorPart::Box { coordinates, .. } => coordinates,
            TensorPart::Run { first } => std::slice::from_ref(&first.1),
        }
    }

    fn exprs_mut(&mut self) -> &mut [Expr] {
        match self {
            TensorPart::Box { coordinates, .. } => coordinates,
            TensorPart::Run { first } => std::slice::from_mut(&mut first.1),
        }
    }

    /// The memory of the tensor.
    pub fn tensor(&self, maps: &Arena<TensorMapRecipe>) -> Handle<Memory> {
        match self {
            TensorPart::Box { map, .. } => maps[*map].tensor,
            TensorPart::Run { first } => first.0,
        }
    }
}

/// Where the copy engine moves a part of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineWay {
    /// To shared memory: elements outside of the tensor are 0. When all bytes have arrived, they count at this barrier.
    ToShared {
        /// The memory of the barrier, and its index there.
        full: (Handle<Memory>, Expr),
        /// In which CTAs of a cluster.
        reach: Reach,
    },
    /// To the tensor: elements outside of it are not written. The copy belongs to the bulk group that the thread commits next
    /// ([`Inst::BulkCommit`](crate::thread::Inst::BulkCommit)).
    ToTensor {
        /// How elements are combined with those of the tensor, each atomically and without order, in the scope of the GPU (PTX
        /// ISA, "cp.reduce.async.bulk.tensor"); `None` if they replace them.
        combined: Option<AtomicOp>,
    },
}

/// The CTAs of a cluster to which a part goes, and those at whose barriers it counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Reach {
    /// The CTA of the thread that starts the copy.
    Own,
    /// Several, at the same place in each (PTX ISA, "cp.async.bulk.tensor", `.multicast::cluster`). Each of them brings a part of as many
    /// bytes to all.
    Group {
        /// A bit for the rank of each, if the first one is 0.
        mask: u16,
        /// How many they are.
        ctas: i64,
        /// The rank of the first one.
        first: Expr,
    },
    /// It goes to the CTA of the thread, and counts at the barrier at the same place in the first CTA of its pair (PTX ISA,
    /// "cp.async.bulk.tensor", `.cta_group::2`). Both bring as many bytes.
    OfPair {
        /// The rank of the first CTA of the pair.
        pair: Expr,
    },
    /// As [`Reach::Group`], of which each CTA is of another pair: in each pair, it counts as in [`Reach::OfPair`].
    OfPairs {
        /// A bit for the rank of each, if the first one is 0.
        mask: u16,
        /// How many they are.
        ctas: i64,
        /// The rank of the first one.
        first: Expr,
        /// The rank of the first CTA of the pair of the CTA that starts the copy.
        pair: Expr,
    },
}

impl Reach {
    /// How many CTAs bring bytes that count at the same barrier.
    pub fn bringers(&self) -> i64 {
        match self {
            Reach::Own => 1,
            Reach::Group { ctas, .. } => *ctas,
            Reach::OfPair { .. } => PAIR,
            Reach::OfPairs { ctas, .. } => PAIR * ctas,
        }
    }

    /// Its ranks as expressions.
    fn ranks_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Reach::Own => Vec::new(),
            Reach::Group { first, .. } => vec![first],
            Reach::OfPair { pair } => vec![pair],
            Reach::OfPairs { first, pair, .. } => vec![first, pair],
        }
    }
}

impl TensorCopy {
    /// In which CTAs it arrives.
    pub fn reach(&self) -> &Reach {
        match &self.way {
            EngineWay::ToShared { reach, .. } => reach,
            EngineWay::ToTensor { .. } => &Reach::Own,
        }
    }

    /// The barrier at which its bytes count, if it has one.
    pub fn full(&self) -> Option<&(Handle<Memory>, Expr)> {
        match &self.way {
            EngineWay::ToShared { full, .. } => Some(full),
            EngineWay::ToTensor { .. } => None,
        }
    }

    /// Its places in shared memory: where the part goes or comes from, and its barrier.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut (Handle<Memory>, Expr)> {
        let full = match &mut self.way {
            EngineWay::ToShared { full, .. } => Some(full),
            EngineWay::ToTensor { .. } => None,
        };
        std::iter::once(&mut self.shared).chain(full)
    }

    /// Its integer expressions: indices in shared memory, and coordinates.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (full, ranks) = match &mut self.way {
            EngineWay::ToShared { full, reach } => (Some(&mut full.1), reach.ranks_mut()),
            EngineWay::ToTensor { .. } => (None, Vec::new()),
        };
        std::iter::once(&mut self.shared.1).chain(full).chain(ranks).chain(self.part.exprs_mut())
    }
}

impl From<TensorCopy> for Stmt {
    fn from(copy: TensorCopy) -> Stmt {
        Stmt::TensorCopy(Box::new(copy))
    }
}
