use std::fmt;
use std::ops::Range;

use tilewright_diag::{Diagnostic, Snippet};

/// An error in a layout, or in an operation on layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Text that is not a layout in the notation.
    Notation {
        /// The text.
        text: String,
        /// Byte range of the offending part.
        range: Range<usize>,
        /// What is wrong there.
        problem: String,
        /// An example of what is legal.
        legal: &'static str,
        /// The nearest text that is a layout, if there is an obvious one.
        fix: Option<String>,
    },
    /// An extent below 1.
    Extent {
        /// The extent.
        extent: i64,
    },
    /// A coordinate of the wrong rank.
    Rank {
        /// Rank that was given.
        given: usize,
        /// Rank that is needed.
        needed: usize,
    },
    /// A shape whose number of elements differs from the layout's.
    Size {
        /// The shape that was given.
        shape: Vec<i64>,
        /// Elements of the layout.
        size: i64,
    },
    /// An index outside its extent.
    OutOfRange {
        /// The index.
        index: i64,
        /// The extent of its dimension.
        extent: i64,
    },
    /// A region that is empty, inverted or not inside the shape.
    Region {
        /// Dimension.
        dimension: usize,
        /// First index of the region.
        begin: i64,
        /// One past its last index.
        end: i64,
        /// The extent of the dimension.
        extent: i64,
    },
    /// A shape whose boundaries do not nest with those of the iters.
    NotGroupable {
        /// The layout.
        layout: String,
        /// The shape.
        shape: Vec<i64>,
        /// The dimension at which it fails.
        dimension: usize,
        /// The iter in which it ends, and the factor that does not divide.
        why: String,
    },
    /// A region of a layout that no single layout describes.
    NotAffine {
        /// The dimension whose positions are not a mixed-radix sequence.
        dimension: usize,
        /// The first index of the region.
        begin: i64,
        /// One past its last index.
        end: i64,
    },
    /// A swizzle over something that is not linear memory, or with impossible parameters.
    Swizzle {
        /// What is wrong.
        problem: String,
    },
    /// An order of iters or groups that is not a permutation.
    Permutation {
        /// What is wrong.
        problem: String,
    },
    /// A change of element width that the layout does not allow.
    Recast {
        /// How many elements become one.
        count: i64,
        /// Why they cannot.
        problem: String,
    },
    /// A dimension whose extent is not a multiple of the tile's.
    Indivisible {
        /// The dimension.
        dimension: usize,
        /// Its extent.
        extent: i64,
        /// What should divide it.
        factor: i64,
    },
    /// An operation that the layout's form does not allow.
    Algebra {
        /// The operation, as in `complement`.
        operation: &'static str,
        /// Why it has no result.
        problem: String,
    },
    /// Axes that are invalid here or do not fit together, or positions outside their range.
    Axes {
        /// What is wrong.
        problem: String,
    },
    /// An operation that needs iters, on a table, which has none.
    NoIters {
        /// The table as printed.
        table: String,
    },
    /// Text or places that do not form a table.
    Table {
        /// The line of the text, counted from 1; 0 if there is no text.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A hardware layout requested with parameters that the hardware does not support.
    Hardware {
        /// What was requested, as in `tmem_datapath_layout`.
        name: &'static str,
        /// What is wrong with the parameters.
        problem: String,
        /// What would be legal.
        legal: String,
    },
    /// A layout that an instruction, a descriptor or a tensor map cannot describe.
    Descriptor {
        /// What should describe it, as in `tcgen05 shared-memory descriptor`.
        name: &'static str,
        /// Why it cannot.
        problem: String,
        /// What would be legal.
        legal: String,
    },
    /// A layout over a device mesh that does not fit the mesh, or cannot be converted into another.
    Mesh {
        /// What is wrong.
        problem: String,
        /// What would be legal.
        legal: String,
    },
    /// The operation would enumerate more elements than [`crate::ENUMERATION_LIMIT`].
    TooLarge {
        /// How many there are.
        points: i64,
    },
    /// More shard or replica iters than a layout may have.
    TooManyIters {
        /// How many there are.
        count: usize,
    },
    /// Sizes or positions that do not fit in 56 bits.
    Overflow,
    /// A defect of Tilewright: something that its own steps should have ensured does not hold.
    Internal {
        /// What does not hold.
        problem: &'static str,
    },
}

/// A shape as printed everywhere: `(4,32)`.
pub(crate) fn tuple(values: &[i64]) -> String {
    let inner: Vec<String> = values.iter().map(i64::to_string).collect();
    format!("({})", inner.join(","))
}

impl LayoutError {
    /// The stable error code, explained in the documentation.
    pub fn code(&self) -> &'static str {
        match self {
            LayoutError::Notation { .. } => "L0101",
            LayoutError::Extent { .. } => "L0102",
            LayoutError::Rank { .. } => "L0104",
            LayoutError::Size { .. } => "L0105",
            LayoutError::OutOfRange { .. } => "L0106",
            LayoutError::Region { .. } => "L0107",
            LayoutError::NotGroupable { .. } => "L0108",
            LayoutError::NotAffine { .. } => "L0109",
            LayoutError::Swizzle { .. } => "L0110",
            LayoutError::TooLarge { .. } => "L0111",
            LayoutError::Overflow => "L0112",
            LayoutError::Hardware { .. } => "L0113",
            LayoutError::Descriptor { .. } => "L0114",
            LayoutError::Mesh { .. } => "L0115",
            LayoutError::Permutation { .. } => "L0116",
            LayoutError::Recast { .. } => "L0117",
            LayoutError::Indivisible { .. } => "L0118",
            LayoutError::Algebra { .. } => "L0119",
            LayoutError::Axes { .. } => "L0120",
            LayoutError::Table { .. } => "L0121",
            LayoutError::NoIters { .. } => "L0122",
            LayoutError::TooManyIters { .. } => "L0123",
            LayoutError::Internal { .. } => "L0124",
        }
    }

    /// The error as a diagnostic; add the source location with [`Diagnostic::label`].
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            LayoutError::Notation { text, range, problem, legal, fix } => {
                let found = Diagnostic::error(self.code(), "this is not a valid layout").snippet(Snippet {
                    origin: "<layout>".to_string(),
                    text: text.clone(),
                    range: range.clone(),
                    label: problem.clone(),
                });
                // Without brackets the text is in another notation.
                let is_foreign = !text.contains('[');
                let found = match fix {
                    Some(fix) if is_foreign => found.help(format!("write {fix}")),
                    Some(fix) => found.help(format!("legal: {fix}")),
                    None => found.help(format!("legal, for example: {legal}")),
                };
                if is_foreign { found.note("docs/notation.md describes the notation") } else { found }
            }
            LayoutError::Size { size, .. } => Diagnostic::error(self.code(), self.to_string())
                .help(format!("legal: extents of at least 1 whose product is {size}")),
            LayoutError::Internal { .. } => Diagnostic::internal(self.code(), self.to_string()),
            LayoutError::Overflow => Diagnostic::error(self.code(), self.to_string())
                .help("legal: fewer than 2^56 elements, at positions below 2^56"),
            LayoutError::NotGroupable { .. } => Diagnostic::error(self.code(), self.to_string()).help(
                "split the dimensions where the iters end, or write the layout with iters that nest with the shape",
            ),
            LayoutError::NotAffine { .. } => Diagnostic::error(self.code(), self.to_string())
                .help("take a region that begins and ends on a boundary of the iters"),
            LayoutError::Hardware { legal, .. }
            | LayoutError::Descriptor { legal, .. }
            | LayoutError::Mesh { legal, .. } => {
                Diagnostic::error(self.code(), self.to_string()).help(format!("legal: {legal}"))
            }
            LayoutError::NoIters { .. } => Diagnostic::error(self.code(), self.to_string())
                .help("if its places are affine in the digits, write the layout as shard, replica and offset"),
            LayoutError::Recast { count, .. } => Diagnostic::error(self.code(), self.to_string()).help(format!(
                "{count} neighbours become one element; all other strides and offsets must be multiples of {count}"
            )),
            LayoutError::TooLarge { .. } => Diagnostic::error(self.code(), self.to_string())
                .help("apply this to a tile of the buffer instead of the whole buffer"),
            LayoutError::Extent { .. }
            | LayoutError::Rank { .. }
            | LayoutError::OutOfRange { .. }
            | LayoutError::Region { .. }
            | LayoutError::Swizzle { .. }
            | LayoutError::Permutation { .. }
            | LayoutError::TooManyIters { .. }
            | LayoutError::Indivisible { .. }
            | LayoutError::Algebra { .. }
            | LayoutError::Axes { .. }
            | LayoutError::Table { .. } => Diagnostic::error(self.code(), self.to_string()),
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Notation { text, range, problem, .. } => {
                write!(f, "{problem}, at character {} of `{text}`", text[..range.start].chars().count() + 1)
            }
            LayoutError::Extent { extent } => write!(f, "an extent must be at least 1, not {extent}"),
            LayoutError::Rank { given, needed } => {
                write!(f, "a coordinate of rank {given} where rank {needed} is needed")
            }
            LayoutError::Size { shape, size } => {
                let elements = shape.iter().fold(1i64, |product, extent| product.saturating_mul(*extent));
                write!(f, "shape {} has size {elements}, but the layout has size {size}", tuple(shape))
            }
            LayoutError::OutOfRange { index, extent } => write!(f, "index {index} is outside 0..{extent}"),
            LayoutError::Region { dimension, begin, end, .. } if end <= begin => {
                write!(f, "region {begin}..{end} of dimension {dimension} is empty")
            }
            LayoutError::Region { dimension, begin, end, extent } => {
                write!(f, "region {begin}..{end} of dimension {dimension} is outside 0..{extent}")
            }
            LayoutError::NotGroupable { layout, shape, dimension, why } => {
                write!(f, "{layout} does not group by {}: dimension {dimension} {why}", tuple(shape))
            }
            LayoutError::NotAffine { dimension, begin, end } => {
                write!(f, "the region {begin}..{end} of dimension {dimension} is not one affine layout")
            }
            LayoutError::Swizzle { problem } => write!(f, "{problem}"),
            LayoutError::Hardware { name, problem, .. } => write!(f, "no such {name}: {problem}"),
            LayoutError::Descriptor { name, problem, .. } => write!(f, "no {name} describes this layout: {problem}"),
            LayoutError::Permutation { problem } | LayoutError::Axes { problem } => write!(f, "{problem}"),
            LayoutError::TooManyIters { count } => write!(f, "{count} iters in one bracket; the limit is 256"),
            LayoutError::NoIters { table } => write!(f, "{table} has no iters"),
            LayoutError::Table { line: 0, problem } => write!(f, "not a valid table: {problem}"),
            LayoutError::Table { line, problem } => write!(f, "line {line} of the table: {problem}"),
            LayoutError::Recast { count, problem } => {
                write!(f, "elements cannot be recast by a factor of {count}: {problem}")
            }
            LayoutError::Indivisible { dimension, extent, factor } => {
                write!(f, "dimension {dimension} has extent {extent}, which is not a multiple of {factor}")
            }
            LayoutError::Algebra { operation, problem } => write!(f, "no {operation}: {problem}"),
            LayoutError::Mesh { problem, .. } => write!(f, "{problem}"),
            LayoutError::TooLarge { points } => {
                write!(f, "this enumerates {points} elements; the limit is {}", crate::ENUMERATION_LIMIT)
            }
            LayoutError::Internal { problem } => write!(f, "{problem}"),
            LayoutError::Overflow => write!(f, "the layout's size or positions do not fit in 56 bits"),
        }
    }
}

impl std::error::Error for LayoutError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_an_internal_error() {
        let defect = LayoutError::Internal { problem: "a region of one run of iters is not affine" }.diagnostic();
        assert_eq!(defect.to_string(), "internal error[L0124]: a region of one run of iters is not affine");
        assert!(defect.is_internal());
    }
}
