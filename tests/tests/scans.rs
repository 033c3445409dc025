//! `scan` in many layouts, compared with a sequential one.

use tilewright::compile::{Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{HostTensor, Tolerance};
use tilewright_tests::pages::{check, computes, tensor};

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
    has_carry: bool,
    threads: i64,
}

const PLAIN: Case = Case {
    kind: Sum,
    dtype: I32,
    shape: [8, 64],
    dimension: 1,
    is_exclusive: false,
    is_reverse: false,
    has_carry: false,
    threads: 64,
};

impl Case {
    fn kernel(&self, variant: Option<&str>) -> Kernel {
        let Case { kind, dtype, shape, dimension, is_exclusive, is_reverse, has_carry, threads } = *self;
        let lines = shape[1 - dimension];
        kernel("scan", |k| {
            let (x, y) = (k.input("x", dtype, shape), k.output("y", dtype, shape));
            let carries = has_carry.then(|| (k.input("from", dtype, [lines]), k.output("to", dtype, [lines])));
            k.threads(threads);
            let (v, sums) = (k.fragment("v", dtype, shape), k.fragment("sums", dtype, shape));
            k.copy(v, x);
            let carry = carries.map(|(from, _)| {
                let carry = k.fragment("carry", dtype, [lines]);
                k.copy(carry, from);
                carry
            });
            let mut scan = k.scan(kind, sums, v, dimension).variant_opt(variant);
            if is_exclusive {
                scan = scan.exclusive();
            }
            if is_reverse {
                scan = scan.reverse();
            }
            if let Some(carry) = carry {
                scan.carry(carry);
            }
            if let (Some(carry), Some((_, to))) = (carry, carries) {
                k.copy(to, carry);
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

    /// What a line goes on from.
    fn carry(&self, line: i64) -> i64 {
        self.number(line * 5 + 3)
    }

    /// The results, and what the carries are afterwards.
    fn expected(&self) -> [Vec<i64>; 2] {
        let [rows, cols] = self.shape;
        let mut results = vec![0; (rows * cols) as usize];
        let (lines, extent) = if self.dimension == 1 { (rows, cols) } else { (cols, rows) };
        let mut last = Vec::new();
        for line in 0..lines {
            let (mut sum, mut is_empty) = (self.start(), true);
            if self.has_carry {
                (sum, is_empty) = (self.carry(line), false);
            }
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
            last.push(sum);
        }
        [results, last]
    }

    fn tensor(&self, shape: &[i64], number: impl Fn(i64) -> i64) -> HostTensor {
        HostTensor::from_fn(self.dtype, shape, |at| self.element(number(at)))
    }

    fn check(&self, variant: Option<&str>) {
        let lines = [self.shape[1 - self.dimension]];
        let [results, last] = self.expected();
        let mut inputs = vec![self.tensor(&self.shape, |at| self.number(at))];
        let mut expected = vec![self.tensor(&self.shape, |at| results[at as usize])];
        if self.has_carry {
            inputs.push(self.tensor(&lines, |line| self.carry(line)));
            expected.push(self.tensor(&lines, |line| last[line as usize]));
        }
        computes(&self.kernel(variant), &inputs, &expected);
    }
}

#[test]
fn every_kind_forwards_and_backwards() {
    for kind in ReduceKind::ALL.iter().copied() {
        for (is_exclusive, is_reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            for variant in VARIANTS {
                for has_carry in [false, true] {
                    Case { kind, is_exclusive, is_reverse, has_carry, ..PLAIN }.check(variant);
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
                for variant in VARIANTS.into_iter().filter(|variant| *variant != Some("across_warps")) {
                    let (is_exclusive, is_reverse) = (at % 2 == 1, threads % 64 == 0);
                    let has_carry = at % 3 != 0;
                    Case { shape, dimension, threads, is_exclusive, is_reverse, has_carry, ..PLAIN }.check(variant);
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
                let case = Case { dtype, kind, is_exclusive, has_carry: is_exclusive, shape: [4, 40], ..PLAIN };
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
        for (is_reverse, has_carry) in [(false, false), (true, false), (false, true), (true, true)] {
            let kernel = kernel("placed", |k| {
                let (x, y) = (k.input("x", I32, [64]), k.output("y", I32, [64]));
                let all = k.output("all", I32, [1]);
                k.threads(threads);
                let carry = k.fragment("carry", I32, [1]);
                k.fill(carry, 5);
                let held = k.fragment("held", I32, layout.clone());
                let v = k.view("v", held, [64]);
                k.parallel([64], |k, [i]| k.store(v, (i,), x.at((i,))));
                let scan = k.scan(Sum, v, v, 0);
                let scan = if is_reverse { scan.reverse() } else { scan };
                if has_carry {
                    scan.carry(carry);
                }
                k.parallel([64], |k, [i]| k.store(y, (i,), v.at((i,))));
                k.copy(all, carry);
            });
            let number = |i: i64| i * i % 19;
            let sum = |i: i64| if is_reverse { (i..64).map(number).sum::<i64>() } else { (0..=i).map(number).sum() };
            let before = if has_carry { 5 } else { 0 };
            let last = 5 + if has_carry { (0..64).map(number).sum() } else { 0 };
            let sums = tensor(I32, &[64], |i| (before + sum(i)) as f64);
            let x = tensor(I32, &[64], |i| number(i) as f64);
            computes(&kernel, &[x], &[sums, tensor(I32, &[1], |_| last as f64)]);
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

/// Tiles of rows that are longer, and whose number is known at launch: what hangs over an edge changes no carry.
#[test]
fn a_carry_goes_from_tile_to_tile_of_ragged_rows() {
    for (kind, dtype) in [(Sum, F32), (Max, F32), (Product, I32), (Min, I32)] {
        for (is_reverse, is_exclusive) in [(false, false), (true, false), (false, true), (true, true)] {
            let running = kernel("running", |k| {
                let (rows, cols) = (k.size("rows"), k.size("cols"));
                let (x, y) = (k.input("x", dtype, (rows, cols)), k.output("y", dtype, (rows, cols)));
                let last = k.output("last", dtype, (rows,));
                let [first] = k.grid([rows.ceil_div(8)]);
                k.threads(64);
                let (v, carry) = (k.fragment("v", dtype, [8, 32]), k.fragment("carry", dtype, [8]));
                k.fill(carry, 3);
                let tiles = cols.ceil_div(32);
                k.serial("t", ..tiles, |k, t| {
                    let tile = if is_reverse { tiles - 1 - t } else { t };
                    let part = (at(first * 8, 8), at(tile * 32, 32));
                    k.copy(v, x.sub(part));
                    let scan = k.scan(kind, v, v, 1).carry(carry);
                    let scan = if is_reverse { scan.reverse() } else { scan };
                    if is_exclusive {
                        scan.exclusive();
                    }
                    k.copy(y.sub(part), v);
                });
                k.copy(last.sub((at(first * 8, 8),)), carry);
            });
            for (rows, cols) in [(1, 1), (9, 31), (8, 32), (13, 77), (3, 200)] {
                let number = |at: i64| if kind == Product { 1 - at % 3 } else { at * 37 % 23 - 30 };
                let mut results = vec![0.0; (rows * cols) as usize];
                let mut lasts = Vec::new();
                for row in 0..rows {
                    let mut so_far = 3i64;
                    for step in 0..cols {
                        let at = row * cols + if is_reverse { cols - 1 - step } else { step };
                        let next = match kind {
                            Sum => so_far + number(at),
                            Max => so_far.max(number(at)),
                            Min => so_far.min(number(at)),
                            _ => so_far * number(at),
                        };
                        results[at as usize] = if is_exclusive { so_far } else { next } as f64;
                        so_far = next;
                    }
                    lasts.push(so_far as f64);
                }
                let inputs = [tensor(dtype, &[rows, cols], |at| number(at) as f64)];
                let all = tensor(dtype, &[rows, cols], |at| results[at as usize]);
                let last = tensor(dtype, &[rows], |row| lasts[row as usize]);
                check(&running, &[("rows", rows), ("cols", cols)], &inputs, &[all, last], Tolerance::EXACT);
            }
        }
    }
}

/// Rows that hang over the edge in one iteration are those of others in the next: they change neither carries nor results of
/// reductions that go on over the loop.
#[test]
fn rows_beyond_an_edge_change_nothing_that_other_tiles_have_left() {
    let collected = kernel("collected", |k| {
        let (m, n) = (k.size("m"), k.size("n"));
        let x = k.input("x", F32, (m, n));
        let outs = ["carries", "most", "sums"].map(|name| k.output(name, F32, [8]));
        let greatest = k.output("greatest", F32, [3]);
        k.threads(64);
        let v = k.fragment("v", F32, [8, 32]);
        let all = ["carry", "max", "sum"].map(|name| k.fragment(name, F32, [8]));
        let top = k.fragment("top", F32, [1]);
        for one in all {
            k.fill(one, -100.0);
        }
        k.serial("r", ..m.ceil_div(8), |k, r| {
            k.serial("t", ..n.ceil_div(32), |k, t| {
                k.copy(v, x.sub((at(r * 8, 8), at(t * 32, 32))));
                k.reduce(Max, all[1], v, 1).accumulate();
                k.reduce(Sum, all[2], v, 1).accumulate();
                k.scan(Max, v, v, 1).carry(all[0]);
            });
        });
        for (at, (one, out)) in all.into_iter().zip(outs).enumerate() {
            k.copy(out, one);
            k.reduce(Max, top, one, 0);
            k.copy(greatest.sub((at as i64,)), top);
        }
    });
    let number = |at: i64| (-3 - at * 7 % 40) as f64;
    for (m, n) in [(13, 20), (16, 70), (9, 33)] {
        let of_row =
            |first: i64| (first..m).step_by(8).flat_map(move |row| (0..n).map(move |col| number(row * n + col)));
        let most = tensor(F32, &[8], |row| of_row(row).fold(-100.0, f64::max));
        let sums = |row: i64| -100.0 + of_row(row).sum::<f64>();
        let all_rows = (0..8).map(|row| of_row(row).fold(-100.0, f64::max)).fold(f64::NEG_INFINITY, f64::max);
        let greatest_sum = (0..8).map(sums).fold(f64::NEG_INFINITY, f64::max);
        let greatest = tensor(F32, &[3], |at| if at == 2 { greatest_sum } else { all_rows });
        let expected = [most.clone(), most, tensor(F32, &[8], sums), greatest];
        check(&collected, &[("m", m), ("n", n)], &[tensor(F32, &[m, n], number)], &expected, Tolerance::EXACT);
    }
}

/// Sums of f16 go on in f32: beyond 2048, a carry of f16 would lose every 1.
#[test]
fn a_carry_of_half_precision_may_be_wider() {
    let ones = kernel("ones", |k| {
        let (x, y) = (k.input("x", F16, [64, 64]), k.output("y", F32, [1]));
        k.threads(32);
        let (v, carry) = (k.fragment("v", F16, [64]), k.fragment("carry", F32, [1]));
        k.fill(carry, 0.0);
        k.serial("t", 0..64, |k, t| {
            k.copy(v, x.sub((t, ..)));
            k.scan(Sum, v, v, 0).carry(carry);
        });
        k.copy(y, carry);
    });
    computes(&ones, &[tensor(F16, &[64, 64], |_| 1.0)], &[tensor(F32, &[1], |_| 4096.0)]);
}
