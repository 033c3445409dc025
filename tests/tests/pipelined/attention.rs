//! The library's `attention_roles`: scores, weights and sums go from role to role.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::HostTensor;
use tilewright_kernels::{Config, KernelEntry, find};

use super::products::{ANY, are_missed};
use super::{built_or_skipped, is_within, mutated_within};

fn entry() -> &'static KernelEntry {
    find("attention_roles").expect("a kernel of the library")
}

fn config(dtype: DType, sizes: &[(&str, i64)]) -> Config {
    let given: Vec<(String, i64)> = sizes.iter().map(|(name, size)| (name.to_string(), *size)).collect();
    entry().config(Some(dtype), &given).expect("a configuration")
}

fn compiled(config: &Config, target: Target) -> Artifact {
    let artifact = compile((entry().build)(config, target), &Options::new(target)).expect("the kernel is right");
    artifact.for_sizes(&entry().sizes(config)).expect("sizes")
}

fn check(config: &Config, target: Target, inputs: &[HostTensor], schedules: u64) {
    let artifact = compiled(config, target);
    let Some(built) = built_or_skipped(&artifact, "attention by roles") else { return };
    let expected = (entry().reference)(config, inputs);
    for seed in 0..schedules {
        let found = is_within((&artifact, &built), (inputs, &expected), seed, (entry().tolerance)(config));
        assert_eq!(found, Ok(true), "{config} for {target}, schedule {seed}");
    }
    let products = artifact.plans().iter().filter(|plan| plan.title.contains("gemm_async"));
    let chosen: Vec<&str> = products.map(|plan| plan.chosen).collect();
    let unit = if target == Target::Sm100a { "tcgen05" } else { "wgmma" };
    assert!(chosen.iter().all(|chosen| *chosen == unit), "{config} for {target}: {chosen:?}");
}

/// Heads, queries, keys, depth, heads of queries for each of keys, and whether a query sees the keys up to it only.
const SHAPES: [[i64; 6]; 12] = [
    [1, 1, 1, 64, 1, 0],
    [1, 1, 300, 64, 4, 0],
    [2, 127, 63, 64, 1, 0],
    [1, 128, 64, 128, 1, 1],
    [3, 129, 65, 32, 1, 0],
    [1, 255, 257, 64, 2, 1],
    [1, 256, 256, 16, 1, 1],
    [2, 257, 191, 64, 1, 0],
    [1, 300, 100, 96, 3, 0],
    [1, 70, 500, 128, 1, 0],
    [1, 400, 20, 64, 1, 1],
    [5, 17, 33, 112, 1, 0],
];

#[test]
fn attention_of_any_size() {
    for target in Target::ALL.iter().copied() {
        for (at, [heads, queries, keys, depth, group, causal]) in SHAPES.into_iter().enumerate() {
            let sizes = [("heads", heads), ("queries", queries), ("keys", keys), ("depth", depth), ("group", group)];
            let causal = (causal == 1).then_some(("causal", 1));
            let stages = [("stages", 1 + at as i64 % 3)];
            let sizes: Vec<(&str, i64)> = sizes.into_iter().chain(causal).chain(stages).collect();
            let config = config([BF16, F16][at % 2], &sizes);
            check(&config, target, &(entry().inputs)(&config), 1);
        }
    }
}

#[test]
fn schedules_of_attention() {
    let config = config(BF16, &[("heads", 1), ("queries", 200), ("keys", 200), ("causal", 1)]);
    for target in Target::ALL.iter().copied() {
        check(&config, target, &(entry().inputs)(&config), 10);
    }
}

/// Later keys are greater, so that maxima grow from tile to tile, by little and by much, at other rows in other tiles.
#[test]
fn maxima_that_grow() {
    for (at, growth) in [0.01, 0.05, 0.3, -0.05].into_iter().enumerate() {
        let config = config([BF16, F16][at % 2], &[("heads", 1), ("queries", 200), ("keys", 500)]);
        let mut inputs = (entry().inputs)(&config);
        let key = inputs[1].clone();
        inputs[1] = HostTensor::from_f64(config.dtype, key.shape(), |at| {
            key.number(at).unwrap_or(0.0) * (1.0 + growth * (at / 64) as f64).abs().min(20.0)
        });
        for target in Target::ALL.iter().copied() {
            check(&config, target, &inputs, 1);
        }
    }
}

/// The last tile of keys ends inside the next head, which holds no numbers: 0 times these is not 0.
#[test]
fn the_values_of_a_neighbour_do_not_matter() {
    let config = config(BF16, &[("heads", 2), ("queries", 40), ("keys", 70)]);
    let mut inputs = (entry().inputs)(&config);
    let value = inputs[2].clone();
    let of_first = value.len() / 2;
    inputs[2] = HostTensor::from_f64(BF16, value.shape(), |at| {
        if at < of_first { value.number(at).unwrap_or(0.0) } else { f64::NAN }
    });
    for target in Target::ALL.iter().copied() {
        check(&config, target, &inputs, 1);
    }
}

/// Of packed sequences, the rows behind the end of one belong to the next one, which holds no numbers here.
#[test]
fn the_values_of_the_next_sequence_do_not_matter() {
    let sizes = [("heads", 1), ("queries", 300), ("keys", 300), ("sequences", 4), ("longest", 167)];
    for (at, causal) in [0, 1].into_iter().enumerate() {
        let config = config([F16, BF16][at], &[&sizes[..], &[("causal", causal)]].concat());
        let mut inputs = (entry().inputs)(&config);
        // Where sequences end: 0, 33, 133 and 300 of the queries, 167, 267, 300 and 300 of the keys.
        let is_odd = |row: usize, ends: [usize; 4]| ends.iter().position(|end| row < *end).unwrap_or(0) % 2 == 1;
        for (tensor, ends) in [(0, [0, 33, 133, 300]), (1, [167, 267, 300, 300]), (2, [167, 267, 300, 300])] {
            let numbers = inputs[tensor].clone();
            inputs[tensor] = HostTensor::from_f64(config.dtype, numbers.shape(), |at| {
                let is_nothing = is_odd(at as usize / 64 % 300, ends);
                if is_nothing { f64::NAN } else { numbers.number(at).unwrap_or(0.0) }
            });
        }
        for target in Target::ALL.iter().copied() {
            check(&config, target, &inputs, 2);
        }
    }
}

/// The survivors: fences for which the virtual GPU has no rule; barriers of lanes that have waited for their sums together; waits for
/// stores that a later one also waits for; and what others imply. Of the waits for stages, five are those for the first ones, which
/// are empty. Eight are of the roles of a tile of queries, which take turns: the products of scores follow those of the weights before,
/// and who has weights knows that the scores before them have been read. Eight are in turns without products and at the end, where the
/// tensor core arrives at several barriers at the same time. Two barriers are those in front of the exchange of a reduction: the
/// role has waited for the tensor core, for which all of its warps have arrived, since the one before.
#[test]
fn every_barrier_of_attention_is_needed() {
    // Five tiles of 64 keys: loops are written out two or four times, with a rest.
    let sizes = [("heads", 1), ("queries", 130), ("keys", 300), ("depth", 16), ("value_depth", 80)];
    let config = config(BF16, &sizes);
    let options = Options::new(Target::Sm100a);
    let artifact = compile((entry().build)(&config, Target::Sm100a), &options).expect("the kernel is right");
    let inputs = (entry().inputs)(&config);
    let expected = (entry().reference)(&config, &inputs).remove(0);
    let launch = (entry().sizes(&config), inputs, expected);
    let Some(report) = mutated_within(&artifact, &[launch], (entry().tolerance)(&config)) else { return };
    let fences = [("fence.mbarrier_init", 1), ("tcgen05.fence", ANY), ("bar.warp", 8)];
    let waits = [("try_wait", 5 + 8 + 8), ("wait::st", 2 * 9), ("bar.sync", 2)];
    let known = [&fences[..], &waits].concat();
    assert!(are_missed(&report, &known), "{report:#?}");
}
