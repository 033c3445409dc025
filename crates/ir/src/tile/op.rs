//! Tile ops. A row of the table below is all that printer, verifier, inference and builder know about an op.

use tilewright_diag::Span;
use tilewright_expr::Var;
use tilewright_layout::Layout;
use tilewright_layout::axis::Scope;

use crate::arena::Handle;
use crate::scalar::Scalar;
use crate::tile::atomic::AtomicOp;
use crate::tile::attributes::{Gemm, Reduce, ReduceBy, Scan, ScanBy, ScanOrder};
use crate::tile::combiner::Combiner;
use crate::tile::dimensions::Dimensions;
use crate::tile::role::Role;
use crate::tile::tiles::Tile;

/// What an op does to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Every element is read.
    Read,
    /// Every element is read, but only moved: its value does not matter to the op.
    Move,
    /// Every element is written.
    Write,
    /// Every element is read and written.
    Update,
}

impl Effect {
    /// Whether elements are read.
    pub fn reads(self) -> bool {
        self != Effect::Write
    }

    /// Whether elements are written.
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

/// The operand that a scan with a [carry](ScanOrder::has_carry) has after those of its row.
const CARRY: Operand = Operand { name: "carry", effect: Effect::Update };

/// How the work of an op is divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// Each index is computed independently of all others ([`Kernel::op_element`](crate::Kernel::op_element)): any thread
    /// may do any of them.
    Elementwise,
    /// Elements along a dimension are combined into one: threads that hold parts of a row combine their results.
    Reduction,
    /// Elements along a dimension are combined with all before them: threads that hold parts of a row combine what precedes
    /// each.
    Scan,
    /// A matrix product: whole warps compute it, and the instruction dictates which thread holds which elements of a
    /// fragment.
    Product,
    /// The lanes of a warp move a tile together, in the order that a variant chooses.
    Permutation,
    /// Elements move between threads in the order that a variant chooses; operands are placed by their other uses.
    Conversion,
}

/// A row of the op table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Its name in messages and in the printed IR.
    pub name: &'static str,
    /// Its operands, the destination first.
    pub operands: &'static [Operand],
    /// How its work is divided among threads.
    pub class: OpClass,
    /// The scopes that may execute it.
    pub scopes: &'static [Scope],
}

/// The table of tile ops: calls the macro `$with` with all rows. A row has everything about an op that is stated once:
///
/// - its documentation for the user, its kind, and its attributes under a name for the expressions below;
/// - `builder`: the method that adds it, whose name is also the name of the op in messages and in the printed IR.
///   Brackets enclose parameters that are attributes, parentheses the operands, the destination first, each with its
///   [`Effect`](crate::tile::Effect); after the arrow follows the kind that the method makes from its parameters;
/// - `called`: the name of the op, in a row to which several methods belong; the others are written by hand;
/// - `words`: what follows the operands where the op is printed;
/// - `overwrites`: whether a destination with the effect `Update` is overwritten instead, so that its old values are
///   not read;
/// - `each`: whether an operand of the row is a `tile`, or a `tuple` of them ([`OpKind::tuples`]); the method that adds an
///   op on tuples is written by hand;
/// - `class`: its [`OpClass`](crate::tile::OpClass), which determines how threads divide its work;
/// - `scopes`: the scopes that may execute it.
#[macro_export]
macro_rules! tile_ops {
    ($with:ident) => {
        $with! {
            /// Moves every element of `src` to the same index of `dst`. Layouts may differ; dtypes and extents agree.
            Copy {
                builder: copy [] (dst: Write, src: Move) [] => OpKind::Copy,
                words: Vec::new(),
                overwrites: false,
                each: tile,
                class: Elementwise,
                scopes: [Warp, Cta],
            }

            /// Copies as `copy` does, with the same results, but stays in flight until something uses `dst` or writes `src`:
            /// the compiler puts a wait there. From a tensor to shared memory it is one of `cp.async`, where threads move 4, 8 or
            /// 16 bytes at once, or of the copy engine; from shared memory to a tensor, one of the copy engine. Any other copy is
            /// done at once, and its plan has the reason.
            CopyAsync {
                builder: copy_async [] (dst: Write, src: Move) [] => OpKind::CopyAsync,
                words: Vec::new(),
                overwrites: false,
                each: tile,
                class: Elementwise,
                scopes: [Cta],
            }

            /// Sets every element of `dst` to one value.
            Fill(value: Scalar) {
                builder: fill [] (dst: Write) [value: impl Into<Scalar>] => OpKind::Fill(value.into()),
                words: vec![value.to_string()],
                overwrites: false,
                each: tile,
                class: Elementwise,
                scopes: [Warp, Cta],
            }

            /// A warp moves `src` to the same indices of `dst`, whose layout differs; both may be the same storage.
            PermuteLayout {
                builder: permute_layout [] (dst: Write, src: Move) [] => OpKind::PermuteLayout,
                words: Vec::new(),
                overwrites: false,
                each: tile,
                class: Permutation,
                scopes: [Warp],
            }

            /// Moves every element of the fragment `src` to the same index of the fragment `dst`, which other threads may
            /// hold: the two layouts are independent of each other.
            ConvertLayout {
                builder: convert_layout [] (dst: Write, src: Move) [] => OpKind::ConvertLayout,
                words: Vec::new(),
                overwrites: false,
                each: tile,
                class: Conversion,
                scopes: [Cta],
            }

            /// Combines the elements of `src` along one dimension, or several (`[0, 2]`), into one element of `dst`, which
            /// is overwritten. Dimensions are counted from 0, including those of extent 1.
            Reduce(reduce: Reduce) {
                builder: reduce [kind: ReduceKind] (dst: Update, src: Read) [dimensions: impl Into<Dimensions>]
                    => OpKind::Reduce(Reduce { kind, dimensions: dimensions.into(), clear: true }),
                words: reduce.words(),
                overwrites: reduce.clear,
                each: tile,
                class: Reduction,
                scopes: [Cta],
            }

            /// Combines tuples of elements of `src` along one dimension, or several, into one tuple of elements of `dst`, by a
            /// function of the user's.
            ReduceBy(by: ReduceBy) {
                builder: reduce_by [] (dst: Update, src: Read) [by: ReduceBy] => OpKind::ReduceBy(by),
                words: by.words(),
                overwrites: by.clear,
                each: tuple,
                class: Reduction,
                scopes: [Cta],
            }

            /// Every element of `dst` becomes that of `src` combined with all before it along `dimension`. Dimensions are counted
            /// from 0, including those of extent 1.
            Scan(scan: Scan) {
                builder: scan [kind: ReduceKind] (dst: Write, src: Read) [dimension: usize]
                    => OpKind::Scan(Scan { kind, order: ScanOrder::along(dimension) }),
                words: scan.words(),
                overwrites: false,
                each: tile,
                class: Scan,
                scopes: [Cta],
            }

            /// Every tuple of elements of `dst` becomes that of `src` combined with all before it along a dimension, by a function
            /// of the user's.
            ScanBy(by: ScanBy) {
                builder: scan_by [] (dst: Write, src: Read) [by: ScanBy] => OpKind::ScanBy(by),
                words: by.order.words(),
                overwrites: false,
                each: tuple,
                class: Scan,
                scopes: [Cta],
            }

            /// `c += a * b`: M x K times K x N. In an operand with more than two dimensions, those of extent 1 are
            /// ignored.
            Gemm(gemm: Gemm) {
                builder: gemm [] (c: Update, a: Read, b: Read) [] => OpKind::Gemm(Gemm::PLAIN),
                words: gemm.words(),
                overwrites: gemm.clear,
                each: tile,
                class: Product,
                scopes: [Cta],
            }

            /// `c += a * b` as `gemm`, by the asynchronous instructions of whole warpgroups, which read tiles in shared memory by
            /// themselves. `a` may be a fragment too. The rows of `c` are divided among the warpgroups.
            GemmAsync(gemm: Gemm) {
                builder: gemm_async [] (c: Update, a: Read, b: Read) [] => OpKind::GemmAsync(Gemm::PLAIN),
                words: gemm.words(),
                overwrites: gemm.clear,
                each: tile,
                class: Product,
                scopes: [Cta],
            }

            /// `dst += src`, element by element, atomically.
            Atomic(op: AtomicOp) {
                builder: atomic_add [] (dst: Update, src: Read) [] => OpKind::Atomic(AtomicOp::Add),
                called: op.function(),
                words: Vec::new(),
                overwrites: false,
                each: tile,
                class: Elementwise,
                scopes: [Cta],
            }
        }
    };
}

/// The first of one or two expressions.
macro_rules! first {
    ($first:expr $(, $second:expr)?) => {
        $first
    };
}

macro_rules! op_kinds {
    ($(
        $(#[$doc:meta])*
        $kind:ident $(($attributes:ident: $attributes_type:ty))? {
            builder: $name:ident
                [$($before:ident: $before_type:ty),*] ($($operand:ident: $effect:ident),*) [$($behind:ident: $behind_type:ty),*]
                => $made:expr,
            $(called: $called:expr,)?
            words: $words:expr,
            overwrites: $overwrites:expr,
            each: $each:ident,
            class: $class:ident,
            scopes: [$($scope:ident),*],
        }
    )*) => {
        /// Which op it is, and its attributes.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum OpKind {
            $($(#[$doc])* $kind $(($attributes_type))?,)*
        }

        impl OpKind {
            /// Its row of the table.
            // Not every row uses its attributes.
            #[allow(unused_variables)]
            pub fn info(self) -> OpInfo {
                match self {
                    $(OpKind::$kind $(($attributes))? => OpInfo {
                        name: first!($($called,)? stringify!($name)),
                        operands: &[$(Operand { name: stringify!($operand), effect: Effect::$effect }),*],
                        class: OpClass::$class,
                        scopes: &[$(Scope::$scope),*],
                    },)*
                }
            }

            /// What follows the operands where it is printed, as comma-separated words.
            // Not every row uses its attributes.
            #[allow(unused_variables)]
            pub(crate) fn words(self) -> Vec<String> {
                match self {
                    $(OpKind::$kind $(($attributes))? => $words,)*
                }
            }

            /// Whether a destination with the effect `Update` is overwritten instead, so that its old values are not
            /// read.
            // Not every row uses its attributes.
            #[allow(unused_variables)]
            pub(crate) fn overwrites(self) -> bool {
                match self {
                    $(OpKind::$kind $(($attributes))? => $overwrites,)*
                }
            }
        }
    };
}

tile_ops!(op_kinds);

impl OpKind {
    /// What is reduced to what, if it is a reduction.
    pub fn reduction(self) -> Option<Reduction> {
        match self {
            OpKind::Reduce(Reduce { dimensions, clear, .. }) => Some(Reduction { values: 1, dimensions, clear }),
            OpKind::ReduceBy(ReduceBy { values, dimensions, clear, .. }) => {
                Some(Reduction { values, dimensions, clear })
            }
            OpKind::Copy | OpKind::CopyAsync | OpKind::Fill(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
            OpKind::Scan(_) | OpKind::ScanBy(_) | OpKind::Gemm(_) | OpKind::GemmAsync(_) | OpKind::Atomic(_) => None,
        }
    }

    /// The same reduction, in which the old values of the destinations take part; `None` for other ops.
    pub fn accumulating(self) -> Option<OpKind> {
        match self {
            OpKind::Reduce(reduce) => Some(OpKind::Reduce(Reduce { clear: false, ..reduce })),
            OpKind::ReduceBy(by) => Some(OpKind::ReduceBy(ReduceBy { clear: false, ..by })),
            OpKind::Copy | OpKind::CopyAsync | OpKind::Fill(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
            OpKind::Scan(_) | OpKind::ScanBy(_) | OpKind::Gemm(_) | OpKind::GemmAsync(_) | OpKind::Atomic(_) => None,
        }
    }

    /// Along what it goes, if it is a scan.
    pub fn scan_order(mut self) -> Option<ScanOrder> {
        self.scan_order_mut().copied()
    }

    /// As [`OpKind::scan_order`], to change it.
    pub fn scan_order_mut(&mut self) -> Option<&mut ScanOrder> {
        match self {
            OpKind::Scan(Scan { order, .. }) | OpKind::ScanBy(ScanBy { order, .. }) => Some(order),
            OpKind::Copy | OpKind::CopyAsync | OpKind::Fill(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
            OpKind::Reduce(_) | OpKind::ReduceBy(_) | OpKind::Gemm(_) | OpKind::GemmAsync(_) | OpKind::Atomic(_) => {
                None
            }
        }
    }

    /// Its tuples, if its operands are tuples of tiles.
    pub fn tuples(self) -> Option<Tuples> {
        match self {
            OpKind::ReduceBy(ReduceBy { combiner, values, .. }) | OpKind::ScanBy(ScanBy { combiner, values, .. }) => {
                Some(Tuples { combiner, values })
            }
            OpKind::Copy | OpKind::CopyAsync | OpKind::Fill(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
            OpKind::Reduce(_) | OpKind::Scan(_) | OpKind::Gemm(_) | OpKind::GemmAsync(_) | OpKind::Atomic(_) => None,
        }
    }

    /// How many tiles each operand of its row stands for.
    fn tiles_of_an_operand(self) -> usize {
        self.tuples().map_or(1, |tuples| tuples.values)
    }

    /// Whether it is a scan that goes on from a carry.
    fn has_carry(self) -> bool {
        self.scan_order().is_some_and(|order| order.has_carry)
    }

    /// How many tiles its row lists.
    fn tiles_of_row(self) -> usize {
        self.info().operands.len() * self.tiles_of_an_operand()
    }

    /// How many tiles it takes.
    pub fn arity(self) -> usize {
        let carries = if self.has_carry() { self.tiles_of_an_operand() } else { 0 };
        self.tiles_of_row() + carries
    }

    /// What it knows of its tile at `place`.
    pub fn operand(self, place: usize) -> &'static Operand {
        let operands = self.info().operands;
        match operands.get(place / self.tiles_of_an_operand().max(1)) {
            None if self.has_carry() => &CARRY,
            known => known.unwrap_or(&operands[operands.len() - 1]),
        }
    }

    /// Whether it moves every element of one tile to the same index of another, at once or later.
    pub fn is_copy(self) -> bool {
        matches!(self, OpKind::Copy | OpKind::CopyAsync)
    }

    /// Whether it combines every element of one tile with the same index of another, atomically.
    pub fn is_atomic(self) -> bool {
        self.atomic().is_some()
    }

    /// How it combines every element of one tile with the same index of another, atomically, if it does.
    pub fn atomic(self) -> Option<AtomicOp> {
        match self {
            OpKind::Atomic(by) => Some(by),
            OpKind::Copy | OpKind::CopyAsync | OpKind::Fill(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
            OpKind::Reduce(_) | OpKind::ReduceBy(_) | OpKind::Scan(_) | OpKind::ScanBy(_) => None,
            OpKind::Gemm(_) | OpKind::GemmAsync(_) => None,
        }
    }

    /// Its attributes, if it is a product of matrices.
    pub fn product(mut self) -> Option<Gemm> {
        self.product_mut().copied()
    }

    /// As [`OpKind::product`], to change them.
    pub fn product_mut(&mut self) -> Option<&mut Gemm> {
        match self {
            OpKind::Gemm(gemm) | OpKind::GemmAsync(gemm) => Some(gemm),
            OpKind::Copy | OpKind::CopyAsync | OpKind::Fill(_) | OpKind::PermuteLayout | OpKind::ConvertLayout => None,
            OpKind::Reduce(_) | OpKind::ReduceBy(_) | OpKind::Scan(_) | OpKind::ScanBy(_) => None,
            OpKind::Atomic(_) => None,
        }
    }
}

/// The tuples that an op combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuples {
    /// How two of them become one.
    pub combiner: Handle<Combiner>,
    /// How many values each has.
    pub values: usize,
}

/// What is reduced to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// How many values each row has: as many destinations, and then as many sources, are the operands.
    pub values: usize,
    /// The dimensions along which elements are combined; dimensions of extent 1 are counted.
    pub dimensions: Dimensions,
    /// Whether the destinations are overwritten; otherwise they take part in the reduction.
    pub clear: bool,
}

/// A tile op of a kernel.
#[derive(Clone, Debug)]
pub struct Op {
    /// Which op, and its attributes.
    pub kind: OpKind,
    /// The scope that executes it together.
    pub scope: Scope,
    /// The warp that executes it, if one was given; otherwise every warp of the CTA does.
    pub warp: Option<i64>,
    /// The role whose warps execute it, if not all do.
    pub role: Option<Handle<Role>>,
    /// The operands, in the order of the table.
    pub operands: Vec<Tile>,
    /// The variant that the user forces.
    pub variant: Option<String>,
    /// The name that the user gave it.
    pub name: Option<String>,
    /// Which thread moves which element of its tiles, in which step (on `reg`), for elementwise ops; `None` where that
    /// is left to lowering.
    pub layout: Option<Layout>,
    /// Where it was written.
    pub span: Span,
}

impl Op {
    /// What this op does to its operand at `place`: the effect in its row, unless its attributes say that it overwrites
    /// an operand that ops of its kind may update.
    pub fn effect(&self, place: usize) -> Effect {
        match self.kind.operand(place).effect {
            Effect::Update if self.kind.overwrites() => Effect::Write,
            effect => effect,
        }
    }

    /// The first of the tiles of the operand after the destination, if its row has one.
    pub fn source(&self) -> Option<&Tile> {
        self.operands.get(self.kind.tiles_of_an_operand())
    }

    /// The carries of a scan that has some.
    pub fn carries(&self) -> &[Tile] {
        let first = self.kind.tiles_of_row().min(self.operands.len());
        if self.kind.has_carry() { &self.operands[first..] } else { &[] }
    }

    /// Its tiles, each with what its row knows of it.
    pub fn tiles(&self) -> impl Iterator<Item = (&'static Operand, &Tile)> {
        self.operands.iter().enumerate().map(|(place, tile)| (self.kind.operand(place), tile))
    }

    /// Variables that index the dimensions of its tiles whose extent is not 1, in order. Every op has a destination.
    pub fn vars(&self) -> Vec<Var> {
        self.operands[0].vars()
    }
}
