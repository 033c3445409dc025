//! Shared buffers for which only a shape was written: the layouts that the compiler chooses, and transposed views.

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::layout::banks::RowLayout;
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("it compiles")
}

fn shared(kernel: &Kernel) -> Vec<String> {
    shared_of(&compiled(kernel))
}

/// The lines of the stage `tile` that declare shared buffers.
fn shared_of(artifact: &Artifact) -> Vec<String> {
    let text = artifact.stage(Stage::Tile);
    text.lines().filter(|line| line.trim_start().starts_with("shared")).map(|line| line.trim().to_string()).collect()
}

/// The product of an `m` x `k_size` and a `k_size` x `n` matrix, through shared memory.
fn product(m: i64, n: i64, k_size: i64) -> Kernel {
    kernel("product", |k| {
        let (a, b) = (k.input("a", F16, [m, k_size]), k.input("b", F16, [k_size, n]));
        let c = k.output("c", F32, [m, n]);
        k.threads(128);
        let (left, right) = (k.shared("left", F16, [m, k_size]), k.shared("right", F16, [k_size, n]));
        let sums = k.fragment("sums", F32, [m, n]);
        k.copy(left, a);
        k.copy(right, b);
        k.fill(sums, 0.0);
        k.gemm(sums, left, right);
        k.copy(c, sums);
    })
}

/// A transposed copy by two parallel loops, through a tile that `declare` declares.
fn turned(dtype: DType, declare: impl FnOnce(&mut KernelBuilder) -> Buffer) -> Kernel {
    kernel("turned", |k| {
        let (a, b) = (k.input("a", dtype, [32, 64]), k.output("b", dtype, [64, 32]));
        k.threads(128);
        let tile = declare(k);
        k.parallel([32, 64], |k, [i, j]| k.store(tile, (i, j), a.at((i, j))));
        k.parallel([64, 32], |k, [i, j]| k.store(b, (i, j), tile.at((j, i))));
    })
}

/// The elements of a matrix of 32 x 64 numbers, and those of its transpose.
fn matrix_and_transpose(dtype: DType) -> [tilewright::runtime::HostTensor; 2] {
    let value = |at: i64| (at % 100) as f64;
    [tensor(dtype, &[32, 64], value), tensor(dtype, &[64, 32], |at| value(at % 32 * 64 + at / 32))]
}

#[test]
fn rows_of_the_factors_of_a_product_are_16_bytes_apart_from_the_banks_of_their_neighbours() {
    let expected =
        ["shared left: f16(64,64) = S[(64,64):(72@m,1@m)]", "shared right: f16(64,128) = S[(64,128):(136@m,1@m)]"];
    let hopper = compile(product(64, 128, 64), &Options::new(Target::Sm90a)).expect("it compiles");
    assert_eq!(shared_of(&hopper), expected);
}

/// With the even and odd words of B apart, a lane has four neighbouring sums.
#[test]
fn sums_are_stored_in_16_bytes_where_threads_load_32() {
    let [left, right] = ["left: f16(64,64) = S[(64,64)", "right: f16(64,128) = S[(64,8,4,2,2)"];
    let expected = [format!("shared {left}:(72@m,1@m)]"), format!("shared {right}:(136@m,8@m,2@m,64@m,1@m)]")];
    let kernel = product(64, 128, 64);
    assert_eq!(shared(&kernel), expected);
    let cuda = compiled(&kernel).cuda().to_string();
    assert!(cuda.contains("write c: 16 x 16 B, 256 sectors (ideal 256)"), "{cuda}");
}

/// Sums that are the left factor of another product are where that product needs them.
#[test]
fn words_are_not_apart_where_the_sums_are_factors() {
    let chained = kernel("chained", |k| {
        let (a, b) = (k.input("a", F16, [64, 64]), k.input("b", F16, [64, 64]));
        let (c, d) = (k.input("c", F16, [64, 64]), k.output("d", F32, [64, 64]));
        k.threads(128);
        let [first, second, third] = ["first", "second", "third"].map(|name| k.shared(name, F16, [64, 64]));
        let (sums, sums_of_sums) = (k.fragment("sums", F32, [64, 64]), k.fragment("sums_of_sums", F32, [64, 64]));
        let factors = k.fragment("factors", F16, [64, 64]);
        [(first, a), (second, b), (third, c)].into_iter().for_each(|(tile, from)| {
            k.copy(tile, from);
        });
        let rows = Gemm { policy: WarpPolicy::FullRow, clear: true, ..Gemm::PLAIN };
        k.gemm(sums, first, second).with(rows);
        k.parallel([64, 64], |k, [i, j]| k.store(factors, (i, j), sums.at((i, j)).cast(F16)));
        k.gemm(sums_of_sums, factors, third).with(rows);
        k.parallel([64, 64], |k, [i, j]| k.store(d, (i, j), sums_of_sums.at((i, j))));
    });
    assert_eq!(shared(&chained)[1], "shared second: f16(64,64) = S[(64,64):(72@m,1@m)]");
    let unit = |at: i64| f64::from(at / 64 == (at % 64 * 5 + 3) % 64);
    let number = |at: i64| ((at * 7 + at / 5) % 11 - 5) as f64;
    // Rows of `c`, taken by two permutations.
    let d = tensor(F32, &[64, 64], |at| {
        number((0..2).fold(at / 64, |row, _| (row - 3) * 13 % 64 + 64) % 64 * 64 + at % 64)
    });
    let [a, b] = [unit, unit].map(|unit| tensor(F16, &[64, 64], unit));
    computes(&chained, &[a, b, tensor(F16, &[64, 64], number)], &[d]);
}

/// Every number of columns and warps, stages of a deeper tile, and loops and copies that store.
#[test]
fn products_with_words_apart_are_right() {
    let cases =
        [(16, 16, 32), (64, 32, 64), (32, 48, 32), (64, 96, 128), (128, 160, 128), (32, 256, 128), (64, 24, 32)];
    for (m, n, threads) in cases {
        for copies in [false, true] {
            let kernel = kernel("staged", |k| {
                let (a, b) = (k.input("a", F16, [m, 64]), k.input("b", F16, [64, n]));
                let c = k.output("c", F32, [m, n]);
                k.threads(threads);
                let (left, right) = (k.shared("left", F16, [m, 64]), k.shared("right", F16, [2, 32, n]));
                let sums = k.fragment("sums", F32, [m, n]);
                k.copy(left, a);
                k.fill(sums, 0.0);
                for stage in 0..2 {
                    k.copy(right.sub((stage, .., ..)), b.sub((at(stage * 32, 32), ..)));
                    k.gemm(sums, left.sub((.., at(stage * 32, 32))), right.sub((stage, .., ..)));
                }
                if copies {
                    k.copy(c, sums);
                } else {
                    k.parallel([m, n], |k, [i, j]| k.store(c, (i, j), sums.at((i, j))));
                }
            });
            let number = |at: i64| ((at * 7 + at / 5) % 5 - 2) as f64;
            let element = |at: i64| (0..64).map(|k| number(at / n * 64 + k) * number(k * n + at % n)).sum();
            let [a, b] = [[m, 64], [64, n]].map(|shape| tensor(F16, &shape, number));
            computes(&kernel, &[a, b], &[tensor(F32, &[m, n], element)]);
        }
    }
}

/// Eight lanes store two rows at a time, and no distance between these suits eight rows of 16 bytes too.
#[test]
fn rows_of_64_bytes_are_swizzled() {
    let expected = "shared left: f16(64,32) = swizzle(M=3,B=2,S=3) o S[(64,32):(32@m,1@m)]";
    assert_eq!(shared(&product(64, 128, 32))[0], expected);
}

#[test]
fn a_tile_that_loops_read_across_has_an_odd_pitch() {
    let expected = ["shared tile: f32(32,64) = S[(32,64):(65@m,1@m)]"];
    assert_eq!(shared(&turned(F32, |k| k.shared("tile", F32, [32, 64]))), expected);
}

/// A product whose rows are padded, and one whose rows are swizzled.
#[test]
fn products_are_right_whatever_the_layout() {
    for k_size in [64, 32] {
        let number = |at: i64| ((at * 7 + at / 5) % 5 - 2) as f64;
        let element = |i: i64, j: i64| (0..k_size).map(|k| number(i * k_size + k) * number(k * 128 + j)).sum();
        let (a, b) = (tensor(F16, &[64, k_size], number), tensor(F16, &[k_size, 128], number));
        let c = tensor(F32, &[64, 128], |at| element(at / 128, at % 128));
        computes(&product(64, 128, k_size), &[a, b], &[c]);
    }
}

#[test]
fn elements_arrive_whatever_the_layout() {
    for dtype in [U8, F16, F32, F64] {
        let [given, expected] = matrix_and_transpose(dtype);
        let kernel = turned(dtype, |k| k.shared("tile", dtype, [32, 64]));
        computes(&kernel, &[given], &[expected]);
    }
}

/// The cost of all ops, as their plans give it.
fn cost(kernel: &Kernel) -> i64 {
    compiled(kernel).plans().iter().map(|plan| plan.facts().expect("a plan").cost()).sum()
}

/// A transposed copy by two copies, through a tile that `declare` declares.
fn copied(dtype: DType, declare: impl FnOnce(&mut KernelBuilder) -> Buffer) -> Kernel {
    kernel("copied", |k| {
        let (a, b) = (k.input("a", dtype, [32, 64]), k.output("b", dtype, [64, 32]));
        k.threads(64);
        let tile = declare(k);
        let columns = k.transposed("columns", tile, [1, 0]);
        k.copy(tile, a);
        k.copy(b, columns);
    })
}

#[test]
fn no_layout_of_rows_is_cheaper_than_the_one_chosen() {
    type Through = fn(DType, &dyn Fn(&mut KernelBuilder) -> Buffer) -> Kernel;
    let by_loops: Through = |dtype, declare| turned(dtype, declare);
    let by_copies: Through = |dtype, declare| copied(dtype, declare);
    for (dtype, through) in [U8, F16, F32, F64].into_iter().flat_map(|dtype| [(dtype, by_loops), (dtype, by_copies)]) {
        let chosen = through(dtype, &|k| k.shared("tile", dtype, [32, 64]));
        for rows in RowLayout::all(64 * dtype.bytes(), 32, dtype.bytes()) {
            let layout = rows.layout(&[32, 64], dtype.bytes()).expect("a layout");
            let given = through(dtype, &|k| k.shared("tile", dtype, ([32, 64], layout.clone())));
            let [chosen, given] = [&chosen, &given].map(cost);
            assert!(chosen <= given, "{dtype}, {rows}: {given}, chosen: {chosen}");
        }
    }
}

#[test]
fn a_row_major_tile_stays_dense() {
    let expected = ["shared tile: f32(32,64) = S[(32,64):(64@m,1@m)]"];
    assert_eq!(shared(&turned(F32, |k| k.shared("tile", F32, [32, 64].row_major()))), expected);
    assert_eq!(shared(&turned(F32, |k| k.shared("tile", F32, vec![32, 64].row_major()))), expected);
}

#[test]
fn a_tile_with_a_view_stays_dense() {
    let viewed = turned(F32, |k| {
        let tile = k.shared("tile", F32, [32, 64]);
        k.view("flat", tile, [2048]);
        tile
    });
    let expected =
        ["shared tile: f32(32,64) = S[(32,64):(64@m,1@m)]", "shared flat: f32(2048) view of tile = S[2048:1@m]"];
    assert_eq!(shared(&viewed), expected);
}

#[test]
fn a_tile_that_is_only_copied_takes_no_more_than_its_elements() {
    let copied = kernel("copied", |k| {
        let (a, b) = (k.input("a", F32, [32, 64]), k.output("b", F32, [32, 64]));
        k.threads(64);
        let tile = k.shared("tile", F32, [32, 64]);
        k.copy(tile, a);
        k.copy(b, tile);
    });
    assert_eq!(shared(&copied), ["shared tile: f32(32,64) = S[(32,64):(64@m,1@m)]"]);
}

#[test]
fn a_tile_that_fills_shared_memory_is_swizzled() {
    let full = kernel("full", |k| {
        let (a, b) = (k.input("a", F32, [896, 64]), k.output("b", F32, [64, 896]));
        k.threads(256);
        let tile = k.shared("tile", F32, [896, 64]);
        k.parallel([896, 64], |k, [i, j]| k.store(tile, (i, j), a.at((i, j))));
        k.parallel([64, 896], |k, [i, j]| k.store(b, (i, j), tile.at((j, i))));
    });
    let expected = "\
tile: swizzle(M=1,B=4,S=8) o S[(896,64):(64@m,1@m)]
  because: swizzled in units of 8 bytes: a warp's accesses take 1312 wavefronts; row-major, 7552 wavefronts
";
    assert_eq!(compiled(&full).why("tile").unwrap(), expected);
}

#[test]
fn the_reason_is_told() {
    let artifact = compiled(&turned(F32, |k| k.shared("tile", F32, [32, 64])));
    let expected = "\
tile: S[(32,64):(65@m,1@m)]
  because: rows padded by 4 bytes: a warp's accesses take 48 wavefronts; row-major, 192 wavefronts
";
    assert_eq!(artifact.why("tile").unwrap(), expected);
}

#[test]
fn a_transposed_view_follows_the_layout_of_its_buffer() {
    let through = kernel("through", |k| {
        let (a, b) = (k.input("a", F32, [32, 64]), k.output("b", F32, [64, 32]));
        k.threads(64);
        let tile = k.shared("tile", F32, [32, 64]);
        let columns = k.transposed("columns", tile, [1, 0]);
        k.copy(tile, a);
        k.copy(b, columns);
    });
    let expected = [
        "shared tile: f32(32,64) = S[(32,64):(65@m,1@m)]",
        "shared columns: f32(64,32) view of tile = S[(64,32):(1@m,65@m)]",
    ];
    assert_eq!(shared(&through), expected);
    let [given, expected] = matrix_and_transpose(F32);
    computes(&through, &[given], &[expected]);
}

#[test]
fn views_of_transposed_views_follow_too() {
    let twice = kernel("twice", |k| {
        let (a, b) = (k.input("a", F32, [2, 16, 64]), k.output("b", F32, [64, 16, 2]));
        k.threads(64);
        let tile = k.shared("tile", F32, [2, 16, 64]);
        let once = k.transposed("once", tile, [2, 0, 1]);
        let again = k.transposed("again", once, [0, 2, 1]);
        k.copy(tile, a);
        k.copy(b, again);
    });
    let value = |i: i64, j: i64, l: i64| (i * 1024 + j * 64 + l) as f64;
    let given = tensor(F32, &[2, 16, 64], |at| at as f64);
    let expected = tensor(F32, &[64, 16, 2], |at| value(at % 2, at / 2 % 16, at / 32));
    computes(&twice, &[given], &[expected]);
}

#[test]
fn a_parameter_is_viewed_with_its_dimensions_in_another_order() {
    let rotated = kernel("rotated", |k| {
        let (n, m) = (k.size("n").max(64), k.size("m").max(64));
        let a = k.input("a", F32, (n, m, 4));
        let b = k.output("b", F32, (4, n, m));
        let first = k.transposed("first", a, [2, 0, 1]);
        k.threads(64);
        k.parallel([4, 64, 64], |k, [i, j, l]| k.store(b, (i, j, l), first.at((i, j, l))));
    });
    let (n, m) = (5, 7);
    let given = tensor(F32, &[n, m, 4], |at| at as f64);
    let expected = tensor(F32, &[4, n, m], |at| (at % 35 * 4 + at / 35) as f64);
    tilewright_tests::pages::check(
        &rotated,
        &[("n", n), ("m", m)],
        &[given],
        &[expected],
        tilewright::runtime::Tolerance::EXACT,
    );
}

/// With sizes known at launch, lanes that go along the rows of a dense tile go across those of `x`.
#[test]
fn a_tile_is_padded_so_that_lanes_may_go_along_a_tensor() {
    let turned = kernel("turned", |k| {
        let (m, n) = (k.size("m").max(1024), k.size("n").max(1024));
        let (x, y) = (k.input("x", F32, (m, n)), k.output("y", F32, (n, m)));
        k.threads(128);
        let [c, r] = k.grid([n.ceil_div(32), m.ceil_div(32)]);
        let tile = k.shared("tile", F32, [32, 32]);
        let columns = k.transposed("columns", x, [1, 0]);
        k.copy(tile, columns.sub((at(c * 32, 32), at(r * 32, 32))));
        k.copy(y.sub((at(c * 32, 32), at(r * 32, 32))), tile);
    });
    assert_eq!(shared(&turned), ["shared tile: f32(32,32) = S[(32,32):(33@m,1@m)]"]);
}
