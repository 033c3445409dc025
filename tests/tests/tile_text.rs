//! The tile level as text: every statement and op there is.

use insta::{assert_snapshot, with_settings};
use tilewright::prelude::*;
use tilewright_tests::toolchain::package;

fn assert_text(name: &str, kernel: &Kernel) {
    let folder = package().join("snapshots");
    with_settings!({ snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true }, {
        assert_snapshot!(name, kernel.to_string());
    });
}

#[test]
fn statements_on_elements() {
    let kernel = kernel("normalize", |k| {
        let x = k.input("x", F32, [64, 256]);
        let at = k.input("at", I32, [256]);
        let y = k.output("y", F32, [64, 256]);
        let sums = k.output("sums", F32, [256]);
        let [row] = k.grid([64]);
        k.threads(64);
        let held = k.fragment("held", F32, [256]);
        let pairs = k.view("pairs", held, [128, 2]);
        let most = k.fragment("most", F32, [1]);
        k.copy(held, x.sub((&row, ..)));
        k.reduce(Max, most, held, 0).accumulate();
        k.parallel([128, 2], |k, [i, j]| {
            let shifted = k.named("shifted", pairs.at((&i, &j)) - most.at((0,)));
            k.if_else(
                shifted.lt(-8.0),
                |k| {
                    k.store(pairs, (&i, &j), 0);
                },
                |k| {
                    k.store(pairs, (&i, &j), (shifted * 0.5).exp().max(1e-6));
                },
            );
        })
        .vector(4);
        k.parallel([256], |k, [i]| {
            k.store(y, (&row, at.at((&i,))), held.at((&i,))).unique();
            k.atomic_add(sums, (&i,), held.at((&i,)));
        });
        k.if_(Value::from(&row).eq(0), |k| {
            k.each_thread(|k| {
                k.serial("n", 0..4, |k, n| {
                    k.store(y, (0, &n), most.at((0,))).any_wins();
                });
            });
        });
    });
    assert_text("statements_on_elements.tile", &kernel);
}

#[test]
fn products() {
    let kernel = kernel("product", |k| {
        k.threads(128);
        let a = k.shared("a", F16, [64, 32]);
        let b = k.shared("b", F16, [64, 32]);
        let c = k.fragment("c", F32, [64, 64]);
        let out = k.output("out", F32, [64, 64]);
        let told =
            Gemm { transpose_a: false, transpose_b: true, policy: WarpPolicy::FullRow, clear: true, tf32: false };
        k.gemm(c, a, b).with(told);
        k.atomic_add(out, c);
    });
    assert_text("ops_on_matrices.tile", &kernel);
}
