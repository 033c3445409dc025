//! Random programs in short.
//!
//! Every value of these types means a program: numbers choose modulo what there is to choose from. So whatever shrinking
//! makes of a sketch is a program again.

use super::super::expr::ValueOp;
use super::super::program::ReduceKind;

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sketch {
    pub(crate) threads: i64,
    /// One at least.
    pub(crate) fragments: Vec<FragmentSketch>,
    pub(crate) steps: Vec<Step>,
    pub(crate) around: Option<Around>,
    /// A fragment that the program lays out itself, and how.
    pub(crate) laid_out: Option<(usize, Arrangement)>,
}

/// A fragment, with what it holds at first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FragmentSketch {
    /// One or two extents.
    pub(crate) shape: Vec<i64>,
    pub(crate) kind: Kind,
    pub(crate) start: Start,
    /// Whether it is copied to memory in the end.
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

    /// Whether elements may be converted: what is beyond the range of 8 bits is not defined for floats.
    pub(crate) fn may_become(self, other: Kind) -> bool {
        !(self.is_float() && other == Kind::I8)
    }
}

/// What a fragment holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Fill,
    /// A copy of a parameter.
    Load,
    /// A parameter with the dimensions in the other order.
    Turned,
    /// A parameter, by way of shared memory.
    Staged,
}

/// What is done to fragments and memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Nest(NestSketch),
    Copy(CopySketch),
    /// A reduction into a fragment of its own, which is one of the fragments from then on.
    Reduce {
        src: usize,
        dim: usize,
        kind: ReduceKind,
        clear: bool,
        /// Whether the result keeps the dimension, with the extent 1.
        keeps: bool,
    },
    Fill {
        of: usize,
        part: Part,
        value: i64,
    },
    /// Through shared memory and back, read in another order there.
    Stage {
        of: usize,
        back: [Pattern; 2],
    },
    /// A view of another dtype, copied from or to a parameter.
    View {
        of: usize,
        /// Elements of half the width, twice as many.
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
    /// The fragment over whose elements the loops go.
    pub(crate) of: usize,
    /// By how much the loops are shorter than its dimensions.
    pub(crate) cut: [i64; 2],
    /// Whether the loops are in the other order.
    pub(crate) is_swapped: bool,
    pub(crate) extra: Option<Extra>,
    pub(crate) store: [Pattern; 2],
    pub(crate) terms: [Term; 2],
    pub(crate) combine: Combine,
    pub(crate) cond: Option<Cond>,
    /// Rounds of a loop inside of an iteration; 1 for none.
    pub(crate) inner: i64,
    /// Whether an index gets a name.
    pub(crate) is_named: bool,
    pub(crate) width: Option<i64>,
    /// Whether the program says which thread does which iteration.
    pub(crate) is_laid_out: bool,
}

/// Where a nest stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// In the fragment over which the loops go.
    Fragment,
    /// In a parameter of its own.
    Global,
}

/// A loop over nothing in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) extent: i64,
    pub(crate) is_first: bool,
}

/// What a value is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) source: Source,
    pub(crate) patterns: [Pattern; 2],
}

/// Where a term comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Fragment(usize),
    /// A parameter of its own.
    Global(Kind, Order),
    Variable,
    Constant(i64),
}

/// The loops that the dimensions of a parameter belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Same,
    Turned,
    First,
    Last,
}

/// What is made of two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Only the first one.
    Move,
    Twice,
    Sum,
    Difference,
    Product,
    Greatest,
    /// One or the other, by an index.
    Choice,
    /// The exponential function of the first one, if it is a float.
    Exp,
}

/// The index of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) form: Form,
    pub(crate) by: i64,
    /// Whether it goes with the next loop.
    pub(crate) is_turned: bool,
}

impl Pattern {
    /// The variable itself.
    pub(crate) const SAME: Pattern = Pattern { form: Form::Same, by: 0, is_turned: false };
}

/// What an index makes of a loop variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Same,
    Reversed,
    Shifted,
    /// Shifted, and what leaves the dimension enters it again.
    Rotated,
    /// Rotated by the variable of the loop around.
    Rolling,
    Halved,
    Doubled,
    /// The remainder of a small number.
    Wrapped,
    /// A constant.
    Fixed,
    /// The sum of two loop variables.
    Diagonal,
    /// Rotated by the variable of the loop inside.
    Inner,
}

/// A condition on a loop variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cond {
    pub(crate) is_turned: bool,
    /// A comparison.
    pub(crate) op: ValueOp,
    pub(crate) by: i64,
    /// Whether it compares with the variable of the loop around, if there is one.
    pub(crate) by_round: bool,
    /// Whether something else is stored where it does not hold.
    pub(crate) has_otherwise: bool,
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopySketch {
    pub(crate) way: Way,
    pub(crate) of: usize,
    pub(crate) other: usize,
    pub(crate) part: Part,
    /// Where it begins in memory, or in the other fragment.
    pub(crate) offset: i64,
    /// Elements of the parameter behind it; fewer than none, where it hangs over the edge.
    pub(crate) tail: i64,
    /// The parameter's dtype, if it is another.
    pub(crate) kind: Option<Kind>,
    /// Whether it moves on with the loop around.
    pub(crate) is_moving: bool,
}

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
    /// From another fragment, if that has as many dimensions.
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
    /// The round from which on the last op is done.
    pub(crate) from: Option<i64>,
}

/// A layout that a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// Vectors of so many elements, in order.
    InOrder(i64),
    /// Every thread has all.
    Whole,
    /// Two copies of every element.
    Twice,
    /// One element for every thread, the last one outside of the block.
    Outside,
    /// One slot: a clash where there are more elements than threads.
    OneSlot,
}
