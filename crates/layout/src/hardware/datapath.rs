use super::choice::choices;
use super::{at_least_one, refused, within_columns};
use crate::axis::{TCOL, TLANE};
use crate::error::LayoutError;
use crate::spec::S;
use crate::tile::TileLayout;

const NAME: &str = "tmem_datapath_layout";

choices! {
    /// Where `tcgen05.mma` writes the rows of its accumulator, for one CTA (PTX ISA, section "tcgen05 Data Path Layout
    /// Organization").
    pub Datapath, "datapath";
    /// M = 256 over two CTAs: 128 rows, row r on lane r.
    A = "A",
    /// M = 128 over two CTAs, dense: 64 rows; the right half of the columns is 64 lanes further.
    B = "B",
    /// M = 128 over two CTAs, sparse: 64 rows, 16 on each warp's 32 lanes.
    C = "C",
    /// M = 128: 128 rows, row r on lane r.
    D = "D",
    /// M = 64 with `.ws`: as B.
    E = "E",
    /// M = 64: as C.
    F = "F",
    /// M = 32 with `.ws`: 32 rows; each further quarter of the columns is 32 lanes further.
    G = "G",
}

impl Datapath {
    /// Rows of the accumulator in one CTA.
    pub fn rows(self) -> i64 {
        match self {
            Datapath::A | Datapath::D => 128,
            Datapath::B | Datapath::C | Datapath::E | Datapath::F => 64,
            Datapath::G => 32,
        }
    }

    /// The number of parts into which the columns are split, each on its own lanes.
    pub fn column_parts(self) -> i64 {
        match self {
            Datapath::B | Datapath::E => 2,
            Datapath::G => 4,
            Datapath::A | Datapath::C | Datapath::D | Datapath::F => 1,
        }
    }

    /// True if the rows take 16 of each warp's 32 lanes, so that the lower or the upper half can be chosen.
    pub fn has_sub_slabs(self) -> bool {
        matches!(self, Datapath::C | Datapath::F)
    }
}

/// An accumulator of `rows` x `cols` elements on `TLane` and `TCol`; each takes a column of 32 bits, 16-bit ones too.
///
/// `sub_slab` 1 takes the upper 16 of each warp's 32 lanes (C and F only); 0 takes the lower ones. Source: PTX ISA,
/// sections "tcgen05 Data Path Layout Organization" and "Packing formats of elements in Tensor and Shared memory".
/// Errors: a number of rows other than the datapath's, columns that do not split into its parts, more columns than
/// tensor memory has, a sub slab that the datapath does not have.
pub fn tmem_datapath_layout(
    datapath: Datapath,
    rows: i64,
    cols: i64,
    sub_slab: i64,
) -> Result<TileLayout, LayoutError> {
    check(datapath, rows, cols, sub_slab)?;
    let parts = datapath.column_parts();
    let spec = match datapath {
        Datapath::A | Datapath::D => S([rows, cols], [1 * TLANE, 1 * TCOL]),
        Datapath::C | Datapath::F => S([4, 16, cols], [32 * TLANE, 1 * TLANE, 1 * TCOL]) + (16 * sub_slab) * TLANE,
        Datapath::B | Datapath::E | Datapath::G => S([rows, parts, cols / parts], [1 * TLANE, rows * TLANE, 1 * TCOL]),
    };
    within_columns(NAME, spec.build()?, 32)
}

fn check(datapath: Datapath, rows: i64, cols: i64, sub_slab: i64) -> Result<(), LayoutError> {
    let (needed, parts) = (datapath.rows(), datapath.column_parts());
    if rows != needed {
        let problem = format!("rows = {rows} in datapath {datapath}");
        return Err(refused(NAME, problem, format!("{needed} rows; 128 in A and D, 64 in B, C, E and F, 32 in G")));
    }
    at_least_one(NAME, "the number of columns", cols)?;
    if cols % parts != 0 {
        let problem = format!("columns = {cols} in datapath {datapath}, which splits them into {parts} parts");
        return Err(refused(NAME, problem, format!("a multiple of {parts}")));
    }
    let sub_slabs = if datapath.has_sub_slabs() { 0..=1 } else { 0..=0 };
    if !sub_slabs.contains(&sub_slab) {
        let problem = format!("sub slab {sub_slab} of datapath {datapath}");
        return Err(refused(NAME, problem, "0, and 1 in C and F, whose rows take 16 of each warp's 32 lanes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(datapath: Datapath, cols: i64, sub_slab: i64, row: i64, col: i64) -> (i64, i64) {
        let layout = tmem_datapath_layout(datapath, datapath.rows(), cols, sub_slab).unwrap();
        let flat = row * cols + col;
        (layout.position(flat, &TLANE), layout.position(flat, &TCOL))
    }

    #[test]
    fn each_datapath_puts_rows_and_column_parts_on_its_lanes() {
        for datapath in Datapath::ALL.iter().copied() {
            for (row, col) in (0..datapath.rows()).flat_map(|row| (0..8).map(move |col| (row, col))) {
                let expected = match datapath {
                    Datapath::A | Datapath::D => (row, col),
                    Datapath::B | Datapath::E => (row + 64 * (col / 4), col % 4),
                    Datapath::C | Datapath::F => (row / 16 * 32 + row % 16, col),
                    Datapath::G => (row + 32 * (col / 2), col % 2),
                };
                assert_eq!(place(datapath, 8, 0, row, col), expected, "{datapath} ({row}, {col})");
            }
        }
    }

    #[test]
    fn the_upper_sub_slab_is_16_lanes_further() {
        assert_eq!(place(Datapath::F, 8, 1, 17, 3), (32 + 1 + 16, 3));
    }

    #[test]
    fn what_the_datapath_does_not_have_is_refused() {
        let refusals = [(Datapath::F, 128, 32, 0), (Datapath::B, 64, 33, 0), (Datapath::G, 32, 30, 0)];
        let slabs = [(Datapath::D, 128, 32, 1), (Datapath::C, 64, 32, 2), (Datapath::F, 64, 0, 0)];
        let wide = [(Datapath::D, 128, 513, 0), (Datapath::B, 64, 1026, 0)];
        for (datapath, rows, cols, sub_slab) in refusals.into_iter().chain(slabs).chain(wide) {
            assert_eq!(tmem_datapath_layout(datapath, rows, cols, sub_slab).unwrap_err().code(), "L0113");
        }
    }
}
