use super::{at_least_one, iter, refused, within_columns};
use crate::axis::{M, TCOL, TLANE};
use crate::error::LayoutError;
use crate::iter::Iter;
use crate::tile::TileLayout;

const TMEM: &str = "sf_tmem_layout";
const SMEM: &str = "sf_smem_layout";

/// The scale factors of one operand of block-scaled MMAs, 8 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleFactors {
    /// Rows of A, or columns of B.
    pub rows: i64,
    /// Distinct factors per row.
    pub k: i64,
    /// Factors per row that one MMA reads: 1, 2 or 4, as given by its `scale_vec`.
    pub per_mma: i64,
    /// How many consecutive MMAs read the same factors; their index is a last dimension of stride 0.
    pub reuse: i64,
    /// Number of pipeline stages, which are a first dimension.
    pub stages: Option<i64>,
}

impl ScaleFactors {
    /// The shape of the tensor: (rows, k * reuse), preceded by the stages if there are any.
    pub fn shape(&self) -> Vec<i64> {
        self.stages.into_iter().chain([self.rows, self.k.saturating_mul(self.reuse)]).collect()
    }

    fn check(&self, name: &'static str, rows: i64, columns: i64) -> Result<(), LayoutError> {
        if !matches!(self.per_mma, 1 | 2 | 4) {
            return Err(refused(name, format!("{} factors for one MMA", self.per_mma), "1, 2 or 4"));
        }
        if self.rows < 1 || self.rows % rows != 0 {
            return Err(refused(name, format!("rows = {}", self.rows), format!("a multiple of {rows}")));
        }
        if self.k < 1 || self.k % columns != 0 {
            return Err(refused(name, format!("factors per row = {}", self.k), format!("a multiple of {columns}")));
        }
        at_least_one(name, "the number of MMAs that share factors", self.reuse)?;
        at_least_one(name, "the number of stages", self.stages.unwrap_or(1))
    }
}

/// Scale factors in tensor memory, on `TLane` and `TCol` (which here counts bytes, four to a 32-bit column).
///
/// Row `r` is on lane `r % 32` of 32-bit column `r / 32`, and again 32, 64 and 96 lanes further, once for each of the
/// four warps. The bytes of a column hold the factors of consecutive MMAs; factors that do not fit in one column
/// continue `rows / 32` columns further. A stage follows the columns of the previous one, which are `rows / 32` for
/// each column that a row's factors take. Source: PTX ISA, section "tcgen05 Block Scaling", layouts of the scale factor
/// matrices. Errors: rows that are not a multiple of 32, factors that are not a whole number of MMAs, more columns than
/// tensor memory has.
pub fn sf_tmem_layout(factors: &ScaleFactors) -> Result<TileLayout, LayoutError> {
    factors.check(TMEM, 32, factors.per_mma.max(1))?;
    let shard = tmem_iters(factors.rows, factors.k, factors.per_mma);
    let columns = factors.k / run_of(factors.k, factors.per_mma);
    let bytes = (factors.rows / 8).checked_mul(columns).ok_or(LayoutError::Overflow)?;
    let stage = iter(factors.stages.unwrap_or(1), bytes, TCOL);
    let layout = TileLayout::new(framed(stage, shard, iter(factors.reuse, 0, TCOL)), vec![iter(4, 32, TLANE)], [])?;
    within_columns(TMEM, layout, 8)
}

/// Rows x factors on the lanes of one warp.
pub(super) fn tmem_iters(rows: i64, k: i64, per_mma: i64) -> Vec<Iter> {
    let (chunks, run) = (rows / 32, run_of(k, per_mma));
    vec![iter(chunks, 4, TCOL), iter(32, 1, TLANE), iter(k / run, 4 * chunks, TCOL), iter(run, 1, TCOL)]
}

/// Factors of a row that share a 32-bit column: 4 or 2 if that is at least `per_mma` and divides `k`, else `per_mma`.
fn run_of(k: i64, per_mma: i64) -> i64 {
    [4, 2].into_iter().filter(|run| *run >= per_mma).find(|run| k % run == 0).unwrap_or(per_mma)
}

/// Scale factors in shared memory as `tcgen05.cp` takes them to tensor memory, in bytes.
///
/// Blocks of 128 rows x 4 factors, 512 bytes each: row `r` of a block is word `r / 32` of 16-byte unit `r % 32`.
/// Blocks follow each other along a row's factors, then along the rows, then along the stages. Source: PTX ISA,
/// sections "tcgen05.cp" and "tcgen05 Block Scaling". Errors: rows that are not a multiple of 128, factors that are not
/// a multiple of 4.
pub fn sf_smem_layout(factors: &ScaleFactors) -> Result<TileLayout, LayoutError> {
    factors.check(SMEM, 128, 4)?;
    let (blocks, words) = (factors.rows / 128, factors.k / 4);
    let row_of_blocks = words.checked_mul(512).ok_or(LayoutError::Overflow)?;
    let all = row_of_blocks.checked_mul(blocks).ok_or(LayoutError::Overflow)?;
    let shard =
        vec![iter(blocks, row_of_blocks, M), iter(4, 4, M), iter(32, 16, M), iter(words, 512, M), iter(4, 1, M)];
    let stage = iter(factors.stages.unwrap_or(1), all, M);
    TileLayout::new(framed(stage, shard, iter(factors.reuse, 0, M)), Vec::new(), [])
}

/// The iters of the stages, of the factors of one stage and of the MMAs that share them, without those of extent 1.
fn framed(stage: Iter, factors: Vec<Iter>, reuse: Iter) -> Vec<Iter> {
    let all = [stage].into_iter().chain(factors).chain([reuse]);
    all.filter(|iter| iter.extent > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(rows: i64, k: i64, per_mma: i64) -> ScaleFactors {
        ScaleFactors { rows, k, per_mma, reuse: 1, stages: None }
    }

    #[test]
    fn every_factor_is_on_the_lane_of_its_row_four_times() {
        for (rows, k, per_mma) in [(128, 4, 4), (256, 8, 2), (96, 12, 1), (64, 16, 4)] {
            let layout = sf_tmem_layout(&factors(rows, k, per_mma)).unwrap();
            for (row, factor) in (0..rows).flat_map(|row| (0..k).map(move |factor| (row, factor))) {
                let column = row / 32 + factor / 4 * (rows / 32);
                let places = layout.apply_in(&[row, factor], &[rows, k]).unwrap();
                let seen: Vec<(i64, i64)> = places.iter().map(|place| (place[&TLANE], place[&TCOL])).collect();
                let expected: Vec<(i64, i64)> =
                    (0..4).map(|warp| (row % 32 + 32 * warp, 4 * column + factor % 4)).collect();
                assert_eq!(seen, expected, "row {row} factor {factor}");
            }
        }
    }

    #[test]
    fn mmas_share_a_column_only_evenly() {
        let layout = sf_tmem_layout(&factors(128, 6, 2)).unwrap();
        assert_eq!(layout.to_string(), "S[(4,32,3,2):(4@TCol,1@TLane,16@TCol,1@TCol)] + R[4:32@TLane]");
    }

    #[test]
    fn shared_factors_and_stages_frame_the_layout() {
        let staged = ScaleFactors { reuse: 4, stages: Some(2), ..factors(128, 4, 1) };
        let layout = sf_tmem_layout(&staged).unwrap();
        assert_eq!(layout.to_string(), "S[(2,4,32,4,4):(16@TCol,4@TCol,1@TLane,1@TCol,0@TCol)] + R[4:32@TLane]");
        assert_eq!(staged.shape(), [2, 128, 16]);
    }

    #[test]
    fn a_stage_begins_behind_all_columns_of_the_one_before() {
        for (rows, k, per_mma) in [(256, 16, 2), (128, 6, 2), (96, 12, 1), (64, 16, 4), (32, 3, 1)] {
            let one = sf_tmem_layout(&factors(rows, k, per_mma)).unwrap();
            let staged = sf_tmem_layout(&ScaleFactors { stages: Some(3), ..factors(rows, k, per_mma) }).unwrap();
            let begins = staged.position(rows * k, &TCOL);
            assert_eq!(begins, (one.span_on(&TCOL) + 3) / 4 * 4, "{rows} rows, {k} factors");
            assert_eq!(staged.is_injective(), Ok(true), "{rows} rows, {k} factors");
        }
    }

    #[test]
    fn stages_in_shared_memory_are_apart_too() {
        let staged = ScaleFactors { stages: Some(3), ..factors(256, 16, 2) };
        assert_eq!(sf_smem_layout(&staged).unwrap().is_injective(), Ok(true));
    }

    #[test]
    fn more_columns_than_tensor_memory_has_are_refused() {
        assert!(sf_tmem_layout(&factors(128, 512, 4)).is_ok());
        assert_eq!(sf_tmem_layout(&factors(128, 516, 4)).unwrap_err().code(), "L0113");
    }

    #[test]
    fn shared_memory_holds_blocks_of_128_rows_and_4_factors() {
        let layout = sf_smem_layout(&factors(256, 8, 2)).unwrap();
        for (row, factor) in (0..256).flat_map(|row| (0..8).map(move |factor| (row, factor))) {
            let block = row / 128 * 2 + factor / 4;
            let byte = block * 512 + row % 32 * 16 + row % 128 / 32 * 4 + factor % 4;
            assert_eq!(layout.position(row * 8 + factor, &M), byte, "row {row} factor {factor}");
        }
    }

    #[test]
    fn partial_chunks_blocks_and_mmas_are_refused() {
        let refusals = [
            sf_tmem_layout(&factors(48, 4, 4)),
            sf_tmem_layout(&factors(128, 6, 4)),
            sf_tmem_layout(&factors(128, 6, 3)),
            sf_smem_layout(&factors(96, 8, 2)),
            sf_smem_layout(&factors(128, 6, 2)),
            sf_tmem_layout(&ScaleFactors { stages: Some(0), ..factors(128, 4, 4) }),
        ];
        assert!(refusals.into_iter().all(|refusal| refusal.is_err_and(|error| error.code() == "L0113")));
    }
}
