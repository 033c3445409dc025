//! The virtual GPU part of `bench`: thread instructions per second with all checks on one core and on two, products of tensor
//! memory, and parsing.

use std::num::NonZero;
use std::time::Instant;

use tilewright::compile::{Artifact, Parameter, Stage};
use tilewright::cuda::Request;
use tilewright::prelude::*;
use tilewright::runtime::{CudaText, Device, Failure, run};
use tilewright::vgpu::{
    self, Arg, BufferId, Launch, MapAccess, MapElement, MapSwizzle, Memory, Module, Options, TensorMap,
};
use tilewright_tests::toolchain::{package, toolchain};

use crate::bench_kernel::{built, compile_named, configured, options};
use crate::defect::fail_on_kernel;
use crate::exit::Exit;
use crate::figure::{Figure, Goal};
use crate::measuring::Measuring;
use crate::resources::{median, median_milliseconds};
use crate::terminal::fail;
use crate::toolchain::provisioned;

/// A kernel of the library, its sizes, and the variant to use.
type Measured = (&'static str, &'static [(&'static str, i64)], Option<&'static str>);

// One element per access, so that the figure measures instructions, whichever plan is the cheapest.
const TRANSPOSE: Measured = ("warp_transpose", &[("tiles", 2048)], Some("warp_xor_swizzle"));
const SOFTMAX: Measured = ("softmax", &[("rows", 4096), ("cols", 2048)], None);
const TRANSPOSE_2D: Measured = ("transpose_2d", &[("m", 4096), ("n", 4096)], None);
const ATTENTION: Measured = ("short_attention", &[("rows", 4096)], None);
/// The bytes of inputs: small numbers. Zeros would be pages that the host has never written, which it reads faster.
const DATA: u8 = 0x3c;
/// Runs of which the median counts.
const RUNS: usize = 5;

pub(crate) fn figures(measuring: &Measuring) -> Result<Vec<Figure>, Exit> {
    let rate = |name: &str, goal: f64, measured: Measured| {
        let name = format!("virtual GPU, {name}");
        measuring.figure(name, "M thread inst/s/core", Goal::AtLeast(goal), || rate_on(1, measured))
    };
    let mut figures = vec![
        rate("warp_transpose over 2048 CTAs", 50.0, TRANSPOSE)?,
        rate("softmax 4096 x 2048", 200.0, SOFTMAX)?,
        rate("transpose_2d 4096 x 4096", 100.0, TRANSPOSE_2D)?,
        rate("attention of 4096 rows", 100.0, ATTENTION)?,
    ];
    let speedup = || Ok(rate_on(2, SOFTMAX)? / rate_on(1, SOFTMAX)?);
    let name = "virtual GPU, softmax 4096 x 2048 on two cores";
    figures.push(measuring.figure(name, "times one core", Goal::AtLeast(1.8), speedup)?);
    for (bytes, stride) in [(16, 16), (4, 4), (2, 2), (16, 64), (4, 64), (2, 64)] {
        let name = match bytes == stride {
            true => format!("virtual GPU, shadow of memory of which adjacent lanes access {bytes} bytes"),
            false => format!("virtual GPU, shadow of memory of which lanes access {bytes} bytes, {stride} apart"),
        };
        figures.push(measuring.figure(name, "B per byte", Goal::Below(6.0), || shadow_ratio(bytes, stride))?);
    }
    let Some(ptx) = gemm_ptx()? else {
        measuring.note("no NVRTC: the products of tensor memory are not measured");
        return Ok(figures);
    };
    for target in Target::ALL {
        let name = format!("virtual GPU, matmul of bf16 1024 x 1024 x 1024 for {target}");
        figures.push(measuring.figure(&name, "ms", Goal::Below(1000.0), || matmul_milliseconds(*target))?);
    }
    let module = Module::parse(&ptx).map_err(|error| fail(Exit::Unsupported, &error))?;
    for ([m, n, k], cores, goal) in [([256, 256, 512], 1, 20.0), ([1024, 1024, 1024], 2, 1000.0)] {
        let name = format!("virtual GPU, tcgen05 GEMM of bf16 {m} x {n} x {k}, cores: {cores}");
        figures
            .push(measuring.figure(&name, "ms", Goal::Below(goal), || gemm_milliseconds(&module, [m, n, k], cores))?);
    }
    let parse = || parse_rate(&ptx);
    figures.push(measuring.figure("virtual GPU, parsing and decoding PTX", "MB/s", Goal::AtLeast(50.0), parse)?);
    Ok(figures)
}

/// Bytes of the race checks for each byte of a buffer that is written whole: `bytes` by each lane at a time, `stride` bytes
/// from the next lane, by as many stores as that takes.
fn shadow_ratio(bytes: u32, stride: u32) -> Result<f64, Exit> {
    let (threads, ctas) = (256, 256);
    let value = match bytes {
        16 => "v4.u32 [%rd1+AT], {%r1, %r1, %r1, %r1}",
        4 => "u32 [%rd1+AT], %r1",
        _ => "u16 [%rd1+AT], %r1",
    };
    let store = |at: u32| format!("st.global.{};\n", value.replace("AT", &at.to_string()));
    let stores: String = (0..stride).step_by(bytes as usize).map(store).collect();
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.entry fill(.param .u64 to) {{\n.reg .b32 %r<3>;\n\
         .reg .b64 %rd<3>;\nld.param.u64 %rd1, [to];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mad.lo.u32 %r1, %r2, {threads}, %r1;\nmul.wide.u32 %rd2, %r1, {stride};\nadd.u64 %rd1, %rd1, %rd2;\n\
         {stores}ret;\n}}\n"
    );
    let module = Module::parse(&text).map_err(|error| fail(Exit::Unsupported, &error))?;
    let mut memory = Memory::new();
    let all = (threads * ctas * stride) as usize;
    let buffer = memory.allocate_poison("to", all);
    let launch = Launch {
        kernel: "fill".to_string(),
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: 0,
        args: vec![Arg::Buffer { buffer, byte_offset: 0 }],
    };
    vgpu::run(&module, &launch, &mut memory, &Options::default()).map_err(|error| fail(Exit::Fault, &error))?;
    Ok(memory.shadow_bytes() as f64 / all as f64)
}

/// A kernel of the library, compiled, with the sizes of its launch.
fn sized((name, sizes, variant): Measured) -> Result<Artifact, Exit> {
    let (entry, config) = configured(name, None, sizes)?;
    let artifact = compile_named(name, sizes, variant)?;
    let failed = |found| {
        let kernel = || (entry.build)(&config, Target::Sm100a).to_string();
        fail_on_kernel(kernel, &options(variant), found, Exit::BadInput)
    };
    artifact.for_sizes(&entry.sizes(&config)).map_err(failed)
}

fn parsed(measured: Measured) -> Result<(Artifact, Module), Exit> {
    let artifact = sized(measured)?;
    let failed = |failure: Failure| {
        let kernel = || artifact.stage(Stage::Tile);
        fail_on_kernel(kernel, &options(measured.2), failure.diagnostics, failure.kind.into())
    };
    let built = provisioned(artifact.target().name()).build(&artifact, &CudaText::Generated).map_err(failed)?;
    let module = Module::parse(&built.ptx).map_err(|error| fail(Exit::Unsupported, &error))?;
    Ok((artifact, module))
}

/// Millions of thread instructions per second and core.
fn rate_on(cores: usize, measured: Measured) -> Result<f64, Exit> {
    let run_options = Options { host_threads: NonZero::new(cores), ..Options::default() };
    let (artifact, module) = parsed(measured)?;
    let (mut instructions, mut times) = (0, Vec::new());
    for _ in 0..RUNS {
        let (mut memory, launch) = launch_of(&artifact);
        let start = Instant::now();
        let ended = vgpu::run(&module, &launch, &mut memory, &run_options);
        let report = ended.map_err(|error| fail(Exit::Fault, &error))?;
        times.push(start.elapsed().as_secs_f64());
        instructions = report.thread_instructions;
    }
    Ok(instructions as f64 / median(times) / 1e6)
}

fn launch_of(artifact: &Artifact) -> (Memory, Launch) {
    let mut memory = Memory::new();
    let mut buffer = |parameter: &Parameter| {
        let bytes = (parameter.memory_elements() * parameter.dtype.bytes()) as usize;
        let buffer = match parameter.is_output() {
            true => memory.allocate_poison(&parameter.name, bytes),
            false => memory.allocate(&parameter.name, vec![DATA; bytes]),
        };
        Arg::Buffer { buffer, byte_offset: 0 }
    };
    let buffers: Vec<Arg> = artifact.parameters().iter().map(&mut buffer).collect();
    let sizes = artifact.sizes().unwrap_or_default();
    let sizes = sizes.iter().map(|size| Arg::Bytes((*size as i32).to_le_bytes().to_vec()));
    let launch = Launch {
        kernel: artifact.entry().to_string(),
        grid: artifact.grid().map(|n| n as u32),
        block: [artifact.threads() as u32, 1, 1],
        cluster: [1; 3],
        overlaps_previous: false,
        dynamic_shared_bytes: artifact.dynamic_shared_bytes() as u32,
        args: buffers.into_iter().chain(sizes).collect(),
    };
    (memory, launch)
}

/// The time of the library's product on all cores, with its inputs copied to the memory of the virtual GPU.
fn matmul_milliseconds(target: Target) -> Result<f64, Exit> {
    let (entry, config) = configured("matmul", Some(BF16), &[("m", 1024), ("n", 1024), ("k", 1024)])?;
    let (artifact, built) = built(entry, &config, target)?;
    let inputs = (entry.inputs)(&config);
    let failed = |failure: Failure| fail(Exit::Fault, &failure);
    median_milliseconds(RUNS, || run(&artifact, &built, &inputs, &Device::Virtual).map(|_| ()).map_err(failed))
}

/// The hand-written GEMM of the tests; `None` without NVRTC.
fn gemm_ptx() -> Result<Option<String>, Exit> {
    let read = |file: &str| {
        let path = package().join("fixtures/cuda").join(file);
        std::fs::read_to_string(&path).map_err(|error| fail(Exit::BadInput, &format!("{}: {error}", path.display())))
    };
    let mut source = read("tcgen05_gemm.cu")?;
    for file in ["async.cuh", "tensor.cuh"] {
        source = source.replace(&format!("#include \"{file}\"\n"), &read(file)?);
    }
    let Ok(nvrtc) = toolchain().nvrtc("sm_100a") else { return Ok(None) };
    let request = Request { source: &source, name: "/tilewright/bench.cu", target: "sm_100a", options: &[] };
    let compiled = nvrtc.compile(&request).map_err(|error| fail(Exit::Unsupported, &error))?;
    Ok(Some(compiled.ptx))
}

fn gemm_milliseconds(module: &Module, [m, n, k]: [u64; 3], cores: usize) -> Result<f64, Exit> {
    let options = Options { host_threads: NonZero::new(cores), ..Options::default() };
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut memory = Memory::new();
        let (a, b) = (
            memory.allocate("a", vec![DATA; (2 * m * k) as usize]),
            memory.allocate("b", vec![DATA; (2 * n * k) as usize]),
        );
        let c = memory.allocate_poison("c", (4 * m * n) as usize);
        let tiles = m / 128 * (n / 64);
        let map = |buffer: BufferId, rows: u64, height: u64| {
            let map = TensorMap {
                address: memory.address(buffer).unwrap_or(0),
                element: MapElement::Bf16,
                fills_nan: false,
                dims: vec![k, rows],
                strides: vec![2 * k],
                access: MapAccess::Tiled(vec![64, height]),
                element_strides: vec![1, 1],
                swizzle: MapSwizzle::B128,
            };
            Arg::Bytes(map.encode().to_vec())
        };
        let number = |value: u64| Arg::Bytes((value as u32).to_le_bytes().to_vec());
        let pointer = Arg::Buffer { buffer: c, byte_offset: 0 };
        let args = vec![map(a, m, 128), map(b, n, 64), pointer, number(n), number(k), number(tiles)];
        let launch = Launch {
            kernel: "tcgen05_gemm".to_string(),
            grid: [tiles.min(148) as u32, 1, 1],
            block: [224, 1, 1],
            cluster: [1; 3],
            overlaps_previous: false,
            dynamic_shared_bytes: 0,
            args,
        };
        let start = Instant::now();
        vgpu::run(module, &launch, &mut memory, &options).map_err(|error| fail(Exit::Fault, &error))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(times))
}

/// Megabytes of PTX text per second.
fn parse_rate(ptx: &str) -> Result<f64, Exit> {
    let mut times = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        Module::parse(ptx).map_err(|error| fail(Exit::Unsupported, &error))?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(ptx.len() as f64 / median(times) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_kernel_has_the_sizes_of_a_launch() {
        for measured in [TRANSPOSE, SOFTMAX, TRANSPOSE_2D, ATTENTION] {
            let artifact = sized(measured).expect("a kernel of the library");
            let (_, launch) = launch_of(&artifact);
            let sizes = artifact.sizes().expect("they are bound");
            assert_eq!(launch.args.len(), artifact.parameters().len() + sizes.len(), "{measured:?}");
        }
    }
}
