//! Products of warpgroups: `wgmma` on sm_90a, `mma.sync` elsewhere, with the same sums.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::tensor;

use super::products::{self, are_missed, multiplied};
use super::{Launched, MutationReport, number};

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tile: [i64; 3],
    dtypes: [DType; 2],
    gemm: Gemm,
    groups: i64,
    stages: i64,
}

const PLAIN: Shape = Shape {
    tile: [64, 64, 64],
    dtypes: [BF16, F32],
    gemm: Gemm { transpose_b: true, ..Gemm::PLAIN },
    groups: 1,
    stages: 3,
};

/// `c = a*b` by warpgroups; `a` and `b` are stored as the attributes say.
fn product(shape: Shape) -> Kernel {
    let Shape { tile: [rows, columns, depth], dtypes: [factor, sum], gemm, groups, stages } = shape;
    kernel("product", |k| {
        let (m, n, inner) = (k.size("m").multiple_of(16), k.size("n").multiple_of(16), k.size("k").multiple_of(16));
        let (a_shape, a_tile) =
            if gemm.transpose_a { ((inner, m), [depth, rows]) } else { ((m, inner), [rows, depth]) };
        let (b_shape, b_tile) =
            if gemm.transpose_b { ((n, inner), [columns, depth]) } else { ((inner, n), [depth, columns]) };
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
            k.copy(c.sub((at(by * rows, rows), at(bx * columns, columns))), sums);
        });
        k.role("load", 1, |k| {
            k.serial("t", ..inner.ceil_div(depth), |k, t| {
                let part = |is_turned: bool, first: Expr, extent: i64| {
                    let (own, along) = (at(first, extent), at(t * depth, depth));
                    if is_turned { [along, own] } else { [own, along] }
                };
                ab.produce(k, |k, (left, right)| {
                    k.copy(left, a.sub(part(gemm.transpose_a, by * rows, rows)));
                    k.copy(right, b.sub(part(!gemm.transpose_b, bx * columns, columns)));
                });
            });
        });
    })
}

fn compiled_for(shape: Shape, target: Target) -> Artifact {
    compile(product(shape), &Options::new(target)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
}

/// Checks the results of a launch in some schedules.
fn check(shape: Shape, target: Target, size: [i64; 3], seeds: u64) {
    products::check(&compiled_for(shape, target), &multiplied(shape.gemm, shape.dtypes, size), seeds);
}

/// The mutants of a product, found or not, by the virtual GPU.
fn mutated(kernel: &Kernel, launches: &[Launched]) -> Option<MutationReport> {
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm90a)).expect("a kernel");
    super::mutated_as(&artifact, launches)
}

/// What mutants of a product may be missed, and how often: the fence of barriers, which a barrier of the CTA makes needless; fences of
/// products whose sums nothing else touches, which NVRTC wants in every iteration (two are written out); a wait for one group before a
/// wait for all; and what releases the last two stages, for which nobody waits.
const MISSED: [(&str, usize); 5] =
    [("fence.mbarrier_init", 1), ("wgmma.fence", 2), ("wgmma.wait_group", 2), ("mbarrier.arrive", 2), ("bar.warp", 1)];

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
    let tf32 = Gemm { tf32: true, ..PLAIN.gemm };
    for (groups, tile) in [(1, [64, 64, 32]), (2, [128, 40, 64]), (1, [64, 256, 8])] {
        let shape = Shape { dtypes: [F32, F32], gemm: tf32, groups, tile, ..PLAIN };
        assert!(uses_wgmma(shape), "{shape:?}");
        check(shape, Target::Sm90a, [80, 144, 208], 2);
    }
    for (dtype, tf32) in [(E4M3, false), (F32, true)] {
        let turned = Shape { dtypes: [dtype, F32], gemm: Gemm { tf32, ..Gemm::PLAIN }, ..PLAIN };
        assert!(!uses_wgmma(turned));
        check(turned, Target::Sm90a, [64, 64, 64], 1);
    }
}

#[test]
fn a_product_is_computed_while_the_next_stage_arrives() {
    for (stages, waits) in
        [(1, "wgmma_wait<0>();"), (2, "wgmma_wait<1>();"), (3, "wgmma_wait<1>();"), (4, "wgmma_wait<1>();")]
    {
        let shape = Shape { stages, ..PLAIN };
        let cuda = compiled_for(shape, Target::Sm90a).cuda().to_string();
        assert!(cuda.contains(waits), "{cuda}");
        for depth in [16, 64, 80, 128, 320] {
            check(shape, Target::Sm90a, [64, 64, depth], 5);
        }
    }
}

#[test]
fn every_barrier_of_a_product_is_needed() {
    for shape in [PLAIN, Shape { groups: 2, tile: [128, 64, 64], stages: 2, ..PLAIN }] {
        let launches = [[128, 64, 448], [64, 64, 512]].map(|size| multiplied(shape.gemm, shape.dtypes, size));
        let Some(report) = mutated(&product(shape), &launches) else { return };
        assert!(are_missed(&report, &MISSED), "{shape:?}: {report:#?}");
    }
}

/// `c = (2a)*b`: threads store one factor in stages, and the other one is in registers or in shared memory of its own.
fn stored(in_registers: bool) -> Kernel {
    kernel("stored", |k| {
        let depth = k.size("k").multiple_of(16);
        let (a, b) = (k.input("a", BF16, [64, 64]), k.input("b", BF16, (depth, 64)));
        let c = k.output("c", F32, (depth, 64));
        k.threads(192);
        let stages = k.ring("stages", 2, |r| r.shared("right", BF16, [64, 64]));
        k.role("store", 2, |k| {
            k.serial("t", ..depth.ceil_div(64), |k, t| {
                let part = k.fragment("part", BF16, [64, 64]);
                k.copy(part, b.sub((at(&t * 64, 64), ..)));
                stages.produce(k, |k, right| {
                    k.parallel([64, 64], |k, [i, j]| k.store(right, (&i, &j), part.at((&i, &j)) * 2.0))
                });
            });
        });
        k.role("math", 4, |k| {
            let left = if in_registers { k.fragment("left", BF16, [64, 64]) } else { k.shared("left", BF16, [64, 64]) };
            k.copy(left, a);
            let sums = k.fragment("sums", F32, [64, 64]);
            k.serial("t", ..depth.ceil_div(64), |k, t| {
                stages.consume(k, |k, right| {
                    k.gemm_async(sums, left, right).with(Gemm { transpose_b: true, clear: true, ..Gemm::PLAIN });
                });
                k.parallel([64, 64], |k, [i, j]| k.store(c, (&t * 64 + j, &i), sums.at((&i, &j))));
            });
        });
    })
}

#[test]
fn products_see_what_threads_stored() {
    for in_registers in [false, true] {
        let kernel = stored(in_registers);
        let artifact = compile(kernel.clone(), &Options::new(Target::Sm90a)).expect("a kernel");
        let cuda = artifact.cuda();
        assert!(cuda.contains("fence_proxy_async_shared();") && cuda.contains("wgmma_fence();"), "{cuda}");
        assert_eq!(cuda.contains("_from_registers"), in_registers, "{cuda}");
        let launch = |depth: i64| {
            let (a, b) = (|i: i64, t: i64| number(i * 5 + t), |j: i64, t: i64| number(j * 3 + t * 2));
            let element = |at: i64| (0..64).map(|t| a(at % 64, t) * 2.0 * b(at / 64, t)).sum::<f64>() + 0.0;
            let inputs = vec![
                tensor(BF16, &[64, 64], |at| a(at / 64, at % 64)),
                tensor(BF16, &[depth, 64], |at| b(at / 64, at % 64)),
            ];
            (vec![("k", depth)], inputs, tensor(F32, &[depth, 64], element))
        };
        let launches = [64, 80, 448].map(launch);
        let Some(report) = mutated(&kernel, &launches) else { return };
        // Where the role that multiplies executes a fence for a factor of its own, it sees the other one too.
        let known = [&MISSED[..], &[("fence.proxy", usize::from(!in_registers))]].concat();
        assert!(are_missed(&report, &known), "{report:#?}");
    }
}
