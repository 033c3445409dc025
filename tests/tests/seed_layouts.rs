//! All layouts of the specification documents, with the numbers given there.

use tilewright::layout::axis::{GPUID_X, GPUID_Y, TCOL, TLANE};
use tilewright::layout::banks::{AccessPattern, bank_of, bank_view};
use tilewright::layout::hardware::{Datapath, Tcgen05Shape, named, tcgen05_atom_layout, tmem_datapath_layout};
use tilewright::layout::mesh::Mesh;
use tilewright::layout::{Axis, SwizzleLayout};
use tilewright::prelude::*;

fn tile(text: &str) -> TileLayout {
    text.parse().expect("a layout of the documents")
}

/// The positions of an element on some axes, one row per place of the element.
fn at(layout: &TileLayout, coordinate: &[i64], shape: &[i64], axes: &[Axis]) -> Vec<Vec<i64>> {
    let places = layout.apply_in(coordinate, shape).expect("inside the tile");
    places.iter().map(|place| axes.iter().map(|axis| place.get(axis).copied().unwrap_or(0)).collect()).collect()
}

#[test]
fn row_major_4_by_4_is_4i_plus_j() {
    let layout = tile("S[(4,4):(4,1)]");
    for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
        assert_eq!(at(&layout, &[i, j], &[4, 4], &[M]), [[4 * i + j]]);
    }
}

#[test]
fn a_permute_of_a_3_by_4_matrix_swaps_the_strides() {
    let transposed = tile("S[(3,4):(4,1)]").permute_dims(&[1, 0]).expect("two iters");
    assert_eq!(transposed, tile("S[(4,3):(1,4)]"));
}

#[test]
fn an_8_by_8_matrix_in_2_by_4_tiles_splits_both_indices() {
    let layout = tile("S[(4,2,2,4):(16,4,8,1)]");
    for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
        let address = (i / 2) * 16 + (i % 2) * 4 + (j / 4) * 8 + j % 4;
        assert_eq!(at(&layout, &[i, j], &[8, 8], &[M]), [[address]]);
    }
}

#[test]
fn the_default_axis_of_an_8_by_16_tile_may_be_written() {
    assert_eq!(tile("S[(8,16):(16@m,1@m)]"), tile("S[(8,16):(16,1)]"));
}

#[test]
fn the_8_by_8_fragment_is_two_registers_of_four_lanes_a_row() {
    let layout = tile("S[(8,4,2):(4@laneid,1@laneid,1@reg)]");
    assert_eq!(at(&layout, &[3, 5], &[8, 8], &[LANEID, REG]), [[14, 1]]);
    assert_eq!(named("mma:m16n8k8:c:f32").map(|named| named.shape), Ok(vec![16, 8]));
}

#[test]
fn the_8_by_16_register_tile_is_on_two_pairs_of_warps() {
    let layout = tile("S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid");
    for (i, j) in (0..8).flat_map(|i| (0..16).map(move |j| (i, j))) {
        let (lane, warp, m) = (4 * i + j / 2 % 4, j / 8 + 5, j % 2);
        assert_eq!(at(&layout, &[i, j], &[8, 16], &[LANEID, WARPID, M]), [[lane, warp, m], [lane, warp + 4, m]]);
    }
    assert_eq!(at(&layout, &[3, 9], &[8, 16], &[LANEID, WARPID, M]), [[12, 6, 1], [12, 10, 1]]);
}

#[test]
fn an_accumulator_is_rows_over_lanes_and_columns_over_columns() {
    let layout = tile("S[(128,256):(1@TLane,1@TCol)]");
    assert_eq!(at(&layout, &[77, 200], &[128, 256], &[TLANE, TCOL]), [[77, 200]]);
    let built = tmem_datapath_layout(Datapath::D, 128, 256, 0).expect("the datapath of M = 128");
    assert_eq!(built.same_places(&layout), Ok(true));
}

#[test]
fn an_accumulator_of_224_columns_needs_no_power_of_two() {
    let layout = tile("S[(2,128,112):(112@TCol,1@TLane,1@TCol)]");
    for (a, l, c) in [(0, 0, 0), (1, 5, 111), (1, 127, 0), (0, 64, 37)] {
        assert_eq!(at(&layout, &[a, l, c], &[2, 128, 112], &[TLANE, TCOL]), [[l, 112 * a + c]]);
    }
    assert_eq!((layout.span_on(&TCOL), layout.span_on(&TLANE)), (224, 128));
    assert_eq!(layout.is_bijective(&[(TLANE, 128), (TCOL, 224)].into()), Ok(true));
}

#[test]
fn scale_factors_are_in_the_windows_of_all_four_warps() {
    let layout = tile("S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane]");
    let places = at(&layout, &[7, 3], &[32, 4], &[TLANE, TCOL]);
    assert_eq!(places, [[7, 3], [39, 3], [71, 3], [103, 3]]);
}

#[test]
fn scale_factors_of_128_rows_pack_into_32_lanes() {
    let layout = named("sf-tmem:128x4:4").expect("a named layout").layout;
    let Layout::Tile(layout) = layout else { panic!("{layout} is not a plain tile") };
    for (m, sf) in [(0, 0), (33, 2), (127, 3)] {
        let places = at(&layout, &[m, sf], &[128, 4], &[TLANE, TCOL]);
        let expected: Vec<Vec<i64>> = (0..4).map(|q| vec![m % 32 + 32 * q, m / 32 * 4 + sf]).collect();
        assert_eq!(places, expected);
    }
}

#[test]
fn a_load_from_tensor_memory_gives_each_thread_a_row() {
    let layout = tcgen05_atom_layout(Tcgen05Shape::S32x32b, 128, 64, 32).expect("the 32x32b shape");
    assert_eq!(layout.same_places(&tile("S[(128,64):(1@tid_in_wg,1@m)]")), Ok(true));
}

#[test]
fn a_2_by_2_mesh_shards_copies_and_shifts() {
    let mesh = Mesh::new([(GPUID_X, 2), (GPUID_Y, 2)]).expect("four devices");
    let devices = |text: &str, element: i64| mesh.devices_of(&tile(text), element).expect("on the mesh");
    let sharded = "S[(2,4,2,4):(1@gpuid_y,4@m,1@gpuid_x,1@m)]";
    assert_eq!([0, 4, 32, 36].map(|element| devices(sharded, element)), [[0], [2], [1], [3]]);
    let copied = "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]";
    assert_eq!([0, 32].map(|element| devices(copied, element)), [[0, 2], [1, 3]]);
    let shifted = "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + 1@gpuid_x";
    assert_eq!([0, 32].map(|element| devices(shifted, element)), [[2], [3]]);
}

/// Half precision, 8 rows of 64: the column of the documents.
#[test]
fn a_column_under_the_128_byte_swizzle_is_in_banks_0_4_to_28() {
    let banks = |layout: &str| -> Vec<u64> {
        let layout: Layout = layout.parse().expect("a layout of the documents");
        (0..8).map(|row| bank_of(layout.memory_position(64 * row) as u64 * 2)).collect()
    };
    assert_eq!(banks("S[(8,64):(64,1)]"), [0; 8]);
    assert_eq!(banks("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]"), [0, 4, 8, 12, 16, 20, 24, 28]);
}

#[test]
fn the_swizzle_rotates_chunks_by_the_row() {
    let swizzle = SwizzleLayout::new(3, 3, 3, true).expect("the 128-byte swizzle of half precision");
    for (i, j) in (0..8).flat_map(|i| (0..64).map(move |j| (i, j))) {
        let (q, r) = (j / 8, j % 8);
        assert_eq!(swizzle.apply(64 * i + j), 64 * i + 8 * (q ^ i) + r);
    }
}

#[test]
fn the_swizzle_frees_the_column_of_conflicts() {
    let column = AccessPattern::column([8, 64], 0).expect("a column");
    let wavefronts = |text: &str| {
        let layout: Layout = text.parse().expect("a layout of the documents");
        bank_view(&layout, 16, &column).expect("linear memory").wavefronts()
    };
    assert_eq!(wavefronts("S[(8,64):(64,1)]"), 8);
    assert_eq!(wavefronts("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]"), 1);
}
