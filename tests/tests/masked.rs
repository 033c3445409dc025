//! What lies outside of a tensor in global memory reads as zero and is not written, also where the compiler sees that a
//! whole access is outside.

use tilewright::layout::TableLayout;
use tilewright::prelude::*;
use tilewright_kernels::find;
use tilewright_tests::pages::{computes, tensor};

/// One thread has all of a block that hangs over the edge, so every index is a number.
#[test]
fn a_block_of_one_thread_over_the_edge() {
    let entry = find("row_sum").expect("the kernel");
    for (rows, cols, threads) in [(5, 2, 1), (1, 1, 1), (3, 2, 2)] {
        let sizes = [("rows", rows), ("cols", cols), ("threads", threads)].map(|(name, size)| (name.to_string(), size));
        let config = entry.config(None, &sizes).expect("sizes of the kernel");
        let inputs = (entry.inputs)(&config);
        computes(&(entry.build)(&config), &inputs, &(entry.reference)(&config, &inputs));
    }
}

#[test]
fn the_element_before_the_first_in_an_unrolled_loop() {
    let shifted = kernel("shifted", |k| {
        let a = k.input("a", I32, [4]);
        let y = k.output("y", I32, [4]);
        let kept = k.output("kept", I32, [4]);
        k.fill(kept, 7);
        k.unroll("t", 0..4, |k, t| {
            k.parallel([1], |k, [i]| {
                k.store(y, (t + i,), a.at((t + i - 1,)));
                k.store(kept, (t + i + 2,), 0);
            });
        });
    });
    let number = |at: i64| (at + 1) as f64;
    let y = tensor(I32, &[4], |at| if at == 0 { 0.0 } else { number(at - 1) });
    let kept = tensor(I32, &[4], |at| if at < 2 { 7.0 } else { 0.0 });
    computes(&shifted, &[tensor(I32, &[4], number)], &[y, kept]);
}

/// The position of an element is looked up in a table, which has none for what lies outside.
#[test]
fn data_that_leads_out_of_a_tensor_laid_out_by_a_table() {
    let places: Vec<i64> = (0..32).map(|at| at ^ (at / 4)).collect();
    let gathered = kernel("gathered", |k| {
        let x = k.input("x", I32, TableLayout::of_positions(&M, &places).expect("a table"));
        let at = k.input("at", I32, [64]);
        let y = k.output("y", I32, [64]);
        k.parallel([64], |k, [i]| {
            k.store(y, (&i,), x.at((at.at((&i,)),)));
        });
    });
    let index = |at: i64| at * 3 - 40;
    let number = |at: i64| (at + 1) as f64;
    let y = tensor(I32, &[64], |at| if (0..32).contains(&index(at)) { number(index(at)) } else { 0.0 });
    computes(&gathered, &[tensor(I32, &[32], number), tensor(I32, &[64], |at| index(at) as f64)], &[y]);
}
