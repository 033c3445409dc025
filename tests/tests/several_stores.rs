//! Nests that store to one buffer several times, and vectors in the last round of threads.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, computes, tensor};

fn number(at: i64) -> f64 {
    (at * 7 % 251) as f64
}

fn cuda(kernel: &Kernel) -> String {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right").cuda().to_string()
}

#[test]
fn stores_to_places_of_their_own_keep_their_vectors() {
    let halves = kernel("halves", |k| {
        let (x, y) = (k.input("x", F32, [8, 64]), k.output("y", F32, [8, 64]));
        k.threads(32);
        k.parallel([8, 32], |k, [h, i]| {
            let (a, b) = (x.at((h, i)), x.at((h, i + 32)));
            k.store(y, (h, i), a - b);
            k.store(y, (h, i + 32), a + b);
        });
    });
    let y = tensor(F32, &[8, 64], |at| {
        let other = if at % 64 < 32 { at + 32 } else { at - 32 };
        if at % 64 < 32 { number(at) - number(other) } else { number(at) + number(other) }
    });
    computes(&halves, &[tensor(F32, &[8, 64], number)], &[y]);
    let text = cuda(&halves);
    assert_eq!(text.matches("  y[").count(), 0, "{text}");
}

#[test]
fn the_last_store_to_a_place_counts() {
    let twice = kernel("twice", |k| {
        let (x, y) = (k.input("x", F32, [128]), k.output("y", F32, [128]));
        k.threads(32);
        k.parallel([128], |k, [i]| {
            k.store(y, (i,), x.at((i,)));
            k.store(y, (i,), x.at((i,)) * 2.0);
        });
    });
    let y = tensor(F32, &[128], |at| number(at) * 2.0);
    computes(&twice, &[tensor(F32, &[128], number)], &[y]);
}

#[test]
fn halves_that_are_assigned_in_any_order_are_rounded_as_words() {
    let pairs = kernel("pairs", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F16, [128]));
        k.threads(8);
        let v = k.fragment("v", F16, [128]);
        k.parallel([64], |k, [i]| {
            k.store(v, (i * 2,), x.at((i,)).cast(F16));
            k.store(v, (i * 2 + 1,), (-x.at((i,))).cast(F16));
        });
        k.copy(y, v);
    });
    let y = tensor(F16, &[128], |at| if at % 2 == 0 { number(at / 2) } else { -number(at / 2) });
    computes(&pairs, &[tensor(F32, &[64], number)], &[y]);
    let text = cuda(&pairs);
    assert!(text.contains("to_f16x2(") && !text.contains("to_f16("), "{text}");
}

/// 400 vectors of 4 elements for 128 threads: in the last round, 16 threads have one.
#[test]
fn the_last_round_of_threads_keeps_its_vectors() {
    let columns = kernel("columns", |k| {
        let (x, y) = (k.input("x", F16, [16, 100]), k.output("y", F16, [16, 100]));
        k.threads(128);
        k.parallel([16, 100], |k, [i, j]| k.store(y, (i, j), x.at((i, j)).cast(F32).max(3.0).cast(F16)));
    });
    let y = tensor(F16, &[16, 100], |at| number(at).max(3.0));
    computes(&columns, &[tensor(F16, &[16, 100], number)], &[y]);
    let text = cuda(&columns);
    assert!(text.contains("8 B") && !text.contains(" 2 B"), "{text}");
}

#[test]
fn what_is_updated_in_place_is_moved_in_vectors() {
    let updated = kernel("updated", |k| {
        let n = k.size("n").multiple_of(4);
        let (x, y) = (k.inout("x", F32, (n,)), k.inout("y", F32, (n,)));
        let tile = k.shared("tile", F32, [128]);
        k.threads(32);
        k.copy(tile, x.sub((at(0, 128),)));
        k.parallel([128], |k, [i]| {
            let old = k.named("old", x.at((i,)));
            k.store(x, (i,), old + y.at((i,)));
            k.store(y, (i,), old * y.at((i,)));
        });
        k.parallel([128], |k, [i]| k.store(tile, (i,), tile.at((i,)) * 2.0));
        k.parallel([128], |k, [i]| k.store(x, (i,), x.at((i,)) + tile.at((i,))));
    });
    let [x, y] = [|at: i64| number(at), |at: i64| number(at + 100)];
    for n in [4, 100, 128, 200] {
        let in_tile = move |at: i64| at < 128;
        let outputs = [
            tensor(F32, &[n], |at| if in_tile(at) { x(at) + y(at) + 2.0 * x(at) } else { x(at) }),
            tensor(F32, &[n], |at| if in_tile(at) { x(at) * y(at) } else { y(at) }),
        ];
        check(&updated, &[("n", n)], &[tensor(F32, &[n], x), tensor(F32, &[n], y)], &outputs, Tolerance::EXACT);
    }
    let text = cuda(&updated);
    let is_of_one = |line: &&str| {
        ["x[", "y[", "tile["].iter().any(|one| line.trim().starts_with(one) || line.contains(&format!("= {one}")))
    };
    assert_eq!(text.lines().filter(is_of_one).count(), 0, "{text}");
}

#[test]
fn what_is_read_after_its_store_is_not_read_before() {
    let after = kernel("after", |k| {
        let (x, y) = (k.inout("x", F32, [128]), k.output("y", F32, [128]));
        let z = k.inout("z", F32, [128]);
        k.threads(32);
        k.parallel([128], |k, [i]| {
            k.store(x, (i,), x.at((i,)) + 1.0);
            k.store(y, (i,), x.at((i,)) * 2.0);
            k.store(z, (i,), z.at((i,)) + 1.0);
            k.store(z, (i,), z.at((i,)) * 2.0);
        });
        // Each iteration reads what it stores under a condition.
        k.parallel([128], |k, [i]| k.if_(x.at((i,)).gt(100.0), |k| k.store(x, (i,), x.at((i,)) - 100.0)));
    });
    let outputs = [
        tensor(F32, &[128], |at| if number(at) + 1.0 > 100.0 { number(at) - 99.0 } else { number(at) + 1.0 }),
        tensor(F32, &[128], |at| (number(at) + 1.0) * 2.0),
        tensor(F32, &[128], |at| (number(at) + 1.0) * 2.0),
    ];
    computes(&after, &[tensor(F32, &[128], number), tensor(F32, &[128], number)], &outputs);
}
