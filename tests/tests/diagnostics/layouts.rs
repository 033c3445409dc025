//! Invalid layouts of buffers.

use tilewright::layout::axis::{TID_IN_WG, WGID, WID_IN_WG};

use super::*;

/// Twenty strides whose sums are all distinct, since their differences are powers of 3. They are too close to each
/// other for all sums to be compared.
fn strides_of_one_magnitude() -> [i64; 20] {
    std::array::from_fn(|at| (1 << 40) + 3i64.pow(at as u32))
}

#[test]
fn a_layout_with_too_many_positions_to_compare() {
    let kernel = kernel("k", |k| {
        k.output("b", F32, S([2; 20], strides_of_one_magnitude()));
    });
    assert_mistake("positions_that_cannot_be_compared", kernel);
}

#[test]
fn fragments_on_threads_beyond_the_cta() {
    let two_warps = kernel("k", |k| {
        k.threads(64);
        k.fragment("groups", F32, S([2, 64], [1 * WGID, 1 * TID_IN_WG]));
        k.fragment("group", F32, S([128], [1 * TID_IN_WG]));
        k.fragment("warps", F32, S([4, 32], [1 * WID_IN_WG, 1 * LANEID]));
    });
    assert_mistake("fragments_on_warps_beyond_the_cta", two_warps);
    let half_a_warp = kernel("k", |k| {
        k.threads(16);
        k.fragment("lanes", F32, S([32], [1 * LANEID]));
    });
    assert_mistake("fragments_on_lanes_beyond_the_cta", half_a_warp);
}

#[test]
fn tiles_that_no_cache_keeps() {
    let streamed = kernel("k", |k| {
        let y = k.output("y", F32, [64]).streamed();
        let tile = k.shared("tile", F32, [64]).streamed();
        let v = k.fragment("v", F32, [64]).in_l2();
        k.fill(v, 0.0);
        k.copy(tile, v);
        k.copy(y, tile);
    });
    assert_mistake("tiles_that_no_cache_keeps", streamed);
}

#[test]
fn fragments_that_are_set_apart() {
    let apart = kernel("k", |k| {
        let v = k.fragment("v", F32, [64]).alone();
        k.fill(v, 0.0);
    });
    assert_mistake("a_fragment_that_is_set_apart", apart);
}
