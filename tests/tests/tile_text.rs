//! The text form of the tile level: all statements and ops.

use insta::{assert_snapshot, with_settings};
use tilewright::compile::{Options, compile};
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
            Gemm { transpose_a: false, transpose_b: true, policy: WarpPolicy::FullRow, clear: true, ..Gemm::PLAIN };
        k.gemm(c, a, b).with(told);
        k.atomic_add(out, c);
    });
    assert_text("ops_on_matrices.tile", &kernel);
}

/// A kernel in which `convert` converts `first` to `second`, followed by the statements of `later`.
fn through_shared(convert: fn(&mut KernelBuilder, [Buffer; 2]), later: fn(&mut KernelBuilder, Buffer)) -> Kernel {
    kernel("names", |k| {
        let a = k.input("a", F32, [64]);
        let b = k.output("b", F32, [64]);
        let c = k.output("c", F32, [64]);
        k.threads(64);
        let first = k.fragment("first", F32, S([64], [1 * TX]));
        let second = k.fragment("second", F32, ([8, 8], S([8, 8], [1 * TX, 8 * TX])));
        k.copy(first, a);
        convert(k, [second, first]);
        k.parallel([8, 8], |k, [i, j]| {
            k.store(b, (&i * 8 + j,), second.at((&i, &j)));
        });
        later(k, c);
    })
}

#[test]
fn tiles_that_are_added_have_names_of_their_own() {
    let inferred = through_shared(
        |k, [second, first]| {
            k.allow_conversions();
            k.parallel([8, 8], |k, [i, j]| {
                k.store(second, (&i, &j), first.at((&i * 8 + j,)));
            });
        },
        |k, c| {
            k.serial("first_converted", 0..2, |k, _| {
                k.fill(c, 0.0);
            });
        },
    );
    let artifact = compile(inferred, &Options::new(Target::Sm100a)).expect("all names are distinct");
    assert!(artifact.cuda().contains("float first, second, first_converted2;"), "{}", artifact.cuda());
}
