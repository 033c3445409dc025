//! Shared-memory banks: how the accesses of a warp fall on them, and which swizzle makes them free of conflicts.
//!
//! Shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide, "Shared Memory"); byte `b` is in bank
//! `b / 4 % 32` of the 128-byte line `b / 128`. An [`AccessPattern`] says which lane touches which element of a tile
//! with which instruction; [`bank_view`] shows where that lands under a layout, [`find_swizzle`] looks for a swizzle
//! under which no pattern of a list has a conflict. Wavefronts are those of [`crate::access`].
//!
//! ```
//! use tilewright_layout::TileLayout;
//! use tilewright_layout::banks::{AccessPattern, bank_view, find_swizzle};
//! let tile: TileLayout = "S[(8,64):(64,1)]".parse()?;
//! let patterns = [AccessPattern::row([8, 64], 0)?, AccessPattern::column([8, 64], 0)?];
//! assert_eq!(bank_view(&tile.clone().into(), 16, &patterns[1])?.wavefronts(), 8);
//! let found = find_swizzle(&tile, 16, &patterns)?;
//! assert_eq!(found.swizzle.map(|swizzle| swizzle.to_string()), Some("swizzle(M=3,B=3,S=3)".to_string()));
//! # Ok::<(), tilewright_layout::LayoutError>(())
//! ```

use std::collections::BTreeMap;

use crate::access::{LANES, WAVEFRONT_BYTES, WarpAccess};
use crate::axis::M;
use crate::error::LayoutError;
use crate::layout::Layout;

mod mode;
mod pattern;
mod rows;
mod search;
mod tile_banks;
mod witness;

pub use mode::{SwizzleChoice, choose_swizzle_mode};
pub use pattern::AccessPattern;
pub use rows::RowLayout;
pub use search::{PatternCost, SwizzleSearch, find_swizzle};
pub use witness::Witness;

const BANK_BYTES: u64 = 4;
/// The widest access of one lane, in bits.
const WIDEST: i64 = 128;
/// The maximum number of instructions of an access; each takes about a kilobyte here.
const MAX_INSTRUCTIONS: usize = 1 << 16;

/// The bank of a byte of shared memory.
pub fn bank_of(byte: u64) -> u64 {
    byte % WAVEFRONT_BYTES as u64 / BANK_BYTES
}

/// The line of a byte of shared memory: 128 bytes, one word of every bank.
pub fn line_of(byte: u64) -> u64 {
    byte / WAVEFRONT_BYTES as u64
}

/// An access pattern on a tile in shared memory.
#[derive(Clone, Debug)]
pub struct BankView {
    /// Bytes that one lane accesses with one instruction: the widest run that pattern and layout both allow, or what
    /// the pattern fixes. At least 1: narrower elements are accessed through the byte that contains them.
    pub width: u64,
    /// The instructions, in order.
    pub instructions: Vec<Instruction>,
}

/// One instruction of a pattern.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The first element that each lane accesses, as a flat index in the tile; `None` for an inactive lane.
    pub elements: [Option<i64>; LANES],
    /// The bytes that are touched.
    pub access: WarpAccess,
}

impl Instruction {
    /// The first bank that a lane touches; it touches one for each word that it accesses.
    pub fn bank(&self, lane: usize) -> Option<u64> {
        self.address(lane).map(bank_of)
    }

    /// The line that a lane touches.
    pub fn line(&self, lane: usize) -> Option<u64> {
        self.address(lane).map(line_of)
    }

    fn address(&self, lane: usize) -> Option<u64> {
        self.access.addresses.get(lane).copied().flatten()
    }
}

impl BankView {
    /// The total wavefronts of all instructions.
    pub fn wavefronts(&self) -> u32 {
        self.instructions.iter().map(|instruction| instruction.access.wavefronts()).sum()
    }

    /// The fewest wavefronts possible for as many words.
    pub fn ideal_wavefronts(&self) -> u32 {
        self.instructions.iter().map(|instruction| instruction.access.ideal_wavefronts()).sum()
    }

    /// True when every instruction takes the fewest wavefronts that it could.
    pub fn is_conflict_free(&self) -> bool {
        self.wavefronts() == self.ideal_wavefronts()
    }
}

/// Where a pattern touches a tile of elements of `bits`, instruction by instruction. Replicas of the tile are left out.
///
/// Errors: a tile that is not on `m` alone or has negative positions, bits that are not a power of two up to 128, more
/// elements than [`crate::ENUMERATION_LIMIT`], a pattern that exceeds the tile or whose vectors the layout splits, more
/// than 65536 instructions.
pub fn bank_view(tile: &Layout, bits: i64, pattern: &AccessPattern) -> Result<BankView, LayoutError> {
    let positions = positions(tile, bits)?;
    let case = Case::new(pattern, &positions, bits)?;
    let instruction = |lanes: &[Option<i64>; LANES]| Instruction {
        elements: *lanes,
        access: case.access(lanes, |element| byte_of(positions[element as usize], bits)),
    };
    Ok(BankView { width: case.width(), instructions: case.instructions.iter().map(instruction).collect() })
}

fn problem(problem: String) -> LayoutError {
    LayoutError::Swizzle { problem }
}

fn check_instructions(pattern: &str, count: usize) -> Result<(), LayoutError> {
    if count <= MAX_INSTRUCTIONS {
        return Ok(());
    }
    Err(problem(format!(
        "{pattern}: more than {MAX_INSTRUCTIONS} instructions; legal: an access to a part of the tile"
    )))
}

fn byte_of(position: i64, bits: i64) -> u64 {
    (position * bits / 8) as u64
}

fn check_bits(bits: i64) -> Result<(), LayoutError> {
    if (1..=WIDEST).contains(&bits) && bits & (bits - 1) == 0 {
        return Ok(());
    }
    Err(problem(format!("elements of {bits} bits are not supported; legal: a power of two up to {WIDEST} bits")))
}

/// The positions of all elements in memory; each of them times `bits` fits in 64 bits.
fn positions(tile: &Layout, bits: i64) -> Result<Vec<i64>, LayoutError> {
    check_bits(bits)?;
    if let Some(axis) = tile.axes().into_iter().find(|axis| *axis != M) {
        return Err(problem(format!("only linear memory `m` has banks; this tile is also on `{axis}`")));
    }
    let points = tile.size();
    if points > crate::ENUMERATION_LIMIT {
        return Err(LayoutError::TooLarge { points });
    }
    let positions = tile.memory_positions();
    if let Some(least) = positions.iter().min().filter(|least| **least < 0) {
        return Err(problem(format!("a tile in shared memory begins at 0; this one reaches {least}")));
    }
    if positions.iter().any(|position| position.checked_mul(bits).is_none()) {
        return Err(LayoutError::Overflow);
    }
    Ok(positions)
}

/// A pattern as instructions with vectors of one width.
struct Case<'a> {
    pattern: &'a AccessPattern,
    /// Bits of an element.
    bits: i64,
    /// Elements that one lane accesses with one instruction.
    vector: i64,
    /// For each instruction, the first element that each lane accesses.
    instructions: Vec<[Option<i64>; LANES]>,
}

impl<'a> Case<'a> {
    fn new(pattern: &'a AccessPattern, positions: &[i64], bits: i64) -> Result<Case<'a>, LayoutError> {
        let vector = pattern.vector(positions, bits)?;
        let mut instructions: BTreeMap<i64, [Option<i64>; LANES]> = BTreeMap::new();
        for touch in pattern.touches().iter().filter(|touch| touch.register.rem_euclid(vector) == 0) {
            let lanes = instructions.entry(touch.register.div_euclid(vector)).or_insert([None; LANES]);
            lanes[touch.lane] = Some(touch.element);
            check_instructions(pattern.name(), instructions.len())?;
        }
        Ok(Case { pattern, bits, vector, instructions: instructions.into_values().collect() })
    }

    fn width(&self) -> u64 {
        (self.vector * self.bits / 8).max(1) as u64
    }

    fn access(&self, lanes: &[Option<i64>; LANES], address: impl Fn(i64) -> u64) -> WarpAccess {
        WarpAccess::of(self.width(), self.pattern.kind(), |lane| lanes[lane].map(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::TileLayout;

    fn seed_column(layout: &str) -> BankView {
        bank_view(&layout.parse().unwrap(), 16, &AccessPattern::column([8, 64], 0).unwrap()).unwrap()
    }

    #[test]
    fn a_column_of_a_plain_tile_is_in_one_bank() {
        let view = seed_column("S[(8,64):(64,1)]");
        let banks: Vec<Option<u64>> = (0..9).map(|lane| view.instructions[0].bank(lane)).collect();
        assert_eq!(banks[..8], [Some(0); 8]);
        assert_eq!((banks[8], view.wavefronts(), view.ideal_wavefronts()), (None, 8, 1));
    }

    #[test]
    fn the_128_byte_swizzle_spreads_the_column_over_every_fourth_bank() {
        let view = seed_column("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]");
        let banks: Vec<u64> = (0..8).filter_map(|lane| view.instructions[0].bank(lane)).collect();
        let lines: Vec<u64> = (0..8).filter_map(|lane| view.instructions[0].line(lane)).collect();
        assert_eq!((banks, lines), (vec![0, 4, 8, 12, 16, 20, 24, 28], vec![0, 1, 2, 3, 4, 5, 6, 7]));
        assert_eq!((view.wavefronts(), view.is_conflict_free(), view.width), (1, true, 2));
    }

    #[test]
    fn a_fragment_in_the_notation_is_an_access() {
        let lanes: TileLayout = "S[(8,4,2):(4@laneid,1@laneid,1@reg)]".parse().unwrap();
        let pattern =
            AccessPattern::new("fragment", crate::access::AccessKind::Load, &lanes, &[8, 8], &[0..8, 0..8]).unwrap();
        let tile: TileLayout = "S[(8,8):(8,1)]".parse().unwrap();
        let view = bank_view(&tile.into(), 16, &pattern).unwrap();
        assert_eq!((view.width, view.instructions.len(), view.wavefronts()), (4, 1, 1));
        assert_eq!((view.instructions[0].elements[5], view.instructions[0].bank(5)), (Some(10), Some(5)));
    }

    #[test]
    fn elements_narrower_than_a_byte_are_reached_by_their_byte() {
        let tile: TileLayout = "S[(1,32):(32,1)]".parse().unwrap();
        let view = bank_view(&tile.into(), 4, &AccessPattern::row([1, 32], 0).unwrap()).unwrap();
        assert_eq!((view.width, view.instructions[0].bank(31), view.wavefronts()), (1, Some(3), 1));
    }

    #[test]
    fn accesses_of_too_many_instructions_are_refused() {
        let touch = |elements: i64| {
            let (tile, lanes) = (format!("S[{elements}:2]"), format!("S[{elements}:1@reg]"));
            let (lanes, kind) = (lanes.parse().unwrap(), crate::access::AccessKind::Load);
            let whole = 0..elements;
            let pattern = AccessPattern::new("one lane", kind, &lanes, &[elements], std::slice::from_ref(&whole));
            bank_view(&tile.parse().unwrap(), 32, &pattern.unwrap()).map(|view| view.instructions.len())
        };
        assert_eq!(touch(1 << 16), Ok(1 << 16));
        let said = touch((1 << 16) + 1).unwrap_err().to_string();
        assert_eq!(said, "one lane: more than 65536 instructions; legal: an access to a part of the tile");
    }

    #[test]
    fn tiles_that_are_not_in_memory_are_refused() {
        let column = AccessPattern::column([8, 64], 0).unwrap();
        let refuse = |tile: &str, bits| bank_view(&tile.parse().unwrap(), bits, &column).unwrap_err().to_string();
        assert!(refuse("S[(8,64):(1@laneid,1)]", 16).contains("is also on `laneid`"));
        assert!(refuse("S[(8,64):(-64,1)]", 16).contains("this one reaches -448"));
        assert!(refuse("S[(8,64):(64,1)]", 24).contains("elements of 24 bits"));
        assert_eq!(refuse("S[(4,64):(64,1)]", 16), "index 256 is outside 0..256");
    }
}
