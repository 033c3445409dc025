//! Random pairs of layouts: dense shuffles, padded strides, tables. A pair depends only on its width and number.

use std::fmt;

use tilewright::layout::axis::M;
use tilewright::layout::{DType, Iter, Layout, TableLayout, TileLayout};

use super::judge::Bounds;
use crate::rng::Rng;

const SEED: u64 = 17;
/// Numbers of steps, of 32 elements each, of a pair. 32 steps of 16 bytes fill the 128 data registers that a lane may
/// stage.
const STEPS: [usize; 10] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 32];
/// Numbers of steps of tiles that the documented XOR moves.
const XOR_STEPS: [usize; 4] = [4, 8, 16, 32];
/// The percentage of pairs, other than XOR tiles, whose last step is not full.
const RAGGED: u64 = 30;
/// The largest prime factor of the size of a ragged tile, so that it has several dimensions.
const MOST_PRIME: usize = 13;
/// The maximum span of a tile, in elements and in bytes.
const MOST_SPAN: usize = 16 * 1024;
const MOST_BYTES: usize = 64 * 1024;
/// One pair in this many moves within a single buffer.
const IN_PLACE: usize = 4;

/// The kind of layouts of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Row-major to compact, with the dimensions reordered.
    Dense,
    /// Strides that nest, with gaps.
    Padded,
    /// Tables, which list every place.
    Table,
}

/// One side of a pair.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// The position of each element, in elements, starting at 0.
    pub(crate) positions: Vec<usize>,
    /// The layout with these positions.
    pub(crate) layout: Layout,
}

/// Two layouts of the same tile.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) number: usize,
    pub(crate) family: Family,
    pub(crate) dtype: DType,
    pub(crate) src: Side,
    pub(crate) dst: Side,
    /// Whether both sides are views of one buffer.
    pub(crate) in_place: bool,
}

impl Pair {
    /// A pair with elements of this dtype: in turn dense, padded and listed.
    pub(crate) fn of(dtype: DType, number: usize) -> Pair {
        let bytes = dtype.bytes() as usize;
        let rng = &mut Rng::new(SEED + bytes as u64, number as u64);
        let nth = number / 3;
        let (family, [src, dst]) = match number % 3 {
            0 if nth.is_multiple_of(2) => (Family::Dense, xor_tile(rng, bytes)),
            0 => (Family::Dense, shuffle(rng)),
            1 => (Family::Padded, padded(rng, bytes, !nth.is_multiple_of(3))),
            _ => (Family::Table, listed(rng)),
        };
        Pair { number, family, dtype, src, dst, in_place: number % IN_PLACE == IN_PLACE - 1 }
    }

    /// Bytes of an element.
    pub(crate) fn bytes(&self) -> usize {
        self.dtype.bytes() as usize
    }

    /// The bounds given by the banks.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::of(self.bytes(), [&self.src.positions, &self.dst.positions])
    }

    /// The title of its op.
    pub(crate) fn title(&self) -> String {
        format!("pair {}", self.number)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_place { ", in place" } else { "" };
        let elements = self.src.positions.len();
        write!(f, "{} ({elements} elements, {} to {}{place})", self.title(), self.src.layout, self.dst.layout)
    }
}

impl Side {
    fn strided(shape: &[usize], strides: &[usize]) -> Side {
        let mut positions: Vec<usize> = vec![0];
        for (extent, stride) in shape.iter().zip(strides) {
            let along = |from: &usize| (0..*extent).map(|digit| from + digit * stride).collect::<Vec<usize>>();
            positions = positions.iter().flat_map(along).collect();
        }
        let iters = shape.iter().zip(strides).map(|(extent, stride)| Iter::memory(*extent as i64, *stride as i64));
        let tile = TileLayout::new(iters.collect(), Vec::new(), []).expect("small numbers");
        Side { positions, layout: Layout::Tile(tile) }
    }

    fn listed(positions: Vec<usize>) -> Side {
        let numbers: Vec<i64> = positions.iter().map(|position| *position as i64).collect();
        let table = TableLayout::of_positions(&M, &numbers).expect("one place per element");
        Side { positions, layout: Layout::Table(table) }
    }

    /// The number of positions from 0 to the last one.
    pub(crate) fn span(&self) -> usize {
        self.positions.iter().max().map_or(0, |last| last + 1)
    }
}

/// A tile of random shape whose dimensions are reordered in the destination.
fn shuffle(rng: &mut Rng) -> [Side; 2] {
    let shape = random_shape(rng);
    let mut order = row_major(shape.len());
    let src = nested(&shape, &order, |taken| taken);
    rng.shuffle(&mut order);
    let dst = nested(&shape, &order, |taken| taken);
    [src, dst].map(|strides| Side::strided(&shape, &strides))
}

/// A dense shuffle that the documented XOR moves without bank conflicts: blocks of rows of 32 elements become blocks of
/// columns, and the blocks are permuted.
///
/// In the destination, the distance of adjacent lanes is the number of rows of a block, so the first and the last lanes
/// of a group use the same banks unless the XOR takes them from different rows. The XOR changes the bits of the row
/// through the highest bits of the lane; those above a group then select the block, so there must be that many blocks.
fn xor_tile(rng: &mut Rng, bytes: usize) -> [Side; 2] {
    let steps = *rng.pick(&XOR_STEPS);
    let group_bits = (128 / bytes.max(4)).trailing_zeros();
    let most = group_bits.min(steps.trailing_zeros() - (5 - group_bits));
    let rows = 1usize << rng.within(i64::from(most.min(2))..=i64::from(most));
    let blocks = steps / rows;
    let outer = 1usize << rng.below(blocks.trailing_zeros() as usize + 1);
    // Extents, and the rank of each in the destination, the fastest first.
    let mut dimensions = vec![(outer, 2), (blocks / outer, 3), (rows, 0), (32, 1)];
    dimensions.retain(|(extent, _)| *extent > 1);
    let shape: Vec<usize> = dimensions.iter().map(|(extent, _)| *extent).collect();
    let mut order = row_major(shape.len());
    let src = nested(&shape, &order, |taken| taken);
    order.sort_by_key(|at| dimensions[*at].1);
    let dst = nested(&shape, &order, |taken| taken);
    [src, dst].map(|strides| Side::strided(&shape, &strides))
}

/// Strides that nest in random order, with gaps on one or both sides. A crowded pair is uneven: some stride is a
/// multiple of the width of all banks.
fn padded(rng: &mut Rng, bytes: usize, is_crowded: bool) -> [Side; 2] {
    let row = is_crowded.then_some(128 / bytes);
    loop {
        let shape = random_shape(rng);
        // Bit 0: the source has gaps; bit 1: the destination has.
        let gaps = rng.within(1..=3);
        let sides = [0, 1].map(|side| {
            let mut order = row_major(shape.len());
            rng.shuffle(&mut order);
            let strides = match gaps >> side & 1 {
                1 => with_gaps(rng, &shape, &order, row),
                _ => nested(&shape, &order, |taken| taken),
            };
            Side::strided(&shape, &strides)
        });
        let fits = sides.iter().all(|side| side.span() <= MOST_SPAN.min(MOST_BYTES / bytes));
        let is_even = Bounds::of(bytes, [&sides[0].positions, &sides[1].positions]).is_even();
        if fits && !(is_crowded && is_even) {
            return sides;
        }
    }
}

/// Strides that nest in this order, with random gaps; if `row` is given, they are multiples of it from some dimension
/// on.
fn with_gaps(rng: &mut Rng, shape: &[usize], order: &[usize], row: Option<usize>) -> Vec<usize> {
    let crowded = 1 + rng.below(shape.len());
    let mut dimension = 0;
    nested(shape, order, |taken| {
        dimension += 1;
        match row {
            Some(row) if dimension > crowded => taken.next_multiple_of(row),
            _ if rng.percent(50) => taken + rng.below(5),
            _ => taken,
        }
    })
}

/// Tables: from row-major or a random order to a random order.
fn listed(rng: &mut Rng) -> [Side; 2] {
    let elements = random_elements(rng);
    let src = if rng.percent(50) { permutation(rng, elements) } else { Side::strided(&[elements], &[1]) };
    [src, permutation(rng, elements)]
}

fn permutation(rng: &mut Rng, elements: usize) -> Side {
    let mut positions: Vec<usize> = (0..elements).collect();
    rng.shuffle(&mut positions);
    Side::listed(positions)
}

/// The dimensions of a row-major tile, the fastest first.
fn row_major(dimensions: usize) -> Vec<usize> {
    (0..dimensions).rev().collect()
}

/// Strides of dimensions that nest in this order, the fastest first. `stride` maps the span of the preceding dimensions
/// to a stride that is at least as large.
fn nested(shape: &[usize], order: &[usize], mut stride: impl FnMut(usize) -> usize) -> Vec<usize> {
    let mut strides = vec![0; shape.len()];
    let mut taken = 1;
    for &dimension in order {
        strides[dimension] = stride(taken);
        taken = strides[dimension] * shape[dimension];
    }
    strides
}

/// 2 to 4 dimensions, or fewer if the size has too few factors.
fn random_shape(rng: &mut Rng) -> Vec<usize> {
    let elements = random_elements(rng);
    let mut shape = vec![1; 2 + rng.below(3)];
    for prime in primes(elements) {
        let dimension = rng.below(shape.len());
        shape[dimension] *= prime;
    }
    shape.retain(|extent| *extent > 1);
    if shape.is_empty() { vec![1] } else { shape }
}

/// A number of elements that fills all steps, or all but the last.
fn random_elements(rng: &mut Rng) -> usize {
    let steps = *rng.pick(&STEPS);
    if !rng.percent(RAGGED) {
        return 32 * steps;
    }
    loop {
        let elements = 32 * (steps - 1) + 1 + rng.below(31);
        if primes(elements).into_iter().all(|prime| prime <= MOST_PRIME) {
            return elements;
        }
    }
}

fn primes(number: usize) -> Vec<usize> {
    let (mut left, mut prime, mut found) = (number, 2, Vec::new());
    while left > 1 {
        if left.is_multiple_of(prime) {
            left /= prime;
            found.push(prime);
        } else {
            prime += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permute::{PAIRS, WIDTHS};
    use tilewright::lower::permute_layout::choose_xor;

    fn all() -> impl Iterator<Item = Pair> {
        WIDTHS.into_iter().flat_map(|dtype| (0..PAIRS).map(move |number| Pair::of(dtype, number)))
    }

    fn signed(positions: &[usize]) -> Vec<i64> {
        positions.iter().map(|position| *position as i64).collect()
    }

    #[test]
    fn layouts_say_the_positions() {
        for pair in all() {
            for side in [&pair.src, &pair.dst] {
                assert_eq!(side.layout.memory_positions(), signed(&side.positions), "{pair}");
            }
        }
    }

    #[test]
    fn elements_have_places_of_their_own_inside_the_limits() {
        for pair in all() {
            for side in [&pair.src, &pair.dst] {
                let mut places = side.positions.clone();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), side.positions.len(), "{pair}");
                assert!(side.span() <= MOST_SPAN && side.span() * pair.bytes() <= MOST_BYTES, "{pair}");
            }
        }
    }

    #[test]
    fn dense_shuffles_and_tables_have_no_gaps() {
        let dense = |pair: &Pair| [&pair.src, &pair.dst].into_iter().all(|side| side.span() == side.positions.len());
        assert!(all().filter(|pair| pair.family != Family::Padded).all(|pair| dense(&pair)));
    }

    #[test]
    fn every_number_of_steps_occurs_and_about_a_quarter_of_the_tiles_is_ragged() {
        for dtype in WIDTHS {
            let pairs: Vec<Pair> = (0..PAIRS).map(|number| Pair::of(dtype, number)).collect();
            let elements = |pair: &Pair| pair.src.positions.len();
            let ragged = pairs.iter().filter(|pair| !elements(pair).is_multiple_of(32)).count();
            assert!((PAIRS / 8..PAIRS * 2 / 5).contains(&ragged), "{dtype}: {ragged} ragged");
            for steps in STEPS {
                assert!(pairs.iter().any(|pair| elements(pair).div_ceil(32) == steps), "{dtype}: {steps} steps");
            }
        }
    }

    #[test]
    fn the_documented_xor_moves_the_tiles_that_are_made_for_it() {
        for dtype in WIDTHS {
            for number in (0..PAIRS).step_by(6) {
                let pair = Pair::of(dtype, number);
                let steps = pair.src.positions.len() as i64 / 32;
                let (src, dst) = (signed(&pair.src.positions), signed(&pair.dst.positions));
                assert!(choose_xor(steps, dtype.bytes(), &src, &dst, &[0]).k.is_some(), "{dtype}: {pair}");
            }
        }
    }

    #[test]
    fn two_of_three_padded_pairs_are_uneven_and_nothing_dense_is() {
        for dtype in WIDTHS {
            let uneven = (0..PAIRS).map(|number| Pair::of(dtype, number)).filter(|pair| !pair.bounds().is_even());
            let uneven: Vec<Pair> = uneven.collect();
            assert!(uneven.len() >= PAIRS / 5, "{dtype}: {} uneven", uneven.len());
            assert!(uneven.iter().all(|pair| pair.family == Family::Padded), "{dtype}");
        }
    }
}
