//! Tiles that CTAs claim from each other, in kernels without products: every tile once, whoever claims it.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, op_traffic, run_watched};
use tilewright::vgpu;

use super::products::{ANY, are_missed};
use super::{built_or_skipped, number, products, tensor};

/// Rows and columns of a tile.
const SIDE: i64 = 64;

/// `y += x`, by a role that loads and one that adds, for tiles that clusters claim: a tile that is visited twice is added twice. Or
/// `y = x`.
fn moved(cluster: i64, adds: bool) -> Kernel {
    kernel("moved", |k| {
        let (m, n) = (k.size("m"), k.size("n"));
        let (x, y) = (k.input("x", F32, (m, n)), k.inout("y", F32, (m, n)));
        let rank = k.cluster(cluster);
        let tiles = Tiles::claimed(k, [m.ceil_div(SIDE * cluster), n.ceil_div(SIDE)], 2);
        k.threads(32 * 6);
        let part = |[row, column]: [Expr; 2]| (at((row * cluster + rank) * SIDE, SIDE), at(column * SIDE, SIDE));
        let stages = k.ring("stages", 2, |r| r.shared("held", F32, [SIDE, SIDE]));
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, tile| stages.produce(k, |k, held| k.copy(held, x.sub(part(tile)))));
        });
        k.role("store", 4, |k| {
            tiles.for_each(k, |k, tile| {
                stages.consume(k, |k, held| {
                    let to = y.sub(part(tile));
                    if adds {
                        k.atomic_add(to, held)
                    } else {
                        k.copy(to, held)
                    };
                });
            });
        });
    })
}

fn compiled(kernel: Kernel, target: Target) -> Artifact {
    compile(kernel, &Options::new(target)).unwrap_or_else(|found| panic!("{found:?}"))
}

fn launched([m, n]: [i64; 2]) -> super::Launched {
    let inputs = [1, 3].map(|factor| tensor(F32, &[m, n], |at| number(at * factor)));
    let expected = tensor(F32, &[m, n], |at| number(at) + number(3 * at));
    (vec![("m", m), ("n", n)], inputs.to_vec(), expected)
}

#[test]
fn each_tile_is_visited_once() {
    for (target, cluster) in Target::ALL.iter().flat_map(|target| [1, 2, 4].map(|cluster| (*target, cluster))) {
        let artifact = compiled(moved(cluster, true), target);
        for size in [[1, 1], [64, 64], [65, 200], [700, 130], [130, 700]] {
            products::check(&artifact, &launched(size), 4);
        }
    }
}

/// How often the instructions of this name are executed in a schedule in which up to 4 CTAs run at once.
fn executed(artifact: &Artifact, (sizes, inputs, _): &super::Launched, seed: u64, name: &str) -> Option<u64> {
    let built = built_or_skipped(artifact, "claimed tiles")?;
    let bound = artifact.clone().for_sizes(sizes).expect("sizes");
    let options = vgpu::Options { seed, sms: Some(2), ctas_per_sm: Some(2), ..vgpu::Options::default() };
    let run = run_watched(&bound, &built, inputs, &Device::Virtual, &options, &mut |_| ()).expect("it runs");
    let report = run.report.expect("a report");
    let of_name = report.opcodes.iter().filter(|(opcode, _)| opcode.starts_with(name));
    Some(of_name.map(|(_, (warps, _))| warps).sum())
}

#[test]
fn ctas_that_run_take_over_the_tiles_of_others() {
    let (artifact, launch) = (compiled(moved(1, true), Target::Sm100a), launched([640, 640]));
    for seed in 0..8 {
        let [claims, starts] = ["clusterlaunchcontrol.try_cancel", "fence.mbarrier_init"]
            .map(|name| executed(&artifact, &launch, seed, name));
        let (Some(claims), Some(starts)) = (claims, starts) else { return };
        // Each of the 100 tiles is that of a CTA that starts, or claimed; and each that starts claims in vain once.
        assert_eq!((claims, starts <= 20), (100, true), "{starts} CTAs start");
    }
}

#[test]
fn accesses_are_those_of_the_plan() {
    let (artifact, (sizes, inputs, _)) = (compiled(moved(2, true), Target::Sm100a), launched([640, 640]));
    let Some(built) = built_or_skipped(&artifact, "claimed tiles") else { return };
    let bound = artifact.clone().for_sizes(&sizes).expect("sizes");
    let options = vgpu::Options::default();
    let run = run_watched(&bound, &built, &inputs, &Device::Virtual, &options, &mut |_| ()).expect("it runs");
    let counts = op_traffic(&bound, &run.report.expect("a report")).expect("counts");
    let of = |role: &str| counts.iter().find(|op| op.title.starts_with(role)).map(|op| (op.predicted, op.counted));
    // A response is 16 bytes, which a warp reads in 2 wavefronts.
    let found = ["role claim: tiles.produce", "role load: tiles.consume", "role store: tiles.consume"].map(of);
    assert_eq!(found, [Some((200, 200)), Some((200, 200)), Some((800, 800))]);
}

/// What the hardware has no more than the protocol: the fence of barriers beside a barrier of all threads, and the proxy fence between
/// reads of a response and the next one, of which the order follows from the barrier in between.
const SURVIVORS: [(&str, usize); 4] =
    [("fence.mbarrier_init", 1), ("bar.sync", 1), ("bar.warp", ANY), ("fence.proxy", ANY)];

#[test]
fn every_barrier_of_claims_is_needed() {
    for cluster in [1, 2] {
        let launches = [[700, 130], [257, 64]].map(|size| {
            let (sizes, inputs, _) = launched(size);
            let expected = inputs[0].clone();
            (sizes, inputs, expected)
        });
        let Some(report) = super::mutated_as(&compiled(moved(cluster, false), Target::Sm100a), &launches) else {
            return;
        };
        assert!(are_missed(&report, &SURVIVORS), "{cluster}: {report:#?}");
    }
}

/// A row of each tile passes through the row of shared memory that has the parity of its column: tiles that follow each other may have
/// the same one.
#[test]
fn shared_memory_of_a_tile_is_free_when_the_next_one_begins() {
    let by_parity = kernel("by_parity", |k| {
        let (m, n) = (k.size("m").max(1 << 10), k.size("n"));
        let (x, y) = (k.input("x", F32, (m, n)), k.output("y", F32, (m, n)));
        let tiles = Tiles::claimed(k, [m.ceil_div(1), n.ceil_div(128)], 1);
        k.threads(32 * 5);
        let both = k.shared("both", F32, [2, 128]);
        k.role("turn", 4, |k| {
            tiles.for_each(k, |k, [row, column]| {
                let held = k.fragment("held", F32, [128]);
                k.copy(held, x.sub((at(row, 1), at(column * 128, 128))));
                k.parallel([128], |k, [i]| k.store(both, (column % 2, i), held.at((i,))));
                k.parallel([128], |k, [i]| {
                    k.if_((column * 128 + i).lt(n), |k| {
                        k.store(y, (row, column * 128 + i), both.at((column % 2, 127 - i)));
                    });
                });
            });
        });
    });
    let (m, n) = (3, 1024);
    let element = |at: i64| number(at / 128 * 128 + 127 - at % 128);
    let launch = (vec![("m", m), ("n", n)], vec![tensor(F32, &[m, n], number)], tensor(F32, &[m, n], element));
    products::check(&compiled(by_parity, Target::Sm100a), &launch, 20);
}

/// On a target without claims, the plan says what becomes of them.
#[test]
fn the_plan_of_hopper_says_that_each_cta_has_one_tile() {
    let artifact = compiled(moved(1, false), Target::Sm90a);
    let plan = artifact.plans().iter().find(|plan| plan.title == "ring tiles").expect("a plan");
    let facts = plan.facts().expect("facts");
    assert_eq!(facts.summary, "each CTA computes its own tile: sm_90a cannot claim those of others");
    assert!(!artifact.cuda().contains("for (int turn"), "{}", artifact.cuda());
}
