//! Multiplicands in shared memory that `ldmatrix` loads: every dtype and order, odd numbers of atoms, several warps,
//! padded and swizzled tiles. Results are exact, and equal those of a product in plain Rust.

use tilewright::compile::{Artifact, Options, compile};
use tilewright::prelude::*;
use tilewright::runtime::{Device, op_traffic, run};
use tilewright_tests::pages::{computes, tensor};
use tilewright_tests::toolchain::built_or_skipped;

/// A product whose operands go through shared memory. `layout` is that of a tile of two dimensions.
#[derive(Clone, Copy)]
struct Product {
    /// M, N and K.
    shape: [i64; 3],
    /// Of the multiplicands and of the sum.
    dtypes: [DType; 2],
    threads: i64,
    /// Whether A, and whether B, is stored transposed.
    turned: [bool; 2],
    layout: fn([i64; 2], DType) -> Layout,
}

/// Rows one after the other, each followed by 16 bytes.
fn padded([rows, columns]: [i64; 2], dtype: DType) -> Layout {
    format!("S[({rows},{columns}):({},1)]", columns + 16 / dtype.bytes()).parse().expect("a layout")
}

/// Rows one after the other.
fn dense([rows, columns]: [i64; 2], _: DType) -> Layout {
    format!("S[({rows},{columns}):({columns},1)]").parse().expect("a layout")
}

/// Dense rows, swizzled in units of 16 bytes.
fn swizzled([rows, columns]: [i64; 2], dtype: DType) -> Layout {
    let unit = (16 / dtype.bytes()).ilog2();
    format!("swizzle(M={unit},B=2,S=3) o S[({rows},{columns}):({columns},1)]").parse().expect("a layout")
}

/// Rows followed by one element each: no row of 16 bytes is aligned.
fn odd([rows, columns]: [i64; 2], _: DType) -> Layout {
    format!("S[({rows},{columns}):({},1)]", columns + 1).parse().expect("a layout")
}

/// Columns one after the other, each followed by 16 bytes.
fn by_columns([rows, columns]: [i64; 2], dtype: DType) -> Layout {
    format!("S[({rows},{columns}):(1,{})]", rows + 16 / dtype.bytes()).parse().expect("a layout")
}

impl Product {
    fn kernel(&self, variant: Option<&str>) -> Kernel {
        let ([m, n, k_size], [of, of_sum], [a_turned, b_turned]) = (self.shape, self.dtypes, self.turned);
        let a_shape = if a_turned { [k_size, m] } else { [m, k_size] };
        let b_shape = if b_turned { [n, k_size] } else { [k_size, n] };
        kernel("product", |k| {
            let (a, b) = (k.input("a", of, a_shape), k.input("b", of, b_shape));
            let c = k.output("c", of_sum, [m, n]);
            k.threads(self.threads);
            let left = k.shared("left", of, (a_shape, (self.layout)(a_shape, of)));
            let right = k.shared("right", of, (b_shape, (self.layout)(b_shape, of)));
            let sums = k.fragment("sums", of_sum, [m, n]);
            k.copy(left, a);
            k.copy(right, b);
            let product = k.gemm(sums, left, right).with(Gemm {
                transpose_a: a_turned,
                transpose_b: b_turned,
                policy: WarpPolicy::Square,
                clear: true,
                tf32: of == F32,
                ..Gemm::PLAIN
            });
            variant.into_iter().for_each(|name| {
                product.variant(name);
            });
            k.copy(c, sums);
        })
    }

    /// The variant that is chosen; it computes what plain Rust does.
    fn chosen(&self) -> String {
        self.computes_by(None);
        variant_of_gemm(&compiled(&self.kernel(None)))
    }

    /// The kernel with this variant computes what plain Rust does.
    fn computes_by(&self, variant: Option<&str>) {
        let ([m, n, k], [of, of_sum], [a_turned, b_turned]) = (self.shape, self.dtypes, self.turned);
        let left = |row: i64, depth: i64| (row * 5 + depth * 3) % 13 - if of == U8 { 0 } else { 6 };
        let right = |depth: i64, column: i64| (depth * 7 + column * 2) % 11 - if of == U8 { 0 } else { 5 };
        let sum = |at: i64| (0..k).map(|depth| left(at / n, depth) * right(depth, at % n)).sum::<i64>();
        let a = |at: i64| if a_turned { left(at % m, at / m) } else { left(at / k, at % k) };
        let b = |at: i64| if b_turned { right(at % k, at / k) } else { right(at / n, at % n) };
        let a_shape = if a_turned { [k, m] } else { [m, k] };
        let b_shape = if b_turned { [n, k] } else { [k, n] };
        let inputs = [tensor(of, &a_shape, |at| a(at) as f64), tensor(of, &b_shape, |at| b(at) as f64)];
        computes(&self.kernel(variant), &inputs, &[tensor(of_sum, &[m, n], |at| sum(at) as f64)]);
    }
}

fn compiled(kernel: &Kernel) -> Artifact {
    compile(kernel.clone(), &Options::new(Target::Sm100a)).expect("the kernel is right")
}

fn variant_of_gemm(artifact: &Artifact) -> String {
    let plan = artifact.plans().iter().find(|plan| plan.title.starts_with("gemm")).expect("the plan of the product");
    plan.chosen.to_string()
}

const PLAIN: Product =
    Product { shape: [32, 16, 32], dtypes: [F16, F32], threads: 32, turned: [false, false], layout: padded };

const TURNED: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

#[test]
fn halves_in_both_orders() {
    for turned in TURNED {
        for dtypes in [[F16, F32], [BF16, F32], [F16, F16]] {
            assert_eq!(Product { dtypes, turned, ..PLAIN }.chosen(), "ldmatrix", "{dtypes:?} {turned:?}");
        }
    }
}

#[test]
fn odd_numbers_of_atoms_take_smaller_loads() {
    for turned in TURNED {
        for (shape, threads) in [([16, 8, 16], 32), ([48, 24, 48], 32), ([16, 8, 8], 32), ([48, 40, 24], 96)] {
            Product { shape, threads, turned, ..PLAIN }.computes_by(Some("ldmatrix"));
        }
    }
}

#[test]
fn several_warps_each_load_their_part() {
    for turned in TURNED {
        assert_eq!(Product { shape: [64, 64, 32], threads: 256, turned, ..PLAIN }.chosen(), "ldmatrix", "{turned:?}");
    }
}

#[test]
fn swizzled_tiles_are_loaded_at_swizzled_addresses() {
    for turned in TURNED {
        let product = Product { shape: [64, 64, 64], threads: 128, turned, layout: swizzled, ..PLAIN };
        assert_eq!(product.chosen(), "ldmatrix", "{turned:?}");
    }
}

#[test]
fn other_widths_are_loaded_where_lines_along_k_are_contiguous() {
    for dtypes in [[I8, I32], [U8, I32], [F32, F32]] {
        for shape in [[32, 16, 64], [48, 24, 48]] {
            let product = Product { dtypes, shape, turned: [false, true], ..PLAIN };
            assert_eq!(product.chosen(), "ldmatrix", "{dtypes:?} {shape:?}");
        }
        let half = Product { dtypes, shape: [32, 16, 64], turned: [false, false], ..PLAIN };
        assert_eq!(half.chosen(), "ldmatrix", "only `a`: {dtypes:?}");
    }
}

/// Whether `ldmatrix` loads from both tiles.
fn loads_both(product: &Product) -> bool {
    let artifact = compiled(&product.kernel(None));
    let is_from = |line: &str, tile: &str| line.contains("ldmatrix") && line.contains(&format!(", {tile}, "));
    ["left", "right"].iter().all(|tile| artifact.cuda().lines().any(|line| is_from(line, tile)))
}

#[test]
fn contiguous_columns_are_loaded_as_contiguous_rows_are() {
    for turned in TURNED {
        let product = Product { shape: [64, 32, 48], threads: 64, turned, layout: by_columns, ..PLAIN };
        assert_eq!(product.chosen(), "ldmatrix", "{turned:?}");
        assert!(loads_both(&product), "{turned:?}");
    }
    for dtypes in [[I8, I32], [F32, F32]] {
        let product = Product { dtypes, shape: [32, 16, 64], turned: [true, false], layout: by_columns, ..PLAIN };
        assert_eq!(product.chosen(), "ldmatrix", "{dtypes:?}");
    }
}

#[test]
fn the_reasons_against_it_are_given() {
    let cases = [
        (Product { layout: odd, ..PLAIN }, "rows of 16 bytes of `left` are not contiguous and aligned"),
        (
            Product { dtypes: [F32, F32], turned: [true, false], ..PLAIN },
            "`ldmatrix` does not transpose elements of f32",
        ),
        (Product { dtypes: [F64, F64], ..PLAIN }, "`ldmatrix` does not load elements of f64"),
    ];
    for (product, reason) in cases {
        let text = compiled(&product.kernel(None)).stage(tilewright::compile::Stage::Plan);
        assert!(text.contains("ldmatrix: not possible") && text.contains(reason), "{reason}\n{text}");
    }
    assert_eq!(Product { layout: dense, ..PLAIN }.chosen(), "ldmatrix");
    assert_eq!(Product { layout: odd, ..PLAIN }.chosen(), "mma");
    PLAIN.computes_by(Some("mma"));
}

/// A step is a constant in its addresses; templates in one another are limited to 200.
#[test]
fn hundreds_of_steps() {
    let product = Product { shape: [16, 8, 3520], ..PLAIN };
    product.computes_by(Some("ldmatrix"));
}

/// The instruction is in a function that is inlined: its accesses count at the line of the call, so at the op.
#[test]
fn its_wavefronts_are_counted_at_the_product() {
    let artifact = compiled(&PLAIN.kernel(None));
    let Some(built) = built_or_skipped(&artifact, "wavefronts of ldmatrix") else { return };
    let inputs = [tensor(F16, &[32, 32], |_| 1.0), tensor(F16, &[32, 16], |_| 1.0)];
    let run = run(&artifact, &built, &inputs, &Device::Virtual).unwrap_or_else(|failure| panic!("{failure}"));
    let traffic = op_traffic(&artifact, &run.report.expect("counters")).expect("the traffic of every op");
    let product = traffic.iter().find(|of| of.title.starts_with("gemm")).expect("that of the product");
    assert_eq!((product.predicted, product.counted), (24, 24));
}

/// What the steps of a product add to an address is part of the instruction.
#[test]
fn offsets_are_constants() {
    let product = Product { shape: [128, 16, 64], ..PLAIN };
    let text = compiled(&product.kernel(None)).cuda().to_string();
    for line in [
        "  unroll<4>([&](auto constant) {",
        "    constexpr int k = constant;",
        "      ldmatrix_x4<j*2304 + k*32>(a_part + j*8, left, (lane & 15)*144 + (lane >> 4)*16);",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    product.computes_by(Some("ldmatrix"));
}

#[test]
fn tiles_may_have_the_names_of_what_loops_over_constants_need() {
    let product = kernel("unroll", |k| {
        let (a, b) = (k.input("Constant", F16, [32, 32]), k.input("ldmatrix_x4", F16, [32, 16]));
        let c = k.output("c", F32, [32, 16]);
        k.threads(32);
        let (left, right) = (k.shared("constant", F16, [32, 32]), k.shared("unroll", F16, [32, 16]));
        let sums = k.fragment("sums", F32, [32, 16]);
        k.copy(left, a);
        k.copy(right, b);
        k.fill(sums, 0.0);
        k.gemm(sums, left, right);
        k.copy(c, sums);
    });
    assert_eq!(compiled(&product).entry(), "unroll_");
    let inputs = [tensor(F16, &[32, 32], |at| (at % 3) as f64), tensor(F16, &[32, 16], |_| 1.0)];
    let sum = |at: i64| (0..32).map(|k| (at / 16 * 32 + k) % 3).sum::<i64>();
    computes(&product, &inputs, &[tensor(F32, &[32, 16], |at| sum(at) as f64)]);
}

/// The digits of a dense row are written one by one; the index of a row is a multiple of it all the same.
#[test]
fn dense_rows_may_be_written_in_digits() {
    let digits = kernel("digits", |k| {
        let (x, z) = (k.input("x", F16, [48, 96]), k.input("z", F16, [48, 8]));
        let out = k.output("out", F32, [96, 8]);
        k.threads(32);
        let layout: Layout = "S[(48,16,2,3):(96,6,3,1)]".parse().expect("a layout");
        let left = k.shared("left", F16, ([48, 96], layout));
        let sums = k.fragment("sums", F32, [96, 8]);
        k.copy(left, x);
        let right = k.shared("right", F16, [48, 8]);
        k.copy(right, z);
        k.gemm(sums, left, right).with(Gemm { transpose_a: true, clear: true, ..Gemm::PLAIN });
        k.copy(out, sums);
    });
    let number = |at: i64| (at % 5 - 2) as f64;
    let product = |at: i64| (0..48).map(|k| number(k * 96 + at / 8) * number(k * 8 + at % 8)).sum();
    let inputs = [tensor(F16, &[48, 96], number), tensor(F16, &[48, 8], number)];
    computes(&digits, &inputs, &[tensor(F32, &[96, 8], product)]);
}
