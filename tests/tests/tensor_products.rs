//! Products of `tcgen05.mma` on the virtual GPU: operands are stored as the layout crate places them, described by the
//! descriptors that it derives, and the results are read from where it says that they are. Two readings of the PTX ISA
//! have to agree.

use tilewright::layout::descriptor::{InstructionShape, InstructionTypes, Major, dense, tcgen05_descriptor};
use tilewright::layout::hardware::{
    CtaGroup, MmaType, SwizzleMode, TmemMma, TmemOperand, mma_shared_layout, tmem_mma_operand_layout,
};
use tilewright::layout::{Layout, axis};
use tilewright::vgpu::{Arg, Launch, Memory, Module, Options, run};
use tilewright_tests::rng::Rng;

/// Numbers that a type has, and their bits.
fn numbers(element: MmaType) -> Vec<(f64, u32)> {
    match element {
        MmaType::F16 => {
            [-2.0, -1.0, 0.0, 0.5, 1.0, 3.0].map(|x| (x, u32::from(half::f16::from_f64(x).to_bits()))).to_vec()
        }
        MmaType::Bf16 => {
            [-2.0, -1.0, 0.0, 0.5, 1.0, 3.0].map(|x| (x, u32::from(half::bf16::from_f64(x).to_bits()))).to_vec()
        }
        MmaType::Tf32 => [-2.0, -1.0, 0.0, 0.5, 1.0, 3.0].map(|x: f64| (x, (x as f32).to_bits())).to_vec(),
        MmaType::E4m3 => vec![(0.0, 0), (1.0, 0x38), (2.0, 0x40), (-1.0, 0xb8), (0.5, 0x30), (3.0, 0x44)],
        MmaType::E5m2 => vec![(0.0, 0), (1.0, 0x3c), (2.0, 0x40), (-1.0, 0xbc), (0.5, 0x38), (3.0, 0x42)],
        MmaType::S8 => (-4i32..5).map(|x| (f64::from(x), x as u32 & 0xff)).collect(),
        MmaType::U8 => (0u32..9).map(|x| (f64::from(x), x)).collect(),
        other => panic!("{other} is not tested"),
    }
}

/// A multiplicand: `lines` x `k` numbers, their bytes in shared memory, and the descriptor of each K-step.
struct Multiplicand {
    values: Vec<f64>,
    bytes: Vec<u8>,
    steps: Vec<u64>,
}

/// A tile whose elements are adjacent along its lines.
fn mn_major(bits: i64, mode: SwizzleMode, lines: i64, k: i64) -> Layout {
    let row = mode.bytes() * 8 / bits;
    let text = match mode {
        SwizzleMode::None => {
            let (blocks, groups, next) = (lines / row, k / 8, row * 8);
            return format!("S[({blocks},{row},{groups},8):({next},1,{},{row})]", blocks * next).parse().unwrap();
        }
        mode => format!("{} o S[({},{row},{k}):({},1,{row})]", mode.swizzle(bits).unwrap(), lines / row, row * k),
    };
    text.parse().unwrap()
}

fn multiplicand(rng: &mut Rng, element: MmaType, major: Major, mode: SwizzleMode, lines: i64, k: i64) -> Multiplicand {
    let bits = element.bits();
    let layout = match major {
        Major::K => mma_shared_layout(bits, mode, &[lines, k]).unwrap(),
        Major::MN => mn_major(bits, mode, lines, k),
    };
    let operand = tcgen05_descriptor(&layout, [lines, k], bits, major).unwrap();
    let choices = numbers(element);
    let mut values = Vec::new();
    let mut bytes = vec![0u8; (lines * k * bits / 8) as usize];
    for flat in 0..lines * k {
        let (value, code) = choices[rng.below(choices.len())];
        values.push(value);
        let (at, size) = ((layout.memory_position(flat) * bits / 8) as usize, (bits / 8) as usize);
        bytes[at..at + size].copy_from_slice(&code.to_le_bytes()[..size]);
    }
    let word = operand.descriptor.encode();
    let steps = operand.advance.iter().map(|advance| word + (*advance as u64 >> 4)).collect();
    Multiplicand { values, bytes, steps }
}

/// A product of `tcgen05.mma`.
struct Product<'a> {
    kind: &'a str,
    descriptor: u32,
    a: &'a Multiplicand,
    b: &'a Multiplicand,
    /// Columns of tensor memory that D takes.
    columns: i64,
    ws: bool,
}

impl Product<'_> {
    /// The words of tensor memory afterwards, lane by lane; the operands are at the start of shared memory, B after A.
    fn execute(&self, seed: u64) -> Vec<u32> {
        let (a_bytes, b_bytes) = (self.a.bytes.len(), self.b.bytes.len());
        let b_start = a_bytes.next_multiple_of(1024);
        let copy = |name: &str, start: usize, bytes: usize| {
            format!(
                "mov.u32 %r2, %r1;\n{name}:\nsetp.ge.u32 %p2, %r2, {};\n@%p2 bra {name}_END;\nmul.wide.u32 %rd4, %r2, 16;\n\
                 add.u64 %rd5, %rd4, %rd_{name};\nld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd5];\nshl.b32 %r3, %r2, 4;\n\
                 add.u32 %r3, %r3, %r20;\nst.shared.v4.u32 [%r3+{start}], {{%r4, %r5, %r6, %r7}};\nadd.u32 %r2, %r2, 128;\n\
                 bra {name};\n{name}_END:\n",
                bytes / 16
            )
        };
        let suffix = if self.ws { ".ws" } else { "" };
        let base = |steps: &[u64], start: usize, at: usize| steps[at] + (start as u64 >> 4);
        let mmas: String = (0..self.a.steps.len())
            .map(|at| {
                let (a, b) = (base(&self.a.steps, 0, at), base(&self.b.steps, b_start, at));
                format!(
                    "add.u64 %rd6, %rd8, {a};\nadd.u64 %rd7, %rd8, {b};\n\
                     tcgen05.mma{suffix}.cta_group::1.kind::{} [%r21], %rd6, %rd7, {}, {};\n",
                    self.kind,
                    self.descriptor,
                    i32::from(at > 0)
                )
            })
            .collect();
        let reads: String = (0..self.columns)
            .step_by(8)
            .map(|column| {
                format!(
                    "tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}}, [%r23+{column}];\n\
                     tcgen05.wait::ld.sync.aligned;\nst.global.v4.u32 [%rd9+{}], {{%r4, %r5, %r6, %r7}};\n\
                     st.global.v4.u32 [%rd9+{}], {{%r8, %r9, %r10, %r11}};\n",
                    4 * column,
                    4 * column + 16
                )
            })
            .collect();
        let text = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out)\n{{\n.reg .pred %p<8>;\n.reg .b32 %r<32>;\n\
             .reg .b64 %rd<16>;\n.reg .b64 %rd_A;\n.reg .b64 %rd_B;\n.shared .align 1024 .b8 tile[{}];\n\
             .shared .align 8 .b8 bar[8];\n.shared .align 4 .b8 slot[4];\n\
             ld.param.u64 %rd_A, [a];\nld.param.u64 %rd_B, [b];\nld.param.u64 %rd9, [out];\n\
             mov.u32 %r1, %tid.x;\nmov.u32 %r20, tile;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.lt.u32 %p3, %r1, 32;\n\
             {}{}@%p1 mbarrier.init.shared.b64 [bar], 1;\n\
             @!%p3 bra ALLOCATED;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\nALLOCATED:\n\
             fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
             tcgen05.fence::after_thread_sync;\nld.shared.u32 %r21, [slot];\n\
             @!%p1 bra ISSUED;\nshr.u32 %r22, %r20, 4;\ncvt.u64.u32 %rd8, %r22;\n{mmas}\
             tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\nISSUED:\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n\
             tcgen05.fence::after_thread_sync;\n\
             and.b32 %r23, %r1, 96;\nshl.b32 %r23, %r23, 16;\nadd.u32 %r23, %r23, %r21;\n\
             mul.wide.u32 %rd4, %r1, {};\nadd.u64 %rd9, %rd9, %rd4;\n{reads}\
             tcgen05.fence::before_thread_sync;\nbar.sync 0;\n@!%p3 bra END;\n\
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 512;\nEND:\nret;\n}}\n",
            b_start + b_bytes,
            copy("A", 0, a_bytes),
            copy("B", b_start, b_bytes),
            4 * self.columns,
        );
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let mut memory = Memory::new();
        let a = memory.allocate("a", self.a.bytes.clone());
        let b = memory.allocate("b", self.b.bytes.clone());
        let out = memory.allocate("out", vec![0; (128 * 4 * self.columns) as usize]);
        let args = [a, b, out].map(|buffer| Arg::Buffer { buffer, byte_offset: 0 }).to_vec();
        let (grid, block) = ([1, 1, 1], [128, 1, 1]);
        let launch = Launch { kernel: "k".to_string(), grid, block, dynamic_shared_bytes: 0, args };
        // Lanes without a row of D hold what was never written, which `out` may get.
        let observed = Some([a].into());
        let options = Options { seed, observed, ..Options::default() };
        run(&module, &launch, &mut memory, &options).unwrap_or_else(|error| panic!("{error}"));
        memory.bytes(out).chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }
}

/// A shape with its types, the directions and swizzles of A and B, and whether it is `.ws`.
#[derive(Clone, Copy, Debug)]
struct Case {
    types: [MmaType; 3],
    shape: [i64; 3],
    a: (Major, SwizzleMode),
    b: (Major, SwizzleMode),
    ws: bool,
}

impl Case {
    fn check(self, seed: u64) {
        let Case { types: [d, a, b], shape: [m, n, k], ws, .. } = self;
        let transpose = [self.a.0 == Major::MN, self.b.0 == Major::MN];
        let k_step = 256 / a.bits();
        let shape = InstructionShape { cta_group: CtaGroup::One, m: m.max(64), n, k: k_step };
        let (kind, mut descriptor) = dense(shape, InstructionTypes { d, a, b }, transpose).unwrap();
        descriptor.m = m as u16;
        let mut rng = Rng::starting_at(seed);
        let left = multiplicand(&mut rng, a, self.a.0, self.a.1, m, k);
        let right = multiplicand(&mut rng, b, self.b.0, self.b.1, n, k);
        let place = TmemMma { m, cta_group: CtaGroup::One, ws };
        let layout = tmem_mma_operand_layout(TmemOperand::D, &[m, n], place).unwrap();
        let columns = n * m.min(if ws { 128 } else { m }) / if ws { 128 } else { m };
        let product = Product { kind: kind.name(), descriptor: descriptor.encode(), a: &left, b: &right, columns, ws };
        let words = product.execute(seed);
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let flat = row * n + column;
            let (lane, at) = (layout.position(flat, &axis::TLANE), layout.position(flat, &axis::TCOL));
            let word = words[(lane * columns + at) as usize];
            let found = match d {
                MmaType::F32 => f64::from(f32::from_bits(word)),
                MmaType::F16 => f64::from(half::f16::from_bits(word as u16)),
                _ => f64::from(word as i32),
            };
            let terms =
                (0..k).map(|at| left.values[(row * k + at) as usize] * right.values[(column * k + at) as usize]);
            assert_eq!(found, terms.sum::<f64>(), "{self:?}: D[{row}, {column}]");
        }
    }
}

const K: (Major, SwizzleMode) = (Major::K, SwizzleMode::B128);
const F16: [MmaType; 3] = [MmaType::F32, MmaType::F16, MmaType::F16];

#[test]
fn every_swizzle_and_direction_of_both_operands() {
    let modes = [SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128];
    let all = modes.iter().flat_map(|mode| [(Major::K, *mode), (Major::MN, *mode)]);
    for (number, one) in all.enumerate() {
        Case { types: F16, shape: [128, 64, 64], a: one, b: K, ws: false }.check(number as u64);
        Case { types: F16, shape: [64, 128, 64], a: K, b: one, ws: false }.check(100 + number as u64);
    }
}

#[test]
fn every_kind_and_type() {
    let (f32, f16, s32) = (MmaType::F32, MmaType::F16, MmaType::S32);
    let types = [
        [f16, f16, f16],
        [f32, MmaType::Bf16, MmaType::Bf16],
        [f32, MmaType::Tf32, MmaType::Tf32],
        [f32, MmaType::E4m3, MmaType::E5m2],
        [f16, MmaType::E5m2, MmaType::E4m3],
        [s32, MmaType::S8, MmaType::U8],
        [s32, MmaType::U8, MmaType::S8],
    ];
    for (number, types) in types.into_iter().enumerate() {
        let k = 3 * 128 * 8 / types[1].bits();
        Case { types, shape: [128, 48, k], a: K, b: K, ws: false }.check(number as u64);
        let narrow = (Major::K, SwizzleMode::None);
        Case { types, shape: [64, 32, k], a: narrow, b: narrow, ws: false }.check(50 + number as u64);
    }
}

#[test]
fn bytes_that_are_adjacent_along_the_lines() {
    let types = [MmaType::F32, MmaType::E4m3, MmaType::E4m3];
    let mn = (Major::MN, SwizzleMode::B128);
    Case { types, shape: [128, 128, 128], a: mn, b: mn, ws: false }.check(1);
    let types = [MmaType::S32, MmaType::S8, MmaType::S8];
    Case { types, shape: [128, 64, 64], a: mn, b: (Major::MN, SwizzleMode::B64), ws: false }.check(2);
}

#[test]
fn shapes_from_the_smallest_to_the_largest() {
    for (number, (m, n)) in [(64, 8), (64, 24), (64, 256), (128, 16), (128, 240), (128, 256)].into_iter().enumerate() {
        Case { types: F16, shape: [m, n, 64], a: K, b: K, ws: false }.check(number as u64);
    }
}

#[test]
fn stationary_products_have_their_columns_side_by_side() {
    for (number, (m, n)) in [(32, 64), (32, 256), (64, 128), (128, 64)].into_iter().enumerate() {
        Case { types: F16, shape: [m, n, 64], a: K, b: K, ws: true }.check(number as u64);
    }
}
