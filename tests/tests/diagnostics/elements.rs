//! Mistakes in parallel loops and in ops on fragments whose layouts are inferred.

use super::{assert_mistake, assert_rendered};
use tilewright::compile::{Options, compile};
use tilewright::prelude::*;

#[test]
fn types_of_values() {
    let mixed = kernel("k", |k| {
        let x = k.input("x", F32, [4, 32]);
        let n = k.input("n", I32, [4, 32]);
        let y = k.output("y", F32, [4, 32]);
        let z = k.output("z", I32, [4, 32]);
        k.parallel([4, 32], |k, [i, j]| {
            k.store(y, (&i, &j), x.at((&i, &j)) + n.at((&i, &j)));
            k.store(z, (&i, &j), n.at((&i, &j)).exp());
            k.store(z, (&i, &j), x.at((&i, &j)));
            k.if_(x.at((&i, &j)), |k| {
                k.store(y, (&i, &j), 1.5);
            });
        });
    });
    assert_mistake("values_of_several_types", mixed);
    let opaque = kernel("k", |k| {
        let a = k.input("a", B32, [32]);
        let b = k.output("b", B32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(b, (&i,), a.at((&i,)) * 2);
        });
    });
    assert_mistake("arithmetic_on_opaque_elements", opaque);
}

#[test]
fn parallel_loops() {
    let empty = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        k.parallel([0], |k, [i]| {
            k.store(y, (&i,), 0);
        });
    });
    assert_mistake("a_parallel_loop_without_iterations", empty);
    let offset = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        let row = tilewright::expr::Var::new("row", 2, 7);
        k.parallel_over(vec![row.clone()], |k| k.store(y, (Expr::from(&row),), 0));
    });
    assert_mistake("a_parallel_loop_that_begins_at_2", offset);
    let extents = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        k.parallel([4096, 4096], |k, [i, j]| {
            k.store(y, (i + j,), 0);
        });
    });
    assert_mistake("extents_of_a_parallel_loop", extents);
    let many = kernel("many", |k| {
        let y = k.output("y", F32, [3, 2048, 2048]);
        for n in 0..3 {
            k.parallel([2048, 2048], |k, [i, j]| k.store(y, (n, i, j), 0));
        }
    });
    assert_mistake("iterations_of_all_parallel_loops", many);
    let large = kernel("large", |k| {
        let y = k.output("y", F32, [2048]);
        k.threads(1024);
        let held = k.fragment("held", F32, [2048, 2048]);
        k.fill(held, 0);
        k.reduce(Sum, y, held, 1);
    });
    assert_mistake("a_fragment_that_no_sm_can_hold", large);
    let escaped = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        let held = k.fragment("held", F32, [32]);
        let row = Expr::from(&tilewright::expr::Var::new("row", 0, 15));
        k.parallel([32], |k, [j]| {
            k.store(y, (row,), held.at((j + 1,)));
            k.atomic_add(held, (j,), 1);
        });
    });
    assert_mistake("variables_and_bounds_of_elements", escaped);
}

#[test]
fn indices_that_conditions_do_not_keep_inside() {
    let off_by_one = kernel("k", |k| {
        let y = k.output("y", F32, [64]);
        let s = k.shared("s", F32, [64]);
        let n = k.size("n").max(1 << 20);
        k.fill(s, 1.0);
        k.parallel([64], |k, [i]| {
            k.serial("step", 1..9, |k, step| {
                k.if_((i + 1).ge(step), |k| {
                    k.store(y, (i,), s.at((i - step,)));
                });
            });
            k.store(y, (i,), i.lt(63).select(s.at((i + 2,)), s.at((i - 64,))));
            k.if_((i * 3 % n).ne(1), |k| {
                k.store(y, (i,), s.at((i * 5 % n,)));
            });
        });
    });
    assert_mistake("indices_that_conditions_do_not_keep_inside", off_by_one);
}

#[test]
fn races() {
    let two_iterations = kernel("k", |k| {
        let x = k.input("x", F32, [4, 32]);
        let y = k.output("y", F32, [32]);
        k.parallel([4, 32], |k, [i, j]| {
            k.store(y, (&j,), x.at((&i, &j)));
        });
    });
    assert_mistake("a_race", two_iterations);
    let two_stores = kernel("k", |k| {
        let y = k.output("y", F32, [64]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), 0);
            k.store(y, (&i + 31,), 1);
        });
    });
    assert_mistake("a_race_of_two_stores", two_stores);
    let by_data = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let at = k.input("at", I32, [32]);
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (at.at((&i,)),), x.at((&i,)));
        });
    });
    assert_mistake("a_store_where_data_says", by_data);
}

#[test]
fn what_another_iteration_writes() {
    let reversed = kernel("k", |k| {
        k.threads(64);
        let f = k.fragment("f", F32, [64]);
        k.fill(f, 0.0);
        k.parallel([64], |k, [i]| {
            k.store(f, (i * -1 + 63,), f.at((&i,)));
        });
    });
    assert_mistake("a_read_of_what_another_stores", reversed);
    let atomic_and_plain = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.atomic_add(y, (0,), 1.0);
            k.store(y, (&i,), 0.0);
        });
    });
    assert_mistake("an_atomic_beside_a_store", atomic_and_plain);
    let two_views = kernel("k", |k| {
        let words = k.shared("words", F32, [32]);
        let halves = k.view_as("halves", words, F16, [64]);
        k.parallel([32], |k, [i]| {
            k.store(words, (&i,), 0.0);
            k.store(halves, (&i,), 0.0);
        });
    });
    assert_mistake("stores_through_two_views", two_views);
    let gathered = kernel("k", |k| {
        let at = k.input("at", I32, [32]);
        let s = k.shared("s", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(s, (&i,), s.at((at.at((&i,)),)));
        });
    });
    assert_mistake("a_read_where_data_says", gathered);
    let too_many = kernel("k", |k| {
        let y = k.output("y", F32, [1 << 21]);
        let [bx] = k.grid([1 << 14]);
        k.parallel([1 << 10], |k, [i]| {
            k.store(y, ((&bx * 1024 + i) * 3 % (1 << 21),), 0.0);
        });
    });
    assert_mistake("more_iterations_than_are_compared", too_many);
    let any_wins = kernel("k", |k| {
        k.threads(32);
        let f = k.fragment("f", F32, S([4], [1 * REG]) + R([32], [1 * LANEID]));
        k.fill(f, 0.0);
        k.parallel([32], |k, [i]| {
            k.store(f, (0,), i).any_wins();
        });
    });
    assert_mistake("any_wins_on_several_copies", any_wins);
}

#[test]
fn numbers_that_a_dtype_does_not_hold() {
    let narrowed = kernel("k", |k| {
        let x = k.input("x", I32, [32]);
        let y = k.output("y", I8, [32]);
        let h = k.output("h", F16, [32]);
        let n = k.output("n", I32, [32]);
        k.fill(h, 1e10);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), x.at((&i,)).cast(I8));
            k.store(y, (&i,), &i * 5);
            k.store(y, (&i,), 300);
            k.store(h, (&i,), -1e10);
            k.store(n, (&i,), x.at((&i,)) / 0);
            k.store(n, (&i,), x.at((&i,)) + Value::from(1i64 << 40));
            k.store(n, (&i,), Value::from(2.5).wrapping_cast(I32));
            k.store(h, (&i,), h.at((&i,)).mul_add(2.0, 1.0));
        });
    });
    assert_mistake("numbers_that_do_not_fit", narrowed);
    let divided = kernel("k", |k| {
        let y = k.output("y", F32, [64]);
        let [bx] = k.grid([2]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i % 0,), 0.0);
            k.store(y, (i / bx,), 0.0);
        });
    });
    assert_mistake("divisors_that_are_not_positive", divided);
    let product = kernel("k", |k| {
        k.threads(32);
        let a = k.input("a", F32, [16, 8]);
        let b = k.input("b", F32, [8, 8]);
        let h = k.input("h", F16, [16, 16]);
        let g = k.input("g", F16, [16, 8]);
        let c = k.fragment("c", F32, [16, 8]);
        k.fill(c, 0.0);
        k.gemm(c, a, b);
        k.gemm(c, h, g).tf32();
    });
    assert_mistake("products_in_full_precision", product);
}

#[test]
fn what_threads_judge_differently() {
    let of_warps = kernel("k", |k| {
        k.threads(128);
        let a = k.input("a", F32, [512]);
        let b = k.output("b", F32, [512]);
        let warp = k.warp_id();
        k.if_(Value::from(warp).eq(0), |k| {
            k.copy(b, a);
        });
    });
    assert_mistake("a_condition_on_the_warp", of_warps);
    let copies = kernel("k", |k| {
        k.threads(64);
        let f = k.fragment("f", I32, [2]);
        k.fill(f, 0);
        let warp = k.warp_id();
        k.each_thread(|k| {
            k.store(f, (0,), warp);
        });
    });
    assert_mistake("copies_that_differ", copies);
}

#[test]
fn ops_on_fragments() {
    let shapes = kernel("k", |k| {
        let rows = k.fragment("rows", F32, [16, 64]);
        let sums = k.fragment("sums", F32, [64]);
        let halves = k.fragment("halves", F16, [16]);
        k.reduce(Sum, sums, rows, 1);
        k.reduce(Max, halves, rows, 1);
        k.gemm(rows, rows, rows);
        k.view("flat", rows, [1023]);
    });
    assert_mistake("shapes_of_reductions_and_products", shapes);
    let open = kernel("k", |k| {
        let y = k.output("y", F32, [16, 64]);
        let rows = k.fragment("rows", F32, [16, 64]);
        k.copy(y, rows);
    });
    assert_mistake("a_fragment_that_was_never_written", open);
    let permuted = kernel("k", |k| {
        k.threads(32);
        let x = k.input("x", F32, [32, 4]);
        let held = k.fragment("held", F32, [32, 4]);
        k.warp().permute_layout(held, x);
    });
    assert_mistake("a_fragment_that_nothing_lays_out", permuted);
    let from_memory = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let y = k.output("y", F32, [32]);
        k.atomic_add(y, x);
    });
    assert_mistake("what_cannot_be_lowered", from_memory);
}

#[test]
fn reductions_of_opaque_elements() {
    let opaque = kernel("k", |k| {
        let rows = k.fragment("rows", B32, [16, 64]);
        let most = k.fragment("most", B32, [16]);
        k.fill(rows, 0);
        k.reduce(Max, most, rows, 1);
    });
    assert_mistake("reductions_of_opaque_elements", opaque);
}

#[test]
fn operands_of_more_dimensions() {
    let several = kernel("k", |k| {
        k.threads(32);
        let a = k.input("a", F16, [2, 16, 16]);
        let b = k.input("b", F16, [1, 16, 8]);
        let c = k.fragment("c", F32, [16, 8]);
        let rows = k.fragment("rows", F32, [1, 16, 8]);
        let sums = k.fragment("sums", F32, [16]);
        k.fill(c, 0.0);
        k.fill(rows, 0.0);
        k.gemm(c, a, b);
        k.gemm(c, a.sub((0, .., 0..8)), b);
        k.reduce(Sum, sums, rows, 1);
    });
    assert_mistake("operands_of_more_dimensions", several);
}

#[test]
fn reads_beyond_the_edges_of_tensors() {
    let stencil = kernel("k", |k| {
        let rows = k.size("rows").max(1 << 20);
        let x = k.input("x", F32, (rows, 100));
        let y = k.output("y", F32, (rows, 100));
        let [block] = k.grid([rows.ceil_div(8)]);
        k.parallel([8, 128], |k, [i, j]| {
            let row = block * 8 + i;
            let around = x.at((row - 1, j)) + x.at((row, j + 1));
            k.store(y, (row, j), around + x.at((row, j - 1)).or_zero());
        });
    });
    let artifact = compile(stencil, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("reads_beyond_the_edges_of_tensors", &artifact.warnings());
}

#[test]
fn zeros_where_nothing_is_masked() {
    let shared = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        let s = k.shared("s", F32, [32]);
        k.fill(s, 1.0);
        k.parallel([32], |k, [i]| {
            k.store(y, (i,), s.at((i,)).or_zero());
        });
    });
    assert_mistake("or_zero_in_shared_memory", shared);
    let sum = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let y = k.output("y", F32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (i,), (x.at((i - 1,)) + 1.0).or_zero());
        });
    });
    assert_mistake("or_zero_of_no_element", sum);
}

#[test]
fn values_that_are_too_long() {
    let nested = kernel("k", |k| {
        let y = k.output("y", I32, [32]);
        k.parallel([32], |k, [i]| {
            let mut value = Value::from(i);
            for _ in 0..300 {
                value = value + 1;
            }
            k.store(y, (i,), value);
        });
    });
    assert_mistake("operations_inside_each_other", nested);
    let doubled = kernel("k", |k| {
        let y = k.output("y", I32, [32]);
        k.parallel([32], |k, [i]| {
            let mut value = Value::from(i);
            for _ in 0..20 {
                value = value + value;
            }
            k.store(y, (i,), value);
        });
    });
    assert_mistake("operations_that_are_unfolded", doubled);
    let followed = kernel("k", |k| {
        let x = k.input("x", I32, [32]);
        let y = k.output("y", I32, [32]);
        k.parallel([32], |k, [i]| {
            let mut value = x.at((i,));
            for _ in 0..300 {
                value = x.at((value,));
            }
            k.store(y, (i,), value);
        });
    });
    assert_mistake("elements_inside_each_other", followed);
}

#[test]
fn stores_beyond_the_edges_of_tensors() {
    let shifted = kernel("k", |k| {
        let x = k.input("x", F32, [4, 16]);
        let y = k.output("y", F32, [4, 16]);
        let sums = k.output("sums", F32, [64]);
        k.fill(sums, 0.0);
        k.parallel([4, 16], |k, [i, j]| k.store(y, (i, j + 1), x.at((i, j))));
        k.parallel([64], |k, [i]| k.atomic_add(sums, (i - 1,), 1.0));
        k.parallel([4], |k, [i]| k.store(y, (i, 0), 0.0));
        // The end of a tile past the edge, and a condition, explain an index.
        k.parallel([4, 32], |k, [i, j]| k.store(y, (i, j), 0.0));
        k.parallel([64], |k, [i]| {
            k.if_(Value::from(i).lt(63), |k| k.store(sums, (i + 1,), 0.0));
        });
    });
    let artifact = compile(shifted, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("stores_beyond_the_edges_of_tensors", &artifact.warnings());
}

#[test]
fn an_element_read_after_its_store() {
    let unordered = kernel("k", |k| {
        let (a, b) = (k.input("a", F32, [64]), k.output("b", F32, [64]));
        let s = k.shared("s", F32, [64]);
        k.parallel([64], |k, [i]| {
            k.store(s, (i,), a.at((i,)));
            k.store(b, (i,), s.at(((i + 1) % 64,)));
        });
    });
    assert_mistake("an_element_read_after_its_store", unordered);
}

#[test]
fn ops_with_shapes_and_dtypes_that_differ() {
    let mistakes = kernel("k", |k| {
        k.threads(32);
        let (a, b) = (k.input("a", F16, [16, 16]), k.input("b", BF16, [16, 8]));
        let c = k.fragment("c", F32, [16, 8]);
        let (rows, sums) = (k.fragment("rows", F32, [8, 64]), k.fragment("sums", F32, [8]));
        let x = k.input("x", F32, [16, 16]);
        let split = k.fragment("split", F32, S([16, 2, 8], [2 * TX, 1 * TX, 1 * REG]));
        k.gemm(c, a, b);
        k.reduce(Sum, sums, rows, 2);
        k.copy(split, x);
    });
    assert_mistake("ops_with_shapes_and_dtypes_that_differ", mistakes);
}

#[test]
fn a_region_under_a_condition() {
    let ahead = kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [6, 64]), k.output("y", F32, [6, 64]));
        k.serial("t", 0..6, |k, t| {
            k.if_(Value::from(t).lt(5), |k| {
                k.copy(y.sub((t, ..)), x.sub((t + 1, ..)));
            });
        });
    });
    assert_mistake("a_region_under_a_condition", ahead);
}

#[test]
fn a_warp_index_before_the_number_of_threads() {
    let early = kernel("k", |k| {
        let (x, y) = (k.input("x", F32, [4, 64]), k.output("y", F32, [4, 64]));
        let warp = k.warp_id();
        k.threads(128);
        k.warp().copy(y.sub((warp, ..)), x.sub((warp, ..)));
    });
    assert_mistake("a_warp_index_before_the_number_of_threads", early);
}

#[test]
fn operations_on_bits_and_conditions() {
    let mixed = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let n = k.input("n", I32, [32]);
        let y = k.output("y", I32, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (i,), x.at((i,)) & 1);
            k.store(y, (i,), n.at((i,)) << n.at((i,)).cast(F32));
            k.store(y, (i,), n.at((i,)) & i.lt(3));
            k.if_(n.at((i,)) & 1, |k| {
                k.store(y, (i,), n.at((i,)) % 0);
            });
            k.store(y, (i,), !(Value::from(1) << 70));
        });
    });
    assert_mistake("operations_on_bits_and_conditions", mixed);
}

/// Diagnostics show the caller's line and mention the line in the definition.
#[track_caller]
fn halved(k: &mut KernelBuilder, v: Buffer) {
    k.op("halved", |k| k.map(v, |[i]| v.at((i + 1,)) * 0.5));
}

#[test]
fn mistakes_in_ops_that_are_functions() {
    let mistakes = kernel("k", |k| {
        let (v, w) = (k.fragment("v", F32, [64]), k.fragment("w", F32, [8, 8]));
        let (most, place) = (k.fragment("most", F32, [4]), k.fragment("place", I32, [8]));
        k.fill(v, 0.0);
        halved(k, v);
        k.fill(w, 0.0);
        k.argmax(most, place, w, 1);
    });
    assert_mistake("mistakes_in_ops_that_are_functions", mistakes);
    let built = kernel("k", |k| {
        let n = k.size("n");
        let (x, v) = (k.output("x", F32, (n,)), k.fragment("v", F32, [8, 8]));
        let (most, low) = (k.fragment("most", F32, [8]), k.fragment("low", I8, [1]));
        let long = k.fragment("long", F32, [300]);
        k.argmax(most, most, v, 1);
        k.argmin(most, v, v, 1);
        k.argmin(most, low, long, 0);
        k.op("a b", |k| k.fill(v, 0.0));
        k.map(v, |[i]| v.at((i, 0)));
        k.map(x, |[_]| 0.0);
    });
    assert_mistake("mistakes_in_whole_tiles", built);
}

#[test]
fn memory_that_is_updated_but_never_written() {
    let updated = kernel("k", |k| {
        let (x, y) = (k.input("x", I32, [64]), k.output("y", I32, [64]));
        let counts = k.shared("counts", I32, [64]);
        let v = k.fragment("v", I32, [64]);
        k.threads(64);
        k.copy(v, x);
        k.parallel([64], |k, [i]| k.atomic_add(counts, (x.at((i,)).min(63).max(0),), 1));
        k.atomic_add(y, v);
        k.copy(v, counts);
    });
    assert_mistake("memory_that_is_updated_but_never_written", updated);
}

#[test]
fn matrices_that_would_fit_transposed() {
    let with = |gemm: Gemm| {
        kernel("k", |k| {
            let (a, b) = (k.shared("a", F16, [32, 48]), k.shared("b", F16, [64, 48]));
            let c = k.fragment("c", F32, [32, 64]);
            k.threads(128);
            k.fill(a, 0.0);
            k.fill(b, 0.0);
            k.fill(c, 0.0);
            k.gemm(c, a, b).with(gemm);
        })
    };
    assert_mistake("matrices_that_fit_transposed", with(Gemm::PLAIN));
    assert_mistake(
        "matrices_that_fit_the_other_way",
        with(Gemm { transpose_a: true, transpose_b: true, ..Gemm::PLAIN }),
    );
}

#[test]
fn a_float_for_an_integer() {
    let filled = kernel("k", |k| {
        let v = k.fragment("v", I32, [64]);
        k.fill(v, 3.0);
    });
    assert_mistake("a_float_for_an_integer", filled);
}

#[test]
fn a_pipelined_loop_that_is_serial() {
    let kernel = kernel("serial_loop", |k| {
        let x = k.input("x", F32, [8, 64]);
        let y = k.output("y", F32, [8, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        k.pipelined("t", 0..8, 3, |k, t| {
            k.parallel([64], |k, [i]| k.store(tile, ((t + i) % 64,), x.at((t, i))));
            k.parallel([64], |k, [i]| k.store(y, (t, i), tile.at((63 - i,))));
        });
    });
    let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
    assert_rendered("a_pipelined_loop_that_is_serial", &artifact.warnings());
}

/// A loop over rows of `cols` elements of a tensor, in these stages.
fn streamed(stages: Stages, cols: i64) -> Kernel {
    kernel("streamed", |k| {
        let x = k.input("x", F32, [8, cols]);
        let y = k.output("y", F32, [8, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        k.pipelined("t", 0..8, stages, |k, t| {
            k.copy(tile, x.sub((t, at(0, 64))));
            k.parallel([64], |k, [i]| k.store(y, (t, i), tile.at((63 - i,))));
        });
    })
}

#[test]
fn variants_of_pipelined_loops() {
    assert_mistake("an_unknown_variant_of_a_loop", streamed(Stages::of(3).variant("fast"), 64));
    assert_mistake("a_variant_that_a_loop_cannot_have", streamed(Stages::any().variant("tma"), 65));
    assert_mistake("a_loop_with_less_than_1_stage", streamed(Stages::of(0), 64));
}
