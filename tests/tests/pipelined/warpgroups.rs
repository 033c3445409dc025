//! Products of warpgroups: `wgmma` on sm_90a, `mma.sync` elsewhere, with the same sums.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, Tolerance, compare_all, run_watched};
use tilewright::vgpu;
use tilewright_tests::pages::tensor;

use super::{Launched, built_or_skipped, number};

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tile: [i64; 3],
    dtypes: [DType; 2],
    gemm: Gemm,
    groups: i64,
    stages: i64,
}

const PLAIN: Shape =
    Shape { tile: [64, 64, 64], dtypes: [BF16, F32], gemm: Gemm { transpose_b: true, ..Gemm::PLAIN }, groups: 1, stages: 3 };

/// `c = a*b` by warpgroups; `a` and `b` are stored as the attributes say.
fn product(shape: Shape) -> Kernel {
    let Shape { tile: [rows, columns, depth], dtypes: [factor, sum], gemm, groups, stages } = shape;
    kernel("product", |k| {
        let (m, n, inner) = (k.size("m").multiple_of(16), k.size("n").multiple_of(16), k.size("k").multiple_of(16));
        let (a_shape, a_tile) = if gemm.transpose_a { ((inner, m), [depth, rows]) } else { ((m, inner), [rows, depth]) };
        let (b_shape, b_tile) = if gemm.transpose_b { ((n, inner), [columns, depth]) } else { ((inner, n), [depth, columns]) };
        let (a, b) = (k.input("a", factor, a_shape), k.input("b", factor, b_shape));
        let c = k.output("c", sum, (m, n));
        let [bx, by] = k.grid([n.ceil_div(columns), m.ceil_div(rows)]);
        k.threads(groups * 128 + 32);
        let ab = k.ring("ab", stages, |r| (r.shared("left", factor, a_tile), r.shared("right", factor, b_tile)));
        k.role("math", groups * 4, |k| {
            let sums = k.fragment("sums", sum, [rows, columns]);
            k.fill(sums, 0);
            k.serial("t", ..inner.ceil_div(depth), |k, _| {
                ab.consume(k, |k, (left, right)| k.gemm_async(sums, left, right).with(gemm));
            });
            k.copy(c.sub((at(&by * rows, rows), at(&bx * columns, columns))), sums);
        });
        k.role("load", 1, |k| {
            k.serial("t", ..inner.ceil_div(depth), |k, t| {
                let part = |is_turned: bool, first: Expr, extent: i64| {
                    let (own, along) = (at(first, extent), at(&t * depth, depth));
                    if is_turned { [along, own] } else { [own, along] }
                };
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub(part(gemm.transpose_a, &by * rows, rows)));
                    k.copy(right, b.sub(part(!gemm.transpose_b, &bx * columns, columns)));
                });
            });
        });
    })
}

fn compiled_for(shape: Shape, target: Target) -> Artifact {
    compile(product(shape), &Options::new(target)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
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
fn check(shape: Shape, target: Target, size: [i64; 3], seeds: u64) {
    let artifact = compiled_for(shape, target);
    let Some(built) = built_or_skipped(&artifact, "products of warpgroups") else { return };
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

/// Whether `wgmma` computes a product.
fn uses_wgmma(shape: Shape) -> bool {
    compiled_for(shape, Target::Sm90a).cuda().contains("wgmma_fence();")
}

#[test]
fn factors_of_16_bits_may_be_stored_in_any_way() {
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let gemm = Gemm { transpose_a, transpose_b, ..Gemm::PLAIN };
        for dtypes in [[BF16, F32], [F16, F32]] {
            for tile in [[64, 64, 64], [64, 128, 32], [64, 32, 64]] {
                let shape = Shape { gemm, dtypes, tile, ..PLAIN };
                assert!(uses_wgmma(shape), "{shape:?}");
                check(shape, Target::Sm90a, [80, 144, 208], 2);
            }
        }
    }
}

#[test]
fn warpgroups_share_blocks_of_rows() {
    for (groups, rows) in [(1, 64), (1, 128), (1, 192), (2, 128), (2, 256), (3, 192)] {
        let shape = Shape { groups, tile: [rows, 64, 64], ..PLAIN };
        assert!(uses_wgmma(shape), "{shape:?}");
        check(shape, Target::Sm90a, [272, 80, 144], 3);
        check(shape, Target::Sm100a, [272, 80, 144], 1);
    }
}

#[test]
fn sums_have_any_number_of_columns() {
    for columns in [8, 16, 24, 40, 96, 128, 200, 256] {
        let shape = Shape { tile: [64, columns, 64], ..PLAIN };
        assert!(uses_wgmma(shape), "{shape:?}");
        check(shape, Target::Sm90a, [64, 272, 64], 1);
    }
    for columns in [320, 512] {
        let shape = Shape { tile: [64, columns, 16], stages: 2, ..PLAIN };
        assert!(uses_wgmma(shape), "{shape:?}");
        check(shape, Target::Sm90a, [64, columns + 16, 48], 1);
    }
}

#[test]
fn other_dtypes_have_k_along_rows() {
    for dtypes in [[E4M3, F32], [E5M2, F32], [I8, I32], [U8, I32], [F16, F16]] {
        let shape = Shape { dtypes, tile: [64, 64, 64], ..PLAIN };
        assert!(uses_wgmma(shape), "{shape:?}");
        // The sums of products of halves are exact for few of them.
        check(shape, Target::Sm90a, [64, 80, if dtypes[1] == F16 { 16 } else { 192 }], 2);
    }
    let turned = Shape { dtypes: [E4M3, F32], gemm: Gemm::PLAIN, ..PLAIN };
    assert!(!uses_wgmma(turned));
    check(turned, Target::Sm90a, [64, 64, 64], 1);
}
