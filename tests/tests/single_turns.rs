//! Loops of one iteration beside others of the same name.

use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

#[test]
fn a_triangle_whose_first_row_is_one_iteration() {
    let triangle = kernel("triangle", |k| {
        let y = k.output("y", I32, [4, 4]);
        k.parallel([4, 4], |k, [i, j]| k.store(y, (i, j), -1));
        k.unroll("p", 0..4, |k, p| {
            k.serial("t", ..p + 1, |k, t| k.parallel([1], |k, [i]| k.store(y, (p, t + i), p * 10 + t)));
        });
    });
    let expected = tensor(I32, &[4, 4], |at| if at % 4 <= at / 4 { (at / 4 * 10 + at % 4) as f64 } else { -1.0 });
    check(&triangle, &[], &[], &[expected], Tolerance::EXACT);
}

#[test]
fn two_loops_of_one_iteration_with_one_name() {
    let twice = kernel("twice", |k| {
        let y = k.output("y", I32, [8, 2]);
        let [cta] = k.grid([8]);
        for column in 0..2 {
            k.serial("i", (cta * 4, cta * 4 + 4).step(4), |k, i| {
                k.parallel([1], |k, [j]| k.store(y, (cta, j + column), i + column));
            });
        }
    });
    let expected = tensor(I32, &[8, 2], |at| (at / 2 * 4 + at % 2) as f64);
    check(&twice, &[], &[], &[expected], Tolerance::EXACT);
}

/// The names that tiles have do not hide a number that is a parameter.
#[test]
fn a_number_with_the_name_of_a_tile_coordinate() {
    let scaled = kernel("scaled", |k| {
        let y = k.output("y", F32, [2, 3]);
        let factor = k.scalar("tile_row", F32);
        let tiles = Tiles::persistent(k, [Expr::from(2), Expr::from(3)], (2, 1));
        tiles.for_each(k, |k, [row, column]| {
            k.parallel([1], |k, [i]| k.store(y, (row + i, column), Value::from(row * 3 + column).cast(F32) * factor));
        });
    });
    let inputs = [tensor(F32, &[1], |_| 0.5)];
    check(&scaled, &[], &inputs, &[tensor(F32, &[2, 3], |at| at as f64 / 2.0)], Tolerance::EXACT);
}
