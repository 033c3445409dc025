//! Mistakes that layout inference finds.

use super::assert_rendered;
use tilewright::compile::{Options, compile};
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
        k.fill(a, 0);
        k.fill(b, 0);
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

fn reversed() -> TableLayout {
    TableLayout::of_positions(&TX, &(0..32).rev().collect::<Vec<i64>>()).expect("a table")
}

#[test]
fn fragments_that_need_two_layouts() {
    let chain = kernel("k", |k| {
        k.threads(32);
        let first = k.fragment("first", F32, S([32], [1 * TX]));
        let second = k.fragment("second", F32, [32]);
        let third = k.fragment("third", F32, reversed());
        k.fill(first, 0);
        k.parallel([32], |k, [i]| {
            k.store(second, (&i,), first.at((&i,)));
        });
        k.parallel([32], |k, [i]| {
            k.store(third, (&i,), second.at((&i,)));
        });
    });
    assert_not_inferred("two_layouts_at_the_ends_of_a_chain", chain);
    let written = kernel("k", |k| {
        k.threads(32);
        let first = k.fragment("first", F32, S([32], [1 * TX]));
        let second = k.fragment("second", F32, reversed());
        k.parallel([32], |k, [i]| {
            k.store(first, (&i,), 1);
            k.store(second, (&i,), 2);
        });
    });
    assert_not_inferred("two_written_fragments_on_other_threads", written);
    let laid_out = kernel("k", |k| {
        k.threads(32);
        let first = k.fragment("first", F32, S([32], [1 * TX]));
        k.parallel([32], |k, [i]| {
            k.store(first, (&i,), 1);
        })
        .layout(reversed());
    });
    assert_not_inferred("a_loop_on_other_threads_than_its_fragment", laid_out);
    let turned = kernel("k", |k| {
        k.threads(64);
        let y = k.output("y", F32, [8, 8]);
        let a = k.fragment("a", F32, S([8, 8], [8 * TX, 1 * TX]));
        k.fill(a, 0);
        k.parallel([8, 8], |k, [i, j]| {
            k.store(y, (&i, &j), a.at((&i, &j)) + a.at((&j, &i)));
        });
    });
    assert_not_inferred("two_indices_of_a_spread_fragment", turned);
    let dictated = kernel("k", |k| {
        k.threads(128);
        let a = k.shared("a", F16, [64, 64]);
        let b = k.shared("b", F16, [64, 64]);
        k.fill(a, 0);
        k.fill(b, 0);
        let c = k.fragment("c", F32, ([64, 64], S([64, 2, 32], [2 * TX, 1 * TX, 1 * REG])));
        k.fill(c, 0);
        k.gemm(c, a, b);
    });
    assert_not_inferred("a_product_against_a_written_layout", dictated);
    let several = kernel("k", |k| {
        k.threads(32);
        let t = k.shared("t", F32, [32]);
        k.fill(t, 0);
        let held = k.fragment("held", F32, S([32], [1 * REG]) + R([32], [1 * TX]));
        k.parallel([32], |k, [i]| {
            k.store(held, (&i,), t.at((&i,)));
            k.store(t, (&i,), 1);
        });
    });
    assert_not_inferred("memory_that_several_threads_read_and_write", several);
}

#[test]
fn elements_of_one_iteration_on_different_threads() {
    let serial = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", F32, [8]);
        let held = k.fragment("held", F32, S([8, 4], [4 * TX, 1 * TX]));
        k.fill(held, 0);
        k.parallel([8], |k, [i]| {
            k.serial("j", 0..4, |k, j| {
                k.store(y, (&i,), held.at((&i, &j)));
            });
        });
    });
    assert_not_inferred("a_serial_variable_over_a_spread_fragment", serial);
    let product = kernel("k", |k| {
        k.threads(128);
        let a = k.shared("a", F16, [64, 64]);
        let b = k.shared("b", F16, [64, 64]);
        k.fill(a, 0);
        k.fill(b, 0);
        let y = k.output("y", F32, [64]);
        let c = k.fragment("c", F32, [64, 64]);
        k.fill(c, 0);
        k.gemm(c, a, b);
        k.parallel([64], |k, [i]| {
            k.serial("j", 0..64, |k, j| {
                k.store(y, (&i,), c.at((&i, &j)));
            });
        });
    });
    assert_not_inferred("a_serial_variable_over_sums_of_a_product", product);
    let outer = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", F32, [8]);
        let held = k.fragment("held", F32, S([8, 4], [4 * TX, 1 * TX]));
        k.fill(held, 0);
        k.serial("s", 0..4, |k, s| {
            k.parallel([8], |k, [i]| {
                k.store(y, (&i,), held.at((&i, &s)));
            });
        });
    });
    assert_not_inferred("an_outer_variable_over_a_spread_fragment", outer);
    let by_data = kernel("k", |k| {
        k.threads(32);
        let at = k.input("at", I32, [32]);
        let y = k.output("y", F32, [32]);
        let held = k.fragment("held", F32, S([32], [1 * TX]));
        k.fill(held, 0);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), held.at((at.at((&i,)).max(0).min(31),)));
        });
    });
    assert_not_inferred("data_that_leads_into_a_spread_fragment", by_data);
}

#[test]
fn reductions_that_cannot_be() {
    let stray = kernel("k", |k| {
        k.threads(64);
        let v = k.fragment("v", F32, S([8, 8], [8 * TX, 1 * TX]));
        let sums = k.fragment("sums", F32, S([8], [1 * TX]));
        k.fill(v, 1);
        k.reduce(Sum, sums, v, 1);
    });
    assert_not_inferred("results_on_threads_without_their_rows", stray);
    let from_memory = kernel("k", |k| {
        k.threads(64);
        let x = k.input("x", F32, [8, 8]);
        let sums = k.fragment("sums", F32, [8]);
        k.reduce(Sum, sums, x, 1);
    });
    assert_not_inferred("a_reduction_of_memory", from_memory);
    let to_memory = kernel("k", |k| {
        k.threads(64);
        let y = k.output("y", F32, [8]);
        let v = k.fragment("v", F32, [8, 8]);
        k.fill(v, 1);
        k.reduce(Sum, y, v, 1);
    });
    assert_not_inferred("a_reduction_into_memory", to_memory);
}

#[test]
fn layouts_that_are_none_of_the_block() {
    let beyond = kernel("k", |k| {
        k.threads(48);
        let held = k.fragment("held", F32, S([2, 32], [1 * WARPID, 1 * LANEID]));
        k.fill(held, 0);
    });
    assert_not_inferred("a_fragment_on_threads_of_half_a_warp", beyond);
    let crowded = kernel("k", |k| {
        k.threads(32);
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), 0);
        })
        .layout(S([2, 16], [0 * TX, 1 * TX]));
    });
    assert_not_inferred("two_iterations_in_one_step", crowded);
}

/// Not a mistake: a layout exists, but it is expensive.
#[test]
fn a_fragment_that_threads_have_whole() {
    let by_data = kernel("k", |k| {
        k.threads(32);
        let at = k.input("at", I32, [64]);
        let x = k.input("x", F32, [64]);
        let y = k.output("y", F32, [64]);
        let held = k.fragment("held", F32, [64]);
        k.copy(held, x);
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), held.at((at.at((&i,)).max(0).min(63),)));
        });
    });
    let verified = tilewright::ir::tile::verify(by_data, Target::Sm100a).expect("the kernel verifies");
    let inferred = infer(verified.kernel()).expect("threads may have all of it");
    assert_rendered("a_fragment_that_threads_have_whole", &inferred.warnings(verified.kernel()));
}

#[test]
fn vectors_that_cannot_be_had() {
    let kernel = kernel("k", |k| {
        let x = k.input("x", F32, [257]);
        let y = k.output("y", F32, [256]);
        let z = k.output("z", F32, [256]);
        k.parallel([256], |k, [i]| k.store(y, (i,), x.at((i + 1,)))).vector(4);
        k.parallel([256], |k, [i]| k.store(z, (i,), x.at((i + 1,)))).vector(16);
        k.parallel([128], |k, [i]| k.atomic_add(z, (i,), x.at((i,)))).vector(2);
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("vectors_that_cannot_be_had", &artifact.warnings());
}

/// Every thread would need all elements in every step, and there are too many ways to share the loops.
#[test]
fn inference_is_bounded() {
    let shifted = kernel("shifted", |k| {
        let (x, y) = (k.input("x", F32, [4096]), k.output("y", F32, [4096]));
        k.threads(128);
        let fragments: Vec<Buffer> = (0..16).map(|at| k.fragment(&format!("f{at}"), F32, [4096])).collect();
        k.copy(fragments[0], x);
        k.serial("t", 0..64, |k, t| {
            for at in 1..16usize {
                let (before, stride) = (fragments[at - 1], 2 * at as i64 + 1);
                k.parallel([4096], |k, [i]| k.store(fragments[at], (i,), before.at(((i * stride + t) % 4096,))));
            }
        });
        k.copy(y, fragments[15]);
    });
    assert_not_inferred("shifted_fragments_of_4096", shifted);
}

/// Each of the fragments that the loop reads would get a copy for it.
#[test]
fn conversions_are_bounded() {
    let many = kernel("many", |k| {
        k.threads(64);
        k.allow_conversions();
        let y = k.output("y", I32, [64]);
        let fragment = |k: &mut KernelBuilder, name: &str, layout| k.fragment(name, I32, ([64], layout));
        let turned = fragment(k, "turned", S([8, 8], [1 * TX, 8 * TX]));
        let straight: Vec<Buffer> =
            (0..70).map(|n| fragment(k, &format!("f{n}"), S([64], [1 * TX]) + n * REG)).collect();
        k.fill(turned, 0);
        straight.iter().for_each(|f| {
            k.fill(*f, 1);
        });
        k.parallel([64], |k, [i]| {
            let sum = straight.iter().fold(turned.at((&i,)), |sum, f| sum + f.at((&i,)));
            k.store(y, (&i,), sum);
        });
    });
    let found = compile(many, &Options::new(Target::Sm100a)).map(|_| ()).expect_err("too many conversions");
    assert_rendered("more_conversions_than_are_inserted", &found);
}

#[test]
fn a_product_with_too_many_warps() {
    let product = kernel("k", |k| {
        k.threads(256);
        let (a, b) = (k.input("a", F16, [16, 16]), k.input("b", F16, [16, 8]));
        let c = k.fragment("c", F32, [16, 8]);
        k.fill(c, 0);
        k.gemm(c, a, b);
    });
    assert_not_inferred("a_product_with_too_many_warps", product);
}
