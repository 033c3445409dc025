//! Launches a kernel: copies inputs to memory, runs it, and copies outputs back.

use tilewright_compile::{Artifact, MapParameter, Parameter};
use tilewright_cuda::{Gpu, GpuArg, GpuBuffer};
use tilewright_diag::Diagnostic;
use tilewright_ir::tile::{Direction, ScalarParameter};
use tilewright_vgpu::{Arg, BufferId, KernelInfo, Launch, Memory, Module, Options, Progress, Report, TENSOR_MAP_BYTES};

use crate::built::Built;
use crate::device::Device;
use crate::explain;
use crate::failure::{Failure, FailureKind};
use crate::launch_numbers::{LaunchNumbers, narrow};
use crate::on_gpu::{UNWRITTEN, request};
use crate::tensor::HostTensor;
use crate::tensor_maps::tensor_map;

/// The results of a launch.
#[derive(Debug)]
pub struct Run {
    /// The outputs, in the order of the parameters.
    pub outputs: Vec<HostTensor>,
    /// What the virtual GPU counted; `None` on a GPU.
    pub report: Option<Report>,
    /// The time on a GPU; `None` on the virtual GPU.
    pub timing: Option<GpuTiming>,
    /// The memory after a run of the virtual GPU; `None` on a GPU.
    writers: Option<WriterRecord>,
}

/// Time of one launch on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuTiming {
    /// Milliseconds of one launch, the mean over the launches that were timed.
    pub milliseconds: f64,
    /// How many launches were timed.
    pub launches: u32,
}

/// The virtual GPU's memory, which records the last writer of every byte.
#[derive(Debug)]
struct WriterRecord {
    memory: Memory,
    /// The output buffers, in the order of the parameters.
    outputs: Vec<(BufferId, Parameter)>,
}

/// Launches that are timed on a GPU, after one that is not.
const TIMED_LAUNCHES: u32 = 100;

impl Run {
    /// The thread that wrote element `flat` of output number `output`, if known: `CTA (0,0,0), warp 0, lane 3, ...`.
    pub fn owner(&self, output: usize, flat: i64) -> Option<String> {
        let writers = self.writers.as_ref()?;
        let (buffer, parameter) = writers.outputs.get(output)?;
        let byte = parameter.layout.memory_position(flat) * parameter.dtype.bytes();
        match writers.memory.last_writer(*buffer, byte as usize) {
            Some(writer) => {
                let [x, y, z] = writer.cta;
                let by = match writer.thread {
                    Some(thread) => format!("warp {}, lane {}", thread / 32, thread % 32),
                    None => "an asynchronous engine".to_string(),
                };
                Some(format!("CTA ({x},{y},{z}), {by}, PTX line {}", writer.ptx_line))
            }
            None => Some("no thread".to_string()),
        }
    }
}

/// Launches a kernel on a device. `inputs` are the values of the parameters that are read, in order, then those of the
/// scalar parameters, each a tensor of one element.
pub fn run(artifact: &Artifact, built: &Built, inputs: &[HostTensor], device: &Device) -> Result<Run, Failure> {
    run_watched(artifact, built, inputs, device, &Options::default(), &mut |_| ())
}

/// Launches a kernel as [`run`] does. On the virtual GPU, `options` apply, and `watch` is called from time to time with
/// the progress of a long launch. A GPU ignores both.
pub fn run_watched(
    artifact: &Artifact,
    built: &Built,
    inputs: &[HostTensor],
    device: &Device,
    options: &Options,
    watch: &mut dyn FnMut(Progress),
) -> Result<Run, Failure> {
    let parameters = artifact.parameters();
    let sizes = artifact.bound_sizes().map_err(|finding| Failure::new(FailureKind::BadInput, finding))?;
    let (packed, scalars) = pack(parameters, artifact.scalars(), inputs)?;
    let numbers = LaunchNumbers::of(artifact, sizes, scalars)?;
    check_signature(artifact, built, &numbers)?;
    match device {
        Device::Virtual => run_virtual(artifact, built, numbers, packed, options, watch),
        Device::Gpu(gpu) => run_on_gpu(artifact, built, numbers, packed, gpu),
    }
}

/// The initial memory of a parameter.
enum InitialMemory {
    /// The bytes of an input.
    ReadOnly(Vec<u8>),
    /// The bytes of a tensor that is updated in place, or to which the kernel adds.
    Written(Vec<u8>),
    /// The size of an output, in bytes.
    Unwritten(usize),
}

/// `1 input`, `2 inputs`
fn count_inputs(count: usize) -> String {
    format!("{count} {}", if count == 1 { "input" } else { "inputs" })
}

/// What a launch takes.
fn order_of_inputs(parameters: &[Parameter], scalars: &[ScalarParameter]) -> String {
    let tensors = parameters.iter().filter(|parameter| parameter.direction.takes_values());
    let tensors = tensors.map(|parameter| format!("`{}` ({} {:?})", parameter.name, parameter.dtype, parameter.shape));
    let numbers = scalars.iter().map(|scalar| format!("`{}` ({}, a tensor of one element)", scalar.name, scalar.dtype));
    let all: Vec<String> = tensors.chain(numbers).collect();
    match &all[..] {
        [] => "pass no tensor: the kernel only writes".to_string(),
        [one] => format!("pass {one}"),
        _ => format!("pass {}, in this order", all.join(", ")),
    }
}

/// The initial memory of every parameter, and the bytes of every scalar.
fn pack(
    parameters: &[Parameter],
    scalars: &[ScalarParameter],
    inputs: &[HostTensor],
) -> Result<(Vec<InitialMemory>, Vec<Vec<u8>>), Failure> {
    let bad = |text: String| {
        let finding = Diagnostic::error("R0604", text).help(order_of_inputs(parameters, scalars));
        Failure::new(FailureKind::BadInput, finding)
    };
    let tensors = parameters.iter().filter(|parameter| parameter.direction.takes_values()).count();
    let wanted = tensors + scalars.len();
    if wanted != inputs.len() {
        return Err(bad(format!("the kernel has {}, not {}", count_inputs(wanted), inputs.len())));
    }
    let mut packed = Vec::with_capacity(parameters.len());
    let mut used = 0;
    for parameter in parameters {
        let mut given = || {
            used += 1;
            inputs[used - 1].pack(parameter).map_err(|error| bad(error.to_string()))
        };
        packed.push(match parameter.direction {
            Direction::Input => InitialMemory::ReadOnly(given()?),
            Direction::InOut => InitialMemory::Written(given()?),
            Direction::Accumulator => InitialMemory::Written(vec![0; memory_bytes(parameter)?]),
            Direction::Output => InitialMemory::Unwritten(memory_bytes(parameter)?),
        });
    }
    let number = |(ScalarParameter { name, dtype, .. }, given): (&ScalarParameter, &HostTensor)| {
        let is_number = given.dtype() == *dtype && given.shape().iter().product::<i64>() == 1;
        let (of, shape) = (given.dtype(), given.shape());
        is_number.then(|| given.bytes().to_vec()).ok_or_else(|| {
            bad(format!("`{name}` is {dtype}, but the tensor that was given is {of} of shape {shape:?}"))
        })
    };
    let numbers = scalars.iter().zip(&inputs[tensors..]).map(number).collect::<Result<_, _>>()?;
    Ok((packed, numbers))
}

/// The bytes of a parameter's memory.
fn memory_bytes(parameter: &Parameter) -> Result<usize, Failure> {
    let bytes = parameter.memory_elements().saturating_mul(parameter.dtype.bytes());
    narrow("the size of a tensor", bytes)
}

/// Edited CUDA must still have the artifact's entry point with its parameters.
fn check_signature(artifact: &Artifact, built: &Built, numbers: &LaunchNumbers) -> Result<(), Failure> {
    let (module, scalars) = (parse(built)?, artifact.scalars());
    let (pointers, sizes, maps) = (artifact.parameters().len(), numbers.sizes.len(), numbers.maps.len());
    let wrong = |text: String| {
        let pointers = format!("{pointers} x pointer{}{}{}", and_sizes(sizes), and_scalars(scalars), and_maps(maps));
        let finding = Diagnostic::error("R0603", "the signature in the CUDA text differs from the kernel's")
            .note(text)
            .help(format!("keep `{}` with its parameters: {pointers}", artifact.entry()));
        Failure::new(FailureKind::BadInput, finding)
    };
    let Some(kernel) = module.kernel(artifact.entry()) else {
        let names: Vec<&str> = module.kernels().map(|k| k.name.as_str()).collect();
        let others = if names.is_empty() { "it has none".to_string() } else { format!("it has {}", names.join(", ")) };
        return Err(wrong(format!("there is no entry point `{}`; {others}", artifact.entry())));
    };
    let KernelInfo { params, .. } = kernel;
    let given: Vec<usize> = params.iter().map(|param| param.size as usize).collect();
    let numbers = scalars.iter().map(|scalar| scalar.dtype.bytes() as usize);
    let expected: Vec<usize> = vec![8; pointers]
        .into_iter()
        .chain(vec![4; sizes])
        .chain(numbers)
        .chain(vec![TENSOR_MAP_BYTES; maps])
        .collect();
    if given != expected {
        let sizes: Vec<String> = params.iter().map(|p| format!("{} ({} bytes)", p.name, p.size)).collect();
        return Err(wrong(format!("its parameters are {}", sizes.join(", "))));
    }
    Ok(())
}

fn and_sizes(sizes: usize) -> String {
    if sizes == 0 { String::new() } else { format!(", {sizes} x int") }
}

fn and_maps(maps: usize) -> String {
    if maps == 0 { String::new() } else { format!(", {maps} x tensor map") }
}

fn and_scalars(scalars: &[ScalarParameter]) -> String {
    scalars.iter().map(|scalar| format!(", {}", scalar.dtype)).collect()
}

fn parse(built: &Built) -> Result<Module, Failure> {
    Module::parse(&built.ptx).map_err(|error| {
        let finding = Diagnostic::error("R0608", "the virtual GPU cannot read this PTX").note(error.to_string());
        Failure::new(FailureKind::Unsupported, finding)
    })
}

fn run_virtual(
    artifact: &Artifact,
    built: &Built,
    numbers: LaunchNumbers,
    packed: Vec<InitialMemory>,
    options: &Options,
    watch: &mut dyn FnMut(Progress),
) -> Result<Run, Failure> {
    let (module, parameters) = (parse(built)?, artifact.parameters());
    let mut memory = Memory::new();
    let buffers: Vec<BufferId> = parameters
        .iter()
        .zip(packed)
        .map(|(parameter, content)| match content {
            InitialMemory::ReadOnly(bytes) => memory.allocate_read_only(&parameter.name, bytes),
            InitialMemory::Written(bytes) => memory.allocate(&parameter.name, bytes),
            InitialMemory::Unwritten(len) => memory.allocate_poison(&parameter.name, len),
        })
        .collect();
    let map = |one: &MapParameter| {
        let address = buffers.get(one.tensor).and_then(|buffer| memory.address(*buffer));
        tensor_map(&one.map, one.dtype, address.ok_or_else(|| no_tensor(one))?).map(Arg::TensorMap)
    };
    let maps = numbers.maps.iter().map(map).collect::<Result<Vec<Arg>, Failure>>()?;
    let launch = Launch {
        kernel: artifact.entry().to_string(),
        grid: numbers.grid,
        block: numbers.block,
        cluster: numbers.cluster,
        overlaps_previous: artifact.overlaps_previous(),
        dynamic_shared_bytes: numbers.dynamic_shared_bytes,
        args: buffers
            .iter()
            .map(|buffer| Arg::Buffer { buffer: *buffer, byte_offset: 0 })
            .chain(numbers.sizes.iter().map(|size| Arg::Bytes(size.to_le_bytes().to_vec())))
            .chain(numbers.scalars.iter().map(|bytes| Arg::Bytes(bytes.clone())))
            .chain(maps)
            .collect(),
    };
    // Edited text has different line numbers.
    let options = match built.edited {
        None => Options { apart: artifact.unique_stores(), any_wins: artifact.any_wins_stores(), ..options.clone() },
        Some(_) => options.clone(),
    };
    let report = tilewright_vgpu::run_watched(&module, &launch, &mut memory, &options, watch)
        .map_err(|error| explain::run_error(&error, artifact, built))?;
    let mut outputs = Vec::new();
    for (number, (buffer, parameter)) in buffers.iter().zip(parameters).enumerate() {
        if !parameter.is_output() {
            continue;
        }
        if let Some(element) = unwritten_element(&memory, *buffer, parameter) {
            let finding = artifact.unwritten_element_error(number, element);
            return Err(Failure::new(FailureKind::Fault, finding));
        }
        outputs.push((*buffer, parameter.clone()));
    }
    let tensors = outputs.iter().map(|(buffer, parameter)| HostTensor::unpack(parameter, &memory.bytes(*buffer)));
    let tensors = tensors.collect();
    Ok(Run { outputs: tensors, report: Some(report), timing: None, writers: Some(WriterRecord { memory, outputs }) })
}

/// The first element of an output that was not written.
fn unwritten_element(memory: &Memory, buffer: BufferId, parameter: &Parameter) -> Option<i64> {
    let width = parameter.dtype.bytes();
    let is_unwritten = |position: &i64| {
        (position * width..(position + 1) * width).any(|byte| !memory.is_written(buffer, byte as usize))
    };
    let element = parameter.layout.memory_positions().iter().position(is_unwritten)?;
    Some(element as i64)
}

fn gpu_failure(text: &str) -> Failure {
    Failure::new(FailureKind::Fault, Diagnostic::error("R0610", "the GPU reports an error").note(text))
}

/// The failure for a map of a tensor that is not a parameter.
fn no_tensor(map: &MapParameter) -> Failure {
    let finding = Diagnostic::internal("R0618", format!("`{}` maps a tensor that is not a parameter", map.name));
    Failure::new(FailureKind::Fault, finding)
}

fn run_on_gpu(
    artifact: &Artifact,
    built: &Built,
    numbers: LaunchNumbers,
    packed: Vec<InitialMemory>,
    gpu: &Gpu,
) -> Result<Run, Failure> {
    let failed = |error: tilewright_cuda::CudaError| gpu_failure(&error.to_string());
    if built.cubin.is_empty() {
        let finding = Diagnostic::error("R0601", "there is no machine code, only PTX")
            .help("install NVRTC with `cargo xtask setup`");
        return Err(Failure::new(FailureKind::Unsupported, finding));
    }
    let module = gpu.load(&built.cubin).map_err(failed)?;
    let mut buffers: Vec<GpuBuffer> = Vec::new();
    for content in packed {
        let buffer = match content {
            InitialMemory::ReadOnly(bytes) | InitialMemory::Written(bytes) => {
                let buffer = gpu.alloc(bytes.len() as u64).map_err(failed)?;
                gpu.upload(&buffer, 0, &bytes).map_err(failed)?;
                buffer
            }
            InitialMemory::Unwritten(len) => {
                let buffer = gpu.alloc(len as u64).map_err(failed)?;
                gpu.fill(&buffer, UNWRITTEN).map_err(failed)?;
                buffer
            }
        };
        buffers.push(buffer);
    }
    let launch = tilewright_cuda::Launch {
        kernel: artifact.entry(),
        grid: numbers.grid,
        block: numbers.block,
        cluster: None,
        dynamic_shared_bytes: numbers.dynamic_shared_bytes,
        overlaps_previous: artifact.overlaps_previous(),
    };
    let sizes = numbers.sizes.iter().map(|size| GpuArg::Bytes(size.to_ne_bytes().to_vec()));
    let values = sizes.chain(numbers.scalars.iter().map(|bytes| GpuArg::Bytes(bytes.clone())));
    let map = |one: &MapParameter| {
        let start = narrow("the start of a tensor", one.map.start)?;
        let map = tensor_map(&one.map, one.dtype, 0)?;
        let buffer = buffers.get(one.tensor).ok_or_else(|| no_tensor(one))?;
        gpu.tensor_map(buffer, start, &request(&map)).map(GpuArg::Bytes).map_err(failed)
    };
    let maps = numbers.maps.iter().map(map).collect::<Result<Vec<_>, Failure>>()?;
    let tensors = buffers.iter().map(|buffer| GpuArg::Buffer(buffer, 0));
    let args: Vec<GpuArg<'_>> = tensors.chain(values).chain(maps).collect();
    gpu.launch(&module, &launch, &args).map_err(failed)?;
    gpu.synchronize().map_err(failed)?;
    // Before the timed launches, which update tensors in place again.
    let mut outputs = Vec::new();
    for (parameter, buffer) in artifact.parameters().iter().zip(&buffers).filter(|(p, _)| p.is_output()) {
        let memory = gpu.download(buffer, 0, buffer.size()).map_err(failed)?;
        outputs.push(HostTensor::unpack(parameter, &memory));
    }
    let milliseconds = gpu.time(TIMED_LAUNCHES, || gpu.launch(&module, &launch, &args)).map_err(failed)?;
    let timing = GpuTiming { milliseconds, launches: TIMED_LAUNCHES };
    Ok(Run { outputs, report: None, timing: Some(timing), writers: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gpu_reports_is_a_fault() {
        let failure = gpu_failure("cuLaunchKernel: CUDA_ERROR_MISALIGNED_ADDRESS");
        assert_eq!(
            (failure.kind, failure.to_string()),
            (FailureKind::Fault, "error[R0610]: the GPU reports an error".to_string())
        );
    }
}
