//! Compact descriptions of random programs.
//!
//! Every value of these types denotes a program: numbers select modulo the number of choices. So a sketch can be shrunk
//! arbitrarily and still denotes a program.

use super::super::expr::ValueOp;
use super::super::program::ReduceKind;

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sketch {
    pub(crate) threads: i64,
    /// At least one.
    pub(crate) fragments: Vec<FragmentSketch>,
    pub(crate) steps: Vec<Step>,
    pub(crate) around: Option<Around>,
    /// A fragment for which the program specifies a layout, and the layout.
    pub(crate) laid_out: Option<(usize, Arrangement)>,
}

/// A fragment, with its initial contents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FragmentSketch {
    /// One or two extents.
    pub(crate) shape: Vec<i64>,
    pub(crate) kind: Kind,
    pub(crate) start: Start,
    /// Whether it is copied to memory at the end.
    pub(crate) is_stored: bool,
}

/// The dtype of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
    I32,
    I8,
}

impl Kind {
    /// The name in programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::F32 => "float32",
            Kind::F16 => "float16",
            Kind::I32 => "int32",
            Kind::I8 => "int8",
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Kind::F32 | Kind::F16)
    }

    /// Whether elements may be converted: a conversion of floats beyond the range of 8 bits is not defined.
    pub(crate) fn may_become(self, other: Kind) -> bool {
        !(self.is_float() && other == Kind::I8)
    }
}

/// The initial contents of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Fill,
    /// A copy of a parameter.
    Load,
    /// A transposed parameter.
    Turned,
    /// A parameter, copied through shared memory.
    Staged,
}

/// An operation on fragments and memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Nest(NestSketch),
    Copy(CopySketch),
    /// A reduction into a new fragment, which later steps can use.
    Reduce {
        src: usize,
        dim: usize,
        kind: ReduceKind,
        clear: bool,
        /// Whether the result keeps the dimension, with extent 1.
        keeps: bool,
    },
    Fill {
        of: usize,
        part: Part,
        value: i64,
    },
    /// A round trip through shared memory, read back in another order.
    Stage {
        of: usize,
        back: [Pattern; 2],
    },
    /// A view of another dtype, copied from or to a parameter.
    View {
        of: usize,
        /// Twice as many elements of half the width.
        halves: bool,
        /// One dimension.
        is_flat: bool,
        writes: bool,
    },
}

/// A nest of parallel loops that stores one element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NestSketch {
    pub(crate) target: Target,
    /// The fragment over whose elements the loops iterate.
    pub(crate) of: usize,
    /// The number of iterations by which each loop is shorter than its dimension.
    pub(crate) cut: [i64; 2],
    /// Whether the loops are interchanged.
    pub(crate) is_swapped: bool,
    pub(crate) extra: Option<Extra>,
    pub(crate) store: [Pattern; 2],
    pub(crate) terms: [Term; 2],
    pub(crate) combine: Combine,
    pub(crate) cond: Option<Cond>,
    /// The extent of a loop inside an iteration; 1 for none.
    pub(crate) inner: i64,
    /// Whether an index is bound to a name.
    pub(crate) is_named: bool,
    pub(crate) width: Option<i64>,
    /// Whether the program specifies the layout of the loop.
    pub(crate) is_laid_out: bool,
}

/// The destination of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The fragment over which the loops iterate.
    Fragment,
    /// A separate parameter.
    Global,
}

/// An additional loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) extent: i64,
    pub(crate) is_first: bool,
}

/// The structure of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) source: Source,
    pub(crate) patterns: [Pattern; 2],
}

/// The source of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Fragment(usize),
    /// A separate parameter.
    Global(Kind, Order),
    Variable,
    Constant(i64),
}

/// The loops that correspond to the dimensions of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Same,
    Turned,
    First,
    Last,
}

/// The combination of two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Only the first term.
    Move,
    Twice,
    Sum,
    Difference,
    Product,
    Greatest,
    /// One or the other, selected by an index.
    Choice,
    /// The exponential function of the first term, if it is a float.
    Exp,
}

/// The index of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) form: Form,
    pub(crate) by: i64,
    /// Whether it uses the variable of the next loop.
    pub(crate) is_turned: bool,
}

impl Pattern {
    /// The variable itself.
    pub(crate) const SAME: Pattern = Pattern { form: Form::Same, by: 0, is_turned: false };
}

/// The form of an index of a loop variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Same,
    Reversed,
    Shifted,
    /// Shifted modulo the extent.
    Rotated,
    /// Rotated by the variable of the enclosing loop.
    Rolling,
    Halved,
    Doubled,
    /// The remainder of division by a small number.
    Wrapped,
    /// A constant.
    Fixed,
    /// The sum of two loop variables.
    Diagonal,
    /// Rotated by the variable of the inner loop.
    Inner,
}

/// A condition on a loop variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cond {
    pub(crate) is_turned: bool,
    /// A comparison.
    pub(crate) op: ValueOp,
    pub(crate) by: i64,
    /// Whether it compares with the variable of the enclosing loop, if any.
    pub(crate) by_round: bool,
    /// Whether another value is stored if it does not hold.
    pub(crate) has_otherwise: bool,
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopySketch {
    pub(crate) way: Way,
    pub(crate) of: usize,
    pub(crate) other: usize,
    pub(crate) part: Part,
    /// Its start in memory, or in the other fragment.
    pub(crate) offset: i64,
    /// Elements of the parameter after the part; negative if the part extends past the edge.
    pub(crate) tail: i64,
    /// The parameter's dtype, if it differs.
    pub(crate) kind: Option<Kind>,
    /// Whether it advances with the enclosing loop.
    pub(crate) is_moving: bool,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
    /// From another fragment, if it has the same rank.
    Across,
}

/// A part of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) cut: [i64; 2],
    pub(crate) at: [i64; 2],
}

/// A serial loop around some of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) first: usize,
    pub(crate) steps: usize,
    pub(crate) extent: i64,
    pub(crate) is_unrolled: bool,
    /// The iteration from which on the last op is executed.
    pub(crate) from: Option<i64>,
}

/// A layout specified by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// Vectors of this many elements, in order.
    InOrder(i64),
    /// Every thread holds all elements.
    Whole,
    /// Two copies of every element.
    Twice,
    /// One element per thread, the last one outside of the block.
    Outside,
    /// A single slot: a conflict if there are more elements than threads.
    OneSlot,
}
