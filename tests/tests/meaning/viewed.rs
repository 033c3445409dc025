//! Reductions of fragments that a wider view takes two elements at a time.

use super::*;

/// The greatest of each column of an f16 matrix, which is also viewed as words.
fn columns(threads: i64, variant: Option<&str>) -> Kernel {
    kernel("columns", |k| {
        let (x, y, w) = (k.input("x", F16, [4, 32]), k.output("y", F16, [32]), k.output("w", B32, [64]));
        k.threads(threads);
        let halves = k.fragment("halves", F16, [4, 32]);
        let words = k.view_as("words", halves, B32, [64]);
        let greatest = k.fragment("greatest", F16, [32]);
        k.copy(halves, x);
        k.reduce(Max, greatest, halves, 0).variant_opt(variant);
        k.copy(y, greatest);
        k.copy(w, words);
    })
}

/// The greatest of each row of an f16 matrix, in a fragment that is also viewed as words.
fn rows(threads: i64, variant: Option<&str>) -> Kernel {
    kernel("rows", |k| {
        let (x, y, w) = (k.input("x", F16, [32, 8]), k.output("y", F16, [32]), k.output("w", B32, [16]));
        k.threads(threads);
        let halves = k.fragment("halves", F16, [32, 8]);
        let greatest = k.fragment("greatest", F16, [32]);
        let words = k.view_as("words", greatest, B32, [16]);
        k.copy(halves, x);
        k.reduce(Max, greatest, halves, 1).variant_opt(variant);
        k.copy(y, greatest);
        k.copy(w, words);
    })
}

fn assert_right(build: impl Fn(i64, Option<&str>) -> Kernel) {
    for threads in [1, 16, 32, 64, 128] {
        for variant in [None, Some("across_warps"), Some("single_owners")] {
            let seen = check(&build(threads, variant), &mut Rng::new(1, 0), Rules::ALL);
            assert_eq!(seen, Ok(Ended::Right), "{threads}, {variant:?}");
        }
    }
}

#[test]
fn columns_of_halves_that_are_viewed_as_words() {
    assert_right(columns);
}

#[test]
fn rows_whose_results_are_viewed_as_words() {
    assert_right(rows);
}

/// Neighbouring rows are on different warps, so that each thread has part of one row of two.
#[test]
fn rows_of_different_warps_with_results_in_one_word() {
    let kernel = kernel("rows", |k| {
        let (x, y) = (k.input("x", F16, [4, 32]), k.output("y", F16, [4]));
        k.threads(128);
        let halves = k.fragment("halves", F16, S([4, 32], [32 * TX, 1 * TX]));
        let greatest = k.fragment("greatest", F16, [4]);
        let _words = k.view_as("words", greatest, B32, [2]);
        k.copy(halves, x);
        k.reduce(Max, greatest, halves, 1);
        k.copy(y, greatest);
    });
    assert_eq!(check(&kernel, &mut Rng::new(1, 0), Rules::ALL), Ok(Ended::Right));
}
