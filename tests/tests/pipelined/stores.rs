//! `copy_async` from shared memory to a tensor: the copy engine moves the boxes of a tile while the kernel continues.

use tilewright::compile::{Options, Stage, compile};
use tilewright::layout::DType;
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::in_flight::check_in_schedules;
use super::{Launched, are_found, check_all_in_schedules, compiled, mutated, number, product_of};

/// The lines of a kernel's CUDA that are about copies to tensors, without indices.
fn calls(kernel: &Kernel) -> Vec<String> {
    let cuda = compiled(kernel).cuda().to_string();
    let body = cuda.split("__global__").nth(1).expect("a kernel").to_string();
    let names = ["bulk_", "fence_proxy", "tensor_store", "tensor_add", "__sync", "sync_warps"];
    let is_one = |line: &&str| names.iter().any(|name| line.starts_with(name));
    let name = |line: &str| line.split('(').next().unwrap_or_default().to_string();
    body.lines().map(str::trim).filter(is_one).map(name).collect()
}

/// What the plans of asynchronous copies say.
fn told(kernel: &Kernel, about: &str) -> Vec<String> {
    let text = compiled(kernel).stage(Stage::Plan).to_string();
    text.lines().map(str::trim).filter(|line| line.contains(about)).map(str::to_string).collect()
}

/// The reasons why the copy engine does not make a copy to a tensor.
fn reasons(kernel: &Kernel) -> Vec<String> {
    let text = compiled(kernel).stage(Stage::Plan).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let follows = |at: &usize| *at > 0 && lines[at - 1] == "tma: not possible";
    (0..lines.len()).filter(follows).map(|at| lines[at].to_string()).collect()
}

/// Twice the elements of a matrix, tile by tile.
fn doubled(dtype: DType, [rows, cols]: [i64; 2], threads: i64) -> Kernel {
    kernel("doubled", |k| {
        let unit = 16 / dtype.bytes();
        let (m, n) = (k.size("m").max(1 << 12), k.size("n").multiple_of(unit));
        let x = k.input("x", dtype, (m, n));
        let y = k.output("y", dtype, (m, n));
        let [bx, by] = k.grid([n.ceil_div(cols), m.ceil_div(rows)]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [rows, cols]);
        let part = |tensor: Buffer| tensor.sub((at(by * rows, rows), at(bx * cols, cols)));
        let from = part(x);
        let held = k.fragment("held", dtype, [rows, cols]);
        k.copy(held, from);
        k.parallel([rows, cols], |k, [i, j]| k.store(tile, (&i, &j), held.at((&i, &j)) + held.at((&i, &j))));
        k.copy_async(part(y), tile);
    })
}

#[test]
fn tiles_of_every_dtype_and_side_go_to_ragged_matrices() {
    let cases = [
        (F32, [64, 32], 128),
        (F16, [64, 64], 128),
        (BF16, [16, 128], 64),
        (I8, [32, 128], 32),
        (F32, [8, 16], 32),
        (F16, [4, 16], 64),
        (I32, [16, 4], 256),
    ];
    for (dtype, sides, threads) in cases {
        let kernel = doubled(dtype, sides, threads);
        assert_eq!(reasons(&kernel), Vec::<String>::new(), "{dtype} {sides:?}");
        let unit = 16 / dtype.bytes();
        for (m, n) in [(1, 1), (sides[0], sides[1] / unit), (3 * sides[0] - 1, 2 * sides[1] / unit + 1), (5, 7)] {
            let n = n * unit;
            let (x, y) = (tensor(dtype, &[m, n], number), tensor(dtype, &[m, n], |at| 2.0 * number(at)));
            check_all_in_schedules(&kernel, &[("m", m), ("n", n)], &[x], &[y]);
        }
    }
}

/// A tile that threads write in each iteration, and rows of a tensor to which `to` copies it.
fn repeated(tiles: usize, to: impl Fn(Expr) -> Expr) -> Kernel {
    kernel("repeated", |k| {
        let rows = k.size("rows").max(16);
        let turns = rows - 1;
        let y = k.output("y", F32, [64, 128]);
        k.threads(64);
        let tiles: Vec<Buffer> = (0..tiles).map(|at| k.shared(&format!("tile{at}"), F32, [128])).collect();
        k.fill(y, 0.0);
        k.serial("t", ..turns, |k, t| {
            for (place, tile) in tiles.iter().enumerate() {
                let row = t * tiles.len() as i64 + place as i64;
                k.parallel([128], |k, [i]| k.store(*tile, (&i,), (127 - &i + row).cast(F32)));
                k.copy_async(y.sub((to(row), ..)), *tile);
            }
        });
    })
}

/// A launch of [`repeated`] with so many iterations.
fn launch_of_repeated(tiles: usize, to: fn(i64) -> i64, turns: i64) -> Launched {
    let mut y = vec![0.0; 64 * 128];
    for row in 0..turns * tiles as i64 {
        (0..128).for_each(|i| y[(to(row) * 128 + i) as usize] = (127 - i + row) as f64);
    }
    (vec![("rows", turns + 1)], Vec::new(), tensor(F32, &[64, 128], |at| y[at as usize]))
}

fn check_repeated(tiles: usize, to: fn(i64) -> i64, kernel: &Kernel) {
    let launches = [0, 1, 2, 3, 7].map(|turns| launch_of_repeated(tiles, to, turns));
    check_in_schedules(kernel, &launches);
}

#[test]
fn a_tile_is_written_again_when_it_has_been_read() {
    let kernel = repeated(1, |row| row);
    let in_order = [
        "bulk_wait_read<0>",
        "__syncthreads",
        "fence_proxy_async",
        "__syncthreads",
        "tensor_store_2d",
        "bulk_commit",
        "bulk_wait_read<0>",
    ];
    assert_eq!(calls(&kernel), in_order);
    check_repeated(1, |row| row, &kernel);
}

#[test]
fn two_tiles_take_turns() {
    let kernel = repeated(2, |row| row);
    let waits: Vec<String> = calls(&kernel).into_iter().filter(|call| call.starts_with("bulk_wait")).collect();
    assert_eq!(waits, ["bulk_wait_read<1>", "bulk_wait_read<1>", "bulk_wait_read<0>"]);
    check_repeated(2, |row| row, &kernel);
}

/// Copies of boxes are in no order: those to the same elements wait for each other.
#[test]
fn the_last_of_copies_to_the_same_row_counts() {
    for tiles in [1, 2] {
        let kernel = repeated(tiles, |row| row % 3);
        assert!(calls(&kernel).contains(&"bulk_wait<0>".to_string()), "{:?}", calls(&kernel));
        check_repeated(tiles, |row| row % 3, &kernel);
    }
}

/// Threads read elements that a copy replaces, and later those that it wrote.
#[test]
fn a_tensor_is_read_before_and_after_a_copy_to_it() {
    let kernel = kernel("in_place", |k| {
        let x = k.inout("x", F32, [8, 32]);
        let y = k.output("y", F32, [8, 32]);
        k.threads(64);
        let tile = k.shared("tile", F32, [8, 32]);
        k.parallel([8, 32], |k, [i, j]| k.store(tile, (&i, &j), x.at((7 - &i, &j)) + 1.0));
        k.copy_async(x, tile);
        k.parallel([8, 32], |k, [i, j]| k.store(y, (&i, &j), x.at((&i, 31 - &j)) * 2.0));
    });
    assert_eq!(
        calls(&kernel),
        ["fence_proxy_async", "__syncthreads", "tensor_store_2d", "bulk_commit", "bulk_wait<0>", "__syncthreads"]
    );
    let moved = |at: i64| number((7 - at / 32) * 32 + at % 32) + 1.0;
    let y = |at: i64| 2.0 * moved(at / 32 * 32 + 31 - at % 32);
    let results = [tensor(F32, &[8, 32], moved), tensor(F32, &[8, 32], y)];
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[8, 32], number)], &results);
}

/// One role computes tiles, and another one stores them.
#[test]
fn a_role_stores_what_another_one_computes() {
    let kernel = kernel("roles", |k| {
        let rows = k.size("rows");
        let y = k.output("y", F32, (rows, 128));
        k.threads(96);
        let tile = k.shared("tile", F32, [128]);
        k.serial("t", ..rows, |k, t| {
            k.role("math", 2, |k| {
                k.parallel([128], |k, [i]| k.store(tile, (&i,), (127 - &i + t).cast(F32)));
            });
            k.role("store", 1, |k| k.copy_async(y.sub((&t, ..)), tile));
        });
    });
    let cuda = compiled(&kernel).cuda().to_string();
    assert!(cuda.contains("tensor_store_2d(&y_map, 0, t, &tile[0]);"), "{cuda}");
    for rows in [1, 2, 5] {
        let y = tensor(F32, &[rows, 128], |at| (127 - at % 128 + at / 128) as f64);
        check_all_in_schedules(&kernel, &[("rows", rows)], &[], &[y]);
    }
}

/// Each role stores its own tile: a barrier of its warps is enough.
#[test]
fn roles_store_their_own_tiles() {
    let kernel = kernel("own", |k| {
        let y = k.output("y", F32, [2, 256]);
        k.threads(96);
        let tiles = ["one", "other"].map(|name| k.shared(name, F32, [256]));
        for (warps, tile) in [2, 1].into_iter().zip(tiles) {
            k.role(if warps == 2 { "two" } else { "single" }, warps, |k| {
                k.parallel([256], |k, [i]| k.store(tile, (&i,), (255 - &i + warps).cast(F32)));
                k.copy_async(y.sub((2 - warps, ..)), tile);
            });
        }
    });
    let all = calls(&kernel);
    assert!(!all.contains(&"__syncthreads".to_string()), "{all:?}");
    assert!(all.contains(&"sync_warps<1, 64>".to_string()) && all.contains(&"__syncwarp".to_string()), "{all:?}");
    let y = tensor(F32, &[2, 256], |at| (255 - at % 256 + 2 - at / 256) as f64);
    check_all_in_schedules(&kernel, &[], &[], &[y]);
}

/// Two tiles that were written before one fence are stored after it.
#[test]
fn one_fence_is_enough_for_two_tiles() {
    let kernel = kernel("two", |k| {
        let y = k.output("y", F32, [2, 128]);
        k.threads(64);
        let tiles = ["first", "second"].map(|name| k.shared(name, F32, [128]));
        for (place, tile) in (0..).zip(tiles) {
            k.parallel([128], |k, [i]| k.store(tile, (&i,), (127 - &i + place).cast(F32)));
        }
        for (place, tile) in (0..).zip(tiles) {
            k.copy_async(y.sub((place, ..)), tile);
        }
    });
    let fences = calls(&kernel).into_iter().filter(|call| call == "fence_proxy_async_shared").count();
    assert_eq!(fences, 1, "{:?}", calls(&kernel));
    let y = tensor(F32, &[2, 128], |at| (127 - at % 128 + at / 128) as f64);
    check_all_in_schedules(&kernel, &[], &[], &[y]);
}

/// What `cp.async` brings after a fence takes another one.
#[test]
fn what_arrives_after_a_fence_takes_another_one() {
    let kernel = kernel("late", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [2, 128]);
        k.threads(64);
        let tiles = ["loaded", "computed"].map(|name| k.shared(name, F32, [128]));
        k.copy_async(tiles[0], x);
        k.parallel([128], |k, [i]| k.store(tiles[1], (&i,), (127 - &i).cast(F32)));
        k.copy_async(y.sub((1, ..)), tiles[1]);
        k.copy_async(y.sub((0, ..)), tiles[0]);
    });
    let fences = calls(&kernel).into_iter().filter(|call| call == "fence_proxy_async_shared").count();
    assert_eq!(fences, 2, "{:?}", calls(&kernel));
    let y = tensor(F32, &[2, 128], |at| if at < 128 { number(at) } else { (255 - at) as f64 });
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[128], number)], &[y]);
}

/// A tile with four dimensions, and a part of a tensor with five.
#[test]
fn tiles_of_every_rank_are_boxes() {
    for rank in 1..=5_usize {
        for n in [12, 16] {
            let shape: Vec<i64> = std::iter::repeat_n(3, rank - 1).chain([n]).collect();
            let kernel = kernel("ranks", |k| {
                let y = k.output("y", F32, shape.clone());
                k.threads(64);
                let sides: Vec<i64> = std::iter::repeat_n(2, rank - 1).chain([8]).collect();
                let tile = k.shared("tile", F32, sides);
                k.fill(y, 1.0);
                k.fill(tile, 3.0);
                let parts: Vec<Index> = std::iter::repeat_n(at(1, 2), rank - 1).chain([at(4, 8)]).collect();
                k.copy_async(y.sub(parts), tile);
            });
            assert_eq!(reasons(&kernel), Vec::<String>::new());
            let is_inside = |at: i64| (0..rank as u32 - 1).all(|d| at / n / 3_i64.pow(d) % 3 >= 1);
            let element = |at: i64| if is_inside(at) && (4..12).contains(&(at % n)) { 3.0 } else { 1.0 };
            check_all_in_schedules(&kernel, &[], &[], &[tensor(F32, &shape, element)]);
        }
    }
}

/// So many tiles, the rows to which they go, in expressions and in numbers, and the opcodes that nobody misses at an end.
type Case = (usize, fn(Expr) -> Expr, fn(i64) -> i64, &'static [&'static str]);

/// In the first iteration, which NVRTC writes out, nothing has been copied that the wait is for; the last copy to a row is one that
/// no other follows. With one tile, the waits for copies to the same row would be needless: the virtual GPU reads and writes a box
/// at once.
#[test]
fn every_wait_fence_commit_and_barrier_is_needed() {
    let cases: [Case; 3] = [
        (1, |row| row, |row| row, &["cp.async.bulk.wait_group.read", "bar.sync"]),
        (2, |row| row, |row| row, &[]),
        (2, |row| row % 3, |row| row % 3, &["cp.async.bulk.wait_group", "cp.async.bulk.commit_group"]),
    ];
    for (tiles, to, rows, at_ends) in cases {
        let kernel = repeated(tiles, to);
        let launches = [1, 2, 5].map(|turns| launch_of_repeated(tiles, rows, turns));
        let Some(report) = mutated(&kernel, &launches) else { return };
        assert!(are_found(&report, at_ends), "{tiles} tiles: {report:#?}");
    }
}

/// Tiles of a grid of CTAs, from the sums of a product.
#[test]
fn the_sums_of_a_product_go_through_shared_memory() {
    let product = kernel("epilogue", |k| {
        let (m, n, depth) = (k.size("m"), k.size("n").multiple_of(8), k.size("depth").multiple_of(8));
        let a = k.input("a", F16, (m, depth));
        let b = k.input("b", F16, (depth, n));
        let c = k.output("c", F16, (m, n));
        let [column, row] = k.grid([n.ceil_div(64), m.ceil_div(64)]);
        k.threads(128);
        let [left, right, tile] = ["left", "right", "tile"].map(|name| k.shared(name, F16, [64, 64]));
        let sums = k.fragment("sums", F32, [64, 64]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..depth.ceil_div(64), Stages::of(2), |k, t| {
            k.copy(left, a.sub((at(row * 64, 64), at(&t * 64, 64))));
            k.copy(right, b.sub((at(&t * 64, 64), at(column * 64, 64))));
            k.gemm(sums, left, right);
        });
        k.parallel([64, 64], |k, [i, j]| k.store(tile, (&i, &j), sums.at((&i, &j)).cast(F16)));
        k.copy_async(c.sub((at(row * 64, 64), at(column * 64, 64))), tile);
    });
    let boxes = told(&product, "a box of 64 x 64 elements, the 128-byte swizzle");
    assert_eq!(boxes.len(), 3, "{boxes:?}");
    for (m, n, depth) in [(1, 8, 8), (64, 64, 64), (70, 136, 72), (129, 200, 8)] {
        let (inputs, c) = product_of(m, n, depth);
        let c = tensor(F16, &[m, n], |at| c.number(at).expect("a number"));
        check_all_in_schedules(&product, &[("m", m), ("n", n), ("depth", depth)], &inputs, &[c]);
    }
}

#[test]
fn what_the_copy_engine_cannot_do_is_done_at_once() {
    let rows = kernel("rows", |k| {
        let y = k.output("y", F32, [8, 30]);
        k.threads(64);
        let tile = k.shared("tile", F32, [8, 30]);
        k.fill(tile, 3.0);
        k.copy_async(y, tile);
    });
    let apart = "neighbours of dimension 0 of `y` are 30 elements apart; accepted: multiples of 4 elements";
    assert_eq!(reasons(&rows), [apart]);
    check_all_in_schedules(&rows, &[], &[], &[tensor(F32, &[8, 30], |_| 3.0)]);
    let few = kernel("few", |k| {
        let y = k.output("y", F32, [8, 32]);
        k.threads(16);
        let tile = k.shared("tile", F32, [8, 32]);
        k.fill(tile, 3.0);
        k.copy_async(y, tile);
    });
    let no_warp =
        "a CTA of 16 threads has no whole warp to elect the one that issues copies; accepted: 32 threads or more";
    assert_eq!(reasons(&few), [no_warp]);
    check_all_in_schedules(&few, &[], &[], &[tensor(F32, &[8, 32], |_| 3.0)]);
}

/// The stages of a loop are filled ahead, while the engine would still read them.
#[test]
fn a_tile_that_a_loop_fills_ahead_is_stored_by_threads() {
    let kernel = kernel("moved", |k| {
        let rows = k.size("rows");
        let x = k.input("x", F32, (rows, 128));
        let y = k.output("y", F32, (rows, 128));
        k.threads(64);
        let tile = k.shared("tile", F32, [128]);
        k.pipelined("t", ..rows, 3, |k, t| {
            k.copy(tile, x.sub((&t, ..)));
            k.copy_async(y.sub((&t, ..)), tile);
        });
    });
    let stages = "`tile` has a copy for each stage of a pipelined loop; accepted: buffers that no loop fills ahead";
    assert_eq!(reasons(&kernel), [stages]);
    for rows in [1, 2, 5] {
        let x = tensor(F32, &[rows, 128], number);
        check_all_in_schedules(&kernel, &[("rows", rows)], std::slice::from_ref(&x), std::slice::from_ref(&x));
    }
}

/// The notes of the error for a variant that a copy cannot have.
fn refused(variant: &str, copy: impl FnOnce(&mut KernelBuilder, Buffer) -> [Region; 2]) -> Vec<String> {
    let kernel = kernel("refused", |k| {
        let y = k.output("y", F32, [8, 32]);
        k.threads(64);
        let [to, from] = copy(k, y);
        k.copy_async(to, from).variant(variant);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("a variant that is not possible");
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.code, "P0402");
    finding.notes.clone()
}

#[test]
fn a_variant_that_is_asked_for_is_had_or_an_error() {
    let from_tile = |k: &mut KernelBuilder, y: Buffer| {
        let tile = k.shared("tile", F32, [8, 32]);
        k.fill(tile, 3.0);
        [y.into(), tile.into()]
    };
    assert_eq!(
        refused("cp_async", from_tile),
        ["cp_async: the copy does not fill shared memory; accepted: copies from tensors to shared memory"]
    );
    let to_tile = |k: &mut KernelBuilder, _: Buffer| {
        let x = k.input("x", F32, [8, 32]);
        [k.shared("tile", F32, [8, 32]).into(), x.into()]
    };
    assert_eq!(
        refused("tma", to_tile),
        [
            "tma: the op does not go from shared memory to a tensor; accepted: from shared memory to a tensor, or the variant of a pipelined loop that fills shared memory"
        ]
    );
    let padded = |k: &mut KernelBuilder, y: Buffer| {
        let tile = k.shared("tile", F32, "S[(8,32):(33,1)]".parse::<Layout>().expect("a layout"));
        k.fill(tile, 3.0);
        [y.into(), tile.into()]
    };
    let notes = refused("tma", padded);
    assert!(notes[0].starts_with("tma: no box of `y` matches `tile`: "), "{notes:?}");
}

/// CTAs add their tiles to one, for so many threads.
fn summed(dtype: DType, threads: i64, variant: &str) -> Kernel {
    kernel("summed", |k| {
        let rows = k.size("rows");
        let x = k.input("x", dtype, (rows, 128));
        let y = k.accumulator("y", dtype, [128]);
        let [bx] = k.grid([rows.ceil_div(4)]);
        k.threads(threads);
        let tile = k.shared("tile", dtype, [128]);
        k.serial("t", 0..4, |k, t| {
            k.parallel([128], |k, [i]| k.store(tile, (&i,), x.at((bx * 4 + t, 127 - &i))));
            let added = k.atomic_add(y, tile);
            if !variant.is_empty() {
                added.variant(variant);
            }
        });
    })
}

#[test]
fn tiles_are_added_by_the_copy_engine_or_by_threads() {
    for dtype in [F32, F16, BF16, I32, U32, I64, U64, F64] {
        for (threads, variant) in [(64, ""), (64, "elements"), (16, "")] {
            let kernel = summed(dtype, threads, variant);
            let by_engine = calls(&kernel).contains(&"tensor_add_1d".to_string());
            assert_eq!(by_engine, threads == 64 && variant.is_empty(), "{dtype}\n{}", compiled(&kernel).cuda());
            for rows in [4, 8, 20] {
                let x = |at: i64| (at * 7 % 13) as f64;
                let y = |i: i64| (0..rows).map(|row| x(row * 128 + 127 - i)).sum();
                let (x, y) = (tensor(dtype, &[rows, 128], x), tensor(dtype, &[128], y));
                check_all_in_schedules(&kernel, &[("rows", rows)], &[x], &[y]);
            }
        }
    }
}

/// Additions to the same elements may come in any order, so only the tile is waited for.
#[test]
fn additions_do_not_wait_for_each_other() {
    let kernel = summed(F32, 64, "tma");
    let in_order = [
        "bulk_wait_read<0>",
        "__syncthreads",
        "fence_proxy_async_shared",
        "__syncthreads",
        "tensor_add_1d",
        "bulk_commit",
        "bulk_wait_read<0>",
    ];
    assert_eq!(calls(&kernel), in_order);
    let launch = |rows: i64| {
        let y = |i: i64| (0..rows).map(|row| number(row * 128 + 127 - i)).sum();
        (vec![("rows", rows)], vec![tensor(F32, &[rows, 128], number)], tensor(F32, &[128], y))
    };
    let Some(report) = mutated(&kernel, &[launch(4), launch(8)]) else { return };
    assert!(are_found(&report, &["cp.async.bulk.wait_group.read", "bar.sync"]), "{report:#?}");
}

/// An addition comes after a copy to the same elements, and a copy after additions.
#[test]
fn copies_and_additions_to_the_same_elements_are_in_order() {
    let kernel = kernel("both", |k| {
        let y = k.output("y", I32, [3, 64]);
        k.threads(64);
        let tile = k.shared("tile", I32, [64]);
        let more = k.shared("more", I32, [64]);
        k.parallel([64], |k, [i]| k.store(tile, (&i,), (63 - &i).cast(I32)));
        k.fill(more, 5);
        for row in 0..3 {
            k.copy_async(y.sub((row, ..)), tile);
            k.atomic_add(y.sub((row, ..)), more);
            k.atomic_add(y.sub((row, ..)), tile);
        }
        k.copy_async(y.sub((2, ..)), more);
    });
    let y = tensor(I32, &[3, 64], |at| if at < 128 { (2 * (63 - at % 64) + 5) as f64 } else { 5.0 });
    check_all_in_schedules(&kernel, &[], &[], &[y]);
}

#[test]
fn other_memory_is_not_added_to_memory() {
    let kernel = kernel("memory", |k| {
        let x = k.input("x", I32, [32]);
        let y = k.accumulator("y", I32, [32]);
        k.atomic_add(y, x);
    });
    let found = compile(kernel, &Options::new(Target::Sm100a)).expect_err("memory is added to memory");
    assert_eq!(found[0].code, "K0262");
    let fragment = kernel_of_fragment("tma");
    let found = compile(fragment, &Options::new(Target::Sm100a)).expect_err("a fragment is not in shared memory");
    assert_eq!(
        found[0].notes,
        [
            "tma: the op does not go from shared memory to a tensor; accepted: from shared memory to a tensor, or the variant of a pipelined loop that fills shared memory"
        ]
    );
}

fn kernel_of_fragment(variant: &str) -> Kernel {
    kernel("fragment", |k| {
        let y = k.accumulator("y", I32, [32]);
        let held = k.fragment("held", I32, [32]);
        k.fill(held, 1);
        k.atomic_add(y, held).variant(variant);
    })
}

/// Three tiles that are written before all copies, so that one fence serves them, and what a tensor holds at the end.
fn with_three_tiles(threads: i64, body: impl FnOnce(&mut KernelBuilder, [Buffer; 3], [Buffer; 2])) -> Kernel {
    kernel("three", |k| {
        let tensors = ["y", "z"].map(|name| k.inout(name, F32, [2, 128]));
        let out = k.output("out", F32, [2, 128]);
        k.threads(threads);
        let tiles = ["a", "b", "c"].map(|name| k.shared(name, F32, [128]));
        for (value, tile) in (1..).zip(tiles) {
            k.fill(tile, f64::from(value));
        }
        body(k, tiles, tensors);
        k.parallel([2, 128], |k, [i, j]| k.store(out, (&i, &j), tensors[0].at((&i, 127 - &j))));
    })
}

fn check_three_tiles(kernel: &Kernel, [y, z]: [[f64; 2]; 2]) {
    let rows = |of: [f64; 2]| tensor(F32, &[2, 128], move |at| of[at as usize / 128]);
    let before = tensor(F32, &[2, 128], |_| 0.0);
    check_all_in_schedules(kernel, &[], &[before.clone(), before], &[rows(y), rows(z), rows(y)]);
}

/// The thread that stores has waited for its copy; the others have not, and read another tensor later.
#[test]
fn a_wait_of_one_thread_is_not_one_of_all() {
    let kernel = with_three_tiles(64, |k, [a, b, c], [y, z]| {
        k.copy_async(y.sub((0, ..)), a);
        k.copy_async(z.sub((0, ..)), b);
        k.copy_async(z.sub((0, ..)), c);
    });
    let waits: Vec<String> = calls(&kernel).into_iter().filter(|call| call.starts_with("bulk_wait<")).collect();
    assert_eq!(waits, ["bulk_wait<0>", "bulk_wait<2>"]);
    check_three_tiles(&kernel, [[1.0, 0.0], [3.0, 0.0]]);
}

#[test]
fn a_wait_of_a_role_is_not_one_of_all() {
    let kernel = with_three_tiles(64, |k, [a, b, c], [y, z]| {
        k.role("one", 1, |k| k.copy_async(y.sub((0, ..)), a));
        k.role("other", 1, |k| {
            k.copy_async(z.sub((0, ..)), b);
            k.copy_async(z.sub((0, ..)), c);
        });
    });
    check_three_tiles(&kernel, [[1.0, 0.0], [3.0, 0.0]]);
}

/// Copies of two threads, of which one has a later group and the other has none.
#[test]
fn copies_of_several_threads_are_all_waited_for() {
    for turned in [false, true] {
        let kernel = with_three_tiles(64, |k, [a, b, c], [y, z]| {
            let first = |k: &mut KernelBuilder| {
                k.role("one", 1, |k| k.copy_async(y.sub((0, ..)), a));
            };
            let rest = |k: &mut KernelBuilder| {
                k.role("other", 1, |k| {
                    k.copy_async(y.sub((1, ..)), b);
                    k.copy_async(z.sub((0, ..)), c);
                });
            };
            if turned {
                rest(k);
                first(k);
            } else {
                first(k);
                rest(k);
            }
        });
        check_three_tiles(&kernel, [[1.0, 2.0], [3.0, 0.0]]);
    }
}

/// The last copy is over the elements of two others, of which its thread has started one.
#[test]
fn a_copy_over_those_of_several_threads_waits_for_all() {
    let kernel = kernel("over", |k| {
        let z = k.output("z", F32, [2, 128]);
        k.threads(64);
        let [a, b] = ["a", "b"].map(|name| k.shared(name, F32, [128]));
        let both = k.shared("both", F32, [2, 128]);
        k.fill(a, 1.0);
        k.fill(b, 2.0);
        k.parallel([2, 128], |k, [i, j]| k.store(both, (&i, &j), (1 - &i + 127 - j).cast(F32)));
        k.role("one", 1, |k| k.copy_async(z.sub((0, ..)), a));
        k.role("other", 1, |k| {
            k.copy_async(z.sub((1, ..)), b);
            k.copy_async(z, both);
        });
    });
    assert!(calls(&kernel).windows(2).any(|pair| pair == ["bulk_wait<0>", "__syncthreads"]), "{:?}", calls(&kernel));
    let z = tensor(F32, &[2, 128], |at| (1 - at / 128 + 127 - at % 128) as f64);
    check_all_in_schedules(&kernel, &[], &[], &[z]);
}

/// Each role waits for its own copies, so the loops of two roles run at the same time.
#[test]
fn roles_wait_for_their_own_copies_alone() {
    let kernel = kernel("loops", |k| {
        let rows = k.size("rows");
        let y = k.output("y", F32, (2, rows, 128));
        k.threads(96);
        for (at_role, (name, warps)) in (0..).zip([("two", 2), ("single", 1)]) {
            let tile = k.shared(&format!("of_{name}"), F32, [128]);
            k.serial("t", ..rows, |k, t| {
                k.role(name, warps, |k| {
                    k.parallel([128], |k, [i]| k.store(tile, (&i,), (127 - &i + t + at_role).cast(F32)));
                    k.copy_async(y.sub((at_role, t, ..)), tile);
                });
            });
        }
    });
    assert!(!calls(&kernel).contains(&"__syncthreads".to_string()), "{:?}", calls(&kernel));
    for rows in [1, 2, 5] {
        let y = |at: i64| (127 - at % 128 + at / 128 % rows + at / (128 * rows)) as f64;
        check_all_in_schedules(&kernel, &[("rows", rows)], &[], &[tensor(F32, &[2, rows, 128], y)]);
    }
}

/// A role that has waited for its copy does not wait again, and the other threads still do.
#[test]
fn a_role_waits_once() {
    let kernel = kernel("once", |k| {
        let x = k.input("x", F32, [128]);
        let y = k.output("y", F32, [3, 128]);
        k.threads(96);
        let tile = k.shared("tile", F32, [128]);
        k.role("two", 2, |k| {
            k.copy_async(tile, x);
            for row in 0..2 {
                k.parallel([128], |k, [i]| k.store(y, (row, &i), tile.at((127 - &i,)) + row as f64));
            }
        });
        k.parallel([128], |k, [i]| k.store(y, (2, &i), tile.at((127 - &i,))));
    });
    let cuda = compiled(&kernel).cuda().to_string();
    let waits = cuda.lines().filter(|line| line.trim_start().starts_with("cp_async_wait<")).count();
    assert_eq!(waits, 2, "{cuda}");
    let y = tensor(F32, &[3, 128], |at| number(127 - at % 128) + f64::from(at / 128 == 1));
    check_all_in_schedules(&kernel, &[], &[tensor(F32, &[128], number)], &[y]);
}
