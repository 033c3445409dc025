//! The search for a swizzle under which no pattern of a list has a bank conflict.

use std::fmt;

use super::mode::MODES;
use super::tile_banks::TileBanks;
use super::witness::{Witness, witnesses};
use super::{AccessPattern, Case, check_instructions};
use crate::error::LayoutError;
use crate::hardware::SwizzleMode;
use crate::layout::Layout;
use crate::swizzle::{ComposeLayout, SwizzleLayout};
use crate::tile::TileLayout;

/// What a pattern costs under a swizzle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternCost {
    /// The pattern's name.
    pub pattern: String,
    /// Wavefronts of all its instructions.
    pub wavefronts: u32,
    /// The fewest wavefronts possible for as many words.
    pub ideal: u32,
}

/// The best swizzle found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwizzleSearch {
    /// The swizzle over the tile's elements; `None` if the plain tile is best.
    pub swizzle: Option<SwizzleLayout>,
    /// The hardware mode that this swizzle is, if it is one.
    pub mode: Option<SwizzleMode>,
    /// What each pattern costs under it.
    pub costs: Vec<PatternCost>,
    /// How many swizzles were tried, the plain tile included.
    pub tried: usize,
    /// If a conflict remains, pairs of lanes: under every swizzle tried, at least one of these pairs meets in a bank.
    pub witnesses: Vec<Witness>,
}

/// Looks for a swizzle of `tile`, of elements of `bits`, under which every pattern takes the fewest wavefronts.
///
/// The candidates are, in this order, the plain tile, the hardware modes (32, 64 and 128 bytes), and every other
/// [`SwizzleLayout`] that XORs lower bits of a position with higher ones (`inner`) inside the tile, those of fewest
/// bits first. The first that frees all patterns of conflicts is chosen, otherwise the one with the fewest wavefronts.
/// No swizzle of this family that could do better is left out: an XOR of bits below the vectors would split them, one
/// of bits below the words or above the banks moves nothing to another bank. Other placements are not tried: padding,
/// XORs of higher bits with lower ones, several XORs. The vectors are those that the patterns have on the plain tile.
/// The tile is assumed to begin at a multiple of the swizzle's period.
///
/// Errors: as [`super::bank_view`], for all patterns together; where the plain tile is not free of conflicts, more
/// instructions times swizzles than [`crate::ENUMERATION_LIMIT`].
pub fn find_swizzle(tile: &TileLayout, bits: i64, patterns: &[AccessPattern]) -> Result<SwizzleSearch, LayoutError> {
    let positions = super::positions(&tile.clone().into(), bits)?;
    let cases = cases(&positions, bits, patterns)?;
    let memory = TileBanks { positions: &positions, bits, cases: &cases };
    let plain = memory.attempt(PLAIN, 1);
    if plain.is_conflict_free() {
        return Ok(plain);
    }
    let vector = cases.iter().map(|case| case.vector).max().unwrap_or(1);
    let greatest = positions.iter().copied().max().unwrap_or(0);
    let candidates = candidates(bits, vector, greatest)?;
    let instructions: usize = cases.iter().map(|case| case.instructions.len()).sum();
    let points = (instructions as i64).saturating_mul(candidates.len() as i64 + 1);
    if points > crate::ENUMERATION_LIMIT {
        return Err(LayoutError::TooLarge { points });
    }
    Ok(memory.search(plain, &candidates))
}

fn cases<'a>(positions: &[i64], bits: i64, patterns: &'a [AccessPattern]) -> Result<Vec<Case<'a>>, LayoutError> {
    let mut cases = Vec::with_capacity(patterns.len());
    let mut instructions = 0;
    for pattern in patterns {
        let case = Case::new(pattern, positions, bits)?;
        instructions += case.instructions.len();
        check_instructions(pattern.name(), instructions)?;
        cases.push(case);
    }
    Ok(cases)
}

#[derive(Clone, Copy)]
struct SwizzleCandidate {
    /// The swizzle over the tile's elements; `None` for the plain tile.
    swizzle: Option<SwizzleLayout>,
    /// The hardware mode that the swizzle is, if it is one.
    mode: Option<SwizzleMode>,
}

const PLAIN: SwizzleCandidate = SwizzleCandidate { swizzle: None, mode: Some(SwizzleMode::None) };

/// The swizzles to try after the plain tile, in order: those that keep vectors whole and move words to other banks, for
/// a tile whose greatest position is `greatest`.
fn candidates(bits: i64, vector: i64, greatest: i64) -> Result<Vec<SwizzleCandidate>, LayoutError> {
    // Bits of an element's position: a bank is 4 bytes, all banks are 128 bytes.
    let width = i64::from(bits.ilog2());
    let (bank, line) = (5 - width, 10 - width);
    let lowest = bank.max(i64::from(vector.ilog2()));
    let reach = i64::from(i64::BITS - greatest.leading_zeros());
    let mut list = Vec::new();
    for mode in MODES {
        let swizzle = mode.swizzle(bits)?;
        if i64::from(swizzle.per_element() + swizzle.swizzle_len() + swizzle.atom_len()) <= reach {
            list.push(SwizzleCandidate { swizzle: Some(swizzle), mode: Some(mode) });
        }
    }
    let modes = list.clone();
    for swizzle_len in 1..=line - lowest {
        for per_element in (lowest..=line - swizzle_len).rev() {
            for atom_len in swizzle_len..=reach - per_element - swizzle_len {
                let swizzle = Some(SwizzleLayout::new(per_element, swizzle_len, atom_len, true)?);
                if modes.iter().all(|mode| mode.swizzle != swizzle) {
                    list.push(SwizzleCandidate { swizzle, mode: None });
                }
            }
        }
    }
    Ok(list)
}

impl TileBanks<'_> {
    /// Tries the other candidates after the plain tile, which has a conflict.
    fn search(&self, plain: SwizzleSearch, others: &[SwizzleCandidate]) -> SwizzleSearch {
        let mut best = plain;
        for (candidate, tried) in others.iter().zip(2..) {
            let found = self.attempt(*candidate, tried);
            if found.is_conflict_free() {
                return found;
            }
            if found.wavefronts() < best.wavefronts() {
                best = found;
            }
        }
        let swizzles: Vec<Option<SwizzleLayout>> = [PLAIN].iter().chain(others).map(|tried| tried.swizzle).collect();
        best.tried = swizzles.len();
        best.witnesses = witnesses(self, &swizzles);
        best
    }

    fn attempt(&self, candidate: SwizzleCandidate, tried: usize) -> SwizzleSearch {
        let SwizzleCandidate { swizzle, mode } = candidate;
        let costs = self.cases.iter().map(|case| self.cost(case, swizzle)).collect();
        SwizzleSearch { swizzle, mode, costs, tried, witnesses: Vec::new() }
    }

    fn cost(&self, case: &Case<'_>, swizzle: Option<SwizzleLayout>) -> PatternCost {
        let mut cost = PatternCost { pattern: case.pattern.name().to_string(), wavefronts: 0, ideal: 0 };
        for lanes in &case.instructions {
            let access = self.access(case, lanes, swizzle);
            cost.wavefronts += access.wavefronts();
            cost.ideal += access.ideal_wavefronts();
        }
        cost
    }
}

impl SwizzleSearch {
    /// True when every pattern takes the fewest wavefronts.
    pub fn is_conflict_free(&self) -> bool {
        self.costs.iter().all(|cost| cost.wavefronts == cost.ideal)
    }

    /// Wavefronts of all patterns.
    pub fn wavefronts(&self) -> u32 {
        self.costs.iter().map(|cost| cost.wavefronts).sum()
    }

    /// The tile under the swizzle found. Error: as [`ComposeLayout::new`].
    pub fn layout(&self, tile: &TileLayout) -> Result<Layout, LayoutError> {
        match self.swizzle {
            None => Ok(tile.clone().into()),
            Some(swizzle) => Ok(ComposeLayout::new(swizzle, tile.clone())?.into()),
        }
    }
}

impl fmt::Display for SwizzleSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match (self.swizzle, self.mode) {
            (None, _) => "no swizzle".to_string(),
            (Some(swizzle), None) => swizzle.to_string(),
            (Some(swizzle), Some(mode)) => format!("{swizzle}, the {mode} mode"),
        };
        if self.is_conflict_free() {
            write!(f, "{name}: free of conflicts, candidates tried: {}", self.tried)?;
        } else {
            write!(f, "no swizzle is free of conflicts, candidates tried: {}; the best is {name}", self.tried)?;
        }
        for PatternCost { pattern, wavefronts, ideal } in &self.costs {
            write!(f, "\n  {pattern}: wavefronts {wavefronts}, ideal {ideal}")?;
        }
        for witness in &self.witnesses {
            write!(f, "\n  {witness}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessKind;
    use crate::banks::bank_view;

    fn search(tile: &str, bits: i64, patterns: &[AccessPattern]) -> SwizzleSearch {
        find_swizzle(&tile.parse().unwrap(), bits, patterns).unwrap()
    }

    fn lanes(name: &str, lanes: &str, shape: &[i64]) -> AccessPattern {
        let whole: Vec<std::ops::Range<i64>> = shape.iter().map(|extent| 0..*extent).collect();
        AccessPattern::new(name, AccessKind::Load, &lanes.parse().unwrap(), shape, &whole).unwrap()
    }

    fn found(search: &SwizzleSearch) -> (String, Option<SwizzleMode>) {
        (search.swizzle.map_or("none".to_string(), |swizzle| swizzle.to_string()), search.mode)
    }

    #[test]
    fn rows_and_columns_of_128_byte_rows_take_the_128_byte_mode() {
        let shape = [8, 64];
        let patterns = [AccessPattern::row(shape, 3).unwrap(), AccessPattern::column(shape, 9).unwrap()];
        let search = search("S[(8,64):(64,1)]", 16, &patterns);
        assert_eq!(found(&search), ("swizzle(M=3,B=3,S=3)".to_string(), Some(SwizzleMode::B128)));
        assert_eq!(
            search.to_string(),
            "swizzle(M=3,B=3,S=3), the 128B mode: free of conflicts, candidates tried: 4\n  \
             row 3: wavefronts 2, ideal 2\n  column 9: wavefronts 1, ideal 1"
        );
    }

    #[test]
    fn what_is_free_already_is_left_alone() {
        let search = search("S[(8,64):(64,1)]", 16, &[AccessPattern::row([8, 64], 0).unwrap()]);
        assert_eq!((found(&search), search.tried), (("none".to_string(), Some(SwizzleMode::None)), 1));
    }

    #[test]
    fn what_is_free_already_needs_no_search_however_large_it_is() {
        let store = AccessPattern::vectors([2048, 1024], 32, 4, AccessKind::Store).unwrap();
        let search = search("S[(2048,1024):(1024,1)]", 32, std::slice::from_ref(&store));
        assert_eq!((found(&search).0, search.tried, search.wavefronts()), ("none".to_string(), 1, 1 << 16));
        let column = AccessPattern::column([1 << 17, 32], 0).unwrap();
        let error = find_swizzle(&"S[(131072,32):(32,1)]".parse().unwrap(), 32, &[column, store]).unwrap_err();
        assert_eq!(error.code(), "L0110");
    }

    #[test]
    fn a_matrix_load_and_a_vector_store_share_a_mode() {
        let (shape, tile) = ([16, 32], "S[(16,32):(32,1)]");
        let load = AccessPattern::ldmatrix(shape, [0, 16], 4, 16).unwrap();
        let store = AccessPattern::vectors(shape, 16, 16, AccessKind::Store).unwrap();
        let search = search(tile, 16, &[load, store]);
        assert_eq!(found(&search).1, Some(SwizzleMode::B64));
    }

    #[test]
    fn where_no_mode_serves_a_longer_exchange_of_words_does() {
        let shape = [32, 32];
        let patterns = [AccessPattern::row(shape, 0).unwrap(), AccessPattern::column(shape, 31).unwrap()];
        let search = search("S[(32,32):(32,1)]", 32, &patterns);
        assert_eq!(found(&search), ("swizzle(M=0,B=5,S=5)".to_string(), None));
        assert!(search.is_conflict_free());
    }

    #[test]
    fn where_none_serves_lanes_that_meet_are_named() {
        let search = search("S[(2,2):(2048,32)]", 32, &[lanes("corners", "S[(2,2):(2@laneid,1@laneid)]", &[2, 2])]);
        assert_eq!(
            search.to_string(),
            "no swizzle is free of conflicts, candidates tried: 106; the best is swizzle(M=2,B=1,S=3), the 32B mode\n  \
             corners: wavefronts 2, ideal 1\n  \
             corners: lanes 0 and 2 (elements 0 and 2, 8192 bytes apart) share a bank under 91 of the candidates\n  \
             corners: lanes 0 and 1 (elements 0 and 1, 128 bytes apart) share a bank under 15 of the candidates"
        );
    }

    #[test]
    fn every_swizzle_tried_leaves_one_of_the_pairs_in_a_bank() {
        let tile: TileLayout = "S[(2,2):(2048,32)]".parse().unwrap();
        let pattern = lanes("corners", "S[(2,2):(2@laneid,1@laneid)]", &[2, 2]);
        let search = find_swizzle(&tile, 32, std::slice::from_ref(&pattern)).unwrap();
        assert_eq!(search.witnesses.iter().map(|witness| witness.swizzles).sum::<usize>(), search.tried);
        for candidate in [PLAIN].into_iter().chain(candidates(32, 1, 2080).unwrap()) {
            let layout = SwizzleSearch { swizzle: candidate.swizzle, ..search.clone() }.layout(&tile).unwrap();
            let view = bank_view(&layout, 32, &pattern).unwrap();
            let bank = |lane: usize| view.instructions[0].bank(lane);
            assert!(search.witnesses.iter().any(|w| bank(w.lanes[0]) == bank(w.lanes[1])), "{layout}");
        }
    }

    #[test]
    fn the_view_of_the_layout_found_costs_what_the_search_says() {
        let tile: TileLayout = "S[(24,48):(48,1)]".parse().unwrap();
        let patterns = [AccessPattern::row([24, 48], 5).unwrap(), AccessPattern::column([24, 48], 7).unwrap()];
        let search = find_swizzle(&tile, 16, &patterns).unwrap();
        let layout = search.layout(&tile).unwrap();
        for (pattern, cost) in patterns.iter().zip(&search.costs) {
            let view = bank_view(&layout, 16, pattern).unwrap();
            assert_eq!((view.wavefronts(), view.ideal_wavefronts()), (cost.wavefronts, cost.ideal));
        }
    }
}
