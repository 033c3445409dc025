//! Compares `transpose_2d` with a hand-written transpose (`fixtures/cuda/transpose_2d.cu`), both run on the virtual
//! GPU.

use tilewright::compile::{Options, compile};
use tilewright::cuda::Request;
use tilewright::prelude::{DType, Target};
use tilewright::runtime::{CudaText, Device, HostTensor, Toolchain, run};
use tilewright::vgpu::{self, Arg, Launch, Memory, Module, Report, Space};
use tilewright_kernels::find;

use crate::toolchain::package;

/// A kernel of the fixture: its dtype, its name, and the rows and columns of a CTA's tile. All have 64 threads.
const KERNELS: [(DType, &str, i64, i64); 5] = [
    (DType::B8, "transpose_b8", 128, 128),
    (DType::B16, "transpose_b16", 128, 64),
    (DType::B32, "transpose_b32", 64, 64),
    (DType::B64, "transpose_b64", 64, 32),
    (DType::B128, "transpose_b128", 32, 32),
];

/// The kernels of the fixture, by dtype.
pub const WIDTHS: [DType; 5] = [DType::B8, DType::B16, DType::B32, DType::B64, DType::B128];

/// The results of both transposes of one matrix.
pub struct Compared {
    /// Counters of the compiled kernel.
    pub ours: Report,
    /// Counters of the hand-written kernel.
    pub by_hand: Report,
    /// Whether both outputs are correct.
    pub is_right: bool,
}

/// Runs both on an `m` x `n` matrix, whose rows and columns are multiples of 16 bytes. Errors: no NVRTC, or a failure.
pub fn transposes(toolchain: &Toolchain, target: Target, dtype: DType, (m, n): (i64, i64)) -> Result<Compared, String> {
    let entry = find("transpose_2d").ok_or("the kernel is not in the library")?;
    let sizes = [("m".to_string(), m), ("n".to_string(), n)];
    let config = entry.config(Some(dtype), &sizes).map_err(|error| error.to_string())?;
    let said = |found: Vec<tilewright::diag::Diagnostic>| format!("{found:?}");
    let artifact = compile((entry.build)(&config), &Options::new(target)).map_err(said)?;
    let artifact = artifact.for_sizes(&entry.sizes(&config)).map_err(said)?;
    let built = toolchain.build(&artifact, &CudaText::Generated).map_err(|failure| failure.to_string())?;
    let inputs = (entry.inputs)(&config);
    let ours = run(&artifact, &built, &inputs, &Device::Virtual).map_err(|failure| failure.to_string())?;
    let expected = (entry.reference)(&config, &inputs);
    let (output, by_hand) = transpose_by_hand(toolchain, target, &inputs[0])?;
    let is_right = output == expected[0].bytes() && ours.outputs[0].bytes() == expected[0].bytes();
    let ours = ours.report.ok_or("the virtual GPU counted nothing")?;
    Ok(Compared { ours, by_hand, is_right })
}

/// Runs the hand-written transpose. Returns its output and its counters.
fn transpose_by_hand(toolchain: &Toolchain, target: Target, input: &HostTensor) -> Result<(Vec<u8>, Report), String> {
    let kernel = KERNELS.iter().find(|(dtype, ..)| *dtype == input.dtype());
    let (_, name, rows, cols) = kernel.ok_or("no hand-written kernel for this dtype")?;
    let nvrtc = toolchain.nvrtc(target.name()).map_err(|error| error.to_string())?;
    let path = package().join("fixtures/cuda/transpose_2d.cu");
    let source = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let request = Request { source: &source, name: "/tilewright/by_hand.cu", target: target.name(), options: &[] };
    let ptx = nvrtc.compile(&request).map_err(|error| error.to_string())?.ptx;
    let module = Module::parse(&ptx).map_err(|error| error.to_string())?;
    let (m, n) = (input.shape()[0], input.shape()[1]);
    let mut memory = Memory::new();
    let a = memory.allocate("a", input.bytes().to_vec());
    let b = memory.allocate_poison("b", input.bytes().len());
    let pointer = |buffer| Arg::Buffer { buffer, byte_offset: 0 };
    let size = |value: i64| Arg::Bytes((value as i32).to_le_bytes().to_vec());
    let launch = Launch {
        kernel: (*name).to_string(),
        grid: [((n + cols - 1) / cols) as u32, ((m + rows - 1) / rows) as u32, 1],
        block: [64, 1, 1],
        dynamic_shared_bytes: 0,
        args: vec![pointer(a), pointer(b), size(m), size(n)],
    };
    let options = vgpu::Options::default();
    let report = vgpu::run(&module, &launch, &mut memory, &options).map_err(|error| error.to_string())?;
    Ok((memory.bytes(b).to_vec(), report))
}

/// True if every sector of global memory that a warp touches is used in full, and no access to shared memory needs
/// extra wavefronts.
pub fn is_ideal(report: &Report) -> bool {
    report.accesses.iter().all(|access| match access.space {
        Space::Global => access.sectors == access.ideal_sectors,
        _ => access.wavefronts == access.ideal_wavefronts,
    })
}
