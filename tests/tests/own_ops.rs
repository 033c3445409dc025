//! Ops that are defined as functions over the builder: those of users, and those of the library.

use tilewright::compile::{Options, Stage, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

/// An op with a buffer of its own.
#[track_caller]
fn scale(k: &mut KernelBuilder, v: Buffer, by: f64) {
    k.op("scale", |k| {
        let scaled = k.fragment("scaled", F32, k.shape(v));
        k.map(scaled, |[i]| v.at((i,)) * by);
        k.copy(v, scaled);
    });
}

/// An op made of others.
#[track_caller]
fn scale_back(k: &mut KernelBuilder, v: Buffer) {
    k.op("scale_back", |k| {
        scale(k, v, 2.0);
        scale(k, v, 0.5);
    });
}

#[test]
fn an_op_may_be_used_several_times_and_in_other_ops() {
    let kernel = kernel("twice", |k| {
        let (x, y) = (k.input("x", F32, [64]), k.output("y", F32, [64]));
        let v = k.fragment("v", F32, [64]);
        k.copy(v, x);
        scale(k, v, 3.0);
        scale_back(k, v);
        k.copy(y, v);
    });
    let artifact = compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right");
    let titles: Vec<&str> = artifact.plans().iter().map(|plan| plan.title.as_str()).collect();
    let of_scale_back = ["parallel i", "copy(v, scaled1)", "parallel i", "copy(v, scaled2)"];
    let of_scale_back = of_scale_back.map(|title| format!("scale_back: scale: {title}"));
    let expected = ["copy(v, x)", "scale: parallel i", "scale: copy(v, scaled)"].map(str::to_string);
    assert_eq!(titles, [&expected[..], &of_scale_back, &["copy(y, v)".to_string()]].concat());
    // Everything is shown at the line of this function.
    let line = |title: &str| {
        let plan = artifact.plans().iter().find(|plan| plan.title == title);
        plan.expect("a plan").span.line
    };
    assert_eq!(line("scale: parallel i"), line("copy(v, x)") + 1);
    assert_eq!(line("scale_back: scale: copy(v, scaled2)"), line("copy(v, x)") + 2);
    assert!(artifact.stage(Stage::Cuda).contains("// scale_back: scale: copy(v, scaled2) "));
    let numbers = |by: i64| tensor(F32, &[64], move |i| (by * i) as f64);
    computes(&kernel, &[numbers(1)], &[numbers(3)]);
}

/// The numbers of the matrices: with ties, and with NaN in some places if `has_nan`.
fn number(at: i64, has_nan: bool) -> f64 {
    if has_nan && at % 3 == 1 { f64::NAN } else { (at * 37 % 19 - 9) as f64 }
}

/// The first extreme of a row, and its index.
fn extreme(row: &[f64], is_max: bool) -> (f64, usize) {
    let better = |a: f64, b: f64| b.is_nan() || if is_max { a > b } else { a < b };
    let all = row.iter().copied().zip(0..).filter(|(value, _)| !value.is_nan());
    all.fold((f64::NAN, 0), |best, (value, at)| if better(value, best.0) { (value, at) } else { best })
}

fn extremes(dtype: DType, of_index: DType, [rows, cols]: [i64; 2], dimension: usize, threads: i64) -> Kernel {
    let kept = if dimension == 1 { rows } else { cols };
    kernel("extremes", |k| {
        let x = k.input("x", dtype, [rows, cols]);
        let (most, most_at) = (k.output("most", dtype, [kept]), k.output("most_at", of_index, [kept]));
        let (least, least_at) = (k.output("least", dtype, [kept]), k.output("least_at", of_index, [kept]));
        k.threads(threads);
        let v = k.fragment("v", dtype, [rows, cols]);
        k.copy(v, x);
        for (is_max, value, at) in [(true, most, most_at), (false, least, least_at)] {
            let values = k.fragment(&format!("values{is_max}"), dtype, [kept]);
            let places = k.fragment(&format!("places{is_max}"), of_index, [kept]);
            if is_max {
                k.argmax(values, places, v, dimension)
            } else {
                k.argmin(values, places, v, dimension)
            };
            k.copy(value, values);
            k.copy(at, places);
        }
    })
}

#[test]
fn the_first_extreme_of_a_row_and_its_index() {
    let shapes = [[1, 1], [1, 1000], [7, 13], [5, 100], [64, 33], [3, 256], [200, 2]];
    for ([rows, cols], threads) in shapes.into_iter().zip([32, 256, 64, 96, 128, 1024, 50]) {
        for (dtype, of_index, dimension) in [(F32, I32, 1), (F16, U16, 1), (I32, I64, 1), (F64, I32, 0), (U8, U16, 0)] {
            let has_nan = dtype.is_float();
            let of = |at: i64| if dtype == U8 { number(at, false) + 9.0 } else { number(at, has_nan) };
            let (kept, along) = if dimension == 1 { (rows, cols) } else { (cols, rows) };
            let place = |row: i64, at: i64| if dimension == 1 { row * cols + at } else { at * cols + row };
            let row = |row: i64| (0..along).map(|at| of(place(row, at))).collect::<Vec<f64>>();
            let kernel = extremes(dtype, of_index, [rows, cols], dimension, threads);
            let expected: Vec<_> = [true, false]
                .into_iter()
                .flat_map(|is_max| {
                    [
                        tensor(dtype, &[kept], |at| extreme(&row(at), is_max).0),
                        tensor(of_index, &[kept], |at| extreme(&row(at), is_max).1 as f64),
                    ]
                })
                .collect();
            computes(&kernel, &[tensor(dtype, &[rows, cols], of)], &expected);
        }
    }
}

/// Beyond the edge of a tensor there is nothing, also for rows of which every number is less than 0.
#[test]
fn an_extreme_at_the_edge_of_a_tensor() {
    let kernel = kernel("ragged", |k| {
        let n = k.size("n").max(64);
        let (x, y) = (k.input("x", F32, (n,)), k.output("y", I32, [1]));
        let (v, most) = (k.fragment("v", F32, [64]), k.fragment("most", F32, [1]));
        let place = k.fragment("place", I32, [1]);
        k.copy(v, x.sub((at(Expr::from(0), 64),)));
        k.argmax(most, place, v, 0);
        k.copy(y, place);
    });
    for n in [1i64, 7, 64] {
        let x = tensor(F32, &[n], |i| -1.0 - ((i * 5 + 3) % 7) as f64);
        let best = (0..n).min_by_key(|i| (i * 5 + 3) % 7).unwrap_or(0);
        let y = tensor(I32, &[1], |_| best as f64);
        tilewright_tests::pages::check(&kernel, &[("n", n)], &[x], &[y], tilewright::runtime::Tolerance::EXACT);
    }
}

/// Dimensions of extent 1 do not matter, as in reductions.
#[test]
fn an_extreme_along_one_of_several_dimensions() {
    let shapes: [(&[i64], usize, &[i64]); 4] =
        [(&[1, 8, 5], 2, &[8]), (&[1, 5, 1], 1, &[1]), (&[3, 1, 7], 2, &[3, 1]), (&[2, 9, 4], 1, &[2, 1, 4])];
    for (shape, dimension, results) in shapes {
        let kernel = kernel("several", |k| {
            let (x, y) = (k.input("x", I32, shape.to_vec()), k.output("y", I32, results.to_vec()));
            let v = k.fragment("v", I32, shape.to_vec());
            let most = k.fragment("most", I32, results.to_vec());
            let place = k.fragment("place", I32, results.to_vec());
            k.copy(v, x);
            k.argmax(most, place, v, dimension);
            k.copy(y, place);
        });
        let number = |at: i64| at * 37 % 23;
        let below: i64 = shape[dimension + 1..].iter().product();
        let extent = shape[dimension];
        let best = |row: i64| {
            let element = |at: i64| number((row / below * extent + at) * below + row % below);
            (0..extent).fold(0, |best, at| if element(at) > element(best) { at } else { best })
        };
        let inputs = [tensor(I32, shape, |at| number(at) as f64)];
        computes(&kernel, &inputs, &[tensor(I32, results, |row| best(row) as f64)]);
    }
}
