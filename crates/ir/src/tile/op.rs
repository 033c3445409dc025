//! Tile ops. A row of the table below is all that printer, verifier, effects and builder know of an op.

use tilewright_diag::Span;
use tilewright_expr::Var;
use tilewright_layout::Layout;
use tilewright_layout::axis::Scope;

use crate::scalar::Scalar;
use crate::tile::element::{Claim, Element};
use crate::tile::kernel::Tile;
use crate::tile::value::Value;

/// What an op does to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Every element is read.
    Read,
    /// Every element is written.
    Write,
    /// Every element is read and written.
    Update,
}

impl Effect {
    /// Whether it looks at elements.
    pub fn reads(self) -> bool {
        self != Effect::Write
    }

    /// Whether it changes elements.
    pub fn writes(self) -> bool {
        self != Effect::Read
    }
}

/// An operand in the op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What the operand is called in messages.
    pub name: &'static str,
    /// What the op does to it.
    pub effect: Effect,
}

/// A row of the op table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Its name in every text.
    pub name: &'static str,
    /// Its operands, the destination first.
    pub operands: &'static [Operand],
    /// What it is told beyond its operands.
    pub takes: Takes,
    /// The scopes that may execute it.
    pub scopes: &'static [Scope],
}

macro_rules! tile_ops {
    ($($(#[$doc:meta])* $kind:ident = $name:literal ($($operand:ident: $effect:ident),*) $takes:ident in [$($scope:ident),*];)*) => {
        /// Which op it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OpKind {
            $($(#[$doc])* $kind,)*
        }

        impl OpKind {
            /// Every op.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$kind),*];

            /// Its row of the table.
            pub fn info(self) -> OpInfo {
                match self {
                    $(OpKind::$kind => OpInfo {
                        name: $name,
                        operands: &[$(Operand { name: stringify!($operand), effect: Effect::$effect }),*],
                        takes: Takes::$takes,
                        scopes: &[$(Scope::$scope),*],
                    },)*
                }
            }
        }
    };
}

tile_ops! {
    /// Elements move to the same index of another tile; nothing changes but where they are.
    Copy = "copy" (dst: Write, src: Read) Nothing in [Warp, Cta];
    /// Every element becomes one constant.
    Fill = "fill" (dst: Write) Constant in [Warp, Cta];
    /// A warp moves a tile from one layout to another; operands may share storage.
    PermuteLayout = "permute_layout" (dst: Write, src: Read) Nothing in [Warp];
    /// Elements along one dimension become one; see [`Reduce`].
    Reduce = "reduce" (dst: Update, src: Read) Reduce in [Cta];
    /// A product of matrices is added to a matrix; see [`Gemm`].
    Gemm = "gemm" (c: Update, a: Read, b: Read) Gemm in [Cta];
    /// Elements are added to elements of memory, whoever else does so.
    AtomicAdd = "atomic_add" (dst: Update, src: Read) Nothing in [Cta];
}

/// How elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceKind {
    /// Their sum.
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The greatest absolute value.
    AbsMax,
    /// The sum of the absolute values.
    AbsSum,
}

impl ReduceKind {
    /// Every kind.
    pub const ALL: &'static [ReduceKind] =
        &[ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::AbsMax, ReduceKind::AbsSum];

    /// Its name in every text.
    pub fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
            ReduceKind::AbsMax => "absmax",
            ReduceKind::AbsSum => "abssum",
        }
    }
}

/// What `reduce` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// How elements become one.
    pub kind: ReduceKind,
    /// The dimension of the source that goes, or becomes 1; counted with those of extent 1.
    pub dimension: usize,
    /// The destination is overwritten; else it takes part.
    pub clear: bool,
}

/// How the warps of a CTA share the rows and columns of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpPolicy {
    /// Parts as square as possible.
    Square,
    /// As many warps along the rows as possible.
    FullRow,
    /// As many warps along the columns as possible.
    FullCol,
}

impl WarpPolicy {
    /// Its name in every text.
    pub fn name(self) -> &'static str {
        match self {
            WarpPolicy::Square => "square",
            WarpPolicy::FullRow => "full_row",
            WarpPolicy::FullCol => "full_col",
        }
    }
}

/// What `gemm` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// `a` is K x M, not M x K.
    pub transpose_a: bool,
    /// `b` is N x K, not K x N.
    pub transpose_b: bool,
    /// How warps share the product.
    pub policy: WarpPolicy,
    /// `c` is overwritten; else the product is added to it.
    pub clear: bool,
    /// Multiplicands of f32 are rounded to tf32, which has 10 bits of mantissa; there are no products of f32 itself.
    pub tf32: bool,
}

/// What an op is told beyond its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detail {
    /// Nothing.
    Nothing,
    /// A constant, of which all elements are to be.
    Constant(Scalar),
    /// Of `reduce`.
    Reduce(Reduce),
    /// Of `gemm`.
    Gemm(Gemm),
}

/// Which [`Detail`] an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None.
    Nothing,
    /// A constant.
    Constant,
    /// What `reduce` is told.
    Reduce,
    /// What `gemm` is told.
    Gemm,
}

impl Detail {
    /// Which it is.
    pub fn takes(self) -> Takes {
        match self {
            Detail::Nothing => Takes::Nothing,
            Detail::Constant(_) => Takes::Constant,
            Detail::Reduce(_) => Takes::Reduce,
            Detail::Gemm(_) => Takes::Gemm,
        }
    }

    /// The constant, if it is one.
    pub fn constant(self) -> Option<Scalar> {
        match self {
            Detail::Constant(value) => Some(value),
            Detail::Nothing | Detail::Reduce(_) | Detail::Gemm(_) => None,
        }
    }

    /// As it stands behind the operands: words between commas.
    pub(crate) fn words(self) -> Vec<String> {
        let flags = |flags: &[(bool, &str)]| -> Vec<String> {
            flags.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_string()).collect()
        };
        match self {
            Detail::Nothing => Vec::new(),
            Detail::Constant(value) => vec![value.to_string()],
            Detail::Reduce(Reduce { kind, dimension, clear }) => {
                let mut words = vec![kind.name().to_string(), format!("dimension {dimension}")];
                words.extend(flags(&[(!clear, "accumulate")]));
                words
            }
            Detail::Gemm(Gemm { transpose_a, transpose_b, policy, clear, tf32 }) => {
                let mut words = flags(&[(transpose_a, "transpose_a"), (transpose_b, "transpose_b")]);
                words.push(policy.name().to_string());
                words.extend(flags(&[(clear, "clear"), (tf32, "tf32")]));
                words
            }
        }
    }
}

/// A tile op of a kernel.
#[derive(Clone, Debug)]
pub struct Op {
    /// Which op.
    pub kind: OpKind,
    /// Who executes it together.
    pub scope: Scope,
    /// The warp that executes it, if it was named; else every warp of the CTA does.
    pub warp: Option<i64>,
    /// The operands, in the order of the table.
    pub operands: Vec<Tile>,
    /// What it is told beyond its operands.
    pub detail: Detail,
    /// The variant that the user forces.
    pub variant: Option<String>,
    /// What the user calls it.
    pub name: Option<String>,
    /// Which thread moves which element of its tiles, in which step (on `reg`), for ops whose elements move alone;
    /// `None` where that is left to lowering.
    pub layout: Option<Layout>,
    /// Where it was written.
    pub span: Span,
}

impl Op {
    /// Variables that move through the extents of its tiles, those of 1 left out, in order.
    pub fn vars(&self) -> Vec<Var> {
        let extents = self.operands.first().map(Tile::moving_extents).unwrap_or_default();
        extents.iter().enumerate().map(|(at, extent)| Var::new(format!("#{at}"), 0, extent - 1)).collect()
    }

    /// What it does to the elements at these variables; `None` for ops whose elements do not move alone.
    pub fn element(&self, vars: &[Var]) -> Option<Element> {
        let access = |tile: &Tile| tile.access(vars, self.span);
        let to = access(self.operands.first()?);
        match (self.kind, self.operands.get(1)) {
            (OpKind::Copy, Some(src)) => {
                Some(Element::Store { to, value: Value::Load(access(src)), claim: Claim::None })
            }
            (OpKind::AtomicAdd, Some(src)) => Some(Element::AtomicAdd { to, value: Value::Load(access(src)) }),
            (OpKind::Fill, _) => {
                Some(Element::Store { to, value: Value::Const(self.detail.constant()?), claim: Claim::None })
            }
            _ => None,
        }
    }
}
