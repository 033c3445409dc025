//! What asynchronous copies cannot do, which runs ahead through registers.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, tensor};
use tilewright_tests::toolchain::built_or_skipped;

use super::{compiled, is_right, mutated, number, plan};

/// `y[i]` is the sum of twice element `63 - i` of all tiles of bytes.
fn scaled_sum(stages: i64) -> Kernel {
    kernel("scaled_sum", |k| {
        let n = k.size("n");
        let x = k.input("x", I8, (n,));
        let y = k.output("y", F32, [64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [64]);
        let sum = k.fragment("sum", F32, [64]);
        k.fill(sum, 0.0);
        k.pipelined("t", ..n.ceil_div(64), stages, |k, t| {
            k.parallel([64], |k, [i]| k.store(tile, (i,), x.at((t * 64 + i,)).cast(F32) * 2.0));
            k.parallel([64], |k, [i]| k.store(sum, (i,), sum.at((i,)) + tile.at((63 - i,))));
        });
        k.copy(y, sum);
    })
}

fn scaled_sum_of(n: i64) -> HostTensor {
    let element = |at: i64| if at < n { 2.0 * number(at) } else { 0.0 };
    tensor(F32, &[64], |i| (0..n / 64 + 1).map(|tile| element(tile * 64 + 63 - i)).sum())
}

#[test]
fn what_is_computed_on_the_way_runs_ahead_through_registers() {
    let expected = "* through_registers: cost 30; 2 stages of `tile`, since registers hold one iteration: 256 B each; copies run 1 \
                    iteration ahead, through registers";
    assert!(plan(&scaled_sum(3)).contains(expected), "{}", plan(&scaled_sum(3)));
    for stages in [2, 3] {
        let artifact = compiled(&scaled_sum(stages));
        let Some(built) = built_or_skipped(&artifact, "pipelined loops through registers") else { return };
        for n in [1, 63, 64, 65, 128, 129, 500] {
            let bound = artifact.clone().for_sizes(&[("n", n)]).expect("a size");
            let (x, y) = (tensor(I8, &[n], number), scaled_sum_of(n));
            for seed in 0..20 {
                let found = is_right((&bound, &built), std::slice::from_ref(&x), std::slice::from_ref(&y), seed);
                assert_eq!(found, Ok(true), "{stages} stages, n = {n}, schedule {seed}\n{}", artifact.cuda());
            }
        }
    }
    let launches = [448, 500].map(|n| (vec![("n", n)], vec![tensor(I8, &[n], number)], scaled_sum_of(n)));
    let Some(report) = mutated(&scaled_sum(2), &launches) else { return };
    assert!(report.mutants() >= 1 && report.survivors.is_empty(), "{report:#?}");
}

#[test]
fn registers_are_not_for_what_asynchronous_copies_can_do() {
    let aligned = kernel("aligned", |k| {
        let n = k.size("n").multiple_of(64);
        let (x, y) = (k.input("x", F32, (n,)), k.output("y", F32, (n,)));
        k.threads(32);
        let tile = k.shared("tile", F32, [64]);
        k.pipelined("t", ..n / 64, Stages::of(2).variant("through_registers"), |k, t| {
            k.copy(tile, x.sub((at(t * 64, 64),)));
            k.copy(y.sub((at(t * 64, 64),)), tile);
        });
    });
    let found = compile(aligned, &Options::new(Target::Sm100a)).expect_err("the variant cannot do this");
    let [finding] = &found[..] else { panic!("{found:?}") };
    let note = "through_registers: `cp.async` moves all of its copies; accepted: copies that it cannot move";
    assert_eq!((finding.code, &finding.notes[..]), ("P0402", &[note.to_string()][..]));
}

/// One factor is copied, the other is converted.
#[test]
fn some_copies_are_asynchronous_and_others_go_through_registers() {
    let kernel = kernel("mixed", |k| {
        let depth = k.size("depth").multiple_of(8);
        let a = k.input("a", F16, (32, depth));
        let b = k.input("b", F32, (depth, 32));
        let c = k.output("c", F32, [32, 32]);
        k.threads(64);
        let left = k.shared("left", F16, [32, 32]);
        let right = k.shared("right", F16, [32, 32]);
        let sums = k.fragment("sums", F32, [32, 32]);
        k.fill(sums, 0.0);
        k.pipelined("t", ..depth.ceil_div(32), 3, |k, t| {
            k.copy(left, a.sub((.., at(t * 32, 32))));
            k.parallel([32, 32], |k, [i, j]| k.store(right, (i, j), b.at((t * 32 + i, j)).cast(F16)));
            k.gemm(sums, left, right);
        });
        k.copy(c, sums);
    });
    let text = plan(&kernel);
    let expected =
        "3 stages of `left`, `right`: 4096 B each; copies run 2 iterations ahead, those to `right` through registers";
    assert!(text.contains(expected), "{text}");
    for depth in [8, 32, 40, 200] {
        let element = |at: i64| (0..depth).map(|d| number(at / 32 * depth + d) * number(d * 32 + at % 32)).sum();
        let inputs = [tensor(F16, &[32, depth], number), tensor(F32, &[depth, 32], number)];
        check(&kernel, &[("depth", depth)], &inputs, &[tensor(F32, &[32, 32], element)], Tolerance::EXACT);
    }
}
