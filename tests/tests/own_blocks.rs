//! Which tensors an iteration of a loop over tiles accesses in a block of its own alone, so that other tiles are never met there.

use tilewright::ir::tile::{Blocks, Loop, Stmt};
use tilewright::prelude::*;

/// Rows and columns of a tile.
const SIDE: i64 = 64;

/// How the places of tiles divide `y`, of which `visit` accesses parts; `None` if a tile may meet another one there.
fn blocks(visit: impl Fn(&mut KernelBuilder, Buffer, [Expr; 2])) -> Option<Blocks> {
    let kernel = kernel("k", |k| {
        let (m, n) = (k.size("m"), k.size("n"));
        let y = k.inout("y", F32, (m, n));
        let rank = k.cluster(2);
        let tiles = Tiles::persistent(k, [m.ceil_div(2 * SIDE), n.ceil_div(SIDE)], (4, 3));
        k.threads(128);
        tiles.for_each(k, |k, [row, column]| visit(k, y, [row * 2 + rank, column]));
    });
    assert!(kernel.build_findings.is_empty(), "{:?}", kernel.build_findings);
    let all = kernel.own_blocks(tile_loop(&kernel.body));
    assert!(all.len() <= 1);
    all.into_values().next()
}

fn tile_loop(body: &[Stmt]) -> &Loop {
    let found = body.iter().find_map(|stmt| if let Stmt::Loop(inner) = stmt { Some(inner) } else { None });
    found.expect("a loop over tiles")
}

fn filled(k: &mut KernelBuilder, y: Buffer, rows: (Expr, i64), columns: (Expr, i64)) {
    k.fill(y.sub((at(rows.0, rows.1), at(columns.0, columns.1))), 0);
}

#[test]
fn whole_tiles_are_blocks() {
    let found = blocks(|k, y, [row, column]| filled(k, y, (row * SIDE, SIDE), (column * SIDE, SIDE)));
    // Both CTAs of a cluster are in one block.
    assert_eq!(found, Some(vec![(0, 2 * SIDE), (1, SIDE)]));
}

#[test]
fn a_place_with_one_value_tells_nothing() {
    let kernel = kernel("k", |k| {
        let m = k.size("m");
        let y = k.output("y", F32, (m,));
        let tiles = Tiles::persistent(k, [m.ceil_div(SIDE), Expr::from(1)], (4, 3));
        tiles.for_each(k, |k, [row, _]| k.fill(y.sub((at(row * SIDE, SIDE),)), 0));
    });
    let all: Vec<Blocks> = kernel.own_blocks(tile_loop(&kernel.body)).into_values().collect();
    assert_eq!(all, [vec![(0, SIDE)]]);
}

#[test]
fn parts_of_a_tile_are_in_its_block() {
    let found = blocks(|k, y, [row, column]| {
        filled(k, y, (row * SIDE + 8, SIDE - 8), (column * SIDE, SIDE));
        k.serial("i", 0..4, |k, i| filled(k, y, (row * SIDE, SIDE), (column * SIDE + i * 16, 16)));
        k.parallel([SIDE, SIDE], |k, [i, j]| {
            let place = (row * SIDE + i, column * SIDE + j);
            k.store(y, place, y.at(place) + 1.0);
        });
    });
    assert_eq!(found, Some(vec![(0, 2 * SIDE), (1, SIDE)]));
}

#[test]
fn rows_of_a_neighbour_are_in_no_block() {
    let after = blocks(|k, y, [row, column]| filled(k, y, (row * SIDE, SIDE + 1), (column * SIDE, SIDE)));
    let before = blocks(|k, y, [row, column]| filled(k, y, (row * SIDE - 1, 2), (column * SIDE, SIDE)));
    let of_loop = blocks(|k, y, [row, column]| {
        k.serial("i", 0..5, |k, i| filled(k, y, (row * SIDE, SIDE), (column * SIDE + i * 16, 16)));
    });
    let read = blocks(|k, y, [row, column]| {
        k.parallel([SIDE, SIDE], |k, [i, j]| {
            let place = (row * SIDE + i, column * SIDE + j);
            k.store(y, place, y.at((row * SIDE + i, column * SIDE + j + 1)).or_zero());
        });
    });
    assert_eq!([after, before, of_loop, read], [None, None, None, None]);
}

#[test]
fn places_that_are_exchanged_are_other_blocks() {
    let found = blocks(|k, y, [row, column]| {
        filled(k, y, (row * SIDE, SIDE), (column * SIDE, SIDE));
        filled(k, y, (column * SIDE, SIDE), (row * SIDE, SIDE));
    });
    assert_eq!(found, None);
}

#[test]
fn a_place_that_counts_no_dimension_tells_no_tiles_apart() {
    assert_eq!(blocks(|k, y, [row, _]| filled(k, y, (row * SIDE, SIDE), (Expr::from(0), SIDE))), None);
    assert_eq!(blocks(|k, y, [row, column]| filled(k, y, (row * SIDE, SIDE), (column * (SIDE / 2), SIDE))), None);
}

#[test]
fn a_tile_in_the_same_rows_as_another_is_told_by_its_columns() {
    let diagonal =
        blocks(|k, y, [row, column]| filled(k, y, (row * SIDE + column * SIDE, SIDE), (column * SIDE, SIDE)));
    assert_eq!(diagonal, None);
}
