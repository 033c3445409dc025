//! Tile programs, as plain data.

use std::collections::BTreeMap;

use super::expr::{Index, Value};

/// A tile program, written for one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The number of threads of a block.
    pub threads: i64,
    /// The numbers of blocks in x, y and z, for the dimensions that the program uses.
    pub grid: Vec<i64>,
    /// Tensors in global memory, row-major.
    pub params: Vec<Buffer>,
    /// Fragments and tiles in shared memory.
    pub buffers: Vec<Buffer>,
    /// Layouts specified by the program, by buffer.
    pub layouts: BTreeMap<String, Layout>,
    /// Layouts of loops, by the name that [`Parallel::loop_layout`] refers to.
    pub loop_layouts: BTreeMap<String, Layout>,
    /// The operations, in order.
    pub body: Vec<Op>,
}

/// A named array of elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// The scope. A view has the scope of the viewed buffer.
    pub scope: Scope,
    /// The elements' type, such as `float32`.
    pub dtype: String,
    /// The extents.
    pub shape: Vec<i64>,
    /// The buffer whose storage this one is a view of.
    pub alias_of: Option<String>,
}

/// The scope of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Global memory.
    Global,
    /// Shared memory.
    Shared,
    /// Registers, distributed over the threads.
    Fragment,
    /// Private registers of each thread.
    Local,
}

/// The placement of a fragment's elements or of a loop's iterations: thread and slot as expressions over `i0`, `i1`, ..
/// and the replica `rep`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The extents of `i0`, `i1`, ..
    pub shape: Vec<i64>,
    /// The number of replicas: `rep` counts from 0 to this, exclusively.
    pub replicate: i64,
    /// The thread.
    pub thread: Index,
    /// The slot among the thread's registers.
    pub index: Index,
}

/// An operation on tiles.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A nest of parallel loops.
    Parallel(Parallel),
    /// A loop around operations.
    Loop(Loop),
    /// Operations under a uniform condition.
    If {
        /// The condition. Every thread reads the elements of fragments in it.
        cond: Value,
        /// Executed if the condition holds.
        then: Vec<Op>,
        /// Executed otherwise.
        otherwise: Vec<Op>,
    },
    /// Statements on elements outside of any tile operation, executed by every thread.
    Scalar(Vec<Element>),
    /// A copy, with a conversion if the dtypes differ.
    Copy {
        /// What is read.
        src: Region,
        /// The destination, with the same extents except for those of 1.
        dst: Region,
        /// An upper bound on the elements per access.
        coalesced_width: Option<i64>,
    },
    /// One value for every element.
    Fill {
        /// What is written.
        dst: Region,
        /// The value.
        value: f64,
    },
    /// A reduction over one dimension.
    Reduce(Reduce),
    /// A matrix product.
    Gemm(Gemm),
    /// A copy that adds to its destination.
    AtomicAdd {
        /// The destination.
        dst: Region,
        /// The source.
        src: Region,
    },
}

/// A nest of parallel loops: iterations in any order, on any threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Parallel {
    /// The loop variables, outermost first.
    pub vars: Vec<String>,
    /// Their extents.
    pub extents: Vec<i64>,
    /// The statements of an iteration.
    pub body: Vec<Element>,
    /// The name of a layout in [`Program::loop_layouts`].
    pub loop_layout: Option<String>,
    /// An upper bound on the elements per access.
    pub coalesced_width: Option<i64>,
}

/// A loop around operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// How it is executed.
    pub kind: LoopKind,
    /// Its variable.
    pub var: String,
    /// The variable is from 0 to this.
    pub extent: i64,
    /// The stages of a pipelined loop.
    pub num_stages: Option<i64>,
    /// What is repeated.
    pub body: Vec<Op>,
}

/// How a non-parallel loop is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoopKind {
    /// As a loop, one iteration after the other.
    Serial,
    /// Unrolled.
    Unroll,
    /// Copies of later iterations overlap the work of earlier ones.
    Pipelined,
}

/// A reduction over one dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// The operation that combines the elements.
    pub kind: ReduceKind,
    /// The source buffer.
    pub src: String,
    /// The destination buffer.
    pub dst: String,
    /// The dimension that is reduced.
    pub dim: usize,
    /// False if the results are combined with the contents of `dst`.
    pub clear: bool,
}

/// The operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReduceKind {
    /// The sum.
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The largest absolute value.
    AbsMax,
    /// The sum of the absolute values.
    AbsSum,
}

/// `c += a * b`
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// The left operand.
    pub a: String,
    /// The right operand.
    pub b: String,
    /// The accumulator.
    pub c: String,
    /// `a` holds k by m.
    pub transpose_a: bool,
    /// `b` holds n by k.
    pub transpose_b: bool,
    /// How the accumulator is distributed over the warps.
    pub policy: WarpPolicy,
    /// Whether the accumulator is zeroed first.
    pub clear_accum: bool,
}

/// How the accumulator of a matrix product is distributed over warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WarpPolicy {
    /// Every warp's part is close to a square.
    Square,
    /// As many warps as possible along the rows.
    FullRow,
    /// As many warps as possible along the columns.
    FullCol,
}

/// A box of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The buffer's name.
    pub buffer: String,
    /// One range per dimension; `None` is the whole buffer.
    pub ranges: Option<Vec<RegionRange>>,
}

/// A range of one dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionRange {
    /// Where it begins.
    pub min: Index,
    /// How long it is.
    pub extent: i64,
    /// True if the program specifies an index instead of a range.
    pub point: bool,
}

/// A statement on elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A store to an element.
    Store(Store),
    /// An atomic addition to an element.
    AtomicAdd(Store),
    /// A name for a value, valid until the end of the list of statements.
    Let {
        /// The name.
        name: String,
        /// The number.
        value: Index,
    },
    /// Statements under a condition.
    If {
        /// The condition.
        cond: Value,
        /// Executed if the condition holds.
        then: Vec<Element>,
        /// Executed otherwise.
        otherwise: Vec<Element>,
    },
    /// A loop within an iteration.
    For {
        /// How it is executed.
        kind: LoopKind,
        /// Its variable.
        var: String,
        /// The variable is from 0 to this.
        extent: i64,
        /// What is repeated.
        body: Vec<Element>,
    },
}

/// A value for an element of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// The buffer's name.
    pub buffer: String,
    /// One index per dimension.
    pub index: Vec<Index>,
    /// The value.
    pub value: Value,
}

impl Program {
    /// The parameter or buffer of that name.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.params.iter().chain(&self.buffers).find(|buffer| buffer.name == name)
    }
}

impl Buffer {
    /// The width of an element in bits: the first number in the dtype's name.
    pub fn bits(&self) -> Option<i64> {
        bits_of(&self.dtype)
    }
}

/// The width in bits given by the name of a dtype: its first number. A `bool` has 8.
pub(crate) fn bits_of(dtype: &str) -> Option<i64> {
    let digits = dtype.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit);
    let bits = digits.collect::<String>().parse().ok().filter(|bits| *bits > 0);
    if dtype == "bool" { Some(8) } else { bits }
}
