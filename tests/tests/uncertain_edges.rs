//! Tiles that hang over an edge, and of which it is or is not known where: parts of tiles, conditions, and the warning.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

/// Negative numbers: a 0 would be the greatest.
fn negative(at: i64) -> f64 {
    -1.0 - ((at * 37) % 101) as f64 / 16.0
}

/// A tile of four rows that `fill` fills, and the maximum of each.
fn rows_of(fill: impl FnOnce(&mut KernelBuilder, Buffer, Buffer, Size)) -> Kernel {
    kernel("rows_of", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (4, n));
        let y = k.output("y", F32, [4]);
        k.threads(32);
        let tile = k.shared("tile", F32, [4, 64]);
        let (held, result) = (k.fragment("held", F32, [4, 64]), k.fragment("result", F32, [4]));
        fill(k, tile, x, n);
        k.copy(held, tile);
        k.reduce(Max, result, held, 1);
        k.copy(y, result);
    })
}

fn warned(kernel: &Kernel) -> Vec<&'static str> {
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles");
    artifact.warnings().iter().map(|warning| warning.code).collect()
}

#[test]
fn rows_that_are_filled_one_by_one_leave_out_what_lies_beyond() {
    type Fill = fn(&mut KernelBuilder, Buffer, Buffer, Size);
    let copies: Fill = |k, tile, x, _| {
        k.serial("r", 0..4, |k, r| {
            k.copy(tile.sub((&r, ..)), x.sub((&r, at(0, 64))));
        });
    };
    let stores: Fill = |k, tile, x, _| {
        k.unroll("r", 0..4, |k, r| k.parallel([64], |k, [j]| k.store(tile, (&r, &j), x.at((&r, &j)))));
    };
    let copied = rows_of(copies);
    assert_eq!(warned(&copied), [""; 0]);
    for n in [1, 63, 64] {
        let y = tensor(F32, &[4], |r| (0..n).map(|j| negative(r * n + j)).fold(f64::NEG_INFINITY, f64::max));
        check(&copied, &[("n", n)], &[tensor(F32, &[4, n], negative)], &[y], Tolerance::EXACT);
    }
    // Indices that are no variables are not followed.
    assert_eq!(warned(&rows_of(stores)), ["K0273"]);
}

#[test]
fn where_it_is_not_known_what_lies_beyond_there_is_a_warning() {
    let filled = rows_of(|k, tile, x, _| {
        k.copy(tile, x.sub((.., at(0, 64))));
        k.fill(tile.sub((1, ..)), -2.0);
    });
    let renamed = rows_of(|k, tile, x, _| {
        let same = k.view("same", tile, S([4, 64], [64, 1]));
        k.copy(same, x.sub((.., at(0, 64))));
    });
    let shifted = rows_of(|k, tile, x, _| {
        k.fill(tile, -9.0);
        k.parallel([4, 63], |k, [i, j]| k.store(tile, (&i, &j + 1), x.at((&i, &j))));
    });
    let computed = rows_of(|k, tile, x, _| {
        let other = k.shared("other", F32, [4, 64]);
        k.copy(other, x.sub((.., at(0, 64))));
        k.fill(other.sub((0..2, ..)), 3.0);
        k.map(tile, |[i, j]| other.at((i, j)) * 2.0);
    });
    for kernel in [filled, renamed, shifted, computed] {
        assert_eq!(warned(&kernel), ["K0273"], "{kernel}");
    }
}

#[test]
fn a_value_that_the_user_chooses_at_the_edge_needs_no_warning() {
    let chosen = rows_of(|k, tile, x, n| {
        k.copy(tile, x.sub((.., at(0, 64))));
        k.fill(tile.sub((1, ..)), -2.0);
        k.parallel([4, 64], |k, [i, j]| {
            k.store(tile, (&i, &j), j.lt(n).select(tile.at((&i, &j)), f64::NEG_INFINITY));
        });
    });
    let zeros = rows_of(|k, tile, x, _| {
        k.parallel([4, 64], |k, [i, j]| k.store(tile, (&i, &j), x.at((&i, &j)).or_zero()));
        k.fill(tile.sub((1, ..)), -2.0);
    });
    for kernel in [chosen, zeros] {
        assert_eq!(warned(&kernel), [""; 0], "{kernel}");
    }
}

/// A reduction of 64 numbers of a vector of run-time length, which `fill` puts into a tile.
fn folded(kind: ReduceKind, fill: impl FnOnce(&mut KernelBuilder, Buffer, Buffer)) -> Kernel {
    kernel("folded", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(32);
        let tile = k.fragment("tile", F32, [64]);
        fill(k, tile, x);
        k.reduce(kind, y, tile, 0);
    })
}

#[test]
fn a_condition_on_data_says_nothing_of_the_edge() {
    let counted = folded(Sum, |k, tile, x| {
        k.map(tile, |[i]| x.at((i,)).lt(1.0).select(1.0, 0.0));
    });
    let kept = folded(Max, |k, tile, x| {
        k.fill(tile, -100.0);
        k.parallel([64], |k, [i]| k.if_(x.at((i,)).ne(-7.0), |k| k.store(tile, (i,), x.at((i,)))));
    });
    let added = kernel("added", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let count = k.accumulator("count", F32, [1]);
        k.threads(32);
        k.parallel([64], |k, [i]| k.if_(x.at((i,)).lt(1.0), |k| k.atomic_add(count, (0,), 1.0)));
    });
    for n in [1, 50, 64] {
        let x = || tensor(F32, &[n], negative);
        let all = tensor(F32, &[1], |_| n as f64);
        check(&counted, &[("n", n)], &[x()], std::slice::from_ref(&all), Tolerance::EXACT);
        check(&added, &[("n", n)], &[x()], &[all], Tolerance::EXACT);
        let most = tensor(F32, &[1], |_| (0..n).map(negative).fold(f64::NEG_INFINITY, f64::max));
        check(&kept, &[("n", n)], &[x()], &[most], Tolerance::EXACT);
    }
}

#[test]
fn what_a_condition_on_data_leaves_alone_counts_as_it_was() {
    let filled = |kind, number: f64| {
        folded(kind, move |k, tile, x| {
            k.fill(tile, number);
            k.parallel([64], |k, [i]| k.if_(x.at((i,)).ne(-7.0), |k| k.store(tile, (i,), x.at((i,)))));
        })
    };
    // The number that the condition excludes is among the first 50.
    let held = |number: f64, n: i64| move |at: i64| if at < n && negative(at) != -7.0 { negative(at) } else { number };
    for n in [1, 50, 64] {
        let x = || tensor(F32, &[n], negative);
        let sum = tensor(F32, &[1], |_| (0..64).map(held(-100.0, n)).sum());
        check(&filled(Sum, -100.0), &[("n", n)], &[x()], &[sum], Tolerance::EXACT);
        let most = tensor(F32, &[1], |_| (0..64).map(held(100.0, n)).fold(f64::NEG_INFINITY, f64::max));
        check(&filled(Max, 100.0), &[("n", n)], &[x()], &[most], Tolerance::EXACT);
    }
}

#[test]
fn a_named_condition_on_indices_says_what_happens_at_the_edge() {
    let kernel = kernel("filled", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(32);
        let tile = k.fragment("tile", F32, [64]);
        k.parallel([64], |k, [i]| {
            let is_inside = k.named("is_inside", i.lt(n));
            k.store(tile, (i,), is_inside.select(x.at((i,)), 5.0));
        });
        k.reduce(Max, y, tile, 0);
    });
    for (n, most) in [(50, 5.0), (64, (0..64).map(negative).fold(f64::NEG_INFINITY, f64::max))] {
        let x = tensor(F32, &[n], negative);
        check(&kernel, &[("n", n)], &[x], &[tensor(F32, &[1], |_| most)], Tolerance::EXACT);
    }
}

#[test]
fn an_index_that_is_not_followed_is_told() {
    let wrapped = folded(Max, |k, tile, x| {
        k.map(tile, |[i]| x.at(((i * 5) % 64,)));
    });
    let shifted = folded(Max, |k, tile, x| {
        k.map(tile, |[i]| x.at((i - 1,)));
    });
    for kernel in [wrapped, shifted] {
        assert!(warned(&kernel).contains(&"K0273"), "{kernel}");
    }
}
