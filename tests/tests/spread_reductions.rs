//! Reductions that add to a result from step to step of a serial loop: parts stay in registers, and are combined once.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright_tests::pages::{computes, tensor};

const STEPS: i64 = 5;
const SHAPE: [i64; 2] = [8, 24];

/// What the loop does besides the reduction.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// It stores the result so far.
    ReadsResult,
    /// It is inside another loop, which does it twice.
    OuterLoop,
}

#[derive(Clone, Copy)]
struct Case {
    kind: ReduceKind,
    dtype: DType,
    dimension: usize,
    threads: i64,
    beside: Beside,
    variant: Option<&'static str>,
}

const PLAIN: Case = Case { kind: Sum, dtype: F32, dimension: 1, threads: 64, beside: Beside::Nothing, variant: None };

impl Case {
    fn results(&self) -> i64 {
        SHAPE[1 - self.dimension]
    }

    /// The first value of the result.
    fn first(&self) -> f64 {
        match self.kind {
            Sum | AbsSum | SquareSum | AbsMax => 1.0,
            Product | And | Or | Xor => 3.0,
            Max => -90.0,
            Min => 90.0,
        }
    }

    fn kernel(&self) -> Kernel {
        let Case { kind, dtype, dimension, threads, beside, variant } = *self;
        kernel("spread", |k| {
            let x = k.input("x", dtype, [STEPS, SHAPE[0], SHAPE[1]]);
            let y = k.output("y", dtype, [self.results()]);
            let seen = (beside == Beside::ReadsResult).then(|| k.output("seen", dtype, [STEPS, self.results()]));
            k.threads(threads);
            let v = k.fragment("v", dtype, SHAPE);
            let result = k.fragment("result", dtype, [self.results()]);
            let first = self.first();
            if dtype.is_float() {
                k.fill(result, first)
            } else {
                k.fill(result, first as i64)
            };
            let step = |k: &mut KernelBuilder, t: Expr| {
                k.parallel(SHAPE, |k, [i, j]| k.store(v, (i, j), x.at((t, i, j))));
                let reduced = k.reduce(kind, result, v, dimension).accumulate();
                variant.into_iter().for_each(|name| {
                    reduced.variant(name);
                });
                if let Some(seen) = seen {
                    k.parallel([self.results()], |k, [i]| k.store(seen, (t, i), result.at((i,))));
                }
            };
            match beside {
                Beside::OuterLoop => k.serial("again", 0..2, |k, _| k.serial("t", 0..STEPS, step)),
                Beside::Nothing | Beside::ReadsResult => k.serial("t", 0..STEPS, step),
            }
            k.copy(y, result);
        })
    }

    fn element(at: i64) -> f64 {
        ((at * 37 + at / 7) % 61 - 30) as f64
    }

    /// The results after each step.
    fn expected(&self) -> Vec<Vec<f64>> {
        let [rows, columns] = SHAPE;
        let mut results = vec![self.first(); self.results() as usize];
        let times = if self.beside == Beside::OuterLoop { 2 * STEPS } else { STEPS };
        let mut all = Vec::new();
        for t in 0..times {
            for at in 0..rows * columns {
                let of = if self.dimension == 1 { at / columns } else { at % columns } as usize;
                let value = Case::element(t % STEPS * rows * columns + at);
                results[of] = match self.kind {
                    Sum => results[of] + value,
                    AbsSum => results[of] + value.abs(),
                    SquareSum => results[of] + value * value,
                    Max => results[of].max(value),
                    Min => results[of].min(value),
                    AbsMax => results[of].max(value.abs()),
                    // Of integers, modulo 2^32.
                    Product => (results[of] as i32).wrapping_mul(value as i32).into(),
                    And => (results[of] as i32 & value as i32).into(),
                    Or => (results[of] as i32 | value as i32).into(),
                    Xor => (results[of] as i32 ^ value as i32).into(),
                };
            }
            all.push(results.clone());
        }
        all
    }

    /// It computes what plain Rust does; true if the reduction is spread over the loop.
    fn is_spread(&self) -> bool {
        let input = tensor(self.dtype, &[STEPS, SHAPE[0], SHAPE[1]], Case::element);
        let expected = self.expected();
        let last = expected.last().expect("some steps");
        let y = tensor(self.dtype, &[self.results()], |at| last[at as usize]);
        let (kernel, columns) = (self.kernel(), self.results());
        if self.beside == Beside::ReadsResult {
            let seen =
                tensor(self.dtype, &[STEPS, columns], |at| expected[(at / columns) as usize][(at % columns) as usize]);
            computes(&kernel, &[input], &[y, seen]);
        } else {
            computes(&kernel, &[input], &[y]);
        }
        let artifact = compile(kernel, &Options::new(Target::Sm100a)).expect("the kernel is right");
        artifact.plans().iter().any(|plan| plan.title.ends_with(", before the loop"))
    }
}

#[test]
fn every_kind_along_both_dimensions() {
    for kind in ReduceKind::ALL.iter().copied() {
        for (dimension, threads) in [(0, 32), (1, 32), (0, 64), (1, 96), (0, 128), (1, 256)] {
            // Products of floats are not exact.
            let of_integers = kind == Product || kind.is_bitwise();
            for dtype in [F32, I32, F64].into_iter().filter(|dtype| *dtype == I32 || !of_integers) {
                let case = Case { kind, dimension, threads, dtype, ..PLAIN };
                assert!(case.is_spread(), "{kind:?} of {dtype} along {dimension} by {threads} threads");
            }
        }
    }
}

#[test]
fn with_any_variant() {
    for variant in ["across_warps", "single_owners"] {
        for dimension in [0, 1] {
            assert!(Case { dimension, variant: Some(variant), ..PLAIN }.is_spread(), "{variant} along {dimension}");
        }
    }
}

#[test]
fn in_an_outer_loop_the_result_is_complete_after_each_inner_loop() {
    assert!(Case { beside: Beside::OuterLoop, ..PLAIN }.is_spread());
}

#[test]
fn a_result_that_is_used_in_the_loop_is_complete_in_every_step() {
    assert!(!Case { beside: Beside::ReadsResult, ..PLAIN }.is_spread());
}

#[test]
fn a_narrow_result_is_rounded_in_every_step() {
    assert!(!Case { dtype: F16, kind: Max, ..PLAIN }.is_spread());
}
