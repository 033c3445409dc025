//! Tiles that extend past the edges of tensors whose sizes are known only at launch: what lies outside reads as zero and
//! is not written, with guards and where a tile is moved without them.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

const WIDTHS: [DType; 5] = [B8, B16, B32, B64, B128];

/// A number below 251 for each place, so that neighbours differ in all dtypes.
fn number(at: i64) -> f64 {
    (at * 7 % 251) as f64
}

/// A matrix transposed by warps through registers, in tiles of 32 x 32; both sizes are multiples of `multiple`.
fn through_registers(dtype: DType, multiple: i64) -> Kernel {
    kernel("through_registers", |k| {
        let [m, n] = ["m", "n"].map(|name| k.size(name).multiple_of(multiple).max(128));
        let (a, b) = (k.input("a", dtype, (m, n)), k.output("b", dtype, (n, m)));
        let columns = k.view("columns", b, ([Expr::from(m), Expr::from(n)], [Expr::from(1), Expr::from(m)]));
        let [y, x] = k.grid([m.ceil_div(32), n.ceil_div(32)]);
        k.threads(32);
        let tile = (at(y * 32, 32), at(x * 32, 32));
        k.warp().permute_layout(columns.sub(tile), a.sub(tile));
    })
}

/// The same by a CTA through shared memory.
fn through_shared(dtype: DType, multiple: i64) -> Kernel {
    kernel("through_shared", |k| {
        let [m, n] = ["m", "n"].map(|name| k.size(name).multiple_of(multiple).max(128));
        let (a, b) = (k.input("a", dtype, (m, n)), k.output("b", dtype, (n, m)));
        let [y, x] = k.grid([m.ceil_div(32), n.ceil_div(32)]);
        k.threads(64);
        let tile = k.shared("tile", dtype, S([32, 32], [36, 1]));
        let columns = k.view("columns", tile, S([32, 32], [1, 36]));
        k.copy(tile, a.sub((at(y * 32, 32), at(x * 32, 32))));
        k.copy(b.sub((at(x * 32, 32), at(y * 32, 32))), columns);
    })
}

/// Checks a transpose of `m` x `n` elements.
fn transposes(kernel: &Kernel, dtype: DType, m: i64, n: i64) {
    let a = tensor(dtype, &[m, n], number);
    let b = tensor(dtype, &[n, m], |at| number(at % m * n + at / m));
    check(kernel, &[("m", m), ("n", n)], &[a], &[b], Tolerance::EXACT);
}

#[test]
fn whole_vectors_through_registers() {
    for dtype in WIDTHS {
        let multiple = (8 / dtype.bytes()).max(2);
        let kernel = through_registers(dtype, multiple);
        for (m, n) in [(1, 1), (4, 3), (9, 5), (4, 8)] {
            transposes(&kernel, dtype, m * multiple, n * multiple);
        }
    }
}

#[test]
fn single_elements_through_registers() {
    for dtype in [B32, B64, B128] {
        let kernel = through_registers(dtype, 1);
        for (m, n) in [(1, 1), (31, 33), (64, 65), (70, 32)] {
            transposes(&kernel, dtype, m, n);
        }
    }
}

#[test]
fn vectors_and_elements_through_shared_memory() {
    for dtype in WIDTHS {
        for multiple in [1, 4] {
            let kernel = through_shared(dtype, multiple);
            for (m, n) in [(1, 2), (8, 8), (9, 15), (16, 7)] {
                transposes(&kernel, dtype, m * multiple, n * multiple);
            }
        }
    }
}

#[test]
fn elements_outside_of_the_source_only_are_zeros() {
    let pasted = kernel("pasted", |k| {
        let [m, n, p] = ["m", "n", "p"].map(|name| k.size(name).multiple_of(4).max(128));
        let (a, b) = (k.input("a", F32, (m, n)), k.output("b", F32, (p, p)));
        let [y, x] = k.grid([p.ceil_div(32), p.ceil_div(32)]);
        k.threads(32);
        let tile = (at(y * 32, 32), at(x * 32, 32));
        k.warp().permute_layout(b.sub(tile), a.sub(tile));
    });
    for (m, n, p) in [(12, 40, 68), (100, 64, 36), (4, 4, 32)] {
        let a = tensor(F32, &[m, n], number);
        let b = tensor(F32, &[p, p], |at| {
            let (row, column) = (at / p, at % p);
            if row < m && column < n { number(row * n + column) } else { 0.0 }
        });
        check(&pasted, &[("m", m), ("n", n), ("p", p)], &[a], &[b], Tolerance::EXACT);
    }
}

/// A tile that begins at an odd row is inside of a tensor only if its last row is, whatever the size is a multiple of.
#[test]
fn tiles_that_begin_between_multiples_of_the_size() {
    let shifted = kernel("shifted", |k| {
        let m = k.size("m").multiple_of(8).max(256);
        let (a, b) = (k.input("a", F32, (m, 64)), k.output("b", F32, (m, 64)));
        let [y] = k.grid([m.ceil_div(32)]);
        k.threads(32);
        let tile = k.shared("tile", F32, [32, 64]);
        k.copy(tile, a.sub((at(y * 32 + 3, 32), ..)));
        k.copy(b.sub((at(y * 32, 32), ..)), tile);
    });
    for m in [8, 32, 40, 64, 72] {
        let numbers = || tensor(F32, &[m, 64], number);
        let moved = tensor(F32, &[m, 64], |at| if at / 64 + 3 < m { number(at + 3 * 64) } else { 0.0 });
        check(&shifted, &[("m", m)], &[numbers()], &[moved], Tolerance::EXACT);
    }
}

#[test]
fn rows_shorter_than_a_vector() {
    for (dtype, columns) in [(F32, 2), (F16, 4), (B8, 8), (F32, 1)] {
        let rows_of = |is_source: bool| {
            kernel("rows", |k| {
                let n = k.size("n").max(256);
                let fixed = [256, columns];
                let (a, b) = match is_source {
                    true => (k.input("a", dtype, (n, columns)), k.output("b", dtype, fixed)),
                    false => (k.input("a", dtype, fixed), k.output("b", dtype, (n, columns))),
                };
                let [x] = k.grid([if is_source { Expr::from(2) } else { n.ceil_div(128) }]);
                k.threads(32);
                let part = (at(x * 128, 128), Index::All);
                k.warp().permute_layout(b.sub(part), a.sub(part));
            })
        };
        let (reads, writes) = (rows_of(true), rows_of(false));
        let small = |at: i64| (at % 100 + 1) as f64;
        for n in [1, 77, 128, 129, 200] {
            let whole = || tensor(dtype, &[256, columns], small);
            check(&writes, &[("n", n)], &[whole()], &[tensor(dtype, &[n, columns], small)], Tolerance::EXACT);
            if n > 128 {
                let padded = tensor(dtype, &[256, columns], |at| if at < n * columns { small(at) } else { 0.0 });
                check(&reads, &[("n", n)], &[tensor(dtype, &[n, columns], small)], &[padded], Tolerance::EXACT);
            }
        }
    }
}

/// Row 3 begins at place 399, and its elements from 1 on at a multiple of 4, but their indices in the row are not.
#[test]
fn vectors_that_are_aligned_in_memory_but_not_in_their_row() {
    let padded = kernel("padded", |k| {
        let n = k.size("n").multiple_of(4).max(128);
        let w = k.input("w", F32, [8, 133]);
        let a = k.view("a", w, ([Expr::from(8), Expr::from(n)], [Expr::from(133), Expr::from(1)]));
        let b = k.output("b", F32, [128]);
        k.threads(32);
        k.warp().permute_layout(b, a.sub((3, at(1, 128))));
    });
    for n in [4, 64, 100] {
        let b = tensor(F32, &[128], |at| if at + 1 < n { number(3 * 133 + at + 1) } else { 0.0 });
        check(&padded, &[("n", n)], &[tensor(F32, &[8, 133], number)], &[b], Tolerance::EXACT);
    }
}

#[test]
fn several_strides_known_at_launch() {
    let stacked = kernel("stacked", |k| {
        let [p, m, n] = ["p", "m", "n"].map(|name| k.size(name).max(64));
        let (a, b) = (k.input("a", F32, (p, m, n)), k.output("b", F32, (p, m, n)));
        let [x, y, z] = k.grid([n.ceil_div(16), m.ceil_div(4), p.ceil_div(4)]);
        k.threads(32);
        let part = (at(z * 4, 4), at(y * 4, 4), at(x * 16, 16));
        let tile = k.shared("tile", F32, [4, 4, 16]);
        k.warp().permute_layout(tile, a.sub(part));
        k.copy(b.sub(part), tile);
    });
    for (p, m, n) in [(1, 1, 1), (5, 3, 17), (4, 8, 16)] {
        let all = || tensor(F32, &[p, m, n], number);
        check(&stacked, &[("p", p), ("m", m), ("n", n)], &[all()], &[all()], Tolerance::EXACT);
    }
}

fn cuda(kernel: &Kernel) -> String {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right").cuda().to_string()
}

#[test]
fn a_tile_inside_of_its_tensor_is_copied_without_guards() {
    let text = cuda(&through_shared(B32, 1));
    let (inside, others) = text.split_once("  } else {\n").expect("two ways of copying");
    let guards = |text: &str| text.lines().filter(|line| line.trim_start().starts_with("if (")).count();
    assert_eq!(guards(inside), 1, "{text}");
    assert!(inside.contains("  if (bx*32 < m - 31 && by*32 < n - 31) {\n"), "{text}");
    let others = others.split("  // copy").next().unwrap_or_default();
    assert_eq!(guards(others), 2, "{text}");
}

#[test]
fn a_block_of_whole_vectors_has_one_guard() {
    let text = cuda(&through_registers(B16, 8));
    assert_eq!(text.matches("if (").count(), 2, "{text}");
    assert!(!text.contains("else"), "{text}");
}

#[test]
fn sizes_that_tiles_divide_need_no_guards() {
    for kernel in [through_registers(B32, 32), through_shared(B32, 32)] {
        let text = cuda(&kernel);
        assert!(!text.contains("if ("), "{text}");
    }
}

/// A kernel that copies the tiles of 32 elements that `body` visits, `tiles` in all.
fn visited(body: impl Fn(&mut KernelBuilder, Expr, &dyn Fn(&mut KernelBuilder, Expr))) -> Kernel {
    kernel("visited", |k| {
        let n = k.size("n").max(1 << 16);
        let (x, y) = (k.input("x", F32, (n,)), k.inout("y", F32, (n,)));
        k.threads(32);
        let v = k.fragment("v", F32, [32]);
        body(k, n.ceil_div(32), &|k, tile| {
            let part = (at(tile * 32, 32),);
            k.copy(v, x.sub(part));
            k.copy(y.sub(part), v);
        });
    })
}

/// Checks that exactly the tiles for which this holds are copied, of so many.
fn assert_visits(kernel: &Kernel, is_visited: impl Fn(i64, i64) -> bool) {
    for n in [1, 32, 77, 320, 345] {
        let tiles = (n + 31) / 32;
        let number = |at: i64| (at % 9) as f64;
        let y = tensor(F32, &[n], |at| if is_visited(at / 32, tiles) { number(at) } else { -1.0 });
        let inputs = [tensor(F32, &[n], number), tensor(F32, &[n], |_| -1.0)];
        check(kernel, &[("n", n)], &inputs, &[y], Tolerance::EXACT);
    }
}

/// The first element of each tile is never below 0, as the ends and begins of the loops tell.
#[test]
fn tiles_may_be_counted_backwards() {
    for [outer, inner] in [["o", "t"], ["t", "o"]] {
        let triangle = visited(|k, tiles, visit| {
            k.serial(outer, ..tiles, |k, o| k.serial(inner, ..tiles - o, |k, t| visit(k, tiles - 1 - o - t)));
        });
        assert_visits(&triangle, |_, _| true);
        let above = visited(|k, tiles, visit| {
            k.serial(outer, ..tiles, |k, o| k.serial(inner, (o, tiles), |k, t| visit(k, t - o)));
        });
        assert_visits(&above, |_, _| true);
    }
    let every_second = visited(|k, tiles, visit| {
        k.serial("t", (..tiles).step(2), |k, t| visit(k, tiles - 1 - t));
    });
    assert_visits(&every_second, |tile, tiles| (tiles - 1 - tile) % 2 == 0);
    let half = visited(|k, tiles, visit| {
        k.serial("t", ..tiles.ceil_div(2), |k, t| visit(k, tiles - 1 - t * 2));
    });
    assert_visits(&half, |tile, tiles| (tiles - 1 - tile) % 2 == 0);
    let last_half = visited(|k, tiles, visit| {
        k.serial("t", ..tiles.ceil_div(2), |k, t| visit(k, tiles - 1 - t));
    });
    assert_visits(&last_half, |tile, tiles| tiles - 1 - tile < (tiles + 1) / 2);
}

#[test]
fn a_tile_that_may_begin_below_0_is_refused() {
    let below = visited(|k, tiles, visit| {
        k.serial("t", ..tiles + 1, |k, t| visit(k, tiles - 1 - t));
    });
    let found = compile(below, &Options::new(Target::Sm100a)).expect_err("tile -1");
    assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), ["K0216"; 2]);
}
