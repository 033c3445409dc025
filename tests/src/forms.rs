//! Kernels of one instruction on registers, for every form of the decode table that needs nothing else: operands from
//! arrays, results to an array.

use tilewright::vgpu::{Arg, BufferId, Instruction, Launch, Memory, Unit, instructions};

use crate::rng::Rng;

/// Elements of an array, one for each thread.
pub const ELEMENTS: usize = 1024;
const THREADS: u32 = 128;
const BYTES: usize = 8 * ELEMENTS;

/// Two results: the first destination, and the second one or the carry.
const RESULTS: usize = 2;

/// An operand, by what holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Predicate,
    Bits(u32),
}

/// An instruction with its operands.
#[derive(Clone, Debug)]
pub struct Form {
    /// As in the table.
    pub text: String,
    /// The name and the width of each destination and each source.
    destinations: Vec<(String, Width)>,
    sources: Vec<(String, Width)>,
}

impl Form {
    /// Whether the ISA leaves its last bits open.
    pub fn is_approximate(&self) -> bool {
        self.opcode().split('.').any(|part| matches!(part, "approx" | "full"))
    }

    fn opcode(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// A kernel that executes it once in each thread.
    pub fn kernel(&self) -> String {
        let mut text =
            ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n\
                        {\n.reg .b32 thread, block, carry, unused;\n.reg .b64 offset, source, target, word;\n"
                .to_string();
        for (name, width) in self.destinations.iter().chain(&self.sources) {
            text += &match width {
                Width::Predicate => format!(".reg .pred {name};\n"),
                Width::Bits(bits) => format!(".reg .b{bits} {name};\n"),
            };
        }
        text += &format!(
            "mov.u32 thread, %tid.x;\nmov.u32 block, %ctaid.x;\nmad.lo.s32 thread, block, {THREADS}, thread;\n\
             mul.wide.u32 offset, thread, 8;\nld.param.u64 source, [from];\nld.param.u64 target, [to];\n\
             add.s64 source, source, offset;\nadd.s64 target, target, offset;\n"
        );
        for (number, (name, width)) in self.sources.iter().enumerate() {
            text += &format!("ld.global.b64 word, [source+{}];\n", number * BYTES);
            text += &match width {
                Width::Predicate => format!("and.b64 word, word, 1;\nsetp.ne.b64 {name}, word, 0;\n"),
                Width::Bits(64) => format!("mov.b64 {name}, word;\n"),
                Width::Bits(bits) => format!("cvt.u{bits}.u64 {name}, word;\n"),
            };
        }
        // What an extended operation adds or subtracts is the carry or the borrow of one of its kind.
        let carrying = match &self.text[..4] {
            "addc" | "madc" => Some("add"),
            "subc" => Some("sub"),
            _ => None,
        };
        if let Some(name) = carrying {
            text += &format!("cvt.u32.u64 unused, word;\n{name}.cc.u32 unused, unused, 0x70000000;\n");
        }
        // A lane has a number below 32, and offsets are not much larger.
        if self.text.starts_with("fns") {
            text += "and.b32 b, b, 31;\nshr.s32 c, c, 26;\n";
        }
        text += &format!("{};\n", self.text);
        if self.opcode().split('.').any(|part| part == "cc") {
            let name = if self.text.starts_with("sub") { "subc" } else { "addc" };
            text +=
                &format!("{name}.u32 carry, 0, 0;\ncvt.u64.u32 word, carry;\nst.global.b64 [target+{BYTES}], word;\n");
        }
        for (number, (name, width)) in self.destinations.iter().enumerate() {
            text += &match width {
                Width::Predicate => format!("selp.b64 word, 1, 0, {name};\n"),
                Width::Bits(64) => format!("mov.b64 word, {name};\n"),
                Width::Bits(bits) => format!("cvt.u64.u{bits} word, {name};\n"),
            };
            text += &format!("st.global.b64 [target+{}], word;\n", number * BYTES);
        }
        text + "ret;\n}\n"
    }

    /// A launch of the kernel: the memory before it, and the buffers of operands and of results.
    pub fn launch(&self, seed: u64) -> (Launch, Memory, [BufferId; 2]) {
        let mut rng = Rng::new(
            seed,
            self.text.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte))),
        );
        let words = (0..self.sources.len() * ELEMENTS).flat_map(|_| word(&mut rng).to_le_bytes()).collect();
        let mut memory = Memory::new();
        let buffers = [memory.allocate("from", words), memory.allocate_poison("to", RESULTS * BYTES)];
        let launch = Launch {
            kernel: "k".to_string(),
            grid: [ELEMENTS as u32 / THREADS, 1, 1],
            block: [THREADS, 1, 1],
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args: buffers.map(|buffer| Arg::Buffer { buffer, byte_offset: 0 }).to_vec(),
        };
        (launch, memory, buffers)
    }
}

/// All forms of arithmetic and of moves between registers that this module can put into a kernel.
pub fn forms() -> Vec<Form> {
    let is_on_registers = |found: &Instruction| matches!(found.unit, Unit::Arithmetic | Unit::Register);
    instructions().iter().filter(|found| is_on_registers(found)).flat_map(Instruction::texts).filter_map(form).collect()
}

fn form(text: String) -> Option<Form> {
    // Registers of 8 and of 128 bits, and special registers.
    if ["e2m1x2", "b128", "%"].iter().any(|part| text.contains(part)) {
        return None;
    }
    let (opcode, operands) = text.split_once(' ')?;
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut rest = operands;
    while !rest.is_empty() {
        let (operand, after) = match rest.strip_prefix('{') {
            Some(inside) => inside.split_once('}')?,
            None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        names.push(operand.split([',', '|']).map(|name| name.trim().trim_start_matches('!').to_string()).collect());
        rest = after.trim_start_matches([',', ' ']);
    }
    // Numbers stay in the text.
    names.retain(|operand| operand.iter().all(|name| name.starts_with(char::is_alphabetic)));
    let widths = widths(opcode, names.len())?;
    let named = |(names, width): (&Vec<String>, Width)| {
        let share = |name: &String| {
            let width = match (name.as_str(), width) {
                ("p" | "q" | "r", _) => Width::Predicate,
                (_, Width::Bits(bits)) if opcode.starts_with("mov") => Width::Bits(bits / names.len() as u32),
                (_, width) => width,
            };
            (name.clone(), width)
        };
        names.iter().map(share).collect::<Vec<_>>()
    };
    let mut operands = names.iter().zip(widths).map(named);
    let destinations = operands.next()?;
    let sources = operands.flatten().collect();
    Some(Form { destinations, sources, text })
}

/// The width of each of `count` operands, as the ISA types them.
fn widths(opcode: &str, count: usize) -> Option<Vec<Width>> {
    let parts: Vec<&str> = opcode.split('.').collect();
    let types: Vec<u32> = parts[1..].iter().filter_map(|part| bits(part)).collect();
    let (first, last) = match (types.first(), types.last()) {
        (Some(first), Some(last)) => (*first, *last),
        // Of predicates only.
        _ => return Some(vec![Width::Predicate; count]),
    };
    let is_wide = parts.contains(&"wide");
    let width = |at: usize| match parts[0] {
        "popc" | "clz" | "bfind" if at == 0 => 32,
        "shl" | "shr" if at == 2 => 32,
        "bfe" if at >= 2 => 32,
        "bfi" if at >= 3 => 32,
        "slct" if at < 3 => first,
        "mul" | "mad" if is_wide && (at == 0 || at == 3) => 2 * last,
        "cvt" | "set" if at == 0 => first,
        // The sum has the first type; one or two factors have the second.
        "add" | "sub" | "fma" if types.len() == 2 && (at == 0 || at + 1 == count) => first,
        _ => last,
    };
    Some((0..count).map(|at| Width::Bits(width(at))).collect())
}

/// The width in bits of the register that holds a value of a type; `None` for a modifier that is not a type.
fn bits(part: &str) -> Option<u32> {
    match part {
        // A conversion takes 8 bits of a wider register.
        "u8" | "s8" => Some(32),
        "tf32" | "ue8m0x4" => Some(32),
        "e2m1x4" => Some(16),
        _ if part.ends_with("x4") => Some(32),
        "f32x2" => Some(64),
        "f16x2" | "bf16x2" | "u16x2" | "s16x2" => Some(32),
        _ if part.ends_with("x2") => Some(16),
        "bf16" => Some(16),
        _ => {
            let digits = part.strip_prefix(['u', 's', 'b', 'f'])?;
            digits.parse().ok().filter(|bits| matches!(bits, 16 | 32 | 64))
        }
    }
}

/// A word in which each type finds its edges: special values of halves, floats and doubles, small integers, and random bits.
fn word(rng: &mut Rng) -> u64 {
    const HALVES: [u16; 16] = [
        0, 0x8000, 1, 0x3ff, 0x400, 0x83ff, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0xfd03, 0x7f80,
        0xff81,
    ];
    const FLOATS: [u32; 16] = [
        0,
        0x8000_0000,
        1,
        0x7f_ffff,
        0x80_0000,
        0x8080_0001,
        0x3f80_0000,
        0xbf7f_ffff,
        0x7f7f_ffff,
        0xff80_0000,
        0x7f80_0000,
        0x7fc0_1234,
        0xffa0_0001,
        0x4f00_0000,
        0xcf00_0001,
        0x3f00_0000,
    ];
    const DOUBLES: [u64; 12] = [
        1,
        0x8000_0000_0000_0000,
        0xf_ffff_ffff_ffff,
        0x10_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0001,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff8_0000_1234_5678,
        0x7ff4_0000_0000_0001,
        0x41df_ffff_ffc0_0000,
        0x47ef_ffff_f000_0000,
    ];
    let random = rng.bits();
    match rng.below(13) {
        0 | 1 => (0..4).fold(0, |word, _| word << 16 | u64::from(HALVES[rng.below(HALVES.len())])),
        2 | 3 => u64::from(FLOATS[rng.below(FLOATS.len())]) << 32 | u64::from(FLOATS[rng.below(FLOATS.len())]),
        4 => DOUBLES[rng.below(DOUBLES.len())],
        5 => random % 70,
        6 => (random % 70).wrapping_neg(),
        // Exponents near 1, so that sums and products stay finite.
        7 => random & 0x83ff_83ff_83ff_83ff | 0x3c00_3c00_3c00_3c00,
        8 => random & 0x80ff_ffff_80ff_ffff | 0x3f00_0000_3f00_0000,
        // Exponents whose products are near the least normal numbers of f16 and of f32.
        9 => (random & 0x83ff_83ff_83ff_83ff) + (6 + rng.below(4) as u64) * 0x0400_0400_0400_0400,
        10 => (random & 0x807f_ffff_807f_ffff) + (62 + rng.below(4) as u64) * 0x0080_0000_0080_0000,
        // NaN of every type.
        11 => random | [0x7ff0_0000_7f80_7c00, 0x7ff0_7f80_7f80_7f80][rng.below(2)],
        _ => random,
    }
}
