//! Tile ops. A row of the table below is all that printer, verifier, inference and builder know of an op.

use tilewright_diag::Span;
use tilewright_expr::Var;
use tilewright_layout::Layout;
use tilewright_layout::axis::Scope;

use crate::scalar::Scalar;
use crate::tile::attributes::{Gemm, Reduce};
use crate::tile::element::{Claim, Element};
use crate::tile::kernel::{Kernel, Tile};
use crate::tile::value::Value;

/// What an op does to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Every element is read.
    Read,
    /// Every element is read, and only moved: what it is does not matter to the op.
    Move,
    /// Every element is written.
    Write,
    /// Every element is read and written.
    Update,
}

impl Effect {
    /// Whether it changes elements.
    pub fn writes(self) -> bool {
        match self {
            Effect::Read | Effect::Move => false,
            Effect::Write | Effect::Update => true,
        }
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

/// How the work of an op is shared among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// Elements with the same index belong together, and have nothing to do with others ([`Kernel::op_element`]): any thread
    /// may do any of them.
    Elementwise,
    /// Elements along a dimension become one: threads that have parts of a row put these together.
    Reduction,
    /// A product of matrices: whole warps do it, and the instruction dictates which thread has what of a fragment.
    Product,
    /// The lanes of a warp move a tile together, in the order that a variant chooses.
    Permutation,
}

/// A row of the op table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Its name in every text.
    pub name: &'static str,
    /// Its operands, the destination first.
    pub operands: &'static [Operand],
    /// How threads share it.
    pub class: OpClass,
    /// The scopes that may execute it.
    pub scopes: &'static [Scope],
}

macro_rules! tile_ops {
    ($(
        $(#[$doc:meta])*
        $kind:ident $(($told:ident: $attributes:ty))? {
            operands: $name:ident($($operand:ident: $effect:ident),*),
            words: $words:expr,
            overwrites: $overwrites:expr,
            class: $class:ident,
            scopes: [$($scope:ident),*],
        }
    )*) => {
        /// Which op it is, and what it is told beyond its operands.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum OpKind {
            $($(#[$doc])* $kind $(($attributes))?,)*
        }

        impl OpKind {
            /// Its row of the table.
            pub fn info(self) -> OpInfo {
                match self {
                    $(OpKind::$kind { .. } => OpInfo {
                        name: stringify!($name),
                        operands: &[$(Operand { name: stringify!($operand), effect: Effect::$effect }),*],
                        class: OpClass::$class,
                        scopes: &[$(Scope::$scope),*],
                    },)*
                }
            }

            /// What stands behind the operands where it is printed: words between commas.
            pub(crate) fn words(self) -> Vec<String> {
                match self {
                    $(OpKind::$kind $(($told))? => $words,)*
                }
            }

            /// Whether a destination that it would update is overwritten instead, whatever it holds.
            // Not every row asks its attributes.
            #[allow(unused_variables)]
            pub(crate) fn overwrites(self) -> bool {
                match self {
                    $(OpKind::$kind $(($told))? => $overwrites,)*
                }
            }
        }
    };
}

tile_ops! {
    /// Elements move to the same index of another tile; nothing changes but where they are.
    Copy {
        operands: copy(dst: Write, src: Move),
        words: Vec::new(),
        overwrites: false,
        class: Elementwise,
        scopes: [Warp, Cta],
    }

    /// Every element becomes one constant.
    Fill(value: Scalar) {
        operands: fill(dst: Write),
        words: vec![value.to_string()],
        overwrites: false,
        class: Elementwise,
        scopes: [Warp, Cta],
    }

    /// A warp moves a tile from one layout to another; operands may share storage.
    PermuteLayout {
        operands: permute_layout(dst: Write, src: Move),
        words: Vec::new(),
        overwrites: false,
        class: Permutation,
        scopes: [Warp],
    }

    /// Elements along one dimension become one; see [`Reduce`].
    Reduce(reduce: Reduce) {
        operands: reduce(dst: Update, src: Read),
        words: reduce.words(),
        overwrites: reduce.clear,
        class: Reduction,
        scopes: [Cta],
    }

    /// A product of matrices is added to a matrix; see [`Gemm`].
    Gemm(gemm: Gemm) {
        operands: gemm(c: Update, a: Read, b: Read),
        words: gemm.words(),
        overwrites: gemm.clear,
        class: Product,
        scopes: [Cta],
    }

    /// Elements are added to elements of memory, whoever else does so.
    AtomicAdd {
        operands: atomic_add(dst: Update, src: Read),
        words: Vec::new(),
        overwrites: false,
        class: Elementwise,
        scopes: [Cta],
    }
}

/// A tile op of a kernel.
#[derive(Clone, Debug)]
pub struct Op {
    /// Which op, and what it is told beyond its operands.
    pub kind: OpKind,
    /// Who executes it together.
    pub scope: Scope,
    /// The warp that executes it, if it was named; else every warp of the CTA does.
    pub warp: Option<i64>,
    /// The operands, in the order of the table.
    pub operands: Vec<Tile>,
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
}

impl Kernel {
    /// What an elementwise op does to the elements at these variables; `None` for ops of the other classes.
    pub fn op_element(&self, op: &Op, vars: &[Var]) -> Option<Element> {
        let access = |tile: &Tile| tile.access(vars, op.span);
        let store = |to: &Tile, value: Value| Element::Store { to: access(to), value, claim: Claim::None };
        match (op.kind, &op.operands[..]) {
            (OpKind::Copy, [dst, src]) => Some(store(dst, Value::Load(access(src)))),
            (OpKind::Fill(value), [dst]) => Some(store(dst, Value::Const(value))),
            (OpKind::AtomicAdd, [dst, src]) => {
                Some(Element::AtomicAdd { to: access(dst), value: Value::Load(access(src)) })
            }
            (OpKind::Reduce(_) | OpKind::Gemm(_) | OpKind::PermuteLayout, _) => None,
            // The verifier refuses other numbers of operands.
            (OpKind::Copy | OpKind::Fill(_) | OpKind::AtomicAdd, _) => None,
        }
    }
}
