//! Vectors of memory whose elements a thread has in another order.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

fn number(at: i64) -> f64 {
    (at * 7 % 101) as f64
}

fn cuda(kernel: &Kernel) -> String {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right").cuda().to_string()
}

/// Rows of 32 elements that go through a tile in which each 16 have this order: the strides of their digits.
fn through(dtype: DType, rows: i64, digits: [i64; 3], strides: [i64; 3]) -> Kernel {
    kernel("through", |k| {
        let (x, y) = (k.input("x", dtype, [rows, 32]), k.output("y", dtype, [rows, 32]));
        k.threads(32);
        let [a, b, c] = digits;
        let layout = S([rows, 2, a, b, c], [48, 16, strides[0], strides[1], strides[2]]);
        let tile = k.shared("tile", dtype, ([rows, 32], layout));
        k.parallel([rows, 32], |k, [i, j]| k.store(tile, (i, j), x.at((i, j))));
        k.parallel([rows, 32], |k, [i, j]| k.store(y, (i, j), tile.at((i, j))));
    })
}

#[test]
fn tiles_in_other_orders_are_written_and_read_in_vectors() {
    let orders = [([4, 2, 2], [2, 8, 1]), ([2, 2, 4], [4, 8, 1]), ([2, 8, 1], [1, 2, 1]), ([4, 4, 1], [1, 4, 1])];
    for dtype in [U8, F16, F32, F64] {
        for rows in [8, 16, 5] {
            for (digits, strides) in orders {
                let kernel = through(dtype, rows, digits, strides);
                let x = tensor(dtype, &[rows, 32], number);
                computes(&kernel, std::slice::from_ref(&x), std::slice::from_ref(&x));
            }
        }
    }
    let text = cuda(&through(F16, 16, [4, 2, 2], [2, 8, 1]));
    assert!(text.contains("word(r1 + "), "words are moved: {text}");
    assert!(text.contains("reinterpret_cast<uint4*>(tile)"), "{text}");
}

#[test]
fn neighbours_that_change_places_are_loaded_together() {
    let swapped = |dtype: DType, count: i64| {
        kernel("swapped", |k| {
            let (x, y) = (k.input("x", dtype, [count]), k.output("y", dtype, [count]));
            k.threads(32);
            k.parallel([count], |k, [i]| k.store(y, (&i,), x.at((&i / 4 * 4 + (3 - &i % 4),))));
        })
    };
    for dtype in [U8, F16, F32, F64] {
        for count in [256, 132, 4] {
            let turned = tensor(dtype, &[count], |at| number(at / 4 * 4 + 3 - at % 4));
            computes(&swapped(dtype, count), &[tensor(dtype, &[count], number)], &[turned]);
        }
    }
    let text = cuda(&swapped(F32, 256));
    assert_eq!(text.matches("= x[").count(), 0, "{text}");
}

#[test]
fn registers_in_another_order_are_stored_together() {
    let turned = kernel("turned", |k| {
        let (x, y) = (k.input("x", F32, [4, 64]), k.output("y", F16, [256]));
        k.threads(32);
        let held = k.fragment("held", F16, S([4, 32, 2], [2 * REG, 1 * TX, 1 * REG]));
        k.parallel([4, 64], |k, [i, j]| k.store(held, (i, j / 2, j % 2), x.at((i, j)).cast(F16)));
        k.parallel([4, 64], |k, [i, j]| k.store(y, (j * 4 + i,), held.at((i, j / 2, j % 2))));
    });
    let y = tensor(F16, &[256], |at| number(at % 4 * 64 + at / 4));
    computes(&turned, &[tensor(F32, &[4, 64], number)], &[y]);
    let text = cuda(&turned);
    assert!(text.contains("reinterpret_cast<uint4*>(y)"), "{text}");
}
