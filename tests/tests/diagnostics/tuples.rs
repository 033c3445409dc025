//! Reductions and scans by a function: what it may use and return, and its operands.

use super::*;

type Pair = [Value; 2];

/// A kernel that reduces pairs of rows of 64 elements with these dtypes.
fn reduced(dtypes: [DType; 2], identity: [Scalar; 2], combine: fn(Pair, Pair) -> Pair) -> Kernel {
    kernel("k", |k| {
        let (v, w) = (k.fragment("v", dtypes[0], [8, 64]), k.fragment("w", dtypes[1], [8, 64]));
        let (m, l) = (k.fragment("m", dtypes[0], [8]), k.fragment("l", dtypes[1], [8]));
        k.fill(v, 0);
        k.fill(w, 0);
        k.reduce_by([m, l], [v, w], 1, identity, combine);
    })
}

/// The identity of most of them.
const ZEROS: [Scalar; 2] = [Scalar::Int(0), Scalar::Int(0)];

#[test]
fn what_the_function_uses() {
    let of_a_buffer = kernel("k", |k| {
        let (bias, v) = (k.fragment("bias", F32, [1]), k.fragment("v", F32, [64]));
        let m = k.fragment("m", F32, [1]);
        k.fill(bias, 0.0);
        k.fill(v, 0.0);
        k.reduce_by([m], [v], 0, [0.0], |[a], [b]| [a + b + bias.at((0,))]);
    });
    assert_mistake("a_function_of_tuples_that_reads_a_buffer", of_a_buffer);
    let of_an_index = kernel("k", |k| {
        let (v, m) = (k.fragment("v", F32, [64]), k.fragment("m", F32, [1]));
        let [bx] = k.grid([4]);
        k.fill(v, 0.0);
        k.reduce_by([m], [v], 0, [0.0], |[a], [b]| [a + b * bx]);
    });
    assert_mistake("a_function_of_tuples_that_uses_an_index", of_an_index);
    let kept = kernel("k", |k| {
        let (v, m) = (k.fragment("v", F32, [64]), k.fragment("m", F32, [1]));
        k.fill(v, 0.0);
        let mut kept = None;
        k.reduce_by([m], [v], 0, [0.0], |[a], [b]| {
            kept = Some(a);
            [a + b]
        });
        k.map(m, |[_]| kept.unwrap_or(0.0.into()));
    });
    assert_mistake("a_value_of_tuples_outside_of_their_function", kept);
}

#[test]
fn what_the_function_returns() {
    let exchanged = reduced([F32, I32], ZEROS, |[a, i], [b, j]| [(a + b).cast(F64), i + j]);
    assert_mistake("a_function_of_tuples_with_another_dtype", exchanged);
    let truth = reduced([F32, I32], ZEROS, |[a, i], [b, _]| [a.lt(b), i]);
    assert_mistake("a_function_of_tuples_with_a_truth_value", truth);
    let mixed = reduced([F32, I32], ZEROS, |[a, i], [b, _]| [a + b, a + i]);
    assert_mistake("a_function_of_tuples_that_mixes_dtypes", mixed);
    let large = reduced([F32, I32], [0.into(), (1i64 << 40).into()], |[a, i], [b, j]| [a + b, i + j]);
    assert_mistake("an_identity_that_does_not_fit", large);
}

#[test]
fn operands_of_tuples() {
    assert_mistake("tuples_of_16_bits", reduced([F16, I32], ZEROS, |[a, i], [b, j]| [a + b, i + j]));
    let with = |extents: [i64; 2], results: [i64; 1], twice: bool| {
        kernel("k", |k| {
            let (v, w) = (k.fragment("v", F32, [8, 64]), k.fragment("w", F32, extents));
            let (m, l) = (k.fragment("m", F32, [8]), k.fragment("l", F32, results));
            k.fill(v, 0.0);
            k.fill(w, 0.0);
            k.reduce_by([m, if twice { m } else { l }], [v, w], 1, [0, 0], |[a, i], [b, j]| [a + b, i + j]);
        })
    };
    assert_mistake("tuples_of_other_extents", with([8, 32], [8], false));
    assert_mistake("tuples_with_a_result_of_other_extents", with([8, 64], [4], false));
    assert_mistake("tuples_with_one_result_twice", with([8, 64], [8], true));
    let none = kernel("k", |k| {
        k.reduce_by([] as [Buffer; 0], [] as [Buffer; 0], 0, [] as [i32; 0], |none, _| none);
    });
    assert_mistake("tuples_without_values", none);
}

#[test]
fn sources_of_tuples_with_other_layouts() {
    let other = kernel("k", |k| {
        k.threads(32);
        let v = k.fragment("v", F32, S([4, 32], [1 * M, 1 * LANEID]));
        let w = k.fragment("w", F32, S([4, 8, 4], [8 * LANEID, 1 * LANEID, 1 * M]));
        let w = k.view("w2", w, [4, 32]);
        let (m, l) = (k.fragment("m", F32, [4]), k.fragment("l", F32, [4]));
        k.fill(v, 0.0);
        k.fill(w, 0.0);
        k.reduce_by([m, l], [v, w], 1, [0, 0], |[a, i], [b, j]| [a + b, i + j]);
    });
    assert_mistake("tuples_whose_elements_are_on_several_threads", other);
}

/// Compiles a kernel, and compares the warnings.
fn assert_warned(name: &str, kernel: Kernel) {
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered(name, &artifact.warnings());
}

#[test]
fn functions_whose_result_depends_on_an_order() {
    let difference = reduced([F32, I32], ZEROS, |[a, i], [b, j]| [a - b, i + j]);
    assert_warned("a_difference_of_tuples", difference);
    let mean = reduced([F32, I32], ZEROS, |[a, i], [b, j]| [(a + b) / 2.0, i + j]);
    assert_warned("a_mean_of_means", mean);
    let last = reduced([F32, I32], [(-1e30).into(), 0.into()], |[a, i], [b, j]| {
        let is_later = b.ge(a);
        [is_later.select(b, a), is_later.select(j, i)]
    });
    assert_warned("the_last_of_equal_values", last);
}

#[test]
fn identities_that_change_a_tuple() {
    let most = reduced([F32, I32], ZEROS, |[a, i], [b, j]| [a.max(b), i + j]);
    assert_warned("the_greatest_from_zero", most);
    let infinite = reduced([F32, F32], [f64::NEG_INFINITY.into(), 0.0.into()], |[m0, l0], [m1, l1]| {
        let m = m0.max(m1);
        [m, l0 * (m0 - m).exp() + l1 * (m1 - m).exp()]
    });
    assert_warned("exponentials_from_minus_infinity", infinite);
}

#[test]
fn functions_that_obey_their_laws() {
    let warnings = |kernel: Kernel| compile(kernel, &Options::new(Target::Sm100a)).expect("right").warnings().len();
    let moments = reduced([F32, F32], ZEROS, |[n0, m0], [n1, m1]| {
        let n = n0 + n1;
        [n, m0 + (m1 - m0) * (n1 / n.max(1e-9))]
    });
    assert_eq!(warnings(moments), 0);
    let bits = reduced([U32, I64], [0.into(), (-1).into()], |[a, i], [b, j]| [a ^ b, i & j]);
    assert_eq!(warnings(bits), 0);
    let lowest = reduced([F32, F64], [1e30.into(), 1.0.into()], |[a, i], [b, j]| [a.min(b), i * j]);
    assert_eq!(warnings(lowest), 0);
}

/// A kernel that scans pairs of rows of 64 elements.
fn scanned(dimension: usize, identity: [Scalar; 2], combine: fn(Pair, Pair) -> Pair) -> Kernel {
    kernel("k", |k| {
        let (v, w) = (k.fragment("v", F32, [8, 64]), k.fragment("w", F32, [8, 64]));
        k.fill(v, 0);
        k.fill(w, 0);
        k.scan_by([v, w], [v, w], dimension, identity, combine);
    })
}

/// Two steps `x -> a*x + b` as one.
fn steps([a, b]: Pair, [c, d]: Pair) -> Pair {
    [a * c, c * b + d]
}

#[test]
fn operands_of_scans_of_tuples() {
    assert_mistake("a_scan_of_tuples_along_no_dimension", scanned(2, [1.into(), 0.into()], steps));
    let exchanged = kernel("k", |k| {
        let (v, w) = (k.fragment("v", F32, [8, 64]), k.fragment("w", F32, [8, 64]));
        k.fill(v, 0);
        k.fill(w, 0);
        k.scan_by([w, v], [v, w], 1, [1, 0], steps);
    });
    assert_mistake("a_scan_of_tuples_into_the_other_source", exchanged);
    let narrow = kernel("k", |k| {
        let (v, w) = (k.fragment("v", F16, [64]), k.fragment("w", F16, [32]));
        k.fill(v, 0);
        k.scan_by([w], [v], 0, [0], |[a], [b]| [a + b]);
    });
    assert_mistake("a_scan_of_tuples_of_16_bits_to_fewer", narrow);
    let accumulated = kernel("k", |k| {
        let v = k.fragment("v", F32, [64]);
        k.fill(v, 0);
        k.scan_by([v], [v], 0, [0], |[a], [b]| [a + b]).accumulate();
    });
    assert_mistake("a_scan_of_tuples_that_accumulates", accumulated);
}

#[test]
fn laws_of_scans_of_tuples() {
    // Steps do not commute, and need not.
    let right = compile(scanned(1, [1.into(), 0.into()], steps), &Options::new(Target::Sm100a)).expect("right");
    assert_eq!(right.warnings().len(), 0);
    let mean = scanned(1, ZEROS, |[a, b], [c, d]| [(a + c) / 2.0, b + d]);
    assert_warned("a_scan_of_means", mean);
    // The identity changes nothing on the left, but does on the right.
    let last = scanned(1, ZEROS, |[_, b], [c, d]| [c, b + d]);
    assert_warned("a_scan_that_keeps_the_last_value", last);
}
