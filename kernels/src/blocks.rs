//! What kernels over the rows of a matrix share: the sizes that they are built for, and the rows of a CTA.

use tilewright::prelude::{KernelBuilder, Size};

use crate::Config;
use crate::config::ShapeKey;

/// Rows of the matrix.
pub(crate) const ROWS: ShapeKey = ShapeKey { name: "rows", default: 64, about: "rows of the matrix" };
/// Columns of the matrix.
pub(crate) const COLS: ShapeKey = ShapeKey { name: "cols", default: 128, about: "columns of the matrix" };
/// Threads of a CTA.
pub(crate) const THREADS: ShapeKey = ShapeKey { name: "threads", default: 128, about: "threads of a CTA" };

/// The target number of elements per thread, if a block has several rows.
const ELEMENTS: i64 = 16;
/// The most rows of a block.
const MOST_ROWS: i64 = 16;

/// A matrix whose rows are divided among CTAs in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// Columns of the matrix.
    pub(crate) cols: i64,
    /// Threads of a CTA.
    pub(crate) threads: i64,
    /// Rows of a block. The last block may extend beyond the edge.
    pub(crate) block: i64,
}

impl Blocks {
    /// Blocks of whole rows, for kernels that keep them in registers until they are reduced.
    pub(crate) fn of(config: &Config) -> Blocks {
        Blocks::with(config, ELEMENTS)
    }

    /// Blocks of whole rows, with about so many elements for each thread.
    pub(crate) fn with(config: &Config, elements: i64) -> Blocks {
        let [rows, cols, threads] = ["rows", "cols", "threads"].map(|name| config.size(name));
        Blocks { cols, threads, block: rows_of_a_block(rows, cols, threads, elements) }
    }
}

/// How many rows of `cols` elements the threads of a CTA hold: a power of two, no larger than needed to cover all rows.
fn rows_of_a_block(rows: i64, cols: i64, threads: i64, elements: i64) -> i64 {
    fitting_rows(rows, (threads * elements / cols.max(1)).min(MOST_ROWS))
}

/// The largest power of two that is at most `most`, or 1, but no larger than needed to cover all rows.
pub(crate) fn fitting_rows(rows: i64, most: i64) -> i64 {
    let fitting: i64 = 1 << most.max(1).ilog2();
    fitting.min((rows.max(1) as u64).next_power_of_two() as i64)
}

/// A size known at launch, with the greatest power of two up to 16 that divides its value in the configuration as a claim: rows
/// of 1000 elements are moved 8 at a time, rows of 1001 one by one.
#[track_caller]
pub(crate) fn divisible(k: &mut KernelBuilder, config: &Config, name: &str) -> Size {
    divisible_like(k, name, config.size(name))
}

/// The same for a size of this value.
#[track_caller]
pub(crate) fn divisible_like(k: &mut KernelBuilder, name: &str, value: i64) -> Size {
    k.size(name).multiple_of(1 << value.trailing_zeros().min(4))
}

/// How many tiles of `extent` cover `size`.
pub(crate) fn ceil_div(size: i64, extent: i64) -> i64 {
    (size + extent - 1) / extent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_power_of_two_that_fits() {
        assert_eq!(rows_of_a_block(64, 128, 128, ELEMENTS), 16);
        assert_eq!(rows_of_a_block(50, 100, 32, ELEMENTS), 4);
        assert_eq!(rows_of_a_block(7, 13, 64, ELEMENTS), 8);
        assert_eq!(rows_of_a_block(1, 13, 64, ELEMENTS), 1);
        assert_eq!(rows_of_a_block(64, 1 << 20, 32, ELEMENTS), 1);
        assert_eq!(ceil_div(50, 16), 4);
    }
}
