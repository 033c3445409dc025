//! The library's `matmul`, in 66 shapes, most of which tiles do not divide: every pair of a dtype, a way to store the factors, and
//! so on.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, op_traffic, run_watched};
use tilewright::vgpu;
use tilewright_kernels::{Config, KernelEntry, MatmulConfig, find};

use super::{built_or_skipped, is_within_by};

/// Rows, columns, and the summed extent.
const SHAPES: [[i64; 3]; 66] = [
    [1, 1, 1],
    [1, 8, 16],
    [2, 3, 5],
    [7, 11, 13],
    [8, 8, 8],
    [16, 16, 16],
    [17, 31, 37],
    [1, 256, 64],
    [256, 1, 64],
    [32, 400, 3],
    [400, 3, 32],
    [64, 64, 64],
    [127, 127, 127],
    [128, 128, 128],
    [129, 129, 129],
    [128, 64, 1],
    [64, 128, 8],
    [144, 80, 32],
    [112, 112, 112],
    [96, 160, 48],
    [160, 96, 80],
    [208, 48, 64],
    [48, 208, 80],
    [255, 16, 16],
    [256, 16, 16],
    [32, 257, 16],
    [16, 255, 16],
    [16, 256, 16],
    [257, 16, 16],
    [16, 16, 255],
    [16, 16, 256],
    [16, 16, 257],
    [32, 48, 640],
    [48, 32, 1008],
    [304, 144, 208],
    [144, 304, 160],
    [272, 80, 144],
    [80, 272, 144],
    [384, 128, 64],
    [128, 384, 64],
    [385, 144, 48],
    [136, 392, 40],
    [512, 64, 32],
    [64, 512, 32],
    [528, 32, 96],
    [32, 520, 96],
    [61, 67, 71],
    [131, 137, 139],
    [112, 240, 304],
    [240, 112, 304],
    [176, 176, 176],
    [192, 192, 192],
    [208, 208, 208],
    [96, 31, 112],
    [112, 97, 96],
    [128, 96, 496],
    [640, 16, 48],
    [16, 640, 48],
    [224, 288, 16],
    [288, 224, 16],
    [320, 176, 96],
    [176, 320, 32],
    [144, 144, 272],
    [400, 48, 80],
    [48, 400, 80],
    [160, 208, 112],
];

/// What else a product may be, by its name and its values. The first one is the dtype.
const CHOICES: [(&str, &[i64]); 15] = [
    ("dtype", &[0, 1, 2, 3, 4, 5]),
    ("layout", &[11, 12, 21, 22]),
    ("batch", &[1, 3]),
    ("columns", &[32, 48, 64, 128]),
    ("stages", &[1, 2, 4]),
    ("sums", &[1, 2]),
    ("turns", &[1, 2]),
    ("overlaps", &[1, 2]),
    ("epilogue", &[1, 2, 3, 4, 5, 6]),
    ("result", &[1, 2, 3, 4]),
    ("cluster", &[1, 2, 4]),
    ("scheduler", &[1, 2, 3]),
    ("clusters", &[1, 3, 100]),
    ("swapped", &[1, 2]),
    // Elements between the rows of all matrices.
    ("gap", &[0, 16]),
];

type Pair = [(usize, i64); 2];

/// How many rows a new row of the cover is chosen among.
const CANDIDATES: u64 = 200;

fn pairs(row: &[i64]) -> Vec<Pair> {
    let of = |first: usize| (first + 1..row.len()).map(move |second| (first, second));
    (0..row.len()).flat_map(of).map(|(first, second)| [(first, row[first]), (second, row[second])]).collect()
}

/// Every pair of values of two choices.
fn all_pairs() -> Vec<Pair> {
    let mut all = Vec::new();
    for (first, (_, of_first)) in CHOICES.iter().enumerate() {
        for (second, (_, of_second)) in CHOICES.iter().enumerate().skip(first + 1) {
            let with = |a: &i64| of_second.iter().map(move |b| [(first, *a), (second, *b)]).collect::<Vec<_>>();
            all.extend(of_first.iter().flat_map(with));
        }
    }
    all
}

/// Rows of a cover of all pairs, each of which covers as many new ones as those that it is chosen among, and the pairs that are left.
fn cover(rows: usize) -> (Vec<Vec<i64>>, Vec<Pair>) {
    let mut missing = all_pairs();
    let mut state: u64 = 5;
    let mut below = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let mut chosen: Vec<Vec<i64>> = Vec::new();
    for _ in 0..rows {
        let mut candidate = || {
            let mut row: Vec<i64> = CHOICES.iter().map(|(_, values)| values[below(values.len())]).collect();
            // When all pairs are covered, more rows are of 16 bits.
            let wanted = missing.first().copied().unwrap_or([(0, row[0] % 2); 2]);
            wanted.into_iter().for_each(|(at, value)| row[at] = value);
            row
        };
        let candidates: Vec<Vec<i64>> = (0..CANDIDATES).map(|_| candidate()).collect();
        let new = |row: &Vec<i64>| pairs(row).iter().filter(|pair| missing.contains(pair)).count();
        let row = candidates.into_iter().max_by_key(new).expect("a candidate");
        missing.retain(|pair| !pairs(&row).contains(pair));
        chosen.push(row);
    }
    // Products that sm_90a computes element by element come first, where shapes are small: 8-bit factors of which K is not contiguous.
    chosen.sort_by_key(|row| row[0] < 2 || row[1] == 12);
    (chosen, missing)
}

fn entry() -> &'static KernelEntry {
    find("matmul").expect("a kernel of the library")
}

/// The distances of rows that have a gap between them.
fn leading([m, n, k]: [i64; 3], layout: i64, gap: i64) -> Vec<(&'static str, i64)> {
    let rows = [if layout / 10 == 2 { m } else { k }, if layout % 10 == 2 { k } else { n }, n];
    let all = ["lda", "ldb", "ldc"].into_iter().zip(rows.map(|row| row + gap));
    if gap == 0 { Vec::new() } else { all.collect() }
}

fn config(shape: &[i64; 3], choices: &[i64]) -> Config {
    let sizes = ["m", "n", "k"].into_iter().zip(*shape);
    let others = CHOICES.iter().zip(choices).skip(1).map(|((name, _), value)| (*name, *value));
    let (gaps, others): (Vec<_>, Vec<_>) = others.partition(|(name, _)| *name == "gap");
    let layout = others.iter().find(|(name, _)| *name == "layout").expect("a layout").1;
    let leading = leading(*shape, layout, gaps[0].1);
    let given = sizes.chain(others).chain(leading).map(|(name, value)| (name.to_string(), value));
    let mut given: Vec<(String, i64)> = given.collect();
    let with = |given: &[(String, i64)]| {
        entry().config(Some(entry().dtypes[choices[0] as usize]), given).expect("a configuration")
    };
    let config = with(&given);
    let mut set = |name: &str, value: i64| {
        given.iter_mut().filter(|(known, _)| known == name).for_each(|(_, known)| *known = value);
    };
    if !MatmulConfig::of(&config, Target::Sm90a).limits().is_empty() {
        // Warpgroups take turns where a CTA has several tiles.
        assert_ne!(config.size("scheduler"), 1, "{config}");
        set("turns", 1);
    }
    if !MatmulConfig::of(&config, Target::Sm100a).limits().is_empty() {
        // Rows of tf32 along N are whole atoms of 32 elements. Nothing else is refused.
        assert_eq!(config.dtype, F32, "{config}");
        set("columns", 32);
    }
    with(&given)
}

/// Checks a product in some schedules; whether the copy engine fills all stages, and the matrix unit multiplies. `None` without NVRTC.
fn check(config: &Config, target: Target, seeds: u64) -> Option<(bool, bool)> {
    check_on(config, target, (0..seeds).map(|seed| vgpu::Options { seed, ..vgpu::Options::default() }))
}

/// The same, on virtual GPUs with these options.
fn check_on(config: &Config, target: Target, all: impl Iterator<Item = vgpu::Options>) -> Option<(bool, bool)> {
    let artifact = compile((entry().build)(config, target), &Options::new(target));
    let artifact = artifact.unwrap_or_else(|found| panic!("{config} for {target}: {found:?}"));
    let built = built_or_skipped(&artifact, "matmul in 60 shapes")?;
    let inputs = (entry().inputs)(config);
    let expected = (entry().reference)(config, &inputs);
    let bound = artifact.clone().for_sizes(&entry().sizes(config)).expect("sizes");
    for options in all {
        let at = format!("{config} for {target}, schedule {}, {:?} SMs", options.seed, options.sms);
        let found = is_within_by((&bound, &built), (&inputs, &expected), options, (entry().tolerance)(config));
        assert_eq!(found, Ok(true), "{at}");
    }
    let chosen = |title: &str| artifact.plans().iter().find(|plan| plan.title.contains(title)).expect("a plan").chosen;
    let is_by_engine = ["copy(left", "copy(right"].iter().all(|title| ["tma", "bulk"].contains(&chosen(title)));
    Some((is_by_engine, ["wgmma", "tcgen05"].contains(&chosen("gemm_async"))))
}

fn check_shapes(target: Target) {
    let (rows, missing) = cover(SHAPES.len());
    assert!(missing.is_empty(), "{missing:?}");
    let all = SHAPES.iter().zip(&rows);
    let ran: Option<Vec<(bool, bool)>> = all.map(|(shape, row)| check(&config(shape, row), target, 1)).collect();
    let Some(ran) = ran else { return };
    let by_engine = ran.iter().filter(|(is_by_engine, _)| *is_by_engine).count();
    let by_unit = ran.iter().filter(|(_, is_by_unit)| *is_by_unit).count();
    println!(
        "matmul on {target}: {} shapes, {by_engine} by TMA, {by_unit} by the matrix unit that reads shared memory",
        SHAPES.len()
    );
    assert!(by_engine >= 40, "{by_engine} for {target}");
}

#[test]
fn products_of_sixty_shapes_and_more_on_sm_90a() {
    check_shapes(Target::Sm90a);
}

#[test]
fn products_of_sixty_shapes_and_more_on_sm_100a() {
    check_shapes(Target::Sm100a);
}

/// Schedules of products of which one run does not tell much.
const SEEDS: u64 = 3;

/// Products in twenty schedules each, where all CTAs are resident at once, and where one cluster at a time is.
#[test]
fn schedules_and_residencies() {
    let small = [[130, 72, 200], [129, 66, 70], [257, 48, 64], [200, 130, 33], [96, 160, 48]];
    let rows = cover(10).0;
    for (at, (shape, row)) in small.iter().cycle().zip(&rows).enumerate() {
        let cluster = row[CHOICES.iter().position(|(name, _)| *name == "cluster").expect("a choice")];
        let residencies = [None, Some((cluster as u32, 1))];
        let all = (0..20).flat_map(|seed| residencies.map(|of| (seed, of))).map(|(seed, of)| vgpu::Options {
            seed,
            sms: of.map(|(sms, _)| sms),
            ctas_per_sm: of.map(|(_, ctas)| ctas),
            ..vgpu::Options::default()
        });
        check_on(&config(shape, row), Target::ALL[at % Target::ALL.len()], all);
    }
}

/// Products whose parts of K are added in memory: more parts than steps, a last part without steps, a batch, integers.
const SPLIT: [(DType, &[(&str, i64)]); 5] = [
    (BF16, &[("m", 130), ("n", 72), ("k", 200), ("splits", 4), ("columns", 64)]),
    (F16, &[("m", 9), ("n", 300), ("k", 70), ("splits", 5), ("columns", 16), ("swapped", 2)]),
    (BF16, &[("batch", 3), ("m", 40), ("n", 40), ("k", 1003), ("splits", 3), ("columns", 48), ("cluster", 2)]),
    (I8, &[("m", 257), ("n", 64), ("k", 640), ("splits", 2), ("columns", 32), ("cluster", 4), ("clusters", 2)]),
    (E4M3, &[("m", 64), ("n", 129), ("k", 1024), ("splits", 8), ("columns", 32), ("swapped", 2), ("clusters", 100)]),
];

#[test]
fn parts_of_k_are_added_in_memory() {
    for (dtype, sizes) in SPLIT {
        let given: Vec<(String, i64)> = sizes.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let config = entry().config(Some(dtype), &given).expect("a configuration");
        for target in Target::ALL {
            check(&config, *target, SEEDS);
        }
    }
}

/// Products of one tile for each CTA, after whose last product sums are read that are not added to again: these reads must not move
/// before the wait for the product.
#[test]
fn sums_are_read_behind_the_wait_for_products() {
    for (dtype, columns, result) in [(I8, 96, 2), (I8, 128, 2), (E4M3, 96, 2), (BF16, 96, 1)] {
        for (scheduler, epilogue) in [(2, 1), (2, 6), (3, 3), (1, 3)] {
            let sizes = [("m", 130), ("n", 97), ("k", 16), ("stages", 2), ("columns", columns), ("result", result)];
            let others = [("scheduler", scheduler), ("epilogue", epilogue)];
            let given: Vec<(String, i64)> =
                sizes.iter().chain(&others).map(|(name, value)| (name.to_string(), *value)).collect();
            check(&entry().config(Some(dtype), &given).expect("a configuration"), Target::Sm90a, SEEDS);
        }
    }
}

/// What a plan predicts of tiles that CTAs compute one after the other is what is counted.
#[test]
fn wavefronts_of_persistent_tiles_are_predicted() {
    let given = [("m", 384), ("n", 256), ("k", 64), ("clusters", 3)].map(|(name, value)| (name.to_string(), value));
    let config = entry().config(Some(BF16), &given).expect("a configuration");
    for target in Target::ALL {
        let artifact = compile((entry().build)(&config, *target), &Options::new(*target)).expect("it compiles");
        let Some(built) = built_or_skipped(&artifact, "wavefronts of matmul") else { return };
        let inputs = (entry().inputs)(&config);
        let bound = artifact.for_sizes(&entry().sizes(&config)).expect("sizes");
        let options = vgpu::Options::default();
        let run = run_watched(&bound, &built, &inputs, &Device::Virtual, &options, &mut |_| ()).expect("it runs");
        let of_stores = op_traffic(&bound, &run.report.expect("a report")).expect("counts");
        let stores: Vec<_> = of_stores.iter().filter(|op| op.title.contains("parallel i, j")).collect();
        assert!(!stores.is_empty() && stores.iter().all(|op| op.predicted == op.counted), "{of_stores:?}");
    }
}
