//! Tile ops. A row of the table below is all that printer, verifier, effects and builder know of an op.

use tilewright_diag::Span;
use tilewright_layout::axis::Scope;

use crate::scalar::Scalar;
use crate::tile::kernel::Tile;

/// What an op does to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Every element is read.
    Read,
    /// Every element is written.
    Write,
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
    /// Whether it takes a constant.
    pub takes_value: bool,
    /// The scopes that may execute it.
    pub scopes: &'static [Scope],
}

macro_rules! tile_ops {
    ($($(#[$doc:meta])* $kind:ident = $name:literal ($($operand:ident: $effect:ident),*) $value:literal in [$($scope:ident),*];)*) => {
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
                        takes_value: $value,
                        scopes: &[$(Scope::$scope),*],
                    },)*
                }
            }
        }
    };
}

tile_ops! {
    /// Elements move to the same index of another tile; nothing changes but where they are.
    Copy = "copy" (dst: Write, src: Read) false in [Warp, Cta];
    /// Every element becomes one constant.
    Fill = "fill" (dst: Write) true in [Warp, Cta];
    /// A warp moves a tile from one layout to another; operands may share storage.
    PermuteLayout = "permute_layout" (dst: Write, src: Read) false in [Warp];
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
    /// The constant, if the op takes one.
    pub value: Option<Scalar>,
    /// The variant that the user forces.
    pub variant: Option<String>,
    /// What the user calls it.
    pub name: Option<String>,
    /// Where it was written.
    pub span: Span,
}
