//! Tiles that hang over an edge: what lies beyond does not count, though the user writes no condition.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

/// Negative numbers, exact in f16: a 0 would be the greatest.
fn negative(at: i64) -> f64 {
    -1.0 - ((at * 37) % 101) as f64 / 16.0
}

const LENGTHS: [i64; 6] = [1, 63, 64, 65, 130, 200];

/// Reduces a vector, a tile of 64 at a time.
fn reduced(kind: ReduceKind, dtype: DType) -> Kernel {
    kernel("reduced", move |k| {
        let n = k.size("n");
        let x = k.input("x", dtype, (n,));
        let y = k.output("y", dtype, [1]);
        k.threads(32);
        let (tile, result) = (k.fragment("tile", dtype, [64]), k.fragment("result", dtype, [1]));
        k.copy(tile, x.sub((at(0, 64),)));
        k.reduce(kind, result, tile, 0);
        k.serial("t", (64, n).step(64), |k, t| {
            k.copy(tile, x.sub((at(t, 64),)));
            k.reduce(kind, result, tile, 0).accumulate();
        });
        k.copy(y, result);
    })
}

#[test]
fn a_zero_beyond_the_edge_is_neither_the_greatest_nor_the_least() {
    for (kind, sign) in [(Max, 1.0), (Min, -1.0)] {
        for dtype in [F32, F16, I32] {
            for n in LENGTHS {
                let number =
                    move |at: i64| if dtype.is_float() { sign * negative(at) } else { sign * (-9 - at) as f64 };
                let greatest = (0..n).map(|at| sign * number(at)).fold(f64::NEG_INFINITY, f64::max);
                let y = tensor(dtype, &[1], |_| sign * greatest);
                let x = tensor(dtype, &[n], number);
                check(&reduced(kind, dtype), &[("n", n)], &[x], &[y], Tolerance::EXACT);
            }
        }
    }
}

#[test]
fn a_zero_beyond_the_edge_is_not_the_least_of_any_unsigned_integer() {
    for dtype in [U8, U16, U32, U64] {
        for n in LENGTHS {
            let x = tensor(dtype, &[n], |at| (200 - at.min(190)) as f64);
            let y = tensor(dtype, &[1], |_| (200 - (n - 1).min(190)) as f64);
            check(&reduced(Min, dtype), &[("n", n)], &[x], &[y], Tolerance::EXACT);
        }
    }
}

#[test]
fn a_zero_is_left_where_it_is_neutral() {
    for kind in [Sum, AbsSum, SquareSum] {
        let artifact = compile(reduced(kind, F32), &Options::new(Target::Sm100a)).expect("the kernel is right");
        assert!(!artifact.cuda().contains("tile_masked"), "{kind:?}");
    }
    // The greatest magnitude of nothing but NaN is NaN.
    for kind in [Max, AbsMax] {
        let artifact = compile(reduced(kind, F32), &Options::new(Target::Sm100a)).expect("the kernel is right");
        assert!(artifact.cuda().contains("tile_masked"), "{kind:?}");
    }
}

/// The sum of the exponentials of each row, whose columns are held at once.
fn exponentials() -> Kernel {
    kernel("exponentials", |k| {
        let (rows, cols) = (k.size("rows"), k.size("cols").max(256));
        let x = k.input("x", F32, (rows, cols));
        let y = k.output("y", F32, (rows,));
        let [block] = k.grid([rows.ceil_div(2)]);
        k.threads(64);
        let held = k.fragment("held", F32, [2, 256]);
        let (most, sum) = (k.fragment("most", F32, [2]), k.fragment("sum", F32, [2]));
        k.copy(held, x.sub((at(block * 2, 2), at(0, 256))));
        k.reduce(Max, most, held, 1);
        k.parallel([2, 256], |k, [i, j]| {
            let shifted = k.named("shifted", held.at((i, j)) - most.at((i,)));
            k.store(held, (i, j), shifted.exp());
        });
        k.reduce(Sum, sum, held, 1);
        k.copy(y.sub((at(block * 2, 2),)), sum);
    })
}

#[test]
fn what_is_computed_beyond_the_edge_does_not_count() {
    for cols in [1, 100, 255, 256] {
        let y = tensor(F32, &[3], |row| {
            let all: Vec<f64> = (row * cols..row * cols + cols).map(negative).collect();
            let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            all.iter().map(|x| (x - most).exp()).sum()
        });
        let x = tensor(F32, &[3, cols], negative);
        let tolerance = Tolerance { absolute: 0.0, relative: 1e-5 };
        check(&exponentials(), &[("rows", 3), ("cols", cols)], &[x], &[y], tolerance);
    }
}

#[test]
fn an_update_leaves_what_was_valid() {
    let kernel = kernel("running", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(64);
        let tile = k.fragment("tile", F32, [64]);
        let (best, most) = (k.fragment("best", F32, [64]), k.fragment("most", F32, [1]));
        k.fill(best, -1e30);
        k.serial("t", (..n).step(64), |k, t| {
            k.copy(tile, x.sub((at(t, 64),)));
            k.parallel([64], |k, [i]| k.store(best, (i,), best.at((i,)).max(tile.at((i,)))));
        });
        k.reduce(Max, most, best, 0);
        k.copy(y, most);
    });
    for n in LENGTHS {
        let y = tensor(F32, &[1], |_| (0..n).map(negative).fold(f64::NEG_INFINITY, f64::max));
        check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[y], Tolerance::EXACT);
    }
}

/// A running value of 64 elements, updated with every tile of a vector, and reduced.
fn check_running(kind: ReduceKind, begin: f64, update: fn(Value, Value) -> Value, expected: fn(i64) -> f64) {
    let kernel = kernel("running", move |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(64);
        let tile = k.fragment("tile", F32, [64]);
        let (running, result) = (k.fragment("running", F32, [64]), k.fragment("result", F32, [1]));
        k.fill(running, begin);
        k.serial("t", (..n).step(64), |k, t| {
            k.copy(tile, x.sub((at(t, 64),)));
            k.parallel([64], |k, [i]| k.store(tile, (i,), tile.at((i,)) - 1.0));
            k.parallel([64], |k, [i]| {
                let new = k.named("new", update(running.at((i,)), tile.at((i,))));
                k.store(running, (i,), new);
            });
            k.parallel([64], |k, [i]| k.store(running, (i,), update(running.at((i,)), tile.at((i,)))));
        });
        k.reduce(kind, result, running, 0);
        k.copy(y, result);
    });
    for n in LENGTHS {
        let y = tensor(F32, &[1], |_| expected(n));
        check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn an_update_by_a_name_leaves_what_was_valid() {
    check_running(
        Max,
        -1e30,
        |old, new| old.max(new),
        |n| (0..n).map(|at| negative(at) - 1.0).fold(f64::NEG_INFINITY, f64::max),
    );
}

#[test]
fn a_scaled_sum_is_scaled_where_the_term_is_not_valid() {
    let kernel = kernel("scaled", |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(64);
        let tile = k.fragment("tile", F32, [64]);
        let (sum, result) = (k.fragment("sum", F32, [64]), k.fragment("result", F32, [1]));
        k.fill(sum, 0.0);
        k.serial("t", (..n).step(64), |k, t| {
            k.copy(tile, x.sub((at(t, 64),)));
            k.parallel([64], |k, [i]| k.store(tile, (i,), tile.at((i,)) - 1.0));
            k.parallel([64], |k, [i]| k.store(sum, (i,), sum.at((i,)) * 0.5 + tile.at((i,))));
        });
        k.reduce(Sum, result, sum, 0);
        k.copy(y, result);
    });
    for n in LENGTHS {
        let tiles = (n + 63) / 64;
        let weight = |at: i64| 0.5f64.powi((tiles - 1 - at / 64) as i32);
        let y = tensor(F32, &[1], |_| (0..n).map(|at| (negative(at) - 1.0) * weight(at)).sum());
        check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[y], Tolerance::EXACT);
    }
}

/// Whatever is masked, `sum*scale + term` is rounded once where everything is valid; elsewhere the invalid operands are left out.
#[test]
fn a_product_stays_fused_with_the_sum_beside_an_edge() {
    let scaled = kernel("scaled", |k| {
        let (n, m) = (k.size("n"), k.size("m"));
        let (scale, term) = (k.input("scale", F32, (n,)), k.input("term", F32, (m,)));
        let y = k.output("y", F32, [64]);
        k.threads(32);
        let [sum, factor, added] = ["sum", "factor", "added"].map(|name| k.fragment(name, F32, [64]));
        k.fill(sum, f64::from(1.1f32));
        k.copy(factor, scale.sub((at(0, 64),)));
        k.copy(added, term.sub((at(0, 64),)));
        k.map(sum, |[i]| sum.at((i,)) * factor.at((i,)) + added.at((i,)));
        k.copy(y, sum);
    });
    let (scale, term) = (|at: i64| 1.0 + at as f32 / 1000.0, |at: i64| at as f32 / 7.0 - 3.0);
    for (n, m) in [(64, 64), (10, 64), (64, 10), (20, 40), (40, 20)] {
        let expected = |at: i64| match (at < n, at < m) {
            (true, true) => 1.1f32.mul_add(scale(at), term(at)),
            (true, false) => 1.1 * scale(at),
            (false, true) => 1.1 + term(at),
            (false, false) => 1.1,
        };
        let inputs = [tensor(F32, &[n], |at| scale(at).into()), tensor(F32, &[m], |at| term(at).into())];
        let wanted = tensor(F32, &[64], |at| expected(at).into());
        check(&scaled, &[("n", n), ("m", m)], &inputs, &[wanted], Tolerance::EXACT);
    }
}

#[test]
fn nothing_is_added_or_stored_at_an_index_from_beyond_the_edge() {
    let kernel = kernel("scattered", |k| {
        let n = k.size("n").max(256);
        let to = k.input("to", I32, (n,));
        let counts = k.accumulator("counts", I32, [8]);
        let last = k.output("last", I32, [256]);
        let [block] = k.grid([n.ceil_div(64)]);
        k.threads(64);
        k.parallel([256], |k, [i]| {
            k.if_(block.eq(0), |k| k.store(last, (i,), -7));
        });
        k.parallel([64], |k, [i]| {
            let place = k.named("place", to.at((block * 64 + i,)));
            k.atomic_add(counts, (place.max(0).min(7),), 1);
        });
    });
    for n in LENGTHS {
        let place = |at: i64| (at * 5 + 3) % 11;
        let counts = tensor(I32, &[8], |bin| (0..n).filter(|at| place(*at).min(7) == bin).count() as f64);
        let last = tensor(I32, &[256], |_| -7.0);
        let to = tensor(I32, &[n], |at| place(at) as f64);
        check(&kernel, &[("n", n)], &[to], &[counts, last], Tolerance::EXACT);
    }
}

/// `softmax(x)*w` for one row of scores that are so low that an exponential of 0 overflows.
fn weighted() -> Kernel {
    kernel("weighted", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F16, (16, n));
        let w = k.input("w", F16, (n, 8));
        let y = k.output("y", F32, [16, 8]);
        k.threads(32);
        let (held, scores) = (k.fragment("held", F32, [16, 64]), k.fragment("scores", F16, [16, 64]));
        let most = k.fragment("most", F32, [16]);
        let weights = k.shared("weights", F16, [64, 8]);
        let sums = k.fragment("sums", F32, [16, 8]);
        k.fill(sums, 0.0);
        k.parallel([16, 64], |k, [i, j]| k.store(held, (i, j), x.at((i, j)).cast(F32)));
        k.reduce(Max, most, held, 1);
        k.parallel([16, 64], |k, [i, j]| {
            k.store(scores, (i, j), (held.at((i, j)) - most.at((i,))).exp().cast(F16));
        });
        k.copy(weights, w.sub((at(0, 64), ..)));
        k.gemm(sums, scores, weights);
        k.copy(y, sums);
    })
}

#[test]
fn a_product_does_not_multiply_infinity_by_the_zeros_beyond_the_edge() {
    for n in [8, 30, 64] {
        let low = move |at: i64| -300.0 + (at % n % 3) as f64;
        let y = tensor(F32, &[16, 8], |at| {
            (0..n).map(|j| half((low(j) + 300.0 - if n > 2 { 2.0 } else { 0.0 }).exp()) * weight(j * 8 + at % 8)).sum()
        });
        let inputs = [tensor(F16, &[16, n], low), tensor(F16, &[n, 8], weight)];
        check(&weighted(), &[("n", n)], &inputs, &[y], Tolerance { absolute: 1e-2, relative: 2e-3 });
    }
}

fn weight(at: i64) -> f64 {
    (at % 5) as f64 * 0.25
}

/// Rounded to f16.
fn half(x: f64) -> f64 {
    tensor(F16, &[1], |_| x).number(0).expect("a number")
}

#[test]
fn or_zero_counts_beyond_the_edge() {
    let kernel = |or_zero: bool| {
        kernel("padded", move |k| {
            let n = k.size("n").max(64);
            let x = k.input("x", F32, (n,));
            let y = k.output("y", F32, [1]);
            k.threads(32);
            let (held, most) = (k.fragment("held", F32, [64]), k.fragment("most", F32, [1]));
            k.parallel([64], |k, [i]| {
                let element = x.at((i,));
                k.store(held, (i,), if or_zero { element.or_zero() } else { element });
            });
            k.reduce(Max, most, held, 0);
            k.copy(y, most);
        })
    };
    let x = [tensor(F32, &[9], negative)];
    let greatest = (0..9).map(negative).fold(f64::NEG_INFINITY, f64::max);
    check(&kernel(true), &[("n", 9)], &x, &[tensor(F32, &[1], |_| 0.0)], Tolerance::EXACT);
    check(&kernel(false), &[("n", 9)], &x, &[tensor(F32, &[1], |_| greatest)], Tolerance::EXACT);
}

#[test]
fn a_condition_of_the_user_decides_what_counts() {
    let kernel = kernel("filled", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(32);
        let (held, least) = (k.fragment("held", F32, [64]), k.fragment("least", F32, [1]));
        k.parallel([64], |k, [i]| k.store(held, (i,), i.lt(n).select(x.at((i,)), -99.0)));
        k.reduce(Min, least, held, 0);
        k.copy(y, least);
    });
    check(&kernel, &[("n", 9)], &[tensor(F32, &[9], negative)], &[tensor(F32, &[1], |_| -99.0)], Tolerance::EXACT);
}

/// A function whose value for 0 is not 0, of an element of itself: what lies beyond the edge does not stay 0.
#[test]
fn a_function_of_the_element_itself_does_not_keep_zeros() {
    let kernel = kernel("exponentials", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let (total, behind) = (k.output("total", F32, [1]), k.output("behind", F32, (n,)));
        k.threads(40);
        let (v, sums, sum) = (k.fragment("v", F32, [37]), k.fragment("sums", F32, [37]), k.fragment("sum", F32, [1]));
        let tile = (at(Expr::from(0), 37),);
        k.copy(v, x.sub(tile));
        k.map(v, |[i]| v.at((i,)).exp2());
        k.reduce(Sum, sum, v, 0);
        k.copy(total, sum);
        k.scan(Sum, sums, v, 0).reverse();
        k.copy(behind.sub(tile), sums);
    });
    for n in [1i64, 30, 37] {
        let power = |i: i64| ((i % 5 - 2) as f64).exp2();
        let x = tensor(F32, &[n], |i| (i % 5 - 2) as f64);
        let total = tensor(F32, &[1], |_| (0..n).map(power).sum());
        let behind = tensor(F32, &[n], |i| (i..n).map(power).sum());
        check(&kernel, &[("n", n)], &[x], &[total, behind], Tolerance::EXACT);
    }
}

/// The last valid element has the result of no elements, as the last one of a whole tile has.
#[test]
fn an_exclusive_scan_begins_at_the_edge() {
    for kind in [Max, Min, Sum, Product, AbsMax] {
        let kernel = kernel("backwards", |k| {
            let n = k.size("n").max(64);
            let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n,)));
            k.threads(40);
            let v = k.fragment("v", F32, [37]);
            let tile = (at(Expr::from(0), 37),);
            k.copy(v, x.sub(tile));
            k.scan(kind, v, v, 0).reverse().exclusive();
            k.copy(y.sub(tile), v);
        });
        let number = |i: i64| -1.0 - (i % 3) as f64;
        for n in [1i64, 7, 37] {
            let result = |i: i64| {
                let behind = (i + 1..n).map(number);
                match kind {
                    Max => behind.fold(f64::NEG_INFINITY, f64::max),
                    Min => behind.fold(f64::INFINITY, f64::min),
                    Sum => behind.fold(0.0, |sum, number| sum + number),
                    Product => behind.product(),
                    _ => behind.map(f64::abs).fold(0.0, f64::max),
                }
            };
            let x = tensor(F32, &[n], number);
            check(&kernel, &[("n", n)], &[x], &[tensor(F32, &[n], result)], Tolerance::EXACT);
        }
    }
}

/// A tile of three dimensions whose indices together are one of the vector.
fn of_three(kind: ReduceKind, is_update: bool) -> Kernel {
    kernel("of_three", move |k| {
        let n = k.size("n");
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        k.threads(32);
        let tile = k.fragment("tile", F32, [2, 32, 4]);
        let running = k.fragment("running", F32, [2, 32, 4]);
        let (rows, result) = (k.fragment("rows", F32, [32]), k.fragment("result", F32, [1]));
        let begin = if kind == Max { -1e30 } else { 0.0 };
        k.fill(running, begin);
        k.fill(rows, begin);
        k.serial("t", (..n).step(256), |k, t| {
            k.map(tile, |[u, i, e]| x.at((t + (u * 32 + i) * 4 + e,)) - 1.0);
            if is_update {
                k.map(running, |at: [Expr; 3]| match kind {
                    Max => running.at(at).max(tile.at(at)),
                    _ => running.at(at) + tile.at(at),
                });
            } else {
                k.reduce(kind, rows, tile, [0, 2]).accumulate();
            }
        });
        if is_update {
            k.reduce(kind, rows, running, [0, 2]);
        }
        k.reduce(kind, result, rows, 0);
        k.copy(y, result);
    })
}

#[test]
fn indices_of_a_tile_may_be_digits_of_an_index_of_the_tensor() {
    for is_update in [false, true] {
        for n in [1, 3, 64, 128, 129, 255, 256, 257, 500] {
            let all = || (0..n).map(|at| negative(at) - 1.0);
            let most = tensor(F32, &[1], |_| all().fold(f64::NEG_INFINITY, f64::max));
            let sum = tensor(F32, &[1], |_| all().sum());
            for (kind, y) in [(Max, most), (Sum, sum)] {
                let x = tensor(F32, &[n], negative);
                check(&of_three(kind, is_update), &[("n", n)], &[x], &[y], Tolerance::EXACT);
            }
        }
    }
}

#[test]
fn a_backward_scan_of_digits_leaves_out_what_lies_beyond() {
    let kernel = kernel("backwards", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, (n,));
        k.threads(32);
        let tile = k.fragment("tile", F32, [8, 8]);
        k.map(tile, |[i, j]| x.at((i * 8 + j,)) - 1.0);
        k.scan(Max, tile, tile, 1).reverse();
        k.parallel([8, 8], |k, [i, j]| k.store(y, (i * 8 + j,), tile.at((i, j))));
    });
    for n in [1, 7, 8, 9, 60, 64] {
        let y = tensor(F32, &[n], |at| {
            (at..n.min(at / 8 * 8 + 8)).map(|at| negative(at) - 1.0).fold(f64::NEG_INFINITY, f64::max)
        });
        check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[y], Tolerance::EXACT);
    }
}

#[test]
fn a_limit_of_a_multiple_of_an_index_is_rounded_up() {
    // Elements 3*i + 6*j of the vector.
    let kernel = kernel("thirds", |k| {
        let n = k.size("n").max(64);
        let x = k.input("x", F32, (n,));
        let y = k.output("y", F32, [1]);
        let tile = k.fragment("tile", F32, [2, 16]);
        let result = k.fragment("result", F32, [1]);
        k.map(tile, |[i, j]| x.at((i * 3 + j * 6,)) - 1.0);
        k.reduce(Max, result, tile, [0, 1]);
        k.copy(y, result);
    });
    for n in [1, 3, 4, 6, 7, 50, 64] {
        let y = tensor(F32, &[1], |_| {
            (0..n.min(96)).step_by(3).map(|at| negative(at) - 1.0).fold(f64::NEG_INFINITY, f64::max)
        });
        check(&kernel, &[("n", n)], &[tensor(F32, &[n], negative)], &[y], Tolerance::EXACT);
    }
}
