//! Mistakes that layout inference finds.

use super::assert_rendered;
use tilewright::infer::infer;
use tilewright::layout::TableLayout;
use tilewright::prelude::*;

fn assert_not_inferred(name: &str, kernel: Kernel) {
    let verified = tilewright::ir::tile::verify(kernel, Target::Sm100a).expect("the kernel verifies");
    let found = infer(verified.kernel()).map(|_| ()).expect_err("there are no such layouts");
    assert_rendered(name, &found);
}

#[test]
fn layouts_that_cannot_be() {
    let product = kernel("k", |k| {
        k.threads(128);
        let a = k.shared("a", F16, [24, 64]);
        let b = k.shared("b", F16, [64, 64]);
        let c = k.fragment("c", F32, [24, 64]);
        k.fill(c, 0);
        k.gemm(c, a, b);
    });
    assert_not_inferred("a_product_of_odd_shape", product);
    let square = kernel("k", |k| {
        k.threads(128);
        let a = k.fragment("a", F16, [64, 64]);
        let c = k.fragment("c", F32, [64, 64]);
        k.fill(a, 0);
        k.fill(c, 0);
        k.gemm(c, a, a);
    });
    assert_not_inferred("a_fragment_that_is_both_operands", square);
    let part = kernel("k", |k| {
        k.threads(128);
        let a = k.fragment("a", F32, [64, 64]);
        let s = k.fragment("s", F32, [32]);
        k.fill(a, 0);
        k.reduce(Sum, s, a.sub((0..32, ..)), 1);
    });
    assert_not_inferred("a_reduction_of_part_of_a_fragment", part);
    let conflict = kernel("k", |k| {
        k.threads(32);
        let first = k.fragment("first", F32, S([32], [1 * TX]));
        let second = k.fragment("second", F32, S([16, 2], [1 * TX, 16 * TX]));
        k.fill(second, 0);
        k.parallel([32], |k, [i]| {
            k.store(first, (&i,), second.at((&i / 2, &i % 2)));
        });
    });
    assert_not_inferred("fragments_on_other_threads", conflict);
    let outside = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", F32, [64]);
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), 0);
        })
        .layout(TableLayout::of_positions(&TX, &(0..64).collect::<Vec<i64>>()).expect("a table"));
    });
    assert_not_inferred("a_loop_on_threads_that_are_not_there", outside);
    let viewed = kernel("k", |k| {
        k.threads(32);
        let halves = k.fragment("halves", F16, S([2, 32], [1 * REG, 1 * TX]));
        let words = k.view_as("words", halves, F32, [32]);
        k.fill(words, 0);
    });
    assert_not_inferred("a_wider_view_of_a_spread_fragment", viewed);
    let loose = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", F32, [1]);
        let held = k.fragment("held", F32, S([32], [1 * TX]));
        k.fill(held, 0);
        k.each_thread(|k| {
            k.store(y, (0,), held.at((3,))).any_wins();
        });
    });
    assert_not_inferred("a_loose_use_of_a_spread_fragment", loose);
}
