//! Rows that data chooses: their elements are moved in vectors, where neighbours have the same row.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::Tolerance;
use tilewright_tests::pages::{check, tensor};

fn number(at: i64) -> f64 {
    (at * 37 % 251) as f64
}

/// Numbers of rows, of which some are outside of a table of 10.
fn chosen(at: i64) -> i64 {
    at * 7 % 13 - 1
}

fn element(row: i64, column: i64, cols: i64) -> f64 {
    if (0..10).contains(&row) && (0..cols).contains(&column) { number(row * cols + column) } else { 0.0 }
}

/// What a kernel computes of the rows of a table.
fn gathering(cols_of: i64, body: impl Fn(&mut Elements<'_>, Gather)) -> Kernel {
    kernel("gathering", |k| {
        let (n, cols) = (k.size("n"), k.size("cols").multiple_of(cols_of));
        let row = k.input("row", I32, (n,));
        let table = k.input("table", F16, (10, cols));
        let y = k.output("y", F16, (n, cols));
        let [top, side] = k.grid([n.ceil_div(8), cols.ceil_div(64)]);
        k.threads(64);
        k.parallel([8, 64], |k, [i, j]| body(k, Gather { row, table, y, at: top * 8 + i, column: side * 64 + j }));
    })
}

/// The tensors of a kernel, and an element of its result.
#[derive(Clone, Copy)]
struct Gather {
    row: Buffer,
    table: Buffer,
    y: Buffer,
    at: Expr,
    column: Expr,
}

fn check_all(cols_of: i64, kernel: &Kernel, expected: impl Fn(i64, i64, i64) -> f64) {
    for (n, cols) in [(1, 1), (5, 8), (9, 64), (20, 72), (8, 130), (3, 200)] {
        if cols % cols_of != 0 {
            continue;
        }
        let inputs = [tensor(I32, &[n], |at| chosen(at) as f64), tensor(F16, &[10, cols], number)];
        let y = tensor(F16, &[n, cols], |at| expected(at / cols, at % cols, cols));
        check(kernel, &[("n", n), ("cols", cols)], &inputs, &[y], Tolerance::EXACT);
    }
}

fn cuda(kernel: &Kernel) -> String {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right").cuda().to_string()
}

#[test]
fn a_row_is_copied_in_vectors() {
    let copied = |cols_of| {
        gathering(cols_of, |k, Gather { row, table, y, at, column }| {
            k.store(y, (at, column), table.at((row.at((at,)), column)));
        })
    };
    for cols_of in [1, 2, 8] {
        check_all(cols_of, &copied(cols_of), |at, column, cols| element(chosen(at), column, cols));
    }
    assert!(cuda(&copied(8)).contains("reinterpret_cast<const uint4&>(table["), "{}", cuda(&copied(8)));
    assert!(!cuda(&copied(1)).contains("(table["), "{}", cuda(&copied(1)));
}

#[test]
fn data_may_be_computed_from_elements_and_indices() {
    let computed = gathering(8, |k, Gather { row, table, y, at, column }| {
        let first = table.at((row.at((at,)) + 1, column)).cast(F32);
        let second = table.at((row.at((at,)), column)).cast(F32);
        let same = table.at((row.at((at,)) + 1, column)).cast(F32);
        k.store(y, (at, column), (first + second + same).cast(F16));
    });
    check_all(8, &computed, |at, column, cols| {
        2.0 * element(chosen(at) + 1, column, cols) + element(chosen(at), column, cols)
    });
    assert_eq!(cuda(&computed).matches("reinterpret_cast<const uint4&>(table[").count(), 2, "{}", cuda(&computed));
}

#[test]
fn rows_that_differ_between_neighbours_are_read_one_by_one() {
    let turned = gathering(8, |k, Gather { row, table, y, at, column }| {
        k.store(y, (at, column), table.at((row.at((at,)) + Value::from(column % 2).cast(I32), column)));
    });
    check_all(8, &turned, |at, column, cols| element(chosen(at) + column % 2, column, cols));
}

#[test]
fn columns_that_data_chooses_are_read_one_by_one() {
    let turned = gathering(8, |k, Gather { row, table, y, at, column }| {
        k.store(y, (at, column), table.at((Value::from(column % 10).cast(I32), row.at((at,)))));
    });
    check_all(8, &turned, |at, column, cols| element(column % 10, chosen(at), cols));
}

#[test]
fn data_with_a_name_and_data_of_a_branch() {
    let named = gathering(8, |k, Gather { row, table, y, at, column }| {
        let chosen = k.named("chosen", row.at((at,)));
        let value = k.named("value", table.at((chosen, column)));
        k.if_else(
            chosen.gt(3),
            |k| k.store(y, (at, column), table.at((row.at((at,)) - 1, column))),
            |k| k.store(y, (at, column), value),
        );
    });
    check_all(8, &named, |at, column, cols| {
        let row = chosen(at);
        element(if row > 3 { row - 1 } else { row }, column, cols)
    });
}

#[test]
fn data_that_the_loop_changes_is_read_where_it_is_used() {
    let kernel = kernel("changing", |k| {
        let row = k.inout("row", I32, [8]);
        let table = k.input("table", F32, [10, 64]);
        let y = k.output("y", F32, [8, 64]);
        k.threads(32);
        k.parallel([8], |k, [i]| {
            k.store(row, (i,), row.at((i,)) + 1);
            k.serial("j", 0..64, |k, j| k.store(y, (i, j), table.at((row.at((i,)), j))));
        });
    });
    let after = |at: i64| chosen(at) + 1;
    let inputs = [tensor(I32, &[8], |at| chosen(at) as f64), tensor(F32, &[10, 64], number)];
    let outputs =
        [tensor(I32, &[8], |at| after(at) as f64), tensor(F32, &[8, 64], |at| element(after(at / 64), at % 64, 64))];
    check(&kernel, &[], &inputs, &outputs, Tolerance::EXACT);
}

#[test]
fn a_table_in_shared_memory_and_a_fragment_of_rows() {
    let kernel = kernel("shared", |k| {
        let row = k.input("row", I32, [16]);
        let table = k.input("table", F32, [10, 64]);
        let y = k.output("y", F32, [16, 64]);
        k.threads(64);
        let tile = k.shared("tile", F32, [10, 64]);
        let held = k.fragment("held", F32, [16, 64]);
        k.copy(tile, table);
        k.map(held, |[i, j]| tile.at((row.at((i,)).clamp(0, 9), j)) + table.at((row.at((i,)), j)));
        k.copy(y, held);
    });
    let inputs = [tensor(I32, &[16], |at| chosen(at) as f64), tensor(F32, &[10, 64], number)];
    let y = tensor(F32, &[16, 64], |at| {
        let (row, column) = (chosen(at / 64), at % 64);
        element(row.clamp(0, 9), column, 64) + element(row, column, 64)
    });
    check(&kernel, &[], &inputs, &[y], Tolerance::EXACT);
    assert!(cuda(&kernel).contains("reinterpret_cast<const ulonglong4_32a*>(table)["), "{}", cuda(&kernel));
}

#[test]
fn neighbours_of_a_row_in_shared_memory() {
    let kernel = kernel("neighbours", |k| {
        let row = k.input("row", U8, [16]);
        let table = k.input("table", F32, [256, 16]);
        let y = k.output("y", F32, [16, 16]);
        k.threads(32);
        let tile = k.shared("tile", F32, [256, 16]);
        k.copy(tile, table);
        k.parallel([16, 16], |k, [i, j]| {
            let before = j.ge(1).select(tile.at((row.at((i,)), j - 1)), 0.0);
            let behind = j.lt(15).select(tile.at((row.at((i,)), j + 1)), 0.0);
            k.store(y, (i, j), before + tile.at((row.at((i,)), j)) + behind);
        });
    });
    let row = |at: i64| at * 53 % 256;
    let inputs = [tensor(U8, &[16], |at| row(at) as f64), tensor(F32, &[256, 16], number)];
    let y = tensor(F32, &[16, 16], |at| {
        let near = |step: i64| {
            let column = at % 16 + step;
            if (0..16).contains(&column) { number(row(at / 16) * 16 + column) } else { 0.0 }
        };
        near(-1) + near(0) + near(1)
    });
    check(&kernel, &[], &inputs, &[y], Tolerance::EXACT);
}
