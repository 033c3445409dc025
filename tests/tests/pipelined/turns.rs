//! Roles that visit the tiles of a CTA in turns, and use the stages of a ring in turns.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;

use super::products::{ANY, are_missed};
use super::{number, products, tensor};

/// Rows and columns of a tile.
const SIDE: i64 = 32;

/// `y = x + (the number of steps that a tile has)`: a tile of row `r` is loaded `1 + r % 3` times, in a ring with so many stages. As many
/// roles as `of` says store tiles in turns.
fn stored(of: i64, stages: i64) -> Kernel {
    kernel("stored", |k| {
        let (m, n) = (k.size("m"), k.size("n"));
        let (x, y) = (k.input("x", F32, (m, n)), k.output("y", F32, (m, n)));
        let tiles = Tiles::persistent(k, [m.ceil_div(SIDE), n.ceil_div(SIDE)], (2, 2));
        k.threads(32 * (1 + 2 * of));
        let part = |[row, column]: [Expr; 2]| (at(row * SIDE, SIDE), at(column * SIDE, SIDE));
        let ring = k.ring("ring", stages, |r| r.shared("held", F32, [SIDE, SIDE]));
        k.role("load", 1, |k| {
            tiles.for_each(k, |k, tile @ [row, _]| {
                k.serial("t", ..(row % 3 + 1), |k, _| ring.produce(k, |k, held| k.copy(held, x.sub(part(tile)))));
            });
        });
        for turn in 0..of {
            k.role(&format!("store{turn}"), 2, |k| {
                tiles.for_every(k, [turn, of], |k, tile @ [row, _]| {
                    let sum = k.fragment(&format!("sum{turn}"), F32, [SIDE, SIDE]);
                    k.fill(sum, 0);
                    k.serial("t", ..(row % 3 + 1), |k, t| {
                        ring.consume(k, |k, held| {
                            k.map(sum, |[i, j]| held.at((i, j)) + 1.0 + Value::from(t));
                        });
                    });
                    k.copy(y.sub(part(tile)), sum);
                });
            });
        }
    })
}

fn compiled(kernel: Kernel) -> Artifact {
    compile(kernel, &Options::new(Target::Sm90a)).unwrap_or_else(|found| panic!("{found:?}"))
}

fn launched([m, n]: [i64; 2]) -> super::Launched {
    let expected = tensor(F32, &[m, n], |at| number(at) + 1.0 + (at / n / SIDE % 3) as f64);
    (vec![("m", m), ("n", n)], vec![tensor(F32, &[m, n], number)], expected)
}

#[test]
fn tiles_of_different_lengths_in_turns() {
    for (of, stages) in [(1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 4), (4, 5)] {
        let artifact = compiled(stored(of, stages));
        for size in [[1, 1], [33, 32], [300, 70], [70, 300]] {
            products::check(&artifact, &launched(size), 4);
        }
    }
}

/// Stores of other tiles need no order: only one barrier of a role, which has read its stage, is left in a turn.
#[test]
fn roles_store_their_tiles_without_a_barrier() {
    let cuda = compiled(stored(2, 2)).cuda().to_string();
    assert!(!cuda.contains("__syncthreads();\n    for"), "{cuda}");
    assert_eq!(cuda.matches("__syncthreads()").count(), 1, "{cuda}");
}

/// The fence of barriers beside a barrier of all threads, and barriers of lanes beside those in memory.
const SURVIVORS: [(&str, usize); 2] = [("fence.mbarrier_init", 1), ("bar.warp", ANY)];

#[test]
fn every_barrier_of_turns_is_needed() {
    let launches = [launched([300, 70]), launched([130, 64])];
    for (of, stages) in [(2, 1), (3, 2)] {
        let Some(report) = super::mutated_as(&compiled(stored(of, stages)), &launches) else { return };
        assert!(are_missed(&report, &SURVIVORS), "{of}, {stages}: {report:#?}");
    }
}

/// Each of two roles moves a tile through shared memory of its own, and stores it by the copy engine.
#[test]
fn roles_move_tiles_through_memory_of_their_own() {
    let moved = kernel("moved", |k| {
        let (x, y) = (k.input("x", F32, [4 * SIDE, 4 * SIDE]), k.output("y", F32, [4 * SIDE, 4 * SIDE]));
        let tiles = Tiles::persistent(k, [Expr::from(4), Expr::from(4)], (1, 3));
        let part = |[row, column]: [Expr; 2]| (at(row * SIDE, SIDE), at(column * SIDE, SIDE));
        k.threads(64);
        let own = ["even", "odd"].map(|name| k.shared(name, F32, [SIDE, SIDE]));
        for (turn, through) in own.into_iter().enumerate() {
            k.role(&format!("role{turn}"), 1, |k| {
                tiles.for_every(k, [turn as i64, 2], |k, tile| {
                    k.copy(through, x.sub(part(tile)));
                    k.copy_async(y.sub(part(tile)), through);
                });
            });
        }
    });
    let artifact = compiled(moved);
    assert!(!artifact.cuda().contains("bulk_wait<0>"), "{}", artifact.cuda());
    let x = tensor(F32, &[4 * SIDE, 4 * SIDE], number);
    products::check(&artifact, &(vec![], vec![x.clone()], x), 10);
}
