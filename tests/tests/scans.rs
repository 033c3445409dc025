//! `scan` in many layouts, compared with a sequential one.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::HostTensor;
use tilewright_tests::pages::{computes, tensor};

/// Variants of scans: the cheapest, and those through shared memory.
const VARIANTS: [Option<&str>; 3] = [None, Some("across_warps"), Some("rows_in_shared")];

/// What is scanned.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: ReduceKind,
    dtype: DType,
    shape: [i64; 2],
    dimension: usize,
    is_exclusive: bool,
    is_reverse: bool,
    threads: i64,
}

const PLAIN: Case =
    Case { kind: Sum, dtype: I32, shape: [8, 64], dimension: 1, is_exclusive: false, is_reverse: false, threads: 64 };

impl Case {
    fn kernel(&self, variant: Option<&str>) -> Kernel {
        let Case { kind, dtype, shape, dimension, is_exclusive, is_reverse, threads } = *self;
        kernel("scan", |k| {
            let (x, y) = (k.input("x", dtype, shape), k.output("y", dtype, shape));
            k.threads(threads);
            let (v, sums) = (k.fragment("v", dtype, shape), k.fragment("sums", dtype, shape));
            k.copy(v, x);
            let mut scan = k.scan(kind, sums, v, dimension).variant_opt(variant);
            if is_exclusive {
                scan = scan.exclusive();
            }
            if is_reverse {
                scan.reverse();
            }
            k.copy(y, sums);
        })
    }

    fn number(&self, at: i64) -> i64 {
        match self.kind {
            Product => 1 + at % 2 * 2,
            _ => (at * 37 + at / 7) % 23 - if self.dtype == U16 { 0 } else { 11 },
        }
    }

    fn combined(&self, a: i64, b: i64) -> i64 {
        match self.kind {
            Sum => a + b,
            AbsSum => a + b.abs(),
            SquareSum => a + b * b,
            Product => a.wrapping_mul(b),
            Max => a.max(b),
            Min => a.min(b),
            AbsMax => a.max(b.abs()),
            And => a & b,
            Or => a | b,
            Xor => a ^ b,
        }
    }

    /// The result of no elements.
    fn start(&self) -> i64 {
        let (least, most) = self.dtype.integers().map_or((i64::MIN, i64::MAX), |(lo, hi)| (lo as i64, hi as i64));
        match self.kind {
            Sum | AbsSum | SquareSum | AbsMax | Or | Xor => 0,
            Product => 1,
            Max => least,
            Min | And if self.dtype == U16 => most,
            Min => most,
            And => -1,
        }
    }

    fn element(&self, number: i64) -> u128 {
        let real = match number {
            i64::MIN => f64::NEG_INFINITY,
            i64::MAX => f64::INFINITY,
            number => number as f64,
        };
        match self.dtype {
            F32 => (real as f32).to_bits().into(),
            F64 => real.to_bits().into(),
            // Integers of at most 4096 and infinities are exact.
            F16 => HostTensor::from_f64(F16, &[1], |_| real).element(0).expect("one element")[..2]
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u128::from(*byte)),
            _ => number as u128 & (u128::MAX >> (128 - 8 * self.dtype.bytes())),
        }
    }

    fn expected(&self) -> HostTensor {
        let [rows, cols] = self.shape;
        let mut results = vec![0; (rows * cols) as usize];
        let (lines, extent) = if self.dimension == 1 { (rows, cols) } else { (cols, rows) };
        for line in 0..lines {
            let (mut sum, mut is_empty) = (self.start(), true);
            for step in 0..extent {
                let along = if self.is_reverse { extent - 1 - step } else { step };
                let at = if self.dimension == 1 { line * cols + along } else { along * cols + line };
                let first =
                    if self.kind == AbsMax || self.kind == AbsSum { self.number(at).abs() } else { self.number(at) };
                let first = if self.kind == SquareSum { first * first } else { first };
                let next = if is_empty { first } else { self.combined(sum, self.number(at)) };
                results[at as usize] = if self.is_exclusive { sum } else { next };
                (sum, is_empty) = (next, false);
            }
        }
        HostTensor::from_fn(self.dtype, &self.shape, |at| self.element(results[at as usize]))
    }

    fn check(&self, variant: Option<&str>) {
        let x = HostTensor::from_fn(self.dtype, &self.shape, |at| self.element(self.number(at)));
        computes(&self.kernel(variant), &[x], &[self.expected()]);
    }
}

#[test]
fn every_kind_forwards_and_backwards() {
    for kind in ReduceKind::ALL.iter().copied() {
        for (is_exclusive, is_reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            for variant in VARIANTS {
                Case { kind, is_exclusive, is_reverse, ..PLAIN }.check(variant);
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
                for variant in VARIANTS.into_iter().filter(|variant| *variant != Some("across_warps")) {
                    let (is_exclusive, is_reverse) = (at % 2 == 1, threads % 64 == 0);
                    Case { shape, dimension, threads, is_exclusive, is_reverse, ..PLAIN }.check(variant);
                }
            }
        }
    }
}

#[test]
fn every_dtype() {
    for dtype in [F32, F64, F16, I8, U16, I64, U32] {
        for kind in [Sum, Max, Min] {
            for is_exclusive in [false, true] {
                let case = Case { dtype, kind, is_exclusive, shape: [4, 40], ..PLAIN };
                // Unsigned and narrow sums wrap.
                if !(dtype == U32 && kind != Sum || dtype == I8 && kind == Sum) {
                    case.check(None);
                }
            }
        }
    }
}

/// Layouts in which the elements of a row are in no order of the lanes.
#[test]
fn rows_in_layouts_of_the_user() {
    let layouts = [
        S([64], [1 * TX]).build(),
        S([8, 8], [1 * TX, 8 * TX]).build(),
        S([2, 32], [1 * REG, 1 * TX]).build(),
        S([32, 2], [1 * TX, 1 * REG]).build(),
        S([4, 2, 8], [1 * REG, 8 * TX, 1 * TX]).build(),
    ];
    for layout in layouts {
        let layout = layout.expect("a layout");
        let threads = 64;
        for is_reverse in [false, true] {
            let kernel = kernel("placed", |k| {
                let (x, y) = (k.input("x", I32, [64]), k.output("y", I32, [64]));
                k.threads(threads);
                let held = k.fragment("held", I32, layout.clone());
                let v = k.view("v", held, [64]);
                k.parallel([64], |k, [i]| k.store(v, (i,), x.at((i,))));
                let scan = k.scan(Sum, v, v, 0);
                if is_reverse {
                    scan.reverse();
                }
                k.parallel([64], |k, [i]| k.store(y, (i,), v.at((i,))));
            });
            let number = |i: i64| i * i % 19;
            let sum = |i: i64| if is_reverse { (i..64).map(number).sum::<i64>() } else { (0..=i).map(number).sum() };
            computes(&kernel, &[tensor(I32, &[64], |i| number(i) as f64)], &[tensor(I32, &[64], |i| sum(i) as f64)]);
        }
    }
}

#[test]
fn rows_of_one_warp_take_shuffles_and_those_of_several_shared_memory() {
    let chosen = |case: Case| {
        let artifact = compile(case.kernel(None), &Options::new(Target::Sm100a)).expect("the kernel is right");
        artifact.plans()[1].chosen
    };
    assert_eq!(chosen(PLAIN), "shuffles");
    assert_eq!(chosen(Case { shape: [1, 1024], threads: 256, ..PLAIN }), "across_warps");
}
