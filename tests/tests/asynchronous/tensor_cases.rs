//! Kernels for clusters, for pairs of CTAs, with scale factors, with images, and with CTAs that take over tiles of others.

use tilewright::vgpu::{Arg, Im2col, MapAccess, MapElement, MapSwizzle, Memory, TensorMap};
use tilewright_tests::rng::Rng;

use super::case::{Case, encoded, floats, number, pointer, rows_map};
use super::cases::{bf16_bytes, bf16_product, small_integers};

pub(crate) fn all() -> Vec<Case> {
    let scaled = [Scaled::Mxf8, Scaled::Mxf4, Scaled::Nvf4].map(scaled_gemm);
    let mut all = vec![cluster_sum(), multicast_gemm(), pair_gemm(), persistent_gemm(), convolution()];
    all.extend(scaled);
    all
}

fn cluster_sum() -> Case {
    let rows = 20;
    let x = |at: usize| (at * 7 % 23) as f32;
    let mut memory = Memory::new();
    let from = memory.allocate("x", floats((0..rows * 128).map(x)));
    let to = memory.allocate_poison("y", 512);
    let sum = |column: usize| (0..rows).map(|row| x(row * 128 + column)).sum();
    let args = vec![pointer(from), pointer(to), number(rows as i32)];
    let results = (to, (0..128).map(sum).collect());
    let (file, entry) = ("cluster_sum.cu", "cluster_sum");
    Case { file, entry, grid: [4, 1, 1], threads: 128, cluster: 4, resident: None, kind: "", memory, args, results }
}

/// Two rows of tiles, which are a cluster, and two columns; eleven steps of k.
fn multicast_gemm() -> Case {
    let mut memory = Memory::new();
    let (args, results) = bf16_product(&mut memory, [256, 128, 704], [128, 32]);
    let (file, entry) = ("multicast_gemm.cu", "multicast_gemm");
    Case { file, entry, grid: [2, 2, 1], threads: 192, cluster: 2, resident: None, kind: "", memory, args, results }
}

/// Twelve tiles; three CTAs run at once, and take over the others.
fn persistent_gemm() -> Case {
    let mut memory = Memory::new();
    let (args, results) = bf16_product(&mut memory, [384, 256, 448], [128, 64]);
    let (file, entry) = ("persistent_gemm.cu", "persistent_gemm");
    Case { file, entry, grid: [12, 1, 1], threads: 224, cluster: 1, resident: Some(3), kind: "", memory, args, results }
}

/// Two tiles of 256 x 128, with eleven steps of k; B is adjacent along n.
fn pair_gemm() -> Case {
    let [m, n, k] = [256, 256, 704];
    let (a, b) = (small_integers(m * k, 7, 11), small_integers(k * n, 5, 13));
    let mut memory = Memory::new();
    let (left, right) = (memory.allocate("a", bf16_bytes(&a)), memory.allocate("b", bf16_bytes(&b)));
    let c = memory.allocate_poison("c", m * n * 4);
    let args = vec![
        rows_map(&memory, left, MapElement::Bf16, [k, m], (2 * k, [64, 128])),
        rows_map(&memory, right, MapElement::Bf16, [n, k], (2 * n, [64, 64])),
        pointer(c),
        number(n as i32),
        number(k as i32),
    ];
    let product = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum::<i32>() as f32;
    let results = (c, (0..m * n).map(product).collect());
    Case {
        file: "pair_gemm.cu",
        entry: "pair_gemm",
        grid: [4, 1, 1],
        threads: 192,
        cluster: 2,
        resident: None,
        kind: "",
        memory,
        args,
        results,
    }
}

/// Three images of 9 x 11 pixels, which are not a whole number of tiles.
fn convolution() -> Case {
    let [images, height, width, channels] = [3, 9, 11, 64];
    let pixels = images * height * width;
    let (x, w) = (small_integers(pixels * channels, 3, 11), small_integers(channels * 9 * channels, 5, 13));
    let mut memory = Memory::new();
    let (from, filters) = (memory.allocate("x", bf16_bytes(&x)), memory.allocate("w", bf16_bytes(&w)));
    let y = memory.allocate_poison("y", pixels * channels * 4);
    let row = 2 * channels as u64;
    let map = TensorMap {
        address: memory.address(from).expect("a buffer"),
        element: MapElement::Bf16,
        fills_nan: false,
        dims: [channels, width, height, images].map(|size| size as u64).to_vec(),
        strides: vec![row, row * width as u64, row * (width * height) as u64],
        access: MapAccess::Im2col(Im2col { lower: vec![-1, -1], upper: vec![-1, -1], channels: 64, pixels: 128 }),
        element_strides: vec![1; 4],
        swizzle: MapSwizzle::B128,
    };
    let args: Vec<Arg> = vec![
        encoded(&map),
        rows_map(&memory, filters, MapElement::Bf16, [9 * channels, channels], (18 * channels, [64, 64])),
        pointer(y),
        number(height as i32),
        number(width as i32),
        number(pixels as i32),
    ];
    let input = |image: usize, row: i64, column: i64, channel: usize| {
        let is_inside = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
        if !is_inside {
            return 0;
        }
        let pixel = (image * height + row as usize) * width + column as usize;
        x[pixel * channels + channel]
    };
    let output = |at: usize| {
        let (pixel, filter) = (at / channels, at % channels);
        let (image, row, column) = (pixel / height / width, pixel / width % height, pixel % width);
        let place = |place: usize| {
            let (row, column) = (row as i64 + place as i64 / 3 - 1, column as i64 + place as i64 % 3 - 1);
            let weight = |channel: usize| w[(filter * 9 + place) * channels + channel];
            (0..channels).map(|channel| input(image, row, column, channel) * weight(channel)).sum::<i32>()
        };
        (0..9).map(place).sum::<i32>() as f32
    };
    let results = (y, (0..pixels * channels).map(output).collect());
    let grid = [pixels.div_ceil(128) as u32, 1, 1];
    Case {
        file: "convolution.cu",
        entry: "convolution",
        grid,
        threads: 192,
        cluster: 1,
        resident: None,
        kind: "",
        memory,
        args,
        results,
    }
}

/// The kinds of elements with scale factors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scaled {
    Mxf8,
    Mxf4,
    Nvf4,
}

impl Scaled {
    fn name(self) -> &'static str {
        match self {
            Scaled::Mxf8 => "kMxf8",
            Scaled::Mxf4 => "kMxf4",
            Scaled::Nvf4 => "kNvf4",
        }
    }

    /// Elements of a block.
    fn block(self) -> usize {
        if self == Scaled::Nvf4 { 16 } else { 32 }
    }

    /// Elements in 128 bytes of a row.
    fn step(self) -> usize {
        if self == Scaled::Mxf8 { 128 } else { 256 }
    }
}

/// A matrix: its values with their factors, and the bytes of both.
struct ScaledMatrix {
    values: Vec<f64>,
    elements: Vec<u8>,
    factors: Vec<u8>,
}

/// Numbers with their encodings.
type Codes<'a> = &'a [(f64, u8)];

fn scaled_matrix(kind: Scaled, lines: usize, k: usize, rng: &mut Rng) -> ScaledMatrix {
    let e4m3 = [(0.0, 0u8), (1.0, 0x38), (2.0, 0x40), (-1.0, 0xb8), (0.5, 0x30), (3.0, 0x44)];
    let e2m1 =
        [(0.0, 0u8), (0.5, 1), (1.0, 2), (1.5, 3), (2.0, 4), (3.0, 5), (4.0, 6), (6.0, 7), (-0.5, 9), (-6.0, 15)];
    let ue8m0 = [(0.5, 126u8), (1.0, 127), (2.0, 128), (4.0, 129)];
    let ue4m3 = [(1.0, 0x38u8), (2.0, 0x40), (0.5, 0x30), (1.5, 0x3c)];
    let (numbers, factors): (Codes<'_>, Codes<'_>) = match kind {
        Scaled::Mxf8 => (&e4m3, &ue8m0),
        Scaled::Mxf4 => (&e2m1, &ue8m0),
        Scaled::Nvf4 => (&e2m1, &ue4m3),
    };
    let pick = |list: Codes<'_>, rng: &mut Rng| *rng.pick(list);
    let blocks = k / kind.block();
    let chosen: Vec<(f64, u8)> = (0..lines * blocks).map(|_| pick(factors, rng)).collect();
    let codes: Vec<(f64, u8)> = (0..lines * k).map(|_| pick(numbers, rng)).collect();
    let values = (0..lines * k).map(|at| codes[at].0 * chosen[at / k * blocks + at % k / kind.block()].0).collect();
    let elements = match kind {
        Scaled::Mxf8 => codes.iter().map(|(_, code)| *code).collect(),
        Scaled::Mxf4 | Scaled::Nvf4 => codes.chunks_exact(2).map(|pair| pair[0].1 | pair[1].1 << 4).collect(),
    };
    // Of 128 lines and four blocks: the bytes of line i are at 16 * (i % 32) + 4 * (i / 32).
    let mut bytes = vec![0; lines * blocks];
    for (line, block) in (0..lines).flat_map(|line| (0..blocks).map(move |block| (line, block))) {
        let chunk = line / 128 * (blocks / 4) + block / 4;
        bytes[chunk * 512 + 16 * (line % 32) + 4 * (line % 128 / 32) + block % 4] = chosen[line * blocks + block].1;
    }
    ScaledMatrix { values, elements, factors: bytes }
}

/// Two tiles of 128 x 128, with eleven steps of k.
fn scaled_gemm(kind: Scaled) -> Case {
    let ([m, n], k) = ([128, 256], 11 * kind.step());
    let mut rng = Rng::new(5, 0);
    let (a, b) = (scaled_matrix(kind, m, k, &mut rng), scaled_matrix(kind, n, k, &mut rng));
    let mut memory = Memory::new();
    let row = a.elements.len() / m;
    let (left, right) = (memory.allocate("a", a.elements), memory.allocate("b", b.elements));
    let (of_left, of_right) = (memory.allocate("sa", a.factors), memory.allocate("sb", b.factors));
    let c = memory.allocate_poison("c", m * n * 4);
    let args = vec![
        rows_map(&memory, left, MapElement::U8, [row, m], (row, [128, 128])),
        rows_map(&memory, right, MapElement::U8, [row, n], (row, [128, 128])),
        pointer(of_left),
        pointer(of_right),
        pointer(c),
        number(n as i32),
        number(11),
    ];
    let product = |at: usize| {
        let (left, right) = (&a.values[at / n * k..][..k], &b.values[at % n * k..][..k]);
        left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>() as f32
    };
    let results = (c, (0..m * n).map(product).collect());
    let (file, entry) = ("scaled_gemm.cu", "scaled_gemm");
    Case {
        file,
        entry,
        grid: [1, 2, 1],
        threads: 192,
        cluster: 1,
        resident: None,
        kind: kind.name(),
        memory,
        args,
        results,
    }
}
