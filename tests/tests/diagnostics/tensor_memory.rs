//! Tensor memory: sums that it cannot have, and ops that do not work on it.

use super::*;

type Sums = Ring<Buffer>;

/// A kernel with factors in a ring, sums in tensor memory of this shape, and roles that do these things with the sums.
fn with_sums(
    (dtype, shape, stages): (DType, [i64; 2], i64),
    multiply: impl Fn(&mut KernelBuilder, Buffer, [Buffer; 2]),
    (warps, store): (i64, impl Fn(&mut KernelBuilder, Buffer, Buffer)),
) -> Kernel {
    kernel("k", |k| {
        let (a, b) = (k.input("a", BF16, [128, 64]), k.input("b", BF16, [64, 64]));
        let c = k.output("c", F32, [128, 64]);
        k.threads(224);
        let ab = k.ring("ab", 1, |r| [r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])]);
        let acc: Sums = k.ring("acc", stages, |r| r.tensor("sums", dtype, shape));
        k.role("load", 1, |k| {
            ab.produce(k, |k, [left, right]| {
                k.copy(left, a);
                k.copy(right, b);
            });
        });
        k.role("multiply", 1, |k| acc.produce(k, |k, sums| ab.consume(k, |k, factors| multiply(k, sums, factors))));
        k.role("store", warps, |k| acc.consume(k, |k, sums| store(k, sums, c)));
    })
}

const PLAIN: (DType, [i64; 2], i64) = (F32, [128, 64], 1);

fn product(k: &mut KernelBuilder, sums: Buffer, [left, right]: [Buffer; 2]) {
    k.fill(sums, 0);
    k.gemm_async(sums, left, right);
}

fn stored(k: &mut KernelBuilder, sums: Buffer, c: Buffer) {
    let held = k.fragment("held", F32, [128, 64]);
    k.copy(held, sums);
    k.copy(c, held);
}

#[test]
fn sums_that_tensor_memory_cannot_have() {
    let kernel = with_sums(PLAIN, product, (4, stored));
    assert!(compile(kernel.clone(), &Options::new(Target::Sm100a)).is_ok());
    let found = compile(kernel, &Options::new(Target::Sm90a)).expect_err("sm_90a has none");
    assert_rendered("tensor_memory_on_hopper", &found);
    assert_mistake("sums_of_64_rows", with_sums((F32, [64, 64], 1), product, (4, stored)));
    assert_mistake("sums_of_16_bits", with_sums((F16, [128, 64], 1), product, (4, stored)));
    assert_mistake("too_many_columns", with_sums((F32, [128, 64], 9), product, (4, stored)));
}

#[test]
fn ops_that_tensor_memory_is_not_for() {
    let added = |k: &mut KernelBuilder, sums: Buffer, [left, right]: [Buffer; 2]| {
        k.fill(sums, 1.0);
        k.gemm_async(sums, left, right);
    };
    assert_mistake("sums_that_begin_at_1", with_sums(PLAIN, added, (4, stored)));
    let some = |k: &mut KernelBuilder, sums: Buffer, [left, right]: [Buffer; 2]| {
        k.fill(sums, 0);
        let count = k.size("count");
        k.serial("t", (1, count), |k, _| k.gemm_async(sums, left, right));
    };
    assert_mistake("sums_without_products", with_sums(PLAIN, some, (4, stored)));
    let plain = |k: &mut KernelBuilder, sums: Buffer, [left, right]: [Buffer; 2]| {
        k.fill(sums, 0);
        k.gemm(sums, left, right);
    };
    assert_mistake("a_plain_product_in_tensor_memory", with_sums(PLAIN, plain, (4, stored)));
    let at_once = |k: &mut KernelBuilder, sums: Buffer, c: Buffer| _ = k.copy(c, sums);
    assert_mistake("sums_copied_to_a_tensor", with_sums(PLAIN, product, (4, at_once)));
    let single = |k: &mut KernelBuilder, sums: Buffer, c: Buffer| {
        k.parallel([128, 64], |k, [i, j]| k.store(c, (&i, &j), sums.at((&i, &j))));
    };
    assert_mistake("single_elements_of_tensor_memory", with_sums(PLAIN, product, (4, single)));
    assert_mistake("sums_read_by_two_warps", with_sums(PLAIN, product, (2, stored)));
    let rows = |k: &mut KernelBuilder, sums: Buffer, c: Buffer| {
        let held = k.fragment("held", F32, [64, 64]);
        k.copy(held, sums.sub((0..64, ..)));
        k.copy(c.sub((0..64, ..)), held);
    };
    assert_mistake("some_rows_of_tensor_memory", with_sums(PLAIN, product, (4, rows)));
    let unfilled = |k: &mut KernelBuilder, sums: Buffer, [left, right]: [Buffer; 2]| {
        k.gemm_async(sums, left, right);
    };
    assert_mistake("sums_that_begin_at_nothing", with_sums(PLAIN, unfilled, (4, stored)));
    let turned = |k: &mut KernelBuilder, sums: Buffer, [left, right]: [Buffer; 2]| {
        k.fill(sums, 0);
        k.gemm_async(sums, left, right).with(Gemm { transpose_a: true, ..Gemm::PLAIN });
    };
    assert_mistake("sums_of_other_factors", with_sums(PLAIN, turned, (4, stored)));
    let by_rows = |k: &mut KernelBuilder, sums: Buffer, c: Buffer| {
        let held = k.fragment("held", F32, S([128, 64], [1 * M, 1 * TX]));
        k.copy(held, sums);
        k.copy(c, held);
    };
    assert_mistake("a_fragment_laid_out_otherwise", with_sums(PLAIN, product, (4, by_rows)));
}

/// A kernel whose sums are exchanged by a role that multiplies and one that does something else with them.
fn with_exchange(
    (warps, scale): (i64, impl Fn(&mut KernelBuilder, Buffer, Buffer)),
    others: impl Fn(&mut KernelBuilder, Sums),
) -> Kernel {
    kernel("k", |k| {
        let (a, b) = (k.input("a", BF16, [128, 64]), k.input("b", BF16, [64, 64]));
        let c = k.output("c", F32, [128, 64]);
        k.threads(256);
        let ab = k.ring("ab", 1, |r| [r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [64, 64])]);
        let acc: Sums = k.exchange("acc", |r| r.tensor("sums", F32, [128, 64]));
        k.role("load", 1, |k| {
            ab.produce(k, |k, [left, right]| {
                k.copy(left, a);
                k.copy(right, b);
            });
        });
        k.role("scale", warps, |k| {
            acc.produce(k, |k, sums| scale(k, sums, c));
            acc.produce(k, |k, sums| stored(k, sums, c));
        });
        k.role("multiply", 1, |k| {
            ab.consume(k, |k, [left, right]| acc.consume(k, |k, sums| k.gemm_async(sums, left, right)));
            acc.consume(k, |_, _| ());
        });
        others(k, acc);
    })
}

fn zeros(k: &mut KernelBuilder, sums: Buffer, _: Buffer) {
    let held = k.fragment("zeros", F32, [128, 64]);
    k.fill(held, 0.0);
    k.copy(sums, held);
}

#[test]
fn exchanges_that_cannot_be() {
    let right = with_exchange((4, zeros), |_, _| ());
    assert!(compile(right, &Options::new(Target::Sm100a)).is_ok());
    let third = |k: &mut KernelBuilder, acc: Sums| {
        k.role("look", 1, |k| {
            acc.consume(k, |_, _| ());
            acc.consume(k, |_, _| ());
        });
    };
    assert_mistake("an_exchange_of_three_roles", with_exchange((4, zeros), third));
    let filled = |k: &mut KernelBuilder, sums: Buffer, _: Buffer| _ = k.fill(sums, 0);
    assert_mistake("sums_filled_by_a_role_without_products", with_exchange((4, filled), |_, _| ()));
    let from_memory = |k: &mut KernelBuilder, sums: Buffer, c: Buffer| _ = k.copy(sums, c);
    assert_mistake("sums_copied_from_a_tensor", with_exchange((4, from_memory), |_, _| ()));
    let at_once = |k: &mut KernelBuilder, sums: Buffer, _: Buffer| {
        let first = k.fragment("first", F32, [128, 64]);
        k.copy(first, sums);
    };
    assert_mistake("sums_that_nobody_begins", with_exchange((4, at_once), |_, _| ()));
    assert_mistake("sums_written_by_two_warps", with_exchange((2, zeros), |_, _| ()));
    let shared = kernel("k", |k| {
        let y = k.output("y", F32, [32]);
        k.threads(64);
        let both = k.exchange("both", |r| r.shared("held", F32, [32]));
        k.role("one", 1, |k| both.produce(k, |k, held| k.fill(held, 0.0)));
        k.role("two", 1, |k| both.consume(k, |k, held| k.copy(y, held)));
    });
    assert_mistake("an_exchange_without_tensor_memory", shared);
    let of_pair = kernel("k", |k| {
        let (a, b) = (k.input("a", BF16, [256, 64]), k.input("b", BF16, [64, 64]));
        let c = k.output("c", F32, [256, 64]);
        k.threads(192);
        let rank = k.cluster(2);
        k.grid([1]);
        let ab = k.ring("ab", 1, |r| [r.shared("left", BF16, [128, 64]), r.shared("right", BF16, [32, 64])]);
        let acc: Sums = k.exchange("acc", |r| r.tensor("sums", F32, [128, 64]));
        k.role("load", 1, |k| {
            ab.produce(k, |k, [left, right]| {
                k.copy(left, a.sub((at(rank * 128, 128), ..)));
                k.copy(right, b.sub((at(rank * 32, 32), ..)));
            });
        });
        k.role("scale", 4, |k| {
            acc.produce(k, |k, sums| zeros(k, sums, c));
            acc.produce(k, |k, sums| {
                let held = k.fragment("held", F32, [128, 64]);
                k.copy(held, sums);
                k.copy(c.sub((at(rank * 128, 128), ..)), held);
            });
        });
        k.role("multiply", 1, |k| {
            let gemm = Gemm { transpose_b: true, pair: true, ..Gemm::PLAIN };
            ab.consume(k, |k, [left, right]| acc.consume(k, |k, sums| k.gemm_async(sums, left, right).with(gemm)));
            acc.consume(k, |_, _| ());
        });
    });
    assert_mistake("an_exchange_of_a_pair", of_pair);
}

/// A product of which one factor or both are in tensor memory, where a role has copied a fragment.
fn with_factor(place: usize, dtype: DType, copy: impl Fn(&mut KernelBuilder, Buffer)) -> Kernel {
    kernel("k", |k| {
        let (b, c) = (k.input("b", dtype, [128, 64]), k.output("c", F32, [128, 128]));
        k.threads(320);
        let right = k.ring("right", 1, |r| r.shared("right_tile", dtype, [128, 64]));
        let left = k.ring("left", 1, |r| r.tensor("left_tile", dtype, [128, 64]));
        let acc: Sums = k.ring("acc", 1, |r| r.tensor("sums", F32, [128, 128]));
        k.role("load", 1, |k| right.produce(k, |k, tile| k.copy(tile, b)));
        k.role("prepare", 4, |k| left.produce(k, &copy));
        k.role("multiply", 1, |k| {
            acc.produce(k, |k, sums| {
                right.consume(k, |k, right_tile| {
                    left.consume(k, |k, left_tile| {
                        let factors = if place == 1 { [left_tile, right_tile] } else { [right_tile, left_tile] };
                        let gemm = Gemm { transpose_b: true, clear: true, ..Gemm::PLAIN };
                        k.gemm_async(sums, factors[0], factors[1]).with(gemm);
                    });
                });
            });
        });
        k.role("store", 4, |k| {
            let held = k.fragment("held", F32, [128, 128]);
            acc.consume(k, |k, sums| k.copy(held, sums));
            k.copy(c, held);
        });
    })
}

#[test]
fn factors_that_tensor_memory_cannot_have() {
    let ones = |first: i64, extent: i64, dtype: DType| {
        move |k: &mut KernelBuilder, tile: Buffer| {
            let ones = k.fragment("ones", dtype, [128, extent]);
            k.fill(ones, 1);
            k.copy(tile.sub((.., at(first, extent))), ones);
        }
    };
    let right = with_factor(1, BF16, ones(0, 64, BF16));
    assert!(compile(right, &Options::new(Target::Sm100a)).is_ok());
    assert_mistake("a_right_factor_in_tensor_memory", with_factor(2, BF16, ones(0, 64, BF16)));
    assert_mistake("a_copy_that_begins_inside_of_a_column", with_factor(1, BF16, ones(1, 2, BF16)));
    assert_mistake("a_copy_that_ends_inside_of_a_column", with_factor(1, I8, ones(0, 6, I8)));
}
