//! Runs a few lines of PTX for each element of some arrays of words.

use tilewright_vgpu::{Arg, Fault, Launch, Memory, Module, Options, Report, RunError, run};

/// `%r0` is the element, `%r1` the lane; `%rd1` and `%rd2` are the first words of the inputs and of the outputs.
const HEADER: &str = ".version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{
.reg .pred %p<16>;
.reg .b16 %h<32>;
.reg .b32 %r<64>;
.reg .b32 %i<32>;
.reg .b32 %o<32>;
.reg .b64 %rd<32>;
.reg .b64 %d<16>;
.shared .align 1024 .b8 tile[8192];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.s32 %r0, %r2, 32, %r1;
mul.wide.u32 %rd0, %r0, 4;
ld.param.u64 %rd1, [from];
ld.param.u64 %rd2, [to];
add.s64 %rd3, %rd1, %rd0;
add.s64 %rd4, %rd2, %rd0;
";

/// The results of a kernel.
pub(crate) struct Done {
    pub(crate) outputs: Vec<Vec<u32>>,
    /// The words of all inputs, one array after another.
    pub(crate) inputs: Vec<u32>,
    pub(crate) report: Report,
}

/// Runs `body` in one thread for each element, in CTAs of one warp of `threads`: `%i0`, `%i1`, ... are the elements of
/// the inputs, `%o0`, `%o1`, ... become those of the outputs. Without inputs there are 32 elements.
pub(crate) fn execute(body: &str, inputs: &[&[u32]], outputs: usize, threads: u32) -> Result<Done, RunError> {
    let wanted = inputs.first().map_or(32, |input| input.len());
    let elements = wanted.next_multiple_of(32);
    let module =
        Module::parse(&kernel(body, inputs.len(), outputs, elements)).unwrap_or_else(|error| panic!("{error}"));
    let mut words = Vec::new();
    for input in inputs {
        words.extend_from_slice(input);
        words.resize(words.len().next_multiple_of(32), 0);
    }
    words.resize(words.len().max(1), 0);
    let mut memory = Memory::new();
    let from = memory.allocate("from", words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let to = memory.allocate_poison("to", 4 * elements * outputs.max(1));
    let arg = |buffer| Arg::Buffer { buffer, byte_offset: 0 };
    let launch = Launch {
        kernel: "k".to_string(),
        grid: [elements as u32 / 32, 1, 1],
        block: [threads, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![arg(from), arg(to)],
    };
    let report = run(&module, &launch, &mut memory, &Options::default())?;
    let read = |buffer| -> Vec<u32> {
        let bytes = memory.bytes(buffer);
        let words = bytes.chunks_exact(4);
        words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    let found = read(to);
    let outputs = found.chunks(elements).take(outputs).map(|output| output[..wanted].to_vec()).collect();
    Ok(Done { outputs, inputs: read(from), report })
}

fn kernel(body: &str, inputs: usize, outputs: usize, elements: usize) -> String {
    let mut text = HEADER.to_string();
    for index in 0..inputs {
        text += &format!("ld.global.b32 %i{index}, [%rd3+{}];\n", 4 * elements * index);
    }
    text += body;
    text += "\n";
    for index in 0..outputs {
        text += &format!("st.global.b32 [%rd4+{}], %o{index};\n", 4 * elements * index);
    }
    text + "ret;\n}\n"
}

/// The outputs of [`execute`] in full warps.
pub(crate) fn map<const N: usize>(body: &str, inputs: &[&[u32]]) -> [Vec<u32>; N] {
    let done = execute(body, inputs, N, 32).unwrap_or_else(|error| panic!("{body}\n{error}"));
    done.outputs.try_into().unwrap_or_else(|_| panic!("{N} outputs"))
}

/// The fault of `body` in one warp of `threads`.
pub(crate) fn fault(body: &str, threads: u32) -> Fault {
    match execute(body, &[], 0, threads) {
        Err(RunError::Fault(fault)) => *fault,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the kernel ran to its end"),
    }
}

/// The reasons why `body` is rejected, one for each instruction.
pub(crate) fn refusals(body: &str) -> Vec<String> {
    match execute(body, &[], 0, 32) {
        Err(RunError::Unsupported(list)) => list.into_iter().map(|item| item.text).collect(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the kernel ran to its end"),
    }
}

/// All pairs of `values`: their first and their second parts.
pub(crate) fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|a| values.iter().map(|b| (*a, *b))).unzip()
}

/// The low and the high words.
pub(crate) fn halves(values: &[u64]) -> (Vec<u32>, Vec<u32>) {
    values.iter().map(|value| (*value as u32, (*value >> 32) as u32)).unzip()
}

/// Values from their low and high words.
pub(crate) fn joined([low, high]: &[Vec<u32>; 2]) -> Vec<u64> {
    low.iter().zip(high).map(|(low, high)| u64::from(*high) << 32 | u64::from(*low)).collect()
}

/// Pseudorandom numbers that are the same in every run (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    pub(crate) fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.next()).collect()
    }
}
