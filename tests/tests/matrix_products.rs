//! Products of `tcgen05.mma` and `wgmma.mma_async` on the virtual GPU: operands are stored as the layout crate places them, described by the
//! descriptors that it derives, and the results are read from where it says that they are. Two readings of the PTX ISA
//! have to agree.

use tilewright::layout::descriptor::{
    InstructionShape, InstructionTypes, Major, dense, tcgen05_descriptor, wgmma_descriptor,
};
use tilewright::layout::hardware::{
    CtaGroup, MmaType, SwizzleMode, TmemMma, TmemOperand, WgmmaOperand, mma_shared_layout, tmem_mma_operand_layout,
    wgmma_fragment,
};
use tilewright::layout::{Layout, TileLayout, axis};
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

/// A multiplicand: `lines` x `k` numbers, their bytes in shared memory, and the descriptor of each K-step. The CTAs of a pair
/// have half of the lines each.
struct Multiplicand {
    values: Vec<f64>,
    /// For each CTA.
    bytes: Vec<Vec<u8>>,
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

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Tcgen05 {
        ws: bool,
    },
    /// `tcgen05` by a pair of CTAs.
    Pair,
    /// The left multiplicand may be in registers.
    Wgmma {
        registers: bool,
    },
}

/// The first descriptor of a tile, and what each K-step adds to its address in bytes.
fn described(engine: Engine, layout: &Layout, shape: [i64; 2], bits: i64, major: Major) -> (u64, Vec<i64>) {
    match engine {
        Engine::Tcgen05 { .. } | Engine::Pair => {
            let operand = tcgen05_descriptor(layout, shape, bits, major).unwrap();
            (operand.descriptor.encode(), operand.advance)
        }
        Engine::Wgmma { .. } => {
            let operand = wgmma_descriptor(layout, shape, bits, major).unwrap();
            (operand.descriptor.encode(), operand.advance)
        }
    }
}

/// Random numbers, and their bytes where a layout places them.
fn filled(rng: &mut Rng, element: MmaType, layout: &Layout, count: i64) -> (Vec<f64>, Vec<u8>) {
    let bits = element.bits();
    let choices = numbers(element);
    let mut values = Vec::new();
    let mut bytes = vec![0u8; (count * bits / 8) as usize];
    for flat in 0..count {
        let (value, code) = choices[rng.below(choices.len())];
        values.push(value);
        let (at, size) = ((layout.memory_position(flat) * bits / 8) as usize, (bits / 8) as usize);
        bytes[at..at + size].copy_from_slice(&code.to_le_bytes()[..size]);
    }
    (values, bytes)
}

/// The multiplicands of two CTAs as one.
fn paired([mut even, odd]: [Multiplicand; 2]) -> Multiplicand {
    even.values.extend(odd.values);
    even.bytes.extend(odd.bytes);
    even
}

/// A multiplicand that no descriptor describes.
fn row_major(rng: &mut Rng, element: MmaType, [lines, k]: [i64; 2]) -> Multiplicand {
    let layout = TileLayout::row_major(&[lines, k]).unwrap().into();
    let (values, bytes) = filled(rng, element, &layout, lines * k);
    Multiplicand { values, bytes: vec![bytes], steps: vec![0; (k * element.bits() / 256) as usize] }
}

fn multiplicand(
    rng: &mut Rng,
    engine: Engine,
    element: MmaType,
    (major, mode): (Major, SwizzleMode),
    [lines, k]: [i64; 2],
) -> Multiplicand {
    let bits = element.bits();
    let layout = match major {
        Major::K => mma_shared_layout(bits, mode, &[lines, k]).unwrap(),
        Major::MN => mn_major(bits, mode, lines, k),
    };
    let (word, advance) = described(engine, &layout, [lines, k], bits, major);
    let (values, bytes) = filled(rng, element, &layout, lines * k);
    let steps = advance.iter().map(|advance| word + (*advance as u64 >> 4)).collect();
    Multiplicand { values, bytes: vec![bytes], steps }
}

/// PTX that copies `bytes` bytes from the address in `%rd_{name}` to `tile` + `start`.
fn copied(name: &str, start: usize, bytes: usize) -> String {
    format!(
        "mov.u32 %r2, %r1;\n{name}:\nsetp.ge.u32 %p2, %r2, {};\n@%p2 bra {name}_END;\nmul.wide.u32 %rd4, %r2, 16;\n\
         add.u64 %rd5, %rd4, %rd_{name};\nld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd5];\nshl.b32 %r3, %r2, 4;\n\
         add.u32 %r3, %r3, %r20;\nst.shared.v4.u32 [%r3+{start}], {{%r4, %r5, %r6, %r7}};\nadd.u32 %r2, %r2, 128;\n\
         bra {name};\n{name}_END:\n",
        bytes / 16
    )
}

/// Runs `body` by a warpgroup after A and B were copied to the start of `tile` and to `b_start`; `%rd8` is the address of
/// `tile` in units of 16 bytes, `%rd9` that of `out`. Returns the words of `out`.
fn execute(target: &str, [a, b]: [&Multiplicand; 2], out_words: usize, body: &str, seed: u64) -> Vec<u32> {
    let (b_start, ctas) = (b_start(a), a.bytes.len());
    let (of_a, of_b) = (a.bytes[0].len(), b.bytes[0].len());
    let text = format!(
        ".version 8.8\n.target {target}\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out)\n{{\n.reg .pred %p<8>;\n.reg .b32 %r<32>;\n\
         .reg .b64 %rd<16>;\n.reg .b64 %rd_A;\n.reg .b64 %rd_B;\n.shared .align 1024 .b8 tile[{}];\n\
         .shared .align 8 .b8 bar[8];\n.shared .align 4 .b8 slot[4];\n\
         ld.param.u64 %rd_A, [a];\nld.param.u64 %rd_B, [b];\nld.param.u64 %rd9, [out];\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r20, tile;\nand.b32 %r22, %r20, 0x3ffff;\nshr.u32 %r22, %r22, 4;\ncvt.u64.u32 %rd8, %r22;\n\
         setp.eq.u32 %p1, %r1, 0;\nsetp.lt.u32 %p3, %r1, 32;\nmov.u32 %r19, %cluster_ctarank;\n\
         mul.wide.u32 %rd4, %r19, {of_a};\nadd.u64 %rd_A, %rd_A, %rd4;\nmul.wide.u32 %rd4, %r19, {of_b};\n\
         add.u64 %rd_B, %rd_B, %rd4;\nmul.wide.u32 %rd4, %r19, {};\nadd.u64 %rd9, %rd9, %rd4;\n{}{}fence.proxy.async.shared::cta;\n{body}\nret;\n}}\n",
        b_start + of_b,
        4 * out_words,
        copied("A", 0, of_a),
        copied("B", b_start, of_b),
    );
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = Memory::new();
    let left = memory.allocate("a", a.bytes.concat());
    let right = memory.allocate("b", b.bytes.concat());
    let out = memory.allocate("out", vec![0; 4 * ctas * out_words]);
    let args = [left, right, out].map(|buffer| Arg::Buffer { buffer, byte_offset: 0 }).to_vec();
    let (grid, block) = ([ctas as u32, 1, 1], [128, 1, 1]);
    let launch = Launch {
        kernel: "k".to_string(),
        grid,
        block,
        cluster: grid,
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args,
    };
    // Lanes of tensor memory without a row of D hold what was never written, which `out` may get.
    let observed = Some([left].into());
    let options = Options { seed, observed, ..Options::default() };
    run(&module, &launch, &mut memory, &options).unwrap_or_else(|error| panic!("{error}"));
    memory.bytes(out).chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// Where B is in shared memory.
fn b_start(a: &Multiplicand) -> usize {
    a.bytes[0].len().next_multiple_of(1024)
}

/// The descriptors of both operands of each K-step, in `%rd6` and `%rd7`, and an instruction that uses them.
fn steps([a, b]: [&Multiplicand; 2], instruction: impl Fn(usize) -> String) -> String {
    let step = |at: usize| {
        let (left, right) = (a.steps[at], b.steps[at] + (b_start(a) as u64 >> 4));
        format!("add.u64 %rd6, %rd8, {left};\nadd.u64 %rd7, %rd8, {right};\n{}\n", instruction(at))
    };
    (0..a.steps.len()).map(step).collect()
}

/// Each CTA of a pair has its part of the operands and of tensor memory; the even one issues the products.
fn pair_body(both: [&Multiplicand; 2], name: &str, descriptor: u32, columns: i64) -> String {
    let barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    let before = format!("tcgen05.fence::before_thread_sync;\n{barrier}");
    tcgen05_body(both, (name, descriptor), columns)
        .replace("cta_group::1", "cta_group::2")
        .replace("@!%p1 bra ISSUED;", "setp.eq.and.u32 %p4, %r19, 0, %p1;\n@!%p4 bra ISSUED;")
        .replace("shared::cluster.b64 [bar];", "shared::cluster.multicast::cluster.b64 [bar], 3;")
        .replace("tcgen05.fence::before_thread_sync;\nbar.sync 0;\n", &before)
}

/// `tcgen05.mma` and what surrounds it. Afterwards `out` has `columns` words of each lane of tensor memory.
fn tcgen05_body(both: [&Multiplicand; 2], (name, descriptor): (&str, u32), columns: i64) -> String {
    let mmas = steps(both, |at| {
        let adds = i32::from(at > 0);
        format!("tcgen05.mma{name} [%r21], %rd6, %rd7, {descriptor}, {adds};")
    });
    let reads: String = (0..columns)
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
    format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 1;\n\
         @!%p3 bra ALLOCATED;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\nALLOCATED:\n\
         tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\nld.shared.u32 %r21, [slot];\n\
         @!%p1 bra ISSUED;\n{mmas}tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\nISSUED:\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\ntcgen05.fence::after_thread_sync;\n\
         and.b32 %r23, %r1, 96;\nshl.b32 %r23, %r23, 16;\nadd.u32 %r23, %r23, %r21;\n\
         mul.wide.u32 %rd4, %r1, {};\nadd.u64 %rd9, %rd9, %rd4;\n{reads}tcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
         @!%p3 bra END;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 512;\nEND:",
        4 * columns
    )
}

/// `wgmma.mma_async` and what surrounds it. Afterwards `out` has the `registers` of each thread. With `left`, A is in
/// registers: `left` gives the offset in `tile`, from the thread's row and column, of each of a step.
fn wgmma_body(both: [&Multiplicand; 2], name: &str, registers: i64, flags: &str, left: Option<&[i64]>) -> String {
    let list =
        |first: i64, count: i64| (first..first + count).map(|at| format!("%f{at}")).collect::<Vec<_>>().join(", ");
    let loads: String = left
        .iter()
        .flat_map(|offsets| offsets.iter().enumerate())
        .map(|(number, offset)| format!("ld.shared.b32 %f{}, [%r24+{offset}];\n", registers + number as i64))
        .collect();
    let mmas = steps(both, |at| {
        let a = match left {
            Some(_) => format!("{{{}}}", list(registers + 4 * at as i64, 4)),
            None => "%rd6".to_string(),
        };
        let p = if at > 0 { "1" } else { "0" };
        format!("wgmma.mma_async.sync.aligned.{name} {{{}}}, {a}, %rd7, {p}{flags};", list(0, registers))
    });
    let stores: String = (0..registers).map(|at| format!("st.global.b32 [%rd9+{}], %f{at};\n", 4 * at)).collect();
    format!(
        ".reg .b32 %f<{}>;\nbar.sync 0;\n\
         shr.u32 %r24, %r1, 5;\nshl.b32 %r24, %r24, 4;\nand.b32 %r25, %r1, 31;\nshr.u32 %r26, %r25, 2;\n\
         add.u32 %r24, %r24, %r26;\nmul.lo.u32 %r24, %r24, {};\nand.b32 %r25, %r25, 3;\nshl.b32 %r25, %r25, 2;\n\
         add.u32 %r24, %r24, %r25;\nadd.u32 %r24, %r24, %r20;\n{loads}\
         wgmma.fence.sync.aligned;\n{mmas}wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n\
         mul.wide.u32 %rd4, %r1, {};\nadd.u64 %rd9, %rd9, %rd4;\n{stores}",
        registers + 4 * both[0].steps.len() as i64,
        both[0].bytes[0].len() / 64,
        4 * registers
    )
}

/// A shape with its types, and the directions and swizzles of A and B.
#[derive(Clone, Copy, Debug)]
struct Case {
    engine: Engine,
    types: [MmaType; 3],
    shape: [i64; 3],
    a: (Major, SwizzleMode),
    b: (Major, SwizzleMode),
}

impl Case {
    fn check(self, seed: u64) {
        let Case { engine, types: [_, a, b], shape: [m, n, k], .. } = self;
        let mut rng = Rng::starting_at(seed);
        let is_in_registers = engine == Engine::Wgmma { registers: true };
        if engine == Engine::Pair {
            let left = paired([0, 1].map(|_| multiplicand(&mut rng, engine, a, self.a, [m / 2, k])));
            let right = paired([0, 1].map(|_| multiplicand(&mut rng, engine, b, self.b, [n / 2, k])));
            return self.compare([&left, &right], &self.by_pair([&left, &right], seed));
        }
        let left = match is_in_registers {
            true => row_major(&mut rng, a, [m, k]),
            false => multiplicand(&mut rng, engine, a, self.a, [m, k]),
        };
        let right = multiplicand(&mut rng, engine, b, self.b, [n, k]);
        let both = [&left, &right];
        let found = match engine {
            Engine::Tcgen05 { ws } => self.by_tcgen05(both, ws, seed),
            Engine::Pair => self.by_pair(both, seed),
            Engine::Wgmma { registers } => self.by_wgmma(both, registers, seed),
        };
        self.compare(both, &found);
    }

    /// D is the product.
    fn compare(&self, [left, right]: [&Multiplicand; 2], found: &[f64]) {
        let [m, n, k] = self.shape;
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let terms =
                (0..k).map(|at| left.values[(row * k + at) as usize] * right.values[(column * k + at) as usize]);
            assert_eq!(found[(row * n + column) as usize], terms.sum::<f64>(), "{self:?}: D[{row}, {column}]");
        }
    }

    /// The value of an element of D in a word.
    fn value(&self, word: u32) -> f64 {
        match self.types[0] {
            MmaType::F32 => f64::from(f32::from_bits(word)),
            MmaType::F16 => f64::from(half::f16::from_bits(word as u16)),
            _ => f64::from(word as i32),
        }
    }

    fn by_tcgen05(&self, both: [&Multiplicand; 2], ws: bool, seed: u64) -> Vec<f64> {
        let Case { types: [d, a, b], shape: [m, n, _], .. } = *self;
        let transpose = [self.a.0 == Major::MN, self.b.0 == Major::MN];
        let shape = InstructionShape { cta_group: CtaGroup::One, m: m.max(64), n, k: 256 / a.bits() };
        let (kind, mut descriptor) = dense(shape, InstructionTypes { d, a, b }, transpose).unwrap();
        descriptor.m = m as u16;
        let place = TmemMma { m, cta_group: CtaGroup::One, ws };
        let layout = tmem_mma_operand_layout(TmemOperand::D, &[m, n], place).unwrap();
        let columns = if ws { n * m / 128 } else { n };
        let name = format!("{}.cta_group::1.kind::{}", if ws { ".ws" } else { "" }, kind.name());
        let body = tcgen05_body(both, (&name, descriptor.encode()), columns);
        let words = execute("sm_100a", both, (128 * columns) as usize, &body, seed);
        let place = |flat: i64| layout.position(flat, &axis::TLANE) * columns + layout.position(flat, &axis::TCOL);
        (0..m * n).map(|flat| self.value(words[place(flat) as usize])).collect()
    }

    fn by_pair(&self, both: [&Multiplicand; 2], seed: u64) -> Vec<f64> {
        let Case { types: [d, a, b], shape: [m, n, _], .. } = *self;
        let transpose = [self.a.0 == Major::MN, self.b.0 == Major::MN];
        let shape = InstructionShape { cta_group: CtaGroup::Two, m, n, k: 256 / a.bits() };
        let (kind, descriptor) = dense(shape, InstructionTypes { d, a, b }, transpose).unwrap();
        let place = TmemMma { m, cta_group: CtaGroup::Two, ws: false };
        let layout = tmem_mma_operand_layout(TmemOperand::D, &[m / 2, n], place).unwrap();
        let columns = if m == 256 { n } else { n / 2 };
        let name = format!(".cta_group::1.kind::{}", kind.name());
        let body = pair_body(both, &name, descriptor.encode(), columns);
        let of_cta = 128 * columns;
        let words = execute("sm_100a", both, of_cta as usize, &body, seed);
        let place = |flat: i64| layout.position(flat, &axis::TLANE) * columns + layout.position(flat, &axis::TCOL);
        let value = |flat: i64| {
            let (cta, inside) = (flat / (m / 2 * n), flat % (m / 2 * n));
            self.value(words[(cta * of_cta + place(inside)) as usize])
        };
        (0..m * n).map(value).collect()
    }

    fn by_wgmma(&self, both: [&Multiplicand; 2], registers: bool, seed: u64) -> Vec<f64> {
        let Case { types: [d, a, b], shape: [_, n, k], .. } = *self;
        let k_step = 256 / a.bits();
        let name = format!("m64n{n}k{k_step}.{d}.{a}.{b}");
        let turned = |major: Major| i32::from(major == Major::MN);
        let flags = match (a.bits(), d) {
            (_, MmaType::S32) => String::new(),
            (16, _) if registers => format!(", 1, 1, {}", turned(self.b.0)),
            (16, _) => format!(", 1, 1, {}, {}", turned(self.a.0), turned(self.b.0)),
            _ => ", 1, 1".to_string(),
        };
        let in_register = if d == MmaType::F16 { 2 } else { 1 };
        let of_thread = n / 2 / in_register;
        // In registers: A is row-major in shared memory, and a register has 4 bytes of a row.
        let row = k * a.bits() / 8;
        let offset = |at: i64| at / 4 * 32 + at % 4 / 2 * 16 + at % 2 * 8 * row;
        let offsets: Option<Vec<i64>> = registers.then(|| (0..4 * k / k_step).map(offset).collect());
        let body = wgmma_body(both, &name, of_thread, &flags, offsets.as_deref());
        let words = execute("sm_90a", both, (128 * of_thread) as usize, &body, seed);
        let layout = wgmma_fragment(n, k_step, WgmmaOperand::D, d).unwrap();
        let value = |flat: i64| {
            let thread = layout.position(flat, &axis::WID_IN_WG) * 32 + layout.position(flat, &axis::LANEID);
            let register = layout.position(flat, &axis::REG);
            let word = words[(thread * of_thread + register / in_register) as usize];
            self.value(word >> (16 * (register % in_register)))
        };
        (0..64 * n).map(value).collect()
    }
}

const K: (Major, SwizzleMode) = (Major::K, SwizzleMode::B128);
const TCGEN05: Engine = Engine::Tcgen05 { ws: false };
const WGMMA: Engine = Engine::Wgmma { registers: false };
const F16: [MmaType; 3] = [MmaType::F32, MmaType::F16, MmaType::F16];
/// D, A and B of every kind of product.
const TYPES: [[MmaType; 3]; 7] = [
    [MmaType::F16, MmaType::F16, MmaType::F16],
    [MmaType::F32, MmaType::Bf16, MmaType::Bf16],
    [MmaType::F32, MmaType::Tf32, MmaType::Tf32],
    [MmaType::F32, MmaType::E4m3, MmaType::E5m2],
    [MmaType::F16, MmaType::E5m2, MmaType::E4m3],
    [MmaType::S32, MmaType::S8, MmaType::U8],
    [MmaType::S32, MmaType::U8, MmaType::S8],
];

/// Every direction and swizzle of an operand.
fn operands() -> impl Iterator<Item = (Major, SwizzleMode)> {
    let modes = [SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128];
    modes.into_iter().flat_map(|mode| [(Major::K, mode), (Major::MN, mode)])
}

#[test]
fn every_swizzle_and_direction_of_both_operands() {
    for (number, one) in operands().enumerate() {
        Case { types: F16, shape: [128, 64, 64], a: one, b: K, engine: TCGEN05 }.check(number as u64);
        Case { types: F16, shape: [64, 128, 64], a: K, b: one, engine: TCGEN05 }.check(100 + number as u64);
    }
}

#[test]
fn every_kind_and_type() {
    for (number, types) in TYPES.into_iter().enumerate() {
        let k = 3 * 128 * 8 / types[1].bits();
        Case { types, shape: [128, 48, k], a: K, b: K, engine: TCGEN05 }.check(number as u64);
        let narrow = (Major::K, SwizzleMode::None);
        Case { types, shape: [64, 32, k], a: narrow, b: narrow, engine: TCGEN05 }.check(50 + number as u64);
    }
}

#[test]
fn bytes_that_are_adjacent_along_the_lines() {
    let types = [MmaType::F32, MmaType::E4m3, MmaType::E4m3];
    let mn = (Major::MN, SwizzleMode::B128);
    Case { types, shape: [128, 128, 128], a: mn, b: mn, engine: TCGEN05 }.check(1);
    let types = [MmaType::S32, MmaType::S8, MmaType::S8];
    Case { types, shape: [128, 64, 64], a: mn, b: (Major::MN, SwizzleMode::B64), engine: TCGEN05 }.check(2);
}

#[test]
fn shapes_from_the_smallest_to_the_largest() {
    for (number, (m, n)) in [(64, 8), (64, 24), (64, 256), (128, 16), (128, 240), (128, 256)].into_iter().enumerate() {
        Case { types: F16, shape: [m, n, 64], a: K, b: K, engine: TCGEN05 }.check(number as u64);
    }
}

#[test]
fn stationary_products_have_their_columns_side_by_side() {
    for (number, (m, n)) in [(32, 64), (32, 256), (64, 128), (128, 64)].into_iter().enumerate() {
        Case { types: F16, shape: [m, n, 64], a: K, b: K, engine: Engine::Tcgen05 { ws: true } }.check(number as u64);
    }
}

#[test]
fn warpgroups_multiply_with_every_swizzle_and_direction() {
    for (number, one) in operands().enumerate() {
        Case { types: F16, shape: [64, 64, 64], a: one, b: K, engine: WGMMA }.check(number as u64);
        Case { types: F16, shape: [64, 128, 64], a: K, b: one, engine: WGMMA }.check(100 + number as u64);
    }
}

#[test]
fn warpgroups_multiply_every_type() {
    for (number, types) in TYPES.into_iter().enumerate() {
        let k = 128 * 8 / types[1].bits();
        for (n, seed) in [(8, 0), (48, 50), (256, 100)] {
            Case { types, shape: [64, n, k], a: K, b: K, engine: WGMMA }.check(seed + number as u64);
        }
    }
}

#[test]
fn the_left_multiplicand_of_a_warpgroup_may_be_in_registers() {
    let engine = Engine::Wgmma { registers: true };
    let (f32, s32) = (MmaType::F32, MmaType::S32);
    let types = [
        F16,
        [f32, MmaType::Bf16, MmaType::Bf16],
        [f32, MmaType::Tf32, MmaType::Tf32],
        [f32, MmaType::E4m3, MmaType::E5m2],
        [s32, MmaType::S8, MmaType::U8],
    ];
    for (number, types) in types.into_iter().enumerate() {
        let k = 128 * 8 / types[1].bits();
        Case { types, shape: [64, 64, k], a: (Major::K, SwizzleMode::None), b: K, engine }.check(number as u64);
    }
    let b = (Major::MN, SwizzleMode::B64);
    Case { types: F16, shape: [64, 64, 64], a: (Major::K, SwizzleMode::None), b, engine }.check(9);
}

#[test]
fn a_pair_of_ctas_has_halves_of_both_operands() {
    let engine = Engine::Pair;
    for (number, (m, n)) in [(256, 256), (256, 64), (128, 128), (128, 32)].into_iter().enumerate() {
        Case { types: F16, shape: [m, n, 64], a: K, b: K, engine }.check(number as u64);
    }
    let mn = (Major::MN, SwizzleMode::B128);
    Case { types: F16, shape: [256, 128, 64], a: mn, b: mn, engine }.check(5);
    let types = [MmaType::F32, MmaType::E4m3, MmaType::E5m2];
    Case { types, shape: [256, 64, 128], a: K, b: (Major::K, SwizzleMode::None), engine }.check(6);
}
