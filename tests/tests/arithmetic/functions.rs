//! Every function of real numbers, in its whole domain, compared with functions of the host in f64.

use std::f64::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

use tilewright::ir::tile::Function;
use tilewright::prelude::*;
use tilewright_tests::meaning::numbers::{real, rounded};

use super::{bits, outputs, tensor};

/// How far a result may be from the exact one.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// Units in the last place of the exact result.
    Ulp(f64),
    /// Of the result, or of 1 if that is larger.
    Relative(f64),
    Absolute(f64),
}

/// The numbers that a function is tried with.
#[derive(Clone, Copy, Debug)]
enum Domain {
    /// Evenly spaced.
    Even(f64, f64),
    /// Both signs of powers of 2 with exponents in this range.
    Powers(f64, f64),
    /// The same without the negative ones.
    Positive(f64, f64),
}

struct Known {
    exact: fn(f64, f64) -> f64,
    domain: Domain,
    second: Domain,
    /// As f32, and as f64; bounds of f64 have one ulp more, for the functions of the host.
    bounds: [Bound; 2],
}

fn known(function: Function) -> Known {
    use Bound::{Absolute, Relative, Ulp};
    use Domain::{Even, Positive, Powers};
    let ulp = |single: f64, double: f64| [Ulp(single), Ulp(double + 1.0)];
    let one = |exact: fn(f64, f64) -> f64, domain, bounds| Known { exact, domain, second: Even(1.0, 2.0), bounds };
    match function {
        Function::Exp => one(|x, _| x.exp(), Even(-103.0, 89.0), ulp(2.0, 1.0)),
        Function::FastExp => one(|x, _| x.exp(), Even(-10.0, 10.0), ulp(14.0, 1.0)),
        Function::Exp2 => one(|x, _| x.exp2(), Even(-149.0, 128.0), ulp(2.0, 1.0)),
        Function::FastExp2 => one(|x, _| x.exp2(), Even(-126.0, 128.0), ulp(2.0, 1.0)),
        Function::PolynomialExp2 => one(|x, _| x.exp2(), Even(-126.0, 127.9), [Relative(8.7e-5), Ulp(2.0)]),
        Function::Expm1 => one(|x, _| x.exp_m1(), Powers(-60.0, 6.3), ulp(1.0, 1.0)),
        Function::Log => one(|x, _| x.ln(), Positive(-126.0, 127.0), ulp(1.0, 1.0)),
        Function::FastLog => one(|x, _| x.ln(), Positive(-126.0, 127.0), [Relative(4e-7), Ulp(2.0)]),
        Function::Log2 => one(|x, _| x.log2(), Positive(-126.0, 127.0), ulp(1.0, 1.0)),
        Function::FastLog2 => one(|x, _| x.log2(), Positive(-126.0, 127.0), [Relative(3e-7), Ulp(2.0)]),
        Function::Log1p => one(|x, _| x.ln_1p(), Positive(-60.0, 100.0), ulp(1.0, 1.0)),
        Function::Sqrt => one(|x, _| x.sqrt(), Positive(-149.0, 127.0), ulp(0.5, 0.5)),
        Function::FastSqrt => one(|x, _| x.sqrt(), Positive(-126.0, 127.0), ulp(2.0, 0.5)),
        Function::Rsqrt => one(|x, _| 1.0 / x.sqrt(), Positive(-126.0, 127.0), ulp(2.0, 1.0)),
        Function::Sin => one(|x, _| x.sin(), Powers(-60.0, 40.0), ulp(2.0, 2.0)),
        Function::FastSin => one(|x, _| x.sin(), Even(-PI, PI), [Absolute(4e-7), Ulp(3.0)]),
        Function::Cos => one(|x, _| x.cos(), Powers(-60.0, 40.0), ulp(2.0, 2.0)),
        Function::FastCos => one(|x, _| x.cos(), Even(-PI, PI), [Absolute(5e-7), Ulp(3.0)]),
        Function::Tanh => one(|x, _| x.tanh(), Powers(-60.0, 8.0), ulp(2.0, 1.0)),
        Function::FastTanh => one(|x, _| x.tanh(), Powers(-60.0, 8.0), [Relative(5e-4), Ulp(2.0)]),
        Function::Erf => one(|x, _| libm::erf(x), Powers(-60.0, 4.0), ulp(2.0, 2.0)),
        Function::Sigmoid => one(|x, _| 1.0 / (1.0 + (-x).exp()), Even(-80.0, 80.0), ulp(4.0, 4.0)),
        Function::FastSigmoid => one(|x, _| 1.0 / (1.0 + (-x).exp()), Even(-80.0, 80.0), [Relative(1e-5), Ulp(5.0)]),
        Function::Silu => one(|x, _| x / (1.0 + (-x).exp()), Even(-80.0, 80.0), ulp(4.0, 4.0)),
        Function::FastSilu => one(|x, _| x / (1.0 + (-x).exp()), Even(-80.0, 80.0), [Relative(1e-5), Ulp(5.0)]),
        Function::Gelu => {
            one(|x, _| x / 2.0 * (1.0 + libm::erf(x / SQRT_2)), Even(-6.0, 6.0), [Absolute(1e-6), Absolute(1e-14)])
        }
        Function::GeluTanh => one(gelu_tanh, Even(-6.0, 6.0), [Absolute(1e-6), Absolute(1e-14)]),
        Function::FastGeluTanh => one(gelu_tanh, Even(-6.0, 6.0), [Absolute(2e-3), Absolute(1e-14)]),
        Function::Pow => {
            Known { exact: f64::powf, domain: Positive(-10.0, 10.0), second: Even(-10.0, 10.0), bounds: ulp(4.0, 2.0) }
        }
        Function::FastPow => Known {
            exact: f64::powf,
            domain: Positive(-2.0, 2.0),
            second: Even(-4.0, 4.0),
            bounds: [Bound::Ulp(40.0), Ulp(3.0)],
        },
        Function::FastDiv => Known {
            exact: |x, y| x / y,
            domain: Powers(-60.0, 60.0),
            second: Powers(-60.0, 60.0),
            bounds: ulp(2.0, 0.5),
        },
        Function::Floor => one(|x, _| x.floor(), Powers(-10.0, 40.0), ulp(0.0, 0.0)),
        Function::Ceil => one(|x, _| x.ceil(), Powers(-10.0, 40.0), ulp(0.0, 0.0)),
        Function::Trunc => one(|x, _| x.trunc(), Powers(-10.0, 40.0), ulp(0.0, 0.0)),
        Function::Round => one(|x, _| x.round(), Even(-20.0, 20.0), ulp(0.0, 0.0)),
        Function::RoundTiesEven => one(|x, _| x.round_ties_even(), Even(-20.0, 20.0), ulp(0.0, 0.0)),
    }
}

fn gelu_tanh(x: f64, _: f64) -> f64 {
    x / 2.0 * (1.0 + (FRAC_2_SQRT_PI / SQRT_2 * (x + 0.044715 * x * x * x)).tanh())
}

const COUNT: i64 = 1024;

/// Element `at` of the numbers of a domain.
fn number(domain: Domain, at: i64) -> f64 {
    let part = at as f64 / (COUNT - 1) as f64;
    let power = |lo: f64, hi: f64| (lo + (hi - lo) * part).exp2();
    match domain {
        Domain::Even(lo, hi) => lo + (hi - lo) * part,
        Domain::Powers(lo, hi) => power(lo, hi) * if at % 2 == 0 { 1.0 } else { -1.0 },
        Domain::Positive(lo, hi) => power(lo, hi),
    }
}

/// A unit in the last place of a number in a dtype.
fn ulp(dtype: DType, value: f64) -> f64 {
    let (digits, least) = match dtype {
        F32 => (24, -149),
        F16 => (11, -24),
        BF16 => (8, -133),
        _ => (53, -1074),
    };
    let exponent = if value == 0.0 { least } else { value.abs().log2().floor() as i32 - digits + 1 };
    f64::from(exponent.max(least)).exp2()
}

fn distance(dtype: DType, got: f64, exact: f64, bound: Bound) -> (f64, f64) {
    let difference = (got - exact).abs();
    match bound {
        Bound::Ulp(most) => (difference / ulp(dtype, exact), most),
        Bound::Relative(most) => (difference / exact.abs().max(1.0), most),
        Bound::Absolute(most) => (difference, most),
    }
}

/// The results of all functions, each for the numbers of its domain.
fn results(dtype: DType, numbers: &[[Vec<u64>; 2]]) -> Option<Vec<u64>> {
    let functions = Function::ALL;
    let count = functions.len() as i64;
    let kernel = kernel("functions", |k| {
        let x = k.input("x", dtype, [count * COUNT]);
        let z = k.input("z", dtype, [count * COUNT]);
        let y = k.output("y", dtype, [count * COUNT]);
        k.threads(256);
        for (row, function) in (0i64..).zip(functions) {
            k.parallel([COUNT], |k, [i]| {
                let [x, z] = [x, z].map(|of| of.at((i + row * COUNT,)).resolved());
                let others = (function.arity() == 2).then_some(z);
                k.store(y, (i + row * COUNT,), tilewright::ir::tile::Value::function(x, *function, others));
            });
        }
    });
    let input = |side: usize| tensor(dtype, &numbers.iter().flat_map(|of| of[side].clone()).collect::<Vec<u64>>());
    Some(bits(&outputs("functions", kernel, &[input(0), input(1)])?[0]))
}

fn assert_accurate(dtype: DType) {
    let numbers: Vec<[Vec<u64>; 2]> = Function::ALL
        .iter()
        .map(|function| {
            let Known { domain, second, .. } = known(*function);
            [domain, second].map(|of| (0..COUNT).map(|at| rounded(dtype, number(of, at))).collect())
        })
        .collect();
    let Some(results) = results(dtype, &numbers) else { return };
    let mut wrong = Vec::new();
    for ((function, [x, z]), got) in Function::ALL.iter().zip(&numbers).zip(results.chunks(COUNT as usize)) {
        let Known { exact, bounds, .. } = known(*function);
        let bound = match (dtype, bounds) {
            (F64, [_, double]) => double,
            (F32, [single, _]) => single,
            // Halves are rounded once more.
            (_, [Bound::Ulp(_), _]) => Bound::Ulp(0.51),
            (_, [Bound::Relative(most) | Bound::Absolute(most), _]) => Bound::Relative(most + 4e-3),
        };
        let mut worst = (0.0, 0.0, String::new());
        for ((x, z), got) in x.iter().zip(z).zip(got) {
            let [x, z, got] = [x, z, got].map(|bits| real(dtype, *bits));
            let truth = real(F64, rounded(F64, exact(x, z)));
            if got == truth || (got.is_nan() && truth.is_nan()) || real(dtype, rounded(dtype, truth)).is_infinite() {
                continue;
            }
            let (found, most) = distance(dtype, got, truth, bound);
            if found > worst.0 || found.is_nan() {
                worst = (found, most, format!("{function}({x:e}, {z:e}) is {got:e}, not {truth:e}"));
            }
        }
        if worst.0 > worst.1 || worst.0.is_nan() {
            wrong.push(format!("{dtype} {bound:?}: {} by {}", worst.2, worst.0));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_are_as_accurate_as_stated() {
    for dtype in [F32, F64, F16, BF16] {
        assert_accurate(dtype);
    }
}
