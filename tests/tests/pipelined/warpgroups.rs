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
    let (left, right) = (|row: i64, t: i64| number(row * 3 + t * 5), |t: i64, column: i64| number(t * 2 + column * 7));
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

#[test]
fn text() {
    println!("{}", compiled_for(PLAIN, Target::Sm90a).cuda());
    println!("{}", compiled_for(PLAIN, Target::Sm90a).stage(tilewright::compile::Stage::Plan));
    check(PLAIN, Target::Sm90a, [64, 64, 64], 1);
}
