//! Attributes of ops.

use tilewright_layout::DType;

use crate::arena::Handle;
use crate::scalar::Scalar;
use crate::tile::combiner::Combiner;
use crate::tile::dimensions::Dimensions;

/// How elements are combined into one.
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
    /// The sum of the squares; squares of floats are added to a sum without being rounded first.
    SquareSum,
    /// Their product.
    Product,
    /// The bits that all integers have.
    And,
    /// The bits that at least one integer has.
    Or,
    /// The bits that an odd number of integers have.
    Xor,
}

impl ReduceKind {
    /// The neutral value: combining it with a part of this dtype changes nothing; `None` for a dtype that cannot be combined
    /// so.
    ///
    /// `max` and `min` of floats return the number where one operand is NaN, so their neutral value is NaN: an infinity
    /// would be the result of a row that has only NaN, and only in the layouts that use the neutral value. For sums of
    /// floats it is -0, since -0 + -0 is -0 but 0 + -0 is 0. The absolute value of the least integer is itself, so
    /// `absmax` starts from it as well.
    pub fn neutral(self, dtype: DType) -> Option<Scalar> {
        if dtype.is_float() {
            return Some(Scalar::Float(match self {
                ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum => -0.0,
                ReduceKind::Max | ReduceKind::AbsMax | ReduceKind::Min => f64::NAN,
                ReduceKind::Product => 1.0,
                ReduceKind::And | ReduceKind::Or | ReduceKind::Xor => return None,
            }));
        }
        let (least, most) = dtype.integers()?;
        Some(Scalar::Int(match self {
            ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum | ReduceKind::Or | ReduceKind::Xor => 0,
            ReduceKind::Max | ReduceKind::AbsMax => least as i64,
            ReduceKind::Product => 1,
            ReduceKind::And if least < 0 => -1,
            // The bits of the greatest u64 are those of -1.
            ReduceKind::Min | ReduceKind::And => most as i64,
        }))
    }

    /// The result of no elements, as an exclusive scan begins with it: unlike the neutral value, it is a number. `None` for a
    /// dtype that cannot be combined so.
    pub fn start(self, dtype: DType) -> Option<Scalar> {
        let neutral = self.neutral(dtype)?;
        Some(match self {
            ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum | ReduceKind::AbsMax => Scalar::Int(0),
            ReduceKind::Max if dtype.is_float() => Scalar::Float(-dtype.saturation().unwrap_or(f64::INFINITY)),
            ReduceKind::Min if dtype.is_float() => Scalar::Float(dtype.saturation().unwrap_or(f64::INFINITY)),
            ReduceKind::Max | ReduceKind::Min | ReduceKind::Product => neutral,
            ReduceKind::And | ReduceKind::Or | ReduceKind::Xor => neutral,
        })
    }

    /// Whether a zero changes no result of any row.
    pub(crate) fn ignores_zeros(self) -> bool {
        match self {
            ReduceKind::Sum | ReduceKind::AbsSum | ReduceKind::SquareSum | ReduceKind::Or | ReduceKind::Xor => true,
            // The greatest magnitude of a row of nothing but NaN is NaN, not 0.
            ReduceKind::AbsMax => false,
            ReduceKind::Max | ReduceKind::Min | ReduceKind::Product | ReduceKind::And => false,
        }
    }

    /// Whether it combines the bits of integers.
    pub fn is_bitwise(self) -> bool {
        matches!(self, ReduceKind::And | ReduceKind::Or | ReduceKind::Xor)
    }

    /// Every kind.
    pub const ALL: &'static [ReduceKind] = &[
        ReduceKind::Sum,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::AbsMax,
        ReduceKind::AbsSum,
        ReduceKind::SquareSum,
        ReduceKind::Product,
        ReduceKind::And,
        ReduceKind::Or,
        ReduceKind::Xor,
    ];

    /// Its name in messages and in the printed IR.
    pub fn name(self) -> &'static str {
        match self {
            ReduceKind::Sum => "sum",
            ReduceKind::Max => "max",
            ReduceKind::Min => "min",
            ReduceKind::AbsMax => "absmax",
            ReduceKind::AbsSum => "abssum",
            ReduceKind::SquareSum => "squaresum",
            ReduceKind::Product => "product",
            ReduceKind::And => "and",
            ReduceKind::Or => "or",
            ReduceKind::Xor => "xor",
        }
    }
}

/// The attributes of `reduce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// How elements are combined into one.
    pub kind: ReduceKind,
    /// The dimensions of the source that are removed, or become 1; dimensions of extent 1 are counted.
    pub dimensions: Dimensions,
    /// Whether the destination is overwritten; otherwise it takes part in the reduction.
    pub clear: bool,
}

impl Reduce {
    /// Its text after the operands, as comma-separated words.
    pub(crate) fn words(self) -> Vec<String> {
        let Reduce { kind, dimensions, clear } = self;
        let mut words = vec![kind.name().to_string(), dimensions.to_string()];
        words.extend(words_of_flags(&[(!clear, "accumulate")]));
        words
    }
}

/// The attributes of `reduce_by`. Its operands are as many destinations as a tuple has values, then as many sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduceBy {
    /// How two tuples become one.
    pub combiner: Handle<Combiner>,
    /// How many values a tuple has.
    pub values: usize,
    /// The dimensions along which tuples are combined; dimensions of extent 1 are counted.
    pub dimensions: Dimensions,
    /// Whether the destinations are overwritten; otherwise they take part in the reduction.
    pub clear: bool,
}

impl ReduceBy {
    /// Its text after the operands, as comma-separated words.
    pub(crate) fn words(self) -> Vec<String> {
        let mut words = vec![self.dimensions.to_string()];
        words.extend(words_of_flags(&[(!self.clear, "accumulate")]));
        words
    }
}

/// The type in which reductions and scans combine elements of a dtype.
pub fn combined_in(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::E4M3 | DType::E5M2 | DType::F32 => DType::F32,
        DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16 => DType::I32,
        DType::F64 | DType::I64 | DType::U32 | DType::U64 => dtype,
        DType::B8 | DType::B16 | DType::B32 | DType::B64 | DType::B128 => dtype,
    }
}

/// The attributes of `scan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// How elements are combined.
    pub kind: ReduceKind,
    /// Along what, and which elements take part in a result. The first result of an exclusive scan is the
    /// [start](ReduceKind::start).
    pub order: ScanOrder,
}

impl Scan {
    /// Its text after the operands, as comma-separated words.
    pub(crate) fn words(self) -> Vec<String> {
        [vec![self.kind.name().to_string()], self.order.words()].concat()
    }
}

/// The attributes of `scan_by`. Its operands are as many destinations as a tuple has values, then as many sources, then as many
/// carries if there are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanBy {
    /// How two tuples become one.
    pub combiner: Handle<Combiner>,
    /// How many values a tuple has.
    pub values: usize,
    /// Along what, and which tuples take part in a result. The first result of an exclusive scan is the identity.
    pub order: ScanOrder,
}

/// Along what a scan goes, and which elements take part in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOrder {
    /// The dimension along which elements are combined; dimensions of extent 1 are counted.
    pub dimension: usize,
    /// Whether an element is left out of its own result.
    pub is_exclusive: bool,
    /// Whether it goes from the last element to the first.
    pub is_reverse: bool,
    /// Whether it goes on from a carry, which then becomes that carry combined with all of the row. The carries are the
    /// operands after the sources, with the extents of these without the dimension.
    pub has_carry: bool,
}

impl ScanOrder {
    /// Along a dimension, from the first element to the last, without a carry; each takes part in its own result.
    pub fn along(dimension: usize) -> ScanOrder {
        ScanOrder { dimension, is_exclusive: false, is_reverse: false, has_carry: false }
    }

    /// The row of an element of a tile, in row-major order, and how many elements precede it there in the order of the scan.
    pub fn place_of(self, extents: &[i64], element: usize) -> (usize, usize) {
        let below = extents[self.dimension + 1..].iter().product::<i64>() as usize;
        let extent = extents[self.dimension] as usize;
        let along = element / below % extent;
        let at = if self.is_reverse { extent - 1 - along } else { along };
        (Dimensions::from(self.dimension).row_of(extents, element), at)
    }

    /// Its text, as comma-separated words.
    pub(crate) fn words(self) -> Vec<String> {
        let ScanOrder { dimension, is_exclusive, is_reverse, has_carry } = self;
        let mut words = vec![format!("dimension {dimension}")];
        words.extend(words_of_flags(&[(is_exclusive, "exclusive"), (is_reverse, "reverse"), (has_carry, "carry")]));
        words
    }
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
    /// Its name in messages and in the printed IR.
    pub fn name(self) -> &'static str {
        match self {
            WarpPolicy::Square => "square",
            WarpPolicy::FullRow => "full_row",
            WarpPolicy::FullCol => "full_col",
        }
    }
}

/// The attributes of `gemm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Whether `a` is K x M, not M x K.
    pub transpose_a: bool,
    /// Whether `b` is N x K, not K x N.
    pub transpose_b: bool,
    /// How the warps divide the product.
    pub policy: WarpPolicy,
    /// Whether `c` is overwritten; otherwise the product is added to it.
    pub clear: bool,
    /// Whether f32 operands are multiplied as tf32, which has 10 bits of mantissa: rounded for `mma.sync`, without the low bits by the
    /// units that read shared memory. There are no products in full f32 precision.
    pub tf32: bool,
    /// Whether a pair of CTAs multiplies together: `b` is the columns of the first CTA beside those of the second, each of which has
    /// half of them in its own `b`, and each CTA gets the rows of `c` that belong to its own `a`.
    pub pair: bool,
}

impl Gemm {
    /// The default: nothing is transposed, and the product is added to `c`.
    pub const PLAIN: Gemm = Gemm {
        transpose_a: false,
        transpose_b: false,
        policy: WarpPolicy::Square,
        clear: false,
        tf32: false,
        pair: false,
    };

    /// Whether rows of `a`, and those of `b`, are along M or N, not along K.
    pub fn is_mn_major(self) -> [bool; 2] {
        [self.transpose_a, !self.transpose_b]
    }

    /// Its text after the operands, as comma-separated words.
    pub(crate) fn words(self) -> Vec<String> {
        let Gemm { transpose_a, transpose_b, policy, clear, tf32, pair } = self;
        let mut words = words_of_flags(&[(transpose_a, "transpose_a"), (transpose_b, "transpose_b")]);
        words.push(policy.name().to_string());
        words.extend(words_of_flags(&[(clear, "clear"), (tf32, "tf32"), (pair, "pair")]));
        words
    }
}

impl Default for Gemm {
    fn default() -> Gemm {
        Gemm::PLAIN
    }
}

/// The words of the flags that are set.
fn words_of_flags(flags: &[(bool, &str)]) -> Vec<String> {
    flags.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_string()).collect()
}
