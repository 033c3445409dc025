//! Golden cases in which our layouts cost more than those of the reference, with the reason why that is accepted.

/// The cases by name, each with its reason.
const REASONS: [(&str, &str); 7] = [
    ("bc_vec_into_global", "one more register, for vector stores where the reference stores one element at a time"),
    (
        "red_row_7x64_t64",
        "a result is where part of its row is: rows over fewer threads take one register more, and leave fewer results \
         on each thread; the reference drops the results of most threads",
    ),
    (
        "maint_broadcast_read_issue1729_2x2560_t256_io_aware",
        "a thread reads only the values of its own rows; the reference gives all to every thread, for one wider read of \
         a few elements",
    ),
    (
        "maint_broadcast_read_rows4_cols1024_t128_io_aware",
        "a thread reads only the values of its own rows; the reference gives all to every thread, for one wider read of \
         a few elements",
    ),
    (
        "maint_transposed_store_fp32_128x128_t128_io_aware",
        "either the read or the write is vectorized; both cost the same",
    ),
    ("gemm_rowsum_sm_90", "the reference's wgmma has its warps along the rows, mma.sync has them in a square"),
    ("ew_f32_1024_t128_sm100", "an access moves up to 16 bytes, and on sm_100 the reference moves 32"),
];

/// The reason why a case may cost more, if it is listed.
pub fn reason(case: &str) -> Option<&'static str> {
    REASONS.iter().find(|(name, _)| *name == case).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_exception_is_a_case() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tilelang"));
        let missing = |(name, _): &&(&str, &str)| !folder.join(format!("{name}.json")).exists();
        assert_eq!(REASONS.iter().find(missing), None);
        assert!(reason("bc_vec_into_global").is_some() && reason("seed_floating_if").is_none());
    }
}
