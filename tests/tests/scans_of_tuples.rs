//! `scan_by` in many layouts, compared with a loop over each row.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, computes, tensor};

/// Variants of scans: the cheapest, and those through shared memory.
const VARIANTS: [Option<&str>; 3] = [None, Some("across_warps"), Some("rows_in_shared")];

/// What is scanned: steps `x -> a*x + b`, whose order matters.
#[derive(Clone, Copy, Debug)]
struct Case {
    dtype: DType,
    shape: [i64; 2],
    dimension: usize,
    is_exclusive: bool,
    is_reverse: bool,
    is_in_place: bool,
    threads: i64,
}

const PLAIN: Case = Case {
    dtype: I32,
    shape: [8, 64],
    dimension: 1,
    is_exclusive: false,
    is_reverse: false,
    is_in_place: false,
    threads: 64,
};

type Pair = [Value; 2];

/// First the step `[a, b]`, then the step `[c, d]`.
fn then([a, b]: Pair, [c, d]: Pair) -> Pair {
    [a * c, c * b + d]
}

impl Case {
    fn kernel(&self, variant: Option<&str>) -> Kernel {
        let Case { dtype, shape, dimension, is_exclusive, is_reverse, is_in_place, threads } = *self;
        kernel("steps", |k| {
            let (a, b) = (k.input("a", dtype, shape), k.input("b", dtype, shape));
            let (c, d) = (k.output("c", dtype, shape), k.output("d", dtype, shape));
            k.threads(threads);
            let (v, w) = (k.fragment("v", dtype, shape), k.fragment("w", dtype, shape));
            k.copy(v, a);
            k.copy(w, b);
            let results = if is_in_place { [v, w] } else { ["r", "s"].map(|name| k.fragment(name, dtype, shape)) };
            let mut scan = k.scan_by(results, [v, w], dimension, [1, 0], then).variant_opt(variant);
            if is_exclusive {
                scan = scan.exclusive();
            }
            if is_reverse {
                scan.reverse();
            }
            k.copy(c, results[0]);
            k.copy(d, results[1]);
        })
    }

    /// Factors are odd, so that none of 32 bits becomes 0.
    fn step(at: i64) -> [i64; 2] {
        [(at * 37 + at / 7) % 9 * 2 - 7, (at * 11 + at / 5) % 17 - 8]
    }

    fn check(&self, variant: Option<&str>) {
        let [rows, cols] = self.shape;
        let mut results = vec![[0, 0]; (rows * cols) as usize];
        let (lines, extent) = if self.dimension == 1 { (rows, cols) } else { (cols, rows) };
        for line in 0..lines {
            let mut so_far: [i64; 2] = [1, 0];
            for step in 0..extent {
                let along = if self.is_reverse { extent - 1 - step } else { step };
                let at = if self.dimension == 1 { line * cols + along } else { along * cols + line };
                let [c, d] = Case::step(at);
                let [a, b] = so_far;
                let next = [a.wrapping_mul(c), c.wrapping_mul(b).wrapping_add(d)];
                results[at as usize] = if self.is_exclusive { so_far } else { next };
                so_far = next;
            }
        }
        let bits = |number: i64| number as u128 & (u128::MAX >> (128 - 8 * self.dtype.bytes()));
        let of = |part: &dyn Fn(i64) -> i64| HostTensor::from_fn(self.dtype, &self.shape, |at| bits(part(at)));
        let inputs = [of(&|at| Case::step(at)[0]), of(&|at| Case::step(at)[1])];
        let expected = [of(&|at| results[at as usize][0]), of(&|at| results[at as usize][1])];
        computes(&self.kernel(variant), &inputs, &expected);
    }
}

#[test]
fn steps_keep_their_order() {
    for dtype in [I32, I64, U32] {
        for (is_exclusive, is_reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            for variant in VARIANTS {
                for is_in_place in [false, true] {
                    Case { dtype, is_exclusive, is_reverse, is_in_place, ..PLAIN }.check(variant);
                }
            }
        }
    }
}

#[test]
fn rows_of_any_extent_on_any_number_of_threads() {
    let shapes = [[1, 1], [1, 1000], [7, 13], [5, 100], [64, 33], [3, 256], [200, 2], [1, 4096], [40, 24]];
    for (at, shape) in shapes.into_iter().enumerate() {
        for threads in [32, 96, 256, 50] {
            for dimension in [0, 1] {
                let (is_exclusive, is_reverse) = (at % 2 == 1, threads % 64 == 0);
                let case = Case { shape, dimension, threads, is_exclusive, is_reverse, ..PLAIN };
                case.check(None);
                if shape[0] * shape[1] <= 2000 {
                    case.check(Some("rows_in_shared"));
                }
            }
        }
    }
}

/// Layouts in which the order of the elements is that of some bits of the lanes, or none.
#[test]
fn rows_in_layouts_of_the_user() {
    let layouts = [
        S([8, 8], [1 * TX, 8 * TX]),
        S([2, 32], [1 * REG, 1 * TX]),
        S([2, 2, 2, 8], [4 * TX, 1 * REG, 8 * TX, 16 * TX]),
        S([4, 2, 8], [1 * REG, 8 * TX, 1 * TX]),
        S([4, 16], [16 * TX, 1 * TX]),
        S([2, 2, 16], [1 * TX, 4 * TX, 1 * REG]),
    ];
    for layout in layouts {
        for is_reverse in [false, true] {
            let kernel = kernel("placed", |k| {
                let (a, b, y) = (k.input("a", I32, [64]), k.input("b", I32, [64]), k.output("y", I32, [64]));
                k.threads(128);
                let held = ["u", "w"].map(|name| k.fragment(name, I32, layout.clone()));
                let [v, w] = [k.view("v", held[0], [64]), k.view("x", held[1], [64])];
                k.copy(v, a);
                k.copy(w, b);
                let scan = k.scan_by([v, w], [v, w], 0, [1, 0], then);
                if is_reverse {
                    scan.reverse();
                }
                k.copy(y, w);
            });
            let mut sums = [0; 64];
            let mut so_far = 0i64;
            for step in 0..64 {
                let at = if is_reverse { 63 - step } else { step };
                let [c, d] = Case::step(at);
                so_far = (so_far * c + d) as i32 as i64;
                sums[at as usize] = so_far;
            }
            let of = |part: usize| tensor(I32, &[64], |at| Case::step(at)[part] as f64);
            computes(&kernel, &[of(0), of(1)], &[tensor(I32, &[64], |at| sums[at as usize] as f64)]);
        }
    }
}

/// The linear recurrence of a state space, over any length: a scan of each part, and a carry from part to part.
#[test]
fn a_recurrence_of_any_length() {
    let recurrence = kernel("recurrence", |k| {
        let (rows, cols) = (k.size("rows"), k.size("cols"));
        let (a, x) = (k.input("a", F32, (rows, cols)), k.input("x", F32, (rows, cols)));
        let y = k.output("y", F32, (rows, cols));
        let [row] = k.grid([rows]);
        k.threads(64);
        let (decay, h) = (k.fragment("decay", F32, [256]), k.fragment("h", F32, [256]));
        let (product, carry) = (k.fragment("product", F32, [1]), k.fragment("carry", F32, [1]));
        k.fill(product, 1.0);
        k.fill(carry, 0.0);
        k.serial("t", ..cols.ceil_div(256), |k, t| {
            let part = (row, at(t * 256, 256));
            k.copy(decay, a.sub(part));
            k.copy(h, x.sub(part));
            k.scan_by([decay, h], [decay, h], 0, [1.0, 0.0], then).carry([product, carry]);
            k.copy(y.sub(part), h);
        });
    });
    for (rows, cols) in [(1, 1), (3, 255), (2, 256), (2, 1000)] {
        let step = |at: i64| [(at % 5) as f64 / 4.0, (at % 7 - 3) as f64];
        let mut results = vec![0.0; (rows * cols) as usize];
        for row in 0..rows {
            let mut so_far = 0.0;
            for at in row * cols..(row + 1) * cols {
                let [a, x] = step(at);
                so_far = a * so_far + x;
                results[at as usize] = so_far;
            }
        }
        let of = |part: usize| tensor(F32, &[rows, cols], |at| step(at)[part]);
        let expected = tensor(F32, &[rows, cols], |at| results[at as usize]);
        let tolerance = Tolerance { absolute: 1e-5, relative: 1e-5 };
        check(&recurrence, &[("rows", rows), ("cols", cols)], &[of(0), of(1)], &[expected], tolerance);
    }
}

/// A running maximum; counts and sums of segments that begin where a flag is set.
#[test]
fn one_value_and_three() {
    let shape = [4, 96];
    let greatest = kernel("greatest", |k| {
        let (x, y) = (k.input("x", F32, shape), k.output("y", F32, shape));
        k.threads(64);
        let v = k.fragment("v", F32, shape);
        k.copy(v, x);
        k.scan_by([v], [v], 1, [-1e30], |[a], [b]| [a.max(b)]);
        k.copy(y, v);
    });
    let number = |at: i64| ((at * 37) % 101) as f64;
    let most = |at: i64| (at / 96 * 96..=at).map(number).fold(f64::NEG_INFINITY, f64::max);
    computes(&greatest, &[tensor(F32, &shape, number)], &[tensor(F32, &shape, most)]);
    let segments = kernel("segments", |k| {
        let (x, flags) = (k.input("x", F32, shape), k.input("flags", I32, shape));
        let (sums, counts) = (k.output("sums", F32, shape), k.output("counts", I64, shape));
        k.threads(64);
        let (v, f, n) = (k.fragment("v", F32, shape), k.fragment("f", I32, shape), k.fragment("n", I64, shape));
        k.copy(v, x);
        k.copy(f, flags);
        k.fill(n, 1);
        k.scan_by([f, n, v], [f, n, v], 1, [0, 0, 0], |[f0, n0, s0], [f1, n1, s1]| {
            let begins = f1.ne(0);
            [f0 | f1, begins.select(n1, n0 + n1), begins.select(s1, s0 + s1)]
        });
        k.copy(sums, v);
        k.copy(counts, n);
    });
    let flag = |at: i64| f64::from(at % 13 == 4);
    let first = |at: i64| (at / 96 * 96..=at).rev().find(|at| flag(*at) != 0.0).unwrap_or(at / 96 * 96);
    let sum = |at: i64| (first(at)..=at).map(number).sum::<f64>();
    let count = |at: i64| (at - first(at) + 1) as f64;
    let inputs = [tensor(F32, &shape, number), tensor(I32, &shape, flag)];
    computes(&segments, &inputs, &[tensor(F32, &shape, sum), tensor(I64, &shape, count)]);
}

#[test]
fn the_variants_are_those_of_scans() {
    let chosen = |case: Case| {
        let artifact = compile(case.kernel(None), &Options::new(Target::Sm100a)).expect("the kernel is right");
        let plans = artifact.plans();
        plans.iter().find(|plan| plan.title.contains("scan_by")).expect("a plan").chosen
    };
    assert_eq!(chosen(PLAIN), "shuffles");
    assert_eq!(chosen(Case { shape: [1, 1024], threads: 256, ..PLAIN }), "across_warps");
}

/// Registers of another dtype than the elements, which are those of a view.
#[test]
fn results_in_views_of_fragments() {
    let viewed = kernel("viewed", |k| {
        let (x, y) = (k.input("x", U32, [64]), k.output("y", U32, [64]));
        k.threads(32);
        let bits = k.fragment("bits", U32, [64]);
        let v = k.view_as("v", bits, F32, [64]);
        k.copy(bits, x);
        k.scan_by([v], [v], 0, [0.0], |[a], [b]| [a + b]);
        k.copy(y, bits);
    });
    let of = |number: f32| HostTensor::from_fn(U32, &[64], move |at| (number * (at + 1) as f32).to_bits().into());
    let x = HostTensor::from_fn(U32, &[64], |_| 1.0f32.to_bits().into());
    computes(&viewed, &[x], &[of(1.0)]);
}
