//! Products with sums in tensor memory, by three roles: one loads, one multiplies, one stores.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, Tolerance, compare_all, run_watched};
use tilewright::vgpu;
use tilewright_tests::pages::tensor;

use super::{Launched, MutationReport, built_or_skipped, number};

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    columns: i64,
    depth: i64,
    dtypes: [DType; 2],
    gemm: Gemm,
    /// Of the factors, and of the sums.
    stages: [i64; 2],
    /// Columns that the role that stores holds at a time.
    part: i64,
    /// CTAs, each of which computes every so many-th tile.
    ctas: i64,
}

const PLAIN: Shape = Shape {
    columns: 64,
    depth: 64,
    dtypes: [BF16, F32],
    gemm: Gemm { transpose_b: true, ..Gemm::PLAIN },
    stages: [3, 2],
    part: 32,
    ctas: 2,
};

const ROWS: i64 = 128;

/// `c = a*b`; `a` and `b` are stored as the attributes say. Each CTA computes several tiles, one after the other.
fn product(shape: Shape) -> Kernel {
    let Shape { columns, depth, dtypes: [factor, sum], gemm, stages, part, ctas } = shape;
    kernel("product", |k| {
        let (m, n, inner) = (k.size("m").multiple_of(16).max(4096), k.size("n").multiple_of(16).max(4096), k.size("k").multiple_of(16).max(4096));
        let (a_shape, a_tile) = if gemm.transpose_a { ((inner, m), [depth, ROWS]) } else { ((m, inner), [ROWS, depth]) };
        let (b_shape, b_tile) = if gemm.transpose_b { ((n, inner), [columns, depth]) } else { ((inner, n), [depth, columns]) };
        let (a, b) = (k.input("a", factor, a_shape), k.input("b", factor, b_shape));
        let c = k.output("c", sum, (m, n));
        let [first] = k.grid([ctas]);
        k.threads(192);
        let ab = k.ring("ab", stages[0], |r| (r.shared("left", factor, a_tile), r.shared("right", factor, b_tile)));
        let acc = k.ring("acc", stages[1], |r| r.tensor("sums", sum, [ROWS, columns]));
        let (across, down) = (n.ceil_div(columns), m.ceil_div(ROWS));
        let tiles = (across * down + (ctas - 1) - &first) / ctas;
        let steps = inner.ceil_div(depth);
        k.role("load", 1, |k| {
            k.serial("tile", ..tiles, |k, tile| {
                let tile = tile * ctas + &first;
                k.serial("t", ..steps, |k, t| {
                    let region = |is_turned: bool, first: Expr, extent: i64| {
                        let (own, along) = (at(first, extent), at(&t * depth, depth));
                        if is_turned { [along, own] } else { [own, along] }
                    };
                    ab.produce(k, |k, (left, right)| {
                        k.copy(left, a.sub(region(gemm.transpose_a, &tile / &across * ROWS, ROWS)));
                        k.copy(right, b.sub(region(!gemm.transpose_b, &tile % &across * columns, columns)));
                    });
                });
            });
        });
        k.role("multiply", 1, |k| {
            k.serial("tile", ..tiles, |k, _| {
                acc.produce(k, |k, sums| {
                    k.fill(sums, 0);
                    k.serial("t", ..steps, |k, _| {
                        ab.consume(k, |k, (left, right)| k.gemm_async(sums, left, right).with(gemm));
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            k.serial("tile", ..tiles, |k, tile| {
                let tile = tile * ctas + &first;
                acc.consume(k, |k, sums| {
                    k.unroll("part", 0..columns / part, |k, at_part| {
                        let held = k.fragment("held", sum, [ROWS, part]);
                        k.copy(held, sums.sub((.., at(&at_part * part, part))));
                        let column = &tile % &across * columns + &at_part * part;
                        k.copy(c.sub((at(&tile / &across * ROWS, ROWS), at(column, part))), held);
                    });
                });
            });
        });
    })
}

fn compiled_for(shape: Shape) -> Artifact {
    compile(product(shape), &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
}

fn multiplied(shape: Shape, [m, n, depth]: [i64; 3]) -> Launched {
    let Shape { dtypes: [factor, sum], gemm, .. } = shape;
    // The least number is -6.
    let shift = if factor == U8 { 6.0 } else { 0.0 };
    let left = |row: i64, t: i64| number(row * 3 + t * 5) + shift;
    let right = |t: i64, column: i64| number(t * 2 + column * 7) + shift;
    let a = match gemm.transpose_a {
        true => tensor(factor, &[depth, m], |at| left(at % m, at / m)),
        false => tensor(factor, &[m, depth], |at| left(at / depth, at % depth)),
    };
    let b = match gemm.transpose_b {
        true => tensor(factor, &[n, depth], |at| right(at % depth, at / depth)),
        false => tensor(factor, &[depth, n], |at| right(at / n, at % n)),
    };
    let element = |at: i64| (0..depth).map(|t| left(at / n, t) * right(t, at % n)).sum::<f64>() + 0.0;
    (vec![("m", m), ("n", n), ("k", depth)], vec![a, b], tensor(sum, &[m, n], element))
}

/// Checks the results of a launch in some schedules.
fn check(shape: Shape, size: [i64; 3], seeds: u64) {
    let artifact = compiled_for(shape);
    let Some(built) = built_or_skipped(&artifact, "products in tensor memory") else { return };
    let (sizes, inputs, expected) = multiplied(shape, size);
    let bound = artifact.clone().for_sizes(&sizes).expect("sizes");
    for seed in 0..seeds {
        let options = vgpu::Options { seed, ..vgpu::Options::default() };
        let run = run_watched(&bound, &built, &inputs, &Device::Virtual, &options, &mut |_| ());
        let run = run.unwrap_or_else(|failure| panic!("{shape:?} {size:?}: {failure}\n{}", artifact.cuda()));
        let compared = compare_all(&run.outputs, std::slice::from_ref(&expected), Tolerance::EXACT).expect("outputs");
        assert!(compared.iter().all(|one| one.mismatch.is_none()), "{shape:?} {size:?}, schedule {seed}: {compared:?}\n{}", artifact.cuda());
    }
}

#[test]
fn text() {
    println!("{}", compiled_for(PLAIN).cuda());
    println!("{}", compiled_for(PLAIN).stage(tilewright::compile::Stage::Plan));
    check(PLAIN, [128, 64, 64], 1);
    check(PLAIN, [272, 144, 208], 3);
}
