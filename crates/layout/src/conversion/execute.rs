//! Runs plans on fragment tables: what each register holds afterwards.

use std::ops::Range;

use crate::access::LANES;

use super::cost::Barrier;
use super::shuffle::Shuffles;
use super::staging::Staging;
use super::table::{FragmentTable, NONE};
use super::{Conversion, ConversionKind};

impl Conversion {
    /// The registers after the plan has run on those of `a`: a simple interpreter that reads nothing but the plan.
    /// A register that the plan leaves open holds no element.
    pub fn execute(&self, a: &FragmentTable) -> FragmentTable {
        match &self.kind {
            ConversionKind::Nothing => self.filled(|thread, register| Some(a.at(thread, register))),
            ConversionKind::Renaming(picks) => {
                self.filled(|thread, register| picks.at(thread, register).map(|pick| a.at(thread, pick)))
            }
            ConversionKind::Shuffles(shuffles) => {
                self.filled(|thread, register| self.picked(shuffles, a, thread, register))
            }
            ConversionKind::Staging(staging) => self.staged(staging, a),
        }
    }

    fn filled(&self, element: impl Fn(usize, usize) -> Option<i32>) -> FragmentTable {
        let mut b = FragmentTable::empty(self.threads, self.registers);
        for thread in 0..self.threads {
            for register in 0..self.registers {
                b.set(thread, register, element(thread, register).unwrap_or(NONE));
            }
        }
        b
    }

    /// An element of the thread itself, or one that it received: the slot of the word that its source sent.
    fn picked(&self, shuffles: &Shuffles, a: &FragmentTable, thread: usize, register: usize) -> Option<i32> {
        let pick = shuffles.picks.at(thread, register)?;
        let Some(piece) = pick.checked_sub(shuffles.picks.own) else { return Some(a.at(thread, pick)) };
        let (warp, lane) = (thread / LANES, thread % LANES);
        let step = shuffles.steps.get(piece / self.elements_per_word())?.warp(warp)?;
        let source = step.source[lane]?;
        let word = step.word.get(source).copied().flatten()?;
        let slot = piece % self.elements_per_word();
        Some(a.at(warp * LANES + source, word * self.elements_per_word() + slot))
    }

    /// With a warp barrier, every warp gets its own copy of shared memory: it must not read what others wrote.
    fn staged(&self, staging: &Staging, a: &FragmentTable) -> FragmentTable {
        let mut b = FragmentTable::empty(self.threads, self.registers);
        let together = if staging.barrier == Barrier::Warp { LANES } else { self.threads.max(1) };
        for first in (0..self.threads).step_by(together) {
            self.stage(staging, a, &mut b, first..first + together);
        }
        b
    }

    fn stage(&self, staging: &Staging, a: &FragmentTable, b: &mut FragmentTable, threads: Range<usize>) {
        let elements = usize::try_from(staging.bytes).unwrap_or(0).saturating_mul(8) / staging.cell.max(1);
        let mut memory = vec![NONE; elements];
        for access in &staging.store.accesses {
            for thread in threads.clone() {
                let Some(address) = access.addresses.get(thread).copied().flatten() else { continue };
                for (cell, register) in memory.iter_mut().skip(address).zip(&access.registers) {
                    *cell = a.at(thread, *register);
                }
            }
        }
        for access in &staging.load.accesses {
            for thread in threads.clone() {
                let Some(address) = access.addresses.get(thread).copied().flatten() else { continue };
                for (cell, register) in memory.iter().skip(address).zip(&access.registers) {
                    b.set(thread, *register, *cell);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{find_conversion, find_conversions};
    use super::*;
    use crate::tile::TileLayout;

    /// Runs every kind of plan, checks that each register of `b` holds its element, and names the cheapest.
    fn converted(a: &str, b: &str, bits: i64) -> (&'static str, u64) {
        let (a, b): (TileLayout, TileLayout) = (a.parse().unwrap(), b.parse().unwrap());
        let (from, to) = (FragmentTable::of(&a).unwrap(), FragmentTable::of(&b).unwrap());
        for plan in find_conversions(&a, &b, bits).unwrap() {
            assert!(plan.execute(&from).holds(&to), "{plan}");
        }
        let plan = find_conversion(&a, &b, bits).unwrap();
        (plan.kind.name(), plan.cost.total())
    }

    #[test]
    fn the_same_places_in_other_words_need_nothing() {
        assert_eq!(converted("S[(8,4):(4@laneid,1@laneid)]", "S[32:1@tx]", 32), ("nothing", 0));
    }

    #[test]
    fn registers_in_another_order_are_renamed() {
        let (a, b) = ("S[(32,4):(1@laneid,1@reg)]", "S[(32,2,2):(1@laneid,1@reg,2@reg)]");
        assert_eq!((converted(a, b, 32), converted(a, b, 16)), (("renaming", 0), ("renaming", 4)));
    }

    #[test]
    fn eight_by_eight_matrices_are_transposed_by_shuffles() {
        let (a, b) = ("S[(8,4,2):(4@laneid,1@laneid,1@reg)]", "S[(4,2,8):(1@laneid,1@reg,4@laneid)]");
        assert_eq!((converted(a, b, 16), converted(a, b, 32)), (("shuffles", 38), ("shuffles", 44)));
    }

    #[test]
    fn an_accumulator_is_the_next_half_precision_operand_as_it_is() {
        let accumulator = "S[(2,8,4,2):(2@reg,4@laneid,1@laneid,1@reg)]";
        assert_eq!(converted(accumulator, accumulator, 16), ("nothing", 0));
    }

    #[test]
    fn an_accumulator_becomes_a_tf32_operand_by_shuffles() {
        let accumulator = "S[(2,8,4,2):(2@reg,4@laneid,1@laneid,1@reg)]";
        assert_eq!(converted(accumulator, "S[(2,8,2,4):(1@reg,4@laneid,2@reg,1@laneid)]", 32), ("shuffles", 88));
    }

    #[test]
    fn a_lane_bit_swaps_with_a_register_bit() {
        let (a, b) = ("S[(2,16,4):(16@laneid,1@laneid,1@reg)]", "S[(2,16,2,2):(2@reg,1@laneid,16@laneid,1@reg)]");
        assert_eq!(converted(a, b, 32), ("shuffles", 44));
    }

    #[test]
    fn replicas_are_filled_from_one_copy() {
        assert_eq!(converted("S[4:1@reg]", "S[4:1@reg] + R[32:1@laneid]", 32), ("shuffles", 64));
        assert_eq!(converted("S[32:1@laneid]", "S[32:1@reg] + R[32:1@laneid]", 32), ("staging", 322));
        assert_eq!(converted("S[8:1@laneid] + R[4:8@laneid]", "S[8:1@reg] + R[32:1@laneid]", 32), ("staging", 118));
    }

    #[test]
    fn other_warps_are_reached_through_shared_memory() {
        let (a, b) = ("S[(4,32,4):(1@warpid,1@laneid,1@reg)]", "S[(4,32,4):(1@reg,1@laneid,1@warpid)]");
        assert_eq!(converted(a, b, 32), ("staging", 272));
    }

    #[test]
    fn elements_below_a_byte_are_shuffled_in_words_and_staged_in_bytes() {
        let (a, b) = ("S[(8,4,8):(4@laneid,1@laneid,1@reg)]", "S[(4,8,8):(1@laneid,1@reg,4@laneid)]");
        assert_eq!(converted(a, b, 4), ("shuffles", 174));
        let (a, b) = ("S[(32,32):(1@laneid,1@reg)]", "S[(32,32):(1@reg,1@laneid)]");
        assert_eq!(converted(a, b, 1), ("shuffles", 620));
        let warps = "S[(4,32,8):(1@warpid,1@laneid,1@reg)]";
        assert_eq!(converted(warps, "S[(4,32,8):(8@reg,1@laneid,1@reg)] + R[4:1@warpid]", 4), ("staging", 218));
        assert_eq!(converted(warps, "S[(8,32,4):(1@reg,1@laneid,1@warpid)]", 4), ("staging", 474));
    }

    #[test]
    fn whole_tiles_of_all_widths_are_transposed() {
        let (a, b) = ("S[(32,32):(1@laneid,1@reg)]", "S[(32,32):(1@reg,1@laneid)]");
        let totals = [8, 16, 32, 64].map(|bits| converted(a, b, bits).1);
        assert_eq!(totals, [788, 904, 1136, 2176]);
        assert_eq!(converted("S[(16,4):(1@laneid,1@reg)]", "S[(16,4):(2@laneid,1@reg)]", 128).0, "shuffles");
    }

    #[test]
    fn sixty_four_by_sixty_four_takes_no_conflicts() {
        let (a, b) = ("S[(64,2,32):(1@tx,64@tx,1@reg)]", "S[(2,32,64):(64@tx,1@reg,1@tx)]");
        assert_eq!(converted(a, b, 32), ("staging", 1232));
    }

    #[test]
    fn no_extent_need_be_a_power_of_two() {
        let totals = [
            converted("S[(24,5):(1@laneid,1@reg)]", "S[(5,24):(1@reg,1@laneid)]", 32),
            converted("S[(12,10):(1@laneid,1@reg)]", "S[(12,10):(1@reg,1@laneid)]", 16),
            converted("S[(3,8,3):(1@reg,1@laneid,8@laneid)]", "S[(9,8):(1@reg,1@laneid)]", 32),
        ];
        assert_eq!(totals, [("shuffles", 138), ("staging", 350), ("shuffles", 162)]);
    }

    #[test]
    fn a_plan_on_another_table_does_not_panic() {
        let (a, b) = ("S[(32,32):(1@laneid,1@reg)]", "S[(32,32):(1@reg,1@laneid)]");
        let small = FragmentTable::of(&"S[1:1@reg]".parse().unwrap()).unwrap();
        for plan in find_conversions(&a.parse().unwrap(), &b.parse().unwrap(), 32).unwrap() {
            assert_eq!(plan.execute(&small).get(0, 0), Some(0));
        }
    }
}
