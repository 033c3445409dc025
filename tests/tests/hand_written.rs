//! The virtual GPU on PTX that our code generator does not control: a hand-written CUDA file, at every level of NVRTC. It is
//! compiled without optimization too, so it is a process of its own, as `unoptimized` is.

use tilewright::prelude::*;
use tilewright::vgpu::{self, Arg, Launch, Memory, Module, Options};
use tilewright_tests::levels::{OPTIMIZED, UNOPTIMIZED, nvrtc, ptx_of};
use tilewright_tests::toolchain::package;

/// The expected results of `mix.cu`, computed in Rust.
struct Mixed {
    sums: Vec<i32>,
    votes: Vec<u32>,
    roots: Vec<f64>,
    lanes: Vec<f32>,
    counts: Vec<i32>,
}

const TABLE: [i32; 4] = [3, -1, 40, 7];

fn mixed(bytes: &[u8], threads: usize) -> Mixed {
    let n = bytes.len();
    let value = |i: usize| if i < n { i32::from(bytes[i]) } else { 0 };
    let mut out =
        Mixed { sums: Vec::new(), votes: Vec::new(), roots: Vec::new(), lanes: Vec::new(), counts: vec![0; 17] };
    for i in 0..n {
        let (v, warp, lane) = (value(i), i / 32 * 32, i % threads);
        let neighbour = |j: usize| value(j / threads * threads + ((j % threads) ^ 1));
        let sum: i32 = (warp..warp + 32).map(value).sum();
        let vote = (0..32).fold(0u32, |vote, l| vote | (u32::from(value(warp + l) > neighbour(warp + l)) << l));
        let (mut steps, mut x) = (0, v + 1);
        while x != 1 && steps < 200 {
            x = if x & 1 == 1 { 3 * x + 1 } else { x / 2 };
            steps += 1;
        }
        let mut local = [0.0f32; 8];
        for k in 0..8 {
            local[((k * 3 + v) & 7) as usize] = k as f32 * 0.5;
        }
        out.sums.push(sum + TABLE[(v & 3) as usize] * neighbour(i) - v / 7 + v % 7);
        out.votes.push(vote ^ vote.count_ones() ^ vote.reverse_bits() ^ (v as u32).leading_zeros());
        out.roots.push(f64::from(v).sqrt() + f64::from(steps) / 3.0);
        out.lanes.push(local[lane & 7] + v as f32 / 3.0 + (v as f32).mul_add(0.25, -1.0));
        out.counts[(v & 15) as usize] += 1;
        out.counts[16] = out.counts[16].max(steps);
    }
    out
}

fn le<T, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks(N).map(|chunk| read(chunk.try_into().expect("whole elements"))).collect()
}

#[test]
fn a_hand_written_file_computes_what_plain_rust_does() {
    let source = std::fs::read_to_string(package().join("fixtures/cuda/mix.cu")).expect("the file");
    let (n, threads) = (150usize, 64usize);
    let bytes: Vec<u8> = (0..n).map(|i| (i * 37 + i * i / 5) as u8).collect();
    let expected = mixed(&bytes, threads);
    for target in Target::ALL {
        let Some(nvrtc) = nvrtc("a_hand_written_file_computes_what_plain_rust_does", *target) else { return };
        for level in OPTIMIZED.into_iter().chain(UNOPTIMIZED) {
            let ptx = ptx_of(&nvrtc, &source, *target, level);
            let module = Module::parse(&ptx).unwrap_or_else(|e| panic!("{level:?}: {e}"));
            let mut memory = Memory::new();
            let input = memory.allocate("bytes", bytes.clone());
            let outputs = [("sums", 4 * n), ("votes", 4 * n), ("roots", 8 * n), ("lanes", 4 * n)]
                .map(|(name, len)| memory.allocate_poison(name, len));
            let counts = memory.allocate("counts", vec![0; 17 * 4]);
            let pointers = [input].into_iter().chain(outputs).chain([counts]);
            let mut args: Vec<Arg> = pointers.map(|buffer| Arg::Buffer { buffer, byte_offset: 0 }).collect();
            args.push(Arg::Bytes((n as i32).to_le_bytes().to_vec()));
            let launch = Launch {
                kernel: "mix".to_string(),
                grid: [n.div_ceil(threads) as u32, 1, 1],
                block: [threads as u32, 1, 1],
                cluster: [1; 3],
                overlaps_previous: false,
                dynamic_shared_bytes: threads as u32 * 4,
                args,
            };
            vgpu::run(&module, &launch, &mut memory, &Options::default())
                .unwrap_or_else(|e| panic!("{target} {level:?}: {e}"));
            let [sums, votes, roots, lanes] = outputs;
            assert_eq!(le(&memory.bytes(sums), i32::from_le_bytes), expected.sums, "{target} {level:?}");
            assert_eq!(le(&memory.bytes(votes), u32::from_le_bytes), expected.votes, "{target} {level:?}");
            assert_eq!(le(&memory.bytes(roots), f64::from_le_bytes), expected.roots, "{target} {level:?}");
            assert_eq!(le(&memory.bytes(counts), i32::from_le_bytes), expected.counts, "{target} {level:?}");
            let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(
                le(&memory.bytes(lanes), f32::from_le_bytes).iter().zip(&expected.lanes).all(close),
                "{target} {level:?}"
            );
        }
    }
}
