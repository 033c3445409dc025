//! Loops over tensors whose strides are known only at launch: lanes go along rows, in vectors where sizes allow them.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::ir::plan::AccessCost;
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

/// `y = max(x, 0)` for a matrix whose columns are a multiple of `multiple`.
fn relu(multiple: i64) -> Kernel {
    kernel("relu", |k| {
        let (m, n) = (k.size("m").max(1024), k.size("n").multiple_of(multiple).max(1 << 20));
        let (x, y) = (k.input("x", F32, (m, n)), k.output("y", F32, (m, n)));
        let [c, r] = k.grid([n.ceil_div(256), m.ceil_div(4)]);
        k.threads(128);
        k.parallel([4, 256], |k, [i, j]| k.store(y, (r * 4 + i, c * 256 + j), x.at((r * 4 + i, c * 256 + j)).max(0.0)));
    })
}

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles")
}

fn accesses(kernel: &Kernel) -> Vec<AccessCost> {
    compiled(kernel).plans()[0].facts().expect("a plan").accesses.clone()
}

#[test]
fn lanes_go_along_rows() {
    for access in accesses(&relu(1)) {
        assert!(access.width == 4 && access.passes <= access.ideal * 5 / 4, "{access}");
    }
}

#[test]
fn a_multiple_of_4_columns_moves_in_vectors_of_16_bytes() {
    for access in accesses(&relu(4)) {
        assert!(access.width == 16 && access.passes == access.ideal, "{access}");
    }
    for access in accesses(&relu(2)) {
        assert_eq!(access.width, 8, "{access}");
    }
}

#[test]
fn every_size_is_computed() {
    let value = |at: i64| ((at * 7) % 23 - 11) as f64;
    for (multiple, m, n) in [(1, 1, 1), (1, 5, 257), (1, 9, 300), (2, 3, 258), (2, 6, 2), (4, 7, 1028), (4, 4, 256)] {
        let given = tensor(F32, &[m, n], value);
        let expected = tensor(F32, &[m, n], |at| value(at).max(0.0));
        check(&relu(multiple), &[("m", m), ("n", n)], &[given], &[expected], Tolerance::EXACT);
    }
}

/// Element (i, i + j) is at `i*n + i + j`: with an odd number of columns it is aligned for other rows than with an even
/// one.
#[test]
fn diagonals_are_not_aligned_for_every_size() {
    let diagonal = kernel("diagonal", |k| {
        let n = k.size("n").max(1 << 16);
        let (x, y) = (k.input("x", F32, (n, n)), k.output("y", F32, [8, 64]));
        k.threads(32);
        k.parallel([8, 64], |k, [i, j]| k.store(y, (i, j), x.at((i, i + j))));
    });
    assert!(accesses(&diagonal).iter().any(|access| access.operand == "x" && access.width == 4));
    for n in [71, 72, 100] {
        let given = tensor(F32, &[n, n], |at| (at % 1000) as f64);
        let expected = tensor(F32, &[8, 64], |at| ((at / 64 * n + at / 64 + at % 64) % 1000) as f64);
        check(&diagonal, &[("n", n)], &[given], &[expected], Tolerance::EXACT);
    }
}

#[test]
fn three_dimensions_with_two_sizes_move_in_vectors() {
    let scaled = kernel("scaled", |k| {
        let (b, m, n) = (k.size("b").max(64), k.size("m").max(512), k.size("n").multiple_of(8).max(4096));
        let (x, y) = (k.input("x", F16, (b, m, n)), k.output("y", F16, (b, m, n)));
        let [c, r, z] = k.grid([n.ceil_div(64), m.ceil_div(16), b.into()]);
        k.threads(64);
        k.parallel([16, 64], |k, [i, j]| {
            let at = (z, r * 16 + i, c * 64 + j);
            k.store(y, at, x.at(at) * 2.0)
        });
    });
    for access in accesses(&scaled) {
        assert!(access.width == 16, "{access}");
    }
    // The grid has a CTA for each index of the first dimension.
    assert!(!compiled(&scaled).cuda().contains("bz <"), "{}", compiled(&scaled).cuda());
    let value = |at: i64| (at % 31) as f64;
    let given = tensor(F16, &[2, 17, 72], value);
    let expected = tensor(F16, &[2, 17, 72], |at| 2.0 * value(at));
    check(&scaled, &[("b", 2), ("m", 17), ("n", 72)], &[given], &[expected], Tolerance::EXACT);
}

#[test]
fn a_copy_to_a_fragment_moves_in_vectors_too() {
    let copied = kernel("copied", |k| {
        let (m, n) = (k.size("m").max(1024), k.size("n").multiple_of(4).max(1 << 16));
        let (x, y) = (k.input("x", F32, (m, n)), k.output("y", F32, (m, n)));
        let [c, r] = k.grid([n.ceil_div(128), m.ceil_div(8)]);
        k.threads(64);
        let held = k.fragment("held", F32, [8, 128]);
        k.copy(held, x.sub((at(r * 8, 8), at(c * 128, 128))));
        k.copy(y.sub((at(r * 8, 8), at(c * 128, 128))), held);
    });
    for plan in compiled(&copied).plans() {
        for access in &plan.facts().expect("a plan").accesses {
            assert!(access.width == 16 && access.passes == access.ideal, "{access}");
        }
    }
    let given = tensor(F32, &[9, 132], |at| at as f64);
    check(
        &copied,
        &[("m", 9), ("n", 132)],
        std::slice::from_ref(&given),
        std::slice::from_ref(&given),
        Tolerance::EXACT,
    );
}
