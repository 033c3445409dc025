use super::{at_least_one, refused};
use crate::axis::{M, TID_IN_WG};
use crate::error::LayoutError;
use crate::spec::S;
use crate::tile::TileLayout;

const NAME: &str = "wg_local_layout";

/// A register tile of `rows` x `cols` elements of a warpgroup: thread r of the 128 holds row r, its columns in order.
///
/// This is what `tcgen05.ld.32x32b` gives for 128 rows. Errors: no columns, no rows, more rows than threads.
pub fn wg_local_layout(cols: i64, rows: i64) -> Result<TileLayout, LayoutError> {
    at_least_one(NAME, "the number of columns", cols)?;
    if !(1..=128).contains(&rows) {
        return Err(refused(NAME, format!("{rows} rows for the 128 threads of a warpgroup"), "1 to 128 rows"));
    }
    S([rows, cols], [1 * TID_IN_WG, 1 * M]).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_holds_a_row() {
        assert_eq!(wg_local_layout(7, 96).unwrap().to_string(), "S[(96,7):(1@tid_in_wg,1@m)]");
    }

    #[test]
    fn a_warpgroup_has_no_more_rows_than_threads() {
        assert_eq!(wg_local_layout(7, 129).unwrap_err().code(), "L0113");
    }
}
