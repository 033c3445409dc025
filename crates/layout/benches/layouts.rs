//! How long the operations on layouts take. `cargo xtask bench` runs it and prints the medians beside their goals.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright_layout::conversion::find_conversion;
use tilewright_layout::{Layout, TileLayout};

/// The layouts of the documents, with a shape that groups each, an inner tile's shape and a region to slice.
const SEEDS: [(&str, &str, &[i64], [i64; 2]); 5] = [
    ("register_tile", "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid", &[8, 16], [4, 8]),
    ("tiled_memory", "S[(4,2,2,4):(16,4,8,1)]", &[8, 8], [2, 4]),
    ("accumulator", "S[(2,128,112):(112@TCol,1@TLane,1@TCol)]", &[256, 112], [128, 112]),
    ("scale_factors", "S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane]", &[32, 4], [16, 2]),
    ("mesh", "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]", &[8, 8], [4, 8]),
];

fn operations(c: &mut Criterion) {
    for (name, text, shape, region) in SEEDS {
        let layout: TileLayout = text.parse().expect("a seed layout");
        let mut group = c.benchmark_group(name);
        group.sample_size(20).warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(150));
        group.bench_function("parse", |b| b.iter(|| black_box(text).parse::<TileLayout>()));
        group.bench_function("print", |b| b.iter(|| black_box(&layout).to_string()));
        group.bench_function("canonicalize", |b| b.iter(|| black_box(&layout).canonicalize()));
        group.bench_function("group", |b| b.iter(|| black_box(&layout).group(shape)));
        let (outer, ranges) = (TileLayout::row_major(&[2, 2]).expect("small"), region.map(|extent| 0..extent));
        group.bench_function("tile", |b| b.iter(|| black_box(&layout).tile(shape, &outer, &[2, 2])));
        group.bench_function("slice", |b| b.iter(|| black_box(&layout).slice(shape, &ranges)));
        group.bench_function("apply", |b| b.iter(|| black_box(&layout).apply(black_box(57))));
        group.finish();
    }
}

fn questions(c: &mut Criterion) {
    let parse = |text: &str| text.parse::<TileLayout>().expect("a fragment");
    let rows = parse("S[(128,256):(1@tx,1@reg)]");
    let quads = parse("S[(4,2,8,128,4):(32@tx,128@reg,4@tx,1@reg,1@tx)]");
    let everywhere = parse("S[32768:1@reg] + R[128:1@tx]");
    let mut group = c.benchmark_group("questions");
    group.sample_size(20).warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(200));
    group.bench_function("contains_128x256", |b| {
        b.iter(|| (black_box(&rows).contains(&quads), everywhere.contains(black_box(&quads))));
    });
    let accumulator = parse("S[(4,2,8,8,4,2):(1@warpid,2@reg,4@laneid,4@reg,1@laneid,1@reg)]");
    let rows = parse("S[(64,2,32):(1@tx,64@tx,1@reg)]");
    group.bench_function("find_conversion_64x64", |b| b.iter(|| find_conversion(black_box(&accumulator), &rows, 32)));
    let matrix = parse("S[(8192,8192):(1,8192)]");
    group.bench_function("injective_8192x8192", |b| b.iter(|| black_box(&matrix).is_injective()));
    let swizzled: Layout = "swizzle(M=3,B=3,S=3) o S[(64,64):(64,1)]".parse().expect("a swizzle");
    group.bench_function("swizzle_vector_width_64x64", |b| {
        b.iter(|| black_box(&swizzled).vector_width(&tilewright_layout::axis::M));
    });
    group.finish();
}

criterion_group!(benches, operations, questions);
criterion_main!(benches);
