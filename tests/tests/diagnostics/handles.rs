//! Handles of another kernel, and attributes given to ops and sizes that do not accept them.

use super::assert_mistake;
use tilewright::prelude::*;

#[test]
fn elements_of_another_kernel() {
    let mut kept = None;
    let _ = kernel("first", |k| {
        k.input("a", F32, [8]);
        k.input("b", F32, [8]);
        kept = Some(k.output("x", F32, [8]));
    });
    let x = kept.expect("a buffer");
    let kernel = kernel("second", |k| {
        let y = k.output("y", F32, [8]);
        k.parallel([8], |k, [i]| {
            k.store(x, (&i,), 1.0);
            k.store(y, (&i,), x.at((&i,)) + 1.0);
            k.atomic_add(x, (&i,), 1.0);
            let n = k.named("n", -y.at((x.at((0,)),)));
            k.if_(x.at((&i,)).gt(0.0), |k| {
                k.store(y, (&i,), n);
            });
        });
        k.if_(x.at((0,)).lt(0.0), |k| {
            k.fill(y, 0.0);
        });
        k.view("v", x, [4, 2]);
    });
    // A handle past the buffers of the kernel has no name.
    assert!(kernel.to_string().contains("?[i] = 1"), "{kernel}");
    assert_mistake("elements_of_another_kernel", kernel);
}

#[test]
fn a_buffer_of_the_kernel_before() {
    let mut kept: Option<Buffer> = None;
    let mut build = || {
        kernel("k", |k| {
            let y = k.output("y", F32, [8]);
            k.fill(*kept.get_or_insert(y), 0.0);
        })
    };
    let _ = build();
    assert_mistake("a_buffer_of_the_kernel_before", build());
}

#[test]
fn a_named_value_of_another_kernel() {
    let mut kept = None;
    let _ = kernel("first", |k| {
        k.parallel([8], |k, [i]| kept = Some(k.named("n", i * 2)));
    });
    let n = kept.expect("a value");
    let kernel = kernel("second", |k| {
        let y = k.output("y", I32, [8]);
        k.parallel([8], |k, [i]| {
            k.named("n", 1);
            k.store(y, (&i,), n);
        });
    });
    assert_mistake("a_named_value_of_another_kernel", kernel);
}

#[test]
fn a_size_of_another_kernel() {
    let mut kept = None;
    let _ = kernel("first", |k| kept = Some(k.size("n").max(64)));
    let n = kept.expect("a size");
    let kernel = kernel("second", |k| {
        let b = k.output("b", F32, (&n, 64));
        k.grid([n.ceil_div(32)]);
        k.fill(b, 0.0);
    });
    assert_mistake("a_size_of_another_kernel", kernel);
}

#[test]
fn what_an_op_does_not_take() {
    let gemm = Gemm { transpose_a: false, transpose_b: false, policy: WarpPolicy::Square, clear: true, ..Gemm::PLAIN };
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [8]);
        let b = k.output("b", F32, [8]);
        k.copy(b, a).accumulate();
        k.fill(b, 0.0).tf32();
        k.atomic_add(b, a).with(gemm);
    });
    assert_mistake("what_an_op_does_not_take", kernel);
}

#[test]
fn sizes_below_what_divides_them() {
    let kernel = kernel("k", |k| {
        let m = k.size("m").multiple_of(8).max(4);
        let n = k.size("n").max(7).multiple_of(16);
        let l = k.size("l").max(0);
        k.output("b", F32, (&l, &m, &n));
    });
    assert_mistake("sizes_below_what_divides_them", kernel);
}

#[test]
fn a_value_of_another_kernel() {
    let mut strange = None;
    let _ = kernel("first", |k| {
        let a = k.input("a", F32, [8]);
        k.parallel([8], |_, [i]| strange = Some((i, a.at((i,)))));
    });
    let (index, value) = strange.expect("the first kernel was built");
    let kernel = kernel("second", |k| {
        let b = k.output("b", F32, [8]);
        k.parallel([8], |k, [i]| {
            k.store(b, (i,), value * 2.0);
            k.store(b, (index,), 1.0);
        });
    });
    assert_mistake("value_of_another_kernel", kernel);
}

#[test]
fn bounds_of_sizes_that_cannot_be() {
    let zero = kernel("k", |k| {
        let m = k.size("m").multiple_of(0);
        let n = k.size("n").multiple_of(-4).max(0);
        k.output("b", F32, (m, n));
        k.grid([m.ceil_div(64)]);
    });
    assert_mistake("multiples_that_are_not_positive", zero);
    let late = kernel("k", |k| {
        let n = k.size("n");
        let b = k.output("b", F32, (n,));
        n.max(64);
        k.fill(b, 0.0);
    });
    assert_mistake("bounds_that_change_after_a_use", late);
}

#[test]
fn grids() {
    let twice = kernel("k", |k| {
        let b = k.output("b", F32, [4, 32]);
        k.grid([2]);
        let [x, _] = k.grid([4, 2]);
        k.fill(b.sub((x, ..)), 0.0);
    });
    assert_mistake("a_second_grid", twice);
    let rounded_down = kernel("k", |k| {
        let n = k.size("n").max(4096);
        let b = k.output("b", F32, (n,));
        let [x] = k.grid([n / 64]);
        k.fill(b.sub((at(x * 64, 64),)), 0.0);
    });
    assert_mistake("a_grid_that_may_be_empty", rounded_down);
    let divided = kernel("k", |k| {
        let n = k.size("n").max(4096);
        let b = k.output("b", F32, (n,));
        k.grid([n.ceil_div(0)]);
        k.fill(b.sub((at(0, 32),)), 0.0);
    });
    assert_mistake("a_grid_divided_by_zero", divided);
}

#[test]
fn names_of_elements() {
    let kernel = kernel("k", |k| {
        let b = k.output("b", F32, [64]);
        k.parallel([64], |k, [p]| {
            k.named("i", p * 2);
            k.named("a", 1);
            let last = k.named("a", 2);
            k.store(b, (p,), last);
        });
    });
    assert_mistake("names_of_elements", kernel);
}

#[test]
fn types_that_differ() {
    let kernel = kernel("k", |k| {
        let x = k.input("x", F32, [32]);
        let h = k.input("h", F16, [32]);
        let y = k.output("y", I8, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (i,), x.at((i,)) + h.at((i,)));
            k.store(y, (i,), x.at((i,)).gt(0.0));
            k.store(y, (i,), x.at((i,)).gt(0.0).cast(I8));
            k.store(y, (i,), x.at((i,)).select(1, 0));
            k.store(y, (i,), x.at((i,)).gt(0.0) + 1);
        });
    });
    assert_mistake("types_that_differ", kernel);
}

#[test]
fn a_copy_that_would_transpose() {
    let kernel = kernel("k", |k| {
        let a = k.input("a", F32, [16, 32]);
        let b = k.output("b", F32, [32, 16]);
        let s = k.shared("s", F32, [2, 32, 16]);
        k.copy(b, a);
        k.serial("t", 0..4, |k, t| {
            k.copy(s.sub((t, .., ..)), b);
        });
    });
    assert_mistake("a_copy_that_would_transpose", kernel);
}

/// A name or a loop variable is valid only in its body, even if another body has the same one.
#[test]
fn handles_whose_body_has_ended() {
    let kernel = kernel("k", |k| {
        let a = k.input("a", I32, [32]);
        let y = k.output("y", I32, [32]);
        let (mut named, mut index, mut made) = (None, None, None);
        k.parallel([32], |k, [i]| {
            named = Some(k.named("v", a.at((i,)) + 1000));
            made = Some(a.at((31 - i,)));
            k.serial("n", 0..4, |_, n| index = Some(n));
        });
        k.parallel([32], |k, [i]| {
            k.named("v", a.at((i,)) + 2000);
            k.serial("n", 0..4, |k, _| k.store(y, (index.unwrap_or(i),), named.unwrap_or(1.into())));
            k.store(y, (i,), made.unwrap_or(0.into()) + i);
            let arm = std::cell::Cell::new(None);
            k.if_else(
                i.lt(16),
                |k| arm.set(Some(k.named("w", a.at((i,))))),
                |k| {
                    k.named("w", a.at((i,)) + 2);
                    k.store(y, (i,), arm.get().unwrap_or(0.into()));
                },
            );
        });
        let mut turn = None;
        k.serial("t", 0..4, |_, t| turn = Some(t));
        k.serial("t", 0..4, |k, _| {
            k.copy(y.sub((at(turn.unwrap_or(0.into()) * 8, 8),)), a.sub((0..8,)));
        });
    });
    assert_mistake("handles_whose_body_has_ended", kernel);
}

/// A value created in a body from values defined outside of it remains valid after the body.
#[test]
fn handles_that_outlive_their_body() {
    let kernel = kernel("k", |k| {
        let (a, y) = (k.input("a", I32, [32]), k.output("y", I32, [32]));
        let [block] = k.grid([1]);
        let (mut first, mut last) = (None, None);
        k.parallel([32], |_, _| {
            first = Some(a.at((block,)) + 1);
            last = Some(block * 4 + 31);
        });
        let (first, last) = (first.expect("a value"), last.expect("an index"));
        k.parallel([32], |k, [i]| k.store(y, (i,), first + a.at((last - i,))));
    });
    assert_eq!(kernel.build_findings, Vec::new());
}

/// A claim is about the store that was just added, not about one of a later loop with the same number.
#[test]
fn a_claim_after_the_loop_of_its_store() {
    let kernel = kernel("k", |k| {
        let at = k.input("at", I32, [32]);
        let y = k.output("y", F32, [32]);
        let mut first = None;
        k.parallel([32], |k, [i]| first = Some(k.store(y, (i,), 0.0)));
        k.parallel([32], |k, [i]| {
            k.store(y, (at.at((i,)),), 1.0);
            first.into_iter().for_each(|store| store.any_wins());
        });
        first.into_iter().for_each(|store| store.unique());
    });
    assert_mistake("a_claim_after_the_loop_of_its_store", kernel);
}

/// Attributes of an op, a loop or a store are kept while another kernel is being built.
#[test]
fn handles_of_the_outer_kernel_in_a_nested_one() {
    let outer = kernel("outer", |k| {
        let y = k.output("y", F32, [32]);
        let rows = k.fragment("rows", F32, [32, 8]);
        let sums = k.fragment("sums", F32, [32]);
        k.fill(rows, 1.0);
        k.fill(sums, 0.0);
        let op = k.reduce(Sum, sums, rows, 1);
        let mut store = None;
        let lanes = k.parallel([32], |k, [i]| {
            let of = k.store(y, (i,), sums.at((i,)));
            let _ = kernel("inner", |_| of.any_wins());
            store = Some(of);
        });
        let _ = kernel("inner", |_| {
            op.accumulate().name("total");
            lanes.vector(1);
        });
    });
    assert_eq!(outer.build_findings, Vec::new());
    let text = outer.to_string();
    let statements: Vec<&str> = text.lines().skip(6).filter_map(|line| line.split("  //").next()).collect();
    assert_eq!(
        statements,
        [
            "  cta reduce(sums, rows, sum, dimension 1, accumulate) as total",
            "  parallel i in 0..32 vector 1",
            "    y[i] = sums[i] any wins",
        ]
    );
}

/// A value computed from a handle outside of its kernel is not a number.
#[test]
fn values_computed_between_kernels() {
    let (mut index, mut value, mut size) = (None, None, None);
    let _ = kernel("first", |k| {
        let a = k.input("a", F32, [8]);
        size = Some(k.size("n").max(64));
        k.parallel([8], |_, [i]| (index, value) = (Some(i), Some(a.at((i,)))));
    });
    let (index, value, size) = (index.expect("an index"), value.expect("a value"), size.expect("a size"));
    let (next, doubled, tiles) = (index + 1, value * 2.0, size.ceil_div(32));
    assert_eq!(index.range(), tilewright::expr::ValueRange::ALL);
    let kernel = kernel("second", |k| {
        let b = k.output("b", F32, [8]);
        k.grid([tiles]);
        k.parallel([8], |k, [i]| {
            k.store(b, (i,), doubled);
            k.store(b, (next,), 1.0);
        });
    });
    assert_mistake("values_computed_between_kernels", kernel);
}

#[test]
fn threads_that_are_said_twice() {
    let kernel = kernel("k", |k| {
        let y = k.output("y", F32, [64]);
        k.threads(64);
        k.fill(y, 0.0);
        k.threads(128);
    });
    assert_mistake("threads_that_are_said_twice", kernel);
}

#[test]
fn conversions_of_fragments_that_differ_in_more_than_their_layouts() {
    let kernel = kernel("k", |k| {
        let y = k.output("y", F32, [64]);
        let (f, square) = (k.fragment("f", F32, [64]), k.fragment("square", F32, [8, 8]));
        let half = k.fragment("half", F16, [64]);
        k.fill(f, 0.0);
        k.convert_layout(square, f);
        k.convert_layout(half, f);
        let tile = k.shared("tile", F32, [64]);
        k.convert_layout(f, tile);
        k.convert_layout(f, f);
        k.copy(y, f);
    });
    assert_mistake("conversions_of_fragments_that_differ", kernel);
}

#[test]
fn a_line_that_gives_a_name_twice() {
    let kernel = kernel("twice", |k| {
        let y = k.output("y", F32, [32]);
        let tiles = [0, 1].map(|_| k.shared("tile", F32, [32]));
        for tile in tiles {
            k.fill(tile, 0.0);
        }
        k.parallel([32], |k, [i]| {
            let parts = [0, 1].map(|at| k.named("part", tiles[at].at((i,))));
            k.store(y, (i,), parts[0] + parts[1]);
        });
    });
    assert_mistake("a_line_that_gives_a_name_twice", kernel);
}
