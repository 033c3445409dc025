use super::choice::choices;
use super::operand::CtaGroup;
use super::scale::{ScaleFactors, sf_smem_layout, sf_tmem_layout, tmem_iters};
use super::{at_least_one, iter, refused, within_columns};
use crate::axis::TLANE;
use crate::error::LayoutError;
use crate::tile::TileLayout;

const NAME: &str = "scale factor layout";

choices! {
    /// `.scale_vec`: how many factors one MMA reads per row of A or column of B.
    pub ScaleVec, "scale_vec";
    /// One, for `mxf8f6f4` (K = 32, blocks of 32).
    X1 = "1X",
    /// Two, for `mxf4` and `mxf4nvf4` (K = 64, blocks of 32).
    X2 = "2X",
    /// Four, for `mxf4nvf4` (K = 64, blocks of 16).
    X4 = "4X",
}

impl ScaleVec {
    /// Number of factors that one MMA reads per row: 1, 2 or 4.
    pub fn factors(self) -> i64 {
        match self {
            ScaleVec::X1 => 1,
            ScaleVec::X2 => 2,
            ScaleVec::X4 => 4,
        }
    }
}

choices! {
    /// The operand that the scale factors belong to.
    pub ScaleOperand, "scaled operand";
    /// Those of the rows of A.
    A = "a",
    /// Those of the columns of B.
    B = "b",
}

/// The properties of a block-scaled `tcgen05.mma` that decide where its scale factors live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockScaledMma {
    /// M of the instruction, over all CTAs of the group: 128, or 256 in two CTAs.
    pub m: i64,
    /// N of the instruction, a multiple of 32: the factors of fewer columns take the same room.
    pub n: i64,
    /// The CTA group that executes it.
    pub cta_group: CtaGroup,
    /// Factors per row for one MMA.
    pub scale_vec: ScaleVec,
}

impl BlockScaledMma {
    /// The factors that one CTA holds for `mmas` MMAs along K: of its own rows of A, or of all columns of B.
    fn factors(&self, operand: ScaleOperand, mmas: i64) -> Result<ScaleFactors, LayoutError> {
        self.check()?;
        at_least_one(NAME, "the number of MMAs", mmas)?;
        let rows = match operand {
            ScaleOperand::A => self.m / self.cta_group.ctas(),
            ScaleOperand::B => self.n,
        };
        let per_mma = self.scale_vec.factors();
        let k = mmas.checked_mul(per_mma).ok_or(LayoutError::Overflow)?;
        Ok(ScaleFactors { rows, k, per_mma, reuse: 1, stages: None })
    }

    fn check(&self) -> Result<(), LayoutError> {
        let legal_m = match self.cta_group {
            CtaGroup::One => self.m == 128,
            CtaGroup::Two => self.m == 128 || self.m == 256,
        };
        if !legal_m {
            let problem = format!("M = {} in {}", self.m, self.cta_group);
            return Err(refused(NAME, problem, "128 in cta1, 128 or 256 in cta2"));
        }
        let step = if self.splits_b() { 64 } else { 32 };
        if !(step..=256).contains(&self.n) || self.n % step != 0 {
            let problem = format!("N = {} with M = {} in {}", self.n, self.m, self.cta_group);
            return Err(refused(NAME, problem, format!("multiples of {step} up to 256; pad the factors for other N")));
        }
        Ok(())
    }

    /// With 64 rows in each of two CTAs, the lower and the upper lanes each work on half of the columns.
    fn splits_b(&self) -> bool {
        self.cta_group == CtaGroup::Two && self.m == 128
    }
}

/// Scale factors of one CTA for `mmas` consecutive MMAs along K, in tensor memory: (rows, factors) on `TLane` and, in
/// bytes, on `TCol`.
///
/// Like [`sf_tmem_layout`], repeated on all four warps' lanes. Only B of M = 128 in two CTAs differs: there the first
/// half of the columns is on lanes 0..32 and 32..64, the second on 64..96 and 96..128. Source: PTX ISA, section
/// "tcgen05 Block Scaling", layouts of scale factors A and B by `.scale_vec`. Errors: an M or N that no such MMA has,
/// more columns than tensor memory has.
pub fn scale_tmem_layout(mma: &BlockScaledMma, operand: ScaleOperand, mmas: i64) -> Result<TileLayout, LayoutError> {
    let factors = mma.factors(operand, mmas)?;
    if operand == ScaleOperand::A || !mma.splits_b() {
        return sf_tmem_layout(&factors);
    }
    let mut shard = vec![iter(2, 64, TLANE)];
    shard.extend(tmem_iters(factors.rows / 2, factors.k, factors.per_mma));
    shard.retain(|iter| iter.extent > 1);
    within_columns(NAME, TileLayout::new(shard, vec![iter(2, 32, TLANE)], [])?, 8)
}

/// Scale factors of one CTA for `mmas` consecutive MMAs along K, in shared memory, in bytes: (rows, factors).
///
/// Like [`sf_smem_layout`]. Errors: an M or N that no such MMA has, rows or factors that are not a whole number of
/// blocks of 128 x 4.
pub fn scale_smem_layout(mma: &BlockScaledMma, operand: ScaleOperand, mmas: i64) -> Result<TileLayout, LayoutError> {
    sf_smem_layout(&mma.factors(operand, mmas)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::TCOL;

    fn mma(m: i64, n: i64, cta_group: CtaGroup, scale_vec: ScaleVec) -> BlockScaledMma {
        BlockScaledMma { m, n, cta_group, scale_vec }
    }

    /// Lanes and byte of a factor, by brute force over the layout.
    fn places(layout: &TileLayout, k: i64, row: i64, factor: i64) -> Vec<(i64, i64)> {
        let places = layout.apply_in(&[row, factor], &[layout.size() / k, k]).unwrap();
        places.iter().map(|place| (place[&TCOL], place[&TLANE])).collect()
    }

    #[test]
    fn every_scale_vec_puts_four_factors_of_a_row_into_one_column() {
        for scale_vec in ScaleVec::ALL.iter().copied() {
            let mmas = 4 / scale_vec.factors();
            for (group, m) in [(CtaGroup::One, 128), (CtaGroup::Two, 256)] {
                let layout = scale_tmem_layout(&mma(m, 64, group, scale_vec), ScaleOperand::A, mmas).unwrap();
                assert_eq!(layout.size(), 128 * 4);
                let expected = [(4 * 3 + 2, 1), (4 * 3 + 2, 33), (4 * 3 + 2, 65), (4 * 3 + 2, 97)];
                assert_eq!(places(&layout, 4, 97, 2), expected, "{scale_vec}");
            }
        }
    }

    #[test]
    fn a_cta_of_a_pair_holds_the_factors_of_its_own_rows_of_a_and_of_all_columns_of_b() {
        let pair = mma(128, 128, CtaGroup::Two, ScaleVec::X4);
        let sizes = [ScaleOperand::A, ScaleOperand::B].map(|o| scale_tmem_layout(&pair, o, 1).unwrap().size() / 4);
        assert_eq!(sizes, [64, 128]);
    }

    #[test]
    fn with_64_rows_in_each_cta_each_half_of_the_lanes_has_half_of_the_columns() {
        let layout = scale_tmem_layout(&mma(128, 128, CtaGroup::Two, ScaleVec::X4), ScaleOperand::B, 2).unwrap();
        for (column, factor) in (0..128).flat_map(|column| (0..8).map(move |factor| (column, factor))) {
            let (half, within) = (column / 64, column % 64);
            let byte = 4 * (within / 32 + factor / 4 * 2) + factor % 4;
            let lane = 64 * half + within % 32;
            assert_eq!(places(&layout, 8, column, factor), [(byte, lane), (byte, lane + 32)]);
        }
    }

    #[test]
    fn shared_memory_takes_whole_blocks_of_128_rows() {
        let one = mma(128, 128, CtaGroup::One, ScaleVec::X2);
        let layout = scale_smem_layout(&one, ScaleOperand::B, 2).unwrap();
        assert_eq!(layout.to_string(), "S[(4,32,4):(4@m,16@m,1@m)]");
        let half = mma(128, 128, CtaGroup::Two, ScaleVec::X2);
        assert_eq!(scale_smem_layout(&half, ScaleOperand::A, 2).unwrap_err().code(), "L0113");
    }

    #[test]
    fn an_m_or_an_n_that_there_is_not_is_refused() {
        let refusal =
            |m, n, group| scale_tmem_layout(&mma(m, n, group, ScaleVec::X1), ScaleOperand::B, 4).unwrap_err().code();
        let refusals = [
            refusal(64, 64, CtaGroup::One),
            refusal(256, 64, CtaGroup::One),
            refusal(128, 40, CtaGroup::One),
            refusal(128, 32, CtaGroup::Two),
            refusal(256, 288, CtaGroup::Two),
        ];
        assert_eq!(refusals, ["L0113"; 5]);
    }
}
