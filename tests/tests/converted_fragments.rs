//! Conversions of fragments in unusual places: partial stores, updates, loops, register replicas, views, small and ragged
//! CTAs, and shared memory that does not fit.

use tilewright::compile::{LowerOptions, Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};
use tilewright_tests::toolchain::built_or_skipped;

fn text(layout: &str) -> Layout {
    layout.parse::<Layout>().expect("a layout")
}

#[test]
fn a_store_to_the_row_of_a_serial_loop_keeps_other_rows() {
    let rows = kernel("rows", |k| {
        let a = k.input("a", F32, [2, 64]);
        let b = k.output("b", F32, [2, 2, 64]);
        let c = k.output("c", F32, [2, 2, 64]);
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([2, 64], text("S[(2,64):(1@reg,1@tx)]")));
        let g = k.fragment("g", F32, ([2, 64], text("S[(2,8,8):(1@reg,1@tx,8@tx)]")));
        k.fill(f, 7.0);
        k.fill(g, 7.0);
        k.serial("r", 0..2, |k, r| {
            // Both are written by one statement, and lie on different threads: one of them gets a copy.
            k.parallel([64], |k, [j]| {
                k.store(f, (r, j), a.at((r, j)));
                k.store(g, (r, j), a.at((r, j)));
            });
            k.parallel([2, 64], |k, [i, j]| {
                k.store(b, (r, i, j), f.at((i, j)));
            });
            k.parallel([2, 64], |k, [i, j]| {
                k.store(c, (r, i, j), g.at((i, j)));
            });
        });
    });
    let input = tensor(F32, &[2, 64], |at| at as f64);
    let after = || tensor(F32, &[2, 2, 64], |at| if at / 64 % 2 <= at / 128 { (at % 128) as f64 } else { 7.0 });
    computes(&rows, &[input], &[after(), after()]);
}

/// The index of the CTA takes all values in the grid, but one CTA writes only one row.
#[test]
fn a_store_to_the_row_of_a_cta_keeps_other_rows() {
    let rows = kernel("rows", |k| {
        let a = k.input("a", F32, [2, 64]);
        let b = k.output("b", F32, [2, 2, 64]);
        let c = k.output("c", F32, [2, 2, 64]);
        let [r] = k.grid([2]);
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([2, 64], text("S[(2,64):(1@reg,1@tx)]")));
        let g = k.fragment("g", F32, ([2, 64], text("S[(2,8,8):(1@reg,1@tx,8@tx)]")));
        k.fill(f, 7.0);
        k.fill(g, 7.0);
        k.parallel([64], |k, [j]| {
            k.store(f, (r, j), a.at((r, j)));
            k.store(g, (r, j), a.at((r, j)));
        });
        k.parallel([2, 64], |k, [i, j]| {
            k.store(b, (r, i, j), f.at((i, j)));
        });
        k.parallel([2, 64], |k, [i, j]| {
            k.store(c, (r, i, j), g.at((i, j)));
        });
    });
    let input = tensor(F32, &[2, 64], |at| at as f64);
    let after = || tensor(F32, &[2, 2, 64], |at| if at / 64 % 2 == at / 128 { (at % 128) as f64 } else { 7.0 });
    computes(&rows, &[input], &[after(), after()]);
}

#[test]
fn replicas_in_registers_are_converted() {
    for to in ["S[32:1@tx]", "S[(8,4):(1@tx,8@tx)]", "S[(8,4):(1@tx,8@tx)] + R[2:1@reg]"] {
        let replicas = kernel("replicas", |k| {
            let a = k.input("a", F32, [32]);
            let b = k.output("b", F32, [32]);
            k.threads(32);
            let first = k.fragment("first", F32, ([32], text("S[32:1@tx] + R[2:1@reg]")));
            let second = k.fragment("second", F32, ([32], text(to)));
            k.copy(first, a);
            k.convert_layout(second, first);
            k.copy(b, second);
        });
        let numbers = || tensor(F32, &[32], |at| (at + 1) as f64);
        computes(&replicas, &[numbers()], &[numbers()]);
    }
}

#[test]
fn a_fragment_between_two_conversions_needs_no_written_layout() {
    let chain = kernel("chain", |k| {
        let a = k.input("a", F32, [64]);
        let b = k.output("b", F32, [64]);
        k.threads(64);
        let first = k.fragment("first", F32, ([64], text("S[64:1@tx]")));
        let middle = k.fragment("middle", F32, [64]);
        let last = k.fragment("last", F32, ([64], text("S[(8,8):(1@tx,8@tx)]")));
        k.copy(first, a);
        k.convert_layout(middle, first);
        k.convert_layout(last, middle);
        k.copy(b, last);
    });
    match compile(chain.clone(), &Options::new(Target::Sm90a)) {
        Ok(_) => {
            let numbers = || tensor(F32, &[64], |at| at as f64);
            computes(&chain, &[numbers()], &[numbers()]);
        }
        // If it is refused, then by a finding for the user, not by an internal error.
        Err(found) => assert!(found.iter().all(|finding| finding.code != "P0404"), "{found:?}"),
    }
}

#[test]
fn conversions_that_follow_each_other_fit_in_shared_memory() {
    let turns = kernel("turns", |k| {
        let a = k.input("a", F32, [16384]);
        let b = k.output("b", F32, [16384]);
        k.threads(256);
        let first = k.fragment("first", F32, ([16384], text("S[(256,64):(1@tx,1@reg)]")));
        let second = k.fragment("second", F32, ([16384], text("S[(64,256):(1@reg,1@tx)]")));
        k.unroll("turn", 0..4, |k, _| {
            k.copy(first, a);
            k.convert_layout(second, first);
            k.copy(b, second);
        });
    });
    let artifact = compile(turns, &Options::new(Target::Sm90a)).expect("all turns use one scratch");
    assert_eq!(artifact.plans().iter().filter(|plan| plan.chosen == "staging").count(), 4);
}

#[test]
fn what_a_statement_updates_is_converted_there_and_back() {
    let updates = kernel("updates", |k| {
        let a = k.input("a", F32, [64]);
        let b = k.output("b", F32, [64]);
        let c = k.output("c", F32, [64]);
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([64], text("S[64:1@tx]")));
        let g = k.fragment("g", F32, ([64], text("S[(8,8):(1@tx,8@tx)]")));
        k.copy(f, a);
        k.copy(g, a);
        k.parallel([64], |k, [i]| {
            k.store(f, (i,), f.at((i,)) + 1.0);
            k.store(g, (i,), g.at((i,)) + 2.0);
        });
        k.copy(b, f);
        k.copy(c, g);
    });
    let plus = |more: f64| tensor(F32, &[64], move |at| at as f64 + more);
    computes(&updates, &[plus(0.0)], &[plus(1.0), plus(2.0)]);
}

#[test]
fn statements_of_a_loop_in_rust_are_each_converted() {
    let repeated = kernel("repeated", |k| {
        let a = k.input("a", F32, [64]);
        let outputs = ["b", "c", "d"].map(|name| k.output(name, F32, [64]));
        k.threads(64);
        k.allow_conversions();
        let first = k.fragment("first", F32, ([64], text("S[64:1@tx]")));
        let others = ["x", "y", "z"].map(|name| k.fragment(name, F32, ([8, 8], text("S[(8,8):(1@tx,8@tx)]"))));
        k.copy(first, a);
        for other in others {
            k.parallel([8, 8], |k, [i, j]| {
                k.store(other, (i, j), first.at((i * 8 + j,)));
            });
        }
        for (output, other) in outputs.into_iter().zip(others) {
            k.parallel([8, 8], |k, [i, j]| {
                k.store(output, (i * 8 + j,), other.at((i, j)));
            });
        }
    });
    let numbers = || tensor(F32, &[64], |at| at as f64);
    computes(&repeated, &[numbers()], &[numbers(), numbers(), numbers()]);
}

#[test]
fn a_store_of_all_elements_of_one_row_is_converted() {
    let row = kernel("row", |k| {
        let a = k.input("a", F32, [64]);
        let b = k.output("b", F32, [64]);
        let c = k.output("c", F32, [64]);
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([1, 64], text("S[64:1@tx]")));
        let g = k.fragment("g", F32, ([1, 64], text("S[(8,8):(1@tx,8@tx)]")));
        k.parallel([64], |k, [i]| {
            k.store(f, (0, i), a.at((i,)));
            k.store(g, (0, i), a.at((i,)));
        });
        k.parallel([64], |k, [i]| {
            k.store(b, (i,), f.at((0, i)));
        });
        k.parallel([64], |k, [i]| {
            k.store(c, (i,), g.at((0, i)));
        });
    });
    let numbers = || tensor(F32, &[64], |at| at as f64);
    computes(&row, &[numbers()], &[numbers(), numbers()]);
}

#[test]
fn a_store_of_a_part_is_converted_there_and_back() {
    let halves = kernel("halves", |k| {
        let a = k.input("a", F32, [64]);
        let b = k.output("b", F32, [64]);
        let c = k.output("c", F32, [64]);
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([64], text("S[64:1@tx]")));
        let g = k.fragment("g", F32, ([64], text("S[(8,8):(1@tx,8@tx)]")));
        k.fill(f, 7.0);
        k.fill(g, 7.0);
        k.parallel([32], |k, [i]| {
            k.store(f, (i,), a.at((i,)));
            k.store(g, (i,), a.at((i,)));
        });
        k.copy(b, f);
        k.copy(c, g);
    });
    let after = || tensor(F32, &[64], |at| if at < 32 { at as f64 } else { 7.0 });
    computes(&halves, &[tensor(F32, &[64], |at| at as f64)], &[after(), after()]);
}

/// Narrow dtypes travel in words; CTAs that are not whole warps go through shared memory.
#[test]
fn other_dtypes_and_other_numbers_of_threads() {
    let moved = |dtype: DType, threads: i64, from: &str, to: &str| {
        let elements = 2 * threads;
        let (from, to) = (text(from), text(to));
        kernel("moved", |k| {
            let a = k.input("a", dtype, [elements]);
            let b = k.output("b", dtype, [elements]);
            k.threads(threads);
            let first = k.fragment("first", dtype, ([elements], from));
            let second = k.fragment("second", dtype, ([elements], to));
            let third = k.fragment("third", dtype, ([elements], first_layout(threads)));
            k.serial("turn", 0..2, |k, _| {
                k.copy(first, a);
                k.convert_layout(second, first);
                k.convert_layout(third, second);
                k.copy(b, third);
            });
        })
    };
    let numbers = |dtype: DType, count: i64| tensor(dtype, &[count], |at| (at % 100) as f64);
    for dtype in [I8, F16, BF16, I32, I64, F64] {
        let kernel = moved(dtype, 32, "S[(2,16,2):(16@tx,1@tx,1@reg)]", "S[(2,16,2):(1@reg,1@tx,16@tx)]");
        computes(&kernel, &[numbers(dtype, 64)], &[numbers(dtype, 64)]);
    }
    for threads in [1i64, 33, 48] {
        let from = format!("S[({threads},2):(1@tx,1@reg)]");
        let to = format!("S[(2,{threads}):(1@reg,1@tx)]");
        let kernel = moved(F32, threads, &from, &to);
        computes(&kernel, &[numbers(F32, 2 * threads)], &[numbers(F32, 2 * threads)]);
    }
}

fn first_layout(threads: i64) -> Layout {
    text(&format!("S[({threads},2):(1@tx,1@reg)]"))
}

/// Conversions through shared memory use the same scratch again in the next turn; views of other widths are converted as
/// elements of their own width.
#[test]
fn views_and_conditions_in_a_loop() {
    let turned = kernel("turned", |k| {
        let a = k.input("a", B32, [256]);
        let b = k.output("b", B32, [4, 256]);
        k.threads(64);
        let first = k.fragment("first", B32, ([256], text("S[(64,4):(1@tx,1@reg)]")));
        let second = k.fragment("second", B8, ([1024], text("S[(4,64,4):(4@reg,1@tx,1@reg)]")));
        let bytes = k.view_as("bytes", first, B8, [1024]);
        let words = k.view_as("words", second, B32, [256]);
        k.copy(first, a);
        k.serial("turn", 0..4, |k, turn| {
            k.if_(Value::from(turn).gt(0), |k| {
                k.convert_layout(second, bytes).variant("staging");
                k.convert_layout(first, words).variant("staging");
            });
            k.parallel([256], |k, [i]| {
                k.store(b, (turn, i), first.at((i,)));
            });
        });
    });
    let options = Options { lower: LowerOptions::default(), ..Options::new(Target::Sm90a) };
    let artifact = compile(turned.clone(), &options).unwrap_or_else(|found| panic!("{found:?}"));
    let Some(_) = built_or_skipped(&artifact, "attack: turned") else { return };
    let bits =
        |count: &[i64]| tilewright::runtime::HostTensor::from_fn(B32, count, |at| (at % 256) as u128 * 0x00f1_4203 + 7);
    computes(&turned, &[bits(&[256])], &[bits(&[4, 256])]);
}

#[test]
fn a_reduction_that_overwrites_its_result_needs_no_result_before() {
    let sums = kernel("sums", |k| {
        let x = k.input("x", F32, [8, 16]);
        let y = k.output("y", F32, [8]);
        k.threads(128);
        k.allow_conversions();
        let v = k.fragment("v", F32, ([8, 16], text("S[(8,16):(16@tx,1@tx)]")));
        let total = k.fragment("total", F32, [8]);
        let row = k.fragment("row", F32, ([8], text("S[8:1@tx] + R[16:8@tx]")));
        k.copy(v, x);
        k.reduce(Sum, total, v, 1);
        k.parallel([8], |k, [i]| {
            k.store(row, (i,), total.at((i,)) * 2.0);
        });
        k.copy(y, row);
    });
    let input = tensor(F32, &[8, 16], |at| at as f64);
    computes(&sums, &[input], &[tensor(F32, &[8], |row| (0..16).map(|at| (row * 16 + at) as f64 * 2.0).sum())]);
    assert_eq!(conversions(&sums), 1, "there, and nothing back");
}

/// A loop whose layout is fixed stores every second element: the copy has the others where there is room.
#[test]
fn a_loop_with_a_layout_stores_every_second_element() {
    let every_second = kernel("every_second", |k| {
        let (x, y) = (k.input("x", F32, [32]), k.output("y", F32, [64]));
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([64], text("S[64:1@tx]")));
        k.fill(f, 5.0);
        let stores = k.parallel([32], |k, [i]| {
            k.store(f, (i * 2,), x.at((i,)));
        });
        stores.layout(text("S[32:1@tx]"));
        k.copy(y, f);
    });
    let input = tensor(F32, &[32], |at| at as f64);
    let after = tensor(F32, &[64], |at| if at % 2 == 0 { at as f64 / 2.0 } else { 5.0 });
    computes(&every_second, &[input], &[after]);
}

#[test]
fn a_loop_stores_a_fragment_and_every_second_element_of_another() {
    let two = kernel("two", |k| {
        let (x, y) = (k.input("x", F32, [32]), k.output("y", F32, [96]));
        k.threads(64);
        k.allow_conversions();
        let f = k.fragment("f", F32, ([32], text("S[32:1@tx] + R[2:32@tx]")));
        let g = k.fragment("g", F32, ([64], text("S[64:1@tx]")));
        k.fill(f, 5.0);
        k.fill(g, 6.0);
        k.parallel([32], |k, [i]| {
            k.store(f, (i,), x.at((i,)));
            k.store(g, (i * 2,), -x.at((i,)));
        });
        k.copy(y.sub((0..32,)), f);
        k.copy(y.sub((32..96,)), g);
    });
    let input = tensor(F32, &[32], |at| at as f64);
    let after = tensor(F32, &[96], |at| match at {
        0..32 => at as f64,
        _ if at % 2 == 0 => -((at - 32) as f64 / 2.0),
        _ => 6.0,
    });
    computes(&two, &[input], &[after]);
}

/// Elements that the store does not reach move in vectors whose places are remainders of the thread.
#[test]
fn staged_replicas_of_pairs_are_aligned() {
    let pairs = kernel("pairs", |k| {
        let (a, b) = (k.input("a", I32, [6]), k.output("b", I32, [6]));
        k.threads(10);
        let f = k.fragment("f", I32, ([6], text("S[6:1@tx]")));
        let g = k.fragment("g", I32, ([6], text("S[(3,2):(2@tx,1@reg)] + R[2:5@tx]")));
        k.copy(f, a);
        k.convert_layout(g, f);
        k.copy(b, g);
    });
    let input = || tensor(I32, &[6], |at| at as f64);
    computes(&pairs, &[input()], &[input()]);
}

/// Ten layouts in one loop: more conversions than were once inserted.
#[test]
fn a_loop_over_ten_layouts_is_converted() {
    let many = kernel("many", |k| {
        let (x, y) = (k.input("x", I32, [64]), k.output("y", I32, [64]));
        k.threads(64);
        k.allow_conversions();
        let all: Vec<Buffer> = (0..12)
            .map(|n| k.fragment(&format!("f{n}"), I32, ([64], text(&format!("S[64:1@tx] + {n}@reg")))))
            .collect();
        let turned = k.fragment("turned", I32, ([64], text("S[(8,8):(1@tx,8@tx)]")));
        all.iter().for_each(|f| {
            k.copy(*f, x);
        });
        k.copy(turned, x);
        k.parallel([64], |k, [i]| {
            let sum = all.iter().fold(turned.at((i,)), |sum, f| sum + f.at((i,)));
            k.store(y, (i,), sum);
        });
    });
    let input = tensor(I32, &[64], |at| at as f64);
    computes(&many, &[input], &[tensor(I32, &[64], |at| at as f64 * 13.0)]);
}

fn conversions(kernel: &Kernel) -> usize {
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("compiles");
    artifact.plans().iter().filter(|plan| plan.title.starts_with("convert_layout")).count()
}
