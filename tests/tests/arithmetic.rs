//! The meaning of arithmetic, line by line as in `docs/arithmetic.md`: the virtual GPU is compared with Rust.

mod bits;
mod functions;
mod products;
mod reductions;

use tilewright::compile::{Artifact, Options, compile};
use tilewright::cuda::Request;
use tilewright::prelude::*;
use tilewright::runtime::{Device, HostTensor, run};
use tilewright_tests::cases::all;
use tilewright_tests::fuzz::spread_over;
use tilewright_tests::meaning::numbers::rounded;
use tilewright_tests::toolchain::{built_or_skipped, skip, toolchain};

fn compiled(kernel: Kernel) -> Artifact {
    compile(kernel, &Options::new(Target::Sm100a)).unwrap_or_else(|found| panic!("{found:?}"))
}

/// The outputs of a kernel; `None` without NVRTC.
fn outputs(test: &str, kernel: Kernel, inputs: &[HostTensor]) -> Option<Vec<HostTensor>> {
    let artifact = compiled(kernel);
    let built = built_or_skipped(&artifact, &format!("arithmetic: {test}"))?;
    assert!(built.warnings.is_empty(), "{:?}\n{}", built.warnings, artifact.cuda());
    let run = run(&artifact, &built, inputs, &Device::Virtual).unwrap_or_else(|failure| panic!("{failure}"));
    Some(run.outputs)
}

/// The low bytes of numbers, as a tensor.
fn tensor(dtype: DType, bits: &[u64]) -> HostTensor {
    HostTensor::from_fn(dtype, &[bits.len() as i64], |at| u128::from(bits[at as usize]))
}

fn bits(tensor: &HostTensor) -> Vec<u64> {
    let word = |at: i64| {
        tensor.element(at).expect("an element").iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte))
    };
    (0..tensor.len()).map(word).collect()
}

/// `exp2` has results below 2^-126, `exp2_ftz` has 0 instead, and the same results from there on.
#[test]
fn powers_below_the_least_normal_number() {
    let powers = [-149.0f32, -127.0, -126.0, -1.0, 0.0, 1.0, 127.0];
    let kernel = kernel("powers", |k| {
        let count = powers.len() as i64;
        let (x, y) = (k.input("x", F32, [count]), k.output("y", F32, [2, count]));
        k.parallel([count], |k, [i]| {
            k.store(y, (0, i), x.at((i,)).exp2());
            k.store(y, (1, i), x.at((i,)).fast_exp2());
        });
    });
    let inputs = [tensor(F32, &powers.map(|power| u64::from(power.to_bits())))];
    let Some(outputs) = outputs("powers of 2", kernel, &inputs) else { return };
    let whole = powers.map(f32::exp2);
    let flushed = whole.map(|power| if power < f32::MIN_POSITIVE { 0.0 } else { power });
    let expected: Vec<u64> = whole.into_iter().chain(flushed).map(|power| u64::from(power.to_bits())).collect();
    assert_eq!(bits(&outputs[0]), expected);
}

const INTEGERS: [DType; 8] = [I8, I16, I32, I64, U8, U16, U32, U64];

/// The bits of a number converted to an integer by Rust: `as` truncates and saturates floats, maps NaN to 0, and wraps
/// integers.
macro_rules! by_rust {
    ($value:expr, $to:expr) => {
        match $to {
            I8 => ($value as i8) as u8 as u64,
            I16 => ($value as i16) as u16 as u64,
            I32 => ($value as i32) as u32 as u64,
            I64 => ($value as i64) as u64,
            U8 => ($value as u8) as u64,
            U16 => ($value as u16) as u64,
            U32 => ($value as u32) as u64,
            U64 => $value as u64,
            F32 => u64::from(($value as f32).to_bits()),
            F64 => ($value as f64).to_bits(),
            other => panic!("{other}"),
        }
    };
}

/// Floats at the limits of every integer type, and non-finite values.
fn floats() -> Vec<f64> {
    let mut values = vec![0.0, -0.0, 0.5, 0.999, -0.5, -0.999, 2.5, -3.75, -1.0, 300.0, 1e10];
    values.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    for bits in [7, 8, 15, 16, 31, 32, 63, 64] {
        let end = 2f64.powi(bits);
        values.extend([end, end - 1.0, end + 1.0, -end, -end - 1.0, 1.5 - end, end - 0.25]);
    }
    values
}

/// One input of each dtype, and an output of each other dtype.
fn casts(from: DType, to: &[DType], count: usize, cast: fn(Value, DType) -> Value) -> Kernel {
    kernel("casts", |k| {
        k.threads(128);
        let n = count as i64;
        let x = k.input("x", from, [n]);
        for dtype in to {
            let y = k.output(&format!("y_{dtype}"), *dtype, [n]);
            k.parallel([n], |k, [i]| {
                k.store(y, (&i,), cast(x.at((&i,)), *dtype));
            });
        }
    })
}

#[test]
fn a_float_becomes_an_integer_by_truncation_and_saturates_and_nan_becomes_zero() {
    let values = floats();
    let singles: Vec<u64> = values.iter().map(|value| u64::from((*value as f32).to_bits())).collect();
    let doubles: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
    let name = "a_float_becomes_an_integer";
    let kernel = |from| casts(from, &INTEGERS, values.len(), Value::cast);
    let Some(found) = outputs(name, kernel(F32), &[tensor(F32, &singles)]) else { return };
    for (to, found) in INTEGERS.into_iter().zip(found) {
        let wanted: Vec<u64> = singles.iter().map(|bits| by_rust!(f32::from_bits(*bits as u32), to)).collect();
        assert_eq!(bits(&found), wanted, "f32 to {to}");
    }
    let Some(found) = outputs(name, kernel(F64), &[tensor(F64, &doubles)]) else { return };
    for (to, found) in INTEGERS.into_iter().zip(found) {
        let wanted: Vec<u64> = values.iter().map(|value| by_rust!(*value, to)).collect();
        assert_eq!(bits(&found), wanted, "f64 to {to}");
    }
}

#[test]
fn halves_become_integers_as_the_floats_that_they_are() {
    let halves =
        [0x0000, 0x8000, 0x3c00, 0x3e00, 0xbe00, 0x5bf8, 0x5c00, 0xd800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00];
    let values = [
        0.0,
        -0.0,
        1.0,
        1.5,
        -1.5,
        255.0,
        256.0,
        -128.0,
        65504.0,
        -65504.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let kernel = casts(F16, &INTEGERS, halves.len(), Value::cast);
    let Some(found) = outputs("halves_become_integers", kernel, &[tensor(F16, &halves)]) else { return };
    for (to, found) in INTEGERS.into_iter().zip(found) {
        let wanted: Vec<u64> = values.iter().map(|value| by_rust!(*value, to)).collect();
        assert_eq!(bits(&found), wanted, "f16 to {to}");
    }
}

#[test]
fn a_float_becomes_the_nearest_narrower_one_or_an_infinity() {
    // Values halfway between neighbours, up to the greatest finite one.
    let mut values = vec![1.0 + 2f64.powi(-11), 1.0 + 3.0 * 2f64.powi(-11), 1.0 + 2f64.powi(-24), 65519.0, 65520.0];
    values.extend(floats().into_iter().filter(|value| !value.is_nan()));
    for (from, to) in [(F32, &[F16, BF16][..]), (F64, &[F32, F16, BF16][..])] {
        let given: Vec<u64> = values.iter().map(|value| rounded(from, *value)).collect();
        let kernel = casts(from, to, values.len(), Value::cast);
        let name = "a_float_becomes_the_nearest_narrower_one";
        let Some(found) = outputs(name, kernel, &[tensor(from, &given)]) else { return };
        for (to, found) in to.iter().zip(found) {
            let held = |value: f64| if from == F32 { f64::from(value as f32) } else { value };
            let wanted: Vec<u64> = values.iter().map(|value| rounded(*to, held(*value))).collect();
            assert_eq!(bits(&found), wanted, "{from} to {to}");
        }
    }
}

/// Integers at the limits of every type, as 64 bits.
fn ends() -> Vec<u64> {
    let mut values = vec![0u64, 1, 2, 100, 255, 256, 300, (-320i64) as u64, (-1i64) as u64];
    for bits in [7, 8, 15, 16, 31, 32, 63] {
        let end = 1u64 << bits;
        values.extend([end, end - 1, end + 1, end.wrapping_neg(), end.wrapping_neg().wrapping_sub(1)]);
    }
    values
}

/// An integer of this dtype, from the low bits of 64 bits.
fn integer(dtype: DType, bits: u64) -> i128 {
    let shift = 64 - 8 * dtype.bytes() as u32;
    match dtype {
        I8 | I16 | I32 | I64 => i128::from((bits << shift) as i64 >> shift),
        _ => i128::from(bits << shift >> shift),
    }
}

#[test]
fn integers_saturate_or_wrap_as_the_kernel_says() {
    let values = ends();
    for from in INTEGERS {
        for (saturates, cast) in
            [(true, Value::saturating_cast as fn(Value, DType) -> Value), (false, Value::wrapping_cast)]
        {
            let kernel = casts(from, &INTEGERS, values.len(), cast);
            let Some(found) = outputs("integers_saturate_or_wrap", kernel, &[tensor(from, &values)]) else { return };
            for (to, found) in INTEGERS.into_iter().zip(found) {
                let (least, most) = to.integers().expect("an integer");
                let wanted = |bits: &u64| {
                    let value = integer(from, *bits);
                    let value = if saturates { value.clamp(least, most) } else { value };
                    by_rust!(value, to)
                };
                let wanted: Vec<u64> = values.iter().map(wanted).collect();
                assert_eq!(bits(&found), wanted, "{from} to {to}, saturates: {saturates}");
            }
        }
    }
}

#[test]
fn integers_become_the_nearest_float() {
    let values = ends();
    for from in INTEGERS {
        let kernel = casts(from, &[F32, F64], values.len(), Value::cast);
        let Some(found) = outputs("integers_become_the_nearest_float", kernel, &[tensor(from, &values)]) else {
            return;
        };
        for (to, found) in [F32, F64].into_iter().zip(found) {
            let wanted: Vec<u64> = values.iter().map(|bits| by_rust!(integer(from, *bits), to)).collect();
            assert_eq!(bits(&found), wanted, "{from} to {to}");
        }
    }
}

/// Also for numbers known at compile time that f64 cannot represent.
#[test]
fn integers_that_are_known_become_the_nearest_float() {
    let numbers: Vec<i64> = [(1i64 << 59) + (1 << 35) + 1, (1 << 62) + (1 << 54) + 1, (1 << 59) + (1 << 35) - 1, 3]
        .into_iter()
        .flat_map(|number| [number, -number])
        .collect();
    let n = numbers.len() as i64;
    let known = kernel("known", |k| {
        for dtype in [F32, BF16, F64] {
            let (stored, filled) = (format!("stored_{dtype}"), format!("filled_{dtype}"));
            let (stored, filled) = (k.output(&stored, dtype, [n]), k.output(&filled, dtype, [n]));
            for (at, number) in (0..).zip(&numbers) {
                k.parallel([1], |k, _| k.store(stored, (at,), *number));
                k.fill(filled.sub((at..at + 1,)), *number);
            }
        }
    });
    let Some(found) = outputs("integers_that_are_known", known, &[]) else { return };
    // A number truncated to 23 bits plus a sticky bit, which fits in f32, rounds as before.
    let cut = |number: i64| {
        let below = number.unsigned_abs().ilog2().saturating_sub(22);
        let rest = number.unsigned_abs() & ((1 << below) - 1) != 0;
        let kept = (number.unsigned_abs() >> below << below) + u64::from(rest) * (1 << below >> 1);
        kept as f32 * number.signum() as f32
    };
    for (outputs, dtype) in found.chunks(2).zip([F32, BF16, F64]) {
        let wanted = |number: &i64| match dtype {
            F32 => u64::from((*number as f32).to_bits()),
            F64 => (*number as f64).to_bits(),
            _ => u64::from(half::bf16::from_f32(cut(*number)).to_bits()),
        };
        let wanted: Vec<u64> = numbers.iter().map(wanted).collect();
        assert_eq!((bits(&outputs[0]), bits(&outputs[1])), (wanted.clone(), wanted), "{dtype}");
    }
}

#[test]
fn an_integer_divided_by_zero_is_zero_and_the_least_by_minus_one_wraps() {
    let pairs: Vec<(i64, i64)> = [7, -7, 0, i64::from(i32::MIN), i64::from(i32::MAX), i64::MIN, i64::MAX]
        .into_iter()
        .flat_map(|a| [0, 1, -1, 2, -2, 3].map(|b| (a, b)))
        .collect();
    let n = pairs.len() as i64;
    for dtype in INTEGERS {
        let kernel = kernel("quotients", |k| {
            k.threads(64);
            let (a, b) = (k.input("a", dtype, [n]), k.input("b", dtype, [n]));
            let y = k.output("y", dtype, [n]);
            k.parallel([n], |k, [i]| {
                k.store(y, (&i,), a.at((&i,)) / b.at((&i,)));
            });
        });
        let of = |side: fn(&(i64, i64)) -> i64| pairs.iter().map(|pair| side(pair) as u64).collect::<Vec<u64>>();
        let (left, right) = (of(|pair| pair.0), of(|pair| pair.1));
        let inputs = [tensor(dtype, &left), tensor(dtype, &right)];
        let Some(found) = outputs("an_integer_divided_by_zero", kernel, &inputs) else { return };
        let quotient = |(a, b): (&u64, &u64)| {
            let (a, b) = (integer(dtype, *a), integer(dtype, *b));
            let quotient = if b == 0 { 0 } else { a / b };
            by_rust!(quotient, dtype)
        };
        let wanted: Vec<u64> = left.iter().zip(&right).map(quotient).collect();
        assert_eq!(bits(&found[0]), wanted, "{dtype}");
    }
}

/// NVRTC combines the byte loads into one load of four words. For sm_90a it then used 16 bits of a word for
/// `(signed char)(a + 6)`.
#[test]
fn bytes_of_a_word_keep_their_signs() {
    let quotients = kernel("quotients", |k| {
        let (x, y) = (k.input("x", I8, [7, 4]), k.output("y", I8, [7, 4]));
        let s = k.shared("s", I8, S([7, 4], [1, 7]));
        k.threads(3);
        let everywhere = S([7, 4], [4 * REG, 1 * REG]) + R([3], [1 * TX]);
        let f = k.fragment("f", I8, everywhere);
        k.copy(s, x);
        k.fill(f, 9);
        k.parallel([7, 4], |k, [i, j]| {
            k.store(f, (i, j), (s.at((i, j)) + 6) / f.at((i, j)));
        });
        k.copy(y, f);
    });
    let x: Vec<i8> = (0..28).map(|at| (at * 37 % 256) as u8 as i8).collect();
    let input = HostTensor::from_f64(I8, &[7, 4], |at| x[at as usize].into());
    for target in Target::ALL {
        let artifact = compile(quotients.clone(), &Options::new(*target)).expect("the kernel is right");
        let Some(built) = built_or_skipped(&artifact, "arithmetic: bytes_of_a_word_keep_their_signs") else { return };
        let outputs = run(&artifact, &built, std::slice::from_ref(&input), &Device::Virtual).expect("a run").outputs;
        for (at, x) in (0..).zip(&x) {
            assert_eq!(outputs[0].number(at), Some((x.wrapping_add(6) / 9).into()), "{target:?} {at}");
        }
    }
}

#[test]
fn the_least_integer_is_its_own_absolute_value_and_its_own_negative() {
    for dtype in [I8, I16, I32, I64] {
        let (least, most) = dtype.integers().expect("an integer");
        let values = [least, least + 1, -1, 0, 1, most];
        let n = values.len() as i64;
        let kernel = kernel("signs", |k| {
            k.threads(32);
            let x = k.input("x", dtype, [n]);
            let (absolute, negative) = (k.output("absolute", dtype, [n]), k.output("negative", dtype, [n]));
            k.parallel([n], |k, [i]| {
                k.store(absolute, (&i,), x.at((&i,)).abs());
                k.store(negative, (&i,), -x.at((&i,)));
            });
        });
        let inputs = [tensor(dtype, &values.map(|value| value as u64))];
        let Some(found) = outputs("the_least_integer", kernel, &inputs) else { return };
        let found: Vec<Vec<i128>> =
            found.iter().map(|found| bits(found).iter().map(|bits| integer(dtype, *bits)).collect()).collect();
        assert_eq!(found, [[least, most, 1, 0, 1, most], [least, most, 1, 0, -1, -most]], "{dtype}");
    }
}

#[test]
fn sums_of_signed_integers_wrap_before_they_are_compared() {
    let kernel = kernel("wraps", |k| {
        k.threads(8);
        let x = k.input("x", I32, [8]);
        let (sums, products) = (k.output("sums", I32, [8]), k.output("products", I32, [8]));
        k.parallel([8], |k, [i]| {
            let x = x.at((&i,));
            let sum = x + i64::from(i32::MAX);
            k.store(sums, (&i,), sum.lt(1).select(1, 0));
            k.store(products, (&i,), (x * 65536).lt(x).select(1, 0));
        });
    });
    let numbers = [0, 1, 2, -1, -2, i32::MIN, i32::MAX, 40_000];
    let inputs = [tensor(I32, &numbers.map(|number| u64::from(number as u32)))];
    let Some(found) = outputs("wrapping", kernel, &inputs) else { return };
    let expected = |wrapped: fn(i32) -> bool| numbers.map(|number| u64::from(wrapped(number)));
    assert_eq!(bits(&found[0]), expected(|x| x.wrapping_add(i32::MAX) < 1));
    assert_eq!(bits(&found[1]), expected(|x| x.wrapping_mul(65536) < x));
}

#[test]
fn indices_are_computed_exactly_and_then_converted() {
    let by = |unrolled: bool| {
        kernel("indices", |k| {
            k.threads(32);
            let y = k.output("y", I32, [3, 4]);
            let wide = k.output("wide", I64, [3]);
            let small = k.output("small", U16, [3]);
            let body = |k: &mut KernelBuilder, t: Expr| {
                k.parallel([1], |k, _| {
                    let index = |scale: i64| Value::from(t * scale + 200);
                    k.store(y, (&t, 0), index(1).wrapping_cast(I8).cast(I32));
                    k.store(y, (&t, 1), index(100).max(210).saturating_cast(U8).cast(I32));
                    k.store(y, (&t, 2), index(1 << 33).gt(Value::from(1i64 << 34)).select(1, 0));
                    k.store(y, (&t, 3), (index(1 << 40) / (1i64 << 38)).wrapping_cast(I32));
                    k.store(wide, (&t,), (&t * 1_000_003 * 1_000_033 - 5) / 7);
                    k.store(small, (&t,), (index(1 << 20) / 70_000).wrapping_cast(U16));
                });
            };
            if unrolled { k.unroll("t", 0..3, body) } else { k.serial("t", 0..3, body) }
        })
    };
    let number = |t: i64, scale: i64| t * scale + 200;
    let wanted_y: Vec<i64> = (0..3)
        .flat_map(|t| {
            [
                i64::from(number(t, 1) as i8),
                number(t, 100).clamp(210, 255),
                i64::from(number(t, 1 << 33) > 1 << 34),
                i64::from((number(t, 1 << 40) / (1 << 38)) as i32),
            ]
        })
        .collect();
    for unrolled in [true, false] {
        let Some(found) = outputs("indices_are_computed_exactly", by(unrolled), &[]) else { return };
        let y: Vec<i64> = bits(&found[0]).iter().map(|bits| i64::from(*bits as u32 as i32)).collect();
        assert_eq!(y, wanted_y, "unrolled: {unrolled}");
        let wide: Vec<i64> = bits(&found[1]).iter().map(|bits| *bits as i64).collect();
        let wanted = |t: i64| (t * 1_000_003 * 1_000_033 - 5).div_euclid(7);
        assert_eq!(wide, [0, 1, 2].map(wanted), "unrolled: {unrolled}");
        assert_eq!(bits(&found[2]), [0u64, 1, 2].map(|t| ((t << 20) + 200) / 70_000), "unrolled: {unrolled}");
    }
}

#[test]
fn numbers_of_a_table_may_need_64_bits() {
    let kernel = kernel("squares", |k| {
        k.threads(32);
        let y = k.output("y", I64, [32]);
        k.parallel([32], |k, [i]| {
            k.store(y, (&i,), i * i * 1_000_000_007);
        });
    });
    let Some(found) = outputs("numbers_of_a_table", kernel, &[]) else { return };
    assert_eq!(bits(&found[0]), (0..32u64).map(|i| i * i * 1_000_000_007).collect::<Vec<u64>>());
}

/// `a*b` minus the same product, computed by `second`.
fn remainder(contracts: bool, second: fn(&mut Elements, Value) -> Value) -> Kernel {
    kernel("rest", |k| {
        k.threads(32);
        let (a, b) = (k.input("a", F32, [32]), k.input("b", F32, [32]));
        let y = k.output("y", F32, [32]);
        if !contracts {
            k.no_contraction();
        }
        k.parallel([32], |k, [i]| {
            let product = || a.at((&i,)) * b.at((&i,));
            let taken = second(k, product());
            k.store(y, (&i,), product() - taken);
        });
    })
}

#[test]
fn a_product_and_its_sum_are_one_operation_where_the_kernel_has_them_so() {
    let a: Vec<f32> = (0..32).map(|at| 1.0 + at as f32 * 1e-3).collect();
    let b: Vec<f32> = (0..32).map(|at| 3.0 - at as f32 * 1e-2).collect();
    let single = |values: &[f32]| tensor(F32, &values.iter().map(|v| u64::from(v.to_bits())).collect::<Vec<_>>());
    let inputs = [single(&a), single(&b)];
    let fused: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a.mul_add(*b, -(a * b))).collect();
    assert!(fused.iter().any(|rest| *rest != 0.0));
    let plain = vec![0.0; 32];
    let named: fn(&mut Elements, Value) -> Value = |k, product| k.named("p", product);
    let rounded: fn(&mut Elements, Value) -> Value = |_, product| product.rounded();
    for (contracts, second, wanted) in [(true, named, &fused), (false, named, &plain), (false, rounded, &plain)] {
        let Some(found) = outputs("a_product_and_its_sum", remainder(contracts, second), &inputs) else { return };
        let found: Vec<f32> = bits(&found[0]).iter().map(|bits| f32::from_bits(*bits as u32)).collect();
        assert_eq!(&found, wanted, "contracts: {contracts}");
    }
}

/// PTX without the modifier for the default rounding of multiplications and additions.
fn without_rounding(ptx: &str) -> String {
    let names = ["add", "sub", "mul"].iter().flat_map(|op| ["f32", "f64"].map(|dtype| (op, dtype)));
    names.fold(ptx.to_string(), |text, (op, dtype)| text.replace(&format!("{op}.rn.{dtype}"), &format!("{op}.{dtype}")))
}

/// Sums in PTX that ptxas may fuse with a product: `add.f32` of the result of a `mul.f32`.
fn open_products(ptx: &str) -> Vec<&str> {
    let mut products: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in ptx.lines().map(str::trim) {
        let Some((op, operands)) = line.split_once([' ', '\t']) else { continue };
        let registers: Vec<&str> = operands.trim().trim_end_matches(';').split(',').map(str::trim).collect();
        if matches!(op, "mul.f32" | "mul.f64") {
            products.extend(registers.first());
        }
        let is_sum = matches!(op, "add.f32" | "add.f64" | "sub.f32" | "sub.f64");
        if is_sum && registers[1..].iter().any(|register| products.contains(register)) {
            found.push(line);
        }
    }
    found
}

#[test]
fn open_products_are_found() {
    let ptx = "mul.f32 \t%f1, %f2, %f3;\nadd.f32 \t%f4, %f5, %f1;\nmul.rn.f32 \t%f6, %f2, %f3;\nadd.f32 %f7, %f6, %f2;";
    assert_eq!(open_products(ptx), ["add.f32 \t%f4, %f5, %f1;"]);
}

#[test]
fn the_text_means_the_same_with_and_without_contraction_by_nvrtc() {
    let more = [
        compiled(remainder(true, |k, product| k.named("p", product))),
        compiled(remainder(false, |_, product| product)),
    ];
    for (at, target) in Target::ALL.iter().enumerate() {
        let Ok(nvrtc) = toolchain().nvrtc(target.name()) else {
            return skip("arithmetic: the_text_means_the_same");
        };
        // Each case for one of the targets, whose texts hardly differ.
        let cases = all()
            .into_iter()
            .skip(at)
            .step_by(Target::ALL.len())
            .map(|case| case.compile(*target).expect("the case compiles"));
        let artifacts: Vec<_> = cases.chain(more.clone()).collect();
        spread_over(&artifacts, &|artifact| {
            let ptx = |options: &[String]| {
                let request =
                    Request { source: artifact.cuda(), name: "/tilewright/k.cu", target: target.name(), options };
                nvrtc.compile(&request).expect("it compiles").ptx
            };
            let (fused, separate) = (ptx(&["--fmad=true".to_string()]), ptx(&[]));
            assert_eq!(without_rounding(&fused), without_rounding(&separate), "{}", artifact.cuda());
            assert!(open_products(&fused).is_empty(), "{}: {:?}", artifact.name(), open_products(&fused));
        });
    }
}
