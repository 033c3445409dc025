//! Swizzles against bank conflicts: the wavefronts of the swizzle found, and whether a hardware mode is better.

use std::collections::BTreeMap;

use tilewright::layout::access::{AccessKind, LANES, WarpAccess};
use tilewright::layout::axis::{LANEID, M, REG};
use tilewright::layout::banks::{AccessPattern, find_swizzle};
use tilewright::layout::hardware::SwizzleMode;
use tilewright::layout::{Iter, SwizzleLayout, TileLayout};

use super::random::{Rng, built, factors, position};

/// A tile in shared memory. Rows are multiples of 16 bytes, and consecutive rows begin at multiples of 16 bytes.
struct Tile {
    shape: [i64; 2],
    bits: i64,
    /// The number of elements in 16 bytes.
    unit: i64,
    is_row_major: bool,
    layout: TileLayout,
    /// The position of each element, given by `apply`.
    positions: Vec<i64>,
}

impl Tile {
    fn random(rng: &mut Rng) -> Tile {
        let bits = rng.pick(&[8, 16, 32, 64]);
        let (rows, unit) = (8 * (1 + rng.below(4)), 128 / bits);
        let columns = unit * (1 + rng.below(12));
        let is_row_major = !rng.percent(20);
        let (row, column) = if is_row_major { (columns + unit * rng.pick(&[0, 0, 0, 1]), 1) } else { (1, rows) };
        let offset = vec![(M, unit * rng.pick(&[0, 0, 8]))];
        let layout = built(vec![Iter::memory(rows, row), Iter::memory(columns, column)], Vec::new(), offset);
        let places = (0..layout.size()).map(|element| layout.apply(element).expect("a small tile"));
        let positions = places.map(|places| position(&places[0], &M)).collect();
        Tile { shape: [rows, columns], bits, unit, is_row_major, layout, positions }
    }

    /// The byte of an element under a swizzle.
    fn byte(&self, element: i64, swizzle: Option<SwizzleLayout>) -> u64 {
        let plain = self.positions[element as usize];
        (swizzle.map_or(plain, |swizzle| exchanged(swizzle, plain)) * self.bits / 8) as u64
    }
}

/// The definition: B bits, starting at bit M, are XORed with the bits S above them.
fn exchanged(swizzle: SwizzleLayout, position: i64) -> i64 {
    assert!(swizzle.inner(), "the lower bits change");
    let (m, b, s) = (swizzle.per_element(), swizzle.swizzle_len(), swizzle.atom_len());
    (0..b).fold(position, |moved, bit| moved ^ (((position >> (m + bit + s)) & 1) << (m + bit)))
}

/// The first element accessed by each lane.
type Lanes = [Option<i64>; LANES];

/// An access, and the elements that each instruction touches.
struct Access {
    pattern: AccessPattern,
    width: i64,
    instructions: BTreeMap<i64, Lanes>,
}

/// Elements distributed over the lanes in turn.
fn in_turn(elements: impl Iterator<Item = i64>) -> BTreeMap<i64, Lanes> {
    let mut instructions = BTreeMap::new();
    for (at, element) in elements.enumerate() {
        instructions.entry((at / LANES) as i64).or_insert([None; LANES])[at % LANES] = Some(element);
    }
    instructions
}

impl Access {
    fn random(rng: &mut Rng, tile: &Tile) -> Access {
        match rng.below(if tile.is_row_major { 5 } else { 3 }) {
            0 => Access::row(rng, tile),
            1 => Access::column(rng, tile),
            2 => Access::lanes(rng, tile),
            3 => Access::vectors(rng, tile),
            _ => Access::matrices(rng, tile),
        }
    }

    fn row(rng: &mut Rng, tile: &Tile) -> Access {
        let (row, columns) = (rng.below(tile.shape[0]), tile.shape[1]);
        let pattern = AccessPattern::row(tile.shape, row).expect("a row");
        let elements = (0..columns).map(|column| row * columns + column);
        Access { pattern, width: tile.bits / 8, instructions: in_turn(elements) }
    }

    fn column(rng: &mut Rng, tile: &Tile) -> Access {
        let [rows, columns] = tile.shape;
        let column = rng.below(columns);
        let pattern = AccessPattern::column(tile.shape, column).expect("a column");
        let elements = (0..rows).map(|row| row * columns + column);
        Access { pattern, width: tile.bits / 8, instructions: in_turn(elements) }
    }

    /// A box of the tile, accessed according to a layout of lanes and registers, element by element.
    fn lanes(rng: &mut Rng, tile: &Tile) -> Access {
        let [rows, columns] = tile.shape;
        let (height, width) = (rng.pick(&[2, 4, 8]), columns.min(rng.pick(&[2, 4, 8, 16])));
        let (top, left) = (rng.below(rows - height + 1), rng.below(columns - width + 1));
        let kind = kind(rng);
        let (mut next_lane, mut next_register) = (1, 1);
        let mut shard = Vec::new();
        for extent in factors(rng, height * width) {
            let (next, axis) = if next_lane * extent <= LANES as i64 && rng.percent(75) {
                (&mut next_lane, LANEID)
            } else {
                (&mut next_register, REG)
            };
            shard.push(Iter { extent, stride: *next, axis });
            *next *= extent;
        }
        let lanes = built(shard, Vec::new(), Vec::new());
        let region = [top..top + height, left..left + width];
        let pattern = AccessPattern::new("lanes", kind, &lanes, &tile.shape, &region).expect("lanes of a warp");
        let mut instructions: BTreeMap<i64, Lanes> = BTreeMap::new();
        for at in 0..height * width {
            let place = &lanes.apply(at).expect("a small box")[0];
            let touched = instructions.entry(position(place, &REG)).or_insert([None; LANES]);
            touched[position(place, &LANEID) as usize] = Some((top + at / width) * columns + left + at % width);
        }
        Access { pattern: pattern.in_vectors_of(1).expect("one element"), width: tile.bits / 8, instructions }
    }

    fn vectors(rng: &mut Rng, tile: &Tile) -> Access {
        let widths: Vec<i64> = [4, 8, 16].into_iter().filter(|bytes| 8 * bytes >= tile.bits).collect();
        let (width, kind) = (rng.pick(&widths), kind(rng));
        let pattern = AccessPattern::vectors(tile.shape, tile.bits, width, kind).expect("whole vectors");
        let step = (width * 8 / tile.bits) as usize;
        Access { pattern, width, instructions: in_turn((0..tile.layout.size()).step_by(step)) }
    }

    /// The rows of `ldmatrix`: matrices of 8 rows, in a 2 x 2 arrangement.
    fn matrices(rng: &mut Rng, tile: &Tile) -> Access {
        let ([rows, columns], unit) = (tile.shape, tile.unit);
        let fits = |count: &i64| (*count == 1 || rows >= 16) && (*count < 4 || columns >= 2 * unit);
        let counts: Vec<i64> = [1, 2, 4].into_iter().filter(fits).collect();
        let count = rng.pick(&counts);
        let (down, right) = (count.min(2), if count == 4 { 2 } else { 1 });
        let (top, left) = (rng.below(rows - 8 * down + 1), unit * rng.below(columns / unit - right + 1));
        let pattern = AccessPattern::ldmatrix(tile.shape, [top, left], count, tile.bits).expect("matrices in the tile");
        let row = |lane: i64| top + 8 * (lane / 8 % 2) + lane % 8;
        let elements = (0..8 * count).map(|lane| row(lane) * columns + left + unit * (lane / 16));
        Access { pattern, width: 16, instructions: in_turn(elements) }
    }

    /// The wavefronts of all instructions, and the minimum possible.
    fn wavefronts(&self, tile: &Tile, swizzle: Option<SwizzleLayout>) -> (u32, u32) {
        let count = |lanes: &Lanes| {
            let byte = |lane: usize| lanes[lane].map(|element| tile.byte(element, swizzle));
            let access = WarpAccess::of(self.width as u64, self.pattern.kind(), byte);
            (access.wavefronts(), access.ideal_wavefronts())
        };
        self.instructions.values().map(count).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

fn kind(rng: &mut Rng) -> AccessKind {
    if rng.percent(50) { AccessKind::Load } else { AccessKind::Store }
}

fn is_free(counts: &[(u32, u32)]) -> bool {
    counts.iter().all(|(wavefronts, ideal)| wavefronts == ideal)
}

fn total(counts: &[(u32, u32)]) -> u32 {
    counts.iter().map(|(wavefronts, _)| wavefronts).sum()
}

#[test]
fn swizzles_for_random_accesses_are_as_good_as_said() {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for case in 0..200 {
        let mut rng = Rng::of_case(7, case);
        let tile = Tile::random(&mut rng);
        let count = 1 + rng.below(3);
        let accesses: Vec<Access> = (0..count).map(|_| Access::random(&mut rng, &tile)).collect();
        let patterns: Vec<AccessPattern> = accesses.iter().map(|access| access.pattern.clone()).collect();
        let told = format!("case {case}: {} of {} bits", tile.layout, tile.bits);
        let found = find_swizzle(&tile.layout, tile.bits, &patterns).unwrap_or_else(|e| panic!("{told}: {e}"));
        let counted =
            |swizzle| -> Vec<(u32, u32)> { accesses.iter().map(|access| access.wavefronts(&tile, swizzle)).collect() };
        let said: Vec<(u32, u32)> = found.costs.iter().map(|cost| (cost.wavefronts, cost.ideal)).collect();
        assert_eq!(
            said,
            counted(found.swizzle),
            "{told}
{found}"
        );
        assert_eq!(
            found.is_conflict_free(),
            is_free(&said),
            "{told}
{found}"
        );
        let modes = [SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128].map(|mode| mode.swizzle(tile.bits).ok());
        for known in [None].into_iter().chain(modes) {
            let counts = counted(known);
            assert!(
                found.is_conflict_free() || !is_free(&counts),
                "{told}: {known:?}
{found}"
            );
            assert!(
                total(&said) <= total(&counts),
                "{told}: {known:?}
{found}"
            );
        }
        let outcome = match (found.is_conflict_free(), found.swizzle, found.mode) {
            (false, _, _) => "none is conflict-free",
            (true, None, _) => "the plain tile",
            (true, Some(_), Some(_)) => "a hardware mode",
            (true, Some(_), None) => "another swizzle",
        };
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    println!("{outcomes:?}");
    assert!(outcomes.len() == 4 && outcomes.values().all(|count| *count >= 10), "{outcomes:?}");
}
