//! What tests of asynchronous products share: launches whose sums are exact, checks of these, and mutants.

use tilewright::compile::Artifact;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::{Launched, MutationReport, built_or_skipped, is_right, number};

/// `c = a*b` of these dtypes, where `a` and `b` are stored as the attributes say, in a launch of M, N and K.
pub(super) fn multiplied(gemm: Gemm, [factor, sum]: [DType; 2], [m, n, depth]: [i64; 3]) -> Launched {
    // The least number is -6.
    let shift = if factor == U8 { 6.0 } else { 0.0 };
    let left = |row: i64, t: i64| number(row * 3 + t * 5) + shift;
    let right = |t: i64, column: i64| number(t * 2 + column * 7) + shift;
    let a = match gemm.transpose_a {
        true => tensor(factor, &[depth, m], |at| left(at % m, at / m)),
        false => tensor(factor, &[m, depth], |at| left(at / depth, at % depth)),
    };
    let b = match gemm.transpose_b {
        true => tensor(factor, &[n, depth], |at| right(at % depth, at / depth)),
        false => tensor(factor, &[depth, n], |at| right(at / n, at % n)),
    };
    let element = |at: i64| (0..depth).map(|t| left(at / n, t) * right(t, at % n)).sum::<f64>() + 0.0;
    (vec![("m", m), ("n", n), ("k", depth)], vec![a, b], tensor(sum, &[m, n], element))
}

/// Checks the results of a launch in some schedules.
pub(super) fn check(artifact: &Artifact, (sizes, inputs, expected): &Launched, seeds: u64) {
    let Some(built) = built_or_skipped(artifact, "asynchronous products") else { return };
    let bound = artifact.clone().for_sizes(sizes).expect("sizes");
    for seed in 0..seeds {
        let found = is_right((&bound, &built), inputs, std::slice::from_ref(expected), seed);
        assert_eq!(found, Ok(true), "{sizes:?}, schedule {seed}\n{}", artifact.cuda());
    }
}

/// As many as there are: NVRTC unrolls loops as it likes.
pub(super) const ANY: usize = usize::MAX;

/// Whether all mutants are found but so many of these opcodes.
pub(super) fn are_missed(report: &MutationReport, known: &[(&str, usize)]) -> bool {
    let count = |name: &str| report.survivors.iter().filter(|(_, _, text)| text.contains(name)).count();
    let missed: usize = known.iter().map(|(name, most)| count(name).min(*most)).sum();
    report.mutants() >= 20 && missed == report.survivors.len()
}
