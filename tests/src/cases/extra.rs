//! Small kernels, one per feature that the library's kernels do not exercise.

use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};

use super::{Case, Source};

/// A kernel whose logical output equals its input: only positions in memory change.
fn identity(name: &str, dtype: DType, shape: &[i64], kernel: Kernel) -> Case {
    let input = HostTensor::pattern(dtype, shape);
    Case {
        name: name.to_string(),
        kernel: Source::Written(Box::new(kernel)),
        variant: None,
        sizes: Vec::new(),
        expected: vec![input.clone()],
        inputs: vec![input],
        tolerance: Tolerance::EXACT,
        ideal: false,
        is_default: false,
    }
}

/// [`identity`] for sizes that are known only at launch.
fn sized(name: &str, shape: &[i64], sizes: Vec<(&'static str, i64)>, kernel: Kernel) -> Case {
    Case { sizes, ..identity(name, B32, shape, kernel) }
}

/// A vector of four would span two rows, the second of which may be out of bounds.
fn rows_of_two_over_an_edge() -> Kernel {
    kernel("rows_of_two_over_an_edge", |k| {
        let m = k.size("m").max(4096);
        let a = k.input("a", B32, (&m, 2));
        let b = k.output("b", B32, (&m, 2));
        let [y] = k.grid([m.ceil_div(32)]);
        let tile = k.shared("tile", B32, [32, 2]);
        k.warp().copy(tile, a.sub((at(&y * 32, 32), 0..2)));
        k.warp().copy(b.sub((at(&y * 32, 32), 0..2)), tile);
    })
}

/// Rows begin at multiples of 24 bytes, so vectors of 16 bytes would not be aligned.
fn pitches_of_six() -> Kernel {
    kernel("pitches_of_six", |k| {
        let m = k.size("m").multiple_of(32).max(4096);
        let (extents, pitch) = ([Expr::from(&m), Expr::from(4)], Expr::from(6));
        let a = k.input("a", B32, (extents, [pitch, Expr::from(1)]));
        let b = k.output("b", B32, (&m, 4));
        let [y] = k.grid([m.ceil_div(32)]);
        k.warp().permute_layout(b.sub((at(&y * 32, 32), 0..4)), a.sub((at(&y * 32, 32), 0..4)));
    })
}

/// The last tile extends past the end; elements out of bounds are not stored.
fn copied_over_an_edge() -> Kernel {
    kernel("filled_over_an_edge", |k| {
        let n = k.size("n").max(4096);
        let a = k.input("a", B32, (&n,));
        let b = k.output("b", B32, (&n,));
        let [x] = k.grid([n.ceil_div(64)]);
        let part = b.sub((at(&x * 64, 64),));
        k.warp().fill(part.clone(), 0);
        k.warp().copy(part, a.sub((at(&x * 64, 64),)));
    })
}

/// A kernel without inputs whose output is one value everywhere.
fn constant(name: &str, dtype: DType, shape: &[i64], bits: u128, kernel: Kernel) -> Case {
    Case {
        name: name.to_string(),
        kernel: Source::Written(Box::new(kernel)),
        variant: None,
        sizes: Vec::new(),
        expected: vec![HostTensor::from_fn(dtype, shape, |_| bits)],
        inputs: Vec::new(),
        tolerance: Tolerance::EXACT,
        ideal: false,
        is_default: false,
    }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        identity("cta_round_trip", F32, &[64, 96], cta_round_trip()),
        identity("one_warp_permutes_for_all", B32, &[4, 64], one_warp_permutes_for_all()),
        identity("each_warp_its_own_tile", B32, &[4, 4, 32], each_warp_its_own_tile()),
        identity("a_buffer_used_again", B32, &[3, 4, 32], a_buffer_used_again()),
        identity("a_named_warp_orders_nobody_else", B32, &[2, 4, 32], a_named_warp_orders_nobody_else()),
        two_loops_and_a_reader(),
        identity("through_a_fragment", F32, &[8, 8], through_a_fragment()),
        identity("a_replicated_fragment", B32, &[8, 4], a_replicated_fragment()),
        identity("fragment_to_fragment", B16, &[32, 8], fragment_to_fragment()),
        identity("conversions_that_are_allowed", B32, &[64], conversions_that_are_allowed()),
        identity("convert_layout", B32, &[64], convert_layout()),
        identity("ragged", B16, &[7, 13], ragged()),
        identity("iters_that_do_not_nest", B32, &[12], iters_that_do_not_nest()),
        identity("dynamic_shared", F32, &[128, 128], dynamic_shared()),
        identity("swizzled_shared", F32, &[32, 32], swizzled_shared()),
        identity("a_view_of_another_width", B8, &[512], a_view_of_another_width()),
        identity("an_unrolled_loop", F64, &[2, 64], an_unrolled_loop()),
        identity("blocks_of_a_matrix", F32, &[64, 96], blocks_of_a_matrix()),
        identity("a_batch_with_a_tail", B32, &[34, 32], a_batch_with_a_tail()),
        sized("rows_of_two_over_an_edge", &[33, 2], vec![("m", 33)], rows_of_two_over_an_edge()),
        sized("pitches_of_six", &[64, 4], vec![("m", 64)], pitches_of_six()),
        sized("filled_over_an_edge", &[45], vec![("n", 45)], copied_over_an_edge()),
        partly_filled(),
        constant("fill_in_memory", F32, &[100], u128::from(1.5f32.to_bits()), fill_in_memory()),
        constant("fill_in_registers", BF16, &[32, 4], 0xbf80, fill_in_registers()),
        constant("fill_opaque", B128, &[40], 0, fill_opaque()),
    ]
}

/// 128 threads copy into shared memory and out; elements move between threads only because the tile's order differs.
fn cta_round_trip() -> Kernel {
    kernel("cta_round_trip", |k| {
        let a = k.input("a", F32, [64, 96]);
        let b = k.output("b", F32, S([64, 96], [1, 64]));
        k.threads(128);
        let tile = k.shared("tile", F32, S([64, 96], [97, 1]));
        k.copy(tile, a);
        k.copy(b, tile);
    })
}

/// The CTA copies, warp 0 permutes: CTA barriers on both sides.
fn one_warp_permutes_for_all() -> Kernel {
    kernel("one_warp_permutes_for_all", |k| {
        let a = k.input("a", B32, [4, 64]);
        let b = k.output("b", B32, [4, 64]);
        k.threads(128);
        let tile = k.shared("tile", B32, S([4, 64], [64, 1]));
        let turned = k.view("turned", tile, S([4, 64], [1, 4]));
        k.copy(tile, a);
        k.warp_at(0).permute_layout(turned, tile);
        k.copy(b, turned);
    })
}

/// Four warps, each with its own tile: warp barriers suffice.
fn each_warp_its_own_tile() -> Kernel {
    kernel("each_warp_its_own_tile", |k| {
        let a = k.input("a", B32, [4, 4, 32]);
        let b = k.output("b", B32, [4, 4, 32]);
        k.threads(128);
        let w = k.warp_id();
        let tile = k.shared("tile", B32, S([4, 4, 32], [128, 32, 1]));
        let turned = k.view("turned", tile, S([4, 4, 32], [128, 1, 4]));
        k.warp().copy(tile.sub((&w, .., ..)), a.sub((&w, .., ..)));
        k.warp().permute_layout(turned.sub((&w, .., ..)), tile.sub((&w, .., ..)));
        k.warp().copy(b.sub((&w, .., ..)), turned.sub((&w, .., ..)));
    })
}

/// One shared buffer, written again in every iteration: the end of each must be ordered before the start of the next.
fn a_buffer_used_again() -> Kernel {
    kernel("a_buffer_used_again", |k| {
        let a = k.input("a", B32, [3, 4, 32]);
        let b = k.output("b", B32, S([3, 4, 32], [128, 1, 4]));
        k.threads(64);
        let tile = k.shared("tile", B32, [4, 32]);
        k.serial("i", 0..3, |k, i| {
            k.copy(tile, a.sub((&i, .., ..)));
            k.copy(b.sub((&i, .., ..)), tile);
        });
    })
}

/// The barriers inside warp 0's permute do not order warp 1, whose lanes read what other lanes wrote before it.
fn a_named_warp_orders_nobody_else() -> Kernel {
    kernel("a_named_warp_orders_nobody_else", |k| {
        let a = k.input("a", B32, [2, 4, 32]);
        let b = k.output("b", B32, S([2, 4, 32], [128, 1, 4]));
        k.threads(64);
        let w = k.warp_id();
        let tile = k.shared("tile", B32, [2, 4, 32]);
        let other = k.shared("other", B32, [4, 32]);
        let turned = k.view("turned", other, S([4, 32], [1, 4]));
        k.warp_at(0).fill(other, 0);
        k.warp().copy(tile.sub((&w, .., ..)), a.sub((&w, .., ..)));
        k.warp_at(0).permute_layout(turned, other);
        k.warp().copy(b.sub((&w, .., ..)), tile.sub((&w, .., ..)));
    })
}

/// The tile that the first inner loop writes is read after the second, in the same iteration of the outer loop.
fn two_loops_and_a_reader() -> Case {
    let kernel = kernel("two_loops_and_a_reader", |k| {
        let a = k.input("a", B32, [2, 2, 64]);
        let b = k.output("b", B32, S([2, 2, 64], [128, 1, 2]));
        let c = k.output("c", B32, [2, 2, 64]);
        k.threads(64);
        let tile = k.shared("tile", B32, [2, 64]);
        let other = k.shared("other", B32, [2, 64]);
        k.serial("o", 0..2, |k, o| {
            k.serial("i", 0..2, |k, i| {
                k.copy(tile.sub((&i, ..)), a.sub((&o, &i, ..)));
            });
            k.serial("i", 0..2, |k, i| {
                k.copy(other.sub((&i, ..)), a.sub((&o, &i, ..)));
            });
            k.copy(b.sub((&o, .., ..)), tile);
            k.copy(c.sub((&o, .., ..)), other);
        });
    });
    let case = identity("two_loops_and_a_reader", B32, &[2, 2, 64], kernel);
    Case { expected: vec![case.inputs[0].clone(), case.inputs[0].clone()], ..case }
}

/// The accumulator fragment of an 8 x 8 tile: 2 adjacent elements per lane.
fn through_a_fragment() -> Kernel {
    kernel("through_a_fragment", |k| {
        let a = k.input("a", F32, [8, 8]);
        let b = k.output("b", F32, S([8, 8], [1, 8]));
        k.threads(32);
        let held = k.fragment("held", F32, ([8, 8], S([8, 4, 2], [4 * LANEID, 1 * LANEID, 1 * M])));
        k.warp().copy(held, a);
        k.warp().copy(b, held);
    })
}

/// Every element is held by two lanes, and half of the warp holds none: one copy is stored.
fn a_replicated_fragment() -> Kernel {
    kernel("a_replicated_fragment", |k| {
        let a = k.input("a", B32, [8, 4]);
        let b = k.output("b", B32, [8, 4]);
        k.threads(32);
        let held = k.fragment("held", B32, S([8, 4], [1 * LANEID, 1 * M]) + R([2], [8 * LANEID]) + 4 * LANEID);
        k.warp().copy(held, a);
        k.warp().copy(b, held);
    })
}

/// Rows on adjacent threads in one fragment, columns in the other: inference inserts a copy through shared memory.
fn conversions_that_are_allowed() -> Kernel {
    kernel("conversions_that_are_allowed", |k| {
        let a = k.input("a", B32, [64]);
        let b = k.output("b", B32, [64]);
        k.threads(64);
        k.allow_conversions();
        let first = k.fragment("first", B32, S([64], [1 * TX]));
        let second = k.fragment("second", B32, S([8, 8], [1 * TX, 8 * TX]));
        k.copy(first, a);
        k.parallel([8, 8], |k, [i, j]| {
            k.store(second, (&i, &j), first.at((&i * 8 + j,)));
        });
        k.parallel([8, 8], |k, [i, j]| {
            k.store(b, (&i * 8 + j,), second.at((&i, &j)));
        });
    })
}

/// The same, with the copy written by the user.
fn convert_layout() -> Kernel {
    kernel("convert_layout", |k| {
        let a = k.input("a", B32, [64]);
        let b = k.output("b", B32, [64]);
        k.threads(64);
        let first = k.fragment("first", B32, S([64], [1 * TX]));
        let second = k.fragment("second", B32, ([64], S([8, 8], [1 * TX, 8 * TX])));
        k.copy(first, a);
        k.convert_layout(second, first);
        k.copy(b, second);
    })
}

/// The same owners, with registers in a different order.
fn fragment_to_fragment() -> Kernel {
    kernel("fragment_to_fragment", |k| {
        let a = k.input("a", B16, [32, 8]);
        let b = k.output("b", B16, [32, 8]);
        k.threads(32);
        let first = k.fragment("first", B16, S([32, 8], [1 * LANEID, 1 * M]));
        let second = k.fragment("second", B16, ([32, 8], S([32, 2, 4], [1 * LANEID, 1 * M, 2 * M])));
        k.warp().copy(first, a);
        k.warp().copy(second, first);
        k.warp().copy(b, second);
    })
}

/// Sizes that are not divisible by the number of threads: the last step is predicated.
fn ragged() -> Kernel {
    kernel("ragged", |k| {
        let a = k.input("a", B16, [7, 13]);
        let b = k.output("b", B16, S([7, 13], [1, 7]));
        k.threads(32);
        let tile = k.shared("tile", B16, S([7, 13], [15, 1]));
        k.copy(tile, a);
        k.copy(b, tile);
    })
}

/// 3 x 4 on one side, 4 x 3 on the other: there are no common iters, so the copy is element by element.
fn iters_that_do_not_nest() -> Kernel {
    let flat = |layout: &str| ([12i64], layout.parse::<TileLayout>().expect("a layout"));
    kernel("iters_that_do_not_nest", |k| {
        let a = k.input("a", B32, flat("S[(3,4):(10,1)]"));
        let b = k.output("b", B32, flat("S[(4,3):(1,4)]"));
        k.threads(32);
        k.copy(b, a);
    })
}

/// More shared memory than a kernel may declare statically.
fn dynamic_shared() -> Kernel {
    kernel("dynamic_shared", |k| {
        let a = k.input("a", F32, [128, 128]);
        let b = k.output("b", F32, [128, 128]);
        k.threads(256);
        let tile = k.shared("tile", F32, [128, 128]);
        k.copy(tile, a);
        k.copy(b, tile);
    })
}

/// A swizzled tile, written row by row and read column by column.
fn swizzled_shared() -> Kernel {
    let swizzle = SwizzleLayout::new(0, 5, 5, true).expect("a swizzle");
    kernel("swizzled_shared", |k| {
        let a = k.input("a", F32, [32, 32]);
        let b = k.output("b", F32, S([32, 32], [1, 32]));
        k.threads(32);
        let tile = k.shared("tile", F32, (swizzle, S([32, 32], [32, 1])));
        k.copy(tile, a);
        k.copy(b, tile);
    })
}

/// Bytes are copied to shared memory, copied there as words, and copied out as bytes.
fn a_view_of_another_width() -> Kernel {
    kernel("a_view_of_another_width", |k| {
        let a = k.input("a", B8, [512]);
        let b = k.output("b", B8, [512]);
        k.threads(64);
        let first = k.shared("first", B8, [512]);
        let second = k.shared("second", B8, [512]);
        let first_words = k.view_as("first_words", first, B32, [128]);
        let second_words = k.view_as("second_words", second, B32, [128]);
        k.copy(first, a);
        k.copy(second_words, first_words);
        k.copy(b, second);
    })
}

fn an_unrolled_loop() -> Kernel {
    kernel("an_unrolled_loop", |k| {
        let a = k.input("a", F64, [2, 64]);
        let b = k.output("b", F64, [2, 64]);
        k.threads(32);
        k.unroll("i", 0..2, |k, i| {
            k.copy(b.sub((&i, ..)), a.sub((&i, ..)));
        });
    })
}

/// A grid of CTAs, each of which moves its own part.
fn blocks_of_a_matrix() -> Kernel {
    kernel("blocks_of_a_matrix", |k| {
        let a = k.input("a", F32, [64, 96]);
        let b = k.output("b", F32, S([64, 96], [1, 64]));
        let [column, row] = k.grid([3, 2]);
        k.threads(64);
        let tile = k.shared("tile", F32, S([32, 32], [33, 1]));
        let block = (at(&row * 32, 32), at(&column * 32, 32));
        k.copy(tile, a.sub(block));
        k.copy(b.sub(block), tile);
    })
}

/// More steps than fit in one batch; in the last step only half of the lanes are active.
fn a_batch_with_a_tail() -> Kernel {
    kernel("a_batch_with_a_tail", |k| {
        let a = k.input("a", B32, [34, 32]);
        let b = k.output("b", B32, [34, 32]);
        k.threads(32);
        k.copy(b, a);
    })
}

/// Half of the rows of a fragment are set to zero; the lanes that hold the other rows keep them.
fn partly_filled() -> Case {
    let kernel = kernel("partly_filled", |k| {
        let a = k.input("a", B32, [32, 4]);
        let b = k.output("b", B32, [32, 4]);
        k.threads(32);
        let held = k.fragment("held", B32, S([32, 4], [1 * LANEID, 1 * M]));
        k.warp().copy(held, a);
        k.warp().fill(held.sub((0..16, ..)), 0);
        k.warp().copy(b, held);
    });
    let case = identity("partly_filled", B32, &[32, 4], kernel);
    let kept = case.inputs[0].clone();
    let bits = |i: i64| {
        let word: [u8; 4] = kept.element(i).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        u128::from(u32::from_le_bytes(word))
    };
    let expected = HostTensor::from_fn(B32, &[32, 4], |i| if i < 64 { 0 } else { bits(i) });
    Case { expected: vec![expected], ..case }
}

fn fill_in_memory() -> Kernel {
    kernel("fill_in_memory", |k| {
        let b = k.output("b", F32, [100]);
        k.threads(64);
        let tile = k.shared("tile", F32, [100]);
        k.fill(tile, 1.5);
        k.copy(b, tile);
    })
}

fn fill_in_registers() -> Kernel {
    kernel("fill_in_registers", |k| {
        let b = k.output("b", BF16, [32, 4]);
        k.threads(32);
        let held = k.fragment("held", BF16, S([32, 4], [1 * LANEID, 1 * M]));
        k.warp().fill(held, -1);
        k.warp().copy(b, held);
    })
}

fn fill_opaque() -> Kernel {
    kernel("fill_opaque", |k| {
        let b = k.output("b", B128, [40]);
        k.threads(32);
        k.fill(b, 0);
    })
}
