//! Warp ops: the tiles that they accept, and several warps on the same tile.

use super::*;

#[test]
fn warps() {
    let on_one_tile = |threads, named: Option<i64>| {
        kernel("k", |k| {
            let a = k.input("a", F32, [4, 32]);
            let b = k.output("b", F32, S([4, 32], [1, 4]));
            k.threads(threads);
            let scope = match named {
                Some(warp) => k.warp_at(warp),
                None => k.warp(),
            };
            scope.permute_layout(b, a);
        })
    };
    assert_mistake("several_warps_on_one_tile", on_one_tile(128, None));
    assert_mistake("no_such_warp", on_one_tile(128, Some(7)));
}

#[test]
fn fragments_and_warps() {
    let held = |layout: &str, warp: Option<i64>| {
        kernel("k", |k| {
            let a = k.input("a", F32, [64]);
            k.threads(64);
            let held = k.fragment("held", F32, ([64i64], layout.parse::<TileLayout>().expect("a layout")));
            match warp {
                Some(warp) => k.warp_at(warp).copy(held, a),
                None => k.copy(held, a),
            };
        })
    };
    assert_mistake("a_fragment_that_names_no_warp", held("S[(16,4):(2@laneid,1@reg)] + R[2:1@laneid]", None));
    assert_mistake("a_fragment_of_two_warps_moved_by_one", held("S[64:1@tx]", Some(0)));
    let kernel = kernel("k", |k| {
        let (a, b) = (k.input("a", F32, [2, 32]), k.output("b", F32, [2, 32]));
        k.threads(64);
        let warp = k.warp_id();
        k.copy(b.sub((warp, ..)), a.sub((warp, ..)));
    });
    assert_mistake("tiles_of_warps_moved_by_the_cta", kernel);
}

#[test]
fn warps_that_meet_in_one_op() {
    let turned = kernel("k", |k| {
        k.threads(64);
        let tile = k.shared("tile", F32, [2, 4, 32]);
        let columns = k.view("columns", tile, S([2, 4, 32], [128, 1, 4]));
        let warp = k.warp_id();
        let other = (warp + 1) % 2;
        k.warp().permute_layout(columns.sub((warp, .., ..)), tile.sub((other, .., ..)));
    });
    assert_mistake("a_warp_reads_what_another_writes", turned);
    let filled = kernel("k", |k| {
        k.threads(96);
        let tile = k.shared("tile", F32, [3, 32]);
        let row = k.warp_id() / 2;
        k.warp().fill(tile.sub((row, ..)), 0);
    });
    assert_mistake("two_warps_write_one_tile", filled);
}
