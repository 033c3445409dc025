//! Products whose left factor threads have left in tensor memory.

use tilewright::compile::{Artifact, Options, Stage, compile};
use tilewright::prelude::*;

use super::products::{self, ANY, are_missed, multiplied};

/// What a product is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    columns: i64,
    depth: i64,
    dtypes: [DType; 2],
    transpose_b: bool,
    /// Columns of the left factor that a copy moves.
    part: i64,
    stages: i64,
}

const PLAIN: Shape = Shape { columns: 64, depth: 64, dtypes: [BF16, F32], transpose_b: true, part: 64, stages: 2 };

impl Shape {
    fn gemm(self) -> Gemm {
        Gemm { transpose_b: self.transpose_b, tf32: self.dtypes[0] == F32, ..Gemm::PLAIN }
    }
}

/// `c = a*b`; one role brings `b`, one copies `a` through registers to tensor memory, one multiplies, and one stores.
fn product(shape: Shape) -> Kernel {
    let Shape { columns, depth, dtypes: [factor, sum], transpose_b, part, stages } = shape;
    kernel("product", |k| {
        let [m, n, inner] = ["m", "n", "k"].map(|name| k.size(name).multiple_of(16).max(4096));
        let a = k.input("a", factor, (m, inner));
        let b = if transpose_b { k.input("b", factor, (n, inner)) } else { k.input("b", factor, (inner, n)) };
        let c = k.output("c", sum, (m, n));
        let [row, column] = k.grid([m.ceil_div(128), n.ceil_div(columns)]);
        k.threads(128 + 128 + 64);
        let tile = if transpose_b { [columns, depth] } else { [depth, columns] };
        let right = k.ring("right", stages, |r| r.shared("right_tile", factor, tile));
        let left = k.ring("left", stages, |r| r.tensor("left_tile", factor, [128, depth]));
        let acc = k.ring("acc", 1, |r| r.tensor("sums", sum, [128, columns]));
        let steps = inner.ceil_div(depth);
        k.role("load", 1, |k| {
            k.serial("t", ..steps, |k, t| {
                let (own, along) = (at(column * columns, columns), at(t * depth, depth));
                right.produce(k, |k, tile| match transpose_b {
                    true => k.copy(tile, b.sub((own, along))),
                    false => k.copy(tile, b.sub((along, own))),
                });
            });
        });
        k.role("prepare", 4, |k| {
            let held = k.fragment("held", factor, [128, part]);
            k.serial("t", ..steps, |k, t| {
                left.produce(k, |k, tile| {
                    k.unroll("p", 0..depth / part, |k, p| {
                        k.copy(held, a.sub((at(row * 128, 128), at(t * depth + p * part, part))));
                        k.copy(tile.sub((.., at(p * part, part))), held);
                    });
                });
            });
        });
        k.role("multiply", 1, |k| {
            acc.produce(k, |k, sums| {
                k.fill(sums, 0);
                k.serial("t", ..steps, |k, _| {
                    right.consume(k, |k, right_tile| {
                        left.consume(k, |k, left_tile| {
                            k.gemm_async(sums, left_tile, right_tile).with(shape.gemm());
                        });
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            let sums_of_row = k.fragment("sums_of_row", sum, [128, columns]);
            acc.consume(k, |k, sums| k.copy(sums_of_row, sums));
            k.copy(c.sub((at(row * 128, 128), at(column * columns, columns))), sums_of_row);
        });
    })
}

fn compiled_for(shape: Shape) -> Artifact {
    compile(product(shape), &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{shape:?}: {found:?}"))
}

fn check(shape: Shape, size: [i64; 3], seeds: u64) {
    products::check(&compiled_for(shape), &multiplied(shape.gemm(), shape.dtypes, size), seeds);
}

#[test]
fn a_left_factor_in_tensor_memory_of_every_dtype() {
    for (dtypes, depth) in [
        ([BF16, F32], 64),
        ([F16, F32], 16),
        ([F32, F32], 32),
        ([F32, F32], 8),
        ([E4M3, F32], 64),
        ([E5M2, F32], 128),
        ([I8, I32], 64),
        ([U8, I32], 32),
    ] {
        let is_wide = dtypes[0].bytes() == 2;
        for transpose_b in [true, false] {
            let shape = Shape { dtypes, depth, part: depth, transpose_b, ..PLAIN };
            check(shape, [272, 80, 144], 2);
            check(Shape { columns: if is_wide { 128 } else { 32 }, ..shape }, [128, 160, 16], 2);
        }
    }
}

#[test]
fn parts_of_a_factor_and_stages() {
    for (depth, part, stages) in [(64, 16, 1), (128, 32, 2), (96, 48, 3), (256, 2, 1)] {
        check(Shape { depth, part, stages, columns: 32, ..PLAIN }, [144, 48, 400], 3);
    }
}

/// A row of 64 elements of 16 bits takes 32 columns.
#[test]
fn columns_and_instructions() {
    let artifact = compiled_for(PLAIN);
    let cuda = artifact.cuda();
    let store =
        "tensor_store_32_u32(tensor_base + warp*2097152 + left_stage*32, reinterpret_cast<const unsigned int*>(held));";
    assert!(cuda.contains(store), "{cuda}");
    assert!(cuda.contains("tensor_mma_left_f16(tensor_base + 64, tensor_base + left_stage*32 + i*8 + 8,"), "{cuda}");
    let plan = artifact.stage(Stage::Plan);
    assert!(plan.contains("2 stages of `left_tile`, 32 columns of tensor memory each"), "{plan}");
    assert!(plan.contains("`a` in tensor memory"), "{plan}");
}

/// The survivors: fences for which the virtual GPU has no rule; barriers of lanes that have waited for their moves together; the wait for
/// the first stage of the sums; and what releases stages that nobody fills again: that of the sums, and the last ones of factors.
#[test]
fn every_barrier_of_a_factor_in_tensor_memory_is_needed() {
    let launches = [[128, 64, 576], [256, 64, 128]].map(|size| multiplied(PLAIN.gemm(), PLAIN.dtypes, size));
    let Some(report) = super::mutated_as(&compiled_for(PLAIN), &launches) else { return };
    let fences = [("fence.mbarrier_init", 1), ("tcgen05.fence", ANY)];
    let others = [("bar.warp", 4), ("try_wait", 1), ("mbarrier.init.", 2), ("arrive.shared", 1), ("commit", 2)];
    let known = [&fences[..], &others].concat();
    assert!(are_missed(&report, &known), "{report:#?}");
}
