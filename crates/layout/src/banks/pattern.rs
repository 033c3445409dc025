//! Which lane of a warp touches which elements of a tile.

use std::ops::Range;

use super::{WIDEST, check_bits, problem};
use crate::access::{AccessKind, LANES};
use crate::algebra::copies_on;
use crate::axis::{LANEID, M, REG};
use crate::error::LayoutError;
use crate::tile::TileLayout;

/// An access of one warp to a tile: each lane moves elements to or from registers, in order.
///
/// Instruction `i` takes the registers `i * v` to `i * v + v - 1` of every lane, for vectors of `v` elements; `v` is
/// fixed by the pattern or the widest that a memory layout allows (see [`super::bank_view`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPattern {
    name: String,
    kind: AccessKind,
    /// Sorted; each register of a lane occurs once.
    touches: Vec<Touch>,
    /// Elements of a vector, if fixed; otherwise the widest that memory allows.
    vector: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touch {
    /// The lane of the warp, 0 to 31.
    pub(super) lane: usize,
    /// The register of that lane, in elements.
    pub(super) register: i64,
    /// The flat index of the element in the tile.
    pub(super) element: i64,
}

impl AccessPattern {
    /// The access of a layout of lanes to a region of a tile of this `shape`.
    ///
    /// `lanes` has as many elements as the region: it places element `x` of the region, in row-major order, on the lane
    /// `laneid` that touches it and on the register `reg` (or `m`) of that lane. `S[(8,4,2):(4@laneid,1@laneid,1@reg)]`
    /// over an (8,8) region: element (i, j) is register j % 2 of lane 4i + j / 2. A replica over `laneid` is a second
    /// lane that touches the element. Errors: another axis, a lane outside `0..32`, two elements in one register, a
    /// region outside the shape or of another size.
    pub fn new(
        name: impl Into<String>,
        kind: AccessKind,
        lanes: &TileLayout,
        shape: &[i64],
        region: &[Range<i64>],
    ) -> Result<AccessPattern, LayoutError> {
        if let Some(axis) = lanes.axes().into_iter().find(|axis| ![LANEID, REG, M].contains(axis)) {
            return Err(problem(format!("the access of a warp uses the axes `laneid` and `reg`, not `{axis}`")));
        }
        let copies = lanes.replica().iter().map(|iter| iter.extent);
        let points = copies.fold(lanes.size(), i64::saturating_mul);
        if points > crate::ENUMERATION_LIMIT {
            return Err(LayoutError::TooLarge { points });
        }
        let lanes = lanes.renamed(&M, &REG)?;
        let extents: Vec<i64> = region.iter().map(|range| range.end.saturating_sub(range.start)).collect();
        lanes.check_shape(&extents)?;
        let size = shape.iter().try_fold(1i64, |n, &extent| n.checked_mul(extent)).ok_or(LayoutError::Overflow)?;
        let elements = crate::algebra::elements_of_region(size, shape, region)?;
        let other_lanes = copies_on(lanes.replica(), &LANEID)?;
        let other_registers = copies_on(lanes.replica(), &REG)?;
        let places = lanes.positions(&LANEID).into_iter().zip(lanes.positions(&REG));
        let mut touches = Vec::new();
        for ((lane, register), element) in places.zip(elements) {
            for other in &other_lanes {
                let lane = lane_number(lane + other)?;
                touches.extend(other_registers.iter().map(|other| Touch { lane, register: register + other, element }));
            }
        }
        AccessPattern::of(name.into(), kind, touches, None)
    }

    /// The same access in vectors of exactly `elements`. Error: not a power of two.
    pub fn in_vectors_of(self, elements: i64) -> Result<AccessPattern, LayoutError> {
        if elements < 1 || elements & (elements - 1) != 0 {
            return Err(problem(format!("{}: a vector of {elements} elements; legal: 1, 2, 4 and so on", self.name)));
        }
        Ok(AccessPattern { vector: Some(elements), ..self })
    }

    /// A load of row `row` of a tile of this `shape`, one element per lane, 32 per instruction.
    pub fn row(shape: [i64; 2], row: i64) -> Result<AccessPattern, LayoutError> {
        AccessPattern::line(format!("row {row}"), shape, [row..row.saturating_add(1), 0..shape[1]])
    }

    /// A load of column `column` of a tile of this `shape`, one element per lane, 32 per instruction.
    pub fn column(shape: [i64; 2], column: i64) -> Result<AccessPattern, LayoutError> {
        AccessPattern::line(format!("column {column}"), shape, [0..shape[0], column..column.saturating_add(1)])
    }

    fn line(name: String, shape: [i64; 2], region: [Range<i64>; 2]) -> Result<AccessPattern, LayoutError> {
        let size = tile_size(shape)?;
        let elements = crate::algebra::elements_of_region(size, &shape, &region)?;
        let touch = |(at, element): (usize, i64)| Touch { lane: at % LANES, register: (at / LANES) as i64, element };
        let touches = elements.into_iter().enumerate().map(touch).collect();
        AccessPattern::of(name, AccessKind::Load, touches, Some(1))
    }

    /// An `ldmatrix` of 1, 2 or 4 matrices of 8 rows of 16 bytes, whose first begins at `corner` of a tile of this
    /// `shape`, of elements of `bits`: two matrices one below the other, four as two by two. Each lane is the one
    /// that gives the address of the row (PTX ISA, "ldmatrix": threads 0 to 7 for the first matrix, and so on).
    pub fn ldmatrix(shape: [i64; 2], corner: [i64; 2], matrices: i64, bits: i64) -> Result<AccessPattern, LayoutError> {
        check_bits(bits)?;
        let (down, right) = match matrices {
            1 => (1, 1),
            2 => (2, 1),
            4 => (2, 2),
            other => return Err(problem(format!("ldmatrix of {other} matrices; legal: 1, 2 and 4"))),
        };
        let row = WIDEST / bits;
        let lanes = crate::spec::S([down, 8, right, row], [8 * LANEID, 1 * LANEID, 16 * LANEID, 1 * REG]).build()?;
        let [top, left] = corner;
        let region = [top..top.saturating_add(8 * down), left..left.saturating_add(row * right)];
        let name = format!("ldmatrix.x{matrices} at ({top},{left})");
        AccessPattern::new(name, AccessKind::Load, &lanes, &shape, &region)?.in_vectors_of(row)
    }

    /// An access to a whole tile of this `shape`, of elements of `bits`: vectors of `bytes` in row-major order, 32 per
    /// instruction. Error: bytes other than 1, 2, 4, 8 or 16, or a tile that is not a whole number of vectors.
    pub fn vectors(shape: [i64; 2], bits: i64, bytes: i64, kind: AccessKind) -> Result<AccessPattern, LayoutError> {
        check_bits(bits)?;
        let vector = bytes.saturating_mul(8) / bits;
        let size = tile_size(shape)?;
        if ![1, 2, 4, 8, 16].contains(&bytes) || vector < 1 || size % vector != 0 {
            let said = format!("{bytes}-byte vectors in a tile of size {size} with {bits}-bit elements");
            return Err(problem(format!("{said}; legal: 1, 2, 4, 8 or 16 bytes that divide the tile")));
        }
        let touch = |element: i64| {
            let (at, within) = (element / vector, element % vector);
            let lane = (at % LANES as i64) as usize;
            Touch { lane, register: at / LANES as i64 * vector + within, element }
        };
        let verb = if kind == AccessKind::Load { "load" } else { "store" };
        AccessPattern::of(format!("{bytes}-byte {verb}"), kind, (0..size).map(touch).collect(), Some(vector))
    }

    fn of(
        name: String,
        kind: AccessKind,
        mut touches: Vec<Touch>,
        vector: Option<i64>,
    ) -> Result<AccessPattern, LayoutError> {
        touches.sort_unstable();
        touches.dedup();
        let twice =
            touches.windows(2).find(|pair| (pair[0].lane, pair[0].register) == (pair[1].lane, pair[1].register));
        if let Some([a, b]) = twice {
            let register = format!("register {} of lane {}", a.register, a.lane);
            return Err(problem(format!("{name}: {register} takes both element {} and {}", a.element, b.element)));
        }
        Ok(AccessPattern { name, kind, touches, vector })
    }

    /// What it is called in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it reads or writes.
    pub fn kind(&self) -> AccessKind {
        self.kind
    }

    pub(super) fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// Elements that a lane accesses with one instruction in a tile with these positions: the fixed number, otherwise
    /// the most that are consecutive and aligned in every lane; at most 16 bytes.
    pub(super) fn vector(&self, positions: &[i64], bits: i64) -> Result<i64, LayoutError> {
        let extent = positions.len() as i64;
        if let Some(outside) = self.touches.iter().find(|touch| touch.element >= extent) {
            return Err(LayoutError::OutOfRange { index: outside.element, extent });
        }
        let most = WIDEST / bits;
        let Some(vector) = self.vector else {
            let mut widths = (0..=most.ilog2()).rev().map(|k| 1 << k);
            return Ok(widths.find(|width| self.torn(positions, *width).is_none()).unwrap_or(1));
        };
        if vector > most {
            return Err(problem(format!("{}: a vector of {vector} {bits}-bit elements exceeds 16 bytes", self.name)));
        }
        let Some(Touch { lane, element, .. }) = self.torn(positions, vector) else { return Ok(vector) };
        let said = format!("lane {lane} accesses a vector of {vector} elements from element {element} on");
        Err(problem(format!("{}: {said}, but in memory they are not consecutive and aligned to the vector", self.name)))
    }

    /// The first touch of a vector that is not complete, in order and aligned; `None` if all vectors are.
    fn torn(&self, positions: &[i64], vector: i64) -> Option<Touch> {
        let whole = |chunk: &&[Touch]| {
            let first = chunk[0];
            let start = positions[first.element as usize];
            let follows = |(touch, k): (&Touch, i64)| {
                let next = (touch.lane, touch.register) == (first.lane, first.register + k);
                next && positions[touch.element as usize] == start + k
            };
            let aligned = first.register.rem_euclid(vector) == 0 && start % vector == 0;
            aligned && chunk.len() as i64 == vector && chunk.iter().zip(0..).all(follows)
        };
        self.touches.chunks(vector as usize).find(|chunk| !whole(chunk)).map(|chunk| chunk[0])
    }
}

fn lane_number(lane: i64) -> Result<usize, LayoutError> {
    if (0..LANES as i64).contains(&lane) {
        return Ok(lane as usize);
    }
    Err(problem(format!("lane {lane} is outside a warp, 0..{LANES}")))
}

/// The number of elements of a tile. Errors: an extent below 1, more elements than may be enumerated.
fn tile_size(shape: [i64; 2]) -> Result<i64, LayoutError> {
    let [rows, columns] = shape;
    if let Some(extent) = [rows, columns].into_iter().find(|extent| *extent < 1) {
        return Err(LayoutError::Extent { extent });
    }
    match rows.saturating_mul(columns) {
        points if points > crate::ENUMERATION_LIMIT => Err(LayoutError::TooLarge { points }),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touches(pattern: &AccessPattern) -> Vec<(usize, i64, i64)> {
        pattern.touches().iter().map(|touch| (touch.lane, touch.register, touch.element)).collect()
    }

    fn vector(pattern: &AccessPattern, tile: &str) -> Result<i64, LayoutError> {
        pattern.vector(&tile.parse::<TileLayout>().unwrap().positions(&M), 16)
    }

    fn refused(lanes: &str, shape: &[i64], region: &[Range<i64>]) -> String {
        let lanes: TileLayout = lanes.parse().unwrap();
        AccessPattern::new("it", AccessKind::Load, &lanes, shape, region).unwrap_err().to_string()
    }

    #[test]
    fn a_row_wider_than_a_warp_takes_several_instructions() {
        let row = touches(&AccessPattern::row([2, 48], 1).unwrap());
        assert_eq!((row.len(), row[0], row[1], row[2]), (48, (0, 0, 48), (0, 1, 80), (1, 0, 49)));
    }

    #[test]
    fn a_replica_over_lanes_is_a_second_lane_on_the_element() {
        let lanes: TileLayout = "S[2:1@laneid] + R[2:16@laneid]".parse().unwrap();
        let pattern = AccessPattern::new("it", AccessKind::Load, &lanes, &[4], std::slice::from_ref(&(2..4))).unwrap();
        assert_eq!(touches(&pattern), [(0, 0, 2), (1, 0, 3), (16, 0, 2), (17, 0, 3)]);
    }

    #[test]
    fn an_ldmatrix_of_four_takes_two_by_two_matrices() {
        let pattern = AccessPattern::ldmatrix([16, 64], [0, 16], 4, 16).unwrap();
        let first: Vec<(usize, i64)> =
            touches(&pattern).into_iter().filter(|touch| touch.1 == 0).map(|touch| (touch.0, touch.2)).collect();
        assert_eq!((first.len(), first[1], first[8], first[16]), (32, (1, 80), (8, 528), (16, 24)));
    }

    #[test]
    fn vectors_go_round_the_lanes() {
        let store = AccessPattern::vectors([8, 64], 16, 16, AccessKind::Store).unwrap();
        let second = touches(&store).into_iter().find(|touch| touch.0 == 0 && touch.1 == 8);
        assert_eq!((store.name(), second), ("16-byte store", Some((0, 8, 256))));
    }

    #[test]
    fn the_vector_is_the_widest_run_that_lanes_and_memory_share() {
        let lanes: TileLayout = "S[(4,8):(1@laneid,1@reg)]".parse().unwrap();
        let pattern = AccessPattern::new("it", AccessKind::Load, &lanes, &[4, 8], &[0..4, 0..8]).unwrap();
        let widths = ["S[(4,8):(8,1)]", "S[(4,8):(12,1)]", "S[(4,8):(8,1)] + 2", "S[(4,8):(1,4)]"];
        assert_eq!(widths.map(|tile| vector(&pattern, tile).unwrap()), [8, 4, 2, 1]);
    }

    #[test]
    fn a_fixed_vector_that_memory_tears_apart_is_an_error() {
        let store = AccessPattern::vectors([4, 8], 16, 16, AccessKind::Store).unwrap();
        assert_eq!(vector(&store, "S[(4,8):(8,1)]"), Ok(8));
        let said = vector(&store, "S[(4,8):(12,1)]").unwrap_err().to_string();
        assert!(said.contains("lane 1 accesses a vector of 8 elements from element 8 on"), "{said}");
    }

    #[test]
    fn patterns_that_no_warp_can_carry_out_are_refused() {
        assert!(refused("S[(2,32):(1@warpid,1@laneid)]", &[64], std::slice::from_ref(&(0..64))).contains("`warpid`"));
        assert!(refused("S[64:1@laneid]", &[64], std::slice::from_ref(&(0..64))).contains("lane 32"));
        let twice = refused("S[(2,32):(0@reg,1@laneid)]", &[64], std::slice::from_ref(&(0..64)));
        assert_eq!(twice, "it: register 0 of lane 0 takes both element 0 and 32");
        assert!(refused("S[32:1@laneid]", &[64], std::slice::from_ref(&(0..64))).contains("size 64"));
        assert!(refused("S[32:1@laneid]", &[48], std::slice::from_ref(&(32..64))).contains("outside 0..48"));
    }
}
